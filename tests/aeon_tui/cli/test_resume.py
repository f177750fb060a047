"""`aeon-tui resume`: a run continues from the command line, and reports what it did."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core import ApprovalDecision, Orchestrator
from aeon_core.journal.writer import JournalWriter
from aeon_core.runs.fork import forked_config
from tests.aeon_tui.cli.conftest import Cli

RUNS = Path(".aeon/runs")
TASK = "design a REST API for invoices"


def expired(cli: Cli) -> Path:
    """Return the journal of a run whose cycles were spent."""
    assert cli("run", "--headless", "--ttl", "7", "--model", "simulated:default", TASK).code == 5
    (path,) = RUNS.glob("*.jsonl")
    return path


def test_an_expired_run_continues_with_more_cycles(cli: Cli) -> None:
    path = expired(cli)
    done = cli("resume", "last", "--ttl", "40", "--durability", "full")
    assert done.code == 0
    assert "Answer (simulated model)\nA REST API for invoices" in done.out
    assert done.err.splitlines()[-1].startswith("run converged · 2 passes")
    assert cli("replay", path.stem, "--check").code == 0
    (listed,) = json.loads(cli("runs", "--json").out)
    assert (listed["status"], listed["passes"]) == ("converged", 2)
    assert [each["pass_number"] for each in json.loads(cli("show", "last", "--json").out)["passes"]] == [1, 2]


def test_a_run_cut_off_continues_and_gives_the_result_as_json(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    (path,) = RUNS.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    done = cli("resume", path.stem, "--json")
    result = json.loads(done.out)
    assert (done.code, result["status"], result["answer"]) == (0, "converged", "The sum of 5 and 10 is 15.")
    assert list(RUNS.glob("*.torn-1"))


def test_a_run_that_continues_with_another_model_is_shown_with_it(cli: Cli) -> None:
    expired(cli)
    assert cli("resume", "last", "--ttl", "40", "--model", "simulated:muddled").code in (0, 5)
    assert "model    simulated:muddled (simulated)" in cli("show", "last").out


@pytest.mark.parametrize("ttl", ["6", "9"])
def test_an_overridden_model_is_kept_for_the_next_resume(cli: Cli, ttl: str) -> None:
    expired(cli)
    assert cli("resume", "last", "--ttl", ttl, "--model", "simulated:muddled").code == 5
    assert cli("resume", "last", "--ttl", "40").code in (0, 5)
    assert "model    simulated:muddled (simulated)" in cli("show", "last").out
    (path,) = RUNS.glob("*.jsonl")
    assert forked_config(path).model == "simulated:muddled"
    assert cli("replay", "last", "--check").code == 0


def test_an_overridden_judge_is_kept_and_known_tools_need_no_consent(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    run = ("run", "--headless", "-m", "simulated:default", "--tools", "files", "--ttl", "1", "add 5 and 10")
    assert cli(*run).code == 5
    overrides = ("--judge-model", "simulated:muddled", "--on-unknown", "retry", "--ttl", "2")
    assert cli("resume", "last", *overrides).code == 5
    assert cli("resume", "last", "--ttl", "40").code == 5
    (path,) = RUNS.glob("*.jsonl")
    assert forked_config(path).judge_model == "simulated:muddled"
    assert json.loads(cli("runs", "--json").out)[0]["status"] == "not_converged"


def test_a_call_that_somebody_else_approved_needs_consent(
    cli: Cli, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deploying.py").write_text(
        "from pathlib import Path\n"
        "from aeon_core import tool\n"
        "@tool(effect='unsafe', needs_approval=True)\n"
        "def deploy(place: str) -> str:\n"
        "    'Puts it up.'\n"
        "    Path('made').write_text(place)\n"
        "    return place\n"
    )
    step = {"step_id": "s", "description": "put it up", "tool": "deploy", "arguments": {"place": "here"}}
    config = {"tools": ["deploying:deploy"], "single_pass": True, "project_root": tmp_path}
    path, approver = RUNS / "r.jsonl", lambda _: ApprovalDecision(decision="approve")
    run = Orchestrator("simulated:default", config=config, approver=approver, journal=path)
    run.run("put it up", {"goal": "put it up", "steps": [step]})
    assert (tmp_path / "made").read_text() == "here"
    (tmp_path / "made").unlink()
    lines = path.read_text().splitlines(keepends=True)
    decided = next(number for number, line in enumerate(lines, start=1) if '"state":"decided"' in line)
    path.write_text("".join(lines[:decided]))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-of-another")))
    done = cli("resume", "r", "--tools", "deploying:deploy")
    assert (done.code, done.out, (tmp_path / "made").exists()) == (2, "", False)
    assert path.read_text() == "".join(lines[:decided])
    assert done.err.splitlines()[-1] == (
        "aeon-tui: the journal of 'r' asks to call 'deploy' with {\"place\": \"here\"}, which no rule of the run "
        "and no decision that you made here allows; allow it with --trust-project, or in Python with "
        'trusts_project=True, for a workflow trust="apply"'
    )
    assert cli("resume", "r", "--tools", "deploying:deploy", "--trust-project").code == 0
    assert (tmp_path / "made").read_text() == "here"


def test_a_finished_run_returns_its_result(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    (path,) = RUNS.glob("*.jsonl")
    before = path.read_bytes()
    done = cli("resume", "last")
    assert (done.code, path.read_bytes()) == (0, before)
    assert "the run ended as converged; there is nothing left to do" in done.err


@pytest.mark.parametrize("option", ["--model", "--judge-model"])
def test_an_unknown_provider_is_refused_even_if_the_run_has_ended(cli: Cli, option: str) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    done = cli("resume", "last", option, "nope:x")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("aeon-tui: 'nope:x' has an unknown provider")


def test_a_run_that_another_process_writes_is_left_alone(cli: Cli) -> None:
    path = expired(cli)
    from aeon_core.journal.recovery import reopen

    writer: JournalWriter = reopen(path)
    done = cli("resume", "last", "--ttl", "40")
    writer.close()
    assert done.code == 2
    assert "is being written by" in done.err
    assert done.err.count("\n") == 1 or done.err.splitlines()[-1].startswith("aeon-tui: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "no run 'nope'"),
        (["last", "--ttl", "x"], "--ttl must be"),
        (["last", "--criteria", "c.yml"], "cannot read the criteria file"),
        (["last", "--single-pass"], "--single-pass cannot change when a run is resumed; fork the run instead"),
        (["last", "--allow", "Bash"], "--allow cannot change when a run is resumed; fork the run instead"),
        (["last", "--on-unknown", "maybe"], "must be one of fail, retry, ask"),
        (["last", "--model", "nobody:x"], "nobody"),
    ],
)
def test_an_error_is_one_line_and_exit_2(cli: Cli, arguments: list[str], said: str) -> None:
    expired(cli)
    done = cli("resume", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A person at a terminal, and an app that only notes how it was opened."""
    calls: list[Any] = []

    def run_app(runs_dir: Path, work: Any = None, today: Any = None, prepare: Any = None) -> int:
        app = SimpleNamespace(first_screen=None, first_notice="")
        if prepare is not None:
            prepare(app)
        calls.append((work, app))
        return 0

    monkeypatch.setattr("aeon_tui.cli.output.has_screen", lambda: True)
    monkeypatch.setattr("aeon_tui.app.run_app", run_app)
    return calls


