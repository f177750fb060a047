from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import listing
from aeon_core.journal.listing import CACHE, RunListing, list_runs
from aeon_core.journal.records import (
    ApprovalRecord,
    ConvergenceRecord,
    JournalRecovered,
    PhaseRecord,
    Record,
    RunResumed,
)
from aeon_core.journal.recovery import reopen
from aeon_core.journal.summary import RunSummary, summarise
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
    write(tmp_path, started(parent={"run_id": "whole", "pass": 2}), ttl(1), finished(), run="fork")
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


def scored(completeness: float, coherence: float) -> ConvergenceRecord:
    return ConvergenceRecord(pass_number=1, completeness_score=completeness, coherence_score=coherence)


def read_each(directory: Path) -> list[RunSummary]:
    """Return the runs without any shortcut: every file is read, nothing is kept."""
    found = [run for path in directory.glob("*.jsonl") if (run := summarise(path)) is not None]
    return sorted(found, key=lambda run: (run.started, run.run_id), reverse=True)


def test_cached_listings_equal_uncached_ones(runs: Path) -> None:
    expected = read_each(runs)
    assert len(expected) == 9
    assert list_runs(runs, cache=False) == expected
    assert not (runs / CACHE).exists()
    assert list_runs(runs) == expected
    assert (runs / CACHE).stat().st_mode & 0o777 == 0o600
    assert list_runs(str(runs)) == expected


@pytest.mark.parametrize("last", [ttl(1), finished("failed")], ids=["running", "ended"])
def test_the_first_of_two_runs_in_a_file_is_listed(last: Record, tmp_path: Path) -> None:
    first = write(tmp_path, started(task="first"), finished(), run="first")
    other = write(tmp_path, started(task="second"), last, run="second")
    first.write_bytes(first.read_bytes() + other.read_bytes())
    other.unlink()
    [run] = list_runs(tmp_path)
    assert (run.task, run.status) == ("first", "completed")


def test_known_files_are_not_read_again(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list_runs(runs)
    monkeypatch.setattr(listing, "_read", lambda path, size: None)
    assert list_runs(runs) == expected


def test_a_run_with_new_records_is_read_again(runs: Path) -> None:
    list_runs(runs)
    with (runs / "interrupted.jsonl").open("ab") as file:
        file.write(lines(started(), ttl(1), finished("failed"), run="interrupted")[2])
    (runs / "whole.jsonl").unlink()
    found = {run.run_id: run.status for run in list_runs(runs)}
    assert found["interrupted"] == "failed"
    assert "whole" not in found
    assert list_runs(runs) == read_each(runs)


def test_an_ended_run_stays_ended_if_its_resume_wrote_nothing(runs: Path) -> None:
    write(runs, started(), finished("failed"), JournalRecovered(offset=9, set_aside="x"), run="mended")
    assert {run.run_id: run.status for run in list_runs(runs)}["mended"] == "failed"


def test_a_run_is_listed_as_running_only_while_written(runs: Path) -> None:
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
        b'[3,{"whole.jsonl":[1,2,3]}]',
        b'{"a":1}',
        b'[3,{"gone.jsonl":[[1,2,3,4],"","","",0,null,"",null,null,null,null,"",false]}]',
    ],
    ids=["empty", "binary", "newer", "shape", "object", "stale"],
)
def test_an_unusable_cache_is_rebuilt(runs: Path, content: bytes) -> None:
    (runs / CACHE).write_bytes(content)
    assert list_runs(runs) == read_each(runs)
    assert (runs / CACHE).read_bytes() != content
    assert sorted(path.name for path in runs.iterdir() if path.name.startswith(CACHE)) == [CACHE]


def test_a_cache_of_another_version_is_ignored(runs: Path) -> None:
    list_runs(runs)
    kept = (runs / CACHE).read_bytes()
    assert kept.startswith(b"[7,")
    (runs / CACHE).write_bytes(b"[1," + kept[3:].replace(b'"completed"', b'"failed"'))
    assert list_runs(runs) == read_each(runs)


def test_a_cache_moves_with_its_folder(runs: Path) -> None:
    list_runs(runs)
    moved = runs.rename(runs.with_name("moved"))
    assert list_runs(moved) == read_each(moved)


