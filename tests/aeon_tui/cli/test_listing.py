from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.text import Text

from aeon_core.plan.files import MAX_BYTES
from aeon_core.tools.registry import default_registry
from aeon_tui.cli.main import main
from aeon_tui.cli.tools import _shape
from tests.aeon_core.journal.build import RUN_ID, finished, lines, started, step, text, ttl, whole_run, write
from tests.aeon_tui.cli.conftest import Cli, environment
from tests.aeon_tui.cli.test_output import Terminal
from tests.waiting import PATIENCE

RUNS = Path(".aeon/runs")


def test_runs_are_listed_newest_first_with_status_model_and_task(cli: Cli) -> None:
    write(RUNS, *whole_run(), run="20261120-093000-aaaaaa")
    write(RUNS, *whole_run()[:-1], run="20261120-093000-bbbbbb")
    first, second = cli("runs").out.splitlines()
    assert first.split()[:2] == ["20261120-093000-bbbbbb", "interrupted"]
    assert second.split()[:2] == ["20261120-093000-aaaaaa", "completed"]
    assert "2026-11-20 09:30" in second
    assert "simulated:default" in second
    assert "calculate the sum of 5 and 10" in second


def test_the_runs_of_a_batch_are_in_columns_like_any_other(cli: Cli) -> None:
    for run in ("20261120-093000-aaaaaa", "invoices.7", f"invoices.{'x' * 60}"):
        write(RUNS, *whole_run(), run=run)
    *short, long = sorted(cli("runs").out.splitlines(), key=len)
    assert {line.index("  completed  ") for line in short} == {30}
    assert long.startswith(f"invoices.{'x' * 60}  completed  ")


def test_runs_as_json_have_the_contracts_fields(cli: Cli) -> None:
    path = write(RUNS, *whole_run())
    assert json.loads(cli("runs", "--json").out) == [
        {
            "run_id": RUN_ID,
            "task": "calculate the sum of 5 and 10",
            "status": "completed",
            "model": "simulated:default",
            "passes": 1,
            "cost_usd": 0.0,
            "started": "2026-11-20T09:30:00.000000Z",
            "path": str(path.absolute()),
        }
    ]


def test_no_runs_and_foreign_files_give_an_empty_list(cli: Cli) -> None:
    done = cli("runs")
    assert (done.code, done.out) == (0, "")
    assert "no runs in" in done.err
    RUNS.mkdir(parents=True)
    (RUNS / "notes.jsonl").write_text('{"hello": 1}\n')
    (RUNS / "binary.jsonl").write_bytes(b"\x00\xff" * 1_000)
    assert cli("runs", "--json").out == "[]\n"
    assert "no runs in" not in cli("runs").err


def test_files_that_are_not_listed_are_reported(cli: Cli) -> None:
    write(RUNS, *whole_run())
    assert cli("runs").err == ""
    (RUNS / "being-started.jsonl").touch()
    (RUNS / "broken\x1b.jsonl").write_bytes(b"\x00" + write(RUNS, *whole_run(), run="b").read_bytes())
    done = cli("runs", "--json")
    assert len(json.loads(done.out)) == 2
    assert done.err == (
        f"warning: not listed: 1 file in {str(RUNS.absolute())!r} without a readable first record "
        "(broken\\x1b.jsonl); `aeon-tui show PATH` says what is wrong\n"
    )
    for number in range(1_000, 1_003):
        (RUNS / f"{number}.jsonl").write_text("{}\n")
    assert "not listed: 4 files in" in (said := cli("runs").err)
    assert "(1000.jsonl, 1001.jsonl, 1002.jsonl, …)" in said


def test_a_hostile_task_stays_on_its_line(cli: Cli) -> None:
    write(RUNS, started(task="\x1b[2J[bold]line\nbreak\u202e" + "x" * 5_000_000))
    done = cli("runs")
    assert done.out.count("\n") == 1
    assert r"\x1b[2J[bold]line break\u202e" in done.out
    assert len(done.out) < 300


def test_a_fork_is_marked_in_the_list(cli: Cli) -> None:
    write(RUNS, started(parent={"run_id": "20261120-\x1b[2J", "pass": 2}), run="20261120-100000-bbbbbb")
    done = cli("runs")
    assert done.out.endswith(r"calculate the sum of 5 and 10  fork of 20261120-\x1b[2J at pass 2" + "\n")
    assert "parent" not in json.loads(cli("runs", "--json").out)[0]


