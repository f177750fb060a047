"""Settings: every value with its source, nothing secret, and the files that hold them in the person's editor."""

from __future__ import annotations

import asyncio
import contextlib
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static
from textual.worker import Worker, active_worker

from aeon_core import Orchestrator
from aeon_core.config.editing import save_rule
from aeon_core.config.keys import APP_KEYS, KEYS, AppSettings
from aeon_core.config.loading import LoadedConfig, read_config_file
from aeon_core.config.schema import RunConfig
from aeon_core.journal.labels import label_run
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.editor import EditorScreen
from aeon_tui.screens.filterable_list import matching
from aeon_tui.screens.keys import KeySettingsScreen, KeysScreen
from aeon_tui.screens.settings import SettingsList, SettingsScreen, settings_of
from aeon_widgets.footer import KeyFooter
from aeon_widgets.text_fields import FilterLine
from aeon_widgets.text_view import TextView
from tests.aeon_core.kernel.test_passes import TASK
from tests.aeon_core.kernel.test_passes import model as scripted_model
from tests.waiting import until


def secret() -> str:
    return "s" + "k-ant-" + "x7" * 20


def test_every_key_has_a_meaning_and_is_listed_once_in_order() -> None:
    settings = settings_of(LoadedConfig(RunConfig()))
    assert tuple(each.key for each in settings) == (*KEYS, *APP_KEYS, "trust")
    assert all(each.meaning and each.expected and each.how and each.value for each in settings)
    assert {each.source for each in settings} == {"default", "working directory"}
    assert not any(each.is_set for each in settings)


def test_the_source_of_a_value_stays_near_it_on_a_wide_screen() -> None:
    rows = SettingsList()
    rows.rows = settings_of(LoadedConfig(RunConfig()))
    row = "".join(text for text, _ in rows.pieces(0, 200))
    assert row.endswith("default")
    assert len(row) == 120


def test_values_are_shown_with_their_source() -> None:
    config = RunConfig(ttl=9, tools=["files", "shell"], budget=0.5, prices={"x:y": {"input": 1, "output": 2}})
    home = str(Path.home())
    sources = {
        "ttl": "the option --ttl",
        "budget": f"the file '{home}/.config/aeon/config.yml'",
        "tools": "the environment variable AEON_TOOLS",
    }
    app = AppSettings("aeon-light", {"run.zoom": "Z"}, {"theme": "the environment variable AEON_THEME"})
    found = {each.key: (each.value, each.source) for each in settings_of(LoadedConfig(config, sources, app=app))}
    assert found["ttl"] == ("9", "--ttl")
    assert found["budget"] == ("0.5", "~/.config/aeon/config.yml")
    assert found["tools"] == ("files, shell", "AEON_TOOLS")
    assert found["approve"] == ("pass, tool (headless: none)", "default")
    assert found["theme"] == ("aeon-light", "AEON_THEME")
    assert found["keys"][0] == '{"run.zoom": "Z"}'
    assert found["model"] == ("–", "default")
    assert '"input": 1' in found["prices"][0]


def test_no_secret_is_shown() -> None:
    servers = {
        "one": {"command": "server", "env": {"TOKEN": secret(), "PLAIN": "hidden as well"}},
        "two": {"url": "https://x.example/mcp", "headers": {"Authorization": f"Bearer {secret()}"}},
    }
    config = RunConfig(mcp_servers=servers, base_url="https://ann:" + "hunter2hunter2" + "@host/v1")
    shown = " ".join(each.value for each in settings_of(LoadedConfig(config)))
    assert not [each for each in (secret(), "hidden as well", "hunter2") if each in shown]
    assert "TOKEN" in shown
    assert "Authorization" in shown
    assert "https://x.example/mcp" in shown


def test_the_filter_searches_every_column() -> None:
    settings = settings_of(LoadedConfig(RunConfig()))
    assert [each.key for each in matching(settings, "budget DOLLARS")] == ["budget", "budget_warning"]
    assert matching(settings, "nothing like it") == []


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's configuration file; the app runs in a project, and an editor can be opened."""
    project = tmp_path / "project"
    (project / ".aeon").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setattr(App, "suspend", lambda _: contextlib.nullcontext())
    return tmp_path / "xdg-config" / "aeon" / "config.yml"


