"""The files of a project that git lists, even if its folder is hostile.

Git runs on a temporary repository with a copy of the index: the project's git configuration, hooks, filters and file
system monitor are never used, and its index, references and objects are never written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aeon_core.paths import real_path
from aeon_core.regular_file import read_start

_SECONDS = 60
_MAX_INDEX = 500_000_000
_MAX_SETTINGS = 100_000
_SUBMODULE = b"160000 "
_SEALED = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


@dataclass(frozen=True)
class GitListing:
    """What is in a work tree, by path relative to the project root."""

    tracked: list[str]
    """Includes ignored files that git tracks."""
    untracked: list[str]
    """Without ignored files."""
    folders: list[str]
    """Nested repositories, whose files git does not list."""


class GitFiles:
    """Asks git about the repository that a project is in."""

    def __init__(self, project_root: Path) -> None:
        self._root = project_root
        found = (folder for folder in (project_root, *project_root.parents) if os.path.lexists(folder / ".git"))
        self._top = next(found, None)
        self._git = _program(project_root) if self._top is not None else None
        self._excluded = _user_excludes(self._git) if self._git is not None else b""

    def list(self) -> GitListing | None:
        """Return what git lists; None if git fails, or the project belongs to no repository.

        A project inside a work tree that tracks none of its files belongs to no repository.
        """
        if self._top is None or self._git is None:
            return None
        with self._repository(self._top) as environ:
            index = self._run(environ, "ls-files", "-z", "-s")
            others = self._run(environ, "ls-files", "-z", "--others", "--exclude-standard")
        if index is None or others is None or (not index and self._top != self._root):
            return None
        tracked, untracked, folders = list[str](), list[str](), list[str]()
        for entry in index.split(b"\0")[:-1]:
            path = os.fsdecode(entry.partition(b"\t")[2])
            (folders if entry.startswith(_SUBMODULE) else tracked).append(path)
        for path in map(os.fsdecode, others.split(b"\0")[:-1]):
            (folders if path.endswith("/") else untracked).append(path.rstrip("/"))
        return GitListing(tracked, untracked, folders)

    def _run(self, environ: dict[str, str], *words: str) -> bytes | None:
        command = [str(self._git), "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words]
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603  # git, with words of our own
                command,
                cwd=self._root,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
            return done.stdout if done.returncode == 0 else None
        return None

    @contextmanager
    def _repository(self, top: Path) -> Iterator[dict[str, str]]:
        """Yield the environment for git on a temporary repository, with the project's index but not its configuration.

        The repository is created for each use, outside the project, so that no agent can configure it.
        """
        own, shared = _git_folders(top / ".git")
        with tempfile.TemporaryDirectory(prefix="aeon-git-") as name:
            copy = Path(name)
            for folder in ("refs", "objects", "info"):
                (copy / folder).mkdir()
            (copy / "HEAD").write_text("ref: refs/heads/main\n")
            (copy / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
            (copy / "info/exclude").write_bytes(self._excluded + b"\n" + _read(shared / "info/exclude", _MAX_SETTINGS))
            for file in (own / "index", *own.glob("sharedindex.*")):
                if content := _read(file, _MAX_INDEX):
                    (copy / file.name).write_bytes(content)
            yield {
                **_SEALED,
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": name,
                "XDG_CONFIG_HOME": name,
                "GIT_DIR": name,
                "GIT_WORK_TREE": str(top),
            }


def _program(project_root: Path) -> str | None:
    """Return the path of git; None if there is none, or if it is part of the project."""
    found = shutil.which("git")
    if found is None or real_path(found).is_relative_to(real_path(project_root)):
        return None
    return str(Path(found).absolute())


def _user_excludes(git: str) -> bytes:
    """Return the ignore patterns from the user's own git configuration."""
    words = [git, "config", "--global", "--type=path", "--get", "core.excludesFile"]
    named = b""
    with suppress(OSError, subprocess.SubprocessError):
        named = subprocess.run(words, capture_output=True, cwd="/", timeout=_SECONDS, check=False).stdout  # noqa: S603
    default = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/git/ignore"
    return _read(Path(os.fsdecode(named).strip() or default).expanduser(), _MAX_SETTINGS)


def _git_folders(git: Path) -> tuple[Path, Path]:
    """Return the git folder of a work tree, which holds its index, and that of its repository."""
    own = git
    if not git.is_dir():
        own = git.parent / os.fsdecode(_read(git, _MAX_SETTINGS)).strip().removeprefix("gitdir:").strip()
    common = os.fsdecode(_read(own / "commondir", _MAX_SETTINGS)).strip()
    return own, real_path(own / common) if common else real_path(own)


def _read(path: Path, most: int) -> bytes:
    try:
        return read_start(path, most)
    except (OSError, ValueError, RuntimeError):
        return b""
