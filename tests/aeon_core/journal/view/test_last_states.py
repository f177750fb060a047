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
from aeon_core.journal.view import last_states
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
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
def test_the_last_states_are_those_of_the_whole_after_any_line(tmp_path: Path, records: list[dict[str, Any]]) -> None:
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
def test_it_does_not_matter_where_the_reading_was_interrupted(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
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


def test_only_the_last_lines_are_without_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    records = long_run()
    path.write_bytes(b"".join(as_lines(records)))
    states = LastStates(path)
    states.read_on()
    view = states.view()
    states.close()
    assert view.whole_from == len(records) - last_states.RECENT
    assert [line.seq for line in view.log if line.seq >= view.whole_from] == list(range(view.whole_from, len(records)))
    assert sum(len(calls) for calls in view.calls.values()) < sum(len(calls) for calls in fold(records).calls.values())


def test_long_texts_are_in_what_is_shown_as_far_as_they_are_kept(tmp_path: Path) -> None:
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


def test_texts_beyond_the_bound_are_forgotten_the_oldest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_a_resume_took_back_is_left_out(tmp_path: Path) -> None:
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


def test_of_a_long_journal_only_the_end_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_states, "WHOLE", 1_000)
    path = tmp_path / "r.jsonl"
    records = long_run()
    path.write_bytes(b"".join(as_lines(records[:-5])))
    states = LastStates(path)
    assert states.read_on() == 0
    assert state(states.view()) == state(fold(records[:-5]))
    assert states.view().whole_from > 0
    path.write_bytes(b"".join(as_lines(records)))
    assert states.read_on() == 5
    assert state(states.view()) == state(fold(records))
    states.close()


def test_a_journal_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.jsonl"):
        LastStates(tmp_path / "gone.jsonl")
