"""A text in the person's pager, or in their editor."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_tui.platform.editor import named_editor, run_editor


def pager_command() -> list[str]:
    """Return the command of `$PAGER`, empty where there is none. Raises UsageError where it is not a command."""
    try:
        return shlex.split(os.environ.get("PAGER", ""))
    except ValueError:
        raise UsageError(f"the pager {os.environ['PAGER']!r} is not a command; set PAGER to one") from None


def editor_command() -> list[str]:
    """Return the command of the person's editor. Raises UsageError where there is none."""
    return named_editor("copy the text instead")


def open_text(command: list[str], text: str, suffix: str) -> None:
    """Open a text in a program as a file that only this user can read, and that is gone afterwards.

    The program has the terminal meanwhile. Raises UsageError where it cannot be started, OSError where the file cannot
    be written.
    """
    with tempfile.TemporaryDirectory(prefix="aeon-") as folder:
        file = Path(folder) / f"text{suffix}"
        file.write_text(text, encoding="utf-8", errors="replace")
        run_editor(command, file)
