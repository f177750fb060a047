"""An app without runs says so, offers what works then, and what makes a model usable."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from aeon_core.config.loading import LoadedConfig
from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import OpenJournalDialog
from aeon_tui.screens.keys import KeyColumns
from aeon_tui.screens.new_run import NewRunScreen
from aeon_tui.screens.onboarding import Onboarding
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import DEMO_MODEL, DEMO_TASK
from aeon_widgets.footer import KeyFooter
from tests.aeon_tui.compared import written
from tests.aeon_tui.recordings import finished_run
from tests.waiting import PATIENCE, until


@asynccontextmanager
async def first(tmp_path: Path, config: RunConfig | None = None) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(tmp_path / "runs", today=lambda: LoadedConfig(config or RunConfig()))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query("Onboarding #welcome"))
        await until(pilot, lambda: isinstance(app.focused, Onboarding))
        yield app, pilot
        for runner in app.sessions.all:
            runner.abort()
            runner.wait(PATIENCE)


def models(app: AeonApp) -> str:
    return "".join(str(shown.render()) for shown in app.screen.query("#models").results(Static))


async def test_enter_starts_the_demo(tmp_path: Path) -> None:
    async with first(tmp_path) as (app, pilot):
        assert "No runs yet." in str(app.screen.query_one("#welcome", Static).render())
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert app.sessions.all
        assert (app.sessions.all[-1].job.task, app.sessions.all[-1].job.config.model) == (DEMO_TASK, DEMO_MODEL)
        assert app.sessions.all[-1].job.config.approve == ["pass", "tool"]
        assert app.sessions.all[-1].job.guide.startswith("Simulated model, no key.")


async def test_lines_wrap_under_their_words_where_there_is_little_room(tmp_path: Path) -> None:
    async with first(tmp_path) as (app, pilot):
        await until(pilot, lambda: "AWS_REGION" in models(app))
        await pilot.resize_terminal(40, 40)
        await until(pilot, lambda: "\n    Bedrock: set" in models(app), lambda: models(app))
        shown = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
        assert re.search(r"→ no AWS region for Amazon +\n {6}Bedrock: set", shown), shown
        assert re.search(r"Start the demo +simulat\S*…", shown), shown


async def test_the_key_help_names_scrolling_in_sentence_case(tmp_path: Path) -> None:
    async with first(tmp_path) as (app, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen.query(KeyColumns))
        labels = app.screen.query_one(KeyColumns).text
        assert "↑ Scroll up" in labels
        assert "Scroll U" not in labels
        assert "Page U" not in labels


async def test_the_keys_offered_are_those_that_do_something_and_a_journal_elsewhere_opens(tmp_path: Path) -> None:
    elsewhere = written(tmp_path, "elsewhere", finished_run())
    (tmp_path / "notes.txt").write_text("not a journal\n")
    async with first(tmp_path) as (app, pilot):
        offered = [key.description for key in app.screen.query_one(KeyFooter).keys]
        assert offered == ["Start the demo", "New run", "Quit", "Help", "Palette"]
        await pilot.press("slash", "v", "m", "x", "ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, OpenJournalDialog) and app.screen.query("#problem"))
        field, problem = app.screen.query_one(Input), app.screen.query_one("#problem", Static)
        for name, why in (("gone.jsonl", "does not exist"), ("notes.txt", "is not a journal")):
            field.value = str(tmp_path / name)
            await pilot.press("enter")
            await until(pilot, lambda why=why: problem.display and why in str(problem.content))  # type: ignore[misc]
            await until(pilot, lambda: "\n  " in str(problem.render()), "it wraps under its words")
            assert field.value == str(tmp_path / name)
        field.value = "pasted by mistake " * 500
        await pilot.press("enter")
        await until(pilot, lambda: "pasted" in str(problem.content) and problem.region.height > 1)
        assert "too long" in str(problem.content)
        assert field.region.height
        assert problem.region.bottom < app.size.height
        field.value = str(elsewhere)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert app.screen.chosen_run == elsewhere  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("button", "screen"),
    [("#start-demo", RunScreen), ("#start-new", NewRunScreen), ("#start-open", OpenJournalDialog)],
)
async def test_each_action_can_be_clicked(tmp_path: Path, button: str, screen: type) -> None:
    async with first(tmp_path) as (app, pilot):
        await until(pilot, lambda: app.screen.query_one(button).region)
        await pilot.click(button)
        await until(pilot, lambda: isinstance(app.screen, screen))


async def test_pressing_n_asks_for_a_task(tmp_path: Path) -> None:
    async with first(tmp_path) as (app, pilot):
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))


async def test_without_a_model_each_provider_shows_its_setup_step(tmp_path: Path) -> None:
    async with first(tmp_path) as (app, pilot):
        await until(pilot, lambda: models(app))
        assert "No model is configured. Set one with AEON_MODEL, or press , for the settings" in models(app)
        assert "✖ anthropic    no key\n  → set ANTHROPIC_API_KEY" in models(app)
        assert "simulated:" not in models(app)


async def test_a_configured_model_is_reported(tmp_path: Path) -> None:
    async with first(tmp_path, RunConfig(model="simulated:default")) as (app, pilot):
        await until(pilot, lambda: models(app))
        assert models(app).startswith("Your model\n✔ simulated:default configured")


async def test_an_unusable_configuration_is_reported(tmp_path: Path) -> None:
    def broken() -> LoadedConfig:
        raise UsageError("the config file 'x' is no YAML")

    app = AeonApp(tmp_path / "runs", today=broken)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.screen.query(Onboarding) and models(app))
        assert models(app) == "✖ the config file 'x' is no YAML"
