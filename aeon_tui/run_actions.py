"""Actions on runs, requested by screens: start, resume, replay, fork, label, export, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.paths import git_root
from aeon_core.units import count
from aeon_tui.navigation import Navigation
from aeon_tui.platform.background_tasks import BackgroundTasks, reason
from aeon_tui.settings import Today
from aeon_widgets.text import fit, one_line, size

if TYPE_CHECKING:
    from textual.screen import Screen

    from aeon_core.config.trust import ProjectTrust
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.messages import ForkWorkflow
    from aeon_tui.screens.dialogs import LabelAnswer
    from aeon_tui.screens.trust import TrustAnswer
    from aeon_tui.sessions.run_jobs import NewRunForm, RunnerJob, StartRequest


P = ParamSpec("P")


def _on_thread(act: Callable[Concatenate[RunActions, P], None]) -> Callable[Concatenate[RunActions, P], None]:
    """Return an action that runs on a thread, and whose failure becomes a notification."""

    @wraps(act)
    def run(self: RunActions, /, *args: P.args, **named: P.kwargs) -> None:
        self._tasks.run(partial(act, self, *args, **named))

    return run


@dataclass
class RunActions:
    """Performs actions on runs. Journals are read on a thread; failures become notifications."""

    app: Navigation
    today: Today
    draft: NewRunForm | None = None
    """The form of a new run that was closed before it started."""
    declined: set[str] = field(default_factory=set)
    """Digests of what the user declined to trust, which is not asked about again."""

    def __post_init__(self) -> None:
        self._tasks = BackgroundTasks(self.app)

    async def new_run(self) -> None:
        """Open the form for a new run, and run it."""
        from aeon_tui.screens.new_run import NewRunScreen

        await self.app.push_screen(NewRunScreen(self.draft))

    def new_workflow(self) -> None:
        """Ask for the task of a workflow, and run it in the project of the working directory, on Bedrock."""
        from aeon_tui.screens.workflow.dialogs import WorkflowTaskScreen
        from aeon_tui.sessions.workflow_session import WorkflowJob

        self.app.push_screen(WorkflowTaskScreen(WorkflowJob(git_root())))

    def start(self, request: StartRequest) -> str | None:
        """Start a requested run, fork or workflow, or return why not. Called from a thread."""
        return self._start_with_consent(
            partial(request.missing_trust, self.today),
            lambda: self._begin(request.job(self.today, self.app.runs_dir), request),
        )

    def _begin(self, job: RunnerJob, request: StartRequest | None = None) -> None:
        """Prepare a job, and start it. Called from a thread."""
        job.prepare()
        self._tasks.in_app(lambda: self._start(job, request))

    def _start_with_consent(
        self, missing: Callable[[], ProjectTrust | None], begin: Callable[[], object]
    ) -> str | None:
        """Start something, or return why not; if consent is missing, ask for it, and start once it is given."""
        try:
            again = partial(self._start_with_consent, missing, begin)
            if not self._lacks_trust(missing(), lambda: self._tasks.run(lambda: self._notify_refusal(again()))):
                begin()
        except (AeonError, OSError) as error:
            return reason(error)
        return None

    @_on_thread
    def demo(self) -> None:
        """Start the guided run on the simulated model."""
        from aeon_tui.sessions.run_jobs import demo_job

        self._begin(demo_job(self.today()))

    @_on_thread
    def trust_folder(self, then: Callable[[], object] = lambda: None) -> None:
        """Ask for the consent that this folder needs, even if the person continued without it before."""
        from system2.trust import assess_workflow

        parts = [self.today().trust, assess_workflow(git_root())]
        missing = [each for each in parts if not each.allowed]
        if missing:
            self._tasks.in_app(lambda: self._ask_one_by_one(missing, then))
        elif any(each.state == "trusted" for each in parts):
            self._tasks.notify("This folder is already trusted; Revoke trust undoes that.")
        else:
            self._tasks.notify("This folder's settings ask for nothing that needs your trust.")

    def _ask_one_by_one(self, parts: Sequence[ProjectTrust], then: Callable[[], object]) -> None:
        """Ask for the consent that runs need, then for that of workflows."""
        if parts:
            self.ask_for_trust(parts[0], partial(self._ask_one_by_one, parts[1:], then))
        else:
            then()

    @_on_thread
    def revoke_trust(self, then: Callable[[], object] = lambda: None) -> None:
        """Revoke every consent to this folder."""
        from aeon_core.config.trust import revoke_trust

        root = self.today().trust.root
        # All of them: `any` would stop at the first trusted one.
        had = True in [revoke_trust(each) for each in {root, git_root()}]
        self._tasks.notify(f"{root} is {'no longer trusted.' if had else 'not trusted; there is nothing to revoke.'}")
        self._tasks.in_app(then)

    def _missing_trust(self) -> ProjectTrust | None:
        """Return the consent that a run in the folder needs now."""
        loaded = self.today()
        return loaded.trust if loaded.ignored else None

    def _lacks_trust(self, trust: ProjectTrust | None, then: Callable[[], object]) -> bool:
        """Ask for a missing consent, unless the user has already answered; return whether it is asked for.

        Called from a thread; `then` is called by the app once there is an answer.
        """
        if trust is None or trust.allowed or trust.digest in self.declined:
            return False
        self._tasks.in_app(lambda: self.ask_for_trust(trust, then))
        return True

    def ask_for_trust(self, trust: ProjectTrust, then: Callable[[], object], *, quits: bool = False) -> None:
        """Show what a folder asks for; continue with either answer. Without one, the app `quits`."""
        from aeon_tui.screens.trust import TrustScreen

        # The key may have been pressed twice.
        if not isinstance(self.app.screen, TrustScreen):
            self.app.clear_notifications()
            answered = partial(self._trust_answered, trust, then, quits=quits)
            self.app.push_screen(TrustScreen(trust, "Quit" if quits else "Back"), answered)

    def _trust_answered(
        self, trust: ProjectTrust, then: Callable[[], object], answer: TrustAnswer | None, *, quits: bool
    ) -> None:
        if answer == "trust":
            self._tasks.run(partial(self._grant_trust, trust, then))
        elif answer == "continue":
            self.declined.add(trust.digest)
            if quits:
                self._tasks.notify_here(without_trust(trust))
            else:
                # The next run removes the notifications of earlier screens.
                self.app.next_notice = without_trust(trust)
            then()
        elif quits:
            self.app.exit()

    def continue_without(self, trust: ProjectTrust) -> None:
        """Record a declined consent, and show at the start what does not apply. Before the app opens."""
        self.declined.add(trust.digest)
        self.app.first_notice = without_trust(trust)

    def _grant_trust(self, trust: ProjectTrust, then: Callable[[], object]) -> None:
        from aeon_core.config.trust import grant_trust

        grant_trust(trust)
        self._tasks.in_app(then)

    def _runs_here(self, journal: Path | None) -> bool:
        """Show the session that writes a journal; return whether there is one: the key may have been pressed twice."""
        session = self.app.sessions.of(journal)
        if session is None or not session.running:
            return False
        self.app.show_session(session)
        return True

    @_on_thread
    def resume(self, path: Path, ttl: int | None = None) -> None:
        """Resume a run, and show it. If its TTL is used up, ask for a higher one first."""
        from aeon_core.journal.recovery import make_sure_nobody_writes
        from aeon_tui.screens.dialogs import TtlDialog
        from aeon_tui.sessions.run_jobs import ended_for_good, resume_job, used_up_ttl
        from aeon_tui.sources.run_index import is_workflow

        if is_workflow(path):
            from aeon_tui.sessions.workflow_session import resume_workflow

            make_sure_nobody_writes(path)
            self._notify_refusal(self.start(resume_workflow(path)))
            return
        if ended := ended_for_good(path):
            self._tasks.notify(f"{ended}; fork it instead", warn=True)
            return
        if ttl is None and (used := used_up_ttl(path)) is not None:
            make_sure_nobody_writes(path)
            again = partial(self.resume, path)
            self._ask(partial(TtlDialog, path.stem, used), lambda more: self._tasks.in_app(partial(again, more)))
            return
        if self._lacks_trust(self._missing_trust(), partial(self.resume, path, ttl)):
            return
        make_sure_nobody_writes(path)
        self._begin(resume_job(path, self.today(), {} if ttl is None else {"ttl": ttl}, in_app=True))

    @_on_thread
    def replay(self, path: Path) -> None:
        """Replay a run from its journal."""
        from aeon_tui.screens.replay import replay_screen
        from aeon_tui.sources.replay import make_sure_it_is_over

        make_sure_it_is_over(path)
        self._tasks.in_app(lambda: self.app.show_run(replay_screen(path)))

    @_on_thread
    def label(self, path: Path) -> None:
        """Ask whether the result of a run is good, and save the answer in its journal."""
        from aeon_core.journal.labels import last_label, make_sure_it_has_a_result
        from aeon_tui.screens.dialogs import LabelAnswer, LabelDialog

        make_sure_it_has_a_result(path)
        known = last_label(path)
        before = LabelAnswer(*known) if known is not None else None
        self._ask(lambda: LabelDialog(path.stem, before), partial(self._write_label, path))

    def _write_label(self, path: Path, answer: LabelAnswer) -> None:
        from aeon_core.journal.labels import label_run

        record = label_run(path, answer.verdict, answer.why or None)
        self._tasks.in_app(partial(self.app.note_record, path, record))
        self._tasks.notify(f"Labelled {answer.verdict}: {path.stem}")

    @_on_thread
    def fork(self, path: Path, start: int | None = None) -> None:
        """Ask where a fork starts and what it changes, and run it.

        `start` is the pass after the moment shown, or the selected gate of a workflow.
        """
        from aeon_tui.sources.run_index import is_workflow

        self._ask((self._workflow_fork_dialog if is_workflow(path) else self._fork_dialog)(path, start))

    def _fork_dialog(self, path: Path, start: int | None) -> Callable[[], Screen[None]]:
        from aeon_tui.screens.fork import ForkDialog, parent_of

        return partial(ForkDialog, parent_of(path), start)

    def _workflow_fork_dialog(self, path: Path, start: int | None) -> Callable[[], Screen[None]]:
        from aeon_core.journal.reader import head
        from aeon_tui.screens.workflow.dialogs import WorkflowForkDialog
        from system2.constants import GATES
        from system2.workflow_journal import decided_gates

        decided = decided_gates(path)
        if not (gates := [gate.number for gate in GATES if gate.number in decided]):
            raise UsageError(f"no gate was decided in the workflow {path.stem!r}; resume it instead")
        return partial(WorkflowForkDialog, path, str((head(path) or {}).get("model")), gates, start)

    def fork_workflow(self, asked: ForkWorkflow) -> str | None:
        """Start a workflow from a gate of another, or return why not. Called from a thread."""
        from aeon_tui.sessions.workflow_session import fork_workflow, resume_workflow
        from system2.workflow_journal import discard

        try:
            child = fork_workflow(asked.path, asked.gate, self.app.runs_dir, asked.feedback)
        except (AeonError, OSError) as error:
            return reason(error)
        try:
            problem = self.start(resume_workflow(child, asked.model))
        except (AeonError, OSError) as error:
            problem = reason(error)
        if problem is not None:
            discard(child)
        return problem

    def open_journal(self) -> None:
        """Ask for a journal, and show its run."""
        from aeon_tui.screens.dialogs import OpenJournalDialog

        self._open(OpenJournalDialog, lambda path: self._tasks.in_app(partial(self.app.open_journal, path)))

    @_on_thread
    def export(self, run: Path) -> None:
        """Ask for a file, and write the report of a journal's run there."""
        from aeon_tui.screens.dialogs import ExportDialog

        self._ask(partial(ExportDialog, run.stem, Path.cwd()), partial(self._export, run))

    def _export(self, run: Path, file: Path) -> None:
        write = partial(self._write, run, file)
        if file.exists():
            self._confirm("Replace a file", [f"{file} already exists.", "Replace it?"], "Replace", "No", write)
        else:
            write()

    def _write(self, run: Path, file: Path) -> None:
        from aeon_tui.reports.export import export_journal, write_file
        from aeon_tui.screens.dialogs import form_of

        if (form := form_of(file)) is not None:
            write_file(file, export_journal(run, form, self.app.runs_dir))
            self._tasks.notify(f"Written: {file}")

    @_on_thread
    def delete(self, run: RunSummary, forks: int, then: Callable[[], object]) -> None:
        """Delete the run after asking; `forks` counts its forks. Then call `then` in the app."""
        from aeon_core.journal.listing import refuse_live, remove_run, size_of

        path = Path(run.path)
        refuse_live(path)
        details = f"{run.run_id} · {size(size_of(path))} · this cannot be undone."
        lines = [fit(one_line(run.task, 400), 100), "", details]
        lines += [f"Its forks are kept: {count(forks, 'run')}."] if forks else []

        def remove() -> None:
            remove_run(path)
            self._tasks.notify(f"Deleted: {run.run_id}")
            self._tasks.in_app(then)

        self._confirm("Delete this run?", lines, "Delete", "Keep", remove)

    def _confirm(self, title: str, lines: Sequence[str], yes: str, no: str, act: Callable[[], None]) -> None:
        """Ask, from a thread, and do it if the answer is yes."""
        from aeon_tui.screens.dialogs import ConfirmDialog

        self._ask(lambda: ConfirmDialog(title, lines, yes, no), lambda _: act())

    def _ask(self, dialog: Callable[[], Screen[Any]], act: Callable[[Any], None] = lambda _: None) -> None:
        """Open a dialog, from a thread, and use its answer."""
        self._tasks.in_app(partial(self._open, dialog, act))

    def _open(self, dialog: Callable[[], Screen[Any]], act: Callable[[Any], None]) -> None:
        """Open a dialog, unless one is open: the key may have been pressed twice.

        Its answer, if any, is used on a thread.
        """

        def answered(answer: Any) -> None:
            if answer:
                self._tasks.run(partial(act, answer))

        if not self.app.screen.is_modal:
            self.app.clear_notifications()
            self.app.push_screen(dialog(), answered)

    def _notify_refusal(self, problem: str | None) -> None:
        if problem is not None:
            self._tasks.notify(problem, warn=True)

    def _start(self, job: RunnerJob, request: StartRequest | None = None) -> None:
        from aeon_tui.sessions.run_jobs import NewRunForm

        if isinstance(request, NewRunForm):
            self.draft = None
        if self._runs_here(job.journal_in(self.app.runs_dir)):
            job.discard()
            return
        journal = self.app.start_job(job)
        if job.beside is not None and journal is not None:
            self.app.compare_runs(job.beside, journal, side=1)


def without_trust(trust: ProjectTrust) -> str:
    """Return the notice for a user who continues without trusting a folder."""
    # A key is a setting, such as `policy.allow`, or a file.
    keys = [item.key if "/" in item.key else item.key.partition(".")[0] for item in trust.items]
    keys = list(dict.fromkeys(map(escape_controls, keys)))
    named = ", ".join(keys[:3] + ([f"{len(keys) - 3} more"] if len(keys) > 3 else []))
    return f"Ignoring this untrusted folder's {named}. ctrl+p: Trust this folder."
