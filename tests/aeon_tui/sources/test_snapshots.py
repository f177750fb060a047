"""A run as it was at its records: equal to a fold of the journal up to there, whatever way one came."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon_core.journal.reader import read_records
from aeon_core.journal.view.incremental import IncrementalFold
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import apply, fold
from aeon_core.runs.fork import Fork
from aeon_core.runs.resume import resume
from aeon_tui.sources import journal as journal_module
from aeon_tui.sources import snapshots as moments_module
from aeon_tui.sources.journal import JournalSource
from aeon_tui.sources.snapshots import Closed, RunSnapshot, RunSnapshotStore
from aeon_tui.sources.timeline import (
    TimelineReader,
    back_a_pass,
    by_records,
    on_a_pass,
    to_pass,
    to_phase,
    to_seq,
    to_share,
)
from tests import recorded_runs
from tests.aeon_core.journal.view.test_incremental import filled_view, indexed
from tests.aeon_core.runs.test_resume import record, two_passes
from tests.aeon_tui.passes import converged_run, many_passes
from tests.aeon_tui.recordings import Recording, failed_run, finished_run
from tests.waiting import wait_until

RUNS = [converged_run, many_passes, finished_run, failed_run]


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path


def long_run(records: int) -> list[dict[str, Any]]:
    """Return a run of many steps, each with a call of its own."""
    run = Recording()
    run.plan(*({"step_id": f"s{number}", "description": f"do {number}", "agent": "llm"} for number in range(40)))
    while len(run.records) < records:
        step_id = f"s{len(run.records) % 40}"
        run.step(step_id, "running")
        run.ask("reason", step_id)
        run.answer("reason", "x", step_id)
    return run.records


def freshly(path: Path, seq: int) -> RunView:
    return fold(record for record in read_records(path) if record["seq"] <= seq)


def same(found: RunSnapshot | None, path: Path) -> bool:
    """Return whether a moment, with what it left in the journal, is what a fold of it up to there gives."""
    assert found is not None
    shown, expected = filled_view(found.view, path), freshly(path, found.seq)
    assert shown.memory.keys() == expected.memory.keys()
    assert shown.tool_calls.keys() == expected.tool_calls.keys()
    shown.memory, shown.tool_calls = expected.memory, expected.tool_calls  # of which the steps hold the same
    for view in (shown, expected):
        for step in view.result.steps if view.result is not None else []:
            step["output"] = None
    return shown == expected


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_every_moment_of_a_run_is_a_fold_of_its_journal_up_to_there(
    run: Callable[[], Recording], tmp_path: Path
) -> None:
    path = written(tmp_path / "r1.jsonl", run().records)
    snapshots = RunSnapshotStore(path)
    seqs = [record["seq"] for record in run().records if record["type"] != "text"]
    for seq in [*seqs, *reversed(seqs)]:
        assert same(snapshots.snapshot(None, [to_seq(seq)]), path), f"at seq {seq}"
    snapshots.close()


def walked(snapshots: RunSnapshotStore, base: int | None, *moves: Any) -> int | None:
    found = snapshots.snapshot(base, list(moves))
    return found.seq if found is not None else None


def test_stops_are_ends_of_passes_and_then_now(tmp_path: Path) -> None:
    records = converged_run().records
    snapshots = RunSnapshotStore(written(tmp_path / "r1.jsonl", records))
    first, second = (record["seq"] for record in records if record["type"] == "pass")
    assert walked(snapshots, None, back_a_pass) == second
    assert walked(snapshots, None, back_a_pass, back_a_pass) == first
    assert walked(snapshots, first, back_a_pass) == 0
    assert walked(snapshots, 0, back_a_pass) == 0
    assert walked(snapshots, 0, on_a_pass) == first
    assert walked(snapshots, first + 1, on_a_pass) == second
    assert walked(snapshots, second, on_a_pass) is None
    assert walked(snapshots, None, to_pass(1)) == first


def test_a_phase_is_left_at_its_end(tmp_path: Path) -> None:
    records = converged_run().records
    ends = {
        (each["pass"], each["phase"]): each["seq"]
        for each in records
        if each["type"] == "phase" and each["state"] == "finished"
    }
    snapshots = RunSnapshotStore(written(tmp_path / "r1.jsonl", records))
    assert len(ends) >= 6
    assert {place: walked(snapshots, None, to_phase(*place)) for place in ends} == ends
    assert walked(snapshots, None, to_phase(9, "plan")) is None


def test_stepping_moves_by_records_and_skips_long_texts(tmp_path: Path) -> None:
    records = finished_run().records[:6]
    text = {**records[3], "type": "text", "sha256": "0" * 64, "text": "long"}
    records = [*records[:3], text, *({**each, "seq": each["seq"] + 1} for each in records[3:])]
    snapshots = RunSnapshotStore(written(tmp_path / "r1.jsonl", records))
    assert [walked(snapshots, seq, by_records(1)) for seq in (0, 1, 2, 4, 5)] == [1, 2, 4, 5, None]
    assert [walked(snapshots, seq, by_records(-1)) for seq in (6, 5, 4, 2, 0)] == [5, 4, 2, 1, 0]
    assert walked(snapshots, None, by_records(-1), by_records(-1)) == 4
    assert [walked(snapshots, None, to_share(share)) for share in (0, 0.5, 1)] == [0, 2, None]
    assert walked(snapshots, None, to_seq(6)) == 6, "one may stay at the last record"


def test_a_run_that_continues_has_more_moments(tmp_path: Path) -> None:
    records = converged_run().records
    path = written(tmp_path / "r1.jsonl", records[:20])
    snapshots = RunSnapshotStore(path)
    assert walked(snapshots, None, by_records(-1)) == 18
    with path.open("a") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records[20:])
        file.write('{"v":1,"seq":')
    assert walked(snapshots, 18, by_records(2)) == 20
    for seq in range(len(records)):
        assert same(snapshots.snapshot(None, [to_seq(seq)]), path)


def test_superseded_records_are_not_moments(tmp_path: Path) -> None:
    records = finished_run().records
    path = written(tmp_path / "r1.jsonl", records)
    snapshots = RunSnapshotStore(path)
    last = records[-1]["seq"]
    assert walked(snapshots, None, to_seq(last)) == last
    resumed = {**records[-1], "seq": last + 1, "type": "run_resumed", "continues_at": last - 1, "result": None}
    with path.open("a") as file:
        file.write(json.dumps(resumed, separators=(",", ":")) + "\n")
    assert walked(snapshots, None, to_seq(last)) == last - 2
    assert walked(snapshots, last + 1, by_records(-1)) == last - 2
    for seq in (last - 2, last + 1):
        assert same(snapshots.snapshot(None, [to_seq(seq)]), path)


def test_a_replaced_journal_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "r1.jsonl", converged_run().records)
    snapshots = RunSnapshotStore(path)
    assert walked(snapshots, None, by_records(-1)) == len(converged_run().records) - 2
    path.unlink()
    written(path, failed_run().records)
    assert same(snapshots.snapshot(None, [to_seq(9)]), path)
    assert walked(snapshots, None, by_records(-1)) == len(failed_run().records) - 2


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("runs") / "r1.jsonl", long_run(1_200))


@pytest.mark.exhaustive
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(journey=st.lists(st.integers(0, 1_199), min_size=2, max_size=8))
def test_a_moment_is_the_same_however_it_is_reached(
    journey: list[int], journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of one moment is not changed by the way to another."""
    for name, value in (("SPACING", 100), ("NEAR", 8), ("NEARBY", 24)):
        monkeypatch.setattr(moments_module, name, value)
    snapshots = RunSnapshotStore(journal)
    found = [snapshots.snapshot(None, [to_seq(seq)]) for seq in journey]
    assert all(same(snapshot, journal) for snapshot in found)
    snapshots.close()


