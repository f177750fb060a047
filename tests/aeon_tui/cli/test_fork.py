"""`aeon-tui fork`: a new run from a pass of another one, from the command line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.aeon_tui.cli.conftest import Cli

RUNS = Path(".aeon/runs")


@pytest.fixture
def parent(cli: Cli) -> Path:
    """The journal of the guided run, of two passes."""
    assert cli("demo", "--headless").code == 0
    (path,) = RUNS.glob("*.jsonl")
    return path


def first_record(path: Path) -> dict[str, Any]:
    with path.open() as lines:
        record: dict[str, Any] = json.loads(next(lines))
    return record


def other_than(parent: Path) -> Path:
    (path,) = [path for path in RUNS.glob("*.jsonl") if path != parent]
    return path


def test_a_fork_is_a_separate_run_that_names_its_parent(cli: Cli, parent: Path) -> None:
    before = parent.read_bytes()
    done = cli(
        "fork", parent.stem, "--pass", "2", "--headless", "--json", "--model", "simulated:default", "--ttl", "44"
    )
    result = json.loads(done.out)
    assert (done.code, result["status"], result["passes"], result["ttl"]["limit"]) == (0, "converged", 2, 44)
    assert (result["model"], result["run_id"]) == ("simulated:default", other_than(parent).stem)
    started = first_record(other_than(parent))
    assert (started["parent"]["run_id"], started["parent"]["pass"]) == (parent.stem, 2)
    assert parent.read_bytes() == before
    assert done.err.splitlines()[0] == f"run {result['run_id']} · simulated:default (simulated)"
    assert cli("replay", result["run_id"], "--check").code == 0


def test_a_fork_of_the_first_pass_repeats_the_whole_run(cli: Cli, parent: Path) -> None:
    done = cli("fork", "last", "--pass", "1", "--headless")
    assert done.code == 0
    assert done.err.splitlines()[-1].startswith("run converged · 2 passes")


def test_a_fork_starts_with_the_edited_plan(cli: Cli, parent: Path) -> None:
    from aeon_core.runs.fork import starting_edit
    from aeon_tui.sessions.approval_edits import plan_yaml

    described = yaml.safe_load(plan_yaml(starting_edit(parent, 2)))
    described["steps"].append({"step_id": "extra", "description": "weigh it all once more", "agent": "llm"})
    Path("edited.yml").write_text(yaml.safe_dump(described))
    done = cli("fork", parent.stem, "--pass", "2", "--plan", "edited.yml", "--headless", "--json")
    steps = {step["step_id"]: step for step in json.loads(done.out)["steps"]}
    assert steps["extra"]["description"] == "weigh it all once more"
    assert steps["extra"]["status"] == "complete"
    assert steps["s1"]["status"] == "complete"


def requirements_of(out: str) -> list[str]:
    return [each["text"] for each in json.loads(out)["convergence"]["requirements"]]


def test_requirements_in_the_plan_override_those_in_a_file(cli: Cli, parent: Path) -> None:
    Path("wanted.txt").write_text("It names the resources.\n\nIt names the errors.\n")
    wanted = ["It names the resources.", "It names the errors."]
    fork = ("fork", parent.stem, "--pass", "2", "--headless", "--json")
    done = cli(*fork, "--requirements", "wanted.txt")
    assert requirements_of(done.out) == wanted
    Path("edit.yml").write_text("requirements: [It is short.]\n")
    done = cli(*fork, "--requirements", "wanted.txt", "--plan", "edit.yml")
    assert requirements_of(done.out) == ["It is short."]
    Path("edit.yml").write_text("requirements: []\n")
    done = cli(*fork, "--plan", "edit.yml")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "'edit.yml' is not a valid plan: requirements: expected a list of one sentence or more" in done.err
    done = cli(*fork, "--requirements", "none.txt")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "none.txt': No such file or directory" in done.err


def test_requirements_are_edited_with_the_plan(
    cli: Cli, parent: Path, at_a_terminal: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("wanted.txt").write_text("It names the resources.\n")
    Path("editor").write_text("#!/bin/sh\nsed -i 's/names the resources/is short/' \"$1\"\n")
    Path("editor").chmod(0o755)
    monkeypatch.setenv("EDITOR", str(Path("editor").absolute()))
    assert cli("fork", parent.stem, "--pass", "2", "--edit", "--requirements", "wanted.txt").code == 5
    assert at_a_terminal[0][1].edit.requirements == ["It is short."]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "choose the pass to start from with --pass N; the run has passes 1 to 2"),
        (["--pass", "two"], "--pass must be a whole number, 1 or more; got 'two'"),
        (["--pass", "0"], "--pass must be a whole number, 1 or more; got '0'"),
        (["--pass", "9"], "has no pass 9; a fork can start with one of the passes 1 to 2"),
        (["--pass", "2", "--ttl", "3"], "a TTL of 3 is too small"),
        (["--pass", "2", "--ttl", "x"], "--ttl must be a whole number of cycles, 0 or more; got 'x'"),
        (["--pass", "2", "--plan", "none.yml"], "cannot read 'none.yml'"),
        (["--pass", "2", "--plan", "bad.yml"], "'bad.yml' is not a valid plan: steps: missing"),
        (["--pass", "2", "--plan", "x.yml", "--edit"], "not allowed with argument"),
        (["--pass", "2", "--edit"], "--edit needs a terminal; without one, give the edited plan with --plan FILE"),
        (["--pass", "2", "--model", "nobody:x"], "has an unknown provider"),
        (["--pass", "2", "--runs-dir", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_an_error_is_one_line_and_exit_2(cli: Cli, parent: Path, arguments: list[str], said: str) -> None:
    Path("bad.yml").write_text("goal: g\n")
    done = cli("fork", str(parent), *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert said in done.err
    assert list(RUNS.glob("*.jsonl")) == [parent]


def test_fork_without_a_pass_names_the_existing_one(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    assert cli("fork", "last").err.endswith("; the run has pass 1\n")


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """A person at a terminal, and an app that only notes how it was opened."""
    opened: list[Any] = []

    def run_app(runs_dir: Path, work: Any = None, today: Any = None, prepare: Any = None) -> int:
        opened.append((runs_dir, work))
        return 5

    monkeypatch.setattr("aeon_tui.app.run_app", run_app)
    monkeypatch.setattr("aeon_tui.cli.output.has_screen", lambda: True)
    monkeypatch.setattr("aeon_tui.cli.fork.has_screen", lambda: True)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return opened


def test_at_a_terminal_the_app_opens_on_the_fork(cli: Cli, parent: Path, at_a_terminal: list[Any]) -> None:
    done = cli("fork", parent.stem, "--pass", "2", "--budget", "3")
    assert (done.code, done.out, done.err) == (5, "", "")
    ((directory, work),) = at_a_terminal
    assert (directory, work.path.name, work.pass_number) == (RUNS.absolute(), parent.name, 2)
    assert (work.config.budget, work.config.model) == (3.0, "simulated:missing-tool")
    assert work.config.approve == ["pass", "tool"]


@pytest.mark.parametrize(
    ("script", "steps"), [("sed -i 's/for invoices together/for bills together/' \"$1\"", True), ("true", False)]
)
def test_a_plan_is_edited_first(
    cli: Cli, parent: Path, at_a_terminal: list[Any], monkeypatch: pytest.MonkeyPatch, script: str, steps: bool
) -> None:
    Path("editor").write_text(f"#!/bin/sh\n{script}\n")
    Path("editor").chmod(0o755)
    monkeypatch.setenv("EDITOR", str(Path("editor").absolute()))
    assert cli("fork", parent.stem, "--pass", "2", "--edit").code == 5
    ((_, work),) = at_a_terminal
    assert (work.edit is not None) is steps
    if steps:
        assert "a REST API for bills together" in str(work.edit.plan)
    assert not list(Path(tempfile.gettempdir()).glob("aeon-plan-*"))


def test_an_edited_plan_is_kept_if_the_fork_cannot_start(
    cli: Cli, parent: Path, at_a_terminal: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    done = cli("fork", parent.stem, "--pass", "2", "--edit", "--ttl", "3")
    (kept,) = Path(tempfile.gettempdir()).glob("aeon-plan-*")
    assert done.code == 2
    assert done.err.endswith(f"raise it with --ttl; the edited plan is in {str(kept)!r}\n")
    assert at_a_terminal == []


def test_a_pass_number_of_any_length_is_one_line(cli: Cli, parent: Path) -> None:
    done = cli("fork", parent.stem, "--pass", "9" * 5_000)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"aeon-tui: --pass must be a whole number, 1 or more; got {'9' * 40!r}\n"


@pytest.mark.parametrize("number", ['"x"', "null", "[]"])
def test_damaged_phases_cannot_be_forked(cli: Cli, parent: Path, number: str) -> None:
    text = parent.read_text()
    parent.write_text(text.replace('"type":"phase","pass":2,', f'"type":"phase","pass":{number},'))
    assert parent.read_text() != text
    assert cli("fork", parent.stem).err.endswith("the pass to start from with --pass N; the run has pass 1\n")
