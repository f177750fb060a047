"""The places where people keep keys, which commands cannot see.

Homes are hidden as a whole, except for the project and, read-only, the toolchains in them. If the project is a home, or
contains one, names in that home that begin with a dot are hidden, except for those that projects have.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from aeon_core.paths import real_path
from aeon_core.regular_file import read_start, read_whole
from aeon_core.tools.protected_paths import PROTECTED


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text."""
    return tuple(text.split())


TOOLCHAINS = words(
    """
    .asdf .bun/bin .bun/install .cabal/bin .cabal/packages .cabal/store .cargo/bin .cargo/env .cargo/git
    .cargo/registry .composer/vendor .conda/envs .conda/pkgs .deno/bin .dotnet .elan .foundry/bin .fzf
    .gem/ruby .ghcup/bin .ghcup/ghc .ghcup/lib .goenv .gradle/caches .gradle/jdks .gradle/native
    .gradle/wrapper .guix-profile .hex/packages .ivy2/cache .jabba/jdk .jdks .jenv .julia/artifacts
    .julia/compiled .julia/juliaup .julia/packages .juliaup/bin .krew/bin .linuxbrew .local/bin .local/lib
    .local/pipx .local/share/fnm .local/share/gem .local/share/hatch/env .local/share/mise/installs
    .local/share/mise/plugins .local/share/mise/shims .local/share/pipx .local/share/pnpm
    .local/share/pypoetry/venv .local/share/uv/python .local/share/uv/tools .local/share/virtualenvs
    .local/state/nix/profiles .m2/repository .m2/wrapper .mix/archives .mix/elixir .nix-profile .nodenv
    .npm-global .npm-packages .npm/_cacache .npm/_npx .nuget/packages .nvm .opam .platformio/packages
    .platformio/penv .pub-cache/bin .pub-cache/git .pub-cache/hosted .pyenv .rbenv .rustup .rvm .sbt/boot
    .sdkman .stack/programs .stack/snapshots .swiftly .virtualenvs .volta .wasmer/bin .wasmtime .yarn/berry
    anaconda3 go/bin go/pkg mambaforge micromamba miniconda3 miniforge3 .cache/bazelisk .cache/ccache
    .cache/coursier .cache/Cypress .cache/deno .cache/go-build .cache/huggingface/hub .cache/ms-playwright
    .cache/node .cache/pip .cache/pnpm .cache/pre-commit .cache/puppeteer .cache/pypoetry .cache/sccache
    .cache/torch .cache/uv .cache/yarn .config/composer/vendor .config/git/attributes .config/git/ignore
    .gitignore .gitignore_global
    """
)
"""Relative to the home. They include git's ignore patterns: without these, `git add` would add other files."""

_SETTINGS = (".cargo/config", ".cargo/config.toml", ".config/pip/pip.conf", ".config/uv/uv.toml", ".condarc")
"""Settings of toolchains, which are visible if they contain nothing that looks like a key."""
_KEY = re.compile(r"(?i)token|passw|secret|credential|auth|\bkey\b|://[^/\s\"']*@")
_MAX_SETTINGS = 100_000

_CREDENTIALS = words(
    """
    auth.json auth.toml config.json credentials credentials.json credentials.toml hex.config settings-security.xml
    settings.xml .env .git-credentials .netrc .npmrc .pypirc .yarnrc.yml
    """
)
"""Files that are hidden at the top of a toolchain's folder."""

_PREFIXES = words("pyvenv.cfg conda-meta Cellar Homebrew lib/node_modules lib/ruby lib/rustlib pkg/tool")
"""A folder with one of these is a toolchain: programs in its `bin` need what is next to it."""


