"""The places of a project that other programs act upon later, beyond the tools' limits.

A command may not change them, and writing to one with a file tool needs a person's approval whatever the rules allow.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from aeon_core.paths import PLACEHOLDERS, is_placeholder, real_path
from aeon_core.regular_file import closing_fd, read_start

PROTECTED = {
    ".aeon": "configures future Aeon runs",
    ".system2": "configures the System2 workflow",
    ".claude": "configures agents",
    ".mcp.json": "configures what agents start",
    ".venv": "contains programs that run later",
    ".envrc": "is run by direnv",
    ".vscode": "configures what the editor runs",
    ".pre-commit-config.yaml": "configures what runs before a commit",
    ".git": "configures what git runs",
}
"""The names, at any depth of a project, and their purpose. In `.git`, commands may change all but `_GIT_PARTS`."""

_GIT_PARTS = ("config", "hooks", "info", "commondir", "config.worktree", "gitdir")
_GIT_HOOKS = frozenset(
    """
    applypatch-msg commit-msg fsmonitor-watchman p4-changelist p4-post-changelist p4-pre-submit p4-prepare-changelist
    post-applypatch post-checkout post-commit post-index-change post-merge post-receive post-rewrite post-update
    pre-applypatch pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase pre-receive prepare-commit-msg
    proc-receive push-to-checkout reference-transaction sendemail-validate update
    """.split()  # noqa: SIM905  # as a list, one line for each
)
_REBASE_TODO = "git-rebase-todo"
_MAX_TEXT = 65_536
_MAX_FOLDERS = 20_000
"""How many folders are searched for other repositories."""
_MAX_WORKTREES = 100
_NOT_SEARCHED = {"node_modules", "target", "build", "dist", "site-packages", "__pycache__", ".venv", "venv", ".tox"}


@dataclass(frozen=True, slots=True)
class ProtectedPaths:
    """What a command may not change: absolute paths, below the project root or one of `git_folders`."""

    existing: tuple[Path, ...]
    """Without symbolic links: the target of one that leads into the project."""
    missing: tuple[Path, ...]
    """Paths that must not be created either."""
    git_folders: tuple[Path, ...] = ()
    """For a worktree or submodule whose repository is outside the project root: git must be able to write there."""
    watched: tuple[Path, ...] = ()
    """What git would read or run and cannot be protected, since commands may make it: only a change is reported."""


def change_reason(root: Path, place: PurePosixPath) -> str | None:
    """Return what the file at `place`, relative to the root, controls; None if only the project's own code.

    Case and invisible characters are ignored, as some file systems ignore them.
    """
    for part in place.parts:
        if reason := PROTECTED.get(folded(part)):
            return reason
    path, interpreter = _folded_path(root / place), real_path(sys.prefix)
    if interpreter != root and path.is_relative_to(_folded_path(interpreter)):
        return "belongs to the Python that runs Aeon"
    for folder in _repository_folders(root / ".git", root):
        if folder != root and path.is_relative_to(_folded_path(folder)):
            return PROTECTED[".git"]
        if any(path.is_relative_to(_folded_path(hooks)) for hooks in _hook_paths(folder, root)):
            return "is run by git, as core.hooksPath says"
        if path in map(_folded_path, _included(folder, root)):
            return PROTECTED[".git"]
    return None


def find_repositories(root: Path) -> list[Path]:
    """Return each `.git` in the project below its root, at any depth, but not in some folders like `node_modules`.

    A huge project is searched in the folders nearest to the root only.
    """
    return sorted(found for found in _below(root, ".git") if found.parent != root)


def find_protected(root: Path, repositories: Iterable[Path] = ()) -> ProtectedPaths:
    """Return what a command in the project may not change; `root` is absolute and resolved.

    `repositories` is what `find_repositories` returns.
    """
    places = {root / name for name in PROTECTED if name != ".git"}
    folders: list[Path] = []
    for pointer in (root / ".git", *repositories):
        # Unlike `Path.is_dir`, these take a folder that may not be searched; its parts cannot be protected one by one.
        is_folder = os.path.isdir(pointer) and not os.path.islink(pointer)  # noqa: PTH112, PTH114
        if is_placeholder(pointer) or not is_folder or not os.access(pointer, os.X_OK):
            places.add(pointer)
        folders += _repository_folders(pointer, root)
    for folder in list(folders):
        folders += (config.parent for config in _below(folder / "modules", "config") if os.path.isfile(config))  # noqa: PTH113
    for worktree in [each for folder in dict.fromkeys(folders) for each in _worktrees_elsewhere(folder, root)]:
        # A command cannot see it, and `git worktree prune` would delete what git knows of it.
        places |= {worktree / "locked", *_git_places(worktree, root)}
    for folder in dict.fromkeys(folders):
        places |= set(_git_places(folder, root))
    interpreter = real_path(sys.prefix)
    if interpreter != root and interpreter.is_relative_to(root):
        places.add(interpreter)
    outside = tuple(folder for folder in dict.fromkeys(folders) if not folder.is_relative_to(root))
    writable = {root, *outside}
    # A command may have made a link on the way to a place: a mount there would open what is behind it.
    places = {place for place in map(_without_links, places) if writable.intersection(place.parents)}
    missing = {place for place in places if _is_free(place)}
    # Unlike `Path.exists`, this takes a path in git's settings that is too long.
    existing = {real_path(place) for place in places - missing if os.path.exists(place)}  # noqa: PTH110
    included = {_without_links(place) for folder in folders for place in _included(folder, root)}
    watched = {place for place in missing if place in included or (place.parent == root and place.name in _GIT_HOOKS)}
    watched |= {place for place in places if os.path.islink(place)}  # noqa: PTH114  # as above
    steps = {folder / "rebase-merge" / name for folder in folders for name in (_REBASE_TODO, "strategy")}
    return ProtectedPaths(
        tuple(sorted(place for place in existing if writable.intersection(place.parents))),
        tuple(sorted({_first_missing(place, writable) for place in missing - watched})),
        outside,
        tuple(sorted(watched | steps)),
    )


def is_plain_todo(path: Path) -> bool:
    """Return whether a path is that of the steps of a stopped rebase, none of which has git run a command."""
    if path.name != _REBASE_TODO or path.is_symlink():
        return False
    text = _text(path)
    return len(text.encode()) < _MAX_TEXT and re.search(r"(?m)^\s*(?:x|exec)\s", text) is None


def file_state(path: Path) -> object:
    """Return a value that changes with a file; that of a folder is always the same, and None stands for nothing."""
    with suppress(OSError):
        status = path.lstat()
        return (status.st_ino, status.st_ctime_ns, status.st_size) if not stat.S_ISDIR(status.st_mode) else "a folder"
    return None


def _git_places(folder: Path, root: Path) -> Iterator[Path]:
    """Yield the settings and hooks of one repository; some only if they exist."""
    # A linked worktree has its settings in the common folder.
    text = _text(folder / _common(folder) / "config").lower()
    for part in _GIT_PARTS:
        path = folder / part
        if part == "config.worktree":
            needed = "worktreeconfig" in text
        else:
            needed = part in {"hooks", "info", "commondir"} and os.path.exists(folder / "config")  # noqa: PTH110
        if needed or os.path.exists(path):  # noqa: PTH110
            yield path
    yield from _hook_paths(folder, root)
    yield from _included(folder, root)


def _included(folder: Path, root: Path) -> list[Path]:
    """Return the files in the project that a repository's own settings include, or run as `mergetool.NAME.path`."""
    places = _paths_in_settings(_own(folder), "path", folder)
    return [place for place in places if place != root and place.is_relative_to(root)]


