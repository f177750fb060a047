"""Which themes the app has, and with which of them it opens."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from textual.app import App

from aeon_core.config.keys import THEME_VARIABLE, AppSettings
from aeon_core.escape import escape_controls
from aeon_core.paths import find_project_root
from aeon_core.suggest import nearest
from aeon_themes import PALETTES, Palette
from aeon_themes.folders import theme_files, theme_folders
from aeon_tui.platform.background_tasks import NOTICE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

_NOTICES = 2
"""As many problems are shown; all of them are logged."""

logger = logging.getLogger("aeon")


def wanted_theme(settings: AppSettings) -> tuple[str | None, str]:
    """Return the name of the theme that is asked for, None where none is, and what asks for it."""
    if from_environment := os.environ.get(THEME_VARIABLE, "").strip():
        return from_environment, THEME_VARIABLE
    return settings.theme, settings.sources.get("theme", "the configuration")


def add_themes(app: App[Any]) -> None:
    """Give the app Aeon's themes."""
    for palette in PALETTES:
        app.register_theme(palette.theme())
    app.theme = PALETTES[0].name


def open_with_theme(app: App[Any], settings: AppSettings) -> None:
    """Let the app open with the wanted theme, where that is known before its file was read."""
    wanted, _ = wanted_theme(settings)
    if wanted is not None and wanted in app.available_themes:
        app.theme = wanted


def add_own_themes(app: App[Any], settings: AppSettings) -> None:
    """Give the app the themes of the person and of the project, and say what is wrong with them.

    Called from a thread, since this reads files.
    """
    palettes, problems = _read(theme_files(theme_folders(find_project_root())))
    app.call_from_thread(_add, app, palettes, problems, settings)


def _read(files: list[Path]) -> tuple[Iterable[Palette], list[str]]:
    if not files:
        return (), []
    from aeon_themes.files import load_themes

    loaded = load_themes(files)
    return loaded.palettes, [*loaded.problems, *loaded.warnings]


def _add(app: App[Any], palettes: Iterable[Palette], problems: list[str], settings: AppSettings) -> None:
    opened_with = app.theme
    for palette in palettes:
        if palette.name in app.available_themes:
            problems.append(f"ignored the theme {palette.name!r}: Textual has one with that name; rename yours")
        else:
            app.register_theme(palette.theme())
    wanted, source = wanted_theme(settings)
    if wanted is not None and wanted in app.available_themes:
        # A theme that a person has chosen meanwhile stays.
        if opened_with == PALETTES[0].name:
            app.theme = wanted
    elif wanted is not None:
        known = tuple(app.available_themes)
        problems.insert(0, f"{source} names an unknown theme, {wanted!r}{nearest(wanted, known)}")
    _tell(app, problems)


def _tell(app: App[Any], problems: list[str]) -> None:
    for problem in problems:
        logger.warning("%s", problem)
    for problem in problems[:_NOTICES]:
        app.notify(escape_controls(problem), severity="warning", timeout=NOTICE_SECONDS, markup=False)
    if (more := len(problems) - _NOTICES) > 0:
        app.notify(f"and {more} more problems with themes", severity="warning", timeout=NOTICE_SECONDS)
