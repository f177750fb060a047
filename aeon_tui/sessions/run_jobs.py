"""What can be run in the app: a new run, and one that is resumed."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from aeon_core.errors import UsageError
from aeon_core.journal.view.formatting import words
from aeon_tui.sessions.run_options import (
    approval_points,
    merge_overrides,
    resumed_approval_points,
    started_of,
    usable_model,
)
from aeon_tui.sources.base import ReadAheadSource, Records, read_journal
from aeon_tui.sources.live import LiveSource

if TYPE_CHECKING:
    from aeon_core.approvals.pending import Approver
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import Approval, RunConfig
    from aeon_core.entities import RunResult
    from aeon_core.memory import Memory
    from aeon_core.plan.models import Plan
    from aeon_core.tools.registry import ToolRegistry


DEMO_MODEL = "simulated:missing-tool"
DEMO_TASK = "design a REST API for invoices"


def demo_job(today: LoadedConfig) -> NewRunJob:
    """Return what `aeon-tui demo` starts in the app. Raises UsageError for tools that cannot be loaded."""
    from aeon_core.config.schema import RunConfig
    from aeon_core.runs.factory import build_tools

    # A demonstration runs nothing of the project, trusted or not.
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
    """Return whether replies take a moment, so that a person can watch: in the guided run and what continues it.

    `started` is how that run began; `config` how it continues, where that is not the same.
    """
    models = (config or started).models
    return task == DEMO_TASK and started.model == DEMO_MODEL and all(each.startswith("simulated:") for each in models)


class Kernel(Protocol):
    """What is run, once: it performs, journals, and says how it ended."""

    def run(self) -> RunResult: ...
    def abort(self) -> None: ...
    def close(self) -> None: ...


OnLine = Callable[[bytes], None]
OnDelta = Callable[[str, str | None, str], None]
"""Gets the purpose of a call, its step's id and the next piece of its reply."""


@dataclass
class RunJob(ABC):
    """What a Runner does: a new run, one that is resumed, a fork of one."""

    task: str
    config: RunConfig
    _: KW_ONLY
    tools: ToolRegistry | None = None
    """Those of the configuration where none are given."""
    guide: str = ""
    """A notice on the screen; mostly empty."""
    paced: bool = False
    """Whether replies take a moment to watch."""

    def prepare(self) -> None:
        """Load the tools, and make sure that the model can be used: what would fail the run is said before it starts.

        Raises UsageError and ModelUnavailableError.
        """
        from aeon_core.runs.factory import build_tools

        tools = self.tools if self.tools is not None else build_tools(self.config)
        try:
            usable_model(self.config).close()
        except BaseException:
            tools.close()
            raise
        self.tools = tools

    def journal_in(self, runs_dir: Path) -> Path:
        """Return the journal that it writes: a new one in this directory."""
        return new_journal(runs_dir)

    def source(self, journal: Path) -> LiveSource:
        """Return where the screen takes its records from: a source that begins with the run."""
        return LiveSource(journal)

    @abstractmethod
    def build(self, journal: Path, on_line: OnLine, on_delta: OnDelta | None, approver: Approver | None) -> Kernel:
        """Make what is run, on the thread that will run it. Raises AeonError."""


@dataclass
class NewRunJob(RunJob):
    """A new run, of a plan where one is given; `memory` is empty if none is."""

    plan: Plan | None = None
    memory: Memory | None = field(default=None, kw_only=True)

    def build(self, journal: Path, on_line: OnLine, on_delta: OnDelta | None, approver: Approver | None) -> Kernel:
        """Return the kernel with the model and the tools that the configuration names."""
        from aeon_core.runs.orchestrator import Orchestrator, PreparedRun

        with kernel_parts(self, on_line, approver) as parts:
            orchestrator = Orchestrator(
                **parts, memory=self.memory, config=self.config, journal=journal, on_delta=on_delta
            )
            return PreparedRun(orchestrator, self.task, self.plan)


@contextlib.contextmanager
def kernel_parts(
    job: RunJob, on_line: OnLine, approver: Approver | None, approve: Sequence[Approval] | None = None
) -> Iterator[dict[str, Any]]:
    """Give what every kernel takes: its model, slowed where that is `paced`, its tools, its approver and its listeners.

    The approver is asked about what `approve` says, by default the configuration. The kernel closes them in the end;
    they are closed here where it cannot be made.
    """
    from aeon_core.approvals.inbox import about
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
            "on_line": fan_out([on_line, remembers_run(config.project_root)]),
        }
        opened.pop_all()


