"""A workflow of system2 in this process: on a thread of its own, which never waits for the screen but where it asks."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config.journal_trust import remembers
from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.reader import head, tail
from aeon_core.journal.summary import last_state
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import retained_records
from aeon_tui.sessions.session import Session
from aeon_tui.sessions.stream import Stream
from aeon_tui.sources.base import ReadAheadSource
from aeon_tui.sources.live import LiveSource
from aeon_tui.sources.run_index import root_of_project
from aeon_tui.sources.workflow import WorkflowState, follow_workflow

if TYPE_CHECKING:
    from aeon_core.approvals.pending import ApprovalRequest
    from aeon_core.config.trust import ProjectTrust, TrustMode
    from system2.documents import SpecChoice
    from system2.orchestrator import Orchestrator
    from system2.workflow_result import WorkflowResult


logger = logging.getLogger("aeon")
WARNING = "WARNING: "


@dataclass(frozen=True)
class WorkflowRequest:
    """What to run: a new task, or a journal to continue."""

    project_root: Path
    task: str = ""
    resume: Path | None = None
    model: str | None = None
    base_url: str | None = None
    config: Path | None = None
    """The settings of system2; None for those of the project."""
    unsafe_bash: bool = False
    auto_approve: bool = False
    trust: TrustMode = "ignore"
    """What becomes of what the project asks for without consent."""
    spec: SpecChoice | None = None
    """What becomes of an earlier workflow's documents; None to ask."""
    runs_dir: Path | None = None
    """Where the journal is kept; None for where the project's runs are."""

    def missing_trust(self) -> ProjectTrust | None:
        """Return what the project asks for and has no consent to, or None if nothing is left to ask. Raises UsageError.

        What this request overrides is not asked for.
        """
        from aeon_core.config.trust import refusal
        from system2.trust import assess_workflow, settings_given

        if self.trust == "apply":
            return None
        missing = refusal(assess_workflow(self.project_root), settings_given(self.config, self.model))
        return missing.trust if missing is not None else None

    def check(self) -> None:
        """Raise before anything is written where it could not begin: UsageError, ModelUnavailableError (exit 3)."""
        from system2.connect import connect_model
        from system2.trust import applied_settings

        settings, _ = applied_settings(self.project_root, self.config, self.model, self.trust, lambda _: None)
        model = connect_model(self.model, settings, self.base_url)
        try:
            model.check()
        finally:
            model.close()


class WorkflowRunner(Session["WorkflowResult"]):
    """Does one workflow. `source` and `broker` are what the screen needs."""

    what = "workflow"

    def __init__(self, request: WorkflowRequest) -> None:
        super().__init__()
        self.request = request
        before = ReadAheadSource[WorkflowState](request.resume, read=retained_records) if request.resume else None
        self.source = LiveSource(request.resume, first=before, follow=partial(follow_workflow, fast=True))
        self.broker = ApprovalBroker(request.resume)
        self.stream = Stream()
        self.warnings: list[str] = []
        """What was warned of, in order."""
        self._orchestrator: Orchestrator | None = None

    @property
    def task(self) -> str:
        """The task of the workflow."""
        return self.request.task

    @property
    def waiting(self) -> ApprovalRequest | None:
        """The question that the workflow waits with."""
        return self.broker.waiting

    @property
    def journal(self) -> Path | None:
        """The journal; None if there is none yet, or it cannot be written."""
        return self.source.journal

    def listen(self, listener: Callable[[], object]) -> None:
        """Have it called when a question comes or goes, too."""
        super().listen(listener)
        self.broker.listener = listener

    def abort(self) -> None:
        """Ask the workflow to end; returns at once."""
        self.aborting = True
        if (orchestrator := self._orchestrator) is not None:
            orchestrator.abort()
        self.broker.close()

    def outcome(self) -> str:
        """Return one line about how the workflow ended, and how to continue it."""
        from aeon_widgets.text import one_line

        if self.error is not None:
            return f"aeon-tui: {one_line(self.error.message, 2_000)}"
        if self.result is None:
            return (
                f"aeon-tui: the workflow {self.run_id} was stopped during a tool call; "
                f"its outcome is unknown{self._on()}"
            )
        status = self.result.status.replace("_", " ")
        failed = self.result.error is not None and self.result.status != "aborted"
        why = f": {one_line(self.result.error or '', 500)}" if failed else ""
        prefix = "aeon-tui: " if failed else ""
        return f"{prefix}workflow {self.run_id}: {status}{why}{self._on() if self.result.exit_code else self._see()}"

    def _see(self) -> str:
        path = self.journal
        return f" · see `aeon-tui show {self._name_of(path)}`" if path is not None else ""

    def _name_of(self, path: Path) -> str:
        """Return what names the workflow on the command line: its id, or the path of a journal in another place."""
        return shlex.quote(path.stem if self.request.runs_dir == path.parent else str(path))

    def _on(self) -> str:
        path = self.journal
        if path is None:
            return ""
        return f" · continue with `aeon-tui resume {self._name_of(path)}`"

    def run(self) -> None:
        """Make the workflow and run it, or resume it."""
        self._orchestrator = orchestrator = self._make_orchestrator()
        if self.aborting:
            orchestrator.abort()
        self.result = self._run(orchestrator)

    def close(self) -> None:
        """Let nobody wait for an answer, and let the source end."""
        self.broker.close()
        self.source.finish()

    def _run(self, orchestrator: Orchestrator) -> WorkflowResult:
        if (path := self.request.resume) is not None:
            return orchestrator.resume(path)
        return orchestrator.run(self.request.task, spec=self.request.spec)

    def _make_orchestrator(self) -> Orchestrator:
        from system2.logs import Log
        from system2.orchestrator import Orchestrator
        from system2.policies import AutoApproveGates

        asked = self.request
        return Orchestrator(
            asked.project_root,
            asked.config,
            AutoApproveGates() if asked.auto_approve else None,
            approver=self.broker,
            unsafe_bash=asked.unsafe_bash,
            model=asked.model,
            base_url=asked.base_url,
            trust=asked.trust,
            log=Log(self._on_log),
            on_line=self._on_line,
            on_delta=self.stream.add,
            on_call=self.stream.add_call,
            runs_dir=asked.runs_dir,
        )

    def _on_log(self, line: str) -> None:
        """Keep warnings: everything else is in the journal."""
        if line.startswith(WARNING):
            self.warnings.append(line.removeprefix(WARNING))

    def _on_line(self, line: bytes) -> None:
        if self.source.journal is None and self._orchestrator is not None:
            # The journal has its name before its first line is written.
            self.source.journal = self.broker.journal = self._orchestrator.journal
            self._remember(line)
        if b'"type":"llm"' in line[:200]:
            self.stream.clear()
        self.source.put(line)

    def _remember(self, line: bytes) -> None:
        """Remember that this user started the workflow, so that it can be continued without a question."""
        from aeon_core.config.journal_trust import remember
        from system2.trust import started_by

        first = json.loads(line)
        try:
            if first.get("type") == "run_started":
                remember(self.request.project_root, started_by(first))
        except AeonError as error:
            logger.warning("cannot record that this workflow is yours: %s", error.message)


