"""The transcript: the journal's envelope, appended as things happen, and never in the way (REQ-125, REQ-126)."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.lock import is_locked
from aeon_core.journal.reader import read_records
from aeon_core.journal.writer import JournalWriter
from aeon_core.redaction import redact_text
from system2.entries import AgentSkipped, GateDecided, Notice, WorkflowStart
from system2.transcript import Transcript
from tests.system2.kit import CONTRACT, Bench, done, uses

START = WorkflowStart(task="build it", config={}, model="simulated:default")


def notice(message: str = "look") -> Notice:
    return Notice(kind="warning", message=message)


def made(folder: Path, warned: list[str] | None = None, lines: list[bytes] | None = None) -> Transcript:
    return Transcript(
        folder, (warned if warned is not None else []).append, lines.append if lines is not None else None
    )


def test_every_line_begins_with_the_envelope_of_the_journal(tmp_path: Path) -> None:
    transcript = made(tmp_path)
    transcript.write(START)
    transcript.write(notice("n" * 1000))
    assert transcript.path is not None
    lines = [json.loads(line) for line in transcript.path.read_text().splitlines()]
    assert [list(line)[:5] for line in lines] == [["v", "seq", "ts", "run", "type"]] * 3
    assert [(line["seq"], line["type"]) for line in lines] == [(0, "workflow_start"), (1, "text"), (2, "note")]
    assert {line["run"] for line in lines} == {transcript.path.stem}
    assert [record["type"] for record in read_records(transcript.path)] == ["workflow_start", "text", "note"]


def test_the_file_is_named_by_the_second_and_private(tmp_path: Path) -> None:
    transcript = made(tmp_path / "runs")
    assert transcript.path is not None
    assert transcript.path.parent == tmp_path / "runs"
    assert len(transcript.run_id) == len("20260201-143022")
    assert stat.S_IMODE(transcript.path.stat().st_mode) == 0o600


def test_a_folder_that_is_made_is_kept_out_of_git_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    made(tmp_path / "a" / "runs").close()
    assert (tmp_path / "a" / "runs" / ".gitignore").read_text() == "*\n"
    (tmp_path / "b").mkdir()
    made(tmp_path / "b").close()
    assert not (tmp_path / "b" / ".gitignore").exists()


def test_two_runs_of_one_second_are_kept_apart(tmp_path: Path) -> None:
    many = [made(tmp_path) for _ in range(5)]
    assert len({each.path for each in many}) == 5
    for each in many:
        each.write(START)
    assert len(list(tmp_path.glob("*.jsonl"))) == 5
    assert sum("-" in each.run_id[15:] for each in many) >= 3


def test_an_entry_is_in_the_file_as_soon_as_it_was_written(tmp_path: Path) -> None:
    transcript = made(tmp_path)
    assert transcript.path is not None
    for number in range(1, 4):
        transcript.write(START if number == 1 else notice())
        assert len(transcript.path.read_text().splitlines()) == number


def test_a_workflow_that_is_alive_holds_the_lock_of_its_file(tmp_path: Path) -> None:
    transcript = made(tmp_path)
    transcript.write(START)
    assert transcript.path is not None
    fd = os.open(transcript.path, os.O_RDONLY)
    try:
        assert is_locked(fd)
        transcript.close()
        assert not is_locked(fd)
    finally:
        os.close(fd)


@pytest.mark.parametrize("kind", ["a file stands there", "no rights"])
def test_a_folder_that_cannot_be_written_warns_and_listeners_hear_all(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "runs"
    if kind == "no rights" and os.geteuid() == 0:
        # Root may write everywhere; a folder below a file cannot be made by anybody.
        (tmp_path / "file").write_text("")
        folder = tmp_path / "file" / "runs"
    else:
        folder.write_text("")
    warned: list[str] = []
    lines: list[bytes] = []
    transcript = made(folder, warned, lines)
    transcript.write(START)
    transcript.write(notice())
    assert transcript.path is None
    assert len(warned) == 1
    assert warned[0].startswith("cannot write the transcript; the work continues: ")
    assert [json.loads(line)["type"] for line in lines] == ["workflow_start", "note"]


def test_a_disk_that_gets_full_warns_once_for_each_agent_and_the_work_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, uses(("Write", {"file_path": "a", "content": "x"})), done(), done())
    bench.transcript.write(START)
    monkeypatch.setattr(JournalWriter, "_write", _no_space(JournalWriter._write, after=4))
    assert bench.session().run(CONTRACT).completion is not None
    assert bench.session(name="executor").run(CONTRACT).completion is not None
    assert (tmp_path / "a").read_text() == "x"
    warnings = [line for line in bench.logged if line.startswith("cannot write the transcript")]
    assert len(warnings) == 2
    assert "No space left on device" in warnings[0]
    assert bench.transcript.path is None
    heard = [line["type"] for line in bench.lines if line["type"] != "text"]
    exchange = ["api_request", "api_response", "tool_exec"]
    works = [["agent_start", *exchange * count, "agent_complete"] for count in (2, 1)]
    assert heard == ["workflow_start", *works[0], *works[1]]


def _no_space(write: object, after: int) -> object:
    left = [after]

    def full(self: JournalWriter, line: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise self._stopped("cannot be written: No space left on device")
        write(self, line)  # type: ignore[operator]

    return full


def test_a_file_that_is_deleted_is_missed_where_a_resume_would_need_it(tmp_path: Path) -> None:
    warned: list[str] = []
    transcript = made(tmp_path, warned)
    transcript.write(START)
    assert transcript.path is not None
    transcript.path.unlink()
    transcript.write(notice())
    assert warned == []
    transcript.write(GateDecided(gate=0, decision="approve"))
    assert len(warned) == 1
    assert "was deleted" in warned[0]
    assert transcript.path is None


def test_keys_are_redacted(tmp_path: Path) -> None:
    key = "gh" + "p_" + "a1" * 18
    transcript = made(tmp_path)
    transcript.write(START.model_copy(update={"task": f"use {key}"}))
    assert transcript.path is not None
    assert key not in transcript.path.read_text()


def test_a_key_in_the_conversation_reaches_the_model_and_not_the_transcript(tmp_path: Path) -> None:
    key = "gh" + "p_" + "b2" * 18
    bench = Bench(tmp_path, uses(("Glob", {"pattern": "*"})), done())
    bench.session().run(replace(CONTRACT, objective=f"use {key}"))
    assert key in bench.requests[1].prompt
    assert bench.transcript.path is not None
    assert key not in bench.transcript.path.read_text()
    assert f"use {redact_text(key)}" in bench.transcript.path.read_text()


def test_what_has_no_form_as_json_is_told_and_left_out(tmp_path: Path) -> None:
    warned: list[str] = []
    transcript = made(tmp_path, warned)
    transcript.write(START)
    transcript.write(notice("\ud800"))
    transcript.write(notice("sound"))
    assert transcript.path is not None
    assert [record["type"] for record in read_records(transcript.path)] == ["workflow_start", "note"]
    assert len(warned) == 1


def test_a_transcript_is_gone_on_with_behind_its_last_whole_line(tmp_path: Path) -> None:
    first = made(tmp_path)
    first.write(START)
    first.write(notice("x" * 500))
    first.close()
    assert first.path is not None
    with first.path.open("ab") as file:
        file.write(b'{"v":1,"seq":3,"ts":"20')
    seen: list[str] = []
    second = Transcript.reopened(first.path, seen.append, on_record=lambda record: seen.append(record["type"]))
    second.write(notice("x" * 500))
    second.write(AgentSkipped(agent="executor", reason="none"))
    assert second.run_id == first.run_id
    assert seen == ["workflow_start", "text", "note"]
    records = list(read_records(first.path))
    assert [record["type"] for record in records] == [*seen, "journal_recovered", "note", "agent_skipped"]
    assert [record["seq"] for record in records] == list(range(6))
    assert records[4]["message"] == "x" * 500


def test_a_transcript_that_is_being_written_is_not_gone_on_with(tmp_path: Path) -> None:
    transcript = made(tmp_path)
    transcript.write(START)
    assert transcript.path is not None
    with pytest.raises(UsageError, match="is being written by"):
        Transcript.reopened(transcript.path, lambda _: None)


def test_it_grows_with_what_is_new_and_not_with_the_conversation(tmp_path: Path) -> None:
    def size(folder: Path, turns: int) -> int:
        folder.mkdir()
        bench = Bench(folder, *[uses(("Glob", {"pattern": "*.none"}))] * turns, done())
        bench.session().run(CONTRACT)
        assert bench.transcript.path is not None
        return bench.transcript.path.stat().st_size

    short, long = size(tmp_path / "short", 20), size(tmp_path / "long", 80)
    assert long < 4 * short


def test_an_agents_work_is_told_from_prompt_to_completion(tmp_path: Path) -> None:
    bench = Bench(tmp_path, uses(("Glob", {"pattern": "*"})), done("found nothing"))
    bench.session("Glob", prompt="You look.").run(CONTRACT)
    types = [record["type"] for record in bench.records() if record["type"] != "text"]
    exchange = ["api_request", "api_response", "tool_exec"]
    assert types == ["agent_start", *exchange, *exchange, "agent_complete"]
    start, *_, end = [record for record in bench.records() if record["type"] != "text"]
    assert (start["agent"], start["system"], start["tools"]) == (
        "spec-coordinator",
        "You look.",
        ["Glob", "signal_completion"],
    )
    assert start["contract"] == CONTRACT.as_dict()
    assert end["completion"] == {"status": "success", "files_changed": [], "summary": "found nothing", "blockers": []}
    assert end["cost"]["api_calls"] == 2
