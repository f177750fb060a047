"""What the agents of one workflow share: the port to the outside, the project's tools, the settings."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from aeon_core.effects.model_calls import ModelInfo
from aeon_core.effects.port import Effects
from aeon_core.journal.records import NoticeRecord
from aeon_core.json_safe import json_safe
from aeon_core.paths import PROJECT_FOLDER, real_path
from aeon_core.policy import Policy
from aeon_core.tools.files import file_tools
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.settings import ShellSettings
from system2.agents import AgentLibrary
from system2.constants import DEFAULT_TRANSCRIPT_DIR
from system2.cost import CostRecord
from system2.policies import Question, choice_of, ended_by
from system2.settings import WorkflowSettings
from system2.snapshots import SnapshotStore

logger: logging.Logger = logging.getLogger("aeon")
OUTPUTS = f"{DEFAULT_TRANSCRIPT_DIR}/outputs"
"""The folder for tool results that are too long for a conversation; agents may read it."""


RUNS = Path(PROJECT_FOLDER, "runs")
_RECORD = re.compile(r"\.(?:jsonl|files|inbox|torn-\d+)$")


@dataclass(frozen=True)
class RanCommand:
    """A command that runs tests."""

    agent: str
    command: str
    exit_code: int
    exit_code_of: str = ""
    """The last commands of the line, if the code says nothing about those before them, as `tail` in a pipe."""


@dataclass
class WorkflowContext:
    """Created once per workflow; a replay leaves the optional fields at their defaults."""

    project_root: Path
    settings: WorkflowSettings
    """Those at the workflow's start."""
    current: WorkflowSettings
    """Those that apply now: they decide what calls may do."""
    effects: Effects
    registry: ToolRegistry
    spent: list[CostRecord]
    """What each call cost, including recorded ones."""
    unsafe_bash: bool = False
    limits: Mapping[str, Collection[str]] = field(default_factory=dict)
    """The files that an agent may change without a person's approval; an agent without an entry may change any."""
    test_runs: list[RanCommand] = field(default_factory=list)
    policy: Policy = field(default_factory=Policy)
    """The policy rules from the user's and the project's configuration, and what a person has allowed since."""
    library: AgentLibrary | None = None
    store: SnapshotStore | None = None
    on_complete: Callable[[Any], object] | None = None
    """Called with the AgentResult of each round."""
    warn: Callable[[str], object] = logger.warning
    automatic: bool = False
    """Whether gates are approved without a person."""
    resumed: bool = False

    def model_of(self, agent: str) -> ModelInfo:
        models = self.effects.models
        return next((known for known in models.known if agent in known.agents), models.model)

    def choose(self, question: Question, round_number: int = 0) -> str:
        """Return what a person chooses. Raises RunAborted if they end the workflow instead."""
        subject = json_safe({**asdict(question), "questions": [question.text]})
        decision = self.effects.decide("question", subject, pass_number=round_number, step_id=question.agent)
        if decision.decision == "abort":
            raise ended_by(decision, f"a question ({question.kind.replace('_', ' ')})")
        return choice_of(question, decision.model_dump())

    def note(self, kind: str, agent: str, message: str, round_number: int = 0, paths: list[str] | None = None) -> None:
        """Show a person a notice that stops nothing."""
        data = {"paths": paths} if paths else None
        self.effects.emit(
            NoticeRecord(kind=kind, pass_number=round_number, step_id=agent, message=message, data=data)  # type: ignore[arg-type]
        )


def project_tools(project_root: Path, settings: WorkflowSettings, hidden: Callable[[str], bool]) -> ToolRegistry:
    """Return the project's six tools (REQ-020), which do not search paths that are `hidden`. Raises SandboxError."""
    registry = ToolRegistry()
    limits = ShellSettings(
        safety_mode=settings.safety_mode,
        blocklist=settings.bash_blocklist,
        network=settings.bash_network,
        output_dir=project_root / OUTPUTS,
    )
    bash = BashTool(project_root, limits)
    for tool in [*file_tools(project_root, hidden), bash]:
        registry.register(tool)
    registry.closes_with(bash.close)
    return registry


def own_files(
    root: Path, settings: WorkflowSettings, runs_dir: Path = RUNS, log_file: Path | None = None
) -> Callable[[str], bool]:
    """Return a test for paths of the workflow's own records: journals, transcripts, long outputs and its logs."""
    log = settings.log_destination if settings.log_destination != "stderr" else None
    places: list[Path | str | None] = [DEFAULT_TRANSCRIPT_DIR, RUNS, log, log_file]
    own = [os.path.relpath(root / place, root) for place in places if place is not None]
    folders = (root / settings.transcript_dir, root / runs_dir)
    named = {PurePosixPath(os.path.relpath(place, root)) for each in folders for place in (each, real_path(each))}

    def is_own(path: str) -> bool:
        # A folder that a person names may hold the project's files too.
        is_record = _RECORD.search(path) is not None and PurePosixPath(path).parent in named
        return is_record or any(path == place or path.startswith(f"{place}/") for place in own)

    return is_own
