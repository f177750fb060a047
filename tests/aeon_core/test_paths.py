from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.paths import run_command


def test_a_command_names_a_run_in_the_runs_directory_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "runs"))
    assert run_command("show", tmp_path / "runs" / "r1.jsonl") == "`aeon-tui show r1`"
    monkeypatch.chdir(tmp_path)
    assert run_command("decide", Path("runs/a b.jsonl"), "approve") == "`aeon-tui decide 'a b' approve`"


def test_a_command_names_a_run_elsewhere_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "runs"))
    assert run_command("resume", tmp_path / "other" / "r1.jsonl") == f"`aeon-tui resume {tmp_path}/other/r1.jsonl`"
    monkeypatch.setenv("AEON_RUNS_DIR", "~nobody-there/runs")
    assert run_command("resume", tmp_path / "r1.jsonl") == f"`aeon-tui resume {tmp_path}/r1.jsonl`"


def test_a_command_hides_no_character_of_a_name(tmp_path: Path) -> None:
    assert run_command("show", tmp_path / "a\x1b[2Jb.jsonl") == rf"`aeon-tui show '{tmp_path}/a\x1b[2Jb.jsonl'`"
