"""`aeon-tui workflow`, and what `resume`, `fork` and `watch` do with workflows of system2's agents."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from aeon_core.errors import JournalError, UsageError
from aeon_core.paths import expanded, writable
from aeon_core.process import can_answer, standard_input
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, has_screen
from aeon_tui.reports.workflow_report import items_of
from aeon_tui.sessions.workflow_session import WorkflowJob
from aeon_tui.sources.run_index import transcripts_folder
from aeon_tui.sources.workflow import WorkflowState
from system2.__main__ import parse_arguments
from system2.command import check_options, project_root
from system2.constants import GATES

NO_TASK = "no task given; put it in quotes after `workflow`, or use '-' to read it from standard input"
NO_ONE = "there is no terminal to decide the gates on; run this in one, or add --wait SECONDS and use `aeon-tui decide`"
NO_SCREEN = "the workflow app needs a terminal; without one, add --headless --auto-approve"


def execute(args: Namespace) -> int:
    """Run a workflow, in the app or headless, and return system2's exit code.

    Raises before anything is written: UsageError for bad arguments, ModelUnavailableError (exit 3) without a model,
    AeonError if the user leaves the question whether to trust the project without an answer.
    """
    if args.headless:
        from system2.command import execute

        return execute(Namespace(**vars(parse_arguments([])) | vars(args) | {"wait": args.wait or "0"}))
    if args.task is None and args.resume is None and not has_screen():
        raise UsageError(NO_TASK)
    check_options(args)
    task = _task(args.task)
    if not has_screen():
        raise UsageError(NO_SCREEN)
    request = _request(args, task)
    # --config and --project-root are system2's here: the app uses the user's own settings.
    own = Namespace(**{**vars(args), "config": None, "model": None, "base_url": None, "project_root": None})
    if (trust := request.missing_trust()) is not None:
        options.prompt_for_trust(trust, own, options.load_light(own))
    request.job(None, options.runs_dir(own)).prepare()
    return _shown(own, request)


def resume(args: Namespace, path: Path) -> int:
    """Continue a workflow, in the app or headless, in its project and with its model unless others are named."""
    from aeon_tui.sessions.workflow_session import resume_workflow

    headless = args.headless or args.json or not has_screen()
    names = ("model", "base_url", "project_root", "wait", "trust_project", "debug")
    given_options = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    known = resume_workflow(
        path, args.model, args.base_url, project_root(args.project_root) if args.project_root else None
    )
    if headless and not float(args.wait or 0) and not can_answer():
        raise UsageError(NO_ONE)
    given_options |= {"model": known.model, "project_root": str(known.project_root), "runs_dir": str(path.parent)}
    return execute(Namespace(**vars(parse_arguments([])) | given_options | {"resume": str(path), "headless": headless}))


def fork(args: Namespace, path: Path) -> int:
    """Fork a workflow at a gate, and continue the fork; it is removed if it cannot start.

    Raises UsageError.
    """
    from aeon_tui.sessions.workflow_session import fork_workflow
    from system2.workflow_journal import discard

    if args.gate is None:
        raise UsageError("a workflow is forked at a gate; choose it with --gate N")
    if args.gate not in map(str, range(len(GATES))):
        raise UsageError(f"--gate must be a whole number from 0 to {len(GATES) - 1}; got {args.gate[:40]!r}")
    if args.pass_number is not None:
        raise UsageError(f"{path.stem!r} is a workflow, which has no passes; drop --pass")
    if args.feedback is not None and not args.feedback.strip():
        raise UsageError("--feedback is empty; say what should change, or leave it out to be asked at the gate")
    child = fork_workflow(path, int(args.gate), writable(options.runs_dir(args)), args.feedback)
    size = child.stat().st_size
    try:
        return resume(args, child)
    finally:
        if child.is_file() and child.stat().st_size == size:
            discard(child)


def _shown(own: Namespace, request: WorkflowJob) -> int:
    from aeon_tui.app import AeonApp, run_app

    def prepare(app: AeonApp) -> None:
        if job is None:
            from aeon_tui.screens.workflow.dialogs import WorkflowTaskScreen

            app.first_screen = WorkflowTaskScreen(request)
        if resume_arguments is not None:
            resume_arguments(app)
        opened.append(app)

    opened: list[AeonApp] = []
    resume_arguments = options.without_trust(own)
    job = request if request.task or request.resume is not None else None
    code = run_app(options.runs_dir(own), job, lambda: options.load(own), prepare)
    first = next(iter(opened[0].sessions.all), None)
    return code or (first.exit_code if first is not None else 0)


def _task(given: str | None) -> str:
    """Return the task, empty if the app will ask for it. Raises UsageError for an empty one."""
    if given is None:
        return ""
    task = standard_input() if given == "-" else given
    if not task.strip():
        raise UsageError("the task is empty; describe it")
    return task.strip()


def _request(args: Namespace, task: str) -> WorkflowJob:
    root = project_root(args.project_root)
    config = expanded(args.config, "--config").absolute() if args.config is not None else None
    given = getattr(args, "runs_dir", None)
    runs_dir = expanded(given, "--runs-dir").absolute() if given is not None else None
    if args.resume is None:
        known = WorkflowJob(root, task, None, args.model, args.base_url)
    else:
        from aeon_core.journal.recovery import make_sure_nobody_writes
        from aeon_tui.sessions.workflow_session import resume_workflow
        from system2.workflow_journal import find_workflow, journal_of

        folder = options.runs_dir(args)
        path = journal_of(find_workflow(args.resume, root, folder, transcripts_folder(root)), folder)
        known = resume_workflow(path, args.model, args.base_url, None if args.project_root is None else root)
        make_sure_nobody_writes(path)
    return replace(
        known,
        config=config,
        unsafe_bash=args.unsafe_bash,
        auto_approve=args.auto_approve,
        trust="apply" if args.trust_project else "ignore",
        spec=args.spec,
        runs_dir=known.runs_dir or runs_dir,
    )


class WorkflowLines:
    """Folds every record of a workflow that is followed, and prints what each adds."""

    def __init__(self, out: OutputStream, err: OutputStream) -> None:
        self._state = WorkflowState()
        self._out, self._err = out, err

    def __call__(self, record: dict[str, Any]) -> None:
        known = len(self._state.damage)
        for entry in self.fold(record):
            if entry["type"] == "gate_asked":
                self._out.line(f"? gate {entry['gate']}: {entry['artifact']} is waiting for a decision")
            for item in items_of(entry):
                self._out.line(f"{entry.get('agent') or '':<22} {item.icon} {item.head}")
        for problem in self._state.damage[known:]:
            self._err.warning(f"the journal is damaged: {problem}")

    def fold(self, record: dict[str, Any]) -> list[dict[str, Any]]:
        return self._state.apply(record)

    @property
    def waits_since(self) -> int | None:
        """The seq of the record since which it waits for a person; None if it does not."""
        view = self._state.view
        return self._state.last_seq if view.question is not None or view.open_gate is not None else None

    def result(self, path: Path) -> int:
        """Print how the workflow ended, and return its exit code. Raises JournalError if it cannot be read."""
        if (end := self._state.view.end) is None:
            raise JournalError(f"the workflow in {str(path)!r} has ended, but how it ended cannot be read")
        self._out.line(end["status"])
        return int(end["exit_code"])
