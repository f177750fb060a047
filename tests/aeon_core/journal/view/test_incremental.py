from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields, replace

from aeon_core.journal.index import OffsetIndex
from aeon_core.journal.reader import read_records
from aeon_core.journal.view import incremental
from aeon_core.journal.view.incremental import GONE, LEFT_OUT, IncrementalFold, filled, is_lean
from aeon_core.journal.view.model import RunView, cut_replies
from aeon_core.journal.view.reducer import fold
from tests.aeon_core.journal.build import line, started, ttl
from tests.aeon_tui.passes import converged_run, many_passes
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, steps

LONG = "Grüße. " * 200


def indexed(path: Path) -> OffsetIndex:
    index = OffsetIndex(path)
    while index.extend():
        pass
    return index


def folded(path: Path, seconds: float = 1.0) -> RunView:
    with indexed(path) as index:
        whole = IncrementalFold(index)
        while whole.step(seconds):
            pass
        assert whole.read_to == index.indexed
        return whole.view


def written(path: Path, records: list[dict[str, Any]], *, compact: bool = True) -> Path:
    separators = (",", ":") if compact else None
    path.write_text("".join(json.dumps(record, separators=separators) + "\n" for record in records))
    return path


def plainly(path: Path) -> RunView:
    damage: list[str] = []
    view = fold(read_records(path, damage=damage))
    for problem in damage:
        view.add_problem(problem)
    return view


def filled_view(view: RunView, path: Path) -> RunView:
    """Return a view with all that was left in the journal, but for memory and the outputs in the result."""
    with indexed(path) as index:
        again = IncrementalFold(index)
        while again.step():
            pass
        record_of = index.record
        return replace(
            view,
            steps={step_id: filled(step, record_of) for step_id, step in view.steps.items()},
            calls={call_id: [filled(call, record_of) for call in attempts] for call_id, attempts in view.calls.items()},
            loose_calls=[filled(call, record_of) for call in view.loose_calls],
            repairs=[filled(repair, record_of) for repair in view.repairs],
        )


@pytest.mark.parametrize("compact", [True, False], ids=["compact", "spaced"])
@pytest.mark.parametrize("run", [finished_run, failed_run, converged_run, many_passes], ids=lambda run: run.__name__)
def test_a_long_fold_gives_the_view_of_an_ordinary_one(run: Any, compact: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "r1.jsonl", run().records, compact=compact)
    lean, whole = folded(path), plainly(path)
    again = filled_view(lean, path)
    for field in fields(RunView):
        if field.name not in ("memory", "tool_calls", "result"):
            assert getattr(again, field.name) == getattr(whole, field.name), field.name
    assert lean.tool_calls.keys() == whole.tool_calls.keys()
    assert lean.memory.keys() == whole.memory.keys()


def test_no_request_reply_argument_or_output_is_held(tmp_path: Path) -> None:
    view = folded(written(tmp_path / "r1.jsonl", finished_run().records))
    calls = [call for attempts in view.calls.values() for call in attempts]
    assert {id(call.request) for call in calls} == {id(LEFT_OUT)}
    assert all(call.response is LEFT_OUT for call in calls if call.finished and call.error is None)
    assert all(call.arguments is LEFT_OUT and call.result is LEFT_OUT for call in view.tool_calls.values())
    assert all(step.output in (LEFT_OUT, None) for step in view.steps.values())
    assert all(repair.original_output is LEFT_OUT for repair in view.repairs)
    assert len(view.tool_calls)
    assert len(view.repairs)
    assert all(is_lean([step]) for step in view.steps.values() if step.calls or step.tool_calls)


def test_replies_that_were_cut_off_are_known_without_being_held(tmp_path: Path) -> None:
    records = finished_run().records
    for record in records:
        if record["type"] == "llm" and record["purpose"] in ("answer", "reason") and "response" in record:
            record["response"]["stop_reason"] = "max_tokens"
    path = written(tmp_path / "r1.jsonl", records)
    reasoned = next(record["step_id"] for record in records if record.get("purpose") == "reason")
    assert cut_replies(folded(path)) == cut_replies(plainly(path)) == ["the answer", reasoned]


def test_unreadable_values_are_reported_in_place(tmp_path: Path) -> None:
    view = folded(written(tmp_path / "r1.jsonl", finished_run().records))
    step = filled(next(step for step in view.steps.values() if step.output is not None), lambda seq: None)
    assert step.output == GONE
    assert not is_lean([step])


def test_it_continues_in_chunks_of_any_size(tmp_path: Path) -> None:
    records = finished_run().records
    path = written(tmp_path / "r1.jsonl", records)
    with indexed(path) as index:
        whole = IncrementalFold(index)
        seen = [whole.view.last_seq]
        while whole.step(0):
            seen.append(whole.view.last_seq)
        assert seen == list(range(-1, len(records) - 1))
        assert whole.step() is False
    assert whole.view.status == "completed"


def test_long_texts_are_shown_in_the_log_and_in_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incremental, "_TEXTS", 100)
    run = Recording()
    run.plan(*steps())
    sha256 = "ab" * 32
    run.add("text", sha256=sha256, text=LONG)
    run.step("s1", "complete", mode="tool", output={"text": {"$text": sha256}})
    run.finish("completed", answer={"$text": sha256})
    view = folded(written(tmp_path / "r1.jsonl", run.records))
    assert view.log[-2].text.startswith("s1 complete · tool calculator → Grüße. Grüße.")
    assert view.result is not None
    assert (view.result.answer, view.damage) == (LONG, [])


def test_damage_and_gaps_are_reported_as_a_reader_reports_them(tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    sha256 = "cd" * 32
    missing = b'{"v":1,"seq":2,"ts":"x","run":"r","type":"memory","key":"k","value":{"$text":"%s"}}\n' % sha256.encode()
    path.write_bytes(line(started(), 0) + b"broken\n" + missing + line(ttl(3), 7) + line(ttl(4), 8)[:-9])
    view = folded(path)
    assert sorted(view.damage) == sorted(plainly(path).damage)
    assert len(view.damage) == 3
    assert [each.type for each in view.log].count("damage") == 3


@pytest.mark.parametrize("kind", ["text", "cycle", "pass"])
@pytest.mark.parametrize("place", ["ts", "run"])
def test_invalid_utf8_in_an_envelope_is_damage(tmp_path: Path, kind: str, place: str) -> None:
    told = {"v": 1, "seq": 1, "ts": "2026-11-20", "run": "r1", "type": kind, "pass_number": 1, place: "\xbd"}
    bad = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode("latin-1")
    path = tmp_path / "r1.jsonl"
    path.write_bytes(line(started(), 0) + bad + b"\n" + line(ttl(1), 2))
    view = folded(path)
    assert (view.last_seq, len(view.damage)) == (2, 1)
    assert sorted(view.damage) == sorted(plainly(path).damage)


def test_lines_superseded_by_a_resume_are_left_out(tmp_path: Path) -> None:
    run = Recording()
    run.plan(*steps())
    ended = len(run.records)
    run.finish("aborted")
    run.add("run_resumed", continues_at=ended, versions={}, config={})
    run.step("s1", "running")
    path = written(tmp_path / "r1.jsonl", run.records)
    view = folded(path)
    assert [each.type for each in view.log] == [each.type for each in plainly(path).log]
    assert "run_finished" not in [each.type for each in view.log]
    assert view.current_step_id == "s1"