def _hook_paths(folder: Path, root: Path) -> list[Path]:
    """Return the folder of hooks in the settings of a repository, or else the user's, if that is in the project.

    For the root, return each hook.
    """
    users = (os.environ.get("XDG_CONFIG_HOME") or "~/.config", "git/config"), ("~", ".gitconfig")
    files = [Path(os.path.expanduser(place), name) for place, name in users]  # noqa: PTH111  # as below
    found = [*_paths_in_settings(files, "hookspath", root), *_paths_in_settings(_own(folder), "hookspath", root)]
    if not found:
        return []
    place = found[-1]
    # Husky generates its hooks in a folder of that name, from those next to it.
    husky = place.name == "_" and place != root
    folders = [place, place.parent] if husky else [place]
    if root in folders:
        return [*folders[:-1], *(root / name for name in _GIT_HOOKS)]
    return [folders[-1]] if place.is_relative_to(root) else []


def _own(folder: Path) -> list[Path]:
    return [folder / name for name in ("config", "config.worktree")]


def _paths_in_settings(files: Iterable[Path], key: str, base: Path) -> list[Path]:
    """Return each path that git's settings in some files give for a key, which may follow its section on one line.

    Neither the path nor the user in `~user` needs to exist.
    """
    setting = rf"(?im)^\s*(?:\[.*\]\s*)?{key}\s*=\s*\"?([^\"\n#;\0]+?)\"?\s*(?:[#;\0].*)?$"
    found = re.findall(setting, "\n".join(map(_text, files)))
    return [Path(os.path.normpath(base / os.path.expanduser(path))) for path in found]  # noqa: PTH111


def git_folders(pointer: Path) -> list[Path]:
    """Return the folders of the repository that a `.git` refers to: its own, and for a worktree the common one.

    A `.git` file or link counts only if what it names points back, as git itself sets it up: it would otherwise open
    any folder to commands.
    """
    if os.path.isdir(pointer) and not os.path.islink(pointer):  # noqa: PTH112, PTH114
        return [real_path(pointer)]
    folder = _named_folder(pointer)
    if folder is None:
        return []
    common = real_path(folder / _common(folder))
    if common != folder:
        back = _text(folder / "gitdir").strip()
        linked = folder.parent == common / "worktrees" and real_path(folder / back) == _without_links(pointer)
        return [folder, common] if back and linked else []
    tree = re.search(r"(?im)^\s*worktree\s*=\s*\"?([^\"\n]+?)\"?\s*$", _text(folder / "config"))
    linked = tree is not None and real_path(folder / tree[1]) == real_path(pointer.parent)
    return [folder] if linked else []


