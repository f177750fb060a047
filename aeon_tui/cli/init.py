"""`aeon-tui init`: a project's commented configuration, its schemas for editors, and what git leaves out."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from aeon_core.config.template import GITIGNORE, SCHEMAS, config_template
from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER, find_project_root, is_placeholder
from aeon_core.schemas import FILES, schema
from aeon_tui.cli.output import stderr


def execute(args: Namespace) -> int:
    """Create the missing files, report each file, and return 0. Raises UsageError, OSError."""
    root = Path(args.project_root).expanduser().absolute() if args.project_root is not None else find_project_root()
    if not root.is_dir():
        raise UsageError(f"the project root {str(root)!r} is not a folder; choose an existing one with --project-root")
    folder = root / PROJECT_FOLDER
    if folder.is_symlink() or is_placeholder(folder) or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{str(folder)!r} is not a folder of this project; remove it first")
    files = {"config.yml": config_template(), ".gitignore": GITIGNORE}
    files |= {f"{SCHEMAS}/{name}.json": json.dumps(schema(name), indent=2) + "\n" for name in FILES}
    err, is_new = stderr(), not folder.exists()
    for name, text in files.items():
        made = _create(folder / name, text)
        said = ("created", "green") if made else ("kept", "yellow")
        err.line(said, f" {folder / name}{'' if made else ' already exists'}")
    if is_new:
        err.line((f"this project's runs are now stored in {folder / 'runs'}", "dim"))
    return 0


def _create(file: Path, text: str) -> bool:
    """Create a file and its folder, and return whether it was created; an existing one, even a link, is kept."""
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        return False
    return True
