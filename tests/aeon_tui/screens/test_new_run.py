"""A new run from the app: filled in, checked as it is typed, started, and never lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.containers import VerticalScroll
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input, Static

from aeon_core.config.loading import LoadedConfig
from aeon_core.config.schema import RunConfig
from aeon_core.errors import AeonError, UsageError
from aeon_core.llm import PROVIDERS
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.new_run import ModelList, NewRunScreen, TaskArea, Tick, model_choices
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunForm, new_run_of
from aeon_widgets.pane import Problem
from tests.waiting import PATIENCE, until

FILLED = NewRunForm(task="add 5 and 10", model="simulated:default", ttl="20", approve=("pass",))
TODAY = LoadedConfig(
    RunConfig(model="simulated:default", tools=["files", "own.tools:TOOLS"], budget=0.5), {"model": "a file"}
)


@pytest.mark.parametrize(
    ("changes", "field", "problem"),
    [
        ({"task": " \n"}, "task", "describe the task"),
        ({"model": ""}, "model", "choose one below, or type PROVIDER:NAME"),
        (
            {"model": "nope:x"},
            "model",
            f"'nope:x' has an unknown provider; the known ones are {', '.join(PROVIDERS)}",
        ),
        ({"model": "antropic:x"}, "model", "'antropic:x' has an unknown provider; did you mean 'anthropic'?"),
        ({"model": "openai:"}, "model", "'openai:' has no name; write openai:NAME"),
        ({"model": "simulated:default, openai"}, "model", "'openai' has no name; write openai:NAME"),
        ({"ttl": "x"}, "ttl", "TTL must be a whole number of cycles, 0 or more; got 'x'"),
        ({"ttl": "-1"}, "ttl", "TTL must be a whole number of cycles, 0 or more; got '-1'"),
        ({"budget": "1 $"}, "budget", "Budget must be an amount in US dollars, 0 or more; got '1 $'"),
    ],
)
def test_each_field_shows_its_error_in_one_line(changes: dict[str, Any], field: str, problem: str) -> None:
    assert replace(FILLED, **changes).problems() == {field: problem}


def test_the_form_becomes_the_run() -> None:
    form = replace(FILLED, budget="0.25", tools=("files",), single_pass=True, approve=(), task=" add 5 and 10\n")
    job = form.job(lambda: LoadedConfig(RunConfig(timeout=7, tools=["shell"])), Path())
    job.prepare()
    assert job.tools is not None
    assert "Read" in [tool.name for tool in job.tools]
    job.discard()
    config = job.config
    assert (job.task, config.model, config.ttl, config.budget) == ("add 5 and 10", "simulated:default", 20, 0.25)
    assert (config.tools, config.approve, config.single_pass, config.timeout) == (["files"], ["none"], True, 7)


def test_several_models_are_used_one_after_the_other() -> None:
    form = replace(FILLED, model="simulated:flaky, simulated:default")
    job = form.job(lambda: LoadedConfig(RunConfig()), Path())
    assert job.config.models == ["simulated:flaky", "simulated:default"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"model": "anthropic:x"}, "ANTHROPIC_API_KEY"),
        ({"model": "simulated:nobody"}, "nobody"),
        ({"tools": ("no.such:TOOLS",)}, "no.such"),
        ({"criteria": "missing.yml"}, "missing.yml"),
        ({"task": ""}, "describe the task"),
    ],
)
def test_invalid_input_is_an_error_before_anything_starts(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(AeonError, match=problem):
        replace(FILLED, **changes).job(lambda: LoadedConfig(RunConfig()), Path()).prepare()


def test_the_form_starts_with_the_configured_values() -> None:
    assert new_run_of(TODAY) == NewRunForm(
        model="simulated:default", ttl="50", budget="0.5", approve=("pass", "tool"), tools=("files", "own.tools:TOOLS")
    )
    configured = LoadedConfig(RunConfig(approve=["none"]), {"approve": "a file"})
    assert new_run_of(configured).approve == ()


def test_models_are_listed_with_what_makes_them_usable() -> None:
    choices = model_choices(RunConfig(model=["anthropic:x", "simulated:flaky"]))
    assert [(each.name, each.usable) for each in choices[:3]] == [
        ("anthropic:x", False),
        ("simulated:flaky", True),
        ("simulated:default", True),
    ]
    assert "ANTHROPIC_API_KEY" in choices[0].step
    steps = {each.name: each.step for each in choices}
    assert steps["openai:"] == "set OPENAI_API_KEY, or --base-url for a local server"


def test_a_provider_with_a_key_accepts_typed_model_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s" + "k-x")
    first = model_choices(RunConfig())[0]
    assert (first.name, first.usable) == ("openai:", True)
    assert "sk-x" not in first.about


@asynccontextmanager
async def filling_in(
    tmp_path: Path, today: LoadedConfig = TODAY, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(tmp_path / "runs", today=lambda: today)
    async with app.run_test(size=size) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        await until(pilot, lambda: app.screen.query_one(ModelList).line_count)
        yield app, pilot
        for runner in app.sessions.all:
            runner.abort()
            runner.wait(PATIENCE)


def problem(app: AeonApp, field: str) -> str:
    return str(app.screen.query_one(f"#problem-{field}", Problem).content)


async def test_a_run_is_started_with_the_keyboard_alone(tmp_path: Path) -> None:
    plain = LoadedConfig(RunConfig(model="simulated:default"))
    async with filling_in(tmp_path, plain) as (app, pilot):
        await pilot.press(*"add 5 and 10", "f5")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert app.sessions.all
        assert app.sessions.all[-1].job.task == "add 5 and 10"
        assert app.sessions.all[-1].job.config.approve == ["pass", "tool"]
        assert app.actions.draft is None
        assert not any(isinstance(screen, NewRunScreen) for screen in app.screen_stack)


async def test_keys_that_arrive_together_with_tab_are_for_the_next_field(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        app.screen.query_one("#ttl", Input).focus()
        await pilot.pause()
        for key, character in (("tab", "\t"), ("9", "9"), ("shift+tab", None), ("8", "8")):
            app.post_message(Key(key, character))
        fields = [app.screen.query_one(field, Input) for field in ("#ttl", "#budget")]
        await until(pilot, lambda: [field.value for field in fields] == ["508", "0.59"])


async def test_the_list_of_models_uses_the_spare_height(tmp_path: Path) -> None:
    async with filling_in(tmp_path, LoadedConfig(RunConfig()), size=(140, 45)) as (app, pilot):
        models = app.screen.query_one(ModelList)
        await until(pilot, lambda: models.size.height == min(20, len(models.rows)))
        form = app.screen.query_one(VerticalScroll)
        assert form.max_scroll_y == 0
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: models.size.height == 5)


async def test_a_model_is_chosen_with_one_click(tmp_path: Path) -> None:
    async with filling_in(tmp_path, LoadedConfig(RunConfig())) as (app, pilot):
        models = app.screen.query_one(ModelList)
        names = [str(line.name) for line in models.rows]
        await pilot.click(ModelList, offset=(6, names.index("simulated:default")))
        await pilot.pause()
        assert app.screen.query_one("#model", Input).value == "simulated:default"


async def test_an_unusable_model_shows_how_to_make_it_usable(tmp_path: Path) -> None:
    async with filling_in(tmp_path, LoadedConfig(RunConfig())) as (app, pilot):
        models = app.screen.query_one(ModelList)
        models.focus()
        models.cursor = [line.name for line in models.rows].index("anthropic:")
        await pilot.press("enter")
        await pilot.pause()
        assert problem(app, "model") == "✖ anthropic: is not usable: set ANTHROPIC_API_KEY"
        assert app.screen.query_one("#model", Input).value == ""


async def test_a_field_shows_errors_while_typing_and_start_focuses_it(tmp_path: Path) -> None:
    async with filling_in(tmp_path, size=(80, 40)) as (app, pilot):
        app.screen.query_one("#ttl", Input).focus()
        await pilot.press("x")
        await pilot.pause()
        assert problem(app, "ttl") == "✖ TTL must be a whole number of cycles, 0 or more; got '50x'"
        await pilot.press("backspace")
        await pilot.pause()
        assert problem(app, "ttl") == ""
        await pilot.press("f5")
        await pilot.pause()
        assert problem(app, "task") == "✖ describe the task"
        assert isinstance(app.focused, TaskArea)
        assert app.sessions.all == []


async def test_an_error_on_start_is_reported_and_keeps_the_form(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        await pilot.press(*"pay", "f5")
        await until(pilot, lambda: "own.tools" in str(app.screen.query_one("#said").render()))
        assert app.sessions.all == []
        assert app.screen.query_one(TaskArea).text == "pay"
        await pilot.press("s")
        await until(pilot, lambda: not app.screen.query_one("#said").display)


async def test_an_error_that_quotes_a_long_field_leaves_room_for_the_form(tmp_path: Path) -> None:
    async with filling_in(tmp_path, LoadedConfig(RunConfig(model="simulated:default"))) as (app, pilot):
        app.screen.query_one("#criteria", Input).value = "pasted by mistake " * 500
        await pilot.press(*"pay", "f5")
        problem = app.screen.query_one("#said")
        await until(pilot, lambda: "too long" in str(problem.render()) and problem.region.height > 1)
        assert problem.region.height < app.size.height // 2


async def test_an_error_on_start_is_reported_after_leaving_the_form(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, NewRunScreen)
        await pilot.press(*"pay", "escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        await until(pilot, lambda: not screen.is_attached)
        screen._started("no such \x1b model")
        await until(pilot, lambda: [note.message for note in app._notifications] == [r"no such \x1b model"])


async def test_an_unreadable_configuration_is_reported_in_place_of_models(tmp_path: Path) -> None:
    def unreadable() -> LoadedConfig:
        raise AeonError("the config file cannot be read")

    app = AeonApp(tmp_path, today=unreadable)
    app.first_screen = NewRunScreen()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "cannot be read" in str(app.screen.query_one("#said").render()))
        assert app.screen.query_one(ModelList).where_empty == ("cannot list models",)


async def test_escape_asks_before_discarding_a_typed_task(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        await pilot.press(*"pay", "escape")
        await pilot.pause()
        assert isinstance(app.screen, NewRunScreen)
        note = app.screen.query_one("#said")
        assert "Press esc again" in str(note.render())
        assert note.styles.color != Color.parse(app.theme_variables["severity-high"]), "it is no problem"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        await until(pilot, lambda: app.screen.query_one(TaskArea).text == "pay")
        await until(pilot, lambda: app.screen.query_one("#budget", Input).value == "0.5")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))


async def test_escape_leaves_an_untouched_form_and_q_never_quits(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        app.screen.query_one("#ask-plan", Tick).focus()
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert app.is_running


async def test_ticks_differ_by_their_sign_and_are_toggled_by_space(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        tick = app.screen.query_one("#ask-plan", Tick)
        tick.focus()
        assert "✔" not in str(tick.render())
        await pilot.press("space")
        assert "✔" in str(tick.render())
        assert isinstance(app.screen, NewRunScreen)
        assert app.screen.form.approve == ("plan", "pass", "tool")
        assert app.screen.form.tools == ("files", "own.tools:TOOLS")


async def test_the_form_says_what_happens_to_calls_that_nobody_is_asked_about(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        said = app.screen.query_one("#said", Static)
        app.screen.query_one("#ask-tool", Tick).focus()
        assert not said.display
        await pilot.press("space")
        await until(pilot, lambda: said.display)
        assert "those that need approval are refused" in str(said.render())
        assert said.has_class("-note"), "it is no error"
        for name in ("files", "own0"):
            app.screen.query_one(f"#tool-{name}", Tick).toggle()
        await until(pilot, lambda: not said.display)


async def test_a_tick_after_the_question_whether_to_leave_lets_it_be_asked_again(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        await pilot.press(*"pay", "escape")
        app.screen.query_one("#single", Tick).toggle()
        await until(pilot, lambda: not app.screen.query_one("#said", Static).display)
        await pilot.press("escape")
        assert isinstance(app.screen, NewRunScreen)
        assert app.screen.query_one("#said", Static).display
        await pilot.press("escape")
        assert not isinstance(app.screen, NewRunScreen)


async def test_configured_tools_are_listed_right_below_the_built_in_ones(tmp_path: Path) -> None:
    async with filling_in(tmp_path) as (app, pilot):
        files, own = (app.screen.query_one(f"#tool-{name}", Tick) for name in ("files", "own0"))
        await until(pilot, lambda: own.region.y == files.region.y + 1 > 1)
        assert app.screen.query_one("#ttl", Input).region.y == own.region.y + 2


async def test_an_unreadable_configuration_is_reported(tmp_path: Path) -> None:
    def broken() -> LoadedConfig:
        raise UsageError("the config file 'x' is no YAML")

    app = AeonApp(tmp_path / "runs", today=broken)
    async with app.run_test() as pilot:
        await pilot.press("s")
        await until(pilot, lambda: isinstance(app.screen, NewRunScreen))
        await until(pilot, lambda: "is no YAML" in str(app.screen.query_one("#said").render()))