def _worktrees_elsewhere(folder: Path, root: Path) -> list[Path]:
    """Return the folders that a repository has for its worktrees outside the project."""
    try:
        found = list(islice((folder / "worktrees").iterdir(), _MAX_WORKTREES))
    except OSError:
        return []
    trees = {each: _text(each / "gitdir").strip() for each in found}
    return [each for each, tree in trees.items() if tree and not real_path(each / tree).is_relative_to(root)]


def _common(folder: Path) -> str:
    return _text(folder / "commondir").strip() or "."


def _without_links(place: Path) -> Path:
    """Return the path with links followed, except for its last part."""
    return real_path(place.parent) / place.name


def _named_folder(pointer: Path) -> Path | None:
    if os.path.isdir(pointer):  # noqa: PTH112
        return real_path(pointer)
    named = re.fullmatch(r"gitdir: ([^\0\n]+)\n?", _text(pointer))
    return real_path(pointer.parent / named[1]) if named is not None else None


def _repository_folders(pointer: Path, root: Path) -> list[Path]:
    """Return the `git_folders`, or else the repository in the project that a `.git` file names: it opens nothing."""
    folders, named = git_folders(pointer), _named_folder(pointer)
    if folders and folders[0].is_relative_to(root):
        # What a command can write proves nothing about what is outside.
        return [folder for folder in folders if folder.is_relative_to(root)]
    if not folders and named is not None and named.is_relative_to(root) and (named / "HEAD").is_file():
        return [named]
    return folders


def _below(top: Path, name: str) -> Iterator[Path]:
    """Yield paths with this name, whatever its case, in at most `_MAX_FOLDERS` folders, the nearest first.

    Those found are not searched.
    """
    folders = [os.fspath(top)]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.lower() == name:
                    yield Path(entry.path)
                elif entry.name not in _NOT_SEARCHED and entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
            del folders[_MAX_FOLDERS:]


def _is_free(place: Path) -> bool:
    """Return whether nobody uses a path: the placeholder of a command that runs, or was killed, is nobody's."""
    # In this order: another command may remove its placeholder meanwhile.
    return is_placeholder(place) or not os.path.lexists(place)


def _first_missing(place: Path, tops: Collection[Path]) -> Path:
    while place.parent not in tops and _is_free(place.parent):
        place = place.parent
    return place


def folded(name: str) -> str:
    """Return what the spellings of a name have in common on a file system that ignores case."""
    seen = "".join(char for char in name if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold()


def _folded_path(path: Path) -> PurePosixPath:
    return PurePosixPath(*map(folded, path.parts))


def _text(path: Path) -> str:
    """Return the start of a small file; empty if it does not exist or is not a regular file."""
    try:
        return read_start(path, _MAX_TEXT).decode("utf-8", "replace")
    except OSError:
        return ""


_LONGEST_WAIT = 1.0


@contextmanager
def placeholders(root: Path, missing: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    """Create a placeholder for each of `missing`, yield the existing ones, and remove them.

    No user's file is mistaken for one or lost: anything with content is left alone. The last process that has a command
    running in the project removes them. A path where none can be made, such as in a folder without modes, is left out.
    """
    with closing_fd(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as lock:
        try:
            _lock(lock)
            yield tuple(path for path in missing if _made(path))
        finally:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for path in missing:
                    _remove(path)
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_UN)  # a process that was forked meanwhile would keep it


def _lock(descriptor: int) -> None:
    """Mark placeholders as used. A file system without locks, or another program's lock, is no obstacle."""
    latest = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < latest:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return
        else:
            return


def _made(path: Path) -> bool:
    try:
        if path.name in PLACEHOLDERS:
            _make_whole(path, PLACEHOLDERS[path.name])
        else:
            path.mkdir()
            _mark(path, 0o1755)
    except FileExistsError:
        return is_placeholder(path)
    except OSError:
        return False
    return True


def _make_whole(path: Path, content: bytes) -> None:
    """Create a file atomically with its content. Raises FileExistsError."""
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    try:
        temporary.write_bytes(content)
        _mark(temporary, 0o1644)
        path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def _mark(path: Path, mode: int) -> None:
    """Give a placeholder its mode. Raises OSError on a file system without modes; a folder is removed."""
    with suppress(PermissionError):
        path.chmod(mode)
    if not is_placeholder(path):
        if path.is_dir():
            path.rmdir()
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def _remove(path: Path) -> None:
    with suppress(OSError):
        if not is_placeholder(path):
            return
        if stat.S_ISDIR(path.lstat().st_mode):
            path.rmdir()
        else:
            path.unlink()
