"""Grep and Glob, which find lines and files of the project (REQ-024, REQ-025)."""

from __future__ import annotations

import errno
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, Literal, get_args

import regex

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.listing import (
    FILE_TYPES,
    Expression,
    FileListing,
    PatternError,
    glob_matcher,
    is_hidden,
    list_files,
)
from aeon_core.tools.sandbox import Sandbox, own_secrets

MAX_FILE = 50_000_000
"""The size in bytes of the largest file that is searched."""
MAX_LINE = 2_000
"""The most characters of a line that are shown."""
MAX_TOTAL = 100_000
"""The most bytes of paths and lines in one result."""
_BINARY_CHECK = 8_000
_ENTRY_COST = 40
_LEAD = 200
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)

Mode = Literal["files_with_matches", "content", "count"]


@dataclass(slots=True)
class SearchResult:
    """The result of a search. `files` and `lines` count all matching ones."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    """`path` with `lines` or, in the mode `content`, with `line`, `text` and `context` (true for a line of context)."""
    shown: int = 0
    """The number of entries other than context."""
    cut: bool = False
    """Whether others were left out."""
    files: int = 0
    lines: int = 0
    large: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


@dataclass
class Searcher:
    """Searches files of a project. Raises PatternError for a pattern that cannot be used."""

    pattern: str
    deadline: float
    """Monotonic seconds."""
    ignore_case: bool = False
    multiline: bool = False
    """Match across lines: `.` then matches line ends, and every line that a match touches counts as matching."""
    mode: Mode = "files_with_matches"
    before: int = 0
    after: int = 0
    """Lines of context around each match."""
    limit: int = 250
    """The most files, or in the mode `content` matching lines, to return."""

    def __post_init__(self) -> None:
        flags = regex.IGNORECASE if self.ignore_case else 0
        if self.multiline:
            flags |= regex.MULTILINE | regex.DOTALL
        self._regex = Expression(f"Grep: pattern {self.pattern[:200]!r}", self.pattern, flags)

    def search(self, sandbox: Sandbox, paths: Iterable[str]) -> SearchResult:
        """Return the matches in the files, in the order of the paths.

        Lines end with LF or CR LF. Files with a NUL near the beginning are binary and not searched; invalid UTF-8 is
        read as U+FFFD. No symbolic link is followed. Raises what `Expression.search` raises.
        """
        answer, room = SearchResult(), MAX_TOTAL
        for path, text in self._texts(sandbox, paths, answer):
            lines = text.split("\n")
            if not lines[-1]:
                lines.pop()
            matching = self._touched(text, len(lines)) if self.multiline else self._matching(text, lines)
            if not matching:
                continue
            answer.files += 1
            answer.lines += len(matching)
            for entry in self._entries(path, lines, matching, self.limit - answer.shown):
                room -= _ENTRY_COST + len(os.fsencode(path)) + len(entry.get("text", "").encode())
                if room < 0:
                    answer.cut = True
                    break
                answer.entries.append(entry)
                answer.shown += not entry.get("context", False)
        answer.cut = answer.cut or answer.shown < (answer.lines if self.mode == "content" else answer.files)
        return answer

    def _texts(self, sandbox: Sandbox, paths: Iterable[str], answer: SearchResult) -> Iterator[tuple[str, str]]:
        """Yield path and text of every file, and note in the result which cannot be searched."""
        secrets = cache(own_secrets)
        for path in paths:
            if time.monotonic() > self.deadline:
                raise TimeoutError
            try:
                file = sandbox.open_walked(path, secrets)
                if file is None:
                    continue
                with file:
                    data = _data(file)
            except OSError as error:
                # A file that is gone, or has become a link, is skipped.
                if error.errno not in _GONE:
                    answer.unreadable.append(path)
                continue
            if data is None:
                answer.large.append(path)
            else:
                yield path, data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")

    def _matching(self, text: str, lines: list[str]) -> list[int]:
        found = []
        at = number = 0
        while number < len(lines) and (place := self._regex.candidate(text, at)) >= 0:
            number += text.count("\n", at, place)
            if number < len(lines) and self._regex.search(lines[number], self.deadline):
                found.append(number)
            at = text.find("\n", place) + 1
            number += 1
            if not at:
                break
        return found

    def _touched(self, text: str, count: int) -> list[int]:
        touched: list[int] = []
        line = at = 0
        for match in self._regex.matches(text, self.deadline):
            line += text.count("\n", at, match.start())
            at = match.start()
            # A line break belongs to the line that it ends.
            last = line + text.count("\n", at, max(at, match.end() - 1))
            first = max(line, touched[-1] + 1 if touched else 0)
            touched += range(first, min(last + 1, count))
        return touched

    def _entries(self, path: str, lines: list[str], matching: list[int], limit: int) -> Iterator[dict[str, Any]]:
        """Yield a file's entries, with at most `limit` matches."""
        if limit <= 0:
            return
        if self.mode != "content":
            yield {"path": path, "lines": len(matching)}
            return
        # Context ends before the first match that is not shown.
        end = matching[limit] if len(matching) > limit else len(lines)
        hits, following = set(matching), 0
        for hit in matching[:limit]:
            for number in range(max(following, hit - self.before), min(end, hit + self.after + 1)):
                entry = {"path": path, "line": number + 1, "text": self._cut(lines[number])}
                yield entry if number in hits else {**entry, "context": True}
                following = number + 1

    def _cut(self, line: str) -> str:
        """Return the line, or the part of a long one around its first match."""
        if len(line) <= MAX_LINE:
            return line
        match = self._regex.search(line, self.deadline)
        start = max(0, min(match.start() - _LEAD, len(line) - MAX_LINE)) if match else 0
        part = line[start : start + MAX_LINE]
        return f"{part} [characters {start + 1} to {start + len(part)} of {len(line)}]"


