"""What continues a killed run may be killed too, at any place and any number of times."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from aeon_core.effects.record_stream import RecordStream
from tests.aeon_core.kernel.crash_checks import Ending, Whole, copied, goes_on_to_the_same, read, torn, whole_lines
from tests.aeon_core.kernel.crashes import Crash, crashes, never_waits, sampled
from tests.aeon_core.kernel.scenarios import ACTED, JOURNAL

pytestmark = pytest.mark.exhaustive
Again = tuple[Whole, Path, list[Crash]]


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


TORN = b'{"v":1,"seq":99,"ts":"2026-11-20T09:30:00.123456Z","run":"r","type":"x"}'


def cut(whole: Whole, folder: Path, kind: str, rest: int = 0, **fields: Any) -> Path:
    """Leave in a folder what a run has that was killed behind a record, and `rest` bytes of another."""
    place = next(
        record["seq"]
        for record in whole.records
        if record["type"] == kind and all(record.get(name) == value for name, value in fields.items())
    )
    lines = (whole.folder / JOURNAL).read_bytes().splitlines(keepends=True)
    folder.mkdir()
    (folder / JOURNAL).write_bytes(b"".join(lines[: place + 1]) + TORN[:rest])
    begun = [r for r in whole.records[: place + 1] if r["type"] == "tool" and r["state"] == "started"]
    acted = [[r["tool_name"], r["arguments"]["number"]] for r in begun if "number" in r["arguments"]]
    (folder / ACTED).write_text("".join(json.dumps(each) + "\n" for each in acted))
    return folder


PLACES: dict[str, tuple[str, str, dict[str, Any], int]] = {
    "a torn answer of a person": ("outside", "approval", {"state": "asked", "pass": 1}, 40),
    "a launch nobody knows of": ("outside", "tool", {"state": "started", "tool_name": "launch"}, 0),
    "a thought that was lost": ("outside", "llm", {"state": "started", "purpose": "reason"}, 0),
    "the second pass": ("launches", "pass", {"pass_number": 1}, 9),
    "an end for want of cycles": ("expired", "run_finished", {}, 9),
}


@pytest.fixture(scope="module", params=PLACES)
def again(request: pytest.FixtureRequest, memory: Path) -> Again:
    """The run that nothing interrupts, what its first crash left, and what each crash of the next process left."""
    name, kind, fields, rest = PLACES[request.param]
    folder = memory / str(list(PLACES).index(request.param))
    folder.mkdir()
    (folder / "whole").mkdir()
    whole = Whole.of(name, folder / "whole")
    left = cut(whole, folder / "left", kind, rest, **fields)
    (folder / "crashes").mkdir()
    return whole, left, crashes(folder / "crashes", name, str(left))


def test_a_continued_run_is_killed_at_many_places(again: Again) -> None:
    _, left, found = again
    assert {crash.signal for crash in found} == {signal.SIGKILL}
    assert all(crash.alone for crash in found)
    last = [read(crash.journal)[-1]["type"] for crash in found]
    assert ("journal_recovered" in last) is bool(torn(left / JOURNAL))
    assert {"run_resumed", "run_finished"} <= set(last)


def test_earlier_lines_stay_and_torn_ends_are_kept(again: Again) -> None:
    _, left, found = again
    before, rest = whole_lines(left / JOURNAL), torn(left / JOURNAL)
    for crash in found:
        assert crash.journal.read_bytes().startswith(before), crash
        kept = [path.read_bytes() for path in sorted(Path(crash.folder).glob("r.torn-*"))]
        if rest and whole_lines(crash.journal) != before:
            assert rest in kept, crash
        elif rest:
            assert torn(crash.journal) == rest or rest in kept, crash


def test_a_run_killed_twice_ends_as_if_killed_once(again: Again, folder: Path) -> None:
    whole, left, found = again
    expected = Ending.of(whole, left, folder / "once")
    for number, crash in enumerate(sampled(found)):
        left_again, thoroughly = copied(crash.folder, folder), number % 4 == 0
        goes_on_to_the_same(whole, left_again, expected=expected, thoroughly=thoroughly)
