"""Where a project begins and where its runs live. Light: this is all that a list of runs needs of the configuration."""

from __future__ import annotations

import os
from pathlib import Path

from aeon_core.errors import UsageError

PROJECT_FOLDER = ".aeon"


def find_project_root(start: Path | None = None) -> Path:
    """Return the nearest folder at or above `start` (the working directory) with `.aeon` or `.git`, else `start`."""
    here = (start if start is not None else Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FOLDER).is_dir() or (folder / ".git").exists():
            return folder
    return here


def expanded(path: str | Path, where: str) -> Path:
    """Return a path with the home folder for its `~`. Raises UsageError, in one line that begins with `where`."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(f"{where}: the home folder in {str(path)!r} is not known; write the path out") from None


def default_runs_directory(project_root: Path | None = None) -> Path:
    """Return where runs live when no configuration says it: `AEON_RUNS_DIR`, else `.aeon/runs` where the project (by
    default the one of the working directory) has a `.aeon`, else the platform's user state directory; so it is where a
    symbolic link leads out of the project. The folder may not exist yet. Raises UsageError where the variable names an
    unknown home folder.
    """
    if from_environment := os.environ.get("AEON_RUNS_DIR"):
        return expanded(from_environment, "the environment variable AEON_RUNS_DIR")
    root = project_root if project_root is not None else find_project_root()
    runs = root / PROJECT_FOLDER / "runs"
    if (root / PROJECT_FOLDER).is_dir() and Path(os.path.realpath(runs)).is_relative_to(os.path.realpath(root)):
        return runs
    from platformdirs import user_state_path

    return user_state_path("aeon", appauthor=False) / "runs"
