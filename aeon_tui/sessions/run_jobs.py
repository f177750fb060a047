"""The jobs of a Runner: a new run, with the content of its form, or a resumed one.

Forks and workflows have files of their own.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct
from typing_extensions import TypeVar

from aeon_core.config.loading import checked_text
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.view.formatting import words
from aeon_core.llm import PROVIDERS
from aeon_core.paths import expanded, writable
from aeon_core.suggest import nearest
from aeon_tui.sessions.run_options import (
    approval_points,
    merge_overrides,
    resumed_approval_points,
    rules_for,
    started_of,
    usable_model,
)
from aeon_tui.sources.base import ReadAheadSource, Records, read_journal
from aeon_tui.sources.live import LiveSource

if TYPE_CHECKING:
    from aeon_core.approvals import Approver
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import Approval, RunConfig
    from aeon_core.config.trust import ProjectTrust
    from aeon_core.entities import RunResult
    from aeon_core.memory import Memory
    from aeon_core.plan.models import Plan
    from aeon_core.tools.registry import ToolRegistry
    from aeon_tui.sessions.stream import Stream


DEMO_MODEL = "simulated:missing-tool"
DEMO_TASK = "design a REST API for invoices"


def demo_job(today: LoadedConfig) -> NewRunJob:
    """Return the request of `aeon-tui demo`. Raises UsageError for tools that cannot be loaded."""
    from aeon_core.config.schema import RunConfig
    from aeon_core.runs.factory import build_tools

    # The demo runs nothing of the project, trusted or not.
    left_out = {item.key.partition(".")[0] for item in today.trust.items} & today.sources.keys()
    plain = {key: RunConfig.model_fields[key].get_default(call_default_factory=True) for key in left_out}
    changed = {"model": DEMO_MODEL, "approve": approval_points(today, in_app=True)}
    config = today.config.model_copy(update={**plain, **changed})
    return NewRunJob(DEMO_TASK, config, paced=True, guide=GUIDE, tools=build_tools(config))


GUIDE = (
    "Simulated model, no key. The plan names a tool that does not exist: watch Aeon notice (✖) and refine it (✎). "
    "Press {approve} after each pass. {back} hides this."
)
"""The introduction to the guided run; at most two lines of 78 cells."""


def is_paced(task: str, started: RunConfig, config: RunConfig | None = None) -> bool:
    """Return whether replies are slowed so that a person can watch: in the guided run and its continuations.

    `started` is the run's first record; `config` its options from now on, if they differ.
    """
    models = (config or started).models
    return task == DEMO_TASK and started.model == DEMO_MODEL and all(each.startswith("simulated:") for each in models)


class Result(Protocol):
    """How a run or a workflow ended."""

    @property
    def status(self) -> str:
        """Its status, as journaled."""

    @property
    def exit_code(self) -> int:
        """The exit code."""

    @property
    def error(self) -> dict[str, Any] | str | None:
        """Why it failed."""


ResultT = TypeVar("ResultT", bound=Result, covariant=True, default="RunResult")


class Kernel(Protocol[ResultT]):
    """A kernel, run once: it performs, journals and returns how it ended."""

    def run(self) -> ResultT: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


OnLine = Callable[[bytes], None]


class RunnerJob(ABC):
    """The job of a Runner."""

    what: ClassVar[str] = "run"
    task: str
    keeps_journal = True
    """False once the journal has turned out to be unwritable."""

    @property
    def beside(self) -> Path | None:
        """The journal of the run to compare it with."""
        return None

    @abstractmethod
    def prepare(self) -> None:
        """Check that it can start. Raises UsageError and ModelUnavailableError, before anything is written."""

    def discard(self) -> None:  # noqa: B027  # most hold nothing
        """Release what `prepare` opened, if the job will not run."""

    @abstractmethod
    def journal_in(self, runs_dir: Path) -> Path:
        """Return the journal that it writes: a new one in this directory, or the job's own."""

    @abstractmethod
    def source(self, journal: Path) -> LiveSource[Any]:
        """Return the source of the screen's records."""

    @abstractmethod
    def build(self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None) -> Kernel[Result]:
        """Build the kernel, on the thread that will run it; `stream` gets replies as they arrive. Raises AeonError."""

    def warning(self) -> str:
        """Return a warning to show from the start; usually empty."""
        return ""

    @abstractmethod
    def continues_after(self, result: Any) -> bool:
        """Return whether the user should continue it next."""

    def failure(self, run_id: str, error: AeonError) -> Any:  # noqa: ARG002  # for what has no such result
        """Return the result of a job that could not start, if its screen shows one."""
        return None