def _data(file: BinaryIO) -> bytes | None:
    """Return a file's content: None if it is too large, empty if it is binary. Raises OSError."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_FILE:
        return None
    data = file.read(_BINARY_CHECK)
    if b"\0" in data:
        return b""
    while more := file.read(max(size - len(data), 0) + _BINARY_CHECK):
        data += more
        if len(data) > MAX_FILE:
            return None
    return data


MAX_SECONDS = 20.0
"""The most seconds that one search may take."""
MAX_SHOWN = 200
"""The most characters of an argument in an error."""


class SearchTool(Tool):
    """A tool that searches the files of the sandbox (REQ-110).

    Paths (relative to the project root) for which `hidden` is true are left out with everything below them, which
    applies deny rules on files to searches.
    """

    effect: Effect = "pure"

    def __init__(self, sandbox: Sandbox, *, hidden: Callable[[str], bool] | None = None) -> None:
        self.sandbox = sandbox
        self.hidden = hidden

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments with `path` resolved, relative to the project root; `.` for the root.

        None if it leads outside or cannot be followed: no rule can allow that.
        """
        try:
            return [{**arguments, "path": str(self.sandbox.relative(arguments.get("path", ".")))}]
        except ToolError:
            return None

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        """Return the result. Raises ToolError for anything that goes wrong."""
        try:
            return self.run(time.monotonic() + MAX_SECONDS, **arguments)
        except TimeoutError:
            raise ToolError(
                f"{self.name}: the search took longer than {MAX_SECONDS:g} s; name a 'path', or simplify the pattern"
            ) from None

    # **args is only for type checkers, as in Tool.invoke.
    @abstractmethod
    def run(self, deadline: float, *args: Any, **arguments: Any) -> dict[str, Any]:
        """Return the result. Raises ToolError, and TimeoutError at the deadline (monotonic seconds)."""

    def listed(self, path: str, include_ignored: bool, deadline: float) -> FileListing:
        """Return the files below `path` that the tool may see. Raises what `list_files` raises."""
        return list_files(self.sandbox, path, hidden=self.hidden, include_ignored=include_ignored, deadline=deadline)

    def matcher(self, argument: str, pattern: str, deadline: float) -> Callable[[str], bool]:
        """Return a test for paths that match a glob. Raises ToolError, which names the argument, for a bad one."""
        label = f"{self.name}: {argument} {pattern[:MAX_SHOWN]!r}"
        try:
            return glob_matcher(label, pattern, deadline)
        except PatternError as error:
            raise ToolError(f"{label}: {error}") from None


def by_path(paths: Iterable[str]) -> list[str]:
    """Return the paths sorted by their shown form, by code points."""
    return sorted(paths, key=lambda path: (shown_path(path), path))


