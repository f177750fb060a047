"""The question that a run waits with, on its screen."""

from __future__ import annotations

from textual.screen import Screen
from textual.widget import Widget

from aeon_core.effects.approval import ApprovalRequest
from aeon_widgets.approval_panel import ApprovalPanel

PANE_KEY = "6"


class Asking:
    """Mounts the panel of a question, and takes it away when it is decided."""

    def __init__(self, screen: Screen[None]) -> None:
        self._screen = screen
        self._asked: ApprovalRequest | None = None
        self._focused_before: Widget | None = None

    @property
    def waits(self) -> bool:
        """Whether a question is on screen."""
        return self._asked is not None

    def show(self, request: ApprovalRequest | None, *, before: Widget, home: Widget) -> None:
        """Show this question, or none, above the widget `before`; where no other place is known, `home` is focused."""
        if request is self._asked:
            return  # the request itself: the next one may ask the same, of the same digest
        screen = self._screen
        if self._asked is None:
            self._focused_before = screen.focused
        self._asked = request
        self._take_away(home if request is None else None)
        screen.set_class(request is not None, "-asking")
        if request is not None:
            if screen.maximized is not None:
                screen.minimize()
            panel = ApprovalPanel(request.point, request.subject, request.digest)
            panel.pane_key = PANE_KEY
            screen.mount(panel, before=before)

    def _take_away(self, home: Widget | None) -> None:
        """Remove the decided question; the focus goes back to where it was, unless a person has moved it since."""
        for panel in self._screen.query(ApprovalPanel):
            if self._screen.maximized is panel:
                self._screen.minimize()
            if home is not None and panel.has_focus_within:
                before = self._focused_before
                back = before if before is not None and before.is_attached and before.focusable else None
                self._screen.set_focus(back or home)
            panel.remove()

    def again(self) -> None:
        """Give a person who comes back from another screen the half second, too."""
        for panel in self._screen.query(ApprovalPanel):
            panel.ask_again()
