"""The recorded part of a run: what the kernel emits is compared with it, and outcomes come from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import Any

from aeon_core.errors import ReplayMismatchError
from aeon_core.journal.records import EMITTED, Record
from aeon_core.journal.values import ENVELOPE, brief
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.redaction import redact_json

ABORT_RECORDS = ("ttl", "cycle", "run_finished")
"""Types of the last records of an abort within a cycle."""
NOT_COMPARED = frozenset({"ts", "timestamp", "timing_information", "versions", "resumes_at"})
"""Keys whose values differ from run to run, besides those that end in `_ms`."""
SHOWN = 160
"""Characters of a value to show around the difference."""
_BEFORE = 60
_PLACE = ("pass", "step_id", "purpose", "call_id", "tool_name", "point", "phase", "state", "reason")
_PLACE_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where a replay differs from the recording. All texts are plain, one line each."""

    seq: int
    """Of the record."""
    where: str
    """The record's type, what it belongs to, and the field."""
    recorded: str
    """The value there as JSON, clipped around the difference."""
    now: str
    """What the kernel does now."""
    values: tuple[Any, Any] | None = field(default=None, compare=False, repr=False)
    """Both in full, if each has a value."""

    def __str__(self) -> str:
        return f"record {self.seq} differs: {self.where} was {self.recorded}, is now {self.now}"


def record_difference(line: Mapping[str, Any], tag: str, emitted: Mapping[str, Any]) -> Difference | None:
    """Return where an emitted record's body differs from a recorded line, None if both mean the same."""
    body = {key: value for key, value in line.items() if key not in ENVELOPE}
    if line["type"] != tag:
        return Difference(line["seq"], _where(line), _whole(line["type"], body), _whole(tag, emitted))
    # Nearly every body is equal as text, which is quicker to see than value by value.
    for path, recorded, now in _differences(body, emitted, "") if repr(body) != repr(emitted) else ():
        where = f"{_where(line)} · {path or 'the record'}"
        return Difference(line["seq"], where, *clip_around_difference(recorded, now), (recorded, now))
    return None


