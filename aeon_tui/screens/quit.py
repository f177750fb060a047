"""Before the app is quit in the middle of a run: that would abort it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from aeon_tui.screens.dialogs import ConfirmDialog


class QuitDialog(ConfirmDialog):
    """Asks whether to abort the run and quit. The key that asked says yes when it is pressed once more.

    So these have the ids of the app's keys: where those are changed, these are.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "accept", "Quit", show=False, id="app.quit"),
        Binding("ctrl+q", "quit_now", "Quit", show=False, id="app.quit_anywhere"),
        Binding("ctrl+c", "quit_now", "Quit", show=False, id="app.copy"),
    ]

    def __init__(self) -> None:
        lines = ["The run in this app is aborted.", "What it has done is kept; resume it later with R."]
        super().__init__("Quit while the run is active?", lines, "Abort and quit", no="Stay")

    def action_quit_now(self) -> None:
        """Quit; nobody types these keys by the way."""
        self.dismiss(True)