def test_at_a_terminal_the_app_opens_on_the_run(cli: Cli, opened: list[Any]) -> None:
    path = expired(cli)
    done = cli("resume", "last", "--ttl", "40", "--approve", "none", "--model", "simulated:muddled")
    ((work, _),) = opened
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (work.path.name, work.task, work.config.model) == (path.name, TASK, "simulated:muddled")
    said = {"ttl": 40, "approve": ["none"], "model": "simulated:muddled"}
    assert work.options == {**said, "on_unknown": "ask"}


def test_at_a_terminal_a_run_that_has_ended_is_opened_and_reported(cli: Cli, opened: list[Any]) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "--ttl", "20", "calculate 1 / 0").code == 5
    done = cli("resume", "last")
    ((work, app),) = opened
    assert work is None
    assert app.first_screen.chosen_run.parent == RUNS.absolute()
    assert app.first_notice == "the run ended as not converged; there is nothing left to do; fork it instead"
    assert (done.code, done.err) == (
        5,
        "aeon-tui: the run ended as not converged; there is nothing left to do\n",
    )


def test_at_a_terminal_what_would_fail_is_reported_before_the_app_opens(cli: Cli, opened: list[Any]) -> None:
    path = expired(cli)
    assert cli("resume", "last", "--model", "openai:gpt").code == 3
    assert cli("resume", "last", "--tools", "none:none").code == 2
    from aeon_core.journal.recovery import reopen

    writer = reopen(path)
    done = cli("resume", "last")
    writer.close()
    assert (done.code, "is being written by" in done.err) == (2, True)
    assert opened == []


def test_headless_and_json_need_no_app(cli: Cli, opened: list[Any]) -> None:
    expired(cli)
    assert json.loads(cli("resume", "last", "--ttl", "40", "--json").out)["status"] == "converged"
    assert "Answer" in cli("resume", "last", "--headless").out
    assert opened == []