def visible_paths(
    homes: Iterable[Path], hidden: Iterable[Path], environ: Mapping[str, str], root: Path
) -> tuple[list[Path], list[Path]]:
    """Return what commands may read in hidden folders and among the temporary files, and what remains hidden in that.

    These are the toolchains of the homes; the folders on the PATH with the environments or toolchains they belong to,
    and the interpreters of those, also of the project's own; and the Python that runs Aeon. A home as a whole,
    the folders for temporary files, or a folder around one, are never among them. The former keep their names, which
    may be symbolic links.
    """
    homes, temps = list(homes), [Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    # Commands have a /tmp of their own: an environment there has to be shown like one in a home.
    covered = [*hidden, *temps]
    found = [home / name for home in homes for name in TOOLCHAINS if os.path.lexists(f"{home}/{name}")]
    found += [home / name for home in homes for name in _SETTINGS if _is_plain(home / name)]
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    # A link or a file in the project makes nothing visible: commands can change it.
    inside = [folder for folder in folders if real_path(folder).is_relative_to(root)]
    found += [path for folder in folders if folder not in inside and _within(folder, covered) for path in _of(folder)]
    for prefix in dict.fromkeys((Path(sys.prefix), root / ".venv", root / "venv", *(path.parent for path in inside))):
        found += _interpreters(prefix)
    found += (Path(sys.base_prefix), Path(sys.prefix))
    kept: list[Path] = []
    # Outer ones first: their content is already included.
    for path in sorted(
        dict.fromkeys(path for path in found if _within(path, covered)), key=lambda path: len(path.parts)
    ):
        if _within(path, kept) or not path.exists():
            continue
        if not any(each.is_relative_to(place) for each in (*homes, *temps) for place in (path, real_path(path))):
            kept.append(path)
    files = (f"{path}/{name}" for path in kept if path.is_dir() for name in _CREDENTIALS)
    masked = [Path(file) for file in files if os.path.isfile(file)]  # noqa: PTH113  # many
    return kept, masked


def _within(path: Path, places: Iterable[Path]) -> bool:
    # As text, since this runs some thousand times before each command.
    return f"{path}/".startswith(tuple(f"{place}/" for place in places))


def _of(folder: Path) -> tuple[Path, ...]:
    try:
        return _of_programs(folder, folder.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=256)
def _of_programs(folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return a folder of programs with what they need: the prefix around it, and the targets of its links."""
    found = {folder, *_prefix(folder)}
    if folder.name == ".bin" and folder.parent.name == "node_modules":
        found.add(folder.parent)
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_symlink() and (target := real_path(entry)).is_file():
                found |= {target, *_prefix(target.parent)}
    return tuple(sorted(found))


def _prefix(folder: Path) -> Iterator[Path]:
    parent = folder.parent
    if folder.name in {"bin", "sbin", "Scripts"} and any((parent / mark).exists() for mark in _PREFIXES):
        yield parent
        yield from _interpreters(parent)


def _interpreters(environment: Path) -> Iterator[Path]:
    """Yield the Python that a virtual environment was made from, if it is one: with a standard library."""
    with suppress(OSError):
        text = read_start(environment / "pyvenv.cfg", _MAX_SETTINGS).decode("utf-8", "replace")
        for home in re.findall(r"(?m)^home[ \t]*=[ \t]*(/.+?)[ \t]*$", text):
            prefix = real_path(home).parent
            if any(prefix.glob("lib/python3*/os.py")):
                yield prefix


def _is_plain(path: Path) -> bool:
    try:
        return not _KEY.search(read_whole(path, _MAX_SETTINGS).decode("utf-8", "replace"))
    except OSError:
        return False


_HOMES = ("/home", "/root")
_ELSEWHERE = words(
    """
    /etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/ssl/private /etc/krb5.keytab /etc/kubernetes /etc/rancher
    /etc/wireguard /etc/openvpn /etc/NetworkManager/system-connections /var/lib/kubelet /var/run/secrets /run/secrets
    """
)
_NAMED_BY = words(
    """
    XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE AZURE_CONFIG_DIR
    BOTO_CONFIG CLOUDSDK_CONFIG DATABRICKS_CONFIG_FILE DOCKER_CONFIG GNUPGHOME GOOGLE_APPLICATION_CREDENTIALS
    HISTFILE KUBECONFIG NETRC NPM_CONFIG_USERCONFIG PASSWORD_STORE_DIR PGPASSFILE PIP_CONFIG_FILE
    RCLONE_CONFIG SOPS_AGE_KEY_FILE
    """
)
"""Variables with the path of a secret or of a folder with secrets; KUBECONFIG may name several."""
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

    A folder around the project root may be among them: whatever hides it must leave the root visible.
    """
    # What this user cannot access, the command cannot access either.
    found = {real_path(path) for path in filter(os.path.exists, _candidates(root, environ))}
    return sorted({*found, *_by_other_mounts(found)} - {root})


_MOUNTS = "/proc/self/mountinfo"


def _by_other_mounts(places: Iterable[Path]) -> Iterator[Path]:
    """Yield the other paths of places whose file system is mounted more than once, as under WSL's `/mnt/wslg`."""
    mounts = list(_mounts())
    for place in places:
        around = [mount for mount in reversed(mounts) if place.is_relative_to(mount[2])]
        device, folder, point = max(around, key=lambda mount: len(mount[2].parts), default=("", place, place))
        inside = folder / place.relative_to(point)
        for each, top, where in mounts:
            if each == device and inside.is_relative_to(top) and (other := where / inside.relative_to(top)) != place:
                with suppress(OSError):
                    if other.samefile(place):
                        yield other


def _mounts() -> Iterator[tuple[str, Path, Path]]:
    """Yield for each mount its device, the folder of the device that is mounted, and where."""
    with suppress(OSError), open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:  # noqa: PTH123
        for line in lines:
            fields = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word) for word in line.split(" ")]
            yield fields[2], Path(fields[3]), Path(fields[4])


