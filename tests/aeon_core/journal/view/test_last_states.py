"""The last states of a growing journal, beside a fold of all of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord, PhaseRecord
from aeon_core.journal.view import last_states
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from tests.aeon_core.journal import build
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, steps
from tests.sampling import sample

TEXT = "Grüße. " * 200
SHA = hashlib.sha256(TEXT.encode()).hexdigest()


def as_lines(records: list[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]


def state(view: RunView) -> dict[str, Any]:
    """Return the run's state in a view, whatever it leaves out."""
    return {
        "last_seq": view.last_seq,
        "status": view.status,
        "result": view.result,
        "steps": [(step.step_id, step.status, step.depth) for step in view.steps.values()],
        "ttl": (view.ttl_spent, view.ttl_remaining, view.ttl_reason, view.cost_usd, view.usage),
        "pass": (view.current_pass, view.passes),
        "running": view.current_step_id,
        "asked": view.asked,
        "scores": [(each.pass_number, each.converged) for each in view.assessments],
        "issues": view.issues,
        "profile": view.profile and view.profile.version,
        "phases": [(each.phase, each.finished) for each in view.phases],
    }


def long_run(rounds: int = 30) -> list[dict[str, Any]]:
    recording = Recording()
    recording.plan(*steps())
    for _ in range(rounds):
        for step_id in ("s1", "s2", "s3"):
            recording.step(step_id, "running")
            recording.ask("reason", step_id)
            recording.answer("reason", "done", step_id)
            recording.step(step_id, "complete", output={"text": "x"})
    return recording.records


@pytest.mark.parametrize(
    "records", sample([converged_run().records, finished_run().records, failed_run().records, long_run()], 1)
)
def test_the_last_states_equal_a_full_fold_after_any_line(tmp_path: Path, records: list[dict[str, Any]]) -> None:
    path = tmp_path / "r.jsonl"
    lines = as_lines(records)
    path.write_bytes(lines[0])
    states = LastStates(path)
    assert states.read_on() == 1
    for cut in range(1, len(lines)):
        with path.open("ab") as file:
            file.write(lines[cut])
        assert states.read_on() == 1
        assert state(states.view()) == state(fold(records[: cut + 1]))
    states.close()


