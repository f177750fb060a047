"""The files of a project that Grep and Glob see: no `.git`, nothing ignored by a `.gitignore`, nothing denied.

Also patterns for them, as expressions with a time limit.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import regex
from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import FolderEntry, Sandbox

SECONDS = 2.0
"""The time limit of one match, after which an endlessly backtracking pattern is an error."""
_QUICK_STEPS = 10_000_000
"""Steps of a match that need no timeout: setting one takes longer than searching a line."""
_MAX_SIZE = 200_000
"""The limit for the repeats of a pattern, which are expanded at compilation."""
_GROUP = re.compile(r"\(\?(?::|P<\w+>)")
_OF_LINES = re.compile(r"\(\?|\(\*|[*+?}]\+|\\(?![dDwWsSbtnr.]|\W)")
"""What a pattern may see of the whole text, or keep from matching in it: look-around, possessive repeats, `\\Z`…"""
_FIRST_LOOK = 0.1


class PatternError(ValueError):
    """A pattern that cannot be used; the message is the reason in a few words."""


class Expression:
    """A compiled pattern, in Python's syntax with the additions of `regex` (version 0).

    `label` names it in an error, `stars` is how often a glob repeats something: with that known, short texts are
    searched without a timeout. Raises PatternError for a malformed or too large pattern.
    """

    def __init__(self, label: str, pattern: str, flags: int = 0, *, stars: int | None = None) -> None:
        self._label = label
        self._quick_length = 0 if stars is None else int(_QUICK_STEPS ** (1 / (stars + 1)))
        counts = [int(count) for count in re.findall(r"\{\s*(\d+)", pattern)]
        of_groups = math.prod(int(count) for count in re.findall(r"\)\{\s*(\d+)", pattern))
        if of_groups * (len(pattern) + sum(counts)) > _MAX_SIZE:
            raise PatternError("its repeats multiply to too many; use smaller numbers")
        try:
            self._regex = regex.compile(pattern, flags | regex.V0)
            across = _OF_LINES.search(_GROUP.sub("(", pattern))
            self._lines = None if across else regex.compile(pattern, flags | regex.V0 | regex.MULTILINE)
        except MemoryError:
            raise PatternError("it needs too much memory") from None
        except (regex.error, RecursionError, OverflowError, ValueError) as error:
            raise PatternError(str(error)) from None

    def candidate(self, text: str, start: int) -> int:
        """Return a place in the next line from `start` on that may have a match; -1 if no line has one."""
        if self._lines is not None:
            try:
                found = self._lines.search(text, start, timeout=_FIRST_LOOK)
            except (TimeoutError, MemoryError):
                self._lines = None
            else:
                return -1 if found is None else found.start()
        return start

    def search(self, text: str, deadline: float) -> regex.Match[str] | None:
        """Return the first match. Raises ToolError after SECONDS, TimeoutError at the deadline (monotonic seconds)."""
        if len(text) <= self._quick_length:
            return self._regex.search(text)
        with self._limited(deadline) as seconds:
            return self._regex.search(text, timeout=seconds)

    def matches(self, text: str, deadline: float) -> Iterator[regex.Match[str]]:
        """Yield the matches from left to right, without overlaps. Raises as `search`; SECONDS covers all of them."""
        with self._limited(deadline) as seconds:
            yield from self._regex.finditer(text, timeout=seconds)

    @contextmanager
    def _limited(self, deadline: float) -> Iterator[float]:
        seconds = min(SECONDS, deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        try:
            yield seconds
        except TimeoutError:
            if seconds < SECONDS:
                raise
            raise ToolError(
                f"{self._label} takes more than {SECONDS:g} s on one text; "
                "write it without a repeat inside a repeat, such as a+ for (a|aa)+"
            ) from None
        except MemoryError:
            raise ToolError(f"{self._label} needs too much memory; make it match less at once") from None


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


MAX_ALTERNATIVES = 200
"""How many patterns the braces of one may expand to."""
_BRACES = re.compile(r"(?<!\\)\{([^{}]*)(?<!\\)\}")
_MAX_IGNORE_FILE = 100_000
_MAX_RULE = 1_000
_REPOSITORY = ".git"


def glob_matcher(label: str, pattern: str, deadline: float) -> Callable[[str], bool]:
    """Return a test of relative POSIX paths: `*`, `?`, `[…]`, `**` as in a `.gitignore`, and `{a,b}` (REQ-025).

    The whole path must match. Raises PatternError for a pattern that is empty, absolute, leaves its directory, names
    one, or is malformed.
    """
    expressions = [_expression(label, f"/{_checked(text)}")[0] for text in _expanded(pattern)]
    return lambda path: any(expression.search(path, deadline) for expression in expressions)


def _expanded(pattern: str) -> list[str]:
    """Return the patterns without braces that a pattern expands to."""
    waiting, done = [pattern], []
    while waiting:
        text = waiting.pop()
        if braces := _BRACES.search(text):
            waiting += [f"{text[: braces.start()]}{choice}{text[braces.end() :]}" for choice in braces[1].split(",")]
        else:
            done.append(text)
        if len(waiting) + len(done) > MAX_ALTERNATIVES:
            raise PatternError(f"its braces expand to more than {MAX_ALTERNATIVES} patterns")
    return done


def _checked(pattern: str) -> str:
    """Return a pattern without redundant parts: `.` and doubled slashes."""
    if not pattern.strip():
        raise PatternError("it is empty")
    if pattern.startswith("/"):
        raise PatternError("it is absolute; give it relative to the project root, or to 'path'")
    if re.search(r"(?<!\\)\{", pattern):
        raise PatternError("'{' is not closed; write '\\{' for the character itself")
    names = [name for name in pattern.split("/") if name != "."]
    if ".." in names:
        raise PatternError("'..' would leave its directory; give a pattern without it")
    if not names or not names[-1]:
        raise PatternError("it names a folder, and only files are found; end it with '/**' for everything below it")
    return "/".join(name for name in names if name)


def _expression(label: str, pattern: str) -> tuple[Expression, bool]:
    """Return a compiled pattern of a `.gitignore`, and whether it ignores; a folder's path must end with a slash.

    Only the path itself is matched, not the folders above it. Raises PatternError.
    """
    with suppress(GitIgnorePatternError, PatternError):
        source, ignores = GitIgnoreSpecPattern.pattern_to_regex(pattern)
        if source is not None:
            own = source.replace("(?P<ps_d>/)", r"/\Z").replace("|$)", r"|\Z)")
            stars = 1 + len(re.findall(r"\*+", pattern))
            return Expression(label, own, regex.DOTALL, stars=stars), bool(ignores)
    raise PatternError("it is not well formed; write '[[]' for '[', and '\\\\' for '\\'")


@dataclass(frozen=True)
class FileListing:
    """The files below a place, regular ones and symbolic links, by path relative to the project root."""

    start: str
    """The resolved place, relative to the project root; `.` for the root."""
    files: list[str]
    links: list[str]

    def below(self, path: str) -> str:
        """Return a listed path relative to the start; for a file that is the start itself, its name."""
        if path == self.start:
            return path.rpartition("/")[2]
        return path if self.start == "." else path[len(self.start) + 1 :]


def list_files(
    sandbox: Sandbox, path: str, *, hidden: Callable[[str], bool] | None, include_ignored: bool, deadline: float
) -> FileListing:
    """Return the files below a folder, or the single file, that `path` names.

    Names with a leading dot are included, `.git` is not, and symbolic links are not followed. Files ignored by the
    project's `.gitignore` files are left out, except with `include_ignored`; a folder or file named by `path` is itself
    never left out. A path for which `hidden` is true, and everything below it, is left out. Raises ToolError if the
    path leads outside the root (REQ-110) or to nothing, TimeoutError at the deadline (monotonic seconds).
    """
    start = str(sandbox.listed(path))
    if is_hidden(start, hidden):
        raise ToolError(f"there is nothing at {path[:300]!r} in the project; look for it with Glob")
    ignores = None if include_ignored else _Ignores(sandbox, start, deadline)

    def is_seen(entry: FolderEntry) -> bool:
        # The name of the repository's own data, or in a work tree of the file that refers to it.
        is_repository = entry.path.rpartition("/")[2] == _REPOSITORY
        return not is_repository and (ignores is None or not ignores.ignores(entry.path, entry.is_dir))

    def is_denied(entry: FolderEntry) -> bool:
        return hidden is not None and hidden(entry.path)

    listing = FileListing(start, [], [])
    for entry in sandbox.walk(start, enter=lambda folder: not is_denied(folder) and is_seen(folder)):
        if time.monotonic() > deadline:
            raise TimeoutError
        if entry.is_dir or is_denied(entry) or not (entry.path == start or is_seen(entry)):
            continue
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
class _Ignores:
    """The `.gitignore` files of a project, as git reads them; the user's own and `.git/info/exclude` are not read."""

    sandbox: Sandbox
    start: str
    deadline: float
    _rules: dict[str, list[tuple[Expression, bool]]] = field(default_factory=dict)
    _top: str = "."

    def __post_init__(self) -> None:
        # Inside a requested folder that is itself ignored, only its own ignore files count.
        parts = self.start.split("/")
        above = ["/".join(parts[: length + 1]) for length in range(len(parts))] if self.start != "." else []
        if any(self.ignores(folder, True) for folder in above):
            self._top = self.start

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Return the verdict of the last matching rule; rules of a deeper folder come later."""
        folder, _, relative = path.rpartition("/")
        while True:
            for expression, ignores in self._rules_of(folder or "."):
                if expression.search(f"{relative}/" if is_folder else relative, self.deadline):
                    return ignores
            if not folder or folder == self._top:
                return False
            folder, _, name = folder.rpartition("/")
            relative = f"{name}/{relative}"

    def _rules_of(self, folder: str) -> list[tuple[Expression, bool]]:
        if folder not in self._rules:
            self._rules[folder] = list(self._read(f"{folder}/.gitignore"))
        return self._rules[folder]

    def _read(self, path: str) -> Iterator[tuple[Expression, bool]]:
        """Yield the rules of a file, last one first, without those that match nothing."""
        try:
            data = self.sandbox.read_bytes(path, _MAX_IGNORE_FILE)
        except ToolError:
            return
        for line in reversed(data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")):
            if len(line) <= _MAX_RULE:
                with suppress(PatternError):
                    yield _expression(f"the rule {line!r} in {path.removeprefix('./')!r}", line.removesuffix("\r"))
