from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from aeon_core.journal.writer import JournalWriter
from aeon_tui.cli.main import main
from tests.aeon_core.journal.build import finished, started, write
from tests.aeon_tui.cli.conftest import Cli

RUNS = Path(".aeon/runs")


@pytest.fixture(autouse=True)
def _three_runs() -> None:
    for number, run in enumerate(("run-1", "run-2", "run-10")):
        write(RUNS, started(task=f"task {number}"), finished(), run=run)
    (RUNS / "run-1.inbox").touch()
    (RUNS / "run-1.torn-0").touch()


def left() -> list[str]:
    return sorted(path.name for path in RUNS.iterdir())


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_the_question_describes_the_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr("aeon_tui.cli.runs.can_answer", lambda: True)
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert main(["delete", "run-1"]) == code
    asked = capsys.readouterr().err
    assert "  task 0\nDelete 1 run? This cannot be undone. [y/N]\n" in asked
    assert asked.endswith("deleted run-1\n" if code == 0 else "nothing was deleted\n")
    assert len(left()) == (2 if code == 0 else 5)


def test_several_runs_are_deleted_once_each_with_their_files(cli: Cli) -> None:
    done = cli("delete", "run-1", str(RUNS / "run-1.jsonl"), "run-2", "--yes")
    assert (done.code, done.out, done.err) == (0, "", "deleted run-1\ndeleted run-2\n")
    assert left() == ["run-10.jsonl"]
    assert cli("delete", "last", "--yes").err == "deleted run-10\n"


def test_a_file_that_is_not_a_journal_is_not_deleted(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("precious")
    done = cli("delete", str(notes), "--yes")
    assert (done.code, notes.read_text()) == (2, "precious")
    assert done.err == f"aeon-tui: {str(notes)!r} is not a run's <run_id>.jsonl file, so it is not deleted\n"


def test_a_copied_transcript_is_deleted_alone(cli: Cli, tmp_path: Path) -> None:
    first = {"v": 1, "seq": 0, "ts": "2026-11-01T12:00:00.000000Z", "run": "t", "type": "workflow_start"}
    copy = tmp_path / "t.jsonl"
    copy.write_text(json.dumps({**first, "task": "t", "model": "m", "journal": "run-1"}) + "\n")
    before = left()
    assert cli("delete", str(copy), "--yes").err == "deleted t\n"
    assert (copy.exists(), left()) == (False, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run-1"], "no terminal to ask on; add --yes"),
        (["run-2", "nope", "--yes"], "no run 'nope' in"),
        (["run", "--yes"], "'run' matches 3 runs"),
        (["run-10", "run-2", "run-", "--yes"], "matches 3 runs"),
        (["run-2", "run-10", "live", "--yes"], "the run 'live' is still running"),
        (["liv", "--yes"], "with --yes, name the run in full: live"),
    ],
)
def test_nothing_is_deleted_if_one_run_cannot_be(cli: Cli, arguments: list[str], message: str) -> None:
    writer = JournalWriter(RUNS / "live.jsonl", "live")
    writer.append(started())
    try:
        before = left()
        done = cli("delete", *arguments)
        assert (done.code, done.err.count("\n"), left()) == (2, 1, before)
        assert message in done.err
    finally:
        writer.close()


def test_deleting_a_link_keeps_its_target(cli: Cli, tmp_path: Path) -> None:
    kept = write(tmp_path / "kept", started(), finished(), run="kept")
    (RUNS / "link.jsonl").symlink_to(kept)
    (RUNS / "link.inbox").symlink_to(kept)
    assert cli("delete", "link", "--yes").code == 0
    assert kept.exists()
    assert "link.jsonl" not in left()
