"""`aeon-tui replay`: a check for CI in one line, and a recorded run shown as it was."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, tool
from aeon_core.runs.replay import recorded_lines
from aeon_core.tools.registry import ToolRegistry
from tests.aeon_tui.cli.conftest import Cli
from tests.fakes import ScriptedModel, add, call, steps

RUN = Path(".aeon/runs/r1.jsonl")


def record(path: Path = RUN, *, registry: ToolRegistry | None = None, **scripts: Any) -> Path:
    """Record a run of one pass: a tool, a thought, an answer."""
    told = {"plan": steps(add(5, 10), {"agent": "llm"}), "reason": "thought " * 80, "answer": "The sum is 15."}
    config = RunConfig(single_pass=True, durability="off")
    Orchestrator(ScriptedModel(**{**told, **scripts}), tools=registry, journal=path, config=config).run("add them")
    return path


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


def test_a_check_of_an_unchanged_run_is_one_line_and_0(cli: Cli) -> None:
    record()
    done = cli("replay", "r1", "--check")
    assert (done.code, done.err) == (0, "")
    texts = sum('"type":"text"' in line for line in lines(RUN))
    assert done.out == f"{len(lines(RUN)) - texts} records are identical; the run ended as completed\n"


def test_a_check_of_an_altered_run_shows_where_it_differs_and_is_1(cli: Cli) -> None:
    path = record()
    text = path.read_text().replace('"step_id":"s1","status":"complete"', '"step_id":"s1","status":"failed"')
    path.write_text(text)
    done = cli("replay", "r1", "--check")
    assert (done.code, done.err) == (1, "")
    number = next(json.loads(line)["seq"] for line in lines(path) if '"s1","status":"failed"' in line)
    first, recorded, now, before = done.out.splitlines()
    assert first == f"record {number} differs · step · pass 1 · step_id s1 · status"
    assert recorded == '  recorded  "failed"'
    assert now == '  now       "complete"'
    assert before.endswith(" records are identical up to there")


def test_long_values_are_shown_where_they_differ(cli: Cli) -> None:
    path = record(answer="x " * 1000 + "zq")
    damaged = [line.replace("zq", "ZQ") if '"run_finished"' in line else line for line in lines(path)]
    path.write_text("".join(damaged))
    *_, finished = map(json.loads, lines(path))
    finished["result"]["answer"] = "x " * 700 + "y " * 300
    path.write_text("".join([*lines(path)[:-1], json.dumps(finished, separators=(",", ":")) + "\n"]))
    done = cli("replay", "r1", "--check")
    assert done.code == 1
    recorded, now = done.out.splitlines()[1:3]
    assert recorded.startswith("  recorded  …x x ")
    assert "x y y" in recorded
    assert "y" not in now
    assert len(recorded) < 200


@pytest.mark.parametrize("flags", [["--check"], ["--headless"], ["--json"]])
def test_an_interrupted_run_replays_as_far_as_it_goes(cli: Cli, flags: list[str]) -> None:
    path = record()
    path.write_text("".join(lines(path)[:20]) + '{"v":1,"se')
    done = cli("replay", str(path), *flags)
    count = sum('"type":"text"' not in line for line in lines(path)[:20])
    if flags == ["--check"]:
        assert (done.code, done.out) == (0, f"{count} records are identical; the run has not ended\n")
    else:
        assert (done.code, done.out) == (1, "")
        assert done.err.endswith(
            f"aeon-tui: the run 'r1' has not ended, so it has no result; {count} records are identical\n"
        )


def damaged(text: str, kind: str) -> str:
    if kind == "broken":
        return text.replace('"type":"plan"', '"type":plan', 1)
    if kind == "newer":
        return "".join(line.replace('{"v":1', '{"v":9') for line in text.splitlines(keepends=True))
    if kind == "lost":
        return "".join(line for line in text.splitlines(keepends=True) if '"type":"plan"' not in line)
    return {"empty": "", "binary": "\0" * 500, "other": '{"a": 1}\n', "text": "hello\n" * 50}[kind]


@pytest.mark.parametrize("kind", ["broken", "newer", "lost", "empty", "binary", "other", "text"])
@pytest.mark.parametrize("flags", [["--check"], []], ids=["check", "plain"])
def test_an_invalid_journal_is_one_line_and_exit_2(cli: Cli, kind: str, flags: list[str]) -> None:
    path = record()
    path.write_text(damaged(path.read_text(), kind))
    done = cli("replay", str(path), *flags)
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert "r1.jsonl" in done.err


@pytest.mark.parametrize("run", ["nope", "last", "nope.jsonl", "/", "/dev/null"])
def test_a_missing_run_is_one_line_and_exit_2(cli: Cli, run: str) -> None:
    done = cli("replay", run, "--check")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


def test_check_and_json_exclude_each_other(cli: Cli) -> None:
    record()
    done = cli("replay", "r1", "--check", "--json")
    assert (done.code, done.out) == (2, "")
    assert "--check" in done.err


def test_without_check_a_run_is_shown_as_it_was(cli: Cli) -> None:
    record(plan=steps(add(5, 10), {"tool": "scale"}), repair="no", fallback="weighed by hand")
    done = cli("replay", "r1")
    assert done.code == 0
    assert done.out.startswith('s1 complete · tool calculator · do part 1\n    {"result": 15}\n')
    assert done.out.endswith("\nAnswer\nThe sum is 15.\n")
    told = done.err.splitlines()
    assert told[0] == "run r1 · scripted:test"
    assert "warning: s2 complete · fallback reasoning → weighed by hand" in told
    assert told[-1] == "run completed · replayed from " + str(Path.cwd() / RUN)


def test_json_is_the_recorded_result_alone_on_stdout(cli: Cli) -> None:
    path = record()
    done = cli("replay", "r1", "--json")
    assert done.code == 0
    assert json.loads(done.out) == recorded_lines(path)[-1]["result"]


def test_the_exit_code_is_that_of_the_recorded_run(cli: Cli) -> None:
    record(plan=steps(add(5, 10), {"tool": "calculator"}), tool_call=call("calculator", operation="divide", a=1, b=0))
    done = cli("replay", "r1", "--headless")
    assert done.code == 5
    assert "step s2 failed: " in done.err
    assert cli("replay", "r1", "--check").code == 0


def test_a_difference_without_check_is_reported_after_what_was_the_same(cli: Cli) -> None:
    path = record()
    path.write_text(path.read_text().replace('"step_id":"s2","status":"running"', '"step_id":"s2","status":"failed"'))
    done = cli("replay", "r1", "--json")
    assert (done.code, done.out) == (1, "")
    assert "s1 complete" in done.err
    assert " differs · step · pass 1 · step_id s2 · status\n" in done.err


def test_replay_needs_no_config_key_or_project_tool(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = ToolRegistry()

    @tool(effect="unsafe")
    def gone() -> str:
        """Is in no module any more."""
        return "done"

    registry.register(gone)
    path = record(plan=steps({"tool": "gone", "arguments": {}}, {"agent": "llm"}), registry=registry)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ".aeon").mkdir(parents=True)
    (elsewhere / ".aeon" / "config.yml").write_text("model: [nonsense\n")
    journal = str(path.absolute())
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("AEON_TTL", "not a number")
    done = cli("replay", journal, "--check")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("the run ended as completed\n")


def test_control_characters_of_a_recorded_run_are_made_visible(cli: Cli) -> None:
    path = record()
    path.write_text(path.read_text().replace('"description":"do part 1"', '"description":"\\u001b[2J"', 1))
    done = cli("replay", "r1", "--check")
    assert done.code == 1
    assert "\x1b" not in done.out + done.err


def test_an_error_inside_aeon_is_a_difference_and_its_traceback_is_for_debug(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("inside")

    record()
    monkeypatch.setattr("aeon_core.kernel.executor.Executor.request", broken)
    done = cli("replay", "r1", "--check")
    assert (done.code, done.err) == (1, "")
    assert " differs · " in done.out
    assert "ZeroDivisionError: inside" in cli("replay", "r1", "--check", "--debug").err


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A person at a terminal, and an app that only notes on which screen it was opened."""
    screens: list[Any] = []

    def run_app(runs_dir: Path, work: Any = None, today: Any = None, prepare: Any = None) -> int:
        app = SimpleNamespace(first_screen=None)
        prepare(app)
        screens.append((runs_dir, app.first_screen))
        return 0

    monkeypatch.setattr("aeon_tui.cli.output.has_screen", lambda: True)
    monkeypatch.setattr("aeon_tui.app.run_app", run_app)
    return screens


@pytest.mark.parametrize(("speed", "taken"), [([], 1.0), (["--speed", "10"], 10.0), (["--speed", "max"], float("inf"))])
def test_at_a_terminal_a_run_is_replayed(cli: Cli, opened: list[Any], speed: list[str], taken: float) -> None:
    path = record()
    done = cli("replay", "r1", *speed)
    ((runs_dir, screen),) = opened
    assert (done.code, done.out, done.err) == (0, "", "")
    assert runs_dir == path.parent.absolute()
    assert (screen._replay.speed, screen._replay.journal.name) == (taken, "r1.jsonl")
    screen._replay.close()


@pytest.mark.parametrize("flags", [["--headless"], ["--json"], ["--check"]])
def test_at_a_terminal_replay_can_run_headless(cli: Cli, opened: list[Any], flags: list[str]) -> None:
    record()
    assert cli("replay", "r1", *flags).code == 0
    assert opened == []


@pytest.mark.parametrize("speed", ["0", "-2", "fast", "inf"])
def test_an_invalid_speed_is_one_line(cli: Cli, speed: str) -> None:
    record()
    done = cli("replay", "r1", f"--speed={speed}")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"aeon-tui: --speed must be a number above 0, or 'max'; got {speed!r}\n"
