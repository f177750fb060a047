"""What can be run in the app: anything that makes a kernel, such as a new run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_tui.sessions.run_options import approval_points
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
    return NewRunJob(DEMO_TASK, config, None, True, GUIDE, build_tools(config))


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


class RunJob(Protocol):
    """What a Runner does: a new run, one that is gone on with, a fork of one."""

    @property
    def task(self) -> str:
        """What is to be done."""

    @property
    def config(self) -> RunConfig:
        """How."""

    @property
    def guide(self) -> str:
        """A notice on the screen; mostly empty."""

    def journal_in(self, runs_dir: Path) -> Path:
        """Return the journal that it writes, a new one in this directory or the one that is there."""

    def source(self, journal: Path) -> LiveSource:
        """Return where the screen takes its records from."""

    def build(self, journal: Path, on_line: OnLine, on_delta: OnDelta | None, approver: Approver | None) -> Kernel:
        """Make what is run, on the thread that will run it. Raises AeonError."""


class ModelAndTools(Protocol):
    """What a job has its model and its tools from: a configuration, or tools that are loaded."""

    config: RunConfig
    tools: ToolRegistry | None
    paced: bool


@dataclass
class NewRunJob:
    """A new run: a task, how, a plan where it is given, and whether replies take a moment to watch.

    `tools` are made from the configuration where not given, and `memory` is empty.
    """

    task: str
    config: RunConfig
    plan: Plan | None = None
    paced: bool = False
    guide: str = ""
    tools: ToolRegistry | None = None
    memory: Memory | None = None

    def prepare(self) -> None:
        """Load the tools, and make sure that the model can be used. Raises UsageError and ModelUnavailableError."""
        from aeon_core.runs.factory import build_tools
        from aeon_tui.sessions.run_options import usable_model

        usable_model(self.config).close()
        self.tools = self.tools if self.tools is not None else build_tools(self.config)

    def journal_in(self, runs_dir: Path) -> Path:
        """Return a journal of a new name."""
        return new_journal(runs_dir)

    def source(self, journal: Path) -> LiveSource:
        """Return a source that begins with the run."""
        return LiveSource(journal)

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
    job: ModelAndTools, on_line: OnLine, approver: Approver | None, approve: Sequence[Approval] | None = None
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
    """Return what commands are not kept from on this machine, in one line; empty where a run has no shell or all holds.

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
