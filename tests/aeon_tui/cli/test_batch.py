from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.history import open_history
from aeon_core.runs.batch_tasks import MAX_LINE
from aeon_tui.cli.batch import BatchReport, task_lines
from aeon_tui.cli.output import OutputStream
from tests.aeon_tui.cli.conftest import Cli, environment
from tests.sampling import sample
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("default_signals")

RUNS = Path(".aeon/runs")
SIMULATED = ("--model", "simulated:default", "--single-pass")
ADD, DIVIDE = "calculate the sum of 5 and 10", "divide 7 by 0"
TOOLS = """
import os, threading, time
from pathlib import Path
from aeon_core import tool

@tool(effect="idempotent")
def linger(marker: str) -> str:
    "Says in which process it is, and waits until its worker knows that the batch is to stop."
    Path(marker).with_suffix(".new").write_text(str(os.getpid()))
    Path(marker).with_suffix(".new").replace(marker)
    until = time.monotonic() + 600
    while time.monotonic() < until and "aeon-batch-stop" in {each.name for each in threading.enumerate()}:
        time.sleep(0.01)
    return "lingered"

@tool(effect="pure")
def shout(text: str) -> str:
    "Says it loudly."
    print("printed by the tool")
    os.system("echo printed by a program")
    return text.upper()
"""


def write(*lines: Any, name: str = "jobs.jsonl") -> str:
    Path(name).write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return name


def without_times(text: str) -> list[str]:
    """Return the lines with every duration as `T s`; what is aligned to one loses its blanks."""
    return [re.sub(r" +\d+\.\d s\b", " T s", line) for line in text.splitlines()]


@pytest.mark.exhaustive
def test_each_task_of_a_batch_executes_the_given_plan(cli: Cli) -> None:
    Path("p.yml").write_text("goal: add\nsteps: [{step_id: own, description: Add both, agent: llm}]\n")
    jobs = write({"id": "a", "task": ADD}, {"id": "b", "task": DIVIDE})
    done = cli("batch", jobs, *SIMULATED, "--jobs", "1", "--plan", "p.yml")
    assert done.code == 0, done.err
    for name in ("jobs.a", "jobs.b"):
        result = open_history(RUNS / f"{name}.jsonl").final_result
        assert result is not None
        assert [(step.step_id, step.status) for step in result.steps] == [("own", "complete")]
    jobs = write({"id": "w", "task": ADD, "workflow": "auto-approve"}, name="other.jsonl")
    refused = cli("batch", jobs, *SIMULATED, "--plan", "p.yml")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "line 1: a workflow takes no plan" in refused.err


def test_progress_table_and_totals_go_to_stderr(cli: Cli) -> None:
    done = cli("batch", write({"id": "sum", "task": ADD}, {"id": "Ratio", "task": DIVIDE}), *SIMULATED, "--jobs", "1")
    assert done.out == ""
    assert done.code == 5
    assert without_times(done.err) == [
        "[1/2] sum · completed · 1 pass · $0.00 · T s",
        "[2/2] Ratio · not converged · 1 pass · $0.00 · T s",
        "id     status         passes   cost   time",
        "sum    completed      1 pass  $0.00 T s",
        "Ratio  not converged  1 pass  $0.00 T s",
        "2 tasks: 1 completed, 1 not converged · $0.00 · T s of runs",
    ]
    assert sorted(path.stem[:10] for path in RUNS.iterdir()) == ["jobs.ratio", "jobs.sum"]


