"""The dialog of a label: whether the result of a run is good or bad, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from aeon_core.escape import escape_controls
from aeon_core.journal.records import Verdict
from aeon_tui.screens.dialogs import ChoiceRows, Dialog
from aeon_widgets.key_guard import KeyGuard
from aeon_widgets.key_names import key_of
from aeon_widgets.text import Piece
from aeon_widgets.virtual_list import RowsView

_VERDICTS: dict[Verdict, list[Piece]] = {
    "good": [("good  it does what was asked", "")],
    "bad": [("bad   it does not, or it is wrong", "")],
}
_HINT = "Saved in the run's journal; the last label counts. The settings show how often the judge agreed with you."


@dataclass(frozen=True)
class LabelAnswer:
    """What a person thinks of a result; `why` may be empty."""

    verdict: Verdict
    why: str


class VerdictRows(ChoiceRows[Verdict]):
    """Good and bad."""

    HELP_TITLE = "Verdict"


class LabelDialog(Dialog[LabelAnswer | None]):
    """Asks for the verdict. Enter keeps it; None where the dialog is left with escape. `before` is the last label."""

    HELP_TITLE = "Label"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="label.cancel"),
        Binding("tab", "app.focus_next", "Next field", show=False, id="label.next"),
    ]
    DEFAULT_CSS = """
    LabelDialog {
        & > Vertical { width: 64; }
        Input { margin: 1 0 0 0; }
        VerdictRows { height: 2; }
        #hint { margin: 1 0 0 0; }
    }
    """

    def __init__(self, run_id: str, before: LabelAnswer | None = None) -> None:
        super().__init__()
        self._run_id = run_id
        self._before = before if before is not None else LabelAnswer("good", "")
        self._guard = KeyGuard()

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(f"Label {escape_controls(self._run_id[:40])}")
            box.border_subtitle = f"enter saves · ↑↓ choose · tab why · {key_of(self, 'label.cancel')} cancels"
            yield VerdictRows(_VERDICTS, self._before.verdict)
            yield Input(escape_controls(self._before.why), placeholder="why (optional)", compact=True, id="why")
            yield Static(_HINT, id="hint", markup=False)

    def on_mount(self) -> None:
        self.query(VerdictRows).focus()
        self._guard.arm()

    @on(RowsView.Chosen)
    @on(Input.Submitted)
    def _keep(self, event: RowsView.Chosen | Input.Submitted) -> None:
        event.stop()
        if self._guard.is_open:
            self.dismiss(LabelAnswer(self.query_one(VerdictRows).value, self.query_one("#why", Input).value.strip()))

    def action_cancel(self) -> None:
        """Label nothing."""
        self.dismiss(None)