def shown_path(path: str) -> str:
    r"""Return a path as text, with bytes that are not UTF-8 as `\xff`."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_NAMED = 5


def result_of(answer: SearchResult, query: Searcher) -> dict[str, Any]:
    """Return Grep's result: the entries, the totals, and in `notes` what was left out."""
    entries = [{**entry, "path": shown_path(entry["path"])} for entry in answer.entries]
    listed: dict[str, Any]
    if query.mode == "files_with_matches":
        listed = {"files": [entry["path"] for entry in entries]}
    elif query.mode == "count":
        listed = {"counts": [{"path": entry["path"], "count": entry["lines"]} for entry in entries]}
    else:
        listed = {"matches": entries}
    return {
        **listed,
        "total_files": answer.files,
        "total_lines": answer.lines,
        "truncated": answer.cut,
        "notes": list(_notes(answer, query)),
    }


def _notes(answer: SearchResult, query: Searcher) -> Iterator[str]:
    if answer.cut:
        total, what = (answer.lines, "matching lines") if query.mode == "content" else (answer.files, "files")
        limit = "head_limit" if answer.shown >= query.limit else f"a result holds {MAX_TOTAL // 1000} kB"
        yield (
            f"Shown are the first {answer.shown:,} of {total:,} {what} ({limit}); "
            "use a narrower pattern, path, glob or type."
        )
    for paths, reason in (
        (answer.large, f"larger than {MAX_FILE // 1_000_000} MB"),
        (answer.unreadable, "cannot be read"),
    ):
        if paths:
            more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
            yield f"Not searched, {reason}: {', '.join(map(shown_path, paths[:_NAMED]))}{more}."


DEFAULT_MATCHES = 250
DEFAULT_FILES = 1_000

_PATH = {
    "type": "string",
    "minLength": 1,
    "description": "The folder or file to search: relative to the project root, or an absolute path inside it. "
    "Default: the root.",
}
_INCLUDE_IGNORED = {"type": "boolean", "description": "Also search what .gitignore files leave out. Default: false."}
_LINES = {"type": "integer", "minimum": 0, "maximum": 1_000}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 10_000}
_COUNT = {"type": "integer", "minimum": 0}
_NOTES = {"type": "array", "items": {"type": "string"}}


class GrepTool(SearchTool):
    """Searches the content of files with a regular expression (REQ-024)."""

    name = "Grep"
    description = (
        "Searches the project's text files with a regular expression (Python's syntax), line by line. Returns the "
        "paths of the files with matches, or with output_mode the matching lines or their number in each file, sorted "
        "by path. Files with a leading dot are searched; .git, binary files, symbolic links, and what .gitignore "
        "leaves out are not."
    )
    input_schema: dict[str, Any] = object_schema(
        {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": 10_000,
                "description": "The regular expression. ^ and $ are the ends of a line.",
            },
            "path": _PATH,
            "glob": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1_000,
                "description": "Only files that fit, such as '*.{ts,tsx}' for a name or 'tests/**/*.py' for a path "
                "relative to 'path'; a leading '!' leaves them out.",
            },
            "type": {"type": "string", "description": f"Only files of this type: {', '.join(FILE_TYPES)}."},
            "output_mode": {
                "type": "string",
                "enum": list(get_args(Mode)),
                "description": "What to return. Default: files_with_matches.",
            },
            "before_context": {**_LINES, "description": "With content: lines to show before each match."},
            "after_context": {**_LINES, "description": "With content: lines to show after each match."},
            "context": {**_LINES, "description": "With content: lines to show before and after each match."},
            "case_insensitive": {"type": "boolean", "description": "Default: false."},
            "multiline": {
                "type": "boolean",
                "description": "Match across lines; '.' then takes line ends too. Default: false.",
            },
            "head_limit": {
                **_LIMIT,
                "description": f"The most files, or with content lines, to return. Default: {DEFAULT_MATCHES}.",
            },
            "include_ignored": _INCLUDE_IGNORED,
        },
        ["pattern"],
    )
    output_schema: dict[str, Any] = object_schema(
        {
            "files": {"type": "array", "items": {"type": "string"}},
            "matches": {
                "type": "array",
                "items": object_schema(
                    {
                        "path": {"type": "string"},
                        "line": {"type": "integer", "minimum": 1},
                        "text": {"type": "string"},
                        "context": {"type": "boolean"},
                    },
                    ["path", "line", "text"],
                ),
            },
            "counts": {"type": "array", "items": object_schema({"path": {"type": "string"}, "count": _COUNT})},
            "total_files": _COUNT,
            "total_lines": _COUNT,
            "truncated": {"type": "boolean"},
            "notes": _NOTES,
        },
        ["total_files", "total_lines", "truncated", "notes"],
    )
    examples: tuple[dict[str, Any], ...] = (
        {"pattern": "class \\w+Error", "type": "py"},
        {"pattern": "TODO", "path": "src", "output_mode": "content", "context": 2},
    )

    def run(
        self,
        deadline: float,
        pattern: str,
        path: str = ".",
        glob: str | None = None,
        type: str | None = None,  # noqa: A002  # the argument's name
        output_mode: Mode = "files_with_matches",
        before_context: int = 0,
        after_context: int = 0,
        context: int = 0,
        case_insensitive: bool = False,
        multiline: bool = False,
        head_limit: int = DEFAULT_MATCHES,
        include_ignored: bool = False,
    ) -> dict[str, Any]:
        """Return `files`, `matches` or `counts`, the total of matching files and lines, and what was left out."""
        try:
            searcher = Searcher(
                pattern,
                deadline,
                case_insensitive,
                multiline,
                output_mode,
                max(int(before_context), int(context)),
                max(int(after_context), int(context)),
                int(head_limit),
            )
        except PatternError as error:
            raise ToolError(f"Grep: pattern {pattern[:MAX_SHOWN]!r} cannot be used: {error}") from None
        accepts = self._accepts(glob, type, deadline)
        listing = self.listed(path, include_ignored, deadline)
        paths = by_path(file for file in listing.files if accepts(listing.below(file)))
        return result_of(searcher.search(self.sandbox, paths), searcher)

    def _accepts(self, glob: str | None, file_type: str | None, deadline: float) -> Callable[[str], bool]:
        tests: list[Callable[[str], bool]] = []
        if file_type is not None:
            if file_type not in FILE_TYPES:
                raise ToolError(
                    f"Grep: unknown type {file_type[:MAX_SHOWN]!r}, expected one of {', '.join(FILE_TYPES)}; "
                    "use 'glob' for others"
                )
            tests.append(self.matcher("type", f"**/{FILE_TYPES[file_type]}", deadline))
        if glob is not None:
            pattern = glob.removeprefix("!")
            # A pattern without a folder matches names.
            fits = self.matcher("glob", pattern if "/" in pattern else f"**/{pattern}", deadline)
            tests.append((lambda path: not fits(path)) if glob.startswith("!") else fits)
        return lambda path: all(test(path) for test in tests)