@pytest.mark.exhaustive
def test_a_second_call_runs_nothing_again_but_what_has_failed_on_request(cli: Cli) -> None:
    tasks = write({"id": "b", "task": ADD}, {"id": "a", "task": DIVIDE})
    first = cli("batch", tasks, *SIMULATED, "--json")
    again = cli("batch", tasks, *SIMULATED, "--json")
    assert (first.code, again.code) == (5, 5)
    results = json.loads(first.out)
    assert [(each["id"], each["status"], each["ended"]) for each in results] == [
        ("b", "completed", "now"),
        ("a", "not_converged", "now"),
    ]
    assert results[0]["answer"] == "The sum of 5 and 10 is 15."
    assert open_history(results[0]["journal"]).task_input == ADD
    assert [(each["id"], each["ended"]) for each in json.loads(again.out)] == [("b", "before"), ("a", "before")]
    assert again.err.startswith("2 of 2 tasks had already ended\n")
    other = cli("batch", write({"id": "b", "task": DIVIDE}), *SIMULATED)
    assert other.code == 2
    assert "line 1: the run 'jobs.b' already exists with another task, 'calculate the sum of 5 and 10'" in other.err
    assert sorted(path.name for path in RUNS.iterdir()) == ["jobs.a.jsonl", "jobs.b.jsonl"]
    write({"id": "b", "task": ADD}, {"id": "a", "task": DIVIDE})
    repeated = cli("batch", tasks, *SIMULATED, "--retry-failed", "--json")
    assert [each["ended"] for each in json.loads(repeated.out)] == ["before", "now"]
    assert sorted(path.name for path in RUNS.iterdir()) == ["jobs.a.failed-1.jsonl", "jobs.a.jsonl", "jobs.b.jsonl"]


@pytest.mark.exhaustive
def test_tasks_come_from_standard_input_under_a_name(cli: Cli) -> None:
    line = json.dumps({"id": 1, "task": ADD})
    assert cli("batch", "-", *SIMULATED, stdin=line).code == 0
    assert cli("batch", "-", *SIMULATED, "--name", "Nightly 3", stdin=line).code == 0
    assert [path.name for path in sorted(RUNS.iterdir())] == ["nightly-3-2080efb06e.1.jsonl", "stdin.1.jsonl"]


def test_no_more_of_a_line_is_read_than_shows_that_it_is_too_long() -> None:
    lines = tuple(task_lines(io.BytesIO(b"a\n" + b"x" * (MAX_LINE + 2))))
    assert [len(line) for line in lines] == [2, MAX_LINE + 1, 1]


@pytest.mark.parametrize(
    ("lines", "options", "code", "told"),
    [
        (['{"id": "a"'], (), 2, "the file 'jobs.jsonl', line 2 is not JSON"),
        ([{"id": "ok", "task": ADD}], (), 2, "line 2: duplicate id 'ok', first on line 1"),
        ([{"id": "a", "task": ADD, "model": "nobody:m"}], (), 2, "line 2: the model 'nobody:m' has an unknown"),
        ([{"id": "a", "task": ADD, "model": "openai:m"}], (), 3, "line 2: "),
        ([{"id": "a", "task": ADD, "tools": ["gone:it"]}], (), 2, "line 2: tools 'gone:it': no module"),
        ([{"id": "a", "task": ADD, "criteria": "gone.yml"}], (), 2, "gone.yml"),
        ([{"id": "a", "task": ADD, "project_root": "gone"}], (), 2, "gone' is not a folder; choose an existing one"),
        (
            [{"id": "a", "task": ADD, "project_root": "gone", "workflow": "auto-approve"}],
            (),
            2,
            "gone' is not a folder; choose an existing one",
        ),
        ([], ("--jobs", "0"), 2, "--jobs must be a whole number from 1 to 1000; got '0'"),
        ([], ("--jobs", "two"), 2, "got 'two'"),
        ([], ("--name", " "), 2, "--name is empty"),
        ([], ("--scheduler", "here"), 2, "here"),
    ],
)
def test_an_error_is_one_line_and_nothing_starts(
    cli: Cli, lines: list[Any], options: tuple[str, ...], code: int, told: str
) -> None:
    done = cli("batch", write({"id": "ok", "task": ADD}, *lines), *SIMULATED, *options)
    assert (done.code, done.out) == (code, "")
    assert len(done.err.splitlines()) == 1
    assert told in done.err
    assert not RUNS.exists()


def test_a_line_can_name_the_model_and_having_none_is_exit_3(cli: Cli) -> None:
    tasks = write({"id": "a", "task": ADD, "model": "simulated:default"}, {"id": "b", "task": ADD})
    done = cli("batch", tasks)
    assert done.code == 3
    assert "line 2: no model is configured" in done.err