def _known_part(line: Mapping[str, Any], kind: type[Record], emitted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a line without the fields that only another version knows, which are ignored (contract: The journal).

    An entity is always emitted with all its fields.
    """
    if line["type"] != kind.tag:
        return line
    known = _fields_of(kind)
    return {key: value for key, value in line.items() if key in known or key in emitted}


@cache
def _fields_of(kind: type[Record]) -> frozenset[str]:
    """Return the declared keys of a type's lines."""
    return frozenset({*ENVELOPE, *(field.serialization_alias or name for name, field in kind.model_fields.items())})


def early_end(line: Mapping[str, Any]) -> Difference:
    """Return the difference of a run that now ends where this line was recorded."""
    return Difference(line["seq"], _where(line), str(line["type"]), "the end of the run")


def missing_outcome(line: Mapping[str, Any]) -> Difference:
    """Return the difference of a run that waits for an outcome that no line from this one on has."""
    return Difference(line["seq"], _where(line), str(line["type"]), "a missing outcome")


def _whole(tag: Any, body: Mapping[str, Any]) -> str:
    return f"{tag} {_window(json.dumps(body, ensure_ascii=False), 0)}"


def _where(line: Mapping[str, Any]) -> str:
    """Return a record's type and what it belongs to: pass, step, purpose, call."""
    places = [f"{key} {brief(line[key], _PLACE_CHARACTERS)}" for key in _PLACE if isinstance(line.get(key), str | int)]
    return " · ".join([str(line["type"]), *places])


def _is_in_earlier_words(error: dict[str, Any]) -> bool:
    """Return whether it is the error of a failed plan exactly as earlier versions worded it, whatever was replied."""
    attempts, problems = error.get("attempts"), error.get("problems")
    if not (isinstance(problems, list) and problems):
        return False
    tried = f"{attempts} attempt{'s' if attempts != 1 else ''}"
    return error.get("message") == f"the plan could not be repaired in {tried}: {problems[0]}"


def _differences(recorded: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield each leaf that differs, as (path, recorded, now); lists of other lengths whole."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        left_out = NOT_COMPARED | {"message"} if _is_in_earlier_words(recorded) else NOT_COMPARED
        for key in [*recorded, *(key for key in now if key not in recorded)]:
            if key not in left_out and not key.endswith("_ms"):
                yield from _differences(recorded.get(key), now.get(key), f"{path}.{key}" if path else key)
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for index, (before, after) in enumerate(zip(recorded, now, strict=True)):
            yield from _differences(before, after, f"{path}[{index}]")
    elif recorded != now or isinstance(recorded, bool) is not isinstance(now, bool):
        yield path, recorded, now


def clip_around_difference(recorded: Any, now: Any) -> tuple[str, str]:
    """Return both values as JSON of one line, long ones clipped around the first difference."""
    first, second = (json.dumps(value, ensure_ascii=False) for value in (recorded, now))
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    start = max(0, same - _BEFORE) if max(len(first), len(second)) > SHOWN else 0
    return _window(first, start), _window(second, start)


def _window(text: str, start: int) -> str:
    """Return SHOWN characters of a text from `start`, with `…` where something is left out."""
    shown = text[start : start + SHOWN]
    return f"{'…' if start else ''}{shown}{'…' if start + SHOWN < len(text) else ''}"


class RecordingEnded(ReplayMismatchError):
    """A replay has reached the end of the recording, and the run had not ended there."""


class ReplayCursor:
    """Walks over recorded lines (parsed, with long texts resolved) in step with what the kernel emits.

    Left out are lines revoked by a run_resumed, calls repeated to recover a secret, and labels added later: the kernel
    did not request these.
    """

    def __init__(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self._lines, self._changes, self._repeats = _sort_lines(lines)
        self._next = 0
        self.difference: Difference | None = None
        """Where the kernel differed; None as long as it did the same."""
        self.trusted: bool = False
        """Whether the user trusts what other people have decided in these lines."""
        self.redact: Callable[[bytes], bytes] = redact_json
        """Replaces the secrets in what the kernel emits from prompts and tools with their tokens."""

    @property
    def changes(self) -> list[Mapping[str, Any]]:
        """Return the run_resumed lines up to here, in order."""
        return [line for place, line in self._changes if place <= self._next]

    @property
    def repeats(self) -> list[Mapping[str, Any]]:
        """Return the outcomes, up to here, of calls repeated to recover a secret, in order."""
        return [line for place, line in self._repeats if place <= self._next]

    @property
    def first(self) -> dict[str, Any]:
        """Return the run's first line, with the envelope."""
        return dict(self._lines[0])

    @property
    def journal(self) -> str | None:
        """Return the journal's path in the recorded result."""
        last = self._lines[-1]
        return last["result"].get("journal") if last["type"] == "run_finished" else None

    def aborted_here(self, *, in_a_cycle: bool) -> Mapping[str, Any] | None:
        """Return the error of the abort that ended the recorded run at this place, else None."""
        ending = ABORT_RECORDS if in_a_cycle else ("run_finished",)
        ahead = self._lines[self._next : self._next + 4]
        if len(ahead) > len(ending) or not ahead or any(line["type"] not in ending for line in ahead):
            return None
        result = ahead[-1].get("result", {})
        return result["error"] if result.get("status") == "aborted" else None

    @property
    def last_pass(self) -> Mapping[str, Any] | None:
        """The last `pass` line that holds the state of the run after it; None if there is none."""
        return next((line for line in reversed(self._lines) if line["type"] == "pass" and line.get("standing")), None)

    def skip_to(self, line: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Skip to a line without comparing; return the skipped lines."""
        self._next = next(place for place, each in enumerate(self._lines) if each is line) + 1
        return self._lines[: self._next]

    @property
    def passed(self) -> int:
        """The number of consumed lines."""
        return self._next

    @property
    def seq(self) -> int:
        """The seq of the next line. Raises IndexError if there is none."""
        return int(self._lines[self._next]["seq"])

    @property
    def exhausted(self) -> bool:
        """Whether every recorded line has been consumed."""
        return self._next >= len(self._lines)

    @property
    def stamp(self) -> str:
        """Return the time of the last consumed line, or of the first line if none has been."""
        return str(self._lines[max(0, self._next - 1)]["ts"])

    def peek(self) -> dict[str, Any] | None:
        """Return the next line, or None."""
        return None if self.exhausted else dict(self._lines[self._next])

    def expect(self, record: Record) -> int:
        """Consume the next line, which must mean the same as `record`; return its seq.

        Raises ReplayMismatchError, which shows the difference.
        """
        line = self._lines[self._next]
        emitted = self.emitted(record)
        known = _known_part(line, type(record), emitted)
        self.difference = record_difference(known, record.tag, emitted)
        if self.difference is not None:
            # What now counts as a secret may be recorded as it is.
            was, now = (json.loads(self.redact(json.dumps(each).encode())) for each in (known, emitted))
            self.difference = record_difference(was, record.tag, now)
        if self.difference is not None:
            raise ReplayMismatchError(str(self.difference), seq=line["seq"])
        self._next += 1
        return int(line["seq"])

    def emitted(self, record: Record) -> Any:
        """Return a record's body as it would be recorded."""
        return json.loads(self.redact(record.body()) if record.raw else record.body())

    def outcome(self, tag: str, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the next line of that type that holds all of `key`, or None if none was recorded."""
        for line in self._lines[self._next :]:
            if line["type"] == tag and all(line.get(name) == value for name, value in key.items()):
                return dict(line)
        return None


class RecordedModel(LLMAdapter):
    """The model of a replay: it has a name and only recorded replies."""

    def __init__(self, recorded: ReplayCursor) -> None:
        self.model: str = str(recorded.first["model"])
        self.simulated: bool = bool(recorded.first.get("simulated"))

    def complete(self, request: LLMRequest) -> LLMResponse:
        raise RecordingEnded(f"the {request.purpose!r} call that the kernel makes is not in the recording")


_Placed = list[tuple[int, Mapping[str, Any]]]


def _sort_lines(lines: Iterable[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], _Placed, _Placed]:
    """Return the lines that the kernel emits, and every other relevant line with its place among them.

    These are the changes made by a resume, and the outcomes of repeated calls.
    """
    held: list[Mapping[str, Any]] = []
    changes: _Placed = []
    repeats: _Placed = []
    for line in lines:
        if line["type"] == "run_resumed":
            while held and held[-1]["seq"] >= line["continues_at"]:
                held.pop()
            repeats = [(place, each) for place, each in repeats if each["seq"] < line["continues_at"]]
            changes.append((len(held), line))
        elif line.get("repeats") is not None:
            if line["state"] == "finished":
                repeats.append((len(held), line))
        elif line["type"] in EMITTED and not (line["type"] == "label" and line["source"] == "person"):
            held.append(line)
    return held, _clamped(held, changes), _clamped(held, repeats)


def _clamped(held: list[Mapping[str, Any]], placed: _Placed) -> _Placed:
    return [(min(place, len(held)), line) for place, line in placed]
