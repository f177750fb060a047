"""What is typed while a question is new, or for another one, decides nothing and goes nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from textual.events import Key, MouseScrollDown, Paste
from textual.pilot import Pilot

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.keys import KeysScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.settings import SettingsScreen
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.keys import SILENCE_SECONDS, KeyGuard
from aeon_widgets.log_pane import LogPane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.text_fields import FeedbackField
from tests.aeon_tui.screens.run.test_review_snapshots import PASS, second_pass_assessed
from tests.aeon_tui.states import Asked, on, run_screen
from tests.aeon_tui.workflows import BLOCKLISTED, CEILING, COMMAND, GATE, app_on, at_a_gate
from tests.sampling import sample
from tests.waiting import until

SIZE = (80, 24)
CHARACTERS = {"question_mark": "?", "space": " ", "comma": ",", "slash": "/"}


class Person:
    """Types at times of its own: nothing waits for a clock."""

    app: AeonApp
    pilot: Pilot[None]

    def __init__(self) -> None:
        self.now = 1_000.0
        self.guard = KeyGuard(lambda: self.now)

    async def type(self, *keys: str, every: float = 0.1) -> None:
        """Press keys, each so many seconds after what was before it."""
        for key in keys:
            self.now += every
            single = key.removeprefix("alt+")
            event = Key(key, CHARACTERS.get(key, single if len(single) == 1 else None))
            event.time = self.now
            self.app.post_message(event)
            await self.pilot.pause()

    async def paste(self, text: str) -> None:
        """Paste a text."""
        event = Paste(text)
        event.time = self.now
        self.app.post_message(event)
        await self.pilot.pause()

    async def read(self) -> None:
        """Look at the screen for a while."""
        self.now += 2.0
        await self.pilot.pause()

    @property
    def panel(self) -> ApprovalPanel:
        """The newest question of the screen."""
        return list(self.screen.query(ApprovalPanel))[-1]

    @property
    def screen(self) -> Any:
        return self.app.screen

    @property
    def told(self) -> str:
        """The text of the panel's lower border."""
        return str(self.panel.border_subtitle)

    @property
    def drawn(self) -> str:
        return "\n".join(strip.text for strip in self.app.screen._compositor.render_strips())


class AtRun(Person):
    """Before the question of a run after a pass."""

    def __init__(self) -> None:
        self.broker = Asked("pass", PASS)
        super().__init__()
        self.app = on(run_screen(second_pass_assessed(), asked=self.broker, guard=self.guard))

    @property
    def decisions(self) -> list[tuple[str, str | None]]:
        return [(each.decision, each.feedback) for each in self.broker.decisions]

    async def next_question(self, digest: str = "d") -> None:
        """Let another question come in place of the one there is, as if that were decided elsewhere."""
        self.broker.request = ApprovalRequest(point="tool", pass_number=1, subject=CALL, digest=digest)
        await self.show()

    async def no_question(self) -> None:
        """Let the question go, as if it were decided elsewhere."""
        self.broker.request = None
        await self.show()

    async def show(self) -> None:
        screen = next(each for each in self.app.screen_stack if isinstance(each, RunScreen))
        screen.tick()
        await self.pilot.pause()
        await self.pilot.pause()


CALL = {"tool_name": "erase", "arguments": {"path": "notes.txt"}, "reason": "it needs approval"}


@asynccontextmanager
async def at_run(size: tuple[int, int] = SIZE) -> AsyncIterator[AtRun]:
    person = AtRun()
    async with person.app.run_test(size=size) as pilot:
        person.pilot = pilot
        await person.show()
        yield person


class AtWorkflow(Person):
    """Before a question of a workflow."""

    def __init__(self, asked: ApprovalRequest) -> None:
        super().__init__()
        self.app = app_on(at_a_gate(), live=True, asked=asked, guard=self.guard)

    @property
    def decisions(self) -> list[tuple[str, str | None]]:
        screen = next(each for each in self.app.screen_stack if isinstance(each, WorkflowScreen))
        assert screen._runner is not None
        made = screen._runner.broker._decision
        return [(made.decision, made.feedback)] if made is not None else []


@asynccontextmanager
async def at_workflow(asked: ApprovalRequest = GATE) -> AsyncIterator[AtWorkflow]:
    person = AtWorkflow(asked)
    async with person.app.run_test(size=SIZE) as pilot:
        person.pilot = pilot
        person.screen.tick()
        await pilot.pause()
        await pilot.pause()
        yield person


OTHER_KEYS = ["a", "e", "r", "c", "x", "q", "1", "8", "R", "n", "comma", "question_mark", "slash", "space", "tab",
              "X", "ctrl+p", "ctrl+q", "ctrl+c", "enter"]  # fmt: skip