def test_unanswerable_questions_are_refused_before_anything_starts(cli: Cli) -> None:
    done = cli("batch", write({"id": "a", "task": ADD}), *SIMULATED, "--approve", "tool,pass")
    assert (done.code, done.out, RUNS.exists()) == (2, "", False)
    assert "line 1: no one can approve a pass in a batch; remove it from --approve" in done.err


def test_a_missing_file_is_exit_2(cli: Cli) -> None:
    done = cli("batch", "gone.jsonl", *SIMULATED)
    assert done.code == 2
    assert done.err == "aeon-tui: cannot read the file 'gone.jsonl': No such file or directory\n"


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "aeon_tui", "batch", *arguments, *SIMULATED, "--jobs", "1"]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment(), text=True, **pipes)  # type: ignore[call-overload, no-any-return]


def lingering() -> tuple[str, Path]:
    """Return a file of tasks whose first waits in a tool, and where that says its process id."""
    Path("slow.py").write_text(TOOLS)
    here = Path("here").absolute()
    return write(
        {"id": "a", "task": f"use linger on '{here}'", "tools": ["slow:linger"]}, {"id": "b", "task": ADD}
    ), here


def pid_in(path: Path) -> int:
    wait_until(path.exists)
    return int(path.read_text())


def wait_until_gone(pid: int) -> None:
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", sample([signal.SIGINT, signal.SIGTERM], 1))
def test_ctrl_c_aborts_active_runs_and_starts_no_more(number: signal.Signals) -> None:
    tasks, here = lingering()
    with start(tasks, "--json") as process:
        worker = pid_in(here)
        if number == signal.SIGINT:
            # A terminal signals the workers too.
            os.kill(worker, number)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert [(each["id"], each["status"]) for each in json.loads(out)] == [("a", "aborted"), ("b", "not_run")]
    assert err.startswith("aeon-tui: aborting what is running; press Ctrl-C again to kill it\n")
    assert "run the command again to continue the aborted ones" in err
    result = open_history(RUNS / "jobs.a.jsonl").final_result
    assert result is not None
    assert result.status == "aborted"
    assert [path.name for path in RUNS.iterdir()] == ["jobs.a.jsonl"]
    wait_until_gone(worker)


@pytest.mark.exhaustive
def test_a_second_ctrl_c_kills_and_the_run_is_continued(cli: Cli) -> None:
    tasks, here = lingering()
    Path("slow.py").write_text(TOOLS.replace('"aeon-batch-stop" in', "threading and"))
    with start(tasks) as process:
        worker = pid_in(here)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "aborting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (1, "aeon-tui: interrupted\n")
    wait_until_gone(worker)
    assert open_history(RUNS / "jobs.a.jsonl").final_result is None
    Path("slow.py").write_text(TOOLS.replace("+ 600", "+ 0"))
    assert cli("batch", tasks, *SIMULATED, "--jobs", "1").code == 0


@pytest.mark.exhaustive
def test_no_worker_outlives_a_killed_parent() -> None:
    tasks, here = lingering()
    with start(tasks) as process:
        worker = pid_in(here)
        process.kill()
        process.wait(PATIENCE)
        wait_until_gone(worker)


@pytest.mark.exhaustive
def test_tool_output_does_not_get_into_the_json() -> None:
    Path("loud.py").write_text(TOOLS)
    with start(write({"id": "a", "task": "use shout on 'hi'", "tools": ["loud:shout"]}), "--json") as process:
        out, err = process.communicate(timeout=PATIENCE)
    assert json.loads(out)[0]["answer"] == "HI"
    assert "printed by the tool" in err
    assert "printed by a program" in err


def result(**fields: Any) -> dict[str, Any]:
    told = {"id": "a", "status": "converged", "passes": 2, "cost_usd": 0.5, "seconds": 1.0, "error": None}
    return {**told, "ended": "now", **fields}


