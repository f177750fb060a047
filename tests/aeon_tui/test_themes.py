"""Every screen in every theme: all of it is readable, and understandable without colours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.filter import Monochrome
from textual.pilot import Pilot
from textual.theme import BUILTIN_THEMES

from aeon_themes import PALETTES
from aeon_tui.app import AeonApp
from tests.aeon_themes.colours import contrast
from tests.aeon_tui.scenes import SCENES, Scene, opened, texts
from tests.sampling import sample

Compare = Callable[..., bool]
OURS = [palette.name for palette in PALETTES]
OTHERS = ["textual-light", "nord", "tokyo-night", "catppuccin-latte", "solarized-light", "solarized-dark"]
NAMED = {scene.name: scene for scene in SCENES}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


def least(theme: str) -> float:
    return 7.0 if theme == "aeon-high-contrast" else 4.5


def hard_to_read(app: AeonApp, theme: str) -> list[tuple[float, str]]:
    measured = [(contrast(text.color, text.background), text.text) for text in texts(app)]
    assert measured
    return [(round(ratio, 2), text) for ratio, text in measured if ratio < least(theme)]


def themes_of(scene: Scene) -> list[str]:
    """Return ours and two of the others, for each scene another two: tests/aeon_themes measure our colours in all."""
    place = SCENES.index(scene)
    return [*OURS, *(OTHERS[(place + step) % len(OTHERS)] for step in (0, len(OTHERS) // 2))]


@pytest.mark.parametrize("scene", sample(SCENES, 2), ids=lambda scene: scene.name)
async def test_every_screen_is_readable_in_several_themes_and_grey_without_colours(scene: Scene) -> None:
    found, coloured = {}, []
    for themes in [[theme] for theme in themes_of(scene)] if scene.needs_restart else [themes_of(scene)]:
        async with opened(scene, themes[0]) as (app, pilot):
            for theme in themes:
                app.theme = theme
                await pilot.pause()
                found[theme] = hard_to_read(app, theme)
            app._filters.append(Monochrome())
            app.refresh_css(animate=False)
            await pilot.pause()
            coloured += [text for text in texts(app) if not (is_grey(text.color) and is_grey(text.background))]
    assert {theme: pairs for theme, pairs in found.items() if pairs} == {}
    assert coloured == []


@pytest.mark.exhaustive
async def test_a_run_is_readable_in_every_textual_theme() -> None:
    themes = [theme.name for theme in BUILTIN_THEMES.values() if not theme.ansi]
    assert len(themes) > 15
    async with opened(NAMED["changes"]) as (app, pilot):
        for theme in themes:
            app.theme = theme
            await pilot.pause()
            assert hard_to_read(app, theme) == [], theme


@pytest.mark.parametrize("theme", OURS[1:])
@pytest.mark.parametrize("name", sample(["changes", "runs", "palette"], 1))
def test_theme_snapshots(snap_compare: Compare, name: str, theme: str) -> None:
    scene = NAMED[name]
    app = scene.app()
    app.theme = theme

    async def settle(pilot: Pilot[None]) -> None:
        await scene.settle(app, pilot)

    assert snap_compare(app, terminal_size=(80, 24), run_before=settle)


SAID = {
    "failed": ["✖", "failed"],
    "changes": ["✔", "⊘", "converged", "complete", "coherent"],
    "runs": ["▶ running", "✔ converged", "✖ failed", "◼ aborted", "… interrupted", "✖ cost ceiling"],
    "issues": ["✖", "◐"],
    "fork-problem": ["✖ TTL is empty"],
    "notices": ["⚠ A title", "✖ A title"],
    "repair": ["✎"],
}


@pytest.mark.parametrize("name", SAID)
async def test_without_colours_icons_and_words_show_everything(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(NAMED[name]) as (app, _):
        assert app.no_color
        drawn = list(texts(app))
    assert all(is_grey(text.color) and is_grey(text.background) for text in drawn)
    shown = "".join(text.text for text in drawn)
    assert [said for said in SAID[name] if said not in shown] == []


async def test_the_cursor_is_visible_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(NAMED["runs"]) as (app, _):
        backgrounds = {text.text.strip(): text.background for text in texts(app)}
    assert backgrounds["task 0"] != backgrounds["task 1"]


def is_grey(color: str) -> bool:
    return color[1:3] == color[3:5] == color[5:7]
