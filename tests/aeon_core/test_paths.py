from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from aeon_core.paths import find_project_root, git_root, leads_to, program, run_command


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


def test_a_command_escapes_every_special_character_of_a_name(tmp_path: Path) -> None:
    assert run_command("show", tmp_path / "a\x1b[2Jb.jsonl") == rf"`aeon-tui show '{tmp_path}/a\x1b[2Jb.jsonl'`"


@pytest.mark.parametrize("name", [".aeon", ".git"])
def test_a_link_that_cannot_be_followed_in_a_folder_above_makes_no_project(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).symlink_to("x" * 300)
    here = tmp_path / "a"
    here.mkdir()
    monkeypatch.chdir(here)
    assert find_project_root(here) == git_root() == here


@pytest.mark.parametrize(
    ("called", "command", "other"),
    [
        ("/x/bin/aeon-tui", "/x/bin/aeon-tui", "/x/bin/system2"),
        ("/x/bin/system2", "/x/bin/aeon-tui", "/x/bin/system2"),
        ("/srv/my project/bin/aeon-tui", "'my project/bin/aeon-tui'", "'my project/bin/system2'"),
        ("/srv/aeon-tui", "./aeon-tui", "./system2"),
        ("./aeon-tui", "./aeon-tui", "./system2"),
        ("/x/aeon_tui/__main__.py", "python -m aeon_tui", "python -m system2"),
        ("/x/system2/__main__.py", "python -m aeon_tui", "python -m system2"),
        ("/x/bin/dask", "aeon-tui", "system2"),
        ("/x/pytest/__main__.py", "aeon-tui", "system2"),
        ("-c", "aeon-tui", "system2"),
    ],
)
def test_a_command_to_paste_calls_a_program_that_is_not_on_path_as_this_one_was_called(
    called: str, command: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(os, "getcwd", lambda: "/srv")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert (program(), program("system2")) == (command, other)
    assert run_command("show", "/runs/r1.jsonl") == f"`{command} show /runs/r1.jsonl`"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert (program(), program("system2")) == ("aeon-tui", "system2")


@pytest.mark.parametrize("called", ["bin/aeon-tui", "/x/bin/aeon-tui"])
def test_a_command_to_paste_is_known_where_the_working_directory_was_deleted(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    assert program() == called


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("link.md", "src/a.md"),
        ("docs/a.md", "src/a.md"),
        ("src/a.md", ""),
        ("./src/../src/a.md", ""),
        ("/project/src/a.md", ""),
        ("/project/link.md", "src/a.md"),
    ],
)
def test_a_link_leads_to_the_file_that_its_diff_changes(path: str, target: str) -> None:
    assert leads_to(path, "--- a/src/a.md\n+++ b/src/a.md\n@@ -0,0 +1 @@\n+a") == target
    assert leads_to(path, "") == ""
