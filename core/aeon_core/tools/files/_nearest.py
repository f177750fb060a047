"""Where text that was not found may have been meant, and how what stands there differs (REQ-096)."""

from __future__ import annotations

import heapq
import re
from collections import Counter
from difflib import SequenceMatcher

_MAX_LINE = 200
_MAX_SHOWN = 12
_AROUND = 2
# Looking for similar lines is a matter of milliseconds, whatever the size of the file.
_MAX_LINES = 50_000
_MAX_CANDIDATES = 40
_MAX_GRAMS = 24
_MAX_SAME = 20
_LEAST_BLOCK = 3
_LEAST_COVERED = 0.5
_NUMBERED = re.compile(r"^ *\d+\t", re.MULTILINE)


def found_instead(data: bytes, wanted: str, expected: int = 0) -> str:
    """Return what stands where `wanted` may have been meant: the difference in words, and the lines, numbered.

    `expected` is the line (from 0) to show where nothing is similar.
    """
    lines = _split(data.decode("utf-8", "replace"))
    if not lines:
        return "the file is empty"
    hint = ""
    sought = _split(wanted)
    if all(_NUMBERED.match(line) for line in sought):
        hint = "leave out the line numbers that Read puts before each line; "
        sought = _split(_NUMBERED.sub("", wanted))
    start = _closest(lines, sought)
    if start is None:
        first = max(0, min(expected, len(lines) - 1))
        return f"{hint}nothing in it is similar, and around line {first + 1} stands:\n{_snippet(lines, first, 1)}"
    return f"{hint}{_difference(lines, sought, start)}:\n{_snippet(lines, start, len(sought))}"


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _closest(lines: list[str], sought: list[str]) -> int | None:
    """Return the line where the first of the sought lines would stand; it may be before the beginning."""
    votes = _votes(lines, sought)
    if votes:
        return min(votes, key=lambda start: (-votes[start], start))
    return _similar(lines, sought)


def _votes(lines: list[str], sought: list[str]) -> Counter[int]:
    """Return, for each place, how much text it shares with the sought lines, whitespace aside."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(sought):
        if key := _key(line):
            places.setdefault(key, []).append(index)
    for same in places.values():
        del same[_MAX_SAME:]
    votes: Counter[int] = Counter()
    for number, line in enumerate(lines):
        for index in places.get(_key(line), ()):
            votes[number - index] += len(lines[number])
    return votes


def _similar(lines: list[str], sought: list[str]) -> int | None:
    index, anchor = max(enumerate(line.strip()[:_MAX_LINE] for line in sought), key=lambda item: len(item[1]))
    grams = sorted({anchor[at : at + _LEAST_BLOCK] for at in range(max(1, len(anchor) - _LEAST_BLOCK + 1))})
    grams = grams[:: 1 + len(grams) // _MAX_GRAMS]
    scored = ((sum(gram in line for gram in grams), -number) for number, line in enumerate(lines[:_MAX_LINES]))
    candidates = [-number for score, number in heapq.nlargest(_MAX_CANDIDATES, scored) if score]
    covered = {number: _covered(lines[number], anchor) for number in candidates}
    best = max(covered, key=lambda number: (covered[number], -number), default=None)
    return None if best is None or covered[best] < _LEAST_COVERED else best - index


def _covered(line: str, anchor: str) -> float:
    """Return the share of the anchor that occurs in the line, in its order."""
    blocks = SequenceMatcher(None, line[: 10 * _MAX_LINE], anchor, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks if block.size >= _LEAST_BLOCK) / max(1, len(anchor))


def _difference(lines: list[str], sought: list[str], start: int) -> str:
    for index, line in enumerate(sought):
        number = start + index
        if not 0 <= number < len(lines):
            edge = "begins after" if number < 0 else "ends before"
            return f"the closest text is around line {max(1, start + 1)}; the file {edge} {_quoted(line)}"
        if (actual := lines[number]) != line and not _is_part(actual, line, index, len(sought)):
            return f"the closest text is around line {max(1, start + 1)}; {_how(actual, line, number + 1)}"
    return f"the closest text is around line {max(1, start + 1)}; there the text around the line ends differs"


def _is_part(actual: str, line: str, index: int, count: int) -> bool:
    """Return whether a first or last line, which may be a part of the file's, is one."""
    return (index == 0 and actual.endswith(line)) or (index == count - 1 and actual.startswith(line))


def _how(actual: str, line: str, number: int) -> str:
    if actual.rstrip("\r") == line.rstrip("\r"):
        ends = ("CRLF", "LF") if actual.endswith("\r") else ("LF", "CRLF")
        return f"line {number} ends in {ends[0]}, the text looked for in {ends[1]}"
    if _key(actual) != _key(line):
        return f"line {number} is {_quoted(actual)}, the text looked for has {_quoted(line)}"
    if (indent := _indent(actual)) != (other := _indent(line)):
        return f"only whitespace differs: line {number} begins with {indent}, the text looked for with {other}"
    if actual.rstrip() == line.rstrip():
        return f"only whitespace differs: at the end of line {number}"
    return f"only whitespace differs: inside line {number}, {_quoted(actual)}"


def _key(line: str) -> str:
    return "".join(line.split())


def _indent(line: str) -> str:
    space = line[: len(line) - len(line.lstrip())]
    counted = [(space.count(character), name) for character, name in (("\t", "tab"), (" ", "space"))]
    words = [f"{count} {name}{'s' if count > 1 else ''}" for count, name in counted if count]
    return " and ".join(words) or "no whitespace"


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "…")


def _snippet(lines: list[str], start: int, count: int) -> str:
    first = max(0, min(start, len(lines) - 1) - _AROUND)
    last = min(len(lines), max(start, 0) + min(count, _MAX_SHOWN) + _AROUND)
    shown = (line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "…" for line in lines[first:last])
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(shown, first + 1))
