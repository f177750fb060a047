from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import listing, summary
from aeon_core.journal.listing import CACHE, list_runs
from aeon_core.journal.records import PhaseRecord
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import finished, lines, started, text, ttl, whole_run, write


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a run of each kind, in which a cache pays."""
    monkeypatch.setattr(listing, "ENOUGH", 1)
    monkeypatch.setattr(listing, "_STALE", 0.0)
    write(tmp_path, *whole_run(), run="whole")
    write(
        tmp_path, started(), *[PhaseRecord(pass_number=1, phase="plan", state="started")] * 300, finished(), run="big"
    )
    write(tmp_path, started(), ttl(1), run="interrupted")
    write(tmp_path, started(), finished(), ttl(3), run="resumed")
    write(tmp_path, started(task="x" * 40_000), finished(), run="long-task")
    write(tmp_path, text("t")[0], started(), finished(), run="text-first")
    write(tmp_path, finished(), run="no-beginning")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "torn.jsonl").write_bytes(b"".join(lines(started(), ttl(2), finished()))[:-1])
    (tmp_path / "one-line.jsonl").write_bytes(lines(started())[0])
    (tmp_path / "notes.jsonl").write_bytes(b"hello\nworld\n")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    return tmp_path


def test_runs_are_listed_as_without_any_shortcut_cold_and_warm(runs: Path) -> None:
    expected = summary.list_runs(runs)
    assert len(expected) == 8
    assert list_runs(runs, cache=False) == expected
    assert not (runs / CACHE).exists()
    assert list_runs(runs) == expected
    assert (runs / CACHE).stat().st_mode & 0o777 == 0o600
    assert list_runs(runs) == expected


def test_what_is_known_is_not_read_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list_runs(runs)
    monkeypatch.setattr(listing, "_ended_run", lambda entry, size: None)
    monkeypatch.setattr(listing, "summarise", lambda path: None)
    assert list_runs(runs) == expected


def test_a_run_that_went_on_is_read_again(runs: Path) -> None:
    list_runs(runs)
    with (runs / "interrupted.jsonl").open("ab") as file:
        file.write(lines(started(), ttl(1), finished("failed"))[2])
    (runs / "whole.jsonl").unlink()
    found = {run.run_id: run.status for run in list_runs(runs)}
    assert found["interrupted"] == "failed"
    assert "whole" not in found
    assert list_runs(runs) == summary.list_runs(runs)


def test_a_run_that_is_being_written_is_said_to_be_running_only_meanwhile(runs: Path) -> None:
    writer = JournalWriter(runs / "live.jsonl", "live")
    writer.append(started())
    for _ in range(2):
        assert {run.run_id: run.status for run in list_runs(runs)}["live"] == "running"
    writer.close()
    assert {run.run_id: run.status for run in list_runs(runs)}["live"] == "interrupted"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[99,{}]",
        b'[1,{"whole.jsonl":[1,2,3]}]',
        b'{"a":1}',
        b'[1,{"gone.jsonl":[1,2,"","","",0,null,""]}]',
    ],
    ids=["empty", "binary", "newer", "shape", "object", "stale"],
)
def test_a_cache_that_is_worth_nothing_is_made_anew(runs: Path, content: bytes) -> None:
    (runs / CACHE).write_bytes(content)
    assert list_runs(runs) == summary.list_runs(runs)
    assert (runs / CACHE).read_bytes() != content
    assert sorted(path.name for path in runs.iterdir() if path.name.startswith(CACHE)) == [CACHE]


def test_a_cache_of_another_version_is_not_believed(runs: Path) -> None:
    list_runs(runs)
    kept = (runs / CACHE).read_bytes()
    assert kept.startswith(b"[1,")
    (runs / CACHE).write_bytes(b"[2," + kept[3:].replace(b'"completed"', b'"failed"'))
    assert list_runs(runs) == summary.list_runs(runs)


def test_a_cache_goes_with_its_folder(runs: Path) -> None:
    list_runs(runs)
    moved = runs.rename(runs.with_name("moved"))
    assert list_runs(moved) == summary.list_runs(moved)


def test_few_runs_or_few_changes_write_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "ENOUGH", 500)
    list_runs(runs)
    assert not (runs / CACHE).exists()
    monkeypatch.setattr(listing, "ENOUGH", 1)
    monkeypatch.setattr(listing, "_STALE", 0.2)
    list_runs(runs)
    before = (runs / CACHE).stat().st_ino
    with (runs / "interrupted.jsonl").open("ab") as file:
        file.write(b"\n")
    assert list_runs(runs) == summary.list_runs(runs)
    assert (runs / CACHE).stat().st_ino == before


def test_a_directory_that_cannot_be_written_is_listed_all_the_same(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, str]:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(listing.tempfile, "mkstemp", refuse)
    assert list_runs(runs) == summary.list_runs(runs)


def test_no_directory_has_no_runs_and_a_file_is_none(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"the runs directory .* cannot be read: Not a directory; name another one"):
        list_runs(tmp_path / "file")
