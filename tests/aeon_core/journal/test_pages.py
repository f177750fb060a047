from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import index as index_module
from aeon_core.journal.index import JournalLine, OffsetIndex, Pages, TextPlaces
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, PhaseRecord, TextRecord
from aeon_core.journal.tail import tail_state
from aeon_core.journal.view.reducer import fold
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import (
    cycle,
    finished,
    line,
    lines,
    plan,
    plan_record,
    started,
    step,
    text,
    ttl,
    whole_run,
    write,
)

LONG = "grüße " * 100


def indexed(path: Path) -> tuple[OffsetIndex, TextPlaces]:
    index = OffsetIndex(path)
    places = TextPlaces(index)
    while index.extend(0) or places.extend(0):
        pass
    return index, places


def sha(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def with_texts(path: Path, count: int) -> Path:
    """Write a journal with the writer itself: every record holds a text of its own and one that all share."""
    writer = JournalWriter(path, "r1")
    writer.append(started())
    for number in range(count):
        writer.append(MemoryRecord(key=f"s{number}", value={"own": f"{number} {LONG}", "shared": [LONG]}))
    writer.close()
    return path


def test_every_record_is_what_the_reader_yields(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 200)
    index, places = indexed(path)
    with index:
        assert places.complete
        entries = [Pages(index, places).at(number) for number in range(len(index))]
        assert [entry.record for entry in entries] == list(read_records(path))
        assert [entry.number for entry in entries] == list(range(len(entries)))
        assert not any(entry.pending or entry.problem for entry in entries)
        assert Pages(index, places).by_seq(5) == entries[5]
        assert Pages(index, places).by_seq(5_000) is None
        assert index.memory / len(index) + places.memory / len(index) <= 16


def test_the_last_records_are_there_before_there_is_an_index(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 30)
    with OffsetIndex(path) as index:
        entries = Pages(index).last(4)
        assert [entry.record for entry in entries] == list(read_records(path))[-4:]
        assert [entry.number for entry in entries] == [None] * 4
        earlier = Pages(index).last(3, before=entries[0].offset)
        assert [entry.record for entry in earlier] == list(read_records(path))[-7:-4]


@pytest.mark.parametrize("spaced", [False, True], ids=["compact", "spaced"])
def test_a_text_far_away_is_pending_until_its_place_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spaced: bool
) -> None:
    monkeypatch.setattr(index_module, "NEARBY", 3_000)
    monkeypatch.setattr(index_module, "BEGINNING", 10)
    path = with_texts(tmp_path / "r1.jsonl", 5)
    if spaced:
        path.write_text("".join(json.dumps(json.loads(each)) + "\n" for each in path.read_text().splitlines()))
    with OffsetIndex(path) as index:
        before = Pages(index).last(1)[0]
        assert before.pending == {sha(LONG)}
        assert before.record is not None
        assert before.record["value"]["own"] == f"4 {LONG}"
        assert before.record["value"]["shared"] == [{"$text": sha(LONG)}]
        places = TextPlaces(index)
        while index.extend(0) or places.extend(0):
            pass
        after = Pages(index, places).last(1)[0]
        assert after.pending == frozenset()
        assert after.record is not None
        assert after.record["value"]["shared"] == [LONG]


def test_what_every_request_repeats_is_found_at_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "NEARBY", 1_000)
    with OffsetIndex(with_texts(tmp_path / "r1.jsonl", 20)) as index:
        assert Pages(index).last(1)[0].pending == frozenset()


@pytest.mark.parametrize("chunk", range(60, 200, 7))
def test_texts_are_found_wherever_a_chunk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr("aeon_core.journal.index.CHUNK", chunk)
    monkeypatch.setattr(index_module, "_BLOCK", chunk + 40)
    path = with_texts(tmp_path / "r1.jsonl", 6)
    index, places = indexed(path)
    with index:
        holders = [number for number, record in enumerate(read_records(path)) if record["type"] == "text"]
        found = [next(places.lines_of(json.loads(index.line(number))["sha256"], 99)) for number in holders]
        assert found == holders
        assert [entry.record for entry in Pages(index).last(30)] == list(read_records(path))


def test_the_nearest_text_before_a_record_counts_and_none_after_it(tmp_path: Path) -> None:
    value = {"$text": sha("t")}
    stray = MemoryRecord(key="a", value={"type": "text", "sha256": sha("t"), "text": "stray"})
    path = write(
        tmp_path, started(), MemoryRecord(key="a", value=value), text("t")[0], stray, MemoryRecord(key="b", value=value)
    )
    index, places = indexed(path)
    with index:
        early, late = Pages(index, places).at(1), Pages(index, places).at(4)
        assert (early.record or {})["value"] == value
        assert early.pending == {sha("t")}
        assert (late.record or {})["value"] == "t"


