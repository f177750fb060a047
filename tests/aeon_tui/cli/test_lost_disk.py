"""A run whose journal cannot be written any more ends with the reason on the screen, and loses nothing it has told."""

from __future__ import annotations

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_core.llm.simulated import SimulatedModel
from tests.aeon_tui.cli.conftest import Cli, process
from tests.fakes import full_disk

RUNS = Path(".aeon/runs")
RUN = ("run", "--headless", "--json", "--model", "simulated:default", "calculate 5 + 10")


def small_files() -> None:
    """Let this process write no file beyond 30 kB, as on a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))


def test_a_full_disk_ends_the_run_with_the_reason_and_it_continues_once_there_is_room(cli: Cli) -> None:
    done = process(*RUN, preexec_fn=small_files)
    (path,) = RUNS.glob("*.jsonl")
    result = json.loads(done.stdout)
    reason = f"the journal {result['journal']!r} cannot be written: File too large"
    assert (done.returncode, result["status"], result["error"]["message"]) == (1, "failed", reason)
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    text = path.read_bytes()
    assert 25_000 < len(text) <= 30_000
    assert text.endswith(b"\n")
    told = list(read_records(path))
    assert told[-1]["type"] != "run_finished"
    again = cli("resume", path.stem, "--json")
    assert (again.code, json.loads(again.out)["answer"]) == (0, "The sum of 5 and 10 is 15.")
    assert list(read_records(path))[: len(told)] == told
    assert cli("replay", path.stem, "--check").code == 0


def test_a_full_disk_leaves_no_empty_gitignore_that_the_next_run_would_keep(cli: Cli) -> None:
    with full_disk():
        done = cli(*RUN)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"aeon-tui: cannot write to the runs directory {str(RUNS.absolute())!r}: File too large")
    assert cli(*RUN).code == 0
    assert "/runs/" in RUNS.with_name(".gitignore").read_text().splitlines()


class During(LLMAdapter):
    """A model during whose judgement something happens."""

    model, simulated = "simulated:default", True

    def __init__(self, happens: Callable[[], object]) -> None:
        self._inner, self._happens = SimulatedModel(), happens

    def complete(self, request: LLMRequest) -> LLMResponse:
        if request.purpose == "judge":
            self._happens()
        return self._inner.complete(request)


def test_deleting_the_runs_during_a_run_ends_it_with_the_reason(
    cli: Cli, use_model: Callable[[LLMAdapter], None]
) -> None:
    use_model(During(lambda: shutil.rmtree(RUNS)))
    done = cli(*RUN)
    result = json.loads(done.out)
    reason = f"the journal {result['journal']!r} was deleted"
    assert (done.code, result["status"], result["error"]["message"]) == (1, "failed", reason)
    assert reason in done.err
    assert not RUNS.exists()


@pytest.mark.parametrize("durability", ["full", "normal", "off"])
def test_a_journal_moved_during_a_run_is_reported_where_it_is(
    cli: Cli, use_model: Callable[[LLMAdapter], None], durability: str
) -> None:
    use_model(During(lambda: next(RUNS.glob("*.jsonl")).rename("elsewhere.jsonl")))
    done = cli(*RUN, "--durability", durability)
    result = json.loads(done.out)
    assert (done.code, result["journal"]) == (0, str(Path("elsewhere.jsonl").absolute()))
    assert f"journal {result['journal']}\n" in done.err
    assert list(read_records(Path(result["journal"])))[-1]["type"] == "run_finished"
    assert cli("show", result["journal"]).code == 0


def test_a_journal_that_is_deleted_is_exit_1_whatever_the_durability(
    cli: Cli, use_model: Callable[[LLMAdapter], None]
) -> None:
    use_model(During(lambda: next(RUNS.glob("*.jsonl")).unlink()))
    done = cli(*RUN, "--durability", "off")
    result = json.loads(done.out)
    assert (done.code, result["status"], result["converged"]) == (1, "failed", False)
    assert "deleted" in result["error"]["message"]
    assert "aeon-tui: the journal" in done.err


@pytest.mark.parametrize("command", [["run", "--headless"], ["resume"]])
def test_an_unwritable_runs_directory_starts_no_run(cli: Cli, command: list[str]) -> None:
    RUNS.parent.joinpath("runs").write_text("no folder")
    last = "calculate 5 + 10" if command[0] == "run" else "last"
    done = cli(*command, "--model", "simulated:default", last)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("aeon-tui: ")
    assert done.err.count("\n") == 1
