"""A reply draws what it becomes while it arrives: steps, changes and verdicts, and never its own text."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from aeon_core.config.schema import RunConfig
from aeon_tui.app import AeonApp
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepPane, StepText
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.passes import Passes, first_pass
from tests.aeon_tui.recordings import START

PLAN = {
    "goal": "a design",
    "steps": [
        {"id": "s1", "parent": None, "description": "Name the parts"},
        {"id": "s2", "parent": None, "description": "Describe them"},
        {"id": "s2.1", "parent": "s2", "description": "The first"},
    ],
}
CHANGES = {
    "actions": [
        {"type": "step_modify", "target": "s2", "changes": {"steps": [{"id": "s2", "description": "Say it"}]}},
        {"type": "step_remove", "target": "s1", "changes": {}, "reason": "not needed"},
        {"type": "step_add", "target": "plan", "changes": {"steps": [{"id": "s4", "description": "Check"}]}},
    ]
}
VERDICT = {"requirements": [{"n": 1, "evidence": "parts", "met": "yes"}, {"n": 2, "evidence": "", "met": "no"}]}


class Written:
    """A run's screen, and the reply that is being written to it."""

    def __init__(self, screen: RunScreen, runner: Runner) -> None:
        self.screen, self.stream = screen, runner.stream

    def write(self, purpose: str, text: str, step_id: str | None = None) -> None:
        """Let a piece of a reply arrive, and the next frame come."""
        self.stream.add(purpose, step_id, text)
        self.screen.tick()

    @property
    def rows(self) -> list[str]:
        tree = self.screen.query_one(PlanTree)
        return ["".join(text for text, _ in tree.pieces(at, 60)).rstrip() for at in range(tree.line_count)]

    @property
    def step(self) -> list[str]:
        return self.screen.query_one(StepText).text.splitlines()

    @property
    def all(self) -> str:
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())


@asynccontextmanager
async def written(run: Passes) -> AsyncIterator[Written]:
    app = AeonApp(Path("runs"))
    runner = Runner(NewRunJob("task", RunConfig()), Path("runs/r.jsonl"))
    source = ListSource(run.records, live=True)
    screen = app.first_screen = RunScreen(source, runner, clock=lambda: START + timedelta(seconds=100))
    async with app.run_test(size=(140, 45)) as pilot:
        screen.tick()
        await pilot.pause()
        yield Written(screen, runner)


def halves(value: Any, cut: str) -> tuple[str, str]:
    """Return JSON in two parts, the first of which ends with a text."""
    text = json.dumps(value)
    end = text.index(cut) + len(cut)
    return text[:end], text[end:]


async def test_draft_steps_appear_as_they_arrive_and_go_with_the_reply() -> None:
    run = Passes()
    run.ask("plan")
    async with written(run) as shown:
        first, rest = halves(PLAN, "Desc")
        shown.write("plan", first)
        assert shown.rows[:2] == [" ○ s1 Name the parts", " ○ s2 Desc"]
        assert shown.rows[2].startswith(" ▸ pass 1 ▶ make the plan")
        assert shown.step[2:] == ["○ s1 Name the parts", "○ s2 Desc", "Writing the plan …"]
        shown.write("plan", rest)
        assert shown.rows[1:3] == [" ○ s2 Describe them", "   ○ s2.1 The first"]
        assert "{" not in shown.all
        shown.stream.clear()
        shown.screen.tick()
        assert len(shown.rows) == 1


async def test_proposed_changes_are_ghosts_next_to_the_steps_that_they_change() -> None:
    run = first_pass()
    run.ask("refine")
    async with written(run) as shown:
        first, rest = halves(CHANGES, "Say")
        shown.write("refine", first)
        assert shown.rows[2] == "   ~ s2 Say"
        shown.write("refine", rest)
        assert [line.split()[:2] for line in shown.rows[:7]] == [
            ["✔", "s1"], ["−", "s1"], ["✔", "s2"], ["~", "s2"], ["✔", "s3"], ["○", "s4"], ["▸", "pass"],
        ]  # fmt: skip
        assert shown.step[-4:] == ["~ s2 Say it", "− s1 not needed", "+ s4 Check", "Writing the changes …"]


async def test_requirements_are_ticked_as_the_judge_writes() -> None:
    run = first_pass()
    run.ask("judge")
    async with written(run) as shown:
        pane = shown.screen.query_one(ConvergencePane)
        first, rest = halves(VERDICT, '"yes"')
        shown.write("judge", first)
        assert pane.pane_title == "Convergence · judging"
        assert [line[0] for line in pane.text.split("\n\n")[0].splitlines() if line[0] in "✔✖□"] == ["✔", "□", "□"]
        shown.write("judge", rest)
        assert [line[0] for line in pane.text.split("\n\n")[0].splitlines() if line[0] in "✔✖□"] == ["✔", "✖", "□"]
        shown.stream.clear()
        shown.screen.tick()
        assert pane.pane_title == "Convergence · pass 1: not yet"


async def test_unreadable_text_is_one_line_and_earlier_steps_stay() -> None:
    run = Passes()
    run.ask("plan")
    async with written(run) as shown:
        shown.write("plan", "I think {steps: ")
        assert shown.step[2:] == ["Writing the plan …"]
        shown.stream.clear()
        shown.screen.tick()
        first, rest = halves(PLAN, "Name the parts")
        shown.write("plan", first)
        shown.write("plan", rest + " and that is {all")
        assert shown.rows[0] == " ○ s1 Name the parts"


async def test_the_call_row_shows_seconds_and_speed_and_the_title_the_speed() -> None:
    run = Passes()
    run.ask("plan")
    async with written(run) as shown:
        shown.stream._now = iter([5.0, *[7.0] * 50]).__next__
        shown.write("plan", "x" * 80)
        shown.screen.show_rest()
        assert shown.screen.query_one(StepPane).pane_title == "Make the plan · 10 tokens/s"
        assert re.search(r" \d+ s 10 tokens/s$", shown.rows[-1])