def test_texts_whose_sha256_begin_alike_are_distinguished(tmp_path: Path) -> None:
    digests = ["aaaaaaaa" + "1" * 56, "aaaaaaaa" + "2" * 56, "aabbbbbb" + "3" * 56]
    texts = [TextRecord(sha256=each, text=f"text {each[-1]}") for each in digests]
    records = [MemoryRecord(key="k", value={"$text": each}) for each in digests]
    index, places = indexed(write(tmp_path, started(), *texts, *records))
    with index:
        assert list(places.lines_of(digests[0], 99)) == [2, 1]
        assert list(places.lines_of("aaaabbbb" + "0" * 56, 99)) == []
        assert list(places.lines_of("no digest", 99)) == []
        for pages in (Pages(index, places), Pages(index)):
            assert [(entry.record or {})["value"] for entry in pages.last(3)] == ["text 1", "text 2", "text 3"]


def test_what_only_names_a_sha256_is_no_text(tmp_path: Path) -> None:
    path = write(tmp_path, started(), text("t")[0], MemoryRecord(key="k", value={"$text": sha("t")}))
    stray = line(MemoryRecord(key="k", value=0), 2).replace(
        b'"key"', b'"sha256":"%s","text":"u","key"' % sha("t").encode()
    )
    head, kept, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(head + kept + stray + last.replace(b'"seq":2', b'"seq":3'))
    with OffsetIndex(path) as index:
        assert (Pages(index).last(1)[0].record or {})["value"] == "t"


def test_a_file_that_was_replaced_has_other_texts(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 3)
    index, places = indexed(path)
    with index:
        path.unlink()
        write(tmp_path, started(), text("new")[0], MemoryRecord(key="b", value={"$text": sha("new")}), run="r1")
        index.extend()
        assert list(places.lines_of(sha(LONG), 99)) == []
        assert not places.complete
        places.extend()
        assert (Pages(index, places).at(2).record or {})["value"] == "new"


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (b"\n", "broken (EOF while parsing a value)"),
        (b"\x00\x00\n", "broken (expected value)"),
        (b'{"v":1,"seq":1,"type":"memory","value":"\xff"}\n', "broken"),
        (b"[1]\n", "not a record (no type or no seq)"),
        (b'{"v":1,"seq":18446744073709551616,"type":"ttl"}\n', "not a record (no type or no seq)"),
    ],
)
def test_a_damaged_line_is_an_entry_that_says_why(tmp_path: Path, bad: bytes, problem: str) -> None:
    path = tmp_path / "r1.jsonl"
    path.write_bytes(line(started(), 0) + bad + line(ttl(1), 2).replace(b"\n", b"\r\n"))
    index, places = indexed(path)
    with index:
        entry = Pages(index, places).at(1)
        assert (entry.record, entry.size, entry.number) == (None, len(bad), 1)
        assert entry.problem is not None
        assert entry.problem.startswith(problem)
        assert (Pages(index, places).by_seq(2) or entry).record == json.loads(line(ttl(1), 2))


def test_a_line_is_found_by_where_it_begins_without_an_index(tmp_path: Path) -> None:
    path = with_texts(tmp_path / "r1.jsonl", 5)
    with OffsetIndex(path) as index:
        entries = Pages(index).last(6)
        assert [Pages(index).at_offset(entry.offset) for entry in entries] == entries


def test_a_line_beyond_all_measure_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "MAX_LINE", 1_000)
    path = write(tmp_path, started(), MemoryRecord(key="a", value=["x"] * 1_000))
    with OffsetIndex(path) as index:
        (entry,) = Pages(index).last(1)
        assert entry == JournalLine(entry.offset, entry.size, None, None, "longer than 1000 bytes")


def state_of(records: list[Any]) -> dict[str, Any]:
    """Return what of a view is known from the end of a journal."""
    view = fold(records)
    return {
        "task": view.task,
        "goal": view.goal,
        "status": view.status,
        "statuses": {step_id: each.status for step_id, each in view.steps.items()},
        "ttl": (view.ttl_limit, view.ttl_spent, view.ttl_remaining),
        "usage": view.usage,
        "last_seq": view.last_seq,
        "passes": view.passes,
    }


