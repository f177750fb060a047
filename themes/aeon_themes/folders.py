"""The folders of a user's own themes. Kept light, so that an app without any starts without loading a YAML parser."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from aeon_core.config.loading import user_config_file
from aeon_core.paths import PROJECT_FOLDER

MAX_FILES = 100
"""The most files read from one folder."""


def theme_folders(project_root: Path, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return the folders of the user's themes, then of the project's; they need not exist."""
    user = user_config_file(os.environ if environ is None else environ).parent
    return user / "themes", project_root / PROJECT_FOLDER / "themes"


def theme_files(folders: Iterable[Path]) -> list[Path]:
    """Return the theme files, `*.yml`, folder by folder, sorted by name."""
    return [path for folder in folders for path in _files_in(folder)]


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.yml") if path.is_file())[:MAX_FILES]
    except OSError:
        return []
