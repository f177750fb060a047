"""A recorded run in which anything was altered is noticed: each value of each record, and each record as a whole."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aeon_core.effects.record_stream import RecordStream
from aeon_core.effects.replay_cursor import NOT_COMPARED, ReplayCursor
from aeon_core.errors import ReplayMismatchError, UsageError
from aeon_core.journal.records import Record
from aeon_core.runs.replay import recorded_lines, replay_lines
from tests.aeon_core.kernel.crashes import never_waits
from tests.recorded_runs import RUNS
from tests.sampling import sample

Records = list[dict[str, Any]]
Place = tuple[str | int, ...]
ENVELOPE = {"v", "seq", "ts", "run", "type"}
WHERE_THE_JOURNAL_WAS = ("result", "journal")
RUN_NAMES = ["passes", "one-pass", "gated", "rejected", "denied", "budget", "chain"]
"""Two passes; repairs and a fallback; a changed call and an abort; and every other kind of outcome."""
Compared = dict[str, list[tuple[dict[str, Any], Record]]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Records]:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RecordStream, "wait", never_waits)
        for name in RUN_NAMES:
            RUNS[name](folder / f"{name}.jsonl")
    return {name: recorded_lines(folder / f"{name}.jsonl") for name in RUN_NAMES}


def alterations(value: Any, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield each way in which a record can be altered, but for times, and nulls that are left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            if (place or key not in ENVELOPE) and key not in NOT_COMPARED and not key.endswith("_ms"):
                if item is not None:
                    yield (*place, key), "removed"
                yield from alterations(item, (*place, key))
    elif isinstance(value, list):
        yield place, "longer"
        for index, item in enumerate(value):
            yield (*place, index), "removed"
            yield from alterations(item, (*place, index))
    else:
        yield place, "changed"


def alter(record: dict[str, Any], place: Place, how: str) -> None:
    inner: Any = record
    for part in place[:-1]:
        inner = inner[part]
    if how == "removed":
        del inner[place[-1]]
    elif how == "longer":
        inner[place[-1]].append(inner[place[-1]][-1] if inner[place[-1]] else "x")
    else:
        inner[place[-1]] = _other(inner[place[-1]])


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "x" if value is None else f"{value}x"


def altered(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a record in each altered form, with what was altered."""
    kept = pickle.dumps(record)
    for place, how in alterations(record):
        changed = pickle.loads(kept)  # our own
        alter(changed, place, how)
        yield f"{record['type']} {record['seq']} {place} {how}", changed


def is_outcome(record: dict[str, Any]) -> bool:
    """Whether a record says what came from outside; the kernel makes all others from those."""
    return record["type"] == "policy" or (record.get("state") in ("finished", "decided") and record["type"] != "phase")


def is_noticed(records: Records) -> bool:
    try:
        return replay_lines(records).difference is not None
    except UsageError:
        return True


def with_records(records: Records, change: Callable[[Records], None]) -> Records:
    copied: Records = pickle.loads(pickle.dumps(records))  # our own
    change(copied)
    for seq, record in enumerate(copied):
        record["seq"] = seq
    return copied


@pytest.mark.parametrize("name", sample(RUN_NAMES, 2))
def test_any_altered_outside_value_is_noticed(recorded: dict[str, Records], name: str) -> None:
    """Also one that nothing hangs on: what a person added, text around a repaired object, an error that was mended."""
    records, missed = recorded[name], []
    assert any(map(is_outcome, records))
    for seq, record in enumerate(records):
        for what, changed in altered(record) if is_outcome(record) else ():
            if not is_noticed([*records[:seq], changed, *records[seq + 1 :]]):
                missed.append(what)
    assert missed == []


@pytest.fixture(scope="module")
def compared(recorded: dict[str, Records]) -> Compared:
    """Each recorded line that is no outcome, beside the record that the kernel emits there."""
    found: Compared = {name: [] for name in RUN_NAMES}
    expect = ReplayCursor.expect
    for name, records in recorded.items():

        def beside(self: ReplayCursor, record: Record, name: str = name) -> int:
            if (line := self.peek()) is not None and not is_outcome(line):
                found[name].append((line, record.model_copy(deep=True)))
            return expect(self, record)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ReplayCursor, "expect", beside)
            assert replay_lines(pickle.loads(pickle.dumps(records))).difference is None
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sample(RUN_NAMES, 2))
def test_any_altered_kernel_value_is_noticed(compared: Compared, name: str) -> None:
    """Every plan, score and step: what is emitted does not mean the same as the altered line."""
    missed, tried = [], 0
    for line, record in compared[name]:
        if line["type"] == "run_started":
            continue
        ReplayCursor([line]).expect(record)
        for what, changed in altered(line):
            tried += 1
            try:
                ReplayCursor([changed]).expect(record)
            except ReplayMismatchError:
                continue
            missed.append(what)
    assert [what for what in missed if str(WHERE_THE_JOURNAL_WAS) not in what] == []
    assert tried > 200


def left_out(place: int, lines: Records) -> None:
    del lines[place]


def doubled(place: int, lines: Records) -> None:
    lines.insert(place, json.loads(json.dumps(lines[place])))


def moved(place: int, lines: Records) -> None:
    lines.insert(place + 1, lines.pop(place))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sample(RUN_NAMES, 2))
def test_a_removed_duplicated_or_moved_record_is_noticed(recorded: dict[str, Records], name: str) -> None:
    records, missed = [record for record in recorded[name] if record["type"] != "text"], []
    for place in range(1, len(records) - 1):
        for change in (left_out, doubled, moved):
            if not is_noticed(with_records(records, partial(change, place))):
                missed.append(f"{records[place]['type']} {place} {change.__name__}")
    assert missed == []


def test_an_altered_text_does_not_match_its_digest(tmp_path: Path) -> None:
    RUNS["passes"](tmp_path / "r.jsonl")
    lines = (tmp_path / "r.jsonl").read_bytes().splitlines(keepends=True)
    texts = [place for place, line in enumerate(lines) if b'"type":"text"' in line]
    assert len(texts) > 5
    for place in texts:
        changed = lines[place].replace(b'"}\n', b'x"}\n')
        (tmp_path / "r.jsonl").write_bytes(b"".join([*lines[:place], changed, *lines[place + 1 :]]))
        with pytest.raises(UsageError, match=f"line {place + 1}: its text does not match its sha256"):
            recorded_lines(tmp_path / "r.jsonl")
