"""What an edit changed, as a unified diff that is short enough to read (REQ-023)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

MAX_SHOWN = 200
"""Lines of a diff that are shown."""
_MAX_LINE = 500
_MAX_COMPARED = 5_000
_CONTEXT = 3
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def diff_view(path: str, before: bytes, after: bytes) -> str:
    """Return the unified diff of two versions of a file, cut after MAX_SHOWN lines; it says where it was cut."""
    shown = list(islice(_diff(path, _LINE.findall(before), _LINE.findall(after)), MAX_SHOWN + 1))
    if len(shown) > MAX_SHOWN:
        shown[-1] = f"… [the diff is cut after {MAX_SHOWN} lines]"
    return "\n".join(shown)


def _diff(path: str, old: list[bytes], new: list[bytes]) -> Iterator[str]:
    """Yield the diff's lines. Only what lies between the first and the last change is compared, and not all of that."""
    yield from (f"--- a/{path}", f"+++ b/{path}")
    head = _common(old, new, from_end=False)
    tail = min(_common(old, new, from_end=True), min(len(old), len(new)) - head)
    first = max(0, head - _CONTEXT)
    old_part = old[first : len(old) - max(0, tail - _CONTEXT)]
    new_part = new[first : len(new) - max(0, tail - _CONTEXT)]
    is_long = max(len(old_part), len(new_part)) > _MAX_COMPARED
    matcher = SequenceMatcher(None, old_part[:_MAX_COMPARED], new_part[:_MAX_COMPARED])
    groups = list(matcher.get_grouped_opcodes(_CONTEXT))
    end = _MAX_COMPARED
    if is_long and len(groups) > 1 and max(groups[-1][-1][2], groups[-1][-1][4]) == _MAX_COMPARED:
        # Where the comparison breaks off, lines look changed that are not.
        end = groups.pop()[0][1]
    for group in groups:
        yield _header(group, first)
        for kind, old_start, old_end, new_start, new_end in group:
            yield from _marked(" " if kind == "equal" else "-", old_part[old_start:old_end])
            if kind != "equal":
                yield from _marked("+", new_part[new_start:new_end])
    if is_long:
        yield f"… [changes after line {first + end} are not shown]"


def _common(old: list[bytes], new: list[bytes], *, from_end: bool) -> int:
    pairs = zip(reversed(old), reversed(new), strict=False) if from_end else zip(old, new, strict=False)
    count = 0
    for left, right in pairs:
        if left != right:
            break
        count += 1
    return count


def _header(group: list[tuple[str, int, int, int, int]], first: int) -> str:
    old = _span(first + group[0][1], first + group[-1][2])
    new = _span(first + group[0][3], first + group[-1][4])
    return f"@@ -{old} +{new} @@"


def _span(start: int, end: int) -> str:
    # An empty range begins at the line before it.
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _marked(mark: str, lines: list[bytes]) -> Iterator[str]:
    for raw in lines:
        line = raw.decode("utf-8", "replace").removesuffix("\n")
        yield mark + (line if len(line) <= _MAX_LINE else line[:_MAX_LINE] + "…")
        if not raw.endswith(b"\n"):
            yield "\\ No newline at end of file"
