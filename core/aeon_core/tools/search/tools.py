"""Grep and Glob: finding lines and files of the project (REQ-024, REQ-025)."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

from aeon_core.errors import ToolError
from aeon_core.tools.base import Effect, Tool, object_schema
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search.listing import FILE_TYPES, Listing, glob_matcher, is_hidden, list_files
from aeon_core.tools.search.matching import MAX_FILE, MAX_TOTAL, Answer, Mode, PatternError, Query, Searcher

MAX_SECONDS = 20.0
"""How long one search may take."""
MAX_SHOWN = 200
"""Characters of an argument that an error shows."""


class SearchTool(Tool):
    """A tool that looks through the files of the sandbox (REQ-110).

    Paths for which `hidden` is true, given relative to the project root, are treated as if they were not there, and
    so is all below them: deny rules on files reach a search that way.
    """

    effect: Effect = "pure"

    def __init__(self, sandbox: Sandbox, *, hidden: Callable[[str], bool] | None = None) -> None:
        self.sandbox = sandbox
        self.hidden = hidden

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments with `path` as where it really leads, relative to the project root, `.` for the root.

        None where it leads outside or cannot be followed: no rule can allow that.
        """
        try:
            return [{**arguments, "path": str(self.sandbox.relative(arguments.get("path", ".")))}]
        except ToolError:
            return None

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        """Return what was found. Raises ToolError for all that goes wrong, with the tool's name."""
        try:
            return self.run(time.monotonic() + MAX_SECONDS, **arguments)
        except TimeoutError:
            raise ToolError(
                f"{self.name}: the search took longer than {MAX_SECONDS:g} s; name a 'path', or simplify the pattern",
                tool_name=self.name,
            ) from None
        except ToolError as error:
            error.context.setdefault("tool_name", self.name)
            raise

    # **args is for type checkers alone, as in Tool.invoke.
    @abstractmethod
    def run(self, deadline: float, *args: Any, **arguments: Any) -> dict[str, Any]:
        """Return what was found. Raises ToolError, and TimeoutError at the deadline (monotonic seconds)."""

    def listed(self, path: str, include_ignored: bool, deadline: float) -> Listing:
        """Return the files below `path` that the tool may see. Raises as `list_files`."""
        return list_files(self.sandbox, path, hidden=self.hidden, include_ignored=include_ignored, deadline=deadline)

    def matcher(self, argument: str, pattern: str, deadline: float) -> Callable[[str], bool]:
        """Return whether a path fits a glob pattern. Raises ToolError, which names the argument, for a bad one."""
        label = f"{self.name}: {argument} {pattern[:MAX_SHOWN]!r}"
        try:
            return glob_matcher(label, pattern, deadline)
        except PatternError as error:
            raise ToolError(f"{label}: {error}") from None


def by_path(paths: Iterable[str]) -> list[str]:
    """Return the paths in the order of what is shown of them, by code points."""
    return sorted(paths, key=lambda path: (shown_path(path), path))


def shown_path(path: str) -> str:
    r"""Return a path as text: bytes that are not UTF-8 as `\xff`."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_NAMED = 5


def result_of(answer: Answer, query: Query) -> dict[str, Any]:
    """Return Grep's result: what was found, how much there is in all, and in `notes` what was left out."""
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


def _notes(answer: Answer, query: Query) -> Iterator[str]:
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
            "type": {
                "type": "string",
                "description": f"Only files of this type: {', '.join(FILE_TYPES)}.",
            },
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
            "counts": {
                "type": "array",
                "items": object_schema({"path": {"type": "string"}, "count": _COUNT}),
            },
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
        """Return `files`, `matches` or `counts`, how many files and lines match in all, and what was left out."""
        query = Query(
            pattern,
            case_insensitive,
            multiline,
            output_mode,
            max(int(before_context), int(context)),
            max(int(after_context), int(context)),
            int(head_limit),
        )
        try:
            searcher = Searcher(query, deadline)
        except PatternError as error:
            raise ToolError(f"Grep: pattern {pattern[:MAX_SHOWN]!r} cannot be used: {error}") from None
        accepts = self._accepts(glob, type, deadline)
        listing = self.listed(path, include_ignored, deadline)
        paths = by_path(file for file in listing.files if accepts(listing.below(file)))
        paths = self.sandbox.without_foreign_links(paths)
        return result_of(searcher.search(str(self.sandbox.root), paths), query)

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
            fits = self.matcher("glob", _anywhere(glob.removeprefix("!")), deadline)
            tests.append((lambda path: not fits(path)) if glob.startswith("!") else fits)
        return lambda path: all(test(path) for test in tests)


class GlobTool(SearchTool):
    """Finds files by the form of their paths (REQ-025)."""

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
        """Return the files in the order of their paths, and how many there are in all."""
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
        """Return whether a symbolic link leads to a file of the project that may be seen."""
        try:
            target = str(self.sandbox.relative(link))
            if is_hidden(target, self.hidden):
                return False
            self.sandbox.open_read(link).close()
        except ToolError:
            return False
        return True


def _anywhere(glob: str) -> str:
    """Return a glob that is about names alone as one for paths."""
    return glob if "/" in glob else f"**/{glob}"
