"""Searching files with Python's regular expressions, as a program of its own: nothing else can end a slow one.

It is run by its path, in an interpreter without site-packages, and imports the standard library alone. One line of JSON
(`Query`) comes in, then the paths to search, each ended by NUL; one JSON value (`Answer`) goes out.
"""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal, NotRequired, TypedDict

MAX_FILE = 50_000_000
"""Bytes of the largest file that is searched."""
MAX_LINE = 2_000
"""Characters of a line that are shown."""
MAX_TOTAL = 100_000
"""Bytes of paths and lines in one answer."""
_MAX_MEMORY = 4_000_000_000
_BINARY_CHECK = 8_000
_ENTRY_COST = 40
_CHUNK = 1 << 18
_LEAD = 200
# A folder that may be entered need not be readable; O_PATH asks for no more than that, where there is one.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Python takes them for other sets, and warns.
_POSIX_CLASS = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)

Mode = Literal["files_with_matches", "content", "count"]


class Query(TypedDict):
    """What is searched for. The program may live for `seconds`, and compute for `cpu_seconds` on each file."""

    pattern: str
    ignore_case: bool
    multiline: bool
    mode: Mode
    before: int
    after: int
    limit: int
    seconds: float
    cpu_seconds: float


class MatchedFile(TypedDict):
    """A file with matches, by its place among the paths; in mode `content` one line of it, of context or matching."""

    file: int
    lines: NotRequired[int]
    line: NotRequired[int]
    text: NotRequired[str]
    context: NotRequired[bool]


class Answer(TypedDict):
    """What was found. `files` and `lines` count all that match.

    `shown` counts the entries without those of context; `cut` says that others were left out. `large` and
    `unreadable` are the places of the files that were not searched; `error` says what is wrong with the pattern.
    """

    error: NotRequired[str]
    entries: list[MatchedFile]
    shown: int
    cut: bool
    files: int
    lines: int
    large: list[int]
    unreadable: list[int]


def search(query: Query, paths: list[str], on_file: Callable[[], object] = lambda: None) -> Answer:
    """Search the files below the working folder in the order given, and return what is found (REQ-024).

    `on_file` is called before each file is searched.

    Lines end with LF or CR LF. Files with a NUL at their start are binary and hold no lines; what is not UTF-8 is read
    as U+FFFD. Without `multiline` each line is searched by itself; with it the whole text, `.` takes line ends too, and
    every line that a match touches is a matching one.
    """
    answer: Answer = {"entries": [], "shown": 0, "cut": False, "files": 0, "lines": 0, "large": [], "unreadable": []}
    room = MAX_TOTAL
    try:
        regex = _compiled(query)
        for file, text in _texts(paths, answer):
            on_file()
            lines = _lines(text)
            matching = _touched(regex, text, len(lines)) if query["multiline"] else _matching(regex, lines)
            if not matching:
                continue
            answer["files"] += 1
            answer["lines"] += len(matching)
            for entry in _entries(regex, file, lines, matching, query, query["limit"] - answer["shown"]):
                room -= _ENTRY_COST + len(os.fsencode(paths[file])) + len(entry.get("text", "").encode())
                if room < 0:
                    answer["cut"] = True
                    break
                answer["entries"].append(entry)
                answer["shown"] += not entry.get("context", False)
        total = answer["lines" if query["mode"] == "content" else "files"]
        answer["cut"] = answer["cut"] or answer["shown"] < total
    except MemoryError:
        answer["error"] = "it needs too much memory"
    except (re.error, RecursionError, OverflowError) as error:
        answer["error"] = str(error)
    return answer


def _compiled(query: Query) -> re.Pattern[str]:
    flags = re.IGNORECASE if query["ignore_case"] else re.NOFLAG
    if query["multiline"]:
        flags |= re.MULTILINE | re.DOTALL
    if posix := _POSIX_CLASS.search(query["pattern"]):
        raise re.error(f"{posix.group()} is not known here, write [a-z], \\w, \\s or \\d")
    return re.compile(query["pattern"], flags)


