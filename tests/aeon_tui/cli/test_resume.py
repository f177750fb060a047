"""`aeon-tui resume`: a run goes on from the command line, and says what it did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon_core.journal.writer import JournalWriter
from tests.aeon_tui.cli.conftest import Cli

RUNS = Path(".aeon/runs")
TASK = "design a REST API for invoices"


def expired(cli: Cli) -> Path:
    """Return the journal of a run whose cycles were spent."""
    assert cli("run", "--headless", "--ttl", "7", "--model", "simulated:default", TASK).code == 5
    (path,) = RUNS.glob("*.jsonl")
    return path


def test_an_expired_run_goes_on_with_more_cycles(cli: Cli) -> None:
    path = expired(cli)
    done = cli("resume", "last", "--ttl", "40")
    assert done.code == 0
    assert "Answer (simulated model)\nA REST API for invoices" in done.out
    assert done.err.splitlines()[-1].startswith("run converged · 2 passes")
    assert cli("replay", path.stem, "--check").code == 0
    (listed,) = json.loads(cli("runs", "--json").out)
    assert (listed["status"], listed["passes"]) == ("converged", 2)
    assert [each["pass_number"] for each in json.loads(cli("show", "last", "--json").out)["passes"]] == [1, 2]


def test_a_run_cut_off_goes_on_and_gives_the_result_as_json(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    (path,) = RUNS.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    done = cli("resume", path.stem, "--json")
    result = json.loads(done.out)
    assert (done.code, result["status"], result["answer"]) == (0, "converged", "The sum of 5 and 10 is 15.")
    assert list(RUNS.glob("*.torn-1"))


def test_a_run_that_goes_on_with_another_model_is_shown_with_it(cli: Cli) -> None:
    expired(cli)
    assert cli("resume", "last", "--ttl", "40", "--model", "simulated:muddled").code in (0, 5)
    assert "model    simulated:muddled (simulated)" in cli("show", "last").out


def test_a_run_that_has_ended_gives_its_result_again(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "calculate 5 + 10").code == 0
    (path,) = RUNS.glob("*.jsonl")
    before = path.read_bytes()
    done = cli("resume", "last")
    assert (done.code, path.read_bytes()) == (0, before)
    assert "the run has ended as converged; there is nothing to go on with" in done.err


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
        (["last", "--criteria", "c.yml"], "unknown option '--criteria'"),
        (["last", "--on-unknown", "maybe"], "must be one of fail, retry, ask"),
        (["last", "--model", "nobody:x"], "nobody"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_2(cli: Cli, arguments: list[str], said: str) -> None:
    expired(cli)
    done = cli("resume", *arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
