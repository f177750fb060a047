"""Where consents are kept: one file for a project in the user's state directory, never in the project itself."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from aeon_core.errors import UsageError
from aeon_core.regular_file import replace_file
from aeon_core.tools.imports import file_bytes, sha256_of

FOLDERS = (".aeon", ".system2", ".git")
_GIT_SECONDS = 5


def refuse_foreign_folders(root: Path, environ: Mapping[str, str] | None = None) -> None:
    """Raise UsageError where `.aeon`, `.system2` or `.git` of the project belongs to another user.

    Root's own rule is git's: under sudo, the folders of the user who called it are fine, too. So is a project that
    `safe.directory` of the user's git configuration names.
    """
    mine = _own_ids(os.environ if environ is None else environ)
    for name in FOLDERS:
        folder = root / name
        try:
            owners = {folder.lstat().st_uid, folder.stat().st_uid}
        except (OSError, RuntimeError):
            continue
        if owners <= mine or _is_safe_for_git(root):
            continue
        raise UsageError(
            f"{str(folder)!r} belongs to another user (uid {max(owners - mine)}), so nothing in it is used; "
            f"change its owner with chown, or trust it: git config --global --add safe.directory {str(root)!r}"
        )


def _own_ids(environ: Mapping[str, str]) -> set[int]:
    own = os.geteuid()
    caller = environ.get("SUDO_UID", "")
    return {own, int(caller)} if own == 0 and caller.isascii() and caller.isdecimal() else {own}


def _is_safe_for_git(root: Path) -> bool:
    """Return whether the user's git configuration vouches for the folder; the project's own is not asked."""
    import shutil
    import subprocess

    if (git := shutil.which("git")) is None:
        return False
    for scope in ("--global", "--system"):
        command = [git, "config", scope, "--get-all", "safe.directory"]
        try:
            told = subprocess.run(command, capture_output=True, cwd="/", timeout=_GIT_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.SubprocessError):
            continue
        named = {line.rstrip("/") for line in os.fsdecode(told.stdout).splitlines()}
        if named & {"*", str(root), os.path.realpath(root)}:
            return True
    return False


MAX_BYTES = 16_000_000
_MAX_GITFILE = 10_000


Kind = Literal["consents", "runs"]
"""What is kept: the consents to a project, and which of its runs the user has started."""


def load_entry(root: Path, environ: Mapping[str, str], kind: Kind = "consents") -> dict[str, Any]:
    """Return what is kept for the project, an empty entry where nothing is or where it is not the user's own file."""
    file = _file(root, environ, kind)
    return _read(file) if file is not None else {}


def remove_entries(root: Path, environ: Mapping[str, str]) -> bool:
    """Remove all that is kept for the project, and return whether there was a consent. Raises UsageError."""
    had = bool(load_entry(root, environ))
    for kind in get_args(Kind):
        if (file := _file(root, environ, kind)) is not None:
            try:
                file.unlink(missing_ok=True)
            except OSError as error:
                raise UsageError(f"cannot delete the trust record {str(file)!r}: {error.strerror}") from None
    return had


def update_entry(
    root: Path, environ: Mapping[str, str], change: Callable[[dict[str, Any]], None], kind: Kind = "consents"
) -> None:
    """Change what is kept for the project, atomically. Raises UsageError where it cannot be kept."""
    if (file := _file(root, environ, kind)) is None:
        raise UsageError(
            f"your state directory {str(_folder(environ))!r} is inside the project {str(root)!r}, so trust cannot be "
            "stored there; use --trust-project, or set XDG_STATE_HOME"
        )
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.parent.chmod(0o700)
        with _locked(file.parent):
            entry = _read(file)
            entry["project"] = str(root)
            change(entry)
            replace_file(file, json.dumps(entry, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise UsageError(f"cannot store trust in {str(file.parent)!r}: {error.strerror}") from None


def project_key(root: Path) -> str:
    """Return what names a project: its repository's common git folder and the place in it, else its own real path.

    A worktree says itself which repository it is of, so it is believed only where that repository knows the worktree.
    """
    real = Path(os.path.realpath(root))
    for folder in (real, *real.parents):
        git = folder / ".git"
        if not os.path.lexists(git):
            continue
        if (common := _common_folder(git)) is None:
            break
        return json.dumps([str(common), str(real.relative_to(folder))])
    return json.dumps([str(real)])


def _common_folder(git: Path) -> Path | None:
    if git.is_symlink():
        return None
    if git.is_dir():
        return git if (git / "HEAD").is_file() else None
    told = (file_bytes(git, _MAX_GITFILE) or b"").decode("utf-8", "replace").strip()
    if not told.startswith("gitdir:"):
        return None
    own = Path(os.path.realpath(git.parent / told.removeprefix("gitdir:").strip()))
    back = (file_bytes(own / "gitdir", _MAX_GITFILE) or b"").decode("utf-8", "replace").strip()
    common = (file_bytes(own / "commondir", _MAX_GITFILE) or b"").decode("utf-8", "replace").strip()
    if not back or not common or os.path.realpath(own / back) != os.path.realpath(git):
        return None
    shared = Path(os.path.realpath(own / common))
    return shared if own.parent == shared / "worktrees" else None


def _folder(environ: Mapping[str, str]) -> Path:
    home = environ.get("XDG_STATE_HOME", "")
    if Path(home).is_absolute():
        return Path(home) / "aeon" / "trust"
    from platformdirs import user_state_path

    return user_state_path("aeon", appauthor=False) / "trust"


def _file(root: Path, environ: Mapping[str, str], kind: Kind) -> Path | None:
    folder = _folder(environ)
    if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root)):
        return None
    return folder / f"{sha256_of(project_key(root).encode())[:40]}.{kind}.json"


def _read(file: Path) -> dict[str, Any]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(descriptor, "rb") as opened:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid() or state.st_mode & 0o022:
            return {}
        try:
            entry = json.loads(opened.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
    return entry if isinstance(entry, dict) else {}


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
