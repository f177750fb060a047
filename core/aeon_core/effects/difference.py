"""Where a record that the kernel emits differs from the one that was recorded, in words a person can act on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from aeon_core.journal.records import ENVELOPE

NOT_COMPARED = frozenset({"ts", "timestamp", "timing_information", "versions", "resumes_at"})
"""Keys whose values differ from run to run, beside those that end in `_ms`."""
SHOWN = 160
"""Characters of a value that are shown, around the place where it differs."""
_BEFORE = 60
_PLACE = ("pass", "step_id", "purpose", "call_id", "tool_name", "point", "phase", "state", "reason")
_PLACE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a replay is not what was recorded. All texts are plain, of one line each."""

    seq: int
    """Of the record."""
    where: str
    """The record's type, what it belongs to, and the field."""
    recorded: str
    """What stands there, as JSON, clipped around the place where it differs."""
    now: str
    """What the kernel does today."""

    def __str__(self) -> str:
        return f"record {self.seq} differs: {self.where} was {self.recorded}, is now {self.now}"


def record_difference(line: Mapping[str, Any], tag: str, emitted: Mapping[str, Any]) -> Difference | None:
    """Return where an emitted record's body differs from a recorded line, None where both mean the same."""
    body = {key: value for key, value in line.items() if key not in ENVELOPE}
    if line["type"] != tag:
        return Difference(line["seq"], _where(line), _whole(line["type"], body), _whole(tag, emitted))
    for path, recorded, now in _differences(body, emitted, ""):
        return Difference(line["seq"], f"{_where(line)} · {path or 'the record'}", *clipped(recorded, now))
    return None


def ended_early(line: Mapping[str, Any]) -> Difference:
    """Return the difference of a run that ends today where this line was recorded."""
    return Difference(line["seq"], _where(line), str(line["type"]), "the end of the run")


def outcome_missing(line: Mapping[str, Any]) -> Difference:
    """Return the difference of a run that waits for an outcome which is none of the lines from this one on."""
    return Difference(line["seq"], _where(line), str(line["type"]), "a missing outcome")


def _whole(tag: Any, body: Mapping[str, Any]) -> str:
    return f"{tag} {_window(json.dumps(body, ensure_ascii=False), 0)}"


def _where(line: Mapping[str, Any]) -> str:
    """Return a record's type and what it belongs to: pass, step, purpose, call."""
    places = [f"{key} {_short(line[key])}" for key in _PLACE if isinstance(line.get(key), str | int)]
    return " · ".join([str(line["type"]), *places])


def _short(value: str | int) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= _PLACE_CHARACTERS else f"{text[:_PLACE_CHARACTERS]}…"


def _differences(recorded: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each leaf that differs, as (path, recorded, now); lists of other lengths whole."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in [*recorded, *(key for key in now if key not in recorded)]:
            if key not in NOT_COMPARED and not key.endswith("_ms"):
                yield from _differences(recorded.get(key), now.get(key), f"{path}.{key}" if path else key)
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for index, (before, after) in enumerate(zip(recorded, now, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif recorded != now or isinstance(recorded, bool) is not isinstance(now, bool):
        yield path, recorded, now


def clipped(recorded: Any, now: Any) -> tuple[str, str]:
    """Return both values as JSON of one line, of long ones what stands around the first place where they differ."""
    first, second = (json.dumps(value, ensure_ascii=False) for value in (recorded, now))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    start = max(0, same - _BEFORE) if max(len(first), len(second)) > SHOWN else 0
    return _window(first, start), _window(second, start)


def _window(text: str, start: int) -> str:
    """Return SHOWN characters of a text from `start`, marked where something is left out."""
    shown = text[start : start + SHOWN]
    return f"{'…' if start else ''}{shown}{'…' if start + SHOWN < len(text) else ''}"