@pytest.mark.parametrize("place", [at_run, at_workflow], ids=["run", "workflow"])
async def test_keys_in_the_first_half_second_do_nothing(
    place: Callable[[], Any],
) -> None:
    async with place() as person:
        screen, focused = person.screen, person.screen.focused
        for key in OTHER_KEYS:
            await person.type(key, every=0.45)
            assert (person.screen, person.screen.focused) == (screen, focused), key
            assert "too soon" in person.told
            assert "too soon" in person.drawn
        assert person.decisions == []
        assert person.app.is_running
        await person.read()
        await person.type("a")
        assert person.decisions == [("approve", None)]


@pytest.mark.parametrize("place", [at_run, at_workflow], ids=["run", "workflow"])
async def test_rejection_text_decides_nothing_after_closing_the_key_help(place: Callable[[], Any]) -> None:
    words = "the fields are bad, repeat and correct"
    async with place() as person:
        await person.read()
        await person.type("question_mark")
        assert isinstance(person.screen, KeysScreen)
        keys = {sign: key for key, sign in CHARACTERS.items()}
        await person.type("escape", "w", *(keys.get(each, each) for each in words), every=0.12)
        assert person.decisions == []
        assert person.panel.feedback == words
        await person.type("enter")
        assert person.decisions == [("reject", words)]


@pytest.mark.parametrize("before", sample([["question_mark"], [], ["comma"]]), ids=lambda keys: "".join(keys))
@pytest.mark.parametrize("place", [at_run, at_workflow], ids=["run", "workflow"])
async def test_escape_and_the_fields_key_may_arrive_as_one_key(place: Callable[[], Any], before: list[str]) -> None:
    async with place() as person:
        await person.read()
        await person.type(*before, "alt+w", *"some", "space", *"words", "space", *"arx", every=0.01)
        assert person.decisions == []
        assert person.panel.feedback == "some words arx"


async def test_escape_with_the_fields_key_leaves_the_abort_question() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("X", "alt+w", *"arx", every=0.01)
        assert (person.decisions, person.panel.feedback) == ([], "arx")


async def test_another_key_that_came_with_an_escape_answers_nothing() -> None:
    async with at_run() as person:
        await person.read()
        for key in ("alt+a", "alt+e", "alt+c", "alt+r"):
            await person.type("question_mark", key)
            assert isinstance(person.screen, KeysScreen)
            await person.type("escape", key)
        assert person.decisions == []
        assert person.panel.feedback == ""


async def test_closing_the_help_of_a_workflow_keeps_the_answers_enabled() -> None:
    async with at_workflow() as person:
        await person.read()
        await person.type("question_mark", "escape", "a", every=0.05)
        assert person.decisions == [("approve", None)]


async def test_closing_the_help_the_abort_question_or_the_field_keeps_the_answers_enabled() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("X")
        assert isinstance(person.screen, ConfirmDialog)
        await person.type("escape", "c", every=0.05)
        assert person.decisions == [("accept", None)]
        for number, keys in enumerate([("question_mark", "escape"), ("w", "x", "escape")]):
            await person.next_question(f"d{number}")
            await person.read()
            await person.type(*keys, "a", every=0.05)
            assert person.decisions[1:] == [("approve", None)] * (number + 1)


async def test_returning_from_another_screen_rearms_the_guard() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("comma")
        assert isinstance(person.screen, SettingsScreen)
        await person.type("escape", "a", every=0.05)
        assert person.decisions == []
        assert "'a' was too soon" in person.told


async def test_closing_the_help_over_a_new_question_arms_the_guard() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("question_mark")
        await person.next_question()
        person.now += 5
        await person.type("escape", "a", every=0.05)
        assert person.decisions == []


@pytest.mark.parametrize("asked", [GATE, BLOCKLISTED], ids=["gate", "blocklisted"])
async def test_a_workflows_field_opens_at_once_and_accepts_text(asked: ApprovalRequest) -> None:
    async with at_workflow(asked) as person:
        await person.type("w", *"adr", every=0.01)
        assert person.panel.feedback == "adr"
        await person.type("enter", every=0.01)
        assert person.decisions == []
        assert "'⏎' was too soon" in person.told


async def test_scrolling_is_never_swallowed() -> None:
    async with at_run((80, 14)) as person:
        text = person.panel.query_one(ApprovalText)
        places = [text.scroll_offset.y]
        for key in ("j", "down", "pagedown", "k", "up", "pageup", "end", "home"):
            await person.type(key, every=0.01)
            places.append(text.scroll_offset.y)
            assert places[-1] != places[-2], key
        wheel = MouseScrollDown(text, 1, 1, 0, 1, 0, False, False, False)
        text.post_message(wheel)
        await person.pilot.pause()
        assert text.scroll_target_y > places[-1]
        assert "not taken" not in person.told
        await person.type("a", every=0.5)
        assert person.decisions == [("approve", None)]


