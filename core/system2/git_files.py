"""A project's files as git lists them, and the contents that git has, in a folder that may be hostile.

Git runs in a folder of its own that holds copies: the repository's configuration, hooks, filters and file system
monitor are never read, and its index, references and objects are never written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from aeon_core.regular_file import read_start

SECONDS = 60
MAX_INDEX = 500_000_000
_MAX_POINTER = 10_000
_SUBMODULE = "160000"


@dataclass(frozen=True)
class GitListing:
    """What is in a work tree, by path relative to the project root."""

    tracked: list[str]
    untracked: list[str]
    """Without what is ignored."""
    folders: list[str]
    """Other repositories in it, whose files git does not list."""
    blobs: frozenset[str]
    """The ids of the contents that are tracked."""


class GitFiles:
    """Asks git about the repository that a project is in. Where there is none, or git fails, all is None."""

    def __init__(self, project_root: Path) -> None:
        self._root = project_root
        found = (folder for folder in (project_root, *project_root.parents) if os.path.lexists(folder / ".git"))
        self._top = next(found, None)
        self._git = _program(project_root) if self._top is not None else None
        self._excluded = _user_excludes(self._git) if self._git is not None else b""

    def listing(self) -> GitListing | None:
        """Return what git lists. A root in a work tree of which nothing is tracked there belongs to no repository."""
        with self._copy() as environ:
            tracked = self._run(environ, "ls-files", "-z", "-s")
            others = self._run(environ, "ls-files", "-z", "--others", "--exclude-standard")
        if tracked is None or others is None or (not tracked and self._top != self._root):
            return None
        paths, blobs = list(map(os.fsdecode, others.split(b"\0")[:-1])), set()
        folders = [path.rstrip("/") for path in paths if path.endswith("/")]
        listing = GitListing([], [path for path in paths if not path.endswith("/")], folders, frozenset())
        for entry in tracked.split(b"\0")[:-1]:
            about, _, path = entry.partition(b"\t")
            mode, blob, _ = about.decode("ascii").split(" ")
            (folders if mode == _SUBMODULE else listing.tracked).append(os.fsdecode(path))
            blobs.add(blob)
        return replace(listing, blobs=frozenset(blobs))

    def content(self, blob: str) -> bytes | None:
        """Return the content that git has under an id."""
        with self._copy(index=False) as environ:
            return self._run(environ, "cat-file", "blob", blob)

    def _run(self, environ: dict[str, str] | None, *words: str) -> bytes | None:
        if self._git is None or environ is None:
            return None
        command = [self._git, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *words]
        try:
            done = subprocess.run(  # noqa: S603  # git, with words of our own
                command,
                cwd=self._root,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout if done.returncode == 0 else None

    @contextmanager
    def _copy(self, *, index: bool = True) -> Iterator[dict[str, str] | None]:
        """Give the environment for git in a repository of ours that has the project's index, and none of its settings.

        It is made for each use and in no folder of the project, so that no agent can put a setting into it.
        """
        if self._top is None or self._git is None:
            yield None
            return
        own, shared = _git_folders(self._top / ".git")
        with tempfile.TemporaryDirectory(prefix="aeon-git-") as name:
            copy = Path(name)
            for folder in ("refs", "objects/info", "info"):
                (copy / folder).mkdir(parents=True)
            (copy / "HEAD").write_text("ref: refs/heads/main\n")
            (copy / "config").write_text("[core]\n\trepositoryformatversion = 0\n")
            (copy / "objects/info/alternates").write_bytes(os.fsencode(shared / "objects") + b"\n")
            excluded = self._excluded + b"\n" + _start(shared / "info" / "exclude", _MAX_POINTER * 10)
            (copy / "info/exclude").write_bytes(excluded)
            for file in (own / "index", *own.glob("sharedindex.*")) if index else ():
                if content := _start(file, MAX_INDEX):
                    (copy / file.name).write_bytes(content)
            yield {
                **_SEALED,
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": name,
                "XDG_CONFIG_HOME": name,
                "GIT_DIR": name,
                "GIT_WORK_TREE": str(self._top),
            }


_SEALED = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
}


def _program(project_root: Path) -> str | None:
    """Return where git is; None for one that the project brings."""
    found = shutil.which("git")
    if found is None or Path(found).resolve().is_relative_to(project_root.resolve()):
        return None
    return str(Path(found).absolute())


def _user_excludes(git: str) -> bytes:
    """Return what the user ignores in every repository, by the user's own configuration."""
    words = [git, "config", "--global", "--type=path", "--get", "core.excludesFile"]
    told = b""
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(words, capture_output=True, cwd="/", timeout=SECONDS, check=False).stdout  # noqa: S603
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    named = os.fsdecode(told).strip() or f"{home}/git/ignore"
    return _start(Path(named).expanduser(), _MAX_POINTER * 10)


def _git_folders(git: Path) -> tuple[Path, Path]:
    """Return the folder of a work tree's index, and that of its repository."""
    own = git
    if not git.is_dir():
        told = os.fsdecode(_start(git, _MAX_POINTER)).strip()
        own = git.parent / told.removeprefix("gitdir:").strip()
    common = os.fsdecode(_start(own / "commondir", _MAX_POINTER)).strip()
    return own, (own / common).resolve() if common else own.resolve()


def _start(path: Path, most: int) -> bytes:
    try:
        return read_start(path, most)
    except (OSError, ValueError, RuntimeError):
        return b""
