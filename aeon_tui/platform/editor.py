"""A person's own editor: which one it is, and a file opened in it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from aeon_core.errors import UsageError
from aeon_tui.platform.signals import handled

if TYPE_CHECKING:
    from textual.app import App


@contextlib.contextmanager
def terminal_given(app: App[Any]) -> Iterator[None]:
    """Give the terminal away, to an editor. Raises SuspendNotSupported where the app cannot.

    What goes wrong meanwhile is raised once the app has it back: Textual would not take it back then.
    """
    raised: Exception | None = None
    with app.suspend():
        try:
            yield
        except Exception as error:
            raised = error
    if raised is not None:
        raise raised


def named_editor(otherwise: str) -> list[str]:
    """Return the command of `$VISUAL`, else `$EDITOR`; raises UsageError where there is none, with what else to do."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named!r} is not a command; set VISUAL or EDITOR to one") from None
    if not words:
        raise UsageError(f"no editor is set; set VISUAL or EDITOR, or {otherwise}")
    return words


def run_editor(editor: list[str], file: Path) -> int:
    """Open a file in an editor and return its exit code. Raises UsageError where it cannot be started."""
    screen = _terminal()
    try:
        # Ctrl-C in the editor is not meant for what waits for it.
        with handled(lambda *_: None, signal.SIGINT):
            command = [*editor, str(file)]
            return subprocess.run(command, check=False, stdout=screen, stderr=screen).returncode  # noqa: S603  # the person's own editor
    except OSError as error:
        raise UsageError(
            f"cannot start the editor {editor[0]!r}: {error.strerror}; set VISUAL or EDITOR to another"
        ) from None


def _terminal() -> TextIO | None:
    """Return what the person sees: where the app is on screen, descriptor 1 leads elsewhere. None for what there is."""
    return next((each for each in (sys.__stdout__, sys.__stderr__) if each is not None and each.isatty()), None)
