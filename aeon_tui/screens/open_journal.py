"""The dialog that opens the journal of a run, wherever it is."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from aeon_core.errors import AeonError, UsageError
from aeon_core.paths import expanded
from aeon_tui.screens.dialogs import Dialog
from aeon_widgets.key_names import key_of


class OpenJournalDialog(Dialog[Path | None]):
    """Asks for the file and returns it; None if closed with Escape. A file that is no journal is refused here."""

    HELP_TITLE = "Open a journal"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", id="open.cancel")]

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Open a journal"
            box.border_subtitle = f"enter opens · {key_of(self, 'open.cancel')} cancels"
            yield Input(placeholder="path of a run's .jsonl file", compact=True)
            yield Static("", id="problem", markup=False)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if name := event.value.strip():
            self._check(name)

    @work(thread=True, exclusive=True, group="open", exit_on_error=False)
    def _check(self, name: str) -> None:
        from aeon_core.journal.reader import head

        try:
            path = Path.cwd() / expanded(name, "the file")
            if head(path) is None:
                raise UsageError(f"{str(path)!r} is not a journal; expected the .jsonl file of a run")
        except (AeonError, OSError) as error:
            problem = error.message if isinstance(error, AeonError) else f"{name!r}: {error.strerror}"
            self.app.call_from_thread(self.say, problem)
        else:
            self.app.call_from_thread(self.dismiss, path)

    def action_cancel(self) -> None:
        """Open nothing."""
        self.dismiss(None)
