"""The question that a run or a workflow waits for, and the answers that a person can give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from msgspec.structs import replace
from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key, Paste
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.style import Style
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Static
from typing_extensions import override

from aeon_core.units import count
from aeon_widgets.keys import TOO_SOON, KeyGuard, key_after_escape, key_of, shown_key
from aeon_widgets.pane import Pane, message, pane_css
from aeon_widgets.run_question import REASON, RUN, ApprovalQuestion, Choice, QuestionSection
from aeon_widgets.text import Block, wrap
from aeon_widgets.text_fields import FeedbackField
from aeon_widgets.text_view import PartsView
from aeon_widgets.virtual_list import ChoiceRows, RowsView

_BETWEEN = " · "
_KEY = "answer_key"
Answer = tuple[str, str]
"""A key of the parent's BINDINGS, and what it does."""


class AnswerKeys(Static):
    """Shows for example `a Run another pass · X End here`. Only an answer wider than the line is broken.

    If the app has bound an action to another key, that key is shown.
    """

    @message
    class Clicked(Message):
        """The person has clicked the answer of this key in BINDINGS."""

        key: str

    def __init__(self, answers: Sequence[Answer], *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._answers = list(answers)

    def render(self) -> Content:
        lines = (Content(_BETWEEN).join(map(self._clickable, line)) for line in self._lines(self.size.width))
        return Content("\n").join(lines)

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines the answers take at this width."""
        del container, viewport
        return sum(len(wrap(self._text(line), width)) for line in self._lines(width))

    def _lines(self, width: int) -> list[list[Answer]]:
        lines: list[list[Answer]] = [[]]
        for answer in self._answers:
            if lines[-1] and cell_len(self._text([*lines[-1], answer])) > width:
                lines.append([])
            lines[-1].append(answer)
        return lines

    def _text(self, line: list[Answer]) -> str:
        return _BETWEEN.join(f"{self._key_now(key)} {words}" for key, words in line)

    def _key_now(self, key: str) -> str:
        """Return the key that an answer has now."""
        action = next((each.id for each in Binding.make_bindings(ApprovalPanel.BINDINGS) if each.key == key), None)
        return key_of(self, action, ApprovalPanel) if action is not None else key

    def _clickable(self, answer: Answer) -> Content:
        key = Content.styled(self._key_now(answer[0]), "$aeon-accent bold")
        return Content.assemble(key, " ", answer[1]).stylize(Style.from_meta({_KEY: answer[0]}))

    def on_click(self, event: events.Click) -> None:
        key = event.style.meta.get(_KEY)
        if key is not None:
            event.stop()
            self.post_message(self.Clicked(key))


FOLDED, OPENED, LEADS = "▸", "▾", "⏎"


class ApprovalText(PartsView):
    """The text of the question. Enter, or a click, opens a part."""

    HELP_TITLE = "Decision"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,right,l", "choose_part", "Open or fold", show=False, id="lines.choose")
    ]

    below: var[int] = var(0)
    """The number of lines below those in sight."""

    @message
    class Chosen(Message):
        """A person has chosen a part that opens something else."""

        answer: str

    def __init__(self, body: Sequence[Block], sections: Sequence[QuestionSection], room: Callable[[], int]) -> None:
        super().__init__()
        self._room = room
        """Returns how many lines there is room for."""
        self._body, self._sections = list(body), list(sections)
        self._opened = {number for number, each in enumerate(sections) if each.folded is False}
        self._roomy = {number for number, each in enumerate(sections) if each.folded is None}
        """The sections that are open if there is room, until a person opens or folds one."""
        self._fitted: tuple[int, int] | None = None
        """The number of lines and the width that they were last fitted to."""
        self._heads: list[int] = []
        """The index of each section's heading among the blocks."""
        self._problem: list[Block] = []
        self._shown_blocks: list[Block] | None = None
        self._lay_out()

    def set_problem(self, problem: str) -> None:
        """Show at the top why the last attempt failed."""
        self._problem = [("high", f"✖ {problem}")]
        self._lay_out()
        self.start(self._blocks, follow=False)

    def set_sections(self, sections: Sequence[QuestionSection]) -> None:
        """Replace the sections."""
        self._sections = list(sections)
        self._lay_out()
        self._wrap()

    def _lay_out(self) -> None:
        """Rebuild the text from the body and what is open."""
        blocks = [*self._problem, *self._body]
        self._heads = []
        for number, section in enumerate(self._sections):
            self._heads.append(len(blocks))
            is_open = number in self._opened
            sign = LEADS if section.opens else OPENED if is_open else FOLDED
            blocks.append(("accent bold", f"{sign} {section.heading}"))
            blocks += section.blocks if is_open else ()
        self._blocks = blocks

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        fitted = (self._room(), width)
        if self._roomy and fitted != self._fitted:
            self._fitted = fitted
            self._opened |= self._roomy
            self._lay_out()
            if super().get_content_height(container, viewport, width) > fitted[0]:
                self._opened -= self._roomy
                self._lay_out()
        return super().get_content_height(container, viewport, width)

    @property
    def parts(self) -> Sequence[range]:
        return [range(place, place + 1) for place in self._heads]

    def choose_part(self) -> None:
        """Open or fold the part, or send the answer that it stands for."""
        number, self._roomy = self.selected, set()
        if opens := self._sections[number].opens:
            self.post_message(self.Chosen(opens))
            return
        self._opened ^= {number}
        self._lay_out()
        self._wrap()
        line = self.lines_of(number).start
        end = line + len(self._sections[number].blocks)
        if number in self._opened and not 0 <= end - self.scroll_offset.y < self.size.height:
            self.scroll_to(y=line, animate=False, force=True)

    @override
    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._count_lines_below()

    @override
    def set_line_count(self, count: int) -> None:
        self._shown_blocks = self._blocks
        super().set_line_count(count)
        self._count_lines_below()

    @override
    def on_resize(self) -> None:
        super().on_resize()
        if self._shown_blocks is not self._blocks:
            self._wrap()
        self._count_lines_below()

    def _count_lines_below(self) -> None:
        below = self.line_count - self.scroll_offset.y - self.size.height
        self.below = max(0, below) if self.size.height else 0


NOTICE_SECONDS = 3.0
"""How long the panel says that a key was ignored."""
_SCROLLING = {"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "ctrl+pageup", "ctrl+pagedown"}
_CHOOSE = "lines.choose"
_RUN_HINT = "type the word run"
DECIDE_ID = "pane.decide"
"""The binding of a screen that leads to the panel."""
_FRAME = 4
"""Rows of the panel around its text: borders, and answers on two lines."""


class _WayBack(AnswerKeys):
    """Says how to return to the answers, in as many lines as they take, so that nothing moves when a click does it."""

    @override
    def render(self) -> Content:
        key = self.app._keymap.get(DECIDE_ID, "a").partition(",")[0]
        return Content.assemble((shown_key(key), "$aeon-accent bold"), " comes back here to decide")


class ApprovalPanel(Pane):
    """Asks one question and sends `Answered` once, and not before a person could have read the question.

    The app passes every key and paste to `admits` before anything else gets it; in an app that does not, only `send`
    refuses an answer that comes too early.
    """

    @message
    class Answered(Message):
        """A person has answered: with a choice's `answer` and its words, or with one of the options."""

        panel: ApprovalPanel
        answer: str
        words: str | None = None

    HELP_TITLE = "Decision"
    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "choose('a')", "Approve", show=False, id="approval.approve"),
        Binding("A", "choose('A')", "Always allow", show=False, id="approval.always"),
        Binding("w", "choose('w')", "Tell it what to fix", show=False, id="approval.reason"),
        Binding("c", "choose('c')", "Accept the result", show=False, id="approval.accept"),
        Binding("r", "choose('r')", "Run this pass again", show=False, id="approval.replay"),
        Binding("e", "choose('e')", "Edit", show=False, id="approval.edit"),
        Binding("X", "choose('X')", "End here", show=False, id="approval.abort"),
        Binding("escape", "close_field", "Back to the question", id="approval.back"),
    ]
    DEFAULT_CSS = (
        pane_css("ApprovalPanel")
        + """
    ApprovalPanel {
        height: auto; max-height: 75%;
        border: heavy $severity-medium; border-title-color: $severity-medium; border-title-style: bold;
        &:focus-within { border: heavy $severity-medium; border-title-color: $severity-medium; }
        ApprovalText { height: auto; max-height: 100%; background: $background; }
        Vertical { dock: bottom; height: auto; background: $background; }
        ChoiceRows { height: 3; background: $background; }
        FeedbackField { margin: 0 1; display: none; }
        Static { height: auto; max-height: 4; padding: 0 1; color: $aeon-text; background: $background; }
        .keys { display: none; }
        &:focus-within .keys { display: block; }
        &:focus-within .away { display: none; }
    }
    ApprovalPanel.-typing {
        FeedbackField { display: block; }
        .keys, &:focus-within .keys, .away { display: none; }
    }
    """
    )

    def __init__(self, question: ApprovalQuestion, guard: KeyGuard | None = None) -> None:
        super().__init__()
        self._restore: Callable[[], None] | None = None
        """Restores the state of the panel that this one replaces."""
        self.question = question
        self.pane_title = question.headline
        self.guard = guard if guard is not None else KeyGuard()
        self.answered = False
        """Whether an answer has been sent: a question takes only one."""
        self._typed: Choice | None = None
        """The choice whose field is open."""
        self._notice = ""
        self._notice_timer: Timer | None = None

    def compose(self) -> ComposeResult:
        question = self.question
        yield ApprovalText(question.body, question.sections, self._room)
        picks = [("↑↓ ⏎", "Choose")] if question.options else []
        answers = [*picks, *((each.key, each.words) for each in question.choices)]
        with Vertical():
            if question.options:
                safe = {question.safe: [(" (safe)", "muted")]}
                named = {each: [(each, "bold"), *safe.get(each, [])] for each in question.options}
                rows = ChoiceRows(named, question.safe)
                rows.styles.height = len(question.options)
                yield rows
            if any(each.typed for each in question.choices):
                yield FeedbackField()
            yield AnswerKeys(answers, classes="keys")
            yield _WayBack(answers, classes="away")

    def on_mount(self) -> None:
        self.watch(self.query_one(ApprovalText), "below", self._draw_subtitle)
        if self._restore is not None:
            self._restore()
            return
        self.home.focus()
        self.guard.arm()
        # A person sees it only once it has been drawn.
        self.call_after_refresh(self.guard.arm)
        self.app.bell()

    def copy(self) -> ApprovalPanel:
        """Return a new panel for the same question that keeps what was typed, to be mounted elsewhere."""
        panel, typed, words = ApprovalPanel(self.question, self.guard), self._typed, self.feedback
        is_typing, is_focused, panel.answered = self.has_class("-typing"), self.has_focus_within, self.answered

        def restore() -> None:
            if is_typing and typed is not None and panel.field is not None:
                panel._open_field(typed)
                panel.field.text = words
                panel.field.move_cursor(panel.field.document.end)
            elif is_focused:
                panel.home.focus()

        panel._restore = restore
        return panel

    def _room(self) -> int:
        """Return the most lines of text that there is room for."""
        most = self.styles.max_height
        share = most.value / 100 if most is not None else 1.0
        if not isinstance(parent := self.parent, Widget):
            return 0
        docked = sum(each.outer_size.height for each in parent.children if each.styles.dock != "none")
        return int((parent.size.height - docked) * share) - _FRAME

    @property
    @override
    def home(self) -> Widget:
        """What has the focus first: the options if there are any, else the text."""
        return next(iter(self.query(ChoiceRows)), self.query_one(ApprovalText))

    @property
    def field(self) -> FeedbackField | None:
        """The field that a person types into; None if the question takes no text."""
        return next(iter(self.query(FeedbackField)), None)

    @property
    def feedback(self) -> str:
        """The text in the field that has not been sent."""
        return self.field.text.strip() if self.field is not None and not self.answered else ""

    def choice(self, key: str) -> Choice | None:
        """Return the choice of a key; None if the question has none."""
        return next((each for each in self.question.choices if each.key == key), None)

    def admits(self, event: Key | Paste) -> bool:
        """Return whether a key or a paste goes to the focused widget.

        If not, it was swallowed, which the panel shows, or handled here: the key of the field opens it at once, so that
        the next key is text. Escape and that key in quick succession arrive as one key, with `alt+`.
        """
        field = self.field
        is_typing = field is not None and self.screen.focused is field
        if isinstance(event, Paste):
            if is_typing:
                return True
            self.guard.swallow(event.time)
            self._show_notice("pasted text ignored" + (" · open the field first" if field is not None else ""))
            return False
        if (wanted := self._opens(event.key) or self._opens(key_after_escape(event))) is not None:
            self.guard.admits(event.key, event.time, harmless=True)
            self._open_field(wanted)
            return False
        active = self.screen.active_bindings.get(event.key)
        node, binding = (active.node, active.binding) if active is not None else (None, None)
        if is_typing:
            edits = node is field and binding is not None and binding.action != "submit"
            harmless = event.is_printable or edits or event.key == "escape"
        elif field is not None and self.has_class("-typing") and self.has_focus_within and event.is_printable:
            self.guard.admits(event.key, event.time, harmless=True)
            self.screen.set_focus(field)
            field.insert_text_at_cursor(event.character or "")
            return False
        else:
            action = (binding.id or "") if binding is not None else ""
            moves = action != _CHOOSE if action.startswith("lines.") else event.key in _SCROLLING
            harmless = event.key == "escape" or moves
        if self.guard.admits(event.key, event.time, harmless=harmless):
            if not harmless:
                self._show_notice("")
            return True
        self._show_notice(too_early_notice(event))
        return False

    def send(self, answer: str, words: str | None = None) -> None:
        """Send an answer, once: at the next key, the run may already ask another question with the same digest."""
        if self.answered:
            return
        if not self.guard.is_open:
            self._show_notice(TOO_SOON)
            return
        self.answered = True
        self.post_message(self.Answered(self, answer, words))

    def reopen(self) -> None:
        """Accept another answer, because the one that was sent had no effect."""
        self.answered = False

    def show_problem(self, problem: str) -> None:
        """Show above the question why the last attempt failed, and accept another answer."""
        self.reopen()
        self.query_one(ApprovalText).set_problem(problem)

    def set_sections(self, sections: tuple[QuestionSection, ...]) -> None:
        """Replace the sections of the question."""
        self.question = replace(self.question, sections=sections)
        self.query_one(ApprovalText).set_sections(sections)

    @on(ApprovalText.Chosen)
    def _section_chosen(self, event: ApprovalText.Chosen) -> None:
        event.stop()
        self.send(event.answer)

    def _show_notice(self, notice: str) -> None:
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self._notice = notice
        self._notice_timer = self.set_timer(NOTICE_SECONDS, lambda: self._show_notice("")) if notice else None
        self._draw_subtitle()

    def _draw_subtitle(self) -> None:
        if self._notice:
            self.border_subtitle = Content.styled(f" {self._notice} ", "$severity-high bold reverse")
        elif self._typed is not None and self.has_class("-typing"):
            back, line = key_of(self, "approval.back"), key_of(self, "feedback.break", FeedbackField)
            self.border_subtitle = f"{self._typed.words} · ⏎ sends · {back} back · {line} newline"
        else:
            # A notice's timer may end after the panel was removed, and has no text any more.
            below = sum(text.below for text in self.query(ApprovalText))
            self.border_subtitle = f"↓ {count(below, 'more line')}" if below else ""

    def _opens(self, key: str) -> Choice | None:
        """Return the choice whose field a key opens where the focus is, if any."""
        active = self.screen.active_bindings.get(key) if key and self.field is not None else None
        if active is None or active.node is not self:
            return None
        wanted = next(
            (each for each in self.question.choices if active.binding.action == f"choose('{each.key}')"), None
        )
        return wanted if wanted is not None and wanted.typed else None

    def opens_field(self, key: str) -> bool:
        """Return whether a key opens the field."""
        return self._opens(key) is not None

    def _open_field(self, choice: Choice) -> None:
        """Open the field for a choice; keys are text from then on."""
        field = self.field
        if field is not None and not self.answered:
            if self._typed is not choice:
                field.text = ""
            self._typed = choice
            field.placeholder = _RUN_HINT if choice.typed == RUN else self.question.hint
            self.add_class("-typing")
            self._draw_subtitle()
            # At once, since the next key is text and not an answer.
            self.screen.set_focus(field)

    def action_choose(self, key: str) -> None:
        """Answer with the choice of a key, or open the field for the text that it needs."""
        if (choice := self.choice(key)) is None:
            return
        if choice.typed:
            self._open_field(choice)
        else:
            self.send(choice.answer)

    def action_close_field(self) -> None:
        """Go back from the field to the question."""
        self.remove_class("-typing")
        self._draw_subtitle()
        self.home.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action does something now; the screen gets the keys that the question does not use."""
        if action == "close_field":
            return self.has_class("-typing")
        if action == "choose":
            return self.choice(str(parameters[0])) is not None
        return super().check_action(action, parameters)

    @on(AnswerKeys.Clicked)
    def _clicked(self, event: AnswerKeys.Clicked) -> None:
        event.stop()
        if self.choice(event.key) is not None:
            self.action_choose(event.key)
        elif self.question.options:
            self.send(self.query_one(ChoiceRows).value)

    @on(RowsView.Chosen)
    def _picked(self, event: RowsView.Chosen) -> None:
        event.stop()
        self.send(self.query_one(ChoiceRows).value)

    @on(RowsView.Moved)
    def _moved(self, event: RowsView.Moved) -> None:
        event.stop()

    def on_click(self) -> None:
        """Come back here with a click anywhere on the panel."""
        if not self.has_focus_within:
            self.home.focus()

    @on(FeedbackField.Submitted)
    def _submitted(self, event: FeedbackField.Submitted) -> None:
        event.stop()
        choice, words = self._typed, event.text.strip()
        if choice is None:
            return
        if choice.typed == RUN and words != RUN:
            self._show_notice(_RUN_HINT)
        elif choice.typed == REASON and not words:
            self._show_notice("give a reason: the run acts on it")
        else:
            self.send(choice.answer, words if choice.typed == REASON else None)


def too_early_notice(event: Key) -> str:
    """Return the notice about a key that was swallowed."""
    return f"{shown_key(event.key)!r} was {TOO_SOON}"