def _texts(paths: list[str], answer: Answer) -> Iterator[tuple[int, str]]:
    """Give place and text of every file that can be searched, and note in the answer which cannot."""
    root = os.open(".", _FOLDER)
    above: str | None = None
    folder = -1
    for place, path in enumerate(paths):
        parent, _, name = path.rpartition("/")
        try:
            if parent != above:
                above = None
                opened = _open_folder(root, parent)
                if folder >= 0:
                    os.close(folder)
                folder, above = opened, parent
            data = _data(folder, name)
        except OSError as error:
            # What is gone, or a link by now, is not there.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
                answer["unreadable"].append(place)
            continue
        if data is None:
            answer["large"].append(place)
        else:
            yield place, data.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _open_folder(root: int, path: str) -> int:
    """Return a descriptor of a folder below the one open as `root`; no symlink is followed. Raises OSError."""
    current = os.open(".", _FOLDER, dir_fd=root)
    for name in path.split("/") if path not in ("", ".") else ():
        try:
            following = os.open(name, _FOLDER, dir_fd=current)
        finally:
            os.close(current)
        current = following
    return current


def _data(folder: int, name: str) -> bytes | None:
    """Return a regular file's bytes, None for too many, nothing for what is no file or binary. Raises OSError."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        if status.st_size > MAX_FILE:
            return None
        data = os.read(descriptor, _CHUNK)
        if b"\0" in data[:_BINARY_CHECK]:
            return b""
        chunks, size = [data], len(data)
        while chunk := os.read(descriptor, _CHUNK):
            size += len(chunk)
            if size > MAX_FILE:
                return None
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _matching(regex: re.Pattern[str], lines: list[str]) -> list[int]:
    matches = regex.search
    return [number for number, line in enumerate(lines) if matches(line)]


def _touched(regex: re.Pattern[str], text: str, count: int) -> list[int]:
    touched: list[int] = []
    line = at = 0
    for match in regex.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        # A line end belongs to the line that it ends.
        last = line + text.count("\n", at, max(at, match.end() - 1))
        first = max(line, touched[-1] + 1 if touched else 0)
        touched += range(first, min(last + 1, count))
    return touched


def _entries(
    regex: re.Pattern[str], file: int, lines: list[str], matching: list[int], query: Query, limit: int
) -> Iterator[MatchedFile]:
    """Give a file's entries, with at most `limit` matches."""
    if limit <= 0:
        return
    if query["mode"] == "files_with_matches":
        yield {"file": file}
    elif query["mode"] == "count":
        yield {"file": file, "lines": len(matching)}
    else:
        # Context ends where a match begins that is not shown any more.
        end = matching[limit] if len(matching) > limit else len(lines)
        hits, following = set(matching), 0
        for hit in matching[:limit]:
            for number in range(max(following, hit - query["before"]), min(end, hit + query["after"] + 1)):
                entry: MatchedFile = {"file": file, "line": number + 1, "text": _cut(lines[number], regex)}
                if number not in hits:
                    entry["context"] = True
                yield entry
                following = number + 1


def _cut(line: str, regex: re.Pattern[str]) -> str:
    """Return the line, of a long one the part around its first match."""
    if len(line) <= MAX_LINE:
        return line
    match = regex.search(line)
    start = max(0, min(match.start() - _LEAD, len(line) - MAX_LINE)) if match else 0
    part = line[start : start + MAX_LINE]
    return f"{part} [characters {start + 1} to {start + len(part)} of {len(line)}]"


def main() -> None:
    """Answer one query, within its time and within bounds of memory."""
    header, _, listing = sys.stdin.buffer.read().partition(b"\n")
    query: Query = json.loads(header)
    # Unlike a Python handler, the signal's default ends a search that is under way, also where nobody waits any more.
    signal.setitimer(signal.ITIMER_REAL, query["seconds"])
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    paths = [os.fsdecode(path) for path in listing.split(b"\0")[:-1]]
    answer = search(query, paths, lambda: signal.setitimer(signal.ITIMER_PROF, query["cpu_seconds"]))
    signal.setitimer(signal.ITIMER_PROF, 0)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