class StartRequest(ABC):
    """A request to start something in the app. `today` returns the current configuration."""

    def missing_trust(self, today: Callable[[], LoadedConfig]) -> ProjectTrust | None:
        """Return the consent to ask for first, None if none is missing. Raises UsageError."""
        loaded = today()
        return loaded.trust if loaded.ignored else None

    @abstractmethod
    def job(self, today: Callable[[], LoadedConfig], runs_dir: Path) -> RunnerJob:
        """Return the job, not yet prepared. Raises AeonError for unusable options."""


@dataclass
class RunJob(RunnerJob):
    """A run: new, resumed, or a fork."""

    task: str
    config: RunConfig
    _: KW_ONLY
    tools: ToolRegistry | None = None
    """The configuration's if none are given."""
    guide: str = ""
    """A notice on the screen; usually empty."""
    paced: bool = False
    """Whether replies are slowed for watching."""

    def prepare(self) -> None:
        """Load the tools, and check that the model can be used."""
        from aeon_core.runs.factory import build_tools

        tools = self.tools if self.tools is not None else build_tools(self.config)
        try:
            usable_model(self.config).close()
        except BaseException:
            tools.close()
            raise
        self.tools = tools

    def journal_in(self, runs_dir: Path) -> Path:
        return new_journal(runs_dir)

    def source(self, journal: Path) -> LiveSource:
        """Return the source of the screen's records, which starts with the run."""
        return LiveSource(journal)

    @abstractmethod
    def build(self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None) -> Kernel:
        """Build the kernel of a run."""

    def discard(self) -> None:
        if self.tools is not None:
            self.tools.close()

    def warning(self) -> str:
        return isolation_warning(self.config)

    def continues_after(self, result: RunResult) -> bool:
        return result.status == "aborted"

    def failure(self, run_id: str, error: AeonError) -> RunResult:
        from aeon_core.entities import RunResult, TTLState

        config = self.config
        model = next(iter(config.models), "")
        return RunResult(
            run_id=run_id,
            status="failed",
            error={"error_type": type(error).__name__, "message": error.message},
            ttl=TTLState(limit=config.ttl, allocated=config.ttl, spent=0, remaining=config.ttl),
            model=model,
            simulated=model.startswith("simulated:"),
        )


@dataclass
class NewRunJob(RunJob):
    """A new run, optionally of a plan; `memory` is empty by default."""

    plan: Plan | None = None
    memory: Memory | None = field(default=None, kw_only=True)

    def build(self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None) -> Kernel:
        from aeon_core.runs.orchestrator import Orchestrator, PreparedRun

        with kernel_parts(self, on_line, stream, approver) as parts:
            orchestrator = Orchestrator(**parts, memory=self.memory, config=self.config, journal=journal)
            return PreparedRun(orchestrator, self.task, self.plan)


NO_TASK = "describe the task"
NO_MODEL = "choose one below, or type PROVIDER:NAME"
FIELD_TITLES = {"model": "Model", "ttl": "TTL", "budget": "Budget", "criteria": "Criteria"}
"""Fields of one line, with their labels."""
APPROVAL_TITLES = {"plan": "plan", "pass": "each pass", "tool": "tool calls"}
"""Points that can need approval, with their labels."""


@dataclass(frozen=True)
class NewRunForm(StartRequest):
    """The content of the form; texts are as typed, and an empty one means the default."""

    task: str = ""
    model: str = ""
    ttl: str = ""
    budget: str = ""
    criteria: str = ""
    approve: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    single_pass: bool = False

    def problems(self) -> dict[str, str]:
        """Return the problems by field, one line each. Reads no file."""
        found = {"task": NO_TASK} if not self.task.strip() else {}
        for key in FIELD_TITLES:
            try:
                self._value(key)
            except UsageError as error:
                found[key] = error.message
        return found

    def job(self, today: Callable[[], LoadedConfig], runs_dir: Path) -> NewRunJob:
        """Return the request for the run. Raises UsageError for problems of the form, the criteria or `runs_dir`."""
        if problems := self.problems():
            raise UsageError(next(iter(problems.values())))
        writable(runs_dir)
        loaded = today()
        config = loaded.config.model_copy(update=self._changes(loaded))
        if config.criteria is not None:
            from aeon_core.convergence import load_criteria

            load_criteria(config.criteria)
        return NewRunJob(self.task.strip(), config)

    def _changes(self, today: LoadedConfig) -> dict[str, Any]:
        values = {key: self._value(key) for key in FIELD_TITLES}
        if values["ttl"] is None:
            values["ttl"] = today.config.ttl
        asked = list(self.approve) or ["none"]
        return {**values, "approve": asked, "tools": list(self.tools), "single_pass": self.single_pass}

    def _value(self, key: str) -> Any:
        text = getattr(self, key).strip()
        if key == "model":
            if not text:
                raise UsageError(NO_MODEL)
            return checked_model(text)
        return checked_text(key, text, FIELD_TITLES[key]) if text else None