def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *texts: str) -> Path:
    """Let an editor leave these texts, one each time; return the file that counts how often it was opened."""
    script, times = tmp_path / "editor.sh", tmp_path / "times"
    for number, text in enumerate(texts):
        (tmp_path / f"text{number}").write_text(text)
    script.write_text(f'#!/bin/sh\nn=$(cat {times} 2>/dev/null | wc -l)\ncp {tmp_path}/text$n "$1"\necho >> {times}\n')
    script.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(script))
    return times


@asynccontextmanager
async def open_settings() -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(Path("runs"))
    async with app.run_test(size=(80, 24)) as pilot:
        await app.workers.wait_for_complete()
        await pilot.press("comma")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await until(pilot, lambda: app.screen.query_one(SettingsList).rows or "✖" in explained(app))
        yield app, pilot


def explained(app: AeonApp) -> str:
    return app.screen_stack[-1].query_one(TextView).text


def value_of(app: AeonApp, key: str) -> str:
    return next(each.value for each in app.screen.query_one(SettingsList).rows if each.key == key)


async def test_the_setting_under_the_cursor_is_explained(own: Path) -> None:
    async with open_settings() as (app, pilot):
        await pilot.press("j", "j")
        await pilot.pause()
        assert explained(app).startswith("ttl\nMaximum number of cycles in a run.")
        assert "AEON_TTL" in explained(app)


async def test_enter_goes_to_the_details_and_escape_back_to_the_list(own: Path) -> None:
    async with open_settings() as (app, pilot):
        assert app.screen.active_bindings["enter"].binding.description == "Details"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen.focused, TextView))
        await pilot.press("escape", "j")
        await until(pilot, lambda: explained(app).startswith("base_url"))


def agreement(app: AeonApp) -> str:
    shown = app.screen_stack[-1].query_one("#agreement", Static)
    return str(shown.content) if shown.display else ""


async def test_how_often_each_judge_agreed_is_shown_and_follows_new_labels(own: Path) -> None:
    folder = Path("runs")
    named = dict.fromkeys(("one", "two"), "scripted:test") | {"three": "scripted:[b]other[/b]"}
    for name, model in named.items():
        scripted = scripted_model()
        scripted.model = model
        Orchestrator(scripted, config=RunConfig(durability="off"), journal=folder / f"{name}.jsonl").run(TASK)
    async with open_settings() as (app, pilot):
        await app.workers.wait_for_complete()
        assert agreement(app) == ""
        for name, verdict in (("one", "good"), ("two", "bad"), ("three", "good")):
            label_run(folder / f"{name}.jsonl", verdict)  # type: ignore[arg-type]
        await pilot.press("escape", "comma")
        await until(pilot, lambda: agreement(app))
        assert agreement(app) == (
            "Judge scripted:test agreed with you on 1 of 2 results\n"
            "Judge scripted:[b]other[/b] agreed with you on 1 of 1 result"
        )
        await pilot.resize_terminal(60, 10)
        await pilot.pause()
        assert app.screen.query_one(SettingsList).scrollable_content_region.height >= 1
        assert app.screen.max_scroll_y == 0


async def test_settings_are_read_without_labels_if_runs_are_unreadable(own: Path) -> None:
    Path("runs").write_text("no folder")
    async with open_settings() as (app, _):
        await app.workers.wait_for_complete()
        assert agreement(app) == ""
        assert value_of(app, "ttl") == "50"


async def test_a_filter_narrows_and_escape_clears_it_before_leaving(own: Path) -> None:
    async with open_settings() as (app, pilot):
        await pilot.press("slash", *"cycles")
        await pilot.pause()
        assert [each.key for each in app.screen.query_one(SettingsList).rows] == ["ttl"]
        assert app.screen.active_bindings["enter"].binding.description == "To the list"
        await pilot.press("x")
        await pilot.pause()
        assert explained(app) == "", "nothing is left to be explained"
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen.query_one(SettingsList).rows) == len([*KEYS, *APP_KEYS, "trust"])
        assert not app.screen.query_one(FilterLine).display
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, SettingsScreen))