def test_few_runs_or_few_changes_write_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "ENOUGH", 500)
    list_runs(runs)
    assert not (runs / CACHE).exists()
    monkeypatch.setattr(listing, "ENOUGH", 1)
    monkeypatch.setattr(listing, "_STALE", 0.2)
    list_runs(runs)
    before = (runs / CACHE).stat().st_ino
    with (runs / "interrupted.jsonl").open("ab") as file:
        file.write(b"{")
    assert list_runs(runs) == read_each(runs)
    assert (runs / CACHE).stat().st_ino == before


def test_a_directory_that_cannot_be_written_is_listed_anyway(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> tuple[int, str]:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("aeon_core.journal.listing.replace_file", refuse)
    assert list_runs(runs) == read_each(runs)


def test_a_missing_directory_is_empty_and_a_file_is_refused(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cannot read the runs directory .*: Not a directory; choose another"):
        list_runs(tmp_path / "file")


def test_a_journal_replaced_by_one_of_the_same_size_and_time_is_read_again(runs: Path) -> None:
    list_runs(runs)
    path = runs / "whole.jsonl"
    before, content = path.stat(), path.read_bytes()
    new = runs / "new"
    new.write_bytes(content.replace(b'"status":"completed"', b'"status":"converged"'))
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert {run.run_id: run.status for run in list_runs(runs)}["whole"] == "converged"
    path.write_bytes(content)
    changed = path.stat().st_ctime_ns
    while path.stat().st_ctime_ns == changed:  # until the file system's clock has ticked
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert {run.run_id: run.status for run in list_runs(runs)}["whole"] == "completed"


def test_a_listed_fork_knows_its_parent_outside_its_json(runs: Path) -> None:
    for _ in range(2):
        fork = next(run for run in list_runs(runs) if run.run_id == "fork")
        assert (fork.parent, fork.forked_at) == ("whole", 2)
    assert list(fork.as_dict()) == ["run_id", "task", "status", "model", "passes", "cost_usd", "started", "path"]
    assert [run.run_id for run in list_runs(runs) if run.parent is not None] == ["fork"]


def test_a_name_that_is_not_utf8_is_listed_as_results_print_it(tmp_path: Path) -> None:
    path = "/runs/bad\udcff/r.jsonl"
    assert RunSummary("r", "t", "completed", "m", 1, 0.0, "", path).as_dict()["path"] == "/runs/bad\ufffd/r.jsonl"


@pytest.mark.parametrize(
    ("parent", "read"),
    [
        ({"run_id": "a", "pass": 1}, ("a", 1)),
        ({"run_id": "a"}, ("a", None)),
        ({"run_id": "a", "pass": True}, ("a", None)),
        ({"run_id": 7, "pass": 1}, (None, None)),
        ({"pass": 1}, (None, None)),
    ],
)
def test_a_parent_is_listed_as_recorded(
    tmp_path: Path, parent: dict[str, object], read: tuple[str | None, int | None]
) -> None:
    write(tmp_path, started(parent=parent), ttl(1))
    (fork,) = list_runs(tmp_path)
    assert (fork.parent, fork.forked_at) == read


def test_superseded_records_do_not_count(tmp_path: Path) -> None:
    ended = finished("cost_ceiling", passes=4)
    again = PhaseRecord(pass_number=4, phase="plan", state="started")
    path = write(tmp_path, started(), ttl(1), again, ended, RunResumed(options={}, continues_at=2))
    assert [(run.status, run.passes) for run in list_runs(tmp_path)] == [("interrupted", 0)]
    path.write_bytes(b"".join(lines(started(), ttl(1), again, RunResumed(options={}, continues_at=3))))
    assert [(run.status, run.passes) for run in list_runs(tmp_path)] == [("interrupted", 3)]


def test_unchanged_runs_are_listed_as_the_same_objects(runs: Path) -> None:
    listing_of_runs = RunListing(runs)
    before = {run.run_id: run for run in listing_of_runs.runs()}
    with (runs / "interrupted.jsonl").open("ab") as file:
        file.write(lines(started(), ttl(1), finished("failed"), run="interrupted")[2])
    (runs / "whole.jsonl").unlink()
    after = {run.run_id: run for run in listing_of_runs.runs()}
    assert list(after.values()) == read_each(runs)
    assert [name for name in before if after.get(name) is not before[name]] == ["whole", "interrupted"]
    writer = JournalWriter(runs / "live.jsonl", "live")
    writer.append(started())
    assert {run.run_id: run.status for run in listing_of_runs.runs()}["live"] == "running"
    writer.close()
    assert {run.run_id: run.status for run in listing_of_runs.runs()}["live"] == "interrupted"


def test_a_directory_of_runs_that_disappears_is_reported_until_it_is_back(runs: Path) -> None:
    listed = RunListing(runs)
    before = listed.runs()
    away = runs.rename(runs.with_name("away"))
    for _ in range(2):
        with pytest.raises(UsageError, match=r"the runs directory '.*' was deleted or moved"):
            listed.runs()
    away.rename(runs)
    assert listed.runs() == before
    assert RunListing(away).runs() == []


def test_a_directory_with_one_live_run_that_disappears_is_reported_too(tmp_path: Path) -> None:
    (folder := tmp_path / "runs").mkdir()
    writer = JournalWriter(folder / "live.jsonl", "live")
    writer.append(started())
    listed = RunListing(folder)
    assert live(listed).keys() == {"live"}
    folder.rename(tmp_path / "away")
    for look in (listed.live, listed.runs):
        with pytest.raises(UsageError, match="was deleted or moved"):
            look()
    writer.close()


def live(directory: RunListing) -> dict[str, str]:
    return {run.run_id: run.waits_for for run in directory.live()}


def test_live_runs_are_those_being_written(runs: Path) -> None:
    listed = RunListing(runs)
    assert live(listed) == {}
    writer = JournalWriter(runs / "live.jsonl", "live")
    writer.append(started())
    assert live(listed) == {"live": ""}
    writer.append(ApprovalRecord(point="pass", state="asked", pass_number=1, digest="d"))
    assert live(listed) == {"live": "pass"}
    writer.close()
    assert live(listed) == {}
    (runs / "live.jsonl").unlink()
    assert listed.runs() == read_each(runs)


def six_times_as_many_as_are_looked_at_once(runs: Path, monkeypatch: pytest.MonkeyPatch) -> RunListing:
    monkeypatch.setattr(listing, "_AT_ONCE", 10)
    for number in range(60):
        write(runs, started(), ttl(1), run=f"other-{number}")
    return RunListing(runs)


def test_a_resumed_run_becomes_live_at_once_or_after_a_polling_round(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = six_times_as_many_as_are_looked_at_once(runs, monkeypatch)
    listed.live()
    resumed = [reopen(runs / f"other-{number}.jsonl") for number in range(0, 60, 5)]
    (runs / "other-30.inbox").touch()
    found = [live(listed) for _ in range(8)]
    assert all("other-30" in each for each in found)
    assert len(found[0]) < len(found[-1]) == len(resumed)
    assert listed.live() == [run for run in listed.runs() if run.status == "running"]
    for writer in resumed:
        writer.close()
    assert live(listed) == {}


def test_each_poll_checks_a_few_of_the_unwritten_runs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = six_times_as_many_as_are_looked_at_once(runs, monkeypatch)
    looked: list[str] = []
    listed.runs()
    monkeypatch.setattr(listing, "_look", lambda entry, known: looked.append(entry.name) or known)
    for _ in range(8):
        listed.live()
    others = [name for name in looked if name.startswith("other-")]
    assert len(others) == len(set(others)) == 60


def test_concurrent_listings_agree(runs: Path) -> None:
    expected = read_each(runs)

    def again(number: int) -> list[RunSummary]:
        if number % 3 == 0:
            (runs / CACHE).unlink(missing_ok=True)
        return list_runs(runs)

    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(again, range(60)))
    json.loads((runs / CACHE).read_bytes())
    assert sorted(path.name for path in runs.iterdir() if path.name.startswith(CACHE)) == [CACHE]


def test_a_cache_that_is_not_a_file_does_not_block(runs: Path) -> None:
    os.mkfifo(runs / CACHE)
    assert list_runs(runs) == read_each(runs)


def test_only_the_beginning_of_a_foreign_file_is_read(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list_runs(runs)
    with (runs / "huge.jsonl").open("wb") as file:
        file.truncate(10**12)
    (runs / "text.jsonl").write_bytes(b"not a journal " * 10_000)
    monkeypatch.setattr(listing, "summarise", lambda path: pytest.fail(f"{path} is read on"))
    assert [run.run_id for run in list_runs(runs)] == [run.run_id for run in expected]


def test_an_undecodable_file_name_is_listed_and_cached(runs: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (runs / f"{name}.jsonl").write_bytes(b"".join(lines(*whole_run())))
    write(runs, *whole_run(), run="größe")
    assert list_runs(runs) == read_each(runs)
    assert {name, "größe"} < {run.run_id for run in list_runs(runs)}
    assert "größe.jsonl" in json.loads((runs / CACHE).read_bytes())[1]


def test_the_latest_scores_of_live_and_ended_runs_are_listed(runs: Path) -> None:
    assessed = [scored(0.5, 0.6), scored(0.82, 0.91)]
    last = {"completeness_score": 0.75, "coherence_score": 1, "converged": False}
    write(runs, started(), *assessed, ttl(1), run="going-on")
    write(runs, started(), *assessed, RunResumed(options={}, continues_at=2), run="taken-back")
    write(runs, started(), *assessed, finished(convergence=last), run="over")
    write(runs, started(), *assessed, finished(), run="unassessed")
    write(runs, started(), scored(10**400, -0.5), ttl(1), run="no-scores")
    for _ in range(2):
        found = {run.run_id: (run.completeness, run.coherence) for run in list_runs(runs)}
        assert found["going-on"] == (0.82, 0.91)
        assert found["taken-back"] == (0.5, 0.6)
        assert found["over"] == (0.75, 1.0)
        assert found["unassessed"] == found["no-scores"] == (None, None)
    assert list_runs(runs) == read_each(runs)


@pytest.mark.parametrize(
    ("passes", "assessed", "listed"),
    [
        (0, [1], (None, None)),
        (1, [1], (0.1, 0.6)),
        (1, [1, 2], (0.1, 0.6)),
        (2, [1, 2], (0.2, 0.6)),
        (1, [], (0.75, 1.0)),
    ],
)
def test_the_scores_of_a_run_that_was_aborted_are_those_of_its_last_finished_pass(
    tmp_path: Path, passes: int, assessed: list[int], listed: tuple[float | None, float | None]
) -> None:
    found = [
        ConvergenceRecord(pass_number=number, completeness_score=number / 10, coherence_score=0.6)
        for number in assessed
    ]
    last = {"completeness_score": 0.75, "coherence_score": 1, "converged": False}
    ended = finished("aborted", passes=passes, convergence=last).model_copy(update={"resumes_at": len(found) + 1})
    write(tmp_path, started(), *found, ended, run="aborted")
    (run,) = list_runs(tmp_path)
    assert (run.passes, run.completeness, run.coherence) == (passes, *listed)


def test_a_pending_question_is_listed_until_decided(runs: Path) -> None:
    writer = JournalWriter(runs / "live.jsonl", "live")
    writer.append(started())
    writer.append(ApprovalRecord(point="pass", state="asked", pass_number=1, digest="d"))
    assert {run.run_id: run.waits_for for run in list_runs(runs)}["live"] == "pass"
    writer.append(RunResumed(options={}, continues_at=2))
    assert {run.run_id: run.waits_for for run in list_runs(runs)}["live"] == "pass"
    writer.append(RunResumed(options={}, continues_at=1))
    assert {run.run_id: run.waits_for for run in list_runs(runs)}["live"] == ""
    writer.append(ApprovalRecord(point="pass", state="asked", pass_number=1, digest="d"))
    writer.append(ApprovalRecord(point="pass", state="decided", pass_number=1, digest="d", decision="approve"))
    assert {run.run_id: run.waits_for for run in list_runs(runs)}["live"] == ""
    writer.close()


def test_a_journal_with_broken_or_missing_lines_near_its_ends_is_marked(runs: Path) -> None:
    good = lines(started(), *[ttl(number) for number in range(400)], finished())
    broken = {
        "whole-one": good,
        "torn-one": [*good, b'{"v":1,"seq":402,"ts'],
        "binary": [*good[:200], *good[200:-3], b"\xff\xfe\n", *good[-3:]],
        "gap": [*good[:5], *good[6:]],
        "gap-at-end": [*good[:-3], *good[-2:]],
        "blank": [good[0], b"\n", *good[1:]],
    }
    for name, parts in broken.items():
        (runs / f"{name}.jsonl").write_bytes(b"".join(parts))
    for _ in range(2):
        marked = {run.run_id for run in list_runs(runs) if run.damaged}
        assert marked == {"binary", "gap", "gap-at-end", "blank"}
