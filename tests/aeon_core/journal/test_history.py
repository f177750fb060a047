from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.history import open_end, open_history, open_run
from aeon_core.journal.listing import find_run, list_runs
from aeon_core.journal.records import LLMRecord, PhaseRecord, Record, StepRecord
from aeon_core.journal.writer import JournalWriter
from tests.aeon_core.journal.build import (
    RUN_ID,
    finished,
    lines,
    pass_record,
    repair,
    started,
    text,
    ttl,
    whole_run,
    write,
)


def test_a_history_holds_task_configuration_passes_result_and_statistics(tmp_path: Path) -> None:
    history = open_history(write(tmp_path, *whole_run()))

    assert history.execution_id == RUN_ID
    assert history.task_input == "calculate the sum of 5 and 10"
    assert history.configuration == {"ttl": 50, "model": "simulated:default"}
    assert [each.pass_number for each in history.passes] == [1]
    assert history.passes[0].execution_results["answer"] == "The sum is 15."
    assert history.final_result is not None
    assert history.final_result.status == "completed"
    statistics = history.overall_statistics
    assert (statistics.total_passes, statistics.total_refinements, statistics.convergence_achieved) == (1, 0, False)
    assert statistics.total_time == pytest.approx(27.000027)
    assert statistics.total_repairs == 1


def test_refinements_of_all_passes_are_counted(tmp_path: Path) -> None:
    refined = pass_record(2, refinement_changes=[{"type": "step_add"}, {"type": "step_modify"}])
    path = write(tmp_path, started(), pass_record(1), refined, finished("converged", converged=True))
    statistics = open_history(path).overall_statistics
    assert (statistics.total_passes, statistics.total_refinements, statistics.convergence_achieved) == (2, 2, True)


def test_an_interrupted_run_has_no_result_and_one_being_written_is_running(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run()[:-1])
    view, history = open_run(path)
    assert (view.status, history.final_result) == ("interrupted", None)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert open_run(path)[0].status == open_end(path)[0].status == "running"
        assert list_runs(tmp_path)[0].status == "running"
    assert open_end(path)[0].status == list_runs(tmp_path)[0].status == "interrupted"
    assert open_end(write(tmp_path, *whole_run()))[0].status == "completed"


def test_a_run_of_a_living_writer_is_listed_as_running(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path / "r1.jsonl", "r1")
    assert list_runs(tmp_path) == []
    writer.append(started())
    assert [run.status for run in list_runs(tmp_path)] == ["running"]
    writer.append(ttl(1))
    writer.close()
    assert [run.status for run in list_runs(tmp_path)] == ["interrupted"]


def test_damage_is_reported_and_the_rest_of_the_history_is_kept(tmp_path: Path) -> None:
    content = lines(*whole_run())
    content[5] = b"{broken\n"
    bad_pass = content[-2].replace(b'"pass_number":1', b'"pass_number":"one"')
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join([*content[:-2], bad_pass, content[-1]]))
    view, history = open_run(path)
    assert view.damage[0].startswith("line 6: broken")
    assert view.damage[-1] == "line 27: pass.pass_number: Input should be a valid integer"
    assert history.passes == []
    assert history.final_result is not None


def test_a_prefix_of_several_runs_is_refused_with_the_first_three(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, *whole_run(), run=f"r{number}")
    with pytest.raises(UsageError, match=r"^'r' matches 3 runs \(r1, r2, r3\); use a longer prefix$"):
        find_run("r", tmp_path)
    write(tmp_path, *whole_run(), run="r4")
    with pytest.raises(UsageError, match=r"^'r' matches 4 runs \(r1, r2, r3, …\); use a longer prefix$"):
        find_run("r", tmp_path)


def test_a_name_longer_than_any_file_name_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^no run 'r+' in '.*'; see `aeon-tui runs`$"):
        find_run("r" * 300, tmp_path)


def test_runs_are_listed_newest_first_with_their_outcome(tmp_path: Path) -> None:
    long, reference = text("design a REST API " * 50)
    write(tmp_path, *whole_run(), run="20261120-093000-aaaaaa")
    unfinished = lines(long, started(task="X"), ttl(3), pass_record(1), repair(), run="20261121-093000-bbbbbb")
    unfinished[1] = unfinished[1].replace(b'"X"', f'{{"$text":"{reference["$text"]}"}}'.encode())
    (tmp_path / "20261121-093000-bbbbbb.jsonl").write_bytes(
        b"".join(unfinished).replace(b"2026-11-20T", b"2026-11-21T")
    )

    new, old = list_runs(tmp_path)

    assert old.as_dict() == {
        "run_id": "20261120-093000-aaaaaa",
        "task": "calculate the sum of 5 and 10",
        "status": "completed",
        "model": "simulated:default",
        "passes": 1,
        "cost_usd": 0.0,
        "started": "2026-11-20T09:30:00.000000Z",
        "path": str(tmp_path / "20261120-093000-aaaaaa.jsonl"),
    }
    assert (new.task, new.status, new.passes) == ("design a REST API " * 50, "interrupted", 1)


