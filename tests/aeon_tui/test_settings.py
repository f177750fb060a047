"""What is chosen in the app is there again the next time: the theme and the keys, in the person's own file."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_core.config.keys import AppSettings
from aeon_core.config.loading import load_config, load_values
from aeon_core.errors import UsageError
from aeon_tui.app import AeonApp, run_app
from tests.aeon_tui.test_commands import chosen
from tests.waiting import until

WRITTEN = "# mine\nttl: 20  # cycles\ntheme: aeon-dark # by day\n"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's configuration file, which does not exist yet; the app runs in a project without one."""
    project = tmp_path / "project"
    (project / ".aeon").mkdir(parents=True)
    monkeypatch.chdir(project)
    return tmp_path / "xdg-config" / "aeon" / "config.yml"


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def said(app: AeonApp) -> str:
    return " | ".join(each.message for each in app._notifications)


async def keep(pilot: Pilot[None], app: AeonApp, theme: str = "aeon-light") -> None:
    app.user_settings.keep_theme(theme)
    await app.workers.wait_for_complete()
    await until(pilot, lambda: said(app))


async def test_a_theme_chosen_in_the_palette_is_kept(own: Path) -> None:
    put(own, WRITTEN)
    app = AeonApp(Path("runs"))
    async with app.run_test(size=(100, 30)) as pilot:
        await chosen(pilot, "theme: aeon-light")
        await until(pilot, lambda: said(app))
        assert app.theme == "aeon-light"
        assert "The theme is aeon-light: saved in" in said(app)
    assert own.read_text() == WRITTEN.replace("aeon-dark", "aeon-light")
    settings = load_values().app
    assert (settings.theme, settings.sources["theme"]) == ("aeon-light", f"the file {str(own)!r}")
    again = AeonApp(Path("runs"))
    again.apply_settings(settings)
    assert again.theme == "aeon-light"


async def test_a_theme_from_the_environment_is_not_overwritten(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_THEME", "nord")
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await keep(pilot, app)
        assert app.theme == "aeon-light"
        assert "AEON_THEME sets it" in said(app)
    assert not own.exists()


async def test_a_project_theme_that_takes_precedence_is_reported(own: Path) -> None:
    put(Path(".aeon/config.yml"), "theme: nord\n")
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await keep(pilot, app)
        assert "until you quit" in said(app)
        assert ".aeon/config.yml" in said(app)
    assert own.read_text() == "theme: aeon-light\n"


async def test_a_file_that_is_not_yaml_is_reported_and_left_alone(own: Path) -> None:
    put(own, "theme: [\n")
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await keep(pilot, app)
        assert app.theme == "aeon-light"
        assert "It applies until you quit" in said(app)
        assert "was not changed: it cannot be read, see line 2: " in said(app)
    assert own.read_text() == "theme: [\n"


async def test_keys_apply_at_once_and_are_saved(own: Path) -> None:
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        app.user_settings.keep_keys({"app.keys": "f9"})
        assert "f9" in app.screen.active_bindings
        await app.workers.wait_for_complete()
        await until(pilot, lambda: own.exists())
        assert load_values().app.keys == {"app.keys": "f9"}
        app.user_settings.keep_keys({"app.keys": None})
        assert "question_mark" in app.screen.active_bindings
        await app.workers.wait_for_complete()
        await until(pilot, lambda: own.read_text() == "")


def test_the_app_opens_as_the_configuration_says(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(own, "theme: aeon-light\nkeys: {app.keys: f9}\n")
    opened: list[tuple[str, object]] = []
    monkeypatch.setattr(AeonApp, "run", lambda app: opened.append((app.theme, dict(app.user_settings.configured.keys))))
    assert run_app(Path("runs")) == 0
    assert opened == [("aeon-light", {"app.keys": "f9"})]


def test_app_settings_do_not_affect_runs(own: Path) -> None:
    put(own, "theme: aeon-light\nkeys:\n  run.zoom: Z\nttl: 9\n")
    put(Path(".aeon/config.yml"), "keys: {run.follow: 'ctrl+f,9', app.keys: 3}\n")
    loaded = load_config(trust="apply")
    assert loaded.config.ttl == 9
    assert not {"theme", "keys"} & {*loaded.sources, *loaded.config.model_dump()}
    assert loaded.app.keys == {"run.zoom": "Z", "run.follow": "ctrl+f,9", "app.keys": "3"}
    assert set(loaded.app.sources) == {"theme", "keys"}
    assert AppSettings() == load_values(environ={"XDG_CONFIG_HOME": "/nowhere"}, start=Path("/")).app


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("theme: 3\n", "'theme' in the config file .* must be the name of a theme, such as aeon-light; got 3"),
        ("theme: ''\n", "must be the name of a theme"),
        ("keys: [a]\n", r"'keys' in the config file .* must be actions with their keys, such as \{run.zoom: Z"),
        ("keys: {run.follow: Z, run.zoom: [f]}\n", r"gives 'run.zoom' the key \['f'\]; write it as Z, f5 or ctrl\+d"),
        ("keyz: {}\n", "unknown key, 'keyz'; did you mean 'keys'?"),
    ],
)
def test_an_error_in_a_file_is_one_line(own: Path, text: str, problem: str) -> None:
    put(own, text)
    with pytest.raises(UsageError, match=problem) as raised:
        load_values()
    assert "\n" not in raised.value.message


def test_a_bad_value_in_the_variable_is_reported(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_THEM", "nord")
    with pytest.raises(UsageError, match="'AEON_THEM' is unknown; did you mean 'AEON_THEME'"):
        load_values()
