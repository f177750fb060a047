"""What commands see of a home that is hidden otherwise: programs, libraries and packages, to read only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path


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
"""Relative to the home. What git is to ignore is among them: without it, `git add` adds other files than usual."""

_SETTINGS = (".cargo/config", ".cargo/config.toml", ".config/pip/pip.conf", ".config/uv/uv.toml", ".condarc")
"""Settings of toolchains, which are seen if they hold nothing that looks like a key."""
_KEY = re.compile(r"(?i)token|passw|secret|credential|auth|\bkey\b|://[^/\s\"']*@")
_MAX_SETTINGS = 100_000

_CREDENTIALS = (
    "auth.json",
    "auth.toml",
    "config.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "hex.config",
    "settings-security.xml",
    "settings.xml",
    ".env",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".yarnrc.yml",
)
"""Hidden where they lie at the top of a toolchain's folder."""

_PREFIXES = (
    "pyvenv.cfg",
    "conda-meta",
    "Cellar",
    "Homebrew",
    "lib/node_modules",
    "lib/ruby",
    "lib/rustlib",
    "pkg/tool",
)
"""A folder with one of these holds a toolchain: programs in its `bin` need what is beside that."""


def visible_paths(
    homes: Iterable[Path], hidden: Iterable[Path], environ: Mapping[str, str], root: Path
) -> tuple[list[Path], list[Path]]:
    """Return what commands may read of the folders that are hidden, and what remains hidden in that.

    These are the toolchains of the homes; the folders on the PATH with the environments or toolchains they belong to,
    and the interpreters of those, also of the project's own; and the Python that runs Aeon. A home as a whole, or a
    folder around one, is never among them. The first are as they are named, which may be by a symbolic link.
    """
    homes, hidden = list(homes), list(hidden)
    found = [home / name for home in homes for name in TOOLCHAINS if os.path.lexists(f"{home}/{name}")]
    found += [home / name for home in homes for name in _SETTINGS if _is_plain(home / name)]
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder.startswith("/")]
    # A link or a file that the project holds opens nothing: commands can change it.
    inside = [folder for folder in folders if folder.resolve().is_relative_to(root)]
    found += [path for folder in folders if folder not in inside and _within(folder, hidden) for path in _of(folder)]
    for prefix in dict.fromkeys((Path(sys.prefix), root / ".venv", root / "venv", *(path.parent for path in inside))):
        found += _interpreters(prefix)
    found += (Path(sys.base_prefix), Path(sys.prefix))
    kept: list[Path] = []
    # Outer ones first: their content is already included.
    # Commands have a /tmp of their own: an environment there has to be shown like one in a home.
    covered = [*hidden, Path("/tmp"), Path("/var/tmp")]  # noqa: S108
    for path in sorted(
        dict.fromkeys(path for path in found if _within(path, covered)), key=lambda path: len(path.parts)
    ):
        if _within(path, kept) or not path.exists():
            continue
        if not any(home.is_relative_to(place) for home in homes for place in (path, path.resolve())):
            kept.append(path)
    files = (f"{path}/{name}" for path in kept if path.is_dir() for name in _CREDENTIALS)
    masked = [Path(file) for file in files if os.path.isfile(file)]  # noqa: PTH113  # many
    return kept, masked


def _within(path: Path, places: Iterable[Path]) -> bool:
    # As text: this is asked some thousand times before each command.
    return f"{path}/".startswith(tuple(f"{place}/" for place in places))


def _of(folder: Path) -> tuple[Path, ...]:
    try:
        return _of_programs(folder, folder.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=256)
def _of_programs(folder: Path, _changed: int) -> tuple[Path, ...]:
    """Return a folder of programs with what these need: the prefix around it, and what links in it lead to."""
    found = {folder, *_prefix(folder)}
    if folder.name == ".bin" and folder.parent.name == "node_modules":
        found.add(folder.parent)
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_symlink() and (target := entry.resolve()).is_file():
                found |= {target, *_prefix(target.parent)}
    return tuple(sorted(found))


def _prefix(folder: Path) -> Iterator[Path]:
    parent = folder.parent
    if folder.name in {"bin", "sbin", "Scripts"} and any((parent / mark).exists() for mark in _PREFIXES):
        yield parent
        yield from _interpreters(parent)


def _interpreters(environment: Path) -> Iterator[Path]:
    """Yield the Python that a virtual environment was made from, if it is one: with a standard library."""
    config = environment / "pyvenv.cfg"
    with suppress(OSError):
        if not config.is_file():
            return
        with config.open("rb") as stream:
            text = stream.read(_MAX_SETTINGS).decode("utf-8", "replace")
        for home in re.findall(r"(?m)^home[ \t]*=[ \t]*(/.+?)[ \t]*$", text):
            prefix = Path(home).resolve().parent
            if any(prefix.glob("lib/python3*/os.py")):
                yield prefix


def _is_plain(path: Path) -> bool:
    try:
        return (
            path.is_file()
            and path.stat().st_size <= _MAX_SETTINGS
            and not _KEY.search(path.read_text("utf-8", "replace"))
        )
    except OSError:
        return False