def resume_request(
    path: Path, model: str | None = None, base_url: str | None = None, project_root: Path | None = None
) -> WorkflowRequest:
    """Return what resumes a workflow, in its project and with its model unless another is named.

    From here on a person decides, whatever the options were before. Raises UsageError if the file is not a journal of a
    workflow, where its project is not there any more, or where the workflow is complete.
    """
    from system2.trust import started_by

    first = head(path)
    workflow = first.get("workflow") if first is not None else None
    if first is None or not isinstance(workflow, dict):
        earlier = ": a transcript can only be shown; start a new one with --spec continue" if first is not None else ""
        raise UsageError(f"{str(path)!r} is not the journal of a workflow{earlier}")
    last = last_state(tail(path))
    if last.get("type") == "run_finished" and last.get("resumes_at") is None:
        raise UsageError(f"the workflow {path.stem!r} is complete; start a new one with `aeon-tui workflow`")
    known = str(workflow.get("project_root") or "")
    root = project_root or Path(known)
    if not root.is_absolute() or not root.is_dir():
        raise UsageError(f"the project of the workflow, {str(root)!r}, is no longer a folder; --project-root names one")
    if not remembers(root, started_by(first)):
        _check(path, root, first, model, project_root)
    named = model or str(first["model"])
    return WorkflowRequest(root, str(first.get("task", "")), path, named, base_url, runs_dir=path.parent)


def fork_workflow(path: Path, gate: int, runs_dir: Path, feedback: str | None = None) -> Path:
    """Write a workflow that starts at a gate of another, and return its journal, to be resumed. Raises UsageError.

    What this user started is theirs when forked.
    """
    from aeon_core.config.journal_trust import remember
    from system2.fork import discard, fork
    from system2.trust import started_by

    child = fork(path, gate, runs_dir, feedback)
    parent, first = head(path) or {}, head(child) or {}
    root = Path(str(first["workflow"]["project_root"]))
    try:
        if remembers(root, started_by(parent)):
            remember(root, started_by(first))
    except BaseException:
        discard(child)
        raise
    return child


def _check(path: Path, root: Path, first: Mapping[str, Any], model: str | None, project_root: Path | None) -> None:
    """Raise UsageError if only a journal, which anybody may have written, names the folder or the model."""
    from system2.trust import check_recorded_model

    known = root == root_of_project() or path.absolute().is_relative_to(root)
    if project_root is None and not known:
        raise UsageError(
            f"the workflow belongs to another project, {str(root)!r}; to continue it there, add --project-root"
        )
    if model is None:
        check_recorded_model(first, root)
