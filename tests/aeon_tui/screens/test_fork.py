"""The dialog of a fork: where it starts, what it changes, what may be wrong, and that nothing typed is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from aeon_core.plan.files import PlanEdit
from aeon_tui.app import AeonApp
from aeon_tui.messages import Start
from aeon_tui.screens.fork import ForkDialog, Parent, StartChoice
from aeon_tui.sessions.fork_job import ForkEdits, ForkRequest
from tests.waiting import until

PATH = Path("20261120-093000-a1b2c3.jsonl")
PARENT = Parent(PATH, "simulated:default", 50, 3)


@pytest.fixture(autouse=True)
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


def text_of(path: Path, pass_number: int) -> str:
    assert path == PATH
    return f"requirements:\n- The sum of pass {pass_number} is there\ncriteria:\n  completeness: 0.8\n"


class Forks(AeonApp):
    """Keeps what is asked of it."""

    def __init__(self) -> None:
        super().__init__(Path("runs"))
        self.asked: list[Start] = []

    def on_start(self, message: Start) -> None:
        self.asked.append(message)


class Asked:
    """The dialog, and what it asks for."""

    def __init__(self, pilot: Pilot[None], app: Forks, dialog: ForkDialog) -> None:
        self.pilot, self.app, self.dialog = pilot, app, dialog

    @property
    def problem(self) -> str:
        shown = self.dialog.query_one("#problem", Static)
        return str(shown.content) if shown.display else ""

    @property
    def text_problems(self) -> str:
        return str(self.dialog.query_one("#problems", Static).content)

    @property
    def text(self) -> TextArea:
        return self.dialog.query_one(TextArea)

    async def reads(self, pass_number: int) -> None:
        await until(self.pilot, lambda: f"pass {pass_number} " in self.text.text)

    async def request(self, *keys: str) -> ForkRequest:
        before = len(self.app.asked)
        await self.pilot.press(*keys)
        await until(self.pilot, lambda: len(self.app.asked) > before)
        return self.app.asked[-1].request


@asynccontextmanager
async def asked(start: int | None = None) -> AsyncIterator[Asked]:
    app = Forks()
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = ForkDialog(PARENT, start, text_of)
        app.push_screen(dialog)
        await until(pilot, lambda: bool(dialog.query(TextArea)) and not dialog.query_one(TextArea).read_only)
        yield Asked(pilot, app, dialog)


async def test_a_fork_starts_at_the_shown_or_chosen_moment() -> None:
    async with asked(2) as fork:
        assert "◂ pass 2 ▸" in fork.dialog.query_one(StartChoice).render().plain
        assert await fork.request("enter") == ForkRequest(PATH, 2, {})
        fork.app.asked[-1].answered("the model is not there")
        assert (fork.problem, fork.app.screen) == ("✖ the model is not there", fork.dialog)
        await fork.pilot.press("right", "right", "right")
        await fork.reads(3)
        assert await fork.request("enter") == ForkRequest(PATH, 3, {})
        fork.app.asked[-1].answered("no")
        await fork.pilot.press("left", "[")
        await fork.reads(1)
        assert fork.dialog.query_one(StartChoice).render().plain == "  pass 1 ▸"
        await fork.request("enter")
        fork.app.asked[-1].answered(None)
        await until(fork.pilot, lambda: fork.app.screen is not fork.dialog)


async def test_the_arrows_can_be_clicked_and_a_digit_is_the_number_of_a_pass() -> None:
    async with asked(2) as fork:
        choice = fork.dialog.query_one(StartChoice)
        await until(fork.pilot, lambda: choice.region.height > 0)
        for x, number in ((9, 3), (9, 3), (0, 2), (4, 2), (30, 2), (0, 1), (0, 1)):
            await fork.pilot.click(StartChoice, offset=(x, 0))
            assert choice.number == number
        await fork.pilot.press("2")
        assert choice.number == 2


async def test_keys_that_arrive_together_with_tab_are_for_the_next_field_and_the_editor_keeps_its_tab() -> None:
    async with asked(2) as fork:
        for key, character in (("tab", "\t"), *zip("x:y", "x:y", strict=True), ("tab", "\t"), ("9", "9")):
            fork.app.post_message(Key(key, character))
        fields = [fork.dialog.query_one(field, Input) for field in ("#model", "#ttl")]
        await until(fork.pilot, lambda: [field.value for field in fields] == ["x:y", "9"])
        fork.text.focus()
        await fork.pilot.press("ctrl+home", "tab")
        assert (fork.app.focused, fork.text.text[:4]) == (fork.text, "  re")


@pytest.mark.parametrize("key", ["ctrl+s", "escape"])
async def test_a_key_that_arrives_before_the_dialog_is_composed_acts_once_it_is(key: str) -> None:
    app = Forks()
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = ForkDialog(PARENT, None, text_of)
        app.push_screen(dialog)
        app.post_message(Key(key, None))
        await until(pilot, lambda: bool(app.asked) or app.screen is not dialog)
        assert (bool(app.asked), app.screen is dialog) == ((True, True) if key == "ctrl+s" else (False, False))


async def test_an_error_is_one_line_and_keeps_the_typed_text() -> None:
    async with asked(9) as fork:
        assert fork.dialog.query_one(StartChoice).number == 3
        assert "The run ended here" in str(fork.dialog.query_one("#hint", Static).content)
        for field, typed, problem in (
            ("model", "nobody:x", "has an unknown provider"),
            ("ttl", "-", "TTL must be a whole number of cycles, 0 or more; got '-'"),
            ("ttl", " ", "TTL is empty, expected a whole number"),
            ("budget", "much", "Budget"),
        ):
            widget = fork.dialog.query_one(f"#{field}", Input)
            before, widget.value = widget.value, typed
            await fork.pilot.press("ctrl+s")
            assert problem in fork.problem
            assert "\n" not in fork.problem
            assert widget.value == typed
            widget.value = before
        for text, problems in (
            ("goal: [x\nsteps: 3\n", ["line 2: did not find expected ',' or ']'"]),
            ("- 1", ["the text is not a plan: expected `goal:` and `steps:`, as they were"]),
            ("requirements: []", ["line 1: requirements: expected a list of one sentence or more, got an empty array"]),
            ("goal: x\ncriteria:\n  completeness: 7", ["line 3: 'completeness' in the criteria must be a number"]),
            (
                "goal: x\nsteps:\n- step_id: s1\n  description: 3\n- step_id: s2\n  description: 4\n",
                ["line 4: steps[0].description: expected a string", "line 6: steps[1].description: expected a string"],
            ),
        ):
            fork.text.load_text(text)
            await fork.pilot.press("ctrl+s")
            await until(fork.pilot, lambda problems=problems: problems[0] in fork.text_problems)
            assert all(each in fork.text_problems for each in problems)
            assert "/tmp" not in fork.text_problems
            assert (fork.text.text, fork.text.has_focus) == (text, True)
            if line := problems[0].removeprefix("line ").partition(":")[0]:
                assert fork.text.cursor_location[0] == (int(line) - 1 if line.isdecimal() else 0)
        assert fork.app.asked == []
        await fork.pilot.press("escape", "escape")
        assert (fork.app.screen, fork.text.text) == (fork.dialog, text), "it asks before it discards what was typed"
        await fork.pilot.press("escape", "y")
        await until(fork.pilot, lambda: fork.app.screen is not fork.dialog)


async def test_escape_asks_before_it_discards_a_field() -> None:
    async with asked() as fork:
        for field in ("model", "ttl", "budget"):
            widget = fork.dialog.query_one(f"#{field}", Input)
            before, widget.value = widget.value, "7"
            await fork.pilot.press("escape", "escape")
            assert (fork.app.screen, widget.value) == (fork.dialog, "7")
            widget.value = before
        await fork.pilot.press("escape")
        await until(fork.pilot, lambda: fork.app.screen is not fork.dialog)


async def test_the_fork_is_requested_with_every_changed_field() -> None:
    async with asked(2) as fork:
        await fork.reads(2)
        for field, typed in (("model", "simulated:missing-tool"), ("ttl", "60"), ("budget", "1.5")):
            fork.dialog.query_one(f"#{field}", Input).value = typed
        fork.text.load_text("requirements:\n- It is short\ncriteria:\n  completeness: 0.8\n")
        await fork.pilot.press("right")
        request = await fork.request("ctrl+s")
        assert request.options == {"model": "simulated:missing-tool", "ttl": 60, "budget": 1.5}
        assert (request.pass_number, request.edits) == (3, ForkEdits(PlanEdit(None, ["It is short"])))
        assert fork.text.text.startswith("requirements:\n- It is short"), "another start takes nothing of it away"


async def test_an_enter_typed_ahead_forks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    async with asked() as fork:
        await fork.pilot.press("enter")
        assert fork.app.screen is fork.dialog
        assert fork.app.asked == []