def test_a_ctrl_c_after_the_batch_has_ended_leaves_its_results(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = write({"id": "a", "task": ADD})
    assert cli("batch", tasks, *SIMULATED).code == 0
    printed = BatchReport.table

    def pressed(self: BatchReport, results: Sequence[dict[str, Any]]) -> None:
        signal.raise_signal(signal.SIGINT)
        printed(self, results)

    monkeypatch.setattr(BatchReport, "table", pressed)
    done = cli("batch", tasks, *SIMULATED)
    assert (done.code, done.err.splitlines()[-1].split(" · ")[0]) == (0, "1 task: 1 completed")


def test_the_totals_mention_unknown_costs(capsys: pytest.CaptureFixture[str]) -> None:
    report = BatchReport(OutputStream(sys.stdout), 3)
    lost = {"status": "interrupted", "cost_usd": None, "seconds": None, "ended": None}
    report.table([result(), result(cost_usd=None), result(id="\x1b[31m" + "x" * 60, **lost)])
    *_, last, totals = capsys.readouterr().out.splitlines()
    assert totals == "3 tasks: 2 converged, 1 interrupted · $0.50, 1 without a known price · 2.0 s of runs"
    assert "\x1b" not in last
    assert last.endswith("interrupted         –      –      –")


def test_a_lost_run_reports_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    lost = result(ended=None, status="interrupted", cost_usd=None, seconds=None, error={"message": "its worker died"})
    BatchReport(OutputStream(sys.stdout), 3).result(lost)
    assert capsys.readouterr().out == "[1/3] a · interrupted · its worker died\n"


@pytest.mark.exhaustive
def test_a_line_may_be_a_workflow_of_its_own_project(cli: Cli) -> None:
    for name in ("one", "two"):
        Path(name, ".git").mkdir(parents=True)
    workflow = {"workflow": "auto-approve", "task": "count the invoices", "model": "simulated:default"}
    one = {**workflow, "id": "one", "project_root": "one"}
    refused = cli("batch", write(one, {**one, "id": "again"}))
    assert (refused.code, "line 2: another line has a workflow in" in refused.err) == (2, True)
    undecided = cli("batch", write({**one, "workflow": True}))
    assert (undecided.code, "no one can decide at the gates" in undecided.err) == (2, True)
    assert not RUNS.exists()
    lines = (one, {**workflow, "id": "two", "workflow": True, "project_root": "two"}, {"id": "sum", "task": ADD})
    done = cli("batch", write(*lines), *SIMULATED, "--json", "--wait", "0.01", "--jobs", "1")
    found = {each["id"]: each for each in json.loads(done.out)}
    assert {name: each["status"] for name, each in found.items()} == {
        "one": "completed",
        "two": "aborted",
        "sum": "completed",
    }
    assert done.code == 1
    assert "count the invoices" in Path("one/spec/scope.md").read_text()
    # The one that nobody decided is continued where it waits.
    lines = (one, {**lines[1], "workflow": "auto-approve"}, lines[2])
    again = cli("batch", write(*lines), *SIMULATED, "--json")
    assert again.code == 0, again.err
    found = {each["id"]: each for each in json.loads(again.out)}
    assert [found[name]["ended"] for name in ("one", "two", "sum")] == ["before", "now", "before"]
    assert found["two"]["status"] == "completed"
    journals = [Path(found[name]["journal"]) for name in ("one", "two", "sum")]
    assert [open_history(path).task_input for path in journals[2:]] == [ADD]
    assert [path.name for path in journals if path.is_file()] == ["jobs.one.jsonl", "jobs.two.jsonl", "jobs.sum.jsonl"]
    shown = cli("batch", write(*lines), *SIMULATED).err.splitlines()
    assert [line.split()[:3] for line in shown[2:]][:1] == [["one", "completed", "–"]]


def test_a_workflow_of_a_project_without_consent_is_refused_by_its_line(cli: Cli) -> None:
    agents = Path("one/.claude/agents")
    agents.mkdir(parents=True)
    (agents / "executor.md").write_text("---\nname: executor\ndescription: works\ntools: Bash\n---\nWork.\n")
    line = {"id": "one", "workflow": "auto-approve", "task": "x", "model": "simulated:default", "project_root": "one"}
    done = cli("batch", write(line))
    assert (done.code, done.out, RUNS.exists()) == (2, "", False)
    assert re.fullmatch("aeon-tui: the file 'jobs.jsonl', line 1: the project .* asks to let .*trust.*\n", done.err)