def test_listing_reads_only_the_ends_of_a_file(tmp_path: Path) -> None:
    content = lines(*([started()] + [ttl(n % 50) for n in range(5_000)] + [finished()]))
    for place in range(100, 3_000):
        content[place] = b"#" * (len(content[place]) - 1) + b"\n"
    (tmp_path / "r.jsonl").write_bytes(b"".join(content))
    assert [run.status for run in list_runs(tmp_path)] == ["completed"]


def test_a_directory_full_of_foreign_files_has_no_runs(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "binary.jsonl").write_bytes(os.urandom(5_000))
    (tmp_path / "other.jsonl").write_text('{"level": "info"}\n')
    (tmp_path / "odd.jsonl").write_bytes(b'{"v":1,"seq":0,"ts":"t","run":"r","type":"ttl"}\n')
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert list_runs(tmp_path) == []


def test_a_missing_directory_has_no_runs_and_a_file_is_refused(tmp_path: Path) -> None:
    assert list_runs(tmp_path / "none") == []
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="Not a directory; choose another"):
        list_runs(tmp_path / "file")


def test_a_run_is_found_by_id_prefix_path_and_last(tmp_path: Path) -> None:
    old = write(tmp_path, *whole_run(), run="20261119-000000-aaaaaa")
    new = write(tmp_path, *whole_run(), run="20261120-000000-bbbbbb")
    new.write_bytes(new.read_bytes().replace(b"2026-11-20T", b"2026-11-22T"))
    assert find_run("20261119-000000-aaaaaa", tmp_path) == old
    assert find_run("20261120", tmp_path) == new
    assert find_run("last", tmp_path) == new
    assert find_run(str(old), tmp_path / "elsewhere") == old
    assert find_run(old) == old


def test_an_id_that_is_the_beginning_of_another_is_found(tmp_path: Path) -> None:
    first = write(tmp_path, *whole_run(), run="run")
    write(tmp_path, *whole_run(), run="run-two")
    assert find_run("run", tmp_path) == first


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("2026", "matches 2 runs"),
        ("nothing", "no run 'nothing' in"),
        ("", "no run '' in"),
        ("../secret", "does not exist"),
        ("*", "no run"),
    ],
)
def test_an_unknown_or_ambiguous_name_is_refused(tmp_path: Path, name: str, reason: str) -> None:
    write(tmp_path, *whole_run(), run="20261119-000000-aaaaaa")
    write(tmp_path, *whole_run(), run="20261120-000000-bbbbbb")
    with pytest.raises(UsageError, match=reason.replace("*", ".")):
        find_run(name, tmp_path)


def test_the_refusal_of_a_file_without_its_folder_shows_how_to_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("junk").touch()
    Path("folder").mkdir()
    with pytest.raises(UsageError, match=r"no run 'junk' in '.*'; the file of that name is '\./junk'$"):
        find_run("junk", tmp_path)
    for name in ("folder", "n" * 300):
        with pytest.raises(UsageError, match=r"see `aeon-tui runs`$"):
            find_run(name, tmp_path)


def test_last_without_any_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runs in"):
        find_run("last", tmp_path)


def test_last_among_runs_of_another_user_says_why_none_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, os.strerror(13))

    write(tmp_path, *whole_run(), run="20260101-000000-aaaaaa")
    path = write(tmp_path, *whole_run(), run="20260102-000000-bbbbbb")
    for module in ("listing", "reader"):
        monkeypatch.setattr(f"aeon_core.journal.{module}.open_regular", refuse)
    with pytest.raises(UsageError, match=rf"cannot read the journal '{path}': Permission denied"):
        find_run("last", tmp_path)


def test_last_on_a_disk_that_fails_names_the_run_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = write(tmp_path, *whole_run())
    for name in ("read", "pread"):
        monkeypatch.setattr(os, name, fail)
    with pytest.raises(OSError, match="Input/output error") as failed:
        find_run("last", tmp_path)
    assert failed.value.filename == str(path)


def test_the_default_directory_is_the_configured_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine", *whole_run())
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "mine"))
    assert [run.run_id for run in list_runs()] == [RUN_ID]
    assert open_history("last").execution_id == RUN_ID


@pytest.mark.parametrize(
    ("number", "old", "new", "told"),
    [
        (2, b'"limit":50', b'"limit":"q"', "line 2: ttl.limit: Input should be a valid integer"),
        (3, b'"pass":1', b'"pass":"x"', "line 3: phase.pass: Input should be a valid integer"),
        (12, b'"running"', b'"jogging"', "line 12: step.status: Input should be 'pending', 'running'"),
        (12, b'"step_id":"s1"', b'"step_id":["s1"]', "line 12: step.step_id: Input should be a valid string"),
        (17, b'"step_id":"s2",', b"", "line 17: step.step_id: Field required"),
    ],
)
def test_damaged_fields_are_reported_by_line_and_reading_continues(
    tmp_path: Path, number: int, old: bytes, new: bytes, told: str
) -> None:
    content = lines(*whole_run())
    assert old in content[number - 1]
    content[number - 1] = content[number - 1].replace(old, new)
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(content))
    view, history = open_run(path)
    assert [line[: len(told)] for line in view.damage] == [told]
    assert history.final_result is not None
    assert open_run(path, None, 1)[1].passes == history.passes


