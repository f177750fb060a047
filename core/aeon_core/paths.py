"""The folders of a project and its runs. Kept light: a list of runs needs no more of the configuration."""

from __future__ import annotations

import errno
import os
import shlex
import stat
import sys
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls

PROJECT_FOLDER = ".aeon"
PLACEHOLDERS = {"commondir": b"./", "config.worktree": b"#\n", "locked": b"#\n"}
"""Names that git reserves for itself, and a content of no effect: git does not start if such a file is a folder, and
libgit2, as in cargo, finds no repository if `commondir` is a dot alone."""
PROGRAMS = {"aeon-tui": "aeon_tui", "system2": "system2"}
"""Aeon's programs, each a script of that name, and their modules."""
GITIGNORE = """\
# Runs hold full prompts, replies and tool output: keep them out of the repository.
/runs/
*.jsonl
*.inbox
*.files
*.torn-*
.runs-list*
"""


def working_directory() -> Path:
    """Return the working directory. Raises UsageError if it was deleted, or its files cannot be reached."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        raise UsageError("the working directory was deleted; change to one that exists") from None
    # The second call fails if a folder above it cannot be searched.
    if not (os.access(".", os.X_OK) and os.access(here, os.X_OK)):
        raise UsageError(f"you have no permission to use the working directory {str(here)!r}; change to another one")
    return here


def find_project_root(start: Path | None = None) -> Path:
    """Return the nearest folder at or above `start` (the working directory) with `.aeon` or `.git`, else `start`.

    Raises UsageError if the working directory was deleted.
    """
    here = (start if start is not None else working_directory()).absolute()
    for folder in (here, *here.parents):
        if has_project_folder(folder) or (_has_git(folder) and not is_placeholder(folder / ".git")):
            return folder
    return here


def git_root() -> Path:
    """Return the git root around the working directory, else the directory itself: the project of a workflow.

    Raises UsageError if the working directory was deleted.
    """
    here = working_directory()
    return next((folder for folder in (here, *here.parents) if _has_git(folder)), here)


def _has_git(folder: Path) -> bool:
    return os.path.exists(folder / ".git")  # noqa: PTH110  # a link that cannot be followed is none, as for git


def has_project_folder(folder: Path) -> bool:
    """Return whether the folder has a `.aeon` that is not just a placeholder."""
    path = folder / PROJECT_FOLDER
    return os.path.isdir(path) and not is_placeholder(path)  # noqa: PTH112  # likewise


def is_placeholder(path: Path) -> bool:
    """Return whether a folder or file only reserves its name during a command (`tools/protected_paths.py`).

    Such a folder is empty, such a file one of `PLACEHOLDERS`, and either has the sticky bit, which nobody sets there.
    """
    try:
        status = path.lstat()
        if not status.st_mode & stat.S_ISVTX:
            return False
        if stat.S_ISREG(status.st_mode):
            return status.st_size == 2 and path.read_bytes() in PLACEHOLDERS.values()
        return stat.S_ISDIR(status.st_mode) and not any(path.iterdir())
    except OSError:
        return False


def make_config_folder(folder: Path) -> None:
    """Create the folder of a new configuration file, and keep a project's runs out of git. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if folder.name == PROJECT_FOLDER:
        create_file(folder / ".gitignore", GITIGNORE)


def create_file(file: Path, text: str) -> bool:
    """Create a file and its folder, and return whether it was created; an existing one, even a link, is kept.

    A file that cannot be written in full is removed, since the next attempt would keep it. Raises OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = file.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    try:
        with made:
            made.write(text)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    return True


def make_runs_folder(folder: Path) -> None:
    """Create a folder of runs; a new one in a project's `.aeon` is kept out of git. Raises OSError."""
    if folder.parent.name == PROJECT_FOLDER and not folder.is_dir():
        make_config_folder(folder.parent)
    folder.mkdir(parents=True, exist_ok=True)


def why_not_writable(directory: Path) -> str | None:
    """Return why runs cannot be written there, None if they can; the folder may not exist yet."""
    try:
        directory.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return "its path is too long"
    nearest = directory
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        return f"{str(nearest)!r} is not a folder"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"cannot write to {str(nearest)!r}"
    return None


def writable(directory: Path) -> Path:
    """Return the runs directory. Raises UsageError if a run could not be written there."""
    if problem := why_not_writable(directory):
        raise UsageError(f"cannot store runs in {str(directory)!r}: {problem}; choose another folder with --runs-dir")
    return directory


