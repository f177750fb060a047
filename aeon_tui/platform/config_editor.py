"""A configuration file in a person's own editor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aeon_core.config.keys import CONFIG_KEYS
from aeon_core.config.loading import read_config_file, user_config_file
from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER
from aeon_tui.platform.editor import named_editor, run_editor

HEAD = """\
# Settings of Aeon{whose}, as `key: value` lines; remove the # from those you want.
# Press `,` in the app to see what each one means; `aeon-tui doctor` checks them.
{lines}
"""
_EXAMPLES = {
    "model": "anthropic:claude-sonnet-4-5",
    "ttl": "50",
    "tools": "[files]",
    "approve": "[pass, tool]",
    "budget": "1.00",
}


def config_file_of(whose: str, project_root: Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the person's configuration file (`own`), or the project's."""
    if whose == "own" or project_root is None:
        return user_config_file(environ)
    return project_root / PROJECT_FOLDER / "config.yml"


def make_sure_it_is_there(file: Path, whose: str) -> None:
    """Make a file with a head that says what it may hold, where there is none. Raises UsageError."""
    if file.exists():
        return
    lines = "\n".join(f"# {key}: {value}   # {CONFIG_KEYS[key].expected}" for key, value in _EXAMPLES.items())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as made:
            made.write(HEAD.format(whose="" if whose == "own" else " in this project", lines=lines))
    except OSError as error:
        raise UsageError(f"cannot create {str(file)!r}: {error.strerror}") from None


def edit_config(file: Path) -> str | None:
    """Open a file in `$VISUAL`, else `$EDITOR`; return what is wrong with it afterwards, None where nothing is.

    Raises UsageError where there is no editor, or it fails.
    """
    code = run_editor(named_editor(f"edit {str(file)!r} yourself"), file)
    if code != 0:
        raise UsageError(f"the editor ended with code {code}")
    try:
        read_config_file(file)
    except UsageError as error:
        return error.message
    return None
