"""What the panels of a run's and of a workflow's questions share: the text, the answers, the feedback field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Static
from typing_extensions import override

from aeon_widgets.answer_keys import AnswerKeys
from aeon_widgets.key_guard import KeyGuard, key_after_escape
from aeon_widgets.pane import Pane, pane_css
from aeon_widgets.text import count
from aeon_widgets.text_view import Block, TextView

NOTICE_SECONDS = 3.0
"""How long the panel says that a key was not taken."""
_SCROLLING = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "ctrl+pageup", "ctrl+pagedown"}
_CHOOSE = "lines.choose"


class ApprovalText(TextView):
    """The question; scrolls. Its panel says how much more there is below."""

    HELP_TITLE = "Decision"

    @override
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._count_lines_below()

    @override
    def set_line_count(self, count: int) -> None:
        super().set_line_count(count)
        self._count_lines_below()

    @override
    def on_resize(self) -> None:
        super().on_resize()
        self._count_lines_below()

    def _count_lines_below(self) -> None:
        below = self.line_count - self.scroll_offset.y - self.size.height
        if isinstance(self.parent, DecisionPanel):
            self.parent.lines_below = below if self.size.height else 0


class DecisionPanel(Pane):
    """Asks one question and sends one answer, never before a person could have read the question.

    A subclass binds the answers, and sends each with `send`. The app shows every key and every paste to `admits`
    before anything else gets it; without such an app, `send` alone refuses what comes too early.
    """

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
    FIELD_ACTIONS: ClassVar[frozenset[str]] = frozenset({"words"})
    """The actions that open the field."""
    DEFAULT_CSS = (
        pane_css("DecisionPanel")
        + """
    DecisionPanel {
        height: auto; border: round $severity-medium; border-title-color: $severity-medium;
        &:focus-within { border: heavy $severity-medium; border-title-color: $severity-medium; }
        ApprovalText { height: auto; max-height: 100%; background: $background; }
        Input { dock: bottom; background: $panel; color: $aeon-text; margin: 0 1; display: none; }
        Static { dock: bottom; height: auto; max-height: 2; padding: 0 1; color: $aeon-muted; background: $background; }
        .keys { display: none; }
        &:focus-within .keys { display: block; }
        &:focus-within .away { display: none; }
    }
    DecisionPanel.-words {
        Input { display: block; }
        .keys, &:focus-within .keys, .away { display: none; }
    }
    """
    )

    def __init__(self, blocks: Sequence[Block], answers: str, placeholder: str = "", guard: KeyGuard | None = None):
        super().__init__()
        self.guard = guard if guard is not None else KeyGuard()
        self.answered = False
        """Whether an answer has been sent: there is one for each question."""
        self._blocks, self._answers, self._placeholder = list(blocks), answers, placeholder
        self._lines_below = 0
        self._notice = ""
        self._notice_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        yield ApprovalText()
        if self._placeholder:
            yield Input(placeholder=self._placeholder, compact=True)
        yield AnswerKeys(self._answers, classes="keys")
        yield Static(f"{self.pane_key or 'tab'} comes back here to decide", classes="away", markup=False)

    def on_mount(self) -> None:
        self.query_one(ApprovalText).start(self._blocks, follow=False)
        self.home.focus()
        self.guard.arm()
        # A person sees it only when it has been drawn.
        self.call_after_refresh(self.guard.arm)
        self.app.bell()

    @property
    def home(self) -> Widget:
        """What has the focus at first."""
        return self.query_one(ApprovalText)

    @property
    def field(self) -> Input | None:
        """Where a person types feedback; None where the question takes none."""
        return next(iter(self.query(Input)), None)

    @property
    def feedback(self) -> str:
        """What has been typed into the field and not been sent."""
        return self.field.value.strip() if self.field is not None and not self.answered else ""

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key or a paste goes where the focus is.

        What does not is swallowed, which the panel shows, or has been dealt with here: the key of the field opens it
        at once, so that the next key is text. Escape and that key in quick succession are one key, `alt+` and it.
        """
        field = self.field
        is_typing = field is not None and self.screen.focused is field
        if isinstance(event, Paste):
            if is_typing:
                return True
            self.guard.swallow(event.time)
            self._show_notice("pasted text ignored" + (" · press w to enter text" if field is not None else ""))
            return False
        if self.opens_field(event.key) or self.opens_field(key_after_escape(event)):
            self.guard.admits(event.key, event.time, harmless=True)
            self.open_field()
            return False
        active = self.screen.active_bindings.get(event.key)
        node, binding = (active.node, active.binding) if active is not None else (None, None)
        if is_typing:
            edits = node is field and binding is not None and binding.action != "submit"
            harmless = event.is_printable or edits or event.key == "escape"
        elif field is not None and self.has_class("-words") and self.has_focus_within and event.is_printable:
            self.guard.admits(event.key, event.time, harmless=True)
            self.open_field()
            field.insert_text_at_cursor(event.character or "")
            return False
        else:
            harmless = event.key == "escape" or _scrolls(event.key, binding)
        if self.guard.admits(event.key, event.time, harmless=harmless):
            if not harmless:
                self._show_notice("")
            return True
        self._show_notice(not_taken(event))
        return False

    def send(self, message: Message) -> None:
        """Send an answer: once, as the run may ask the next question, of the same digest, when the next key comes."""
        if self.answered:
            return
        if not self.guard.is_open:
            self._show_notice("too soon · wait a moment, then try again")
            return
        self.answered = True
        self.post_message(message)

    def wait_on(self) -> None:
        """Take an answer again: the one that was sent came to nothing."""
        self.answered = False

    def say(self, problem: str) -> None:
        """Show above the question why what was done about it came to nothing: it is still to be answered."""
        self.wait_on()
        self.query_one(ApprovalText).start([("high", f"✖ {problem}"), *self._blocks], follow=False)

    @property
    def lines_below(self) -> int:
        """How many lines of the question are below what is in sight."""
        return self._lines_below

    @lines_below.setter
    def lines_below(self, lines: int) -> None:
        self._lines_below = lines
        self._draw_subtitle()

    def _show_notice(self, notice: str) -> None:
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self._notice = notice
        self._notice_timer = self.set_timer(NOTICE_SECONDS, lambda: self._show_notice("")) if notice else None
        self._draw_subtitle()

    def _draw_subtitle(self) -> None:
        if self._notice:
            self.border_subtitle = Content.styled(f" {self._notice} ", "$severity-high bold reverse")
        else:
            below = self._lines_below
            self.border_subtitle = f"↓ {count(below, 'more line')}" if below > 0 else ""

    def opens_field(self, key: str) -> bool:
        """Return whether a key opens the field."""
        active = self.screen.active_bindings.get(key) if self.field is not None else None
        return active is not None and active.node is self and active.binding.action in self.FIELD_ACTIONS

    def open_field(self) -> None:
        """Let the person type feedback; whatever they type then is text."""
        field = self.field
        if field is not None and not self.answered:
            self.add_class("-words")
            # At once: the next key is a letter of the words, and no answer.
            self.screen.set_focus(field)

    def action_words(self) -> None:
        """Ask for the words of a rejection."""
        self.open_field()

    def action_no_words(self) -> None:
        """Go back from the words to the question."""
        self.remove_class("-words")
        self.home.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now: a key that the question does not take is the screen's."""
        if action == "no_words":
            return self.has_class("-words")
        return super().check_action(action, parameters)

    @on(AnswerKeys.Clicked)
    async def _clicked(self, event: AnswerKeys.Clicked) -> None:
        event.stop()
        bound = [each for each in self.BINDINGS if isinstance(each, Binding) and each.key == event.key]
        actions = [each.action for each in bound if self.check_action(each.action, ())]
        if actions:
            await self.run_action(actions[0])


def not_taken(event: Key) -> str:
    """Return what a person is told of a key that was swallowed."""
    name = event.character if event.is_printable and event.key != "space" else event.key.replace("_", " ")
    return f"{name!r} was too soon · pause, then press it again"


def _scrolls(key: str, binding: Binding | None) -> bool:
    if binding is None or not (binding.id or "").startswith("lines."):
        return key in _SCROLLING
    return binding.id != _CHOOSE