async def test_early_keys_move_over_a_workflows_choices_without_choosing() -> None:
    async with at_workflow(CEILING) as person:
        await person.type("down", "right", "l", "enter", every=0.01)
        assert person.decisions == []
        await person.read()
        await person.type("enter")
        assert person.decisions == [("approve", None)]


@pytest.mark.parametrize(
    "asked", [GATE, COMMAND, BLOCKLISTED, CEILING], ids=["gate", "command", "blocklisted", "choice"]
)
async def test_a_paste_decides_nothing_in_a_workflow(asked: ApprovalRequest) -> None:
    async with at_workflow(asked) as person:
        await person.read()
        await person.paste("a\nrun\n")
        await person.type("a", "enter", every=0.05)
        assert person.decisions == []


async def test_a_paste_decides_nothing_and_goes_into_an_open_field() -> None:
    async with at_run() as person:
        await person.read()
        await person.paste("approve\ra\n")
        assert "pasted text ignored" in person.told
        await person.type("c", every=0.1)
        assert person.decisions == []
        await person.type("w")
        await person.paste("a\rd\n")
        assert person.decisions == []
        assert person.panel.feedback == "a\nd"


@pytest.mark.exhaustive
async def test_a_key_that_is_held_down_answers_one_question() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("a")
        assert len(person.decisions) == 1
        await person.next_question()
        await person.type("a", every=0.66)
        await person.type(*["a"] * 40, every=0.03)
        assert len(person.decisions) == 1
        await person.read()
        await person.type("a")
        assert len(person.decisions) == 2


async def test_text_for_a_question_decided_elsewhere_is_not_for_the_next() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("w", *"name")
        first = person.panel
        await person.next_question()
        assert person.panel is not first
        await person.type(*"ceadr", "enter")
        assert person.decisions == []
        assert not person.panel.has_class("-words")
        assert "too soon" in person.told
        assert any("no longer open" in note.message for note in person.app._notifications)


async def test_text_for_a_question_decided_elsewhere_does_nothing() -> None:
    async with at_run() as person:
        await person.read()
        await person.type("w", *"name")
        await person.no_question()
        screen, focused = person.screen, person.screen.focused
        await person.type("q", "y", "comma", "n", "1", "3")
        assert (person.screen, person.screen.focused) == (screen, focused)
        assert any("too soon" in note.message for note in person.app._notifications)
        await person.read()
        await person.type("8")
        assert isinstance(person.screen.focused, LogPane)


async def test_a_pending_answer_does_not_answer_an_equal_next_question() -> None:
    async with at_run() as person:
        await person.read()
        screen, first = person.screen, person.panel
        person.broker.request = ApprovalRequest(point="tool", pass_number=1, subject=CALL, digest="d")
        screen.asking.decide(first, ApprovalDecision(decision="approve"))
        assert person.decisions == []
        await person.show()
        screen.asking.decide(first, ApprovalDecision(decision="approve"))
        assert person.decisions == []
        screen.asking.decide(person.panel, ApprovalDecision(decision="approve"))
        assert person.decisions == [("approve", None)]


async def test_a_question_keeps_typed_text_when_it_moves() -> None:
    async with at_run((120, 40)) as person:
        await person.read()
        await person.type("w", *"no")
        below = person.panel
        assert below.parent is person.screen
        await person.pilot.resize_terminal(160, 45)
        await until(person.pilot, lambda: person.panel is not below and person.panel.has_focus_within)
        assert person.screen.focused is person.panel.field
        plan = person.screen.query_one(PlanTree)
        assert person.panel.region.y == plan.region.y
        assert person.panel.region.x == plan.region.right
        assert person.panel.feedback == "no"
        await person.type("t", "enter", every=0.7)
        assert person.decisions == [("reject", "not")]


async def test_at_60_by_20_a_swallowed_key_is_shown_too() -> None:
    async with at_run((60, 20)) as person:
        await person.type("a")
        assert "'a' was too soon · wait a moment, then try again" in person.drawn
        await person.type("w", *"no", "enter")
        assert "'⏎' was too soon" in person.drawn


QUITTING = {"q", "ctrl+q", "ctrl+c"}
KEYS = st.sampled_from(
    [*(key for key in OTHER_KEYS if key not in QUITTING), "w", "w", "a", "a", "escape", "down", "j", *"adrc"]
)
GAPS = st.sampled_from([0.0, 0.05, 0.2, 0.49, 0.5, 0.7, 1.5])