def test_snapshots_are_dropped_before_they_use_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments_module, "SPACING", 50)
    monkeypatch.setattr(moments_module, "WEIGHT", 200_000)
    path = written(tmp_path / "r1.jsonl", long_run(2_000))
    snapshots = RunSnapshotStore(path)
    assert walked(snapshots, None, by_records(-1)) is not None
    assert snapshots._fold is not None
    kept = [state.line for state in snapshots._fold._states]
    assert 1 <= len(kept) < 20
    assert len({after - before for before, after in pairwise(kept)}) <= 1, "evenly spaced"
    assert same(snapshots.snapshot(None, [to_seq(333)]), path)


def test_an_unread_moment_shows_its_end_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments_module, "SPACING", 100)
    monkeypatch.setattr(moments_module, "SOON", 50)
    path = written(tmp_path / "r1.jsonl", long_run(1_200))
    snapshots = RunSnapshotStore(path)
    end = snapshots.snapshot(None, [to_seq(1_000)])
    assert end is not None
    assert (end.seq, end.whole, end.view.last_seq, end.view.whole_from) == (1_000, False, 1_000, 801)
    assert statuses(end.view) == statuses(freshly(path, 1_000))
    whole = snapshots.whole(1_000)
    assert whole.whole
    assert same(whole, path)
    for seq in (1_000, 700, 140):
        assert same(snapshots.snapshot(None, [to_seq(seq)]), path), "what was read to is there at once"
    later = snapshots.snapshot(None, [to_seq(1_190)])
    assert later is not None
    assert not later.whole
    with pytest.raises(Closed):
        snapshots.whole(1_190, lambda: False)
    snapshots.close()


