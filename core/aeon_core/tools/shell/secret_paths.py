"""The places where people keep keys: a command gets to see none of them.

Homes are hidden as a whole, but for the toolchains in them (`toolchains.py`) and the project. Where the project is a
home, or around one, what begins with a dot in that home is hidden, but for what projects have.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from aeon_core.tools.protected_paths import PROTECTED
from aeon_core.tools.shell.toolchains import TOOLCHAINS, visible_paths, words

_HOMES = ("/home", "/root")
_ELSEWHERE = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/var/lib/kubelet",
    "/var/run/secrets",
    "/run/secrets",
)
_NAMED_BY = words(
    """
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AZURE_CONFIG_DIR
    BOTO_CONFIG CLOUDSDK_CONFIG DATABRICKS_CONFIG_FILE DOCKER_CONFIG GNUPGHOME GOOGLE_APPLICATION_CREDENTIALS
    HISTFILE KUBECONFIG NETRC NPM_CONFIG_USERCONFIG PASSWORD_STORE_DIR PGPASSFILE PIP_CONFIG_FILE
    RCLONE_CONFIG SOPS_AGE_KEY_FILE
    """
)
"""Variables with the path of a secret, or of a folder that has some; KUBECONFIG may name several."""
_OF_PROJECTS = frozenset(
    {".git", ".github", ".gitlab", ".gitlab-ci.yml", ".gitignore", ".gitattributes", ".gitmodules", ".editorconfig"}
    | {".husky", ".tool-versions", ".python-version", ".node-version", ".nvmrc", ".ruff_cache", ".pytest_cache"}
    | {".mypy_cache", ".tox", ".nox", ".devcontainer", ".dockerignore", ".coveragerc", ".eslintrc.json", ".prettierrc"}
    | set(PROTECTED) - {".claude", ".envrc"}
)
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/opt", "/proc", "/sbin", "/srv", "/sys", "/usr", "/var")
_FIRST_USER, _NOBODY = 1000, 65_534
_MAX_SECRETS = 5_000
_MAX_DEPTH = 3


def hidden_paths(root: Path, environ: Mapping[str, str]) -> list[Path]:
    """Return the files and folders with keys that exist, resolved, without the project root itself.

    A folder around the project root is among them: whatever hides it must let the root through.
    """
    return sorted({path.resolve() for path in _candidates(root, environ) if _is_there(path)} - {root})


def outermost(hidden: Iterable[Path], shown: Iterable[Path]) -> list[Path]:
    """Return the hidden paths that are in no other, unless something shown contains them there."""
    hidden, shown = list(hidden), list(shown)
    return [
        path
        for path in hidden
        if not any(
            path != other
            and path.is_relative_to(other)
            and not any(path.is_relative_to(seen) and seen.is_relative_to(other) for seen in shown)
            for other in hidden
        )
    ]


def homes(environ: Mapping[str, str]) -> list[Path]:
    """Return the home folders of this user, resolved: as the environment says, and as the system does."""
    found = {Path(environ["HOME"]).resolve()} if environ.get("HOME", "").startswith("/") else set()
    with suppress(KeyError):
        found.add(Path(pwd.getpwuid(os.getuid()).pw_dir).resolve())
    return sorted(home for home in found if home != Path("/") and home.is_dir())


def secret_files(environ: Mapping[str, str]) -> frozenset[tuple[int, int]]:
    """Return device and inode of the files that begin with a dot in this user's homes, or lie in such a folder.

    Toolchains are left out. At most 5,000, those nearest to the home first.
    """
    return frozenset(islice((found for home in homes(environ) for found in _dot_files(home)), _MAX_SECRETS))


def _candidates(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    own = homes(environ)
    for home in {*own, *_other_homes(), *(Path(home).resolve() for home in _HOMES)}:
        around_project = home == root or home.is_relative_to(root)
        if around_project or any(Path(folder).is_relative_to(home) for folder in _SYSTEM):
            yield from _dotted(home) if home in own else ()
        else:
            yield home
    yield from map(Path, _ELSEWHERE)
    for name in _NAMED_BY:
        for path in filter(None, environ.get(name, "").split(":")):
            place = Path(path)
            # One that is the home itself, or around it, says nothing of where the keys are.
            if place.is_absolute() and not any(home.is_relative_to(place.resolve()) for home in own):
                yield place


@cache
def _other_homes() -> frozenset[Path]:
    found = {Path(user.pw_dir) for user in pwd.getpwall() if _FIRST_USER <= user.pw_uid < _NOBODY}
    return frozenset(home.resolve() for home in found if home.is_absolute() and len(home.parts) > 1 and home.is_dir())


def _dotted(home: Path) -> Iterator[Path]:
    """Yield what begins with a dot in a home that is (in) the project, but for what projects have."""
    with suppress(OSError):
        yield from (path for path in home.iterdir() if path.name.startswith(".") and path.name not in _OF_PROJECTS)


def _dot_files(home: Path) -> Iterator[tuple[int, int]]:
    toolchains = {home / name for name in TOOLCHAINS}
    folders = [(home, 0)]
    for folder, depth in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if depth == 0 and not entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if depth < _MAX_DEPTH and Path(entry.path) not in toolchains and len(folders) < _MAX_SECRETS:
                        folders.append((Path(entry.path), depth + 1))
                else:
                    status = entry.stat(follow_symlinks=False)
                    yield status.st_dev, status.st_ino


def _is_there(place: Path) -> bool:
    try:
        place.stat()
    except OSError:
        return False  # nor can the command, which is the same user, get there
    return True


def hidden_and_shown(
    root: Path, environ: Mapping[str, str], readable: Iterable[Path] = ()
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return `hidden` and `shown` for Limits; `readable` is what a user wants to be seen besides."""
    hidden = hidden_paths(root, environ)
    shown, masked = visible_paths(homes(environ), hidden, environ, root)
    wanted = (path.expanduser() for path in readable)
    shown += [path for path in wanted if path.is_absolute() and path.exists()]
    return tuple(outermost((*hidden, *masked), (root, *shown))), tuple(shown)
