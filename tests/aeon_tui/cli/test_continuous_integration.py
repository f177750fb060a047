"""The pre-commit hook and the GitHub action: their files are sound, and their commands do what they say."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from aeon_core.journal.listing import list_runs
from tests.aeon_tui.cli.conftest import ROOT, Cli, environment

GOOD = {"goal": "add 5 and 10", "steps": [{"step_id": "s1", "description": "add 5 and 10", "tool": "calculator"}]}
BROKEN = {"goal": "add", "steps": [{"step_id": "s1", "description": "add", "tool": "none"}]}


@pytest.fixture
def plans() -> Path:
    folder = Path("plans/deep")
    folder.mkdir(parents=True)
    (folder / "good plan.yml").write_text(json.dumps(GOOD))
    return folder


def steps() -> dict[str, Any]:
    """Return the steps of the action by their name."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        assert set(re.findall(r"inputs\.([\w-]+)", json.dumps(step))) <= set(action["inputs"])
        # An input is no part of a script, for it could hold one.
        assert "${{" not in step["run"]
    return {step["name"]: step for step in action["runs"]["steps"]}


def run_step(name: str, tmp_path: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step as a runner does, with Aeon installed where the first step would put it."""
    command = tmp_path / "temp" / "aeon" / "bin" / "aeon-tui"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m aeon_tui "$@"\n')
    command.chmod(0o755)
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps()[name]["run"]],
        env=environment(RUNNER_TEMP=str(tmp_path / "temp"), **inputs),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_lints_every_plan_that_fits_its_pattern(plans: Path, tmp_path: Path) -> None:
    done = run_step("Lint plans", tmp_path, PLANS="plans/**/*.yml", FAIL_ON="high")
    assert (done.returncode, done.stdout) == (0, f"{plans / 'good plan.yml'}: no issues\n")
    (plans / "broken.yml").write_text(json.dumps(BROKEN))
    assert run_step("Lint plans", tmp_path, PLANS="plans/**/*.yml", FAIL_ON="high").returncode == 1
    nothing = run_step("Lint plans", tmp_path, PLANS="none/*.yml none$(touch${IFS}made).y*", FAIL_ON="high")
    assert (nothing.returncode, Path("made").exists()) == (2, False)


@pytest.mark.exhaustive
def test_the_action_replays_runs_and_fails_on_a_difference(cli: Cli, tmp_path: Path) -> None:
    assert cli("run", "-m", "simulated:default", "add 5 and 10").code == 0
    (run,) = list_runs(Path(".aeon/runs"))
    Path("journals").mkdir()
    recorded = Path(run.path).read_text()
    Path("journals/same.jsonl").write_text(recorded)
    Path("20260101-recorded").write_text(recorded)
    same = run_step("Replay runs", tmp_path, JOURNALS=f"journals/*.jsonl {Path.cwd()}/journals/same.jsonl 2026*")
    assert (same.returncode, same.stdout.count("records are identical")) == (0, 3)
    Path("journals/other.jsonl").write_text(recorded.replace("The sum of 5 and 10 is 15.", "The sum is 16.", 1))
    done = run_step("Replay runs", tmp_path, JOURNALS="journals/*.jsonl")
    assert done.returncode == 1
    assert "::error file=journals/other.jsonl::" in done.stdout
    assert "::error file=journals/same.jsonl" not in done.stdout


def test_the_action_installs_the_named_package_or_itself() -> None:
    install = steps()["Install Aeon"]
    assert install["env"] == {"PACKAGE": "${{ inputs.package || github.action_path }}"}
    assert 'pip install --quiet "$PACKAGE"' in install["run"]


def test_the_action_runs_no_module_of_the_repository(tmp_path: Path) -> None:
    python3 = tmp_path / "bin" / "python3"
    python3.parent.mkdir()
    python3.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@" --without-pip\n')
    python3.chmod(0o755)
    for name in ("venv", "pip", "shutil"):
        Path(f"{name}.py").write_text("print('run from the repository')")
    search = f"{python3.parent}:{os.environ['PATH']}"
    done = run_step("Install Aeon", tmp_path, PACKAGE=str(tmp_path / "none"), PATH=search)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No module named pip" in done.stderr


def test_a_file_name_is_no_command_for_the_runner(tmp_path: Path) -> None:
    Path("::group::").mkdir()
    Path("::group::/a\n::stop-commands::x,line=1\n.jsonl").write_text("{}")
    done = run_step("Replay runs", tmp_path, JOURNALS="*/*.jsonl")
    assert done.returncode == 2
    (command,) = [each for each in done.stdout.splitlines() if each.startswith("::")]
    assert command.startswith("::error file=%3A%3Agroup%3A%3A/a%0A%3A%3Astop-commands%3A%3Ax%2Cline=1%0A.jsonl::")


def test_the_hook_lints_the_given_files(cli: Cli, plans: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language", "files"} <= set(hook)
    program, *words = shlex.split(hook["entry"])
    assert program == "aeon-tui"
    (plans / "broken.yml").write_text(json.dumps(BROKEN))
    files = [str(path) for path in sorted(plans.iterdir())]
    assert cli(*words, files[1]).code == 0
    both = cli(*words, *files)
    assert (both.code, both.out.count(": no issues")) == (1, 1)
    assert [len(report["issues"]) > 0 for report in json.loads(cli(*words, *files, "--json").out)] == [True, False]
    fits = re.compile(hook["files"])
    names = ["plan.yml", "a/my-plan.yaml", "plans/x.json", "airplane.yml", "x.yml"]
    assert [name for name in names if fits.search(name)] == names[:3]
