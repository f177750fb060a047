from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.history import open_run
from aeon_core.journal.listing import belongings, list_runs, refuse_live, remove_run, size_of
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import finished, started, ttl, write

OTHERS = ("a.inbox.bak", "a.torn-x", "a.md", "ab.inbox", "a", "a.torn-1.jsonl")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, started(), ttl(1), finished(), run="a")
    write(tmp_path, started(parent={"run_id": "a", "pass": 1}), ttl(1), finished(), run="ab")
    for name in ("a.files", "a.inbox", "a.torn-1", "a.torn-12", *OTHERS):
        (tmp_path / name).write_bytes(b"12345")
    return tmp_path


def test_a_run_is_deleted_with_what_belongs_to_it_and_nothing_else(folder: Path) -> None:
    journal = folder / "a.jsonl"
    assert belongings(journal) == [folder / name for name in ("a.jsonl", "a.files", "a.inbox", "a.torn-1", "a.torn-12")]
    assert size_of(journal) == journal.stat().st_size + 20
    remove_run(journal)
    assert sorted(path.name for path in folder.iterdir()) == sorted([*OTHERS, "ab.jsonl"])
    assert [(run.run_id, run.parent) for run in list_runs(folder)] == [("ab", "a")]


def test_a_run_that_is_being_written_is_refused_and_stays(folder: Path) -> None:
    writer = JournalWriter(folder / "live.jsonl", "live")
    writer.append(started())
    with pytest.raises(UsageError, match=r"the run 'live' is being written by .*; abort it or wait until it ends"):
        remove_run(folder / "live.jsonl")
    writer.append(ttl(1))
    writer.close()
    assert (folder / "live.jsonl").exists()
    remove_run(folder / "live.jsonl")
    assert not (folder / "live.jsonl").exists()


def test_without_locks_an_unended_run_is_listed_as_running_and_not_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    write(folder, started(), ttl(1), run="b")
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert {run.run_id: run.status for run in list_runs(folder)}["b"] == "running"
    assert open_run(folder / "b.jsonl")[0].status == "running"
    for check in (refuse_live, remove_run):
        with pytest.raises(UsageError, match="cannot delete the run 'b': No locks available"):
            check(folder / "b.jsonl")
    assert (folder / "b.jsonl").exists()


def test_a_missing_or_undeletable_run_is_one_clear_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"cannot delete the run 'gone': No such file or directory"):
        remove_run(folder / "gone.jsonl")

    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(UsageError, match=r"cannot delete the run 'a': Permission denied"):
        remove_run(folder / "a.jsonl")
    assert (folder / "a.jsonl").exists()