def isolation_warning(config: RunConfig) -> str:
    """Return what commands are not kept from on this machine, in one line; empty if a run has no shell or all holds.

    The first call in a process tries it out, which takes about as long as a command.
    """
    if "shell" not in config.tools:
        return ""
    from aeon_core.paths import find_project_root
    from aeon_core.tools.shell.isolation import probe

    return probe(config.project_root or find_project_root(), config.shell).warning


def new_journal(runs_dir: Path) -> Path:
    """Return the journal of a new run."""
    from aeon_core.journal.writer import new_run_id

    return runs_dir / f"{new_run_id()}.jsonl"


_WHO_AND_WHERE = frozenset({"model", "base_url", "tools", "approve", "wait", "project_root", "runs_dir"})
"""What may be overridden in addition to the kernel's options: it changes nothing that is recorded."""


@dataclass
class ResumeJob(RunJob):
    """A run that continues after the end of its journal.

    `options` are overrides: `approve`, for example, is what the user is asked about from here on.
    """

    path: Path
    options: Mapping[str, Any]

    def prepare(self) -> None:
        """Do the same, and remember what the run may do."""
        from aeon_core.config.journal_trust import remember_run

        super().prepare()
        remember_run(started_of(self.path), self.config)

    def journal_in(self, _runs_dir: Path) -> Path:
        """Return the run's own journal."""
        return self.path

    def source(self, journal: Path) -> LiveSource:
        """Return a source that begins with what the journal holds."""
        return resumed_source(journal)

    def build(self, journal: Path, on_line: OnLine, on_delta: OnDelta | None, approver: Approver | None) -> Kernel:
        """Return what continues the run; its journal is locked from here on."""
        from aeon_core.approvals.inbox import forget_left
        from aeon_core.runs.resume import Resumption

        with contextlib.suppress(OSError):
            forget_left(journal)
        with kernel_parts(self, on_line, approver, self.options.get("approve")) as parts:
            return Resumption(journal, **parts, options=self.options, on_delta=on_delta)


def resumed_source(journal: Path) -> LiveSource:
    """Return a source of the journal of a run, followed by the lines of the kernel that continues it.

    An ending that is taken back is not shown: the records from it on are left out from the first.
    """
    return LiveSource(journal, first=ReadAheadSource(journal, read=retained_records))


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


class Ended(Struct, frozen=True):
    """How a run has ended for good."""

    status: str
    exit_code: int

    def __str__(self) -> str:
        return f"the run ended as {words(self.status)}; there is nothing left to do"


def ended_for_good(path: Path) -> Ended | None:
    """Return how a run has ended if there is nothing to continue, else None. Raises UsageError."""
    from aeon_core.entities import EXIT_CODES
    from aeon_core.journal.values import dict_of, int_of

    last = _last_state(path)
    result = last.get("result")
    if last.get("type") != "run_finished" or last.get("resumes_at") is not None or not isinstance(result, dict):
        return None
    status = str(result.get("status"))
    error = dict_of(result.get("error")) or {}
    return Ended(status, int_of(error.get("exit_code"), EXIT_CODES.get(status, 1)))


def resume_job(path: Path, today: LoadedConfig, said: Mapping[str, Any], *, in_app: bool) -> ResumeJob:
    """Return the job that continues a run: with its own options, overridden by those `said`.

    In the app a person is asked about passes and about what a rule, the budget or a crash leaves open, unless a
    configuration says otherwise; elsewhere about nothing that is not said today: nobody might be there to answer. What
    the run stopped over is asked about again, unless `said` leaves it out. What the command line says has passed
    `check_said`. Raises UsageError if the journal names options that nobody knows.
    """
    from aeon_core.config.journal_trust import recorded_rules
    from aeon_core.journal.reader import read_records
    from aeon_core.runs.fork import forked_config
    from aeon_core.runs.resume import OPTIONS

    started, recorded = started_of(path), forked_config(path)
    options = {name: value for name, value in said.items() if name in OPTIONS}
    inherits = "approve" not in said
    options["approve"] = (
        resumed_approval_points(today, path, in_app=in_app) if inherits else approval_points(today, in_app=in_app)
    )
    if in_app:
        options.setdefault("on_unknown", today.config.on_unknown if "on_unknown" in today.sources else "ask")
    task = str(started["task"])
    config = merge_overrides(recorded, started, today, said, recorded_rules(read_records(path)))
    return ResumeJob(task, config, path, options, paced=in_app and is_paced(task, recorded, config))


def check_said(names: Iterable[str]) -> None:
    """Raise UsageError for a command-line option that a resume cannot override: the run began with it."""
    from aeon_core.runs.resume import OPTIONS

    for name in names:
        if name not in _WHO_AND_WHERE and name not in OPTIONS:
            raise UsageError(f"--{name.replace('_', '-')} cannot change when a run is resumed; fork the run instead")
