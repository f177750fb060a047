"""What is read of two journals to compare them."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from aeon_tui.screens import compare
from aeon_tui.screens.compare import FROM_ITS_END, ComparisonReader, read
from aeon_widgets.compare_rows import ComparedRun
from tests.aeon_tui.compared import LEFT, RIGHT, written
from tests.aeon_tui.passes import converged_run, given_up_run
from tests.aeon_tui.recordings import finished_run, live_run
from tests.aeon_tui.sources.test_journal import LONG, journal


def test_a_run_is_read_in_full(tmp_path: Path) -> None:
    run = read(written(tmp_path, LEFT, finished_run()))
    assert run.view is not None
    assert (run.run_id, run.view.status, run.problem, run.note) == (LEFT, "completed", "", "")


def test_a_run_without_a_writer_was_interrupted(tmp_path: Path) -> None:
    path = written(tmp_path, LEFT, live_run())
    first = read(path).view
    assert first is not None
    assert first.status == "interrupted"
    held = os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        second = read(path).view
        assert second is not None
        assert second.status == "running"
    finally:
        os.close(held)


@pytest.mark.parametrize("content", [None, "", "no journal\n", '{"v": 1}\n'])
def test_a_file_that_is_not_a_journal_is_named_in_one_line(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "gone.jsonl"
    if content is not None:
        path.write_text(content)
    run = read(path)
    assert run.view is None or not run.problem
    told = run.problem or " ".join(run.view.damage if run.view is not None else [])
    assert told or not content
    assert "\n" not in told
    assert run.run_id == "gone"


def test_a_directory_is_not_a_journal(tmp_path: Path) -> None:
    assert read(tmp_path).problem.startswith("'") or str(tmp_path) in read(tmp_path).problem


def test_a_damaged_journal_is_read_as_far_as_possible(tmp_path: Path) -> None:
    path = written(tmp_path, LEFT, finished_run())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "{broken", *lines[6:]]) + "\n")
    run = read(path)
    assert run.view is not None
    assert run.view.status == "completed"
    assert "line 6" in run.view.damage[0]


def test_a_long_journal_is_compared_by_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = journal(tmp_path, LONG)
    monkeypatch.setattr(compare, "LONG", path.stat().st_size)
    run = read(path)
    assert run.view is not None
    assert run.note == FROM_ITS_END
    assert run.view.whole_from > 0
    monkeypatch.setattr(compare, "LONG", path.stat().st_size + 1)
    assert (read(path).note, read(path).view.whole_from) == ("", 0)  # type: ignore[union-attr]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the journals that are read, in their order."""
    reads: list[Path] = []
    monkeypatch.setattr(compare, "read", lambda path: reads.append(path) or read(path))
    monkeypatch.setattr(compare, "RESTING", 0)
    return reads


def test_a_comparison_is_refreshed_when_a_journal_has_grown_and_only_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = counted(monkeypatch)
    left, right = written(tmp_path, LEFT, live_run()), written(tmp_path, RIGHT, finished_run())
    work = ComparisonReader(left, right)
    first = work.compare()
    assert first is not None
    assert first.comparison.differences
    assert work.compare() is None
    with left.open("a") as file:
        for record in finished_run().records[len(live_run().records) :]:
            file.write(json.dumps({**record, "run": LEFT}) + "\n")
    second = work.compare()
    assert second is not None
    assert second.comparison.differences == 0
    assert reads == [left, right, left]


def test_a_slow_journal_is_refreshed_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch)
    left, right = written(tmp_path, LEFT, live_run()), written(tmp_path, RIGHT, finished_run())
    work = ComparisonReader(left, right)
    monkeypatch.setattr(compare, "RESTING", 1_000_000)
    assert work.compare() is not None
    written(tmp_path, LEFT, finished_run())
    assert work.compare() is None
    assert reads == [left, right]


def test_the_runs_are_exchanged_without_being_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = counted(monkeypatch)
    left, right = written(tmp_path, LEFT, converged_run()), written(tmp_path, RIGHT, given_up_run())
    work = ComparisonReader(left, right)
    assert work.compare() is not None
    work.swap()
    swapped = work.compare()
    assert swapped is not None
    assert [run.run_id for run in swapped[:2]] == [RIGHT, LEFT]
    assert reads == [left, right]


def test_a_journal_that_appears_or_disappears_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch)
    left, right = written(tmp_path, LEFT, converged_run()), tmp_path / f"{RIGHT}.jsonl"
    work = ComparisonReader(left, right)
    first = work.compare()
    assert first is not None
    assert first.right.problem
    assert not first.comparison.whole
    written(tmp_path, RIGHT, given_up_run())
    second = work.compare()
    assert second is not None
    assert second.comparison.whole
    left.unlink()
    third = work.compare()
    assert third is not None
    assert third.left.problem


def test_an_empty_journal_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / f"{RIGHT}.jsonl"
    path.touch()
    assert read(path).problem
    held = os.open(path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        assert read(path) == ComparedRun(RIGHT)
    finally:
        os.close(held)
