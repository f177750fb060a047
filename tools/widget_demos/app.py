"""One widget on a recorded run, to try it out: `./dev widget plan_tree`.

The run, recorded with the simulated model, has a task, two passes, repairs and decisions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from aeon_themes import PALETTES, fallback_variables
from tools.widget_demos.demos import DEMOS, RECORDING, Demo, Moment

KEYS = "space play  , back  . on  t theme  ^q quit"
SECONDS_PER_RECORD = 0.12


def recorded() -> list[dict[str, Any]]:
    """Return the records of the run, long texts in full."""
    return list(read_records(RECORDING))


class DemoApp(App[None]):
    """Shows one widget, first with the whole run, then at any of its records or in motion."""

    TITLE = "aeon_widgets"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { background: $background; }
    #where { dock: top; height: 1; padding: 0 1; background: $panel; color: $aeon-text; }
    #keys { dock: bottom; height: 1; padding: 0 1; background: $panel; color: $aeon-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("full_stop", "step(1)", "Record on", key_display=".", id="demo.on"),
        Binding("comma", "step(-1)", "Record back", key_display=",", id="demo.back"),
        Binding("space", "play", "Play", id="demo.play"),
        Binding("t", "next_theme", "Theme", id="demo.theme"),
        Binding("q,ctrl+q", "quit", "Quit", id="demo.quit"),
    ]

    at: reactive[int] = reactive(0, init=False)
    """The number of records that the widget shows."""
    playing: reactive[bool] = reactive(False, init=False)

    def __init__(self, demo: Demo, records: Sequence[dict[str, Any]] | None = None) -> None:
        super().__init__()
        for palette in PALETTES:
            self.register_theme(palette.theme())
        self.theme = PALETTES[0].name
        self.demo = demo
        self.widget: Widget = demo.make()
        self._records = records if records is not None else recorded()
        self._view = RunView()
        self._folded = 0

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the variables of the widgets for a theme that does not define them."""
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Static(id="where", markup=False)
        with Vertical():
            yield self.widget
        yield Static(KEYS, id="keys", markup=False)

    def on_mount(self) -> None:
        self.at = len(self._records)
        focused = next((each for each in (self.widget, *self.widget.query("*")) if each.focusable), None)
        self.set_focus(focused)
        self.set_interval(SECONDS_PER_RECORD, self._advance)

    def watch_at(self) -> None:
        if self.at < self._folded:
            self._view, self._folded = RunView(), 0
        for record in self._records[self._folded : self.at]:
            reducer.apply(self._view, record)
        self._folded = self.at
        live = self.at < len(self._records)
        self.demo.show(self.widget, Moment(self._view, self._records[: self.at], live))
        self._show_status()

    def watch_playing(self) -> None:
        self._show_status()

    def _show_status(self) -> None:
        doing = "playing" if self.playing else "stopped" if self.at < len(self._records) else "the whole run"
        status = f"{self.demo.name} · record {self.at} of {len(self._records)} · {doing} · {self.theme}"
        self.query_one("#where", Static).update(Content(status))

    def _advance(self) -> None:
        if self.playing:
            self.action_step(1)
            self.playing = self.at < len(self._records)

    def action_step(self, by: int) -> None:
        """Go one record forward or back."""
        self.at = min(max(self.at + by, 0), len(self._records))

    def action_play(self) -> None:
        """Play the run from here, or from its beginning if the end is shown; if it is playing, stop."""
        if self.at == len(self._records):
            self.at = 0
        self.playing = not self.playing

    def action_next_theme(self) -> None:
        """Switch to the next of Aeon's themes."""
        names = [palette.name for palette in PALETTES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)] if self.theme in names else names[0]
        self._show_status()


def main(name: str = "") -> None:
    """Run the demo of a widget's module; without a name, list them. Exits with 2 for an unknown name."""
    try:
        demo = demo_of(name)
    except UsageError as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(error.exit_code)
    DemoApp(demo).run()


def demo_of(name: str) -> Demo:
    """Return the demo of a widget's module. Raises UsageError."""
    if name in DEMOS:
        return DEMOS[name]
    there = ", ".join(sorted(DEMOS))
    wrong = f"no demo of {name!r}; " if name else ""
    raise UsageError(f"{wrong}widgets with a demo: {there}; try `./dev widget {next(iter(DEMOS))}`")
