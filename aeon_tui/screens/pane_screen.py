"""A screen of numbered panes: a key focuses each, and any of them can fill the screen."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from aeon_tui.messages import ShowRuns
from aeon_tui.screens.panel_controller import APPROVAL, PanelController
from aeon_widgets.approval_panel import DECIDE_ID
from aeon_widgets.pane import Pane


class PaneScreen(Screen[None]):
    """The panes of a run or a workflow. A subclass names them, knows which have content, and makes room for one."""

    ESCAPE_TO_MINIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before the panes' own keys: a waiting question comes first.
        Binding("a", "focus_question", "Decide", priority=True, tooltip="Go to what waits for you", id=DECIDE_ID),
    ]
    PANES: ClassVar[dict[int, type[Pane]]]
    """The panes by key; the first gets the focus at the start."""

    made = False
    """Whether the panes are composed."""

    asking: PanelController
    """Shows the question."""

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key or a paste is accepted; a new question accepts none."""
        return self.asking.admits(event)

    def on_screen_suspend(self) -> None:
        self.asking.cover()

    @abstractmethod
    def begin(self) -> None:
        """Show the content once the panes are composed."""

    @abstractmethod
    def bring(self, number: int) -> None:
        """Make room for a pane that may be hidden."""

    def has_pane(self, number: int) -> bool:
        """Return whether a pane has content, even if it is not on screen."""
        return bool(self.query(self.PANES[number]))

    @property
    def home(self) -> int:
        """The pane that has the focus by default: the question if there is one, else the first."""
        return APPROVAL if self.query(self.PANES[APPROVAL]) else next(iter(self.PANES))

    def begin_panes(self) -> None:
        """Number the panes, focus the first, and start."""
        numbers = {kind: str(number) for number, kind in self.PANES.items()}
        for pane in self.walk_children(Pane):
            pane.pane_key = numbers[type(pane)]
        self.query_one(self.PANES[self.home]).focus()
        self.made = True
        self.begin()

    def action_pane(self, number: int) -> None:
        """Focus a pane by its number, if it has content."""
        if not self.has_pane(number):
            return
        zoomed = self.maximized is not None
        if zoomed:
            self.minimize()
        self.bring(number)
        target = focus_target(self.query_one(self.PANES[number]))
        # Immediately: the next key must reach it.
        self.set_focus(target)
        if zoomed:
            self.maximize(target)

    def action_focus_question(self) -> None:
        """Focus the question, if there is one."""
        self.action_pane(APPROVAL)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action has an effect now: in a question its key is an answer, in a field a letter."""
        if action == "focus_question":
            return self.asking.waits and not self.asking.is_focused and not isinstance(self.focused, Input)
        if (action, parameters) == ("pane", (APPROVAL,)):
            return self.asking.waits
        return super().check_action(action, parameters)

    def action_zoom(self) -> None:
        """Zoom the focused pane, or restore it."""
        if self.maximized is not None:
            self.minimize()
        elif self.focused is not None:
            self.maximize(self.focused)

    def action_back(self) -> None:
        """Leave a zoomed pane, or go to the list of runs while the run or workflow continues."""
        if self.maximized is not None:
            self.minimize()
        else:
            self.app.post_message(ShowRuns())

    def on_pane_covered(self, event: Pane.Covered) -> None:
        """Keep the scroll position when the screen or its column gets lower."""
        if self.home != APPROVAL:
            self.call_after_refresh(self.action_pane, int(event.pane.pane_key))

    def on_descendant_blur(self) -> None:
        """Move the focus of a hidden pane to `home`, so that no key is lost."""
        if self.focused is None and self.made and self.app.app_focus:
            self.call_after_refresh(self._refocus)

    def _refocus(self) -> None:
        if self.focused is None and self.is_attached:
            self.minimize()
            self.action_pane(self.home)


def focus_target(pane: Widget) -> Widget:
    """Return the widget of a pane that can have the focus: itself, or its first part that can."""
    return pane if pane.can_focus else next((child for child in pane.children if child.can_focus), pane)