def long_run(path: Path, steps: int, cause_again: bool) -> Path:
    """Write a run whose plan is far from its end."""
    nodes: list[dict[str, Any]] = [{"step_id": f"s{n}", "description": f"step {n}"} for n in range(steps)]
    records: list[Any] = [started(), plan_record(*nodes)]
    for number, node in enumerate(nodes):
        node["status"] = "complete"
        records += [step(node["step_id"], "running"), step(node["step_id"], "complete", output={"text": "done"})]
        records += [ttl(number + 1), cycle(number + 1, plan(*nodes).model_dump(mode="json"))]
        if cause_again and number == steps // 2:
            records.append(plan_record(*nodes, cause="refined"))
        records += [PhaseRecord(pass_number=1, phase="execute", state="started")] * 3
    path.write_bytes(b"".join(lines(*records)))
    return path


def test_a_short_journal_is_shown_whole(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run())
    found = tail_state(path)
    assert found.records == list(read_records(path))
    assert (found.whole_from, found.unknown, found.problems) == (0, (), ())
    assert found.size == path.stat().st_size


@pytest.mark.parametrize("cause_again", [True, False], ids=["plan", "cycle"])
@pytest.mark.parametrize("within", [80_000, 10**7], ids=["near", "far"])
def test_the_end_of_a_long_run_has_its_state(tmp_path: Path, within: int, cause_again: bool) -> None:
    path = long_run(tmp_path / "r1.jsonl", 40, cause_again)
    found = tail_state(path, recent=20, within=within)
    everything = list(read_records(path))
    assert state_of(found.records) == state_of(everything)
    assert [record for record in found.records if record in everything][-20:] == everything[-20:]
    assert len([record for record in found.records if record not in everything]) == (within == 80_000)
    assert found.whole_from == everything[-20]["seq"]
    first = [record["status"] for record in found.records if record.get("step_id") == "s0"]
    assert first == ([] if within == 80_000 else ["complete"])
    assert f"the number of cycles before seq {found.whole_from}" in found.unknown
    assert any("scores" in each for each in found.unknown) == (within == 80_000)


def test_what_is_not_near_the_end_is_reported_as_unknown(tmp_path: Path) -> None:
    records = [started(), plan_record({"step_id": "s1", "description": "one"}), ttl(1)]
    path = write(tmp_path, *records, *[PhaseRecord(pass_number=1, phase="execute", state="started")] * 100)
    found = tail_state(path, recent=10, within=2_000)
    assert fold(found.records).task == "calculate the sum of 5 and 10"
    assert fold(found.records).steps == {}
    assert [each.partition(",")[0] for each in found.unknown if "if recorded" in each][:2] == [
        "the plan",
        "the TTL and the totals",
    ]


def test_a_finished_run_has_its_plan_from_the_result(tmp_path: Path) -> None:
    done = plan({"step_id": "s1", "description": "one", "status": "complete"})
    records = [PhaseRecord(pass_number=1, phase="execute", state="started")] * 100
    path = write(tmp_path, started(), *records, finished(plan=done))
    found = fold(tail_state(path, recent=10, within=2_000).records)
    assert (found.status, found.goal, found.steps["s1"].status) == ("completed", "the sum of 5 and 10", "complete")


def test_what_a_resume_took_back_is_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path, started(), plan_record({"step_id": "s1", "description": "one"}), finished(), ttl(9))
    resumed = {"type": "run_resumed", "continues_at": 2, "v": 1, "seq": 4, "ts": "", "run": "r"}
    compact = json.dumps({key: resumed[key] for key in ("v", "seq", "ts", "run", "type", "continues_at")})
    with path.open("ab") as file:
        file.write(compact.encode() + b"\n" + line(step("s1", "running"), 5))
    found = tail_state(path)
    assert [record["type"] for record in found.records] == ["run_started", "plan", "run_resumed", "step"]
    assert (fold(found.records).status, fold(found.records).ttl_spent) == ("running", 0)


def test_damage_near_the_end_is_reported_and_passed_over(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run())
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"broken\n" + line(ttl(9), 99) + b'{"torn')
    found = tail_state(path)
    assert found.problems == (f"byte {size}: broken (expected value)",)
    assert fold(found.records).ttl_spent == 9
    assert found.size == path.stat().st_size - len(b'{"torn')


def test_what_begins_as_no_journal_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    with pytest.raises(UsageError, match=r"does not start like a journal; expected a run's <run_id>\.jsonl file"):
        tail_state(path)