@pytest.mark.parametrize(("columns", "has_model"), [(80, False), (120, True)])
def test_each_run_is_one_line_of_a_terminal(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int, has_model: bool
) -> None:
    write(RUNS, started(task="count the words " * 20), run="20261120-100000-bbbbbb")
    write(RUNS, started(task="数える" * 20))
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["runs"]) == 0
    shown = [Text.from_ansi(line).plain for line in terminal.getvalue().splitlines()]
    assert len(shown) == 2
    assert all(cell_len(line) in (columns - 1, columns) and line.endswith("…") for line in shown)
    assert all(("simulated:default" in line) is has_model for line in shown)


def test_a_list_written_to_a_closed_pipe_ends_quietly() -> None:
    for number in range(2_000):
        write(RUNS, started(), run=f"20261120-{number:06d}-aaaaaa")
    command = [sys.executable, "-m", "aeon_tui", "runs"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        assert listing.stdout.readline().startswith(b"20261120-")
        listing.stdout.close()
        assert listing.stderr.read() == b""
        assert listing.wait(PATIENCE) == 0


def test_an_invalid_runs_directory_is_one_clear_line(cli: Cli) -> None:
    Path("file").touch()
    done = cli("runs", "--runs-dir", "file")
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert "Not a directory; choose another" in done.err


def test_show_names_the_parent_and_forks_of_a_run(cli: Cli) -> None:
    fork = {"run_id": "20261120-080000-aaaaaa", "pass": 2}
    write(RUNS, *whole_run(), run="20261120-080000-aaaaaa")
    write(RUNS, started(parent=fork), ttl(1), run="20261120-090000-bbbbbb")
    write(RUNS, started(parent={**fork, "pass": 1}), finished("ttl_expired"), run="20261120-100000-cccccc")
    assert cli("show", "20261120-08").out.splitlines()[8:11] == [
        "forks    20261120-090000-bbbbbb at pass 2, interrupted",
        "         20261120-100000-cccccc at pass 1, TTL expired",
        "",
    ]
    text = cli("show", "20261120-09").out
    assert "\nparent   forked from 20261120-080000-aaaaaa at pass 2\n" in text
    (RUNS / "20261120-080000-aaaaaa.jsonl").unlink()
    gone = "forked from 20261120-080000-aaaaaa at pass 2 (its journal is gone)"
    assert f"\nparent   {gone}\n" in cli("show", "20261120-09").out
    assert f"<dt>parent</dt><dd>{gone}</dd>" in cli("show", "20261120-09", "--export", "html").out
    assert "- **parent**: forked from 20261120-080000-aaaaaa" in cli("show", "20261120-09", "--export", "md").out
    assert json.loads(cli("show", "20261120-09", "--json").out)["configuration"]["parent"] == fork


def test_only_some_of_very_many_forks_are_shown(cli: Cli) -> None:
    write(RUNS, *whole_run(), run="a")
    for number in range(25):
        write(RUNS, started(parent={"run_id": "a", "pass": 1}), run=f"fork-{number:02d}")
    out = cli("show", "a").out
    assert out.count(" at pass 1, interrupted\n") == 20
    assert "\n         … and 5 more; see `aeon-tui runs`\n" in out


def test_show_describes_what_happened_to_each_step(cli: Cli) -> None:
    write(RUNS, *whole_run())
    done = cli("show", "last")
    assert (done.code, done.err) == (0, "")
    for expected in (
        f"run      {RUN_ID}",
        "task     calculate the sum of 5 and 10",
        "status   completed",
        "model    simulated:default (simulated)",
        "ttl      47 of 50 cycles left",
        "tokens   30 in, 3 out, $0.00",
        "Plan: the sum of 5 and 10",
        's1 complete · tool calculator · add 5 and 10\n    {"result": 15}\n',
        (
            "s2 complete · tool calculator · double it\n"
            '    repaired (plan repair, llm, attempt 1 of 2): tool "calc" → "calculator"\n'
            '    {"result": 30}\n'
        ),
        (
            "s3 complete · fallback reasoning · tell the news\n"
            "    warning: Tool 'web' not found\n"
            "    fallback: no tool found, so the model reasoned from the description\n"
            "    no news\n"
        ),
        "Answer (simulated model)\nThe sum is 15.\n",
    ):
        assert expected in done.out


def test_show_explains_why_steps_and_run_failed(cli: Cli) -> None:
    records = whole_run()[:16]
    failed = step("s1", "failed", mode="tool", errors=["division by zero"])
    write(RUNS, *records, failed, finished("failed", answer=None, error={"message": "the model is down"}))
    out = cli("show", RUN_ID).out
    assert "    error: division by zero\n" in out
    assert out.endswith("error: the model is down\n")
    assert "Answer" not in out


def test_show_as_json_is_the_execution_history(cli: Cli) -> None:
    write(RUNS, *whole_run())
    history = json.loads(cli("show", RUN_ID[:10], "--json").out)
    assert list(history) == [
        "execution_id",
        "task_input",
        "configuration",
        "passes",
        "final_result",
        "overall_statistics",
        "labels",
    ]
    assert history["execution_id"] == RUN_ID
    assert history["final_result"]["answer"] == "The sum is 15."


def test_show_reports_damage_on_stderr_and_shows_the_rest(cli: Cli) -> None:
    content = lines(*whole_run())
    content[3] = b"broken\n"
    RUNS.mkdir(parents=True)
    (RUNS / "r.jsonl").write_bytes(b"".join(content))
    done = cli("show", "r")
    assert done.code == 0
    assert "damaged: line 4: broken" in done.err
    assert "The sum is 15." in done.out


def test_show_prints_no_control_characters(cli: Cli) -> None:
    hostile = "\x1b]0;title\x07[/bold]\x00\x9b31m\u202e\nnext"
    long, reference = text("y" * 5_000_000)
    output = step("s1", "complete", mode="llm", output={"text": hostile})
    write(RUNS, *whole_run()[:16], output, long, step("s2", "complete", output=reference), ttl(3))
    done = cli("show", "last")
    assert done.code == 0
    assert r"\x1b]0;title\x07[/bold]\x00\x9b31m\u202e" in done.out
    assert "    next\n" in done.out
    assert not {"\x1b", "\x07", "\x00", "\x9b", "\u202e"} & set(done.out)


@pytest.mark.parametrize("content", [b"", b'{"a":1}\n', b"\x7fELF\x00\x00\n", b"text\n"])
def test_show_refuses_a_file_that_is_not_a_journal(cli: Cli, content: bytes) -> None:
    Path("x.jsonl").write_bytes(content)
    done = cli("show", "./x.jsonl")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "'x.jsonl' is not a journal" in done.err


def test_tools_as_json_are_what_a_model_gets(cli: Cli) -> None:
    assert json.loads(cli("tools", "--json").out) == default_registry().export_tools_for_llm()


def test_tools_are_shown_with_what_they_take_and_give(cli: Cli) -> None:
    Path("mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from aeon_core import tool\n"
        "@dataclass\n"
        "class Tree:\n"
        "    leaf: 'Tree | None' = None\n"
        "@tool(effect='pure')\n"
        "def climb(tree: Tree, above: Tree | None = None, trees: list[Tree] | None = None) -> None:\n"
        "    'Climbs a tree.'\n"
        "@tool(effect='pure')\n"
        "def shout(text: str, times: int = 1) -> str:\n"
        "    'Says it loudly.'\n"
        "    return text.upper() * times\n"
        "@tool(effect='pure')\n"
        "def toss() -> str:\n"
        "    'Tosses a coin.'\n"
        "    return 'heads'\n"
    )
    out = cli("tools", "--tools", "mine:shout", "--tools", "mine:toss", "--tools", "mine:climb").out
    assert "\n  takes  tree: object, above?: object | null, trees?: array | null\n" in out
    assert "Tosses a coin.\n  takes  nothing\n" in out
    assert "calculator  pure" in out
    assert "shout  pure\n  Says it loudly.\n  takes  text: string, times?: integer\n  gives  result: string\n" in out


@pytest.mark.parametrize("named", [{"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, {"A": 1}, 1, {}], ids=str)
def test_what_a_tool_takes_is_shown_for_any_schema(named: object) -> None:
    schema = {"properties": {"a": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": 2}, {"type": "null"}]}}, "$defs": named}
    assert _shape(schema) == "a?: any | null"


def test_schema_lists_names_and_prints_one(cli: Cli) -> None:
    names = cli("schema").out.split()
    assert {"Plan", "RunResult", "LogEntry", "run_started"} <= set(names)
    assert json.loads(cli("schema", "Plan").out)["title"] == "Plan"
    done = cli("schema", "Plam")
    assert (done.code, done.out) == (2, "")
    assert "did you mean 'Plan'?" in done.err


def test_lint_passes_a_sound_plan(cli: Cli) -> None:
    arguments = {"operation": "add", "a": 5, "b": 10}
    step = {"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "arguments": arguments}
    Path("plan.json").write_text(json.dumps({"goal": "add 5 and 10", "steps": [step]}))
    done = cli("lint", "plan.json")
    assert (done.code, done.out, done.err) == (0, "plan.json: no issues\n", "")
    done = cli("lint", "-", stdin=Path("plan.json").read_text())
    assert (done.code, done.out, done.err) == (0, "standard input: no issues\n", "")


def test_lint_of_standard_input_names_no_temporary_file(cli: Cli) -> None:
    assert cli("lint", "-", stdin="a: [").err.startswith("aeon-tui: standard input is neither JSON nor YAML")


def test_lint_reads_no_more_of_standard_input_than_a_plan_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = io.BytesIO(b" " * (MAX_BYTES + 2))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(endless))
    assert main(["lint", "-"]) == 2
    assert endless.tell() == MAX_BYTES + 1


def test_lint_reads_standard_input_once(cli: Cli) -> None:
    done = cli("lint", "-", "-", stdin="{}")
    said = "aeon-tui: '-' is given more than once; standard input can be read only once\n"
    assert (done.code, done.out, done.err) == (2, "", said)


def test_lint_names_contradicting_and_unexecutable_steps(cli: Cli) -> None:
    plan = {
        "goal": "greet",
        "steps": [
            {"step_id": "s1", "description": "Echo notes.txt", "tool": "echo", "arguments": {"text": "diary.txt"}},
            {"step_id": "s2", "description": "Do the things"},
        ],
    }
    Path("plan.json").write_text(json.dumps(plan))
    done = cli("lint", "plan.json")
    assert "do_say_mismatch  s1: " in done.out
    assert "specificity  s2: " in done.out


def test_lint_fails_a_plan_with_severe_issues_and_prints_a_report(cli: Cli) -> None:
    Path("plan.yml").write_text("goal: g\nsteps:\n  - {step_id: s1, description: fetch it, tool: web}\n")
    done = cli("lint", "plan.yml")
    assert done.code == 1
    assert "high   hallucination  s1: " in done.out
    report = json.loads(cli("lint", "plan.yml", "--json").out)
    assert report["overall_severity"] == "high"


def test_lint_of_neither_json_nor_yaml_is_exit_2(cli: Cli) -> None:
    Path("plan.json").write_text("{goal: [")
    done = cli("lint", "plan.json")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert cli("lint", "none.json").code == 2


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("plan.json", '{"goal": "g", "goal": "h", "steps": []}', "the key 'goal' occurs twice"),
        ("plan.json", '{"goal": 1e999}', "1e999 is too large a number"),
        ("plan.json", "[" * 300 + "]" * 300, "nested deeper than 100 levels"),
        ("plan.yml", "goal: g\ngoal: h\n", "the key 'goal' occurs twice"),
        ("plan.yml", "goal: &g x\nsteps: [*g]\n", "anchors and aliases are not supported"),
        ("plan.yml", "goal: !!binary aGk=\n", "is not supported; use plain data"),
        ("plan.yml", "1: x\n", "expected a text key"),
    ],
)
def test_lint_reports_json_or_yaml_that_is_not_plain_data(cli: Cli, name: str, text: str, reason: str) -> None:
    Path(name).write_text(text)
    done = cli("lint", name, "--json")
    assert (done.code, done.err) == (1, "")
    report = json.loads(done.out)
    assert [(issue["type"], issue["severity"]) for issue in report["issues"]] == [("consistency", "high")]
    assert reason in report["issues"][0]["description"]
    assert report["overall_severity"] == "high"
    printed = cli("lint", name).out
    assert printed.startswith("high   consistency  plan: ")
    assert "unique text keys, no anchors or tags, at most 100 levels of nesting" in printed
    assert cli("run", "--headless", "--model", "simulated:default", "--plan", name).code == 2