class TypingAtQuestions(RuleBasedStateMachine):
    """A person types anything at any time, while questions come and go.

    What must hold follows from the times alone, without the guard: a decision has a key that came half a second after
    the question, and half a second of silence between it and the last swallowed one.
    """

    loop: ClassVar[asyncio.Runner]
    person: ClassVar[AtRun]
    """One app for all examples: to start one takes longer than to type."""

    def __init__(self) -> None:
        super().__init__()
        self.presses: list[tuple[float, bool]] = []
        """When a key was pressed, and whether it was swallowed."""
        self.asked_at = 0.0

    @initialize()
    def begin(self) -> None:
        self.person.now += 10.0
        self.ask(0.0, "d")

    @property
    def is_at_question(self) -> bool:
        return self.person.broker.request is not None

    @precondition(lambda self: self.is_at_question)
    @rule(key=KEYS, gap=GAPS)
    def press(self, key: str, gap: float) -> None:
        person, before = self.person, self.person.screen
        in_field = isinstance(before.focused, FeedbackField)
        text = before.focused.text if isinstance(before.focused, FeedbackField) else ""
        decided = len(person.decisions)
        was_swallowed = KeysSwallowed(person)
        self.loop.run(person.type(key, every=gap))
        if not isinstance(before, RunScreen):
            self.leave_other_screens()
            return
        swallowed = was_swallowed()
        self.presses.append((person.now, swallowed))
        if len(person.decisions) > decided:
            assert person.now - self.asked_at >= SILENCE_SECONDS
            assert self.was_silent_since_the_last_swallowed_key()
            assert not (in_field and key != "enter"), "text has decided"
        if swallowed:
            assert key not in ("w", "escape", "down", "j")
            assert person.screen is before
        if key == "w" and in_field:
            assert person.screen.focused.text == f"{text}w"
        self.leave_other_screens()

    def was_silent_since_the_last_swallowed_key(self) -> bool:
        times = [at for at, _ in self.presses]
        last = max((n for n, (_, swallowed) in enumerate(self.presses) if swallowed), default=None)
        return last is None or any(
            b - a >= SILENCE_SECONDS for a, b in zip(times[last:], times[last + 1 :], strict=False)
        )

    def leave_other_screens(self) -> None:
        """Close what a key has opened, if it did: that makes no question new, unless it was a whole screen."""
        while not isinstance(self.person.screen, RunScreen):
            self.person.app.pop_screen()
            self.loop.run(self.person.pilot.pause())

    @rule(gap=GAPS, digest=st.sampled_from(["d", "e"]))
    def ask(self, gap: float, digest: str) -> None:
        self.person.now += gap
        self.loop.run(self.person.next_question(digest))
        self.asked_at = self.person.now

    @precondition(lambda self: self.is_at_question)
    @rule(text=st.sampled_from(["a", "a\n", "\r", "run\nenter"]))
    def paste(self, text: str) -> None:
        decided = len(self.person.decisions)
        self.loop.run(self.person.paste(text))
        assert len(self.person.decisions) == decided

    @invariant()
    def the_app_runs(self) -> None:
        assert self.person.app.is_running


class KeysSwallowed:
    """Tells afterwards whether the guard swallowed what was typed in between."""

    def __init__(self, person: AtRun) -> None:
        self._person, self._seen = person, list[bool]()
        admits = person.guard.admits

        def watched(key: str, at: float, *, harmless: bool = False) -> bool:
            taken = admits(key, at, harmless=harmless)
            self._seen.append(taken)
            return taken

        person.guard.admits = watched  # type: ignore[method-assign]
        self._admits = admits

    def __call__(self) -> bool:
        self._person.guard.admits = self._admits  # type: ignore[method-assign]
        return False in self._seen


class TestTypingAtQuestions(TypingAtQuestions.TestCase):  # type: ignore[misc]  # made by hypothesis
    settings = settings(
        max_examples=5, stateful_step_count=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
    )

    @classmethod
    def setUpClass(cls) -> None:
        TypingAtQuestions.loop, TypingAtQuestions.person = asyncio.Runner(), AtRun()
        person, run = TypingAtQuestions.person, TypingAtQuestions.loop.run
        cls.app = person.app.run_test(size=SIZE)
        person.pilot = run(cls.app.__aenter__())
        run(person.show())

    @classmethod
    def tearDownClass(cls) -> None:
        TypingAtQuestions.loop.run(cls.app.__aexit__(None, None, None))
        TypingAtQuestions.loop.close()
