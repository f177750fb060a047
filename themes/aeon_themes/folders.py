"""Where a person's own themes are. Light: an app without any is to start without reading YAML."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from aeon_core.config.loading import user_config_file
from aeon_core.paths import PROJECT_FOLDER

MAX_FILES = 100
"""The most files that are read of a folder."""


def theme_folders(project_root: Path, environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Return where a person's themes and then a project's are looked for; the folders need not exist."""
    user = user_config_file(os.environ if environ is None else environ).parent
    return user / "themes", project_root / PROJECT_FOLDER / "themes"


def theme_files(folders: Iterable[Path]) -> list[Path]:
    """Return the theme files, `*.yml`, in the order of the folders and of their names."""
    return [path for folder in folders for path in _files_in(folder)]


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob("*.yml") if path.is_file())[:MAX_FILES]
    except OSError:
        return []