class GlobTool(SearchTool):
    """Finds files by patterns of their paths (REQ-025)."""

    name = "Glob"
    description = (
        "Finds the project's files whose path fits a glob pattern: ** for any folders, * and ? within a name, [a-z], "
        "{a,b}. Returns paths relative to the project root, sorted. Files with a leading dot are found; .git, and what "
        ".gitignore leaves out, are not."
    )
    input_schema: dict[str, Any] = object_schema(
        {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": 1_000,
                "description": "The pattern, relative to 'path': '**/*.py' finds them at every depth, '*.py' in the "
                "folder itself.",
            },
            "path": {**_PATH, "description": "The folder to look in. Default: the project root."},
            "include_ignored": _INCLUDE_IGNORED,
        },
        ["pattern"],
    )
    output_schema: dict[str, Any] = object_schema(
        {
            "files": {"type": "array", "items": {"type": "string"}},
            "total_files": _COUNT,
            "truncated": {"type": "boolean"},
            "notes": _NOTES,
        }
    )
    examples: tuple[dict[str, Any], ...] = ({"pattern": "**/*.py"}, {"pattern": "*.{json,toml}", "path": "config"})

    def run(self, deadline: float, pattern: str, path: str = ".", include_ignored: bool = False) -> dict[str, Any]:
        """Return the files in the order of their paths, and their total number."""
        fits = self.matcher("pattern", pattern, deadline)
        listing = self.listed(path, include_ignored, deadline)
        links = [link for link in listing.links if fits(listing.below(link)) and self._leads_to_a_file(link)]
        fitting = by_path([*(file for file in listing.files if fits(listing.below(file))), *links])
        truncated = len(fitting) > DEFAULT_FILES
        note = (
            f"Shown are the first {DEFAULT_FILES:,} of {len(fitting):,} files; use a narrower pattern, or name a path."
        )
        return {
            "files": [shown_path(file) for file in fitting[:DEFAULT_FILES]],
            "total_files": len(fitting),
            "truncated": truncated,
            "notes": [note] if truncated else [],
        }

    def _leads_to_a_file(self, link: str) -> bool:
        """Return whether a symbolic link leads to a visible file of the project."""
        try:
            target = str(self.sandbox.relative(link))
            if is_hidden(target, self.hidden):
                return False
            self.sandbox.open_read(link).close()
        except ToolError:
            return False
        return True
