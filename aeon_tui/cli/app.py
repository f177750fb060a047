"""`aeon-tui` without a command: the app, on its run browser."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from aeon_core.errors import UsageError
from aeon_tui.cli import options
from aeon_tui.cli.output import has_screen
from aeon_tui.platform.terminal import is_served

if TYPE_CHECKING:
    from aeon_tui.app import AeonApp


def execute(args: Namespace) -> int:
    """Open the app and return its exit code. Raises UsageError without a terminal."""
    loaded = options.load_light(args)
    if not (is_served() or has_screen()):
        raise UsageError("the app needs a terminal; without one, use `aeon-tui run --headless` or `aeon-tui runs`")
    from aeon_tui.app import run_app

    def prepare(app: AeonApp) -> None:
        app.apply_settings(loaded.app)
        if loaded.ignored and not loaded.trust.allowed:
            app.untrusted = loaded.trust

    return run_app(options.runs_dir_of(loaded), None, lambda: options.load(args), prepare)
