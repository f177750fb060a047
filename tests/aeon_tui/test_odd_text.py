"""Whatever a task, a model or a tool says: no screen breaks, no line shifts, and nothing steers the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from textual.pilot import Pilot

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.run.screen import RunScreen
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.odd_texts import ODD, ODD_TEXTS, problems_of
from tests.aeon_tui.passes import Passes, issue, step
from tests.aeon_tui.screens.browser.test_screen import summary
from tests.aeon_tui.states import Asked, runner_that_asks
from tests.sampling import sample

LONG_LINE = "".join(ODD) * 180
"""More than 100,000 characters without a line break that is not odd itself."""


def odd_run(text: str) -> Passes:
    """A run with the text in every place for one."""
    run = Passes(text)
    run.records[0].update(model=text, run=text, simulated=True)
    run.phase("plan")
    run.ask("profile", prompt=text)
    run.answer("profile", text)
    run.profile(1, 1, 9, text)
    first = step(f"a{text}", text, tool=text, arguments={text: text}, errors=[text])
    run.plan(first, step(f"b{text}", text, replaces=f"a{text}"), step("c", text))
    run.notice("questions", {"questions": [text]})
    run.notice("manual_intervention", {"step_id": f"a{text}", "cause": text, "reason": text, "attempts": 1})
    run.ask("tool_call", f"a{text}", text)
    run.answer("tool_call", text, f"a{text}")
    run.step(f"a{text}", "running")
    run.tool(f"a{text}", text, {text: text}, {text: text})
    run.step(f"a{text}", "complete", mode="tool", output={"text": text})
    run.step("c", "failed", output={text: [text]}, errors=[text])
    run.repair({"text": text}, {"text": text}, f"a{text}", "json_repair")
    run.report(issue(f"a{text}", kind=text, description=text, proposed_repair=text), issue(None, "low"))
    run.refine(f"a{text}", before=[first], after=[first], explanation=text, action={"reason": text})
    run.refine("c", accepted=False, explanation=text)
    run.assess(0.1, 0.1, text or "incomplete")
    run.add("notice", kind="model_fallback", message=text, data={"model": text}, **{"pass": 1})
    return run


def finished(run: Passes, text: str) -> Passes:
    run.finish("not_converged", answer=text, follow_up_questions=[text])
    return run


def subject(text: str) -> dict[str, Any]:
    return {
        "tool_name": text,
        "arguments": {"file_path": text, "old_string": text, "new_string": f"{text}\n", text: text},
        "description": text,
        "reason": text,
        "feedback": text,
    }


class OneApp:
    """An app that stays open while its screens come and go: opening one for each text would take too long."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.app = AeonApp(Path("runs"))
        self.app.first_screen = BrowserScreen(Path("runs"), lambda directory: [])
        self._loop = asyncio.Runner()
        self._test = self.app.run_test(size=size)
        self.pilot: Pilot[None] = self._loop.run(self._test.__aenter__())

    def close(self) -> None:
        self._loop.run(self._test.__aexit__(None, None, None))
        self._loop.close()

    def problems(self, screen: Any, *keys: str) -> list[str]:
        """Open a screen, press each key and return what was wrong with any picture of it."""
        return self._loop.run(self._problems(screen, keys))

    async def _problems(self, screen: Any, keys: tuple[str, ...]) -> list[str]:
        await self.app.push_screen(screen)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        if isinstance(screen, RunScreen):
            screen.tick()
            await self.pilot.pause()
        found = problems_of(self.app)
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()
            found += problems_of(self.app)
        self.app.clear_notifications()
        while len(self.app.screen_stack) > 1:
            await self.app.pop_screen()
        return found


@pytest.fixture(params=[(60, 24), (113, 40)], ids=["60x24", "113x40"])
def one_app(request: pytest.FixtureRequest) -> Iterator[OneApp]:
    app = OneApp(request.param)
    yield app
    app.close()


TABS = ("1", "home", "down", "o", "p", "t", "r", "c", "5", "4", "6", "7", "3", "8")


@pytest.mark.exhaustive
def test_every_pane_draws_any_text(one_app: OneApp) -> None:
    @settings(max_examples=3)
    @given(ODD_TEXTS)
    def draws(text: str) -> None:
        run = RunScreen(ListSource(finished(odd_run(text), text).records))
        assert one_app.problems(run, *TABS) == []

    draws()


@pytest.mark.parametrize("text", sample(["", "\n", LONG_LINE, "\n".join(ODD)]))
def test_every_pane_draws_the_oddest_text(one_app: OneApp, text: str) -> None:
    run = RunScreen(ListSource(finished(odd_run(text), text).records))
    assert one_app.problems(run, *TABS) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", ["", LONG_LINE, "\n".join(ODD)], ids=["empty", "long", "all"])
def test_a_question_draws_any_text(one_app: OneApp, text: str) -> None:
    asked = Asked("tool", subject(text))
    run = RunScreen(ListSource(odd_run(text).records, live=True), runner_that_asks(asked))
    assert one_app.problems(run, "pagedown", "end", "z", "z") == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("text", ["", LONG_LINE, "\n".join(ODD)], ids=["empty", "long", "all"])
def test_the_list_of_runs_draws_any_text(one_app: OneApp, text: str) -> None:
    runs = [summary(number, f"{text[number:]}", path=f"{number}") for number in range(20)]
    browser = BrowserScreen(Path(f"runs/{text[:50]}".replace("\x00", "")), lambda directory: runs)
    assert one_app.problems(browser, "down", "slash", "a", "escape") == []
