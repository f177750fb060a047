"""Apps under test without what nobody looks at: each frame drawn, and the same style sheets parsed for each app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual._compositor import Compositor
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from tests import sampling

_render_update, _run_test, _parse_rules = Compositor.render_update, App.run_test, Stylesheet._parse_rules
_parsed: dict[tuple[Any, ...], list[RuleSet]] = {}
_variables: dict[frozenset[tuple[str, str]], int] = {}
_drawn: set[tuple[object, ...]] = set()


@pytest.fixture(autouse=True)
def undrawn_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a screen when a test looks at it, not after each change.

    The first test that ends on a screen of a kind and size draws it then. With `--all`, each widget that has changed
    makes its lines after each change; what Textual makes of them, it makes as rarely.
    """
    render = render_contents if sampling.scope["all"] else _render_when_asked
    monkeypatch.setattr(Compositor, "render_update", render)
    monkeypatch.setattr(App, "run_test", _run_test_and_draw)


@pytest.fixture
def drawn_frames(undrawn_frames: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw each frame: for a test that counts what is drawn."""
    monkeypatch.setattr(Compositor, "render_update", _render_update)


@pytest.fixture(autouse=True)
def parsed_style_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse each style sheet once a process and set of variables, not once an app."""
    monkeypatch.setattr(Stylesheet, "_parse_rules", _parse_rules_once)


def _render_when_asked(compositor: Compositor, full: bool = False, **options: Any) -> Any:
    if full:
        return _render_update(compositor, full, **options)
    # A partial update of nothing: only who is below the screen is made known.
    compositor._dirty_regions.clear()
    return _render_update(compositor, **options)


def render_contents(compositor: Compositor, full: bool = False, **options: Any) -> Any:
    """Let each widget of Aeon's that has changed make its lines; put nothing together, and keep none of them."""
    changed = list(compositor._dirty_regions)
    drawn = _render_when_asked(compositor, full, **options)
    for widget, (_, clip) in () if full else compositor.visible_widgets.items():
        by_line, whole = (
            not method.__module__.startswith("textual.") for method in (type(widget).render_line, type(widget).render)
        )
        if by_line or whole:
            content = widget.content_region
            rows = {y for region in changed for y in content.intersection(clip).intersection(region).line_range}
            for y in sorted(rows)[: None if by_line else 1]:
                widget.render_line(y - content.y)
    return drawn


@asynccontextmanager
async def _run_test_and_draw(app: App[Any], **options: Any) -> AsyncIterator[Pilot[Any]]:
    async with _run_test(app, **options) as pilot:
        yield pilot
        if app.is_running and (kind := (type(app.screen), app.size)) not in _drawn:
            _drawn.add(kind)
            app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)


def _parse_rules_once(sheet: Stylesheet, css: str, *place: Any, **options: Any) -> list[RuleSet]:
    key = (css, *place, *options.items(), _number_of(sheet))
    if key not in _parsed:
        _parsed[key] = _parse_rules(sheet, css, *place, **options)
    return _parsed[key]


def _number_of(sheet: Stylesheet) -> int:
    """Return the number of the sheet's set of variables: to compare hundreds of them at each look costs more."""
    variables, number = sheet.__dict__.get("_numbered", (None, 0))
    if variables is not sheet._variables:
        number = _variables.setdefault(frozenset(sheet._variables.items()), len(_variables))
        sheet.__dict__["_numbered"] = sheet._variables, number
    return number
