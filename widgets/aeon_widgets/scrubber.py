"""Where in a run's records one is, as a line that can be clicked and dragged."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

BACK, ON, HERE = "◀", "▶", "●"


class Scrubber(Widget):
    """`◀━━●──▶`. `share` is the place between the first record, 0, and now, 1."""

    DEFAULT_CSS = """
    Scrubber { width: 24; height: 1; background: $background; color: $aeon-muted; }
    """

    share: reactive[float] = reactive(1.0)

    @dataclass
    class Stepped(Message):
        """The user wants to go one record back, -1, or forward, 1."""

        by: int

    @dataclass
    class Moved(Message):
        """The person wants to go to a place between the first record, 0, and now, 1."""

        share: float

    def render(self) -> Content:
        room = max(1, self.size.width - 2)
        here = round(min(1.0, max(0.0, self.share)) * (room - 1))
        return Content.assemble(
            (BACK, "$aeon-accent"),
            ("━" * here, "$aeon-accent"),
            (HERE, "bold $aeon-accent"),
            ("─" * (room - 1 - here), "$aeon-muted"),
            (ON, "$aeon-accent"),
        )

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        if event.x <= 0 or event.x >= self.size.width - 1:
            self.post_message(self.Stepped(-1 if event.x <= 0 else 1))
            return
        self.capture_mouse()
        self._go(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.app.mouse_captured is self:
            event.stop()
            self._go(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        self.release_mouse()

    def _go(self, x: int) -> None:
        self.post_message(self.Moved(min(1.0, max(0.0, (x - 1) / max(1, self.size.width - 3)))))
