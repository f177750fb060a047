"""What a person chooses in the app and finds again the next time: its theme, and its keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import App

from aeon_core.config.keys import THEME_VARIABLE, AppSettings
from aeon_core.config.loading import user_config_file
from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls
from aeon_tui.platform.background_tasks import NOTICE_SECONDS

if TYPE_CHECKING:
    from aeon_core.config.editing import KeyPath
    from aeon_core.config.loading import LoadedConfig

Today = Callable[[], "LoadedConfig"]
"""Returns the configuration of all layers as it is now. Raises UsageError."""
_NOTICES = 2
"""As many problems are shown at once."""


class UserSettings:
    """The app's settings. Files are read and written on a thread; what goes wrong is a notification."""

    def __init__(self, app: App[Any], today: Today) -> None:
        self._app, self._today = app, today
        self.configured = AppSettings()
        """What the configuration says."""
        self.keymap: dict[str, str] = {}
        """The keys that actions have in place of their own."""
        self.known = False
        """Whether it has been read."""

    def apply_keys(self) -> None:
        """Give the actions the keys that the configuration says. Called from a thread: it loads every screen."""
        if not self.configured.keys:
            return
        from aeon_tui.keymap import checked_keys

        checked = checked_keys(self.configured.keys)
        self._app.call_from_thread(self._use_keys, dict(checked.keymap))
        problems = list(checked.problems[:_NOTICES])
        if (more := len(checked.problems) - _NOTICES) > 0:
            problems.append(f"and {more} more problems with keys")
        for problem in problems:
            self._app.call_from_thread(self._warn, problem)

    def keep_theme(self, name: str) -> None:
        """Wear a theme from now on, in this app and in the next."""
        self._app.theme = name
        if os.environ.get(THEME_VARIABLE, "").strip():
            self._warn(f"The theme applies until you quit: {THEME_VARIABLE} sets it at the next start.")
            return
        self._on_thread(partial(self._keep, ("theme",), name, f"The theme is {name}"))

    def keep_keys(self, changes: Mapping[str, str | None]) -> None:
        """Give actions other keys from now on, or their own again where they are None."""
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
        self._app.run_worker(partial(self._told, work), thread=True, exit_on_error=False, group="settings")

    def _told(self, work: Callable[[], None]) -> None:
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
