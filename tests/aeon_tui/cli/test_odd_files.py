"""No command hangs on a pipe, a device or an alias bomb, named by a project or on the command line (issue 14)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.aeon_tui.cli.conftest import Cli

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
RUN = ("run", "--headless", "--model", "simulated:default")
NAMED = [
    ("show", "./odd"),
    ("resume", "./odd", "--headless"),
    ("watch", "./odd", "--headless"),
    ("lint", "odd"),
    ("batch", "odd", "--model", "simulated:default"),
    (*RUN, "--plan", "odd", "x"),
    (*RUN, "--criteria", "odd", "x"),
    (*RUN, "--config", "odd", "x"),
]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".aeon").mkdir(exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    return tmp_path


CALLS = """
import contextlib, io, json, sys
from aeon_tui.cli.main import main

for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as told:
        code = main(words)
    print(json.dumps([code, told.getvalue()]), flush=True)
"""


def refusals(*commands: tuple[str, ...]) -> list[str]:
    """Return what commands say that print nothing else and end with exit 2.

    Their process may take long on a busy machine, and not for ever.
    """
    calls = [sys.executable, "-c", CALLS, json.dumps(commands)]
    done = subprocess.run(calls, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=120)
    ends = dict(zip(commands, map(json.loads, done.stdout.splitlines()), strict=True))
    for words, (code, told) in ends.items():
        assert (code, told.count("\n")) == (2, 1), words
    return [told for _, told in ends.values()]


@pytest.mark.exhaustive
def test_a_named_pipe_is_refused() -> None:
    os.mkfifo("odd")
    for words, told in zip(NAMED, refusals(*NAMED), strict=True):
        assert "it is a pipe, not a regular file" in told, words


def test_an_endless_device_is_refused() -> None:
    Path("odd").symlink_to("/dev/zero")
    named = (("show", "./odd"), ("lint", "odd"))
    for words, told in zip(named, refusals(*named), strict=True):
        assert "it is a device, not a regular file" in told, words


def test_a_pattern_that_the_shell_did_not_expand_is_explained(cli: Cli) -> None:
    Path("[a].yml").write_text("{}")
    done = cli("lint", "plans/*.yml")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "no file is named 'plans/*.yml'; a pattern without quotes is" in done.err
    assert cli("lint", "[a].yml").code == 1


def test_a_project_whose_configuration_is_a_pipe_or_a_bomb_hangs_nothing(project: Path) -> None:
    os.mkfifo(project / ".aeon/config.yml")
    assert "it is a pipe" in refusals(("runs",))[0]
    (project / ".aeon/config.yml").unlink()
    (project / ".aeon/config.yml").write_text(BOMB)
    assert "line 1: anchors and aliases are not supported; write the value out" in refusals(("runs",))[0]


def test_a_runs_directory_of_pipes_and_devices_is_an_empty_list(project: Path) -> None:
    runs = project / ".aeon/runs"
    runs.mkdir()
    os.mkfifo(runs / "a.jsonl")
    (runs / "z.jsonl").symlink_to("/dev/zero")
    (runs / ".runs-list").symlink_to("/dev/zero")
    done = subprocess.run(
        [sys.executable, "-m", "aeon_tui", "runs", "--json"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]")


def edited(cli: Cli, command: tuple[str, ...], change: Callable[[dict[str, Any]], None]) -> str:
    """Run a command, change each record of the journal that it wrote, and return the journal's name."""
    assert cli(*command, "--headless").code == 0
    (journal,) = Path(".aeon/runs").glob("*.jsonl")
    records = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for record in records:
        change(record)
    journal.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return str(journal)


@pytest.mark.exhaustive
def test_a_report_of_a_journal_with_fields_of_another_kind_is_made(cli: Cli) -> None:
    def change(record: dict[str, Any]) -> None:
        if record["type"] == "refinement" and record["after"]:
            record["after"][0]["step_id"] = {"a": 1}
        if record["type"] == "llm" and record["state"] == "finished":
            record["response"]["tool_calls"] = 5

    done = cli("show", edited(cli, ("demo",), change), "--export", "html")
    assert (done.code, done.err) == (0, "")


@pytest.mark.exhaustive
def test_a_workflow_with_invalid_settings_is_not_replayed(cli: Cli) -> None:
    def change(record: dict[str, Any]) -> None:
        if record["type"] == "run_started":
            record["workflow"]["settings"]["max_output_tokens"] = -1

    journal = edited(cli, ("workflow", "build it", "--auto-approve", "--model", "simulated:default"), change)
    done = cli("replay", journal, "--check")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    said = "the journal's settings cannot be used: max_output_tokens: Input should be greater than or equal to 1"
    assert said in done.err
