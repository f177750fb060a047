from __future__ import annotations

import logging
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_tui.app import AeonApp
from tests.waiting import until


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A person's folder of themes, and the project's, in which the app runs."""
    user, project = tmp_path / "config" / "aeon" / "themes", tmp_path / "project" / ".aeon" / "themes"
    user.mkdir(parents=True)
    project.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("AEON_THEME", raising=False)
    monkeypatch.chdir(tmp_path / "project")
    return user, project


async def opened() -> tuple[AeonApp, list[str]]:
    """Open the app, and return it with what it has said."""
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await app.workers.wait_for_complete()
        handled: list[bool] = []
        app.call_later(handled.append, True)  # behind the notifications
        await until(pilot, lambda: handled)
        said = [notification.message for notification in app._notifications]
    return app, said


async def test_without_a_chosen_theme_the_app_is_dark() -> None:
    app, said = await opened()
    assert (app.theme, said) == ("aeon-dark", [])


@pytest.mark.parametrize("name", ["aeon-light", "aeon-high-contrast", "aeon-colour-blind", "nord"])
def test_a_known_theme_is_used_from_the_first_paint(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("AEON_THEME", name)
    assert AeonApp(Path("runs")).theme == name


async def test_user_and_project_themes_can_be_chosen(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folders[0] / "dusk.yml").write_text("colours: {accent: '#ffcc00'}\n")
    (folders[1] / "dawn.yml").write_text("extends: aeon-light\n")
    monkeypatch.setenv("AEON_THEME", "dusk")
    app, said = await opened()
    assert (app.theme, said) == ("dusk", [])
    assert app.theme_variables["aeon-accent"] == "#ffcc00"
    assert {"dusk", "dawn"} <= set(app.available_themes)


async def test_a_theme_that_is_unknown_is_reported_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_THEME", "aeon-drak")
    app, said = await opened()
    assert app.theme == "aeon-dark"
    assert said == ["AEON_THEME names an unknown theme, 'aeon-drak'; did you mean 'aeon-dark'?"]


async def test_bad_files_are_reported_and_the_others_loaded(
    folders: tuple[Path, Path], caplog: pytest.LogCaptureFixture
) -> None:
    for name in "abc":
        (folders[0] / f"{name}.yml").write_text("dark: [3]\n")
    (folders[0] / "good.yml").write_text("colours: {text: '#222222'}\n")
    (folders[1] / "nord.yml").write_text("dark: true\n")
    with caplog.at_level(logging.WARNING, "aeon"):
        app, said = await opened()
    assert "good" in app.available_themes
    assert [line.partition(".yml': ")[2] for line in said[:2]] == ["'dark' is a list, expected true or false"] * 2
    assert said[2:] == ["and 3 more problems with themes"]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 5
    assert "the theme 'good' is hard to read" in caplog.records[3].message
    assert "ignored the theme 'nord': Textual has one with that name" in caplog.records[4].message


async def test_theme_files_cannot_send_control_characters(folders: tuple[Path, Path]) -> None:
    (folders[0] / "x.yml").write_text('colours: {text: "\\e[31m[bold]"}\n')
    _, said = await opened()
    assert len(said) == 1
    assert "\x1b" not in said[0]
    assert "[bold]" in said[0]


async def test_the_app_stays_open_if_its_working_directory_is_deleted_before_themes_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deleted() -> Path:
        raise UsageError("the working directory was deleted")

    monkeypatch.setattr("aeon_tui.settings.find_project_root", deleted)
    _, said = await opened()
    assert said == ["the working directory was deleted"]
