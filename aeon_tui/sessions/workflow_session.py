"""A workflow of system2 as a job of this process, new or continued."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from aeon_core.config.journal_trust import remembers
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.reader import tail
from aeon_core.paths import find_project_root, git_root, real_path, writable
from aeon_tui.sessions.run_jobs import Kernel, OnLine, RunnerJob, StartRequest, new_journal, retained_records
from aeon_tui.sources.base import ReadAheadSource
from aeon_tui.sources.live import LiveSource
from aeon_tui.sources.workflow import WorkflowState, follow_workflow

if TYPE_CHECKING:
    from aeon_core.approvals import Approver
    from aeon_core.config.trust import ProjectTrust, TrustMode
    from aeon_tui.sessions.stream import Stream
    from system2.documents import SpecChoice
    from system2.workflow import WorkflowResult


logger = logging.getLogger("aeon")
WARNING = "WARNING: "


@dataclass
class WorkflowJob(RunnerJob, StartRequest):
    """A workflow: a new task, or a journal to continue."""

    what: ClassVar[str] = "workflow"
    project_root: Path
    task: str = ""
    resume: Path | None = None
    model: str | None = None
    base_url: str | None = None
    config: Path | None = None
    """The settings file of system2; None for the project's."""
    unsafe_bash: bool = False
    auto_approve: bool = False
    trust: TrustMode = "ignore"
    """How to treat project settings without consent."""
    spec: SpecChoice | None = None
    """How to treat an earlier workflow's documents; None to ask."""
    runs_dir: Path | None = None
    """The folder of the journal; None for that of the project's runs."""
    warnings: list[str] = field(default_factory=list, init=False)

    def job(self, _today: object, runs_dir: Path) -> WorkflowJob:
        """Return this job: its settings are its project's. Raises UsageError if a new one cannot keep a journal."""
        if self.resume is None:
            writable(self.journal_in(runs_dir).parent)
        return self

    def missing_trust(self, _today: object = None) -> ProjectTrust | None:
        """Return what the project asks for without consent, except for what this job overrides. Raises UsageError."""
        from aeon_core.config.trust import refusal
        from system2.trust import assess_workflow, settings_given

        if self.trust == "apply":
            return None
        missing = refusal(assess_workflow(self.project_root), settings_given(self.config, self.model))
        return missing.trust if missing is not None else None

    def prepare(self) -> None:
        from system2.connect import connect_model
        from system2.trust import applied_settings

        settings, _ = applied_settings(self.project_root, self.config, self.model, self.trust, lambda _: None)
        connect_model(self.model, settings, self.base_url).close()

    def journal_in(self, _runs_dir: Path) -> Path:
        """Return the workflow's own journal, or a new one among the project's."""
        from aeon_core.paths import default_runs_directory

        return self.resume or new_journal((self.runs_dir or default_runs_directory(self.project_root)).absolute())

    def source(self, journal: Path) -> LiveSource[WorkflowState]:
        """Return a source that starts with the journal's records, without a superseded ending."""
        before = ReadAheadSource[WorkflowState](journal, read=retained_records) if self.resume is not None else None
        return LiveSource(journal, first=before, follow=partial(follow_workflow, fast=True))

    def build(
        self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None
    ) -> Kernel[WorkflowResult]:
        from system2.logs import Log
        from system2.orchestrator import Orchestrator
        from system2.policies import AutoApproveGatePolicy

        def keep_warning(line: str) -> None:
            # Everything else is in the journal.
            if line.startswith(WARNING):
                self.warnings.append(line.removeprefix(WARNING))

        def on_each_line(line: bytes) -> None:
            if b'"run_started"' in line[:200]:
                self.keeps_journal = orchestrator.journal is not None
                self._remember(line)
            on_line(line)

        orchestrator = Orchestrator(
            self.project_root,
            self.config,
            AutoApproveGatePolicy() if self.auto_approve else None,
            approver=approver,
            unsafe_bash=self.unsafe_bash,
            model=self.model,
            base_url=self.base_url,
            trust=self.trust,
            log=Log(keep_warning),
            on_line=on_each_line,
            on_delta=stream.add if stream is not None else None,
            on_call=stream.add_call if stream is not None else None,
            runs_dir=journal.parent,
        )
        if self.resume is not None:
            return _Work(partial(orchestrator.resume, self.resume), orchestrator.abort)
        run = partial(orchestrator.run, self.task, spec=self.spec, run_id=journal.stem)
        return _Work(run, orchestrator.abort)

    def continues_after(self, result: WorkflowResult) -> bool:
        return result.exit_code != 0

    def _remember(self, line: bytes) -> None:
        """Remember that this user started the workflow, so that it can be continued without a question."""
        from aeon_core.config.journal_trust import remember
        from system2.trust import started_by

        try:
            remember(self.project_root, started_by(json.loads(line)))
        except AeonError as error:
            logger.warning("cannot record that this workflow is yours: %s", error.message)


@dataclass
class _Work:
    run: Callable[[], WorkflowResult]
    abort: Callable[[], None]

    def close(self) -> None:
        """Do nothing: the workflow closes what it opens."""


def resume_workflow(
    path: Path, model: str | None = None, base_url: str | None = None, project_root: Path | None = None
) -> WorkflowJob:
    """Return the job that resumes a workflow in its project, with its model unless another is named.

    From here on a person decides, whatever the options were before. Raises UsageError if the file is not a journal of a
    workflow, its project no longer exists, or the workflow is complete.
    """
    from system2.trust import check_recorded_model, started_by
    from system2.workflow_journal import first_record, resume_point

    first = first_record(path)
    resume_point(path, tail(path))
    root = project_root or Path(str(first["workflow"].get("project_root") or ""))
    if not root.is_absolute() or not root.is_dir():
        raise UsageError(f"the project of the workflow, {str(root)!r}, is no longer a folder; --project-root names one")
    if not remembers(root, started_by(first)):
        # Only the journal, which anybody may have written, names the folder and the model.
        if project_root is None and root not in (git_root(), find_project_root(real_path(path.parent))):
            other = f"the workflow belongs to another project, {str(root)!r}"
            raise UsageError(f"{other}; to continue it there, add --project-root")
        if model is None:
            check_recorded_model(first, root)
    named = model or str(first["model"])
    return WorkflowJob(root, str(first.get("task", "")), path, named, base_url, runs_dir=path.parent)


def fork_workflow(path: Path, gate: int, runs_dir: Path, feedback: str | None = None) -> Path:
    """Write a workflow that starts at a gate of another, and return its journal to resume. Raises UsageError.

    A fork of a workflow that this user started counts as started by them.
    """
    from aeon_core.config.journal_trust import remember
    from system2.trust import started_by
    from system2.workflow_journal import discard, first_record, fork

    child = fork(path, gate, runs_dir, feedback)
    first = first_record(child)
    root = Path(str(first["workflow"]["project_root"]))
    try:
        if remembers(root, started_by(first_record(path))):
            remember(root, started_by(first))
    except BaseException:
        discard(child)
        raise
    return child