@given(st.lists(st.integers(1, 400), max_size=8))
@settings(max_examples=25, deadline=None)
def test_reading_can_be_interrupted_anywhere(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("cut") / "r.jsonl"
    data = b"".join(as_lines(long_run(4)))
    path.write_bytes(b"")
    states = LastStates(path)
    ends = sorted({*(cut * 7 % len(data) for cut in cuts), len(data)})
    begun = read = 0
    for end in ends:
        with path.open("ab") as file:
            file.write(data[begun:end])
        begun = end
        read += states.read_on()
    states.close()
    assert read == data.count(b"\n")
    assert state(states.view()) == state(fold(long_run(4)))


def test_only_the_last_lines_are_gapless(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = long_run()
    path.write_bytes(b"".join(as_lines(records)))
    states = LastStates(path)
    states.read_on()
    view = states.view()
    states.close()
    assert view.whole_from == len(records) - last_states.RECENT > 0
    assert [line.seq for line in view.log if line.seq >= view.whole_from] == list(range(view.whole_from, len(records)))
    assert sum(len(calls) for calls in view.calls.values()) < sum(len(calls) for calls in fold(records).calls.values())


def test_kept_long_texts_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording()
    recording.add("text", sha256=SHA, text=TEXT)
    recording.plan(*steps())
    recording.step("s1", "complete", output={"text": {"$text": SHA}})
    path.write_bytes(b"".join(as_lines(recording.records)))
    states = LastStates(path)
    states.read_on()
    assert states.view().steps["s1"].output == {"text": TEXT}
    states.close()


def test_texts_beyond_the_bound_are_dropped_oldest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_states, "TEXTS", 2_500)
    path = tmp_path / "r.jsonl"
    recording = Recording()
    for number in range(50):
        recording.add("text", sha256=f"{number:064x}", text="x" * 1_000)
    path.write_bytes(b"".join(as_lines(recording.records)))
    states = LastStates(path)
    states.read_on()
    assert list(states._texts) == [f"{48:064x}".encode(), f"{49:064x}".encode()]
    states.close()


def test_superseded_records_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recording = Recording()
    recording.plan(*steps())
    recording.step("s1", "complete")
    kept = list(recording.records)
    recording.step("s1", "failed")
    recording.finish("aborted")
    path.write_bytes(b"".join(as_lines(recording.records)))
    states = LastStates(path)
    states.read_on()
    assert states.view().status == "aborted"
    recording.add("run_resumed", options={}, continues_at=len(kept))
    recording.step("s2", "running")
    path.write_bytes(b"".join(as_lines(recording.records)))
    states.read_on()
    view = states.view()
    states.close()
    assert state(view) == state(fold([*kept, *recording.records[-2:]]))
    assert (view.status, view.steps["s1"].status) == ("running", "complete")


def test_a_file_that_was_cut_short_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = long_run()
    path.write_bytes(b"".join(as_lines(records)))
    states = LastStates(path)
    states.read_on()
    path.write_bytes(b"".join(as_lines(records[:20])))
    assert states.read_on() == 20
    assert state(states.view()) == state(fold(records[:20]))
    states.close()


def test_only_the_end_of_a_long_journal_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = long_run()
    path.write_bytes(b"".join(as_lines(records[:-5])))
    states = LastStates(path, within=60_000)
    assert 200 < states.read_on() < len(records) - 50
    view, whole = states.view(), fold(records[:-5])
    assert {step_id: step.status for step_id, step in view.steps.items()}.items() <= {
        step_id: step.status for step_id, step in whole.steps.items()
    }.items()
    assert (view.task, view.last_seq, view.whole_from) == (whole.task, whole.last_seq, len(records) - 5 - 200)
    path.write_bytes(b"".join(as_lines(records)))
    assert states.read_on() == 5
    assert states.view().last_seq == fold(records).last_seq
    states.close()


def test_a_missing_journal_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.jsonl"):
        LastStates(tmp_path / "gone.jsonl")


def end_of(path: Path, **bounds: int) -> LastStates:
    with LastStates(path, **bounds) as states:
        states.read_on()
        return states


def far_from_its_plan(path: Path, count: int, *, again: bool) -> Path:
    """Write a run whose plan is far from its end."""
    nodes: list[dict[str, Any]] = [{"step_id": f"s{n}", "description": f"step {n}"} for n in range(count)]
    records: list[Any] = [build.started(), build.plan_record(*nodes)]
    for number, node in enumerate(nodes):
        node["status"] = "complete"
        step_id = node["step_id"]
        records += [build.step(step_id, "running"), build.step(step_id, "complete", output={"text": "done"})]
        records += [build.ttl(number + 1), build.cycle(number + 1, build.plan(*nodes).model_dump(mode="json"))]
        if again and number == count // 2:
            records.append(build.plan_record(*nodes, cause="refined"))
        records += [PhaseRecord(pass_number=1, phase="execute", state="started")] * 3
    path.write_bytes(b"".join(build.lines(*records)))
    return path


def test_a_short_journal_is_shown_whole(tmp_path: Path) -> None:
    path = build.write(tmp_path, *build.whole_run())
    end = end_of(path)
    assert end.records() == list(read_records(path))
    assert end.whole
    assert end.view() == fold(read_records(path))


@pytest.mark.parametrize("again", [True, False], ids=["plan", "cycle"])
@pytest.mark.parametrize("within", [80_000, 10**7], ids=["near", "far"])
@pytest.mark.parametrize("spaced", [False, True], ids=["compact", "spaced"])
def test_the_end_of_a_long_run_has_its_state(tmp_path: Path, within: int, again: bool, spaced: bool) -> None:
    path = far_from_its_plan(tmp_path / "r1.jsonl", 40, again=again)
    if spaced:
        path.write_text("".join(json.dumps(json.loads(each)) + "\n" for each in path.read_text().splitlines()))
    end = end_of(path, recent=20, within=within)
    found, everything = end.records(), list(read_records(path))
    expected = fold(everything)
    assert {**state(fold(found)), "phases": []} == {**state(expected), "phases": []}
    assert [record for record in found if record in everything][-20:] == everything[-20:]
    made = [record for record in found if record not in everything]
    assert [record["cause"] for record in made] == (["given"] if within == 80_000 else [])
    assert (end.whole, end.view().whole_from) == (False, everything[-20]["seq"])
    assert (found[0]["type"], [record["seq"] for record in found if record.get("step_id") == "s0"]) == (
        "run_started",
        [] if within == 80_000 else [3],
    )


def test_records_far_from_the_end_are_unknown(tmp_path: Path) -> None:
    records = [build.started(), build.plan_record({"step_id": "s1", "description": "one"}), build.ttl(1)]
    path = build.write(tmp_path, *records, *[PhaseRecord(pass_number=1, phase="execute", state="started")] * 100)
    view = end_of(path, recent=10, within=2_000).view()
    assert (view.task, view.steps, view.ttl_spent) == ("calculate the sum of 5 and 10", {}, 0)


def test_a_finished_run_has_its_plan_from_the_result(tmp_path: Path) -> None:
    done = build.plan({"step_id": "s1", "description": "one", "status": "complete"})
    records = [PhaseRecord(pass_number=1, phase="execute", state="started")] * 100
    path = build.write(tmp_path, build.started(), *records, build.finished(plan=done))
    view = end_of(path, recent=10, within=2_000).view()
    assert (view.status, view.goal, view.steps["s1"].status) == ("completed", "the sum of 5 and 10", "complete")


def test_damage_near_the_end_is_reported_and_skipped(tmp_path: Path) -> None:
    path = build.write(tmp_path, *build.whole_run())
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"broken\n" + build.line(build.ttl(9), 99) + b'{"torn')
    view = end_of(path).view()
    assert (view.damage, view.ttl_spent) == ([f"byte {size}: broken (expected value)"], 9)


