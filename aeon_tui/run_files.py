"""What can be done with the file of a past run: export it, delete it. Files are touched on a thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_tui.navigation import Navigation
from aeon_tui.platform.background_tasks import BackgroundTasks
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.run_dialogs import ExportDialog, form_of
from aeon_widgets.text import count, fit, one_line, size

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary


class RunFiles:
    """Asks first where something would be lost, and says in a notification what was done, or why it was not."""

    def __init__(self, app: Navigation) -> None:
        self._app = app
        self._tasks = BackgroundTasks(app, "files")

    def open(self) -> None:
        """Ask for a journal, and show its run."""
        from aeon_tui.screens.run_dialogs import OpenJournalDialog

        self._open_dialog(lambda: self._app.push_screen(OpenJournalDialog(), self._journal_given))

    def _journal_given(self, journal: Path | None) -> None:
        if journal is not None:
            self._app.open_journal(journal)

    def export(self, run: Path) -> None:
        """Ask for a file, and write the report of a journal's run there."""
        self._tasks.run(lambda: self._ask_for_file(run))

    def delete(self, run: RunSummary, forks: int, then: Callable[[], object]) -> None:
        """Ask, and delete the run; `forks` were made of it. Then call `then` in the app."""
        self._tasks.run(lambda: self._ask_to_delete(run, forks, then))

    def _ask_for_file(self, run: Path) -> None:
        folder = Path.cwd()
        self._ask(lambda: self._app.push_screen(ExportDialog(run.stem, folder), partial(self._file_given, run)))

    def _file_given(self, run: Path, file: Path | None) -> None:
        if file is not None:
            self._tasks.run(lambda: self._write_unless_there(run, file))

    def _write_unless_there(self, run: Path, file: Path) -> None:
        if not file.exists():
            self._write(run, file)
            return
        dialog = ConfirmDialog("Replace a file", [f"{file} already exists.", "Replace it?"], "Replace")
        self._tasks.in_app(lambda: self._app.push_screen(dialog, lambda yes: self._replace(run, file, sure=bool(yes))))

    def _replace(self, run: Path, file: Path, *, sure: bool) -> None:
        if sure:
            self._tasks.run(lambda: self._write(run, file))

    def _write(self, run: Path, file: Path) -> None:
        from aeon_tui.reports.export import export_journal, write_file

        form = form_of(file)
        if form is not None:
            write_file(file, export_journal(run, form, self._app.runs_dir))
            self._tasks.notify(f"Written: {file}")

    def _ask_to_delete(self, run: RunSummary, forks: int, then: Callable[[], object]) -> None:
        from aeon_core.journal.deletion import refuse_live, size_of

        path = Path(run.path)
        refuse_live(path)
        lines = [
            fit(one_line(run.task, 400), 100),
            "",
            f"{run.run_id} · {size(size_of(path))} · this cannot be undone.",
        ]
        if forks:
            lines.append(f"Its forks are kept: {count(forks, 'run')}.")
        dialog = ConfirmDialog("Delete this run?", lines, "Delete", no="Keep")
        self._ask(lambda: self._app.push_screen(dialog, lambda yes: self._delete(run, then, sure=bool(yes))))

    def _delete(self, run: RunSummary, then: Callable[[], object], *, sure: bool) -> None:
        if sure:
            self._tasks.run(lambda: self._remove(run, then))

    def _remove(self, run: RunSummary, then: Callable[[], object]) -> None:
        from aeon_core.journal.deletion import remove_run

        remove_run(Path(run.path))
        self._tasks.notify(f"Deleted: {run.run_id}")
        self._tasks.in_app(then)

    def _ask(self, push: Callable[[], object]) -> None:
        """Open a dialog, from a thread."""
        self._tasks.in_app(lambda: self._open_dialog(push))

    def _open_dialog(self, push: Callable[[], object]) -> None:
        """Open a dialog, unless one is open: the key may have been pressed more than once."""
        if not self._app.screen.is_modal:
            self._app.clear_notifications()
            push()