def checked_model(text: str) -> str | list[str]:
    """Return a model, or several separated by commas. Raises UsageError if one is malformed."""
    models = [model.strip() for model in text.split(",")]
    for model in models:
        provider, _, name = model.partition(":")
        if provider not in PROVIDERS:
            raise UsageError(f"{model[:80]!r} has an unknown provider{nearest(provider, PROVIDERS)}")
        if not name.strip():
            raise UsageError(f"{model!r} has no name; write {provider}:NAME")
    return models[0] if len(models) == 1 else models


def new_run_of(today: LoadedConfig) -> NewRunForm:
    """Return a form filled in from the configuration."""
    config = today.config
    return NewRunForm(
        model=", ".join(config.models),
        ttl=str(config.ttl),
        budget=f"{config.budget:g}" if config.budget is not None else "",
        criteria=str(config.criteria) if config.criteria is not None else "",
        approve=tuple(point for point in approval_points(today, in_app=True) if point != "none"),
        tools=tuple(config.tools),
        single_pass=config.single_pass,
    )


@contextlib.contextmanager
def kernel_parts(
    job: RunJob,
    on_line: OnLine,
    stream: Stream | None,
    approver: Approver | None,
    approve: Sequence[Approval] | None = None,
) -> Iterator[dict[str, Any]]:
    """Return the arguments of every kernel: its model (slowed if `paced`), tools, approver and listeners.

    The approver is asked at the points in `approve`, by default those of the configuration. The kernel closes them;
    they are closed here if it cannot be built.
    """
    from aeon_core.approval_inbox import about
    from aeon_core.config.journal_trust import remembers_run
    from aeon_core.journal.writer import fan_out
    from aeon_core.runs.factory import build_tools, connect_model, telemetry

    config = job.config
    with contextlib.ExitStack() as opened:
        tools = job.tools if job.tools is not None else build_tools(config)
        opened.callback(tools.close)
        model = connect_model(config)
        opened.callback(model.close)
        if job.paced:
            from aeon_tui.sessions.slowed_model import SlowedModel

            model = SlowedModel(model)
        if (listener := telemetry(config)) is not None:
            opened.callback(listener.close)
        yield {
            "llm": model,
            "tools": tools,
            "approver": about(approve if approve is not None else config.approve, approver),
            "on_record": listener,
            "on_line": fan_out([on_line, remembers_run()]),
            "on_delta": stream.add if stream is not None else None,
        }
        opened.pop_all()


def isolation_warning(config: RunConfig) -> str:
    """Return in one line what isolation leaves open here; empty if a run has no shell or isolation is complete.

    The first call in a process probes it, which takes about as long as a command.
    """
    if "shell" not in config.tools:
        return ""
    from aeon_core.tools.shell.isolation import probe

    return probe(config.root, config.shell).warning


def new_journal(runs_dir: Path) -> Path:
    """Return the journal of a new run."""
    from aeon_core.journal.writer import new_run_id

    return runs_dir / f"{new_run_id()}.jsonl"


_WHO_AND_WHERE = frozenset({"model", "base_url", "tools", "approve", "wait", "project_root", "runs_dir"})
"""Overridable options besides the kernel's: they change nothing that is recorded."""


@dataclass
class ResumeJob(RunJob):
    """A run that continues after the end of its journal.

    `options` are overrides: for example, `approve` lists the approval points from here on.
    """

    path: Path
    options: Mapping[str, Any]
    trusts_project: bool = False

    def prepare(self) -> None:
        """Prepare the run, and remember what it may do."""
        from aeon_core.config.journal_trust import remember_run
        from aeon_core.config.schema import recorded_config

        super().prepare()
        started = started_of(self.path)
        # The decision about unknown calls is not kept.
        kept = {"on_unknown": recorded_config(started).on_unknown}
        remember_run(started, self.config.model_copy(update=kept))

    def journal_in(self, _runs_dir: Path) -> Path:
        return self.path

    def source(self, journal: Path) -> LiveSource:
        """Return a source that starts with the journal's records, without a superseded ending."""
        return LiveSource(journal, first=ReadAheadSource(journal, read=retained_records))

    def build(self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None) -> Kernel:
        """Return the kernel that continues the run; its journal is locked from here on."""
        from aeon_core.approval_inbox import forget_left
        from aeon_core.runs.resume import Resumption

        with contextlib.suppress(OSError):
            forget_left(journal)
        with kernel_parts(self, on_line, stream, approver, self.options.get("approve")) as parts:
            parts |= {"checked": True, "trusts_project": self.trusts_project}
            return Resumption(journal, **parts, options=self.options)


