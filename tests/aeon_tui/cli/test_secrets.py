"""A command runs what was sent; what it records, exports and prints as an error holds no secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_tui.cli.main import main
from tests.aeon_tui.cli.conftest import environment, process
from tests.aeon_tui.reports.pages import Page

KEY = "sk-" + "ant-" + "c4n4ry" * 5
PASSWORD = "canary-horse-battery"
RUN = (
    "run",
    "--headless",
    "--json",
    "--single-pass",
    "--model",
    "simulated:default",
    "--tools",
    "files",
    "--tools",
    "shell",
)


def steps_of(*steps: dict[str, Any]) -> str:
    """Write a plan of tool calls; return its file."""
    described = [
        {"step_id": f"s{number}", "description": f"do part {number}", **step} for number, step in enumerate(steps, 1)
    ]
    Path("plan.json").write_text(json.dumps({"goal": "write the settings", "steps": described}))
    return "plan.json"


@pytest.mark.exhaustive
def test_commands_and_files_get_secrets_and_records_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without bubblewrap, commands cannot write to a folder that holds Aeon's own.
    project = tmp_path / "project"
    (project / ".aeon").mkdir(parents=True)
    monkeypatch.chdir(project)
    line = f"connect(password='correct-horse', token='{PASSWORD}', key='{KEY}')"
    plan = steps_of(
        {"tool": "Bash", "arguments": {"command": f'printf %s "{line}" > by_command.py; cat by_command.py'}},
        {"tool": "Write", "arguments": {"file_path": "by_tool.py", "content": line}},
        {"tool": "Read", "arguments": {"file_path": "by_tool.py"}},
    )
    env = environment(CANARY_PASSWORD=PASSWORD)
    allow = ("--allow", "Bash", "--allow", "Write")
    done = process(*RUN, *allow, "--plan", plan, f"use {KEY} and {PASSWORD}", env=env)
    assert done.returncode == 0, done.stderr
    assert Path("by_command.py").read_text() == Path("by_tool.py").read_text() == line
    result = json.loads(done.stdout)
    assert result["steps"][0]["output"]["stdout"] == line
    [journal] = Path(".aeon/runs").glob("*.jsonl")
    shown = process("show", journal.stem, "--json", env=env).stdout
    exports = [process("show", journal.stem, "--export", kind, env=env).stdout for kind in ("html", "md", "json")]
    assert all(exports)
    packed = json.dumps(Page(exports[0]).archive, ensure_ascii=False)
    assert "correct-horse" in packed
    for text in (journal.read_text(), done.stderr, shown, *exports, packed):
        assert PASSWORD not in text
        assert KEY not in text
    assert "password='correct-horse'" in journal.read_text().replace("\\", "")
    assert (
        process("replay", journal.stem, "--check", env=environment(XDG_STATE_HOME=str(tmp_path / "x"))).returncode == 0
    )


def test_an_error_line_holds_no_secret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CANARY_PASSWORD", PASSWORD)

    def fail(_arguments: list[str]) -> int:
        raise UsageError(f"cannot be reached: https://me:secret1@host/ with {PASSWORD} and {KEY}")

    monkeypatch.setattr("aeon_tui.cli.main._dispatch", fail)
    assert main(["runs"]) == 2
    said = capsys.readouterr().err
    assert not [secret for secret in (PASSWORD, KEY, "secret1") if secret in said]
    assert said.count("[redacted:") == 3
