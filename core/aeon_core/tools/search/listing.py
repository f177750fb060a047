"""Which files of a project Grep and Glob see: no `.git`, nothing that a `.gitignore` leaves out, nothing denied."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import FolderEntry, Sandbox
from aeon_core.tools.search.globs import GlobError, compile_glob

FILE_TYPES: dict[str, str] = {
    "c": "*.{c,h}",
    "config": "*.{cfg,conf,config,ini}",
    "cpp": "*.{cpp,cc,cxx,c++,hpp,hh,hxx,h++,inl,h}",
    "cs": "*.cs",
    "css": "*.{css,scss,sass,less}",
    "csv": "*.{csv,tsv}",
    "docker": "{Dockerfile,Dockerfile.*,*.dockerfile,Containerfile}",
    "elixir": "*.{ex,exs,eex,heex}",
    "go": "*.go",
    "graphql": "*.{graphql,graphqls}",
    "haskell": "*.{hs,lhs}",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs,vue}",
    "json": "*.{json,jsonl,json5}",
    "kotlin": "*.{kt,kts}",
    "lua": "*.lua",
    "make": "{Makefile,makefile,GNUmakefile,*.mk,*.mak}",
    "md": "*.{md,markdown,mdx}",
    "php": "*.php",
    "proto": "*.proto",
    "py": "*.{py,pyi}",
    "r": "*.{r,R,Rmd}",
    "rst": "*.rst",
    "ruby": "{*.rb,*.rake,*.gemspec,Gemfile,Rakefile}",
    "rust": "*.rs",
    "scala": "*.{scala,sbt}",
    "sh": "*.{sh,bash,zsh,ksh}",
    "sql": "*.sql",
    "svelte": "*.svelte",
    "swift": "*.swift",
    "terraform": "*.{tf,tfvars}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt",
    "xml": "*.{xml,xsd,xsl,xslt}",
    "yaml": "*.{yaml,yml}",
}


_MAX_IGNORE_FILE = 100_000
_MAX_RULE = 1_000
_REPOSITORY = ".git"


@dataclass(frozen=True)
class Listing:
    """The files below a place, regular ones and symbolic links, by path relative to the project root."""

    start: str
    """Where the place really is, relative to the project root; `.` for the root."""
    files: list[str]
    links: list[str]

    def below(self, path: str) -> str:
        """Return a listed path relative to the start; of a file that is the start itself, its name."""
        if path == self.start:
            return path.rpartition("/")[2]
        return path if self.start == "." else path[len(self.start) + 1 :]


def list_files(
    sandbox: Sandbox, path: str, *, hidden: Callable[[str], bool] | None, include_ignored: bool, deadline: float
) -> Listing:
    """Return the files below a folder, or the one file, that `path` names.

    Names with a leading dot count like all others; what is named `.git` does not, and symbolic links are not followed.
    What the project's `.gitignore` files leave out is left out too, except with `include_ignored`; a folder or file
    named by `path` is itself never left out. A path for which `hidden` is true, and all below it, is not there. Raises
    ToolError where the path leads outside the root (REQ-110) or to nothing, TimeoutError at the deadline (monotonic
    seconds).
    """
    start = str(sandbox.relative(path))
    unseen = _Unseen(hidden)
    if is_hidden(start, hidden):
        raise ToolError(f"there is nothing at {path[:300]!r} in the project; look for it with Glob")
    if not include_ignored:
        unseen.ignores = _Ignores(sandbox, start)
    listing = Listing(start, [], [])
    for entry in sandbox.walk(start, enter=unseen.enters):
        if time.monotonic() > deadline:
            raise TimeoutError
        if entry.is_dir or unseen.is_denied(entry.path):
            continue
        if entry.path == start or not unseen.is_ignored(entry):
            if entry.is_file:
                listing.files.append(entry.path)
            elif entry.is_symlink:
                listing.links.append(entry.path)
    return listing


def is_hidden(path: str, hidden: Callable[[str], bool] | None) -> bool:
    """Return whether `hidden` is true for a path or for any folder above it."""
    parts = path.split("/")
    return hidden is not None and any(hidden("/".join(parts[: length + 1])) for length in range(len(parts)))


@dataclass
class _Unseen:
    hidden: Callable[[str], bool] | None
    ignores: _Ignores | None = None

    def enters(self, folder: FolderEntry) -> bool:
        return not self.is_denied(folder.path) and not self.is_ignored(folder)

    def is_ignored(self, entry: FolderEntry) -> bool:
        # The repository's own data; of a work tree, the file that says where they are.
        if entry.path.rpartition("/")[2] == _REPOSITORY:
            return True
        return self.ignores is not None and self.ignores.ignores(entry.path, entry.is_dir)

    def is_denied(self, path: str) -> bool:
        return self.hidden is not None and self.hidden(path)


@dataclass(frozen=True)
class _Rule:
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


@dataclass
class _Ignores:
    """The `.gitignore` files of a project, as git reads them; the user's own and `.git/info/exclude` are not read."""

    sandbox: Sandbox
    start: str
    _rules: dict[str, list[_Rule]] = field(default_factory=dict)
    _top: str = "."

    def __post_init__(self) -> None:
        # Inside an ignored folder that was asked for, only its own ignore files count.
        parts = self.start.split("/")
        above = ["/".join(parts[: length + 1]) for length in range(len(parts))] if self.start != "." else []
        if any(self.ignores(folder, True) for folder in above):
            self._top = self.start

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Return what the last fitting rule says; those of a deeper folder come after those of a higher one."""
        folder, _, relative = path.rpartition("/")
        while True:
            for rule in self._rules_of(folder or "."):
                if (is_folder or not rule.folders_only) and rule.regex.fullmatch(relative):
                    return rule.ignores
            if not folder or folder == self._top:
                return False
            folder, _, name = folder.rpartition("/")
            relative = f"{name}/{relative}"

    def _rules_of(self, folder: str) -> list[_Rule]:
        rules = self._rules.get(folder)
        if rules is None:
            rules = self._rules[folder] = self._read(folder)
        return rules

    def _read(self, folder: str) -> list[_Rule]:
        try:
            data = self.sandbox.read_bytes(f"{folder}/.gitignore", _MAX_IGNORE_FILE)
        except ToolError:
            return []
        lines = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
        return [rule for line in reversed(lines) if (rule := _rule(line.removesuffix("\r")))]


def _rule(line: str) -> _Rule | None:
    """Return the rule in a line of a `.gitignore`, None where it has none or one that can fit nothing."""
    text = line.rstrip(" ")
    if len(text) < len(line) and text.endswith("\\"):
        text += " "
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    pattern = text.removesuffix("/")
    if not pattern or line.startswith("#") or len(pattern) > _MAX_RULE:
        return None
    # A slash before the end ties a pattern to the folder of its file. Braces have no meaning there.
    pattern = pattern.removeprefix("/") if "/" in pattern else f"**/{pattern}"
    pattern = re.sub(r"(\\.)|([{}])", lambda found: found[1] or f"\\{found[2]}", pattern)
    try:
        return _Rule(compile_glob(pattern), ignores, text.endswith("/"))
    except GlobError:
        return None