def expanded(path: str | Path, where: str) -> Path:
    """Return a path with the home folder for its `~`. Raises UsageError, in one line that begins with `where`."""
    if path == "":
        raise UsageError(f"{where}: expected a path, got an empty one")
    try:
        found = Path(path).expanduser()
        os.fsencode(found)
    except UnicodeEncodeError:
        raise UsageError(f"{where}: {str(path)!r} contains a lone surrogate; choose another path") from None
    except TypeError:
        raise UsageError(f"{where}: expected a path, got {path!r}") from None
    except RuntimeError:
        raise UsageError(f"{where}: the home folder in {str(path)!r} is unknown; write the full path") from None
    if "\0" in str(found):
        raise UsageError(f"{where}: {str(path)!r} contains a NUL character; choose another path")
    return found


def real_path(path: Path | str) -> Path:
    """Return a path with links followed. Unlike for `Path.resolve`, a link in a loop is no error: it stays as it is.

    Raises ValueError for a NUL character or a lone surrogate.
    """
    return Path(os.path.realpath(path))


def program_outside(project_root: Path, name: str) -> str | None:
    """Return the absolute path of a program on the PATH that may run without isolation; None if there is none.

    One in the project is none: a command of an agent, or whoever made the project, could have put it there.
    """
    import shutil

    root = real_path(project_root)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which(name, path=folder) if folder else None
        if found and not any(real_path(place).is_relative_to(root) for place in (folder, found)):
            return str(Path(found).absolute())
    return None


def user_state_folder() -> Path:
    """Return Aeon's folder in the user's state directory; it may not exist. Raises UsageError if that is unknown."""
    from platformdirs import user_state_path

    try:
        return user_state_path("aeon", appauthor=False)
    except RuntimeError:
        raise UsageError("your home folder is unknown; set HOME or XDG_STATE_HOME to a full path") from None


def default_runs_directory(project_root: Path | None = None) -> Path:
    """Return the default folder of runs: `AEON_RUNS_DIR`, else `.aeon/runs` if the project (by default that of the
    working directory) has a `.aeon`, else the platform's user state directory, which is also used if a symbolic link
    leads out of the project. The folder may not exist yet. Raises UsageError if it is in an unknown home folder.
    """
    if from_environment := os.environ.get("AEON_RUNS_DIR"):
        return expanded(from_environment, "the environment variable AEON_RUNS_DIR")
    root = project_root if project_root is not None else find_project_root()
    runs = root / PROJECT_FOLDER / "runs"
    if has_project_folder(root) and Path(os.path.realpath(runs)).is_relative_to(os.path.realpath(root)):
        return runs
    return user_state_folder() / "runs"


def run_argument(journal: Path | str) -> str:
    """Return the name of a run on the command line, quoted for a shell.

    That is its id in the directory where commands look by default, and its path elsewhere.
    """
    path = Path(journal).absolute()
    try:
        is_found = path.parent == default_runs_directory().absolute()
    except UsageError:
        is_found = False
    return escape_controls(shlex.quote(path.stem if is_found else str(path)))


def run_command(verb: str, journal: Path | str, more: str = "") -> str:
    """Return the command, in backquotes, that does something with a run, wherever its journal is."""
    return f"`{' '.join(filter(None, (program(), verb, run_argument(journal), more)))}`"


def program(name: str = "aeon-tui") -> str:
    """Return how to call one of `PROGRAMS`, quoted for a shell: by its name, if that is on PATH.

    Otherwise, as in a checkout, it is called as this process was: by the path of its script, or as a module. A process
    that only uses the library knows neither, and gets the name.
    """
    import shutil

    called = Path(sys.argv[0])
    if shutil.which(name) is not None:
        return name
    if called.name == "__main__.py" and called.parent.name in PROGRAMS.values():
        return f"python -m {PROGRAMS[name]}"
    if called.name not in PROGRAMS:
        return name
    try:
        folder = min(os.path.relpath(called.parent), str(called.parent.absolute()), key=len)
    except FileNotFoundError:  # the working directory was deleted
        folder = str(called.parent)
    return escape_controls(shlex.quote(f"{folder}/{name}"))


def named_project_root(given: str | None) -> Path:
    """Return the project root that an option names, else the one found. Raises UsageError if it is not a folder."""
    root = working_directory() / expanded(given, "--project-root") if given is not None else find_project_root()
    return existing_root(root)


def existing_root(root: Path) -> Path:
    """Return a project root. Raises UsageError if it is not a folder."""
    if not os.path.isdir(root):  # noqa: PTH112  # `Path.is_dir` raises an OSError for a name that is too long
        raise UsageError(f"the project root {str(root)!r} is not a folder; choose an existing one with --project-root")
    return root


def leads_to(path: str, diff: str) -> str:
    """Return the file that a unified diff changes if `path`, which names it, is or is behind a link; else empty."""
    head = diff.partition("\n")[0]
    named, target = os.path.normpath(escape_controls(path)), head.removeprefix("--- a/")
    is_same = named == target or (named.startswith("/") and named.endswith(f"/{target}"))
    return "" if target == head or is_same else target