def test_a_line_longer_than_the_window_is_shown(tmp_path: Path) -> None:
    path = build.write(tmp_path, *build.whole_run(), MemoryRecord(key="long", value="x" * 300))
    assert end_of(path, within=100).view().memory["long"] == "x" * 300


def test_the_state_before_a_line_is_that_of_the_lines_up_to_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = long_run()
    lines = as_lines(records)
    path.write_bytes(b"".join(lines))
    until = sum(map(len, lines[:200]))
    assert state(end_of(path, until=until).view()) == state(fold(records[:200]))
    line, last, _ = end_of(path, until=until, recent=1).last()
    assert (line + b"\n", last) == (lines[199], records[199])


def test_a_record_at_the_end_resolves_a_text_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = [{"v": 1, "seq": n, "ts": "", "run": "r", "type": "note"} for n in range(2, 100)]
    text = {"v": 1, "seq": 1, "ts": "", "run": "r", "type": "text", "sha256": SHA, "text": TEXT}
    last = {"v": 1, "seq": 100, "ts": "", "run": "r", "type": "memory", "key": "k", "value": {"$text": SHA}}
    path.write_bytes(b"".join(as_lines([Recording().records[0], text, *records, last])))
    assert end_of(path, within=1_000).view().memory == {"k": TEXT}


def test_a_long_foreign_file_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 100)
    with pytest.raises(UsageError, match=r"does not start like a journal; expected a run's <run_id>\.jsonl file"):
        end_of(path, within=100).view()
