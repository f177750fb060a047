"""The dialog of a fork: from which pass on, with which model and TTL; the parent's are filled in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Grid, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls
from aeon_widgets.key_guard import KeyGuard

_DIGITS = 9


@dataclass(frozen=True)
class Parent:
    """What a fork can be made of. `passes` have ended; the one behind them may have begun."""

    path: Path
    model: str
    ttl: int
    passes: int


@dataclass(frozen=True)
class ForkAnswer:
    """What a person has said of a fork."""

    pass_number: int
    model: str
    ttl: int


def parent_of(path: Path) -> Parent:
    """Return what the two ends of a journal tell of a run. Raises UsageError where it is none."""
    from aeon_core.journal.summary import summarise
    from aeon_core.runs.fork import forked_config

    config = forked_config(path)
    summary = summarise(path)
    if summary is None:
        raise UsageError(f"cannot read the journal {str(path)!r}; see the damage with `aeon-tui show`")
    return Parent(path, summary.model, config.ttl, summary.passes)


class ForkDialog(ModalScreen[ForkAnswer | None]):
    """Asks for pass, model and TTL. Enter forks, in whichever field; None where it is left with escape."""

    HELP_TITLE = "Fork"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel", id="fork.cancel"),
        Binding("down", "app.focus_next", "Next", show=False, id="fork.next"),
        Binding("up", "app.focus_previous", "Previous", show=False, id="fork.previous"),
    ]
    DEFAULT_CSS = """
    ForkDialog {
        align: center middle;
        Vertical {
            width: 64; max-width: 100%; height: auto; max-height: 100%; padding: 0 1;
            border: round $aeon-accent; background: $background;
            border-title-color: $aeon-accent; border-subtitle-color: $aeon-muted;
        }
        Grid { grid-size: 2; grid-columns: 8 1fr; grid-rows: 1; height: 3; }
        Label { color: $aeon-muted; }
        Input { background: $panel; color: $aeon-text; }
        #hint { color: $aeon-muted; margin: 1 0 0 0; }
        #problem { color: $severity-high; display: none; }
    }
    """

    def __init__(self, parent: Parent) -> None:
        super().__init__()
        self._of = parent
        self._guard = KeyGuard()

    def compose(self) -> ComposeResult:
        of = self._of
        with Vertical() as box:
            box.border_title = Content(f"Fork {escape_controls(of.path.stem[:40])}")
            box.border_subtitle = "enter forks · tab next · esc cancels"
            with Grid():
                yield Label("Pass")
                yield Input(str(max(1, of.passes)), compact=True, type="integer", id="pass")
                yield Label("Model")
                yield Input(escape_controls(of.model), compact=True, id="model")
                yield Label("TTL")
                yield Input(str(of.ttl), compact=True, type="integer", id="ttl")
            yield Static(_hint(of), id="hint", markup=False)
            yield Static("", id="problem", markup=False)

    def on_mount(self) -> None:
        if not self.query("#pass"):
            return  # the app is ending before the dialog was made
        self.query_one("#pass", Input).focus()
        self._guard.arm()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if not self._guard.is_open:
            return
        try:
            self.dismiss(self._answer())
        except UsageError as error:
            problem = self.query_one("#problem", Static)
            problem.update(f"✖ {error.message}")
            problem.display = True

    def _answer(self) -> ForkAnswer:
        model = self.query_one("#model", Input).value.strip()
        if not model:
            raise UsageError("the model is empty; expected PROVIDER:NAME")
        return ForkAnswer(self._number("pass", "pass", 1), model, self._number("ttl", "TTL", 0))

    def _number(self, field: str, name: str, least: int) -> int:
        text = self.query_one(f"#{field}", Input).value.strip()
        if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS or int(text) < least:
            self.query_one(f"#{field}", Input).focus()
            raise UsageError(f"the {name} is {text[:40]!r}; expected a whole number, {least} or more")
        return int(text)

    def action_cancel(self) -> None:
        """Fork nothing."""
        self.dismiss(None)


def _hint(of: Parent) -> str:
    ended = {0: "No pass has ended yet", 1: "One pass has ended"}.get(of.passes, f"{of.passes} passes have ended")
    return f"{ended}. A new run starts where that pass started; this run does not change."