def test_time_travel_does_not_reread_what_the_screen_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moments_module, "SOON", 0)
    monkeypatch.setattr(journal_module, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(TimelineReader, "_read_block", None)  # the lines are not read for the timeline alone
    path = written(tmp_path / "r1.jsonl", long_run(1_200))
    source = JournalSource(path)
    shown: list[RunView] = []
    wait_until(lambda: shown.extend(filter(None, [source.take_view()])) or source.ended)
    more = long_run(1_500)[1_200:]
    for later in more[:200]:
        apply(shown[-1], later)  # the screen folds on in its view
    assert same(source.snapshots.snapshot(None, [to_seq(600)]), path)
    assert same(source.snapshots.snapshot(None, [to_seq(1_198)]), path)
    monkeypatch.undo()
    with path.open("a") as file:
        file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in more)
    assert same(source.snapshots.snapshot(None, [to_seq(1_450)]), path)
    assert shown[-1].last_seq == more[199]["seq"]
    source.close()


@pytest.mark.parametrize("shared", [0, 400])
def test_every_reader_builds_the_same_timeline(shared: int, tmp_path: Path) -> None:
    records = many_passes().records
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    path = tmp_path / "r1.jsonl"
    path.write_text("\n".join([*lines[:30], "damaged", *lines[30:], ""]))
    with indexed(path) as index:
        reader = TimelineReader(index, [])
        whole = IncrementalFold(index, reader.note)
        while whole.step(until=shared):
            pass
        noted = len(reader.timeline)
        while reader.extend(1.0):
            pass
        alone = TimelineReader(index, [])
        while alone.extend(1.0):
            pass
    assert noted == (30 if shared else 0), "what comes after a line that is none is read"
    assert vars(reader.timeline) == vars(alone.timeline)


def statuses(view: RunView) -> dict[str, str]:
    return {step_id: step.status for step_id, step in view.steps.items()}


def test_plans_are_compared_at_ends_of_passes(tmp_path: Path) -> None:
    records = converged_run().records
    path = written(tmp_path / "r1.jsonl", records)
    first, second = (record["seq"] for record in records if record["type"] == "pass")
    plan = next(record["seq"] for record in records if record["type"] == "plan")
    assert [each.seq for each in RunSnapshotStore(path).at_pass_ends([0, 1, 2])] == [plan, first, second]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["one-pass", "passes", "gated", "chain"])
def test_every_moment_of_a_recorded_run_is_a_fold_of_its_journal(name: str, tmp_path: Path) -> None:
    path = tmp_path / "r1.jsonl"
    recorded_runs.RUNS[name](path)
    assert_every_moment_is_a_fold(path)


@pytest.mark.exhaustive
def test_every_moment_of_a_fork_and_of_a_resumed_run_is_a_fold_of_its_journal(tmp_path: Path) -> None:
    parent, fork, resumed = (tmp_path / f"{name}.jsonl" for name in ("parent", "fork", "resumed"))
    record(parent, two_passes())
    forked = Fork(parent, 2, two_passes(), journal=fork).run()
    assert forked.passes == 2
    assert_every_moment_is_a_fold(fork)
    lines = parent.read_bytes().splitlines(keepends=True)
    resumed.write_bytes(b"".join(lines[: len(lines) * 2 // 3]) + b'{"v":1,"torn')
    resume(resumed, two_passes())
    assert b'"run_resumed"' in resumed.read_bytes()
    assert_every_moment_is_a_fold(resumed)


def assert_every_moment_is_a_fold(path: Path) -> None:
    """Go through all records of a journal, forth and back."""
    snapshots = RunSnapshotStore(path)
    seqs = [each["seq"] for each in read_records(path) if each["type"] != "text"]
    assert len(seqs) > 10
    assert all(same(snapshots.snapshot(None, [to_seq(seq)]), path) for seq in [*seqs, *reversed(seqs)])
    snapshots.close()