def test_unknown_types_and_fields_are_not_damage(tmp_path: Path) -> None:
    content = lines(*whole_run())
    content[1] = content[1].replace(b'"limit":50', b'"limit":50,"of_a_later_version":[1]')
    content[2] = content[2].replace(b'"type":"phase"', b'"type":"of_a_later_version"')
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(content))
    assert open_run(path)[0].damage == []


def two_passes() -> list[Record]:
    """Return the records of a run whose second pass does a third step, after a repair and two calls in the first."""
    first = whole_run()[:-3]
    again = {"pass_number": 2}
    second: list[Record] = [
        PhaseRecord(phase="execute", state="started", **again),
        StepRecord(step_id="s4", status="running", **again),
        LLMRecord(call_id="c9", state="started", attempt=1, purpose="reason", step_id="s4", **again),
        LLMRecord(
            call_id="c9",
            state="finished",
            attempt=1,
            purpose="reason",
            step_id="s4",
            usage={"input_tokens": 100, "output_tokens": 9},
            cost_usd=0.5,
            **again,
        ),
        StepRecord(step_id="s4", status="complete", mode="llm", output={"text": "done anew"}, **again),
        pass_record(2),
        finished("converged", converged=True),
    ]
    return [*first, pass_record(1, execution_results={"answer": "A first answer."}), *second]


def test_one_pass_of_a_run_holds_what_belongs_to_it(tmp_path: Path) -> None:
    path = write(tmp_path, *two_passes())
    view, history = open_run(path, None, 1)
    assert list(view.steps) == ["s1", "s2", "s3"]
    assert (len(view.repairs), view.usage, view.cost_usd) == (1, {"input_tokens": 7, "output_tokens": 3}, None)
    assert (view.status, view.result) == ("converged", None)
    assert [each.pass_number for each in history.passes] == [1]
    assert {line.type for line in view.log} == {
        "phase",
        "llm",
        "plan",
        "ttl",
        "step",
        "tool",
        "memory",
        "supervisor",
        "pass",
    }

    view, history = open_run(path, None, 2)
    assert list(view.steps) == ["s4"]
    assert (view.repairs, view.usage, view.cost_usd) == ([], {"input_tokens": 100, "output_tokens": 9}, 0.5)
    assert view.result is not None
    assert [line.type for line in view.log] == ["phase", "step", "llm", "llm", "step", "pass"]
    assert [each.pass_number for each in history.passes] == [2]
    assert history.overall_statistics.total_passes == 2


def test_a_missing_pass_is_refused_with_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"the run '{RUN_ID}' has no pass 3; there are the passes 1, 2$"):
        open_run(write(tmp_path, *two_passes()), None, 3)
    with pytest.raises(UsageError, match=r"has no pass 2; there is pass 1$"):
        open_run(write(tmp_path, *whole_run()[:12]), None, 2)
    with pytest.raises(UsageError, match=r"has no pass 1; no pass has started$"):
        open_run(write(tmp_path, started()), None, 1)


FOREIGN = b'{"v":1,"seq":0,"ts":"2026-11-20T09:30:00Z","run":"r","type":"run_started","task":"t","model":"m"}\n'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"run":"r"', b'"run":5'),
        (b'"task":"t"', b'"task":{"a":1}'),
        (b'"model":"m"', b'"model":null'),
        (b"2026-11-20T09:30:00Z", b"x"),
        (b"2026-11-20T09:30:00Z", b"2026-11-20"),
    ],
)
def test_a_foreign_run_started_record_is_not_a_run(tmp_path: Path, old: bytes, new: bytes) -> None:
    (tmp_path / "r.jsonl").write_bytes(FOREIGN)
    assert [run.run_id for run in list_runs(tmp_path)] == ["r"]
    (tmp_path / "r.jsonl").write_bytes(FOREIGN.replace(old, new))
    assert list_runs(tmp_path) == []
    with pytest.raises(UsageError, match="no runs in"):
        find_run("last", tmp_path)


def test_a_link_that_leads_in_a_circle_hides_no_run(tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    path = write(tmp_path, *whole_run())
    assert [run.run_id for run in list_runs(tmp_path)] == [path.stem]


def test_foreign_files_do_not_make_a_prefix_ambiguous(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run(), run="20261121-093000-aaaaaa")
    (tmp_path / "20261121-notes.jsonl").write_text('{"hello": 1}\n')
    assert find_run("20261121", tmp_path) == path
    write(tmp_path, *whole_run(), run="20261121-093000-bbbbbb")
    with pytest.raises(UsageError, match="matches 2 runs"):
        find_run("20261121", tmp_path)


def test_a_renamed_journal_is_listed_under_the_name_that_finds_it(tmp_path: Path) -> None:
    path = write(tmp_path, *whole_run()).rename(tmp_path / "kept.jsonl")
    assert [run.run_id for run in list_runs(tmp_path)] == ["kept"]
    assert find_run("kept", tmp_path) == path