def outermost(hidden: Iterable[Path], shown: Iterable[Path]) -> list[Path]:
    """Return the hidden paths that are not inside another, except for those inside a shown path within it."""
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
    """Return the home folders of this user, resolved: those of the environment and of the system."""
    found = {real_path(environ["HOME"])} if environ.get("HOME", "").startswith("/") else set()
    with suppress(KeyError):
        found.add(real_path(pwd.getpwuid(os.getuid()).pw_dir))
    return sorted(home for home in found if home != Path("/") and home.is_dir())


def secret_files(environ: Mapping[str, str]) -> frozenset[tuple[int, int]]:
    """Return device and inode of the files in this user's homes that begin with a dot or are in such a folder.

    Toolchains are left out. At most 5,000, those nearest to the home first.
    """
    return frozenset(islice((found for home in homes(environ) for found in _dot_files(home)), _MAX_SECRETS))


def _candidates(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    own = homes(environ)
    for home in {*own, *_other_homes(), *(real_path(home) for home in _HOMES)}:
        around_project = home == root or home.is_relative_to(root)
        if around_project or any(Path(folder).is_relative_to(home) for folder in _SYSTEM):
            yield from _dotted(home) if home in own else ()
        else:
            yield home
    yield from map(Path, _ELSEWHERE)
    for name in _NAMED_BY:
        for path in filter(None, environ.get(name, "").split(":")):
            place = Path(path)
            # A path that is the home itself, or around it, does not say where the keys are.
            if place.is_absolute() and not any(home.is_relative_to(real_path(place)) for home in own):
                yield place


@cache
def _other_homes() -> frozenset[Path]:
    found = {Path(user.pw_dir) for user in pwd.getpwall() if _FIRST_USER <= user.pw_uid < _NOBODY}
    return frozenset(real_path(home) for home in found if home.is_absolute() and len(home.parts) > 1 and home.is_dir())


def _dotted(home: Path) -> Iterator[Path]:
    """Yield names that begin with a dot in a home that is (in) the project, except for those that projects have."""
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


def hidden_and_shown(
    root: Path, environ: Mapping[str, str], readable: Iterable[Path] = ()
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return `hidden` and `shown` for Limits; `readable` is what the user wants to make visible, too."""
    hidden = hidden_paths(root, environ)
    shown, masked = visible_paths(homes(environ), hidden, environ, root)
    wanted = (path.expanduser() for path in readable)
    shown += [path for path in wanted if path.is_absolute() and path.exists()]
    return tuple(outermost((*hidden, *masked), (root, *shown))), tuple(shown)