async def test_a_missing_file_is_created_with_a_header_and_read(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    async with open_settings() as (app, pilot):
        await pilot.press("e")
        await until(pilot, own.exists)
        text = own.read_text()
        assert text.startswith("# Aeon settings, as `key: value` lines")
        assert read_config_file(own) == {}
        assert stat.S_IMODE(own.stat().st_mode) == 0o600
        editor(tmp_path, monkeypatch, "ttl: 7\n")
        await pilot.press("E")
        await until(pilot, lambda: value_of(app, "ttl") == "7")
        assert Path(".aeon/config.yml").read_text() == "ttl: 7\n"


def test_the_header_names_only_settings_that_can_be_used_as_shown(own: Path) -> None:
    from aeon_tui.platform.editor import make_sure_it_is_there

    make_sure_it_is_there(own, "own")
    examples = [line[2:] for line in own.read_text().splitlines()[2:] if line.startswith("# ")]
    own.write_text("\n".join(examples))
    assert read_config_file(own) == {
        "model": "anthropic:claude-sonnet-4-5",
        "ttl": 50,
        "tools": ["files"],
        "approve": ["pass", "tool"],
        "budget": 1.0,
    }


async def test_errors_in_the_file_are_reported_and_can_be_fixed_at_once(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = editor(tmp_path, monkeypatch, "tll: 7\n", "ttl: 8\n")
    async with open_settings() as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        shown = " ".join(word for each in app.screen.query(".line") for word in str(each.render()).split())
        assert "unknown key, 'tll'; did you mean 'ttl'?" in shown
        monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and value_of(app, "ttl") == "8")
    assert times.read_text().count("\n") == 2


async def test_a_file_that_was_left_broken_can_be_opened_again(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.parent.mkdir(parents=True)
    own.write_text("ttl: [\n")
    async with open_settings() as (app, pilot):
        assert explained(app).startswith("✖ the config file")
        editor(tmp_path, monkeypatch, "ttl: 8\n")
        await pilot.press("e")
        await until(pilot, lambda: app.screen.query_one(SettingsList).rows)
        assert value_of(app, "ttl") == "8"


async def test_saved_rules_are_listed_with_their_scope_and_delete_removes_one(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    own.parent.mkdir(parents=True)
    own.write_text("# mine\npolicy:\n  allow: ['Bash(ls *)']\n  deny: [Read(*.env)]\n")
    save_rule("Edit(src/**)", "project", Path.cwd())
    async with open_settings() as (app, pilot):
        listed = app.screen.query_one(SettingsList)
        rows = listed.rows
        rules = [(each.key.strip(), each.value, each.source) for each in listed.rows if each.rule is not None]
        assert rules == [
            ("allow", "Bash(ls *)", "own file: always"),
            ("deny", "Read(*.env)", "own file: always"),
            ("allow", "Edit(src/**)", "project's file"),
        ]
        assert "delete" not in app.screen.active_bindings, "a setting is not removed"
        listed.move_to([each.rule is not None for each in listed.rows].index(True))
        await pilot.press("j", "delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: "Read(*.env)" not in own.read_text() and len(listed.rows) == len(rows) - 1)
        assert listed.selected is not None
        assert listed.selected.value == "Bash(ls *)", "the next rule is one key away"
        await pilot.press("slash", *"policy", "enter")
        await until(pilot, lambda: [each.key.strip() for each in listed.rows] == ["policy", "allow", "allow"])
        await pilot.press("j")
        await until(pilot, lambda: "Remove rule" in [key.description for key in app.screen.query_one(KeyFooter).keys])
        await pilot.press("escape", "slash", *"src/", "enter", "j")
        await until(pilot, lambda: "policy.allow" in explained(app))
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        assert read_config_file(Path(".aeon/config.yml"))["policy"].allow == ("Edit(src/**)",)
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and not listed.rows)
        assert read_config_file(Path(".aeon/config.yml")) == {}
        assert own.read_text().startswith("# mine\n")


async def test_an_outdated_read_is_not_shown(own: Path) -> None:
    own.parent.mkdir(parents=True)
    own.write_text("policy:\n  deny: [Read(*.env)]\n")
    async with open_settings() as (app, pilot):
        listed = app.screen.query_one(SettingsList)
        later = listed.rows
        own.write_text("")
        overtaken = Worker(app.screen, lambda: None)
        overtaken.cancel()
        active_worker.set(overtaken)
        await asyncio.to_thread(SettingsScreen._read.__wrapped__, app.screen)
        await pilot.pause()
        assert listed.rows == later


async def typed(pilot: Pilot[None], app: AeonApp, text: str) -> EditorScreen[None]:
    """Put a text into the app's own editor, and save it."""
    await until(pilot, lambda: isinstance(app.screen, EditorScreen) and app.screen.is_mounted)
    screen = app.screen
    assert isinstance(screen, EditorScreen)
    screen.area.text = text
    await pilot.press("ctrl+s")
    return screen


def problems(screen: EditorScreen[None]) -> str:
    return str(screen.query_one("#problems", Static).content)


async def test_without_an_editor_the_app_has_one_that_names_the_line_and_the_reason(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    async with open_settings() as (app, pilot):
        await pilot.press("e")
        screen = await typed(pilot, app, "# mine\nttl: 7\ntll: 8\n")
        await until(pilot, lambda: problems(screen))
        assert problems(screen) == "✖ line 3: has an unknown key, 'tll'; did you mean 'ttl'?"
        assert screen.area.cursor_location == (2, len(screen.area.document.get_line(2)))
        assert not own.exists()
        await typed(pilot, app, "ttl: [7\n")
        await until(pilot, lambda: "not valid YAML" in problems(screen))
        assert problems(screen).startswith("✖ line 2: not valid YAML")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert screen.area.text == "ttl: [7\n"
        await typed(pilot, app, "ttl: 7\n")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen) and value_of(app, "ttl") == "7")
        assert own.read_text() == "ttl: 7\n"
        await pilot.press("e", "escape")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))