def retained_records(path: Path, damage: list[str]) -> Records:
    """Yield the records of a journal up to where a resume continues, long texts in full."""
    ends_at = _last_state(path).get("resumes_at")
    for record in read_journal(path, damage):
        if ends_at is not None and record["seq"] >= ends_at:
            return
        yield record


def _last_state(path: Path) -> dict[str, Any]:
    """Return the last record that holds the run's state, texts by reference. Raises UsageError."""
    from aeon_core.journal.reader import tail
    from aeon_core.journal.summary import last_state

    return last_state(tail(path))


class EndedRun(Struct, frozen=True):
    """How a run has ended for good."""

    status: str
    exit_code: int

    def __str__(self) -> str:
        return f"the run ended as {words(self.status)}; there is nothing left to do"


def ended_for_good(path: Path) -> EndedRun | None:
    """Return how a run ended if there is nothing to continue, else None. Raises UsageError."""
    from aeon_core.entities import EXIT_CODES
    from aeon_core.journal.values import dict_of, int_of

    last = _last_state(path)
    result = last.get("result")
    if last.get("type") != "run_finished" or last.get("resumes_at") is not None or not isinstance(result, dict):
        return None
    status = str(result.get("status"))
    error = dict_of(result.get("error")) or {}
    return EndedRun(status, int_of(error.get("exit_code"), EXIT_CODES.get(status, 1)))


def used_up_ttl(path: Path) -> int | None:
    """Return the cycles that a run had used when its TTL ended it; None if it ended otherwise. Raises UsageError."""
    from aeon_core.journal.values import dict_of, int_of

    result = dict_of(_last_state(path).get("result")) or {}
    if result.get("status") != "ttl_expired":
        return None
    ttl = dict_of(result.get("ttl")) or {}
    return max(int_of(ttl.get("limit"), 0), int_of(ttl.get("spent"), 0))


def resume_job(path: Path, today: LoadedConfig, overrides: Mapping[str, Any], *, in_app: bool) -> ResumeJob:
    """Return the job that continues a run with its own options and the `overrides`.

    In the app, passes and whatever a rule, the budget or a crash leaves open need approval, unless a
    configuration says otherwise; elsewhere only what today's options name, since nobody might be there to answer. What
    the run stopped over is asked about again, unless `overrides`, which come from `check_overrides`, leave it out.
    Today's rules that ask or deny are added to the run's.
    Raises UsageError if the journal names options that nobody knows.
    """
    from aeon_core.config.journal_trust import foreign_rules
    from aeon_core.journal.reader import read_records
    from aeon_core.runs.fork import forked_config
    from aeon_core.runs.resume import OPTIONS, current_rules

    started, recorded = started_of(path), forked_config(path)
    options = {name: value for name, value in overrides.items() if name in OPTIONS}
    options["approve"] = approval_points(today, in_app=in_app)
    if "approve" not in overrides:
        options["approve"] = resumed_approval_points(today, path, in_app=in_app)
    if in_app:
        options.setdefault("on_unknown", today.config.on_unknown if "on_unknown" in today.sources else "ask")
    options |= (rules := current_rules(recorded, rules_for(recorded, today)))
    task = str(started["task"])
    allowed = foreign_rules(read_records(path), today.config.root)
    config = merge_overrides(recorded, started, today, {**overrides, **rules}, allowed)
    paced = in_app and is_paced(task, recorded, config)
    return ResumeJob(task, config, path, options, today.mode == "apply", paced=paced)


def check_overrides(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the command line that override those of the run; `given` may also have a `plan`.

    Others must be what the run started with. Raises UsageError for one that is not.
    """
    from aeon_core.runs.resume import OPTIONS

    overrides = {name: value for name, value in given.items() if name in {*_WHO_AND_WHERE, *OPTIONS} - {"policy"}}
    for name in given.keys() - overrides.keys():
        if not _started_with(path, name, given[name]):
            option = "allow" if name == "policy" else name.replace("_", "-")
            raise UsageError(f"--{option} cannot change when a run is resumed; fork the run instead")
    return overrides


def _started_with(path: Path, name: str, value: Any) -> bool:
    from aeon_core.convergence import ConvergenceCriteria, load_criteria
    from aeon_core.plan.files import load_plan_file, load_requirements
    from aeon_core.runs.fork import forked_config
    from aeon_core.runs.replay import given_plan_of, recorded_criteria

    started, recorded = started_of(path), forked_config(path)
    if name == "criteria":
        return load_criteria(value) == (recorded_criteria(started) or ConvergenceCriteria())
    if name == "requirements":
        return load_requirements(value) == started.get("requirements")
    if name == "plan":
        given = given_plan_of([started])
        return given is not None and load_plan_file(expanded(value, "--plan")).model_dump() == given.model_dump()
    if name == "policy":
        return set(value.allow) <= set(recorded.policy.allow)
    return bool(getattr(recorded, name) == value)
