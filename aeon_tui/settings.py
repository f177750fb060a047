"""The user's settings of the app, its theme and keys, and the available themes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.theme import BUILTIN_THEMES

from aeon_core.config.keys import THEME_VARIABLE, AppSettings
from aeon_core.config.loading import user_config_file
from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_core.paths import find_project_root
from aeon_core.suggest import did_you_mean, nearest
from aeon_core.units import count
from aeon_themes import PALETTES, Palette
from aeon_themes.folders import theme_files, theme_folders
from aeon_tui.platform.background_tasks import NOTICE_SECONDS

if TYPE_CHECKING:
    from aeon_core.config.editing import KeyPath
    from aeon_core.config.loading import LoadedConfig


_NOTICES = 2
"""The most problems shown; all of them are logged."""

logger = logging.getLogger("aeon")

THEMES = {palette.name: palette.theme() for palette in PALETTES}
"""Aeon's own themes, by name."""
DEFAULT_THEME = PALETTES[0].name


def wanted_theme(settings: AppSettings) -> tuple[str | None, str]:
    """Return the name of the configured theme, None if there is none, and its source."""
    if from_environment := os.environ.get(THEME_VARIABLE, "").strip():
        return from_environment, THEME_VARIABLE
    return settings.theme, settings.sources.get("theme", "the configuration")


def why_no_theme(name: str) -> str | None:
    """Return that no theme of Aeon, of Textual, or in the folders of the user and the project has a name, else None."""
    palettes, _ = _read(theme_files(theme_folders(find_project_root())))
    known = tuple(dict.fromkeys((*THEMES, *(palette.name for palette in palettes), *BUILTIN_THEMES)))
    return None if name in known else f"unknown theme {name!r}{nearest(name, known)}"


def add_themes(app: App[Any]) -> None:
    """Register Aeon's themes."""
    for theme in THEMES.values():
        app.register_theme(theme)


def open_with_theme(app: App[Any], settings: AppSettings) -> None:
    """Open the app with the configured theme, if that is known before its file is read."""
    wanted, _ = wanted_theme(settings)
    if wanted is not None and wanted in app.available_themes:
        app.theme = wanted


def add_own_themes(app: App[Any], settings: AppSettings) -> None:
    """Register the themes of the user and the project, and report problems with them.

    Called from a thread, since this reads files.
    """
    try:
        palettes, problems = _read(theme_files(theme_folders(find_project_root())))
    except AeonError as error:
        palettes, problems = (), [error.message]
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
        # Keep a theme that the user has chosen meanwhile.
        if opened_with == DEFAULT_THEME:
            app.theme = wanted
    elif wanted is not None:
        hint = did_you_mean(wanted, tuple(app.available_themes)) or "; choose one in the settings"
        problems.insert(0, f"{source} names an unknown theme, {wanted!r}{hint}")
    _show_problems(app, problems, "themes")


def _show_problems(app: App[Any], problems: Sequence[str], what: str) -> None:
    for problem in problems:
        logger.warning("%s", problem)
    shown = list(problems[:_NOTICES])
    if (more := len(problems) - _NOTICES) > 0:
        shown.append(f"and {count(more, 'more problem')} with {what}")
    for problem in shown:
        app.notify(escape_controls(problem), severity="warning", timeout=NOTICE_SECONDS, markup=False)


Today = Callable[[], "LoadedConfig"]
"""Returns the current configuration of all layers. Raises UsageError."""


class UserSettings:
    """The app's settings. Files are read and written on a thread; failures become notifications."""

    def __init__(self, app: App[Any], today: Today) -> None:
        self._app, self._today = app, today
        self.configured = AppSettings()
        """The configured values."""
        self.keymap: dict[str, str] = {}
        """The keys that replace the defaults of actions."""
        self.known = False
        """Whether it has been read."""

    def apply_keys(self) -> None:
        """Bind the configured keys. Called from a thread, since it loads every screen."""
        if not self.configured.keys:
            return
        from aeon_tui.keymap import checked_keys

        checked = checked_keys(self.configured.keys)
        self._app.call_from_thread(self._use_keys, dict(checked.keymap))
        self._app.call_from_thread(_show_problems, self._app, checked.problems, "keys")

    def keep_theme(self, name: str) -> None:
        """Use and save a theme."""
        self._app.theme = name
        if os.environ.get(THEME_VARIABLE, "").strip():
            self._warn(f"The theme applies until you quit: {THEME_VARIABLE} sets it at the next start.")
            return
        self._on_thread(partial(self._keep, ("theme",), name, f"The theme is {name}"))

    def keep_keys(self, changes: Mapping[str, str | None]) -> None:
        """Bind and save other keys of actions, or restore the defaults for None."""
        merged = {**self.keymap, **changes}
        self._use_keys({action: keys for action, keys in merged.items() if keys is not None})
        self._on_thread(partial(self._keep_all, changes))

    def _use_keys(self, keymap: dict[str, str]) -> None:
        self.keymap = keymap
        self._app.set_keymap(keymap)

    def _keep_all(self, changes: Mapping[str, str | None]) -> None:
        for action, keys in changes.items():
            what = f"{action} is on {keys}" if keys is not None else f"{action} has its default keys again"
            self._keep(("keys", action), keys, what)

    def _keep(self, path: KeyPath, value: str | None, what: str) -> None:
        from aeon_core.config.editing import change_file

        file = user_config_file(os.environ)
        change_file(file, path, value)
        said = self._today().app
        found: Mapping[str, str | None] = {"theme": said.theme} if path == ("theme",) else dict(said.keys)
        where = said.sources.get(path[0], "another file")
        if found.get(path[-1]) == value:
            self._say(f"{what}: saved in {_short(file)}.")
        else:
            self._say(f"{what} until you quit: {where} overrides {_short(file)}.")

    def _on_thread(self, work: Callable[[], None]) -> None:
        self._app.run_worker(partial(self._notified, work), thread=True, exit_on_error=False, group="settings")

    def _notified(self, work: Callable[[], None]) -> None:
        try:
            work()
        except AeonError as error:
            self._app.call_from_thread(self._warn, f"It applies until you quit: {error.message}")

    def _say(self, text: str) -> None:
        self._app.call_from_thread(partial(self._app.notify, escape_controls(text), markup=False))

    def _warn(self, text: str) -> None:
        self._app.notify(escape_controls(text), severity="warning", timeout=NOTICE_SECONDS, markup=False)


def _short(file: Path) -> str:
    home = os.environ.get("HOME") or "~"
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home) else str(file)