async def test_in_a_browser_the_apps_editor_overwrites_no_other_change(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    monkeypatch.setattr("aeon_tui.platform.editor.is_served", lambda: True)
    async with open_settings() as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, EditorScreen))
        Path(".aeon/config.yml").write_text("ttl: 3\n")
        screen = await typed(pilot, app, "ttl: 7\n")
        await until(pilot, lambda: "has changed since" in problems(screen))
        assert Path(".aeon/config.yml").read_text() == "ttl: 3\n"


@pytest.mark.parametrize("editor", ["", "truncate -s 0"])
async def test_no_editor_opens_a_project_file_that_links_out_of_the_project(
    own: Path, monkeypatch: pytest.MonkeyPatch, editor: str
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.setattr(App, "suspend", contextlib.nullcontext)
    own.parent.mkdir(parents=True)
    own.write_text("ttl: 7\n")
    async with open_settings() as (app, pilot):
        Path(".aeon").mkdir(exist_ok=True)
        Path(".aeon/config.yml").symlink_to(own.absolute())
        await pilot.press("E")
        await until(pilot, lambda: app._notifications)
        assert "is a link out of the project and was not changed" in next(iter(app._notifications)).message
        assert isinstance(app.screen, SettingsScreen)
    assert own.read_text() == "ttl: 7\n"


@pytest.mark.parametrize("named", ["false", "no-such-editor"])
async def test_the_app_regains_the_terminal_whatever_the_editor_does(
    own: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    had: list[str] = []

    @contextlib.contextmanager
    def suspended(_: object) -> Iterator[None]:
        yield  # as Textual does it: nothing is done after what was raised
        had.append("back")

    monkeypatch.setattr(App, "suspend", suspended)
    monkeypatch.setenv("EDITOR", named)
    async with open_settings() as (app, pilot):
        await pilot.press("e")
        await until(pilot, lambda: app._notifications)
        assert "the editor" in next(iter(app._notifications)).message
    assert had == ["back"]


async def test_keys_are_changed_from_here_and_from_the_key_help(own: Path) -> None:
    async with open_settings() as (app, pilot):
        await pilot.press("K")
        await until(pilot, lambda: isinstance(app.screen, KeySettingsScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, SettingsScreen))
        await pilot.press("question_mark", "K")
        await until(pilot, lambda: isinstance(app.screen, KeySettingsScreen))
        assert not [screen for screen in app.screen_stack if isinstance(screen, KeysScreen)]
