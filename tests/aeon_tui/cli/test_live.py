from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.loading import DEFAULT, LoadedConfig
from aeon_core.journal.listing import list_runs
from aeon_core.journal.reader import read_records
from tests.aeon_tui.cli.conftest import Cli
from tests.fakes import ScriptedModel, add, steps


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A person at a terminal, and an app that only notes how it was opened."""
    calls: list[tuple[Any, ...]] = []

    def run_app(runs_dir: Path, work: Any = None, today: Any = None, prepare: Any = None) -> int:
        calls.append((runs_dir, work))
        return 5

    monkeypatch.setattr("aeon_tui.cli.output.has_screen", lambda: True)
    monkeypatch.setattr("aeon_tui.cli.run.is_terminal", lambda _: True)
    monkeypatch.setattr("aeon_tui.app.run_app", run_app)
    return calls


def test_without_a_command_the_app_opens_on_its_runs(cli: Cli, opened: list[Any], tmp_path: Path) -> None:
    done = cli("--runs-dir", "kept")
    assert done.code == 5
    assert opened == [(tmp_path / "kept", None)]


def test_a_live_run_opens_the_app_with_task_plan_and_config(
    cli: Cli, opened: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: ScriptedModel())
    Path("plan.json").write_text(json.dumps(steps(add(1, 2))))
    done = cli("run", "--ttl", "7", "--model", "simulated:default", "--plan", "plan.json", "add 1 and 2")
    [(runs_dir, start)] = opened
    assert (done.code, done.out, done.err) == (5, "", "")
    assert runs_dir == tmp_path / ".aeon" / "runs"
    assert (start.task, start.config.ttl, start.config.model) == ("add 1 and 2", 7, "simulated:default")
    assert start.plan.steps[0].arguments == {"operation": "add", "a": 1, "b": 2}


@pytest.mark.parametrize(
    ("options", "asked"),
    [((), ["pass", "tool"]), (("--approve", "none"), ["none"]), (("--approve", "plan,pass"), ["plan", "pass"])],
)
def test_the_app_asks_about_passes_and_tools(
    cli: Cli, opened: list[Any], options: tuple[str, ...], asked: list[str]
) -> None:
    for command in (("demo",), ("run", "--model", "simulated:default", "add 1 and 2")):
        assert cli(*command, *options).code == 5
    assert [start.config.approve for _, start in opened] == [asked, asked]


def test_the_demos_model_is_no_setting_of_the_app(cli: Cli, opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    del opened
    loaded: list[LoadedConfig] = []
    monkeypatch.setattr("aeon_tui.app.run_app", lambda _, job, today, __: loaded.append(today()) or 0)
    for options in ((), ("--model", "simulated:default")):
        assert cli("demo", *options).code == 0
    assert [(each.config.model, each.sources_of("model")[-1]) for each in loaded] == [
        (None, DEFAULT),
        ("simulated:default", "the option --model"),
    ]


def test_without_a_terminal_a_run_is_headless_and_nothing_is_asked_about(cli: Cli) -> None:
    assert cli("run", "-m", "simulated:default", "calculate 1 + 2").code == 0
    (run,) = list_runs(Path(".aeon/runs"))
    assert next(read_records(Path(run.path)))["config"]["approve"] == ["none"]


def test_errors_of_a_live_run_are_reported_before_the_app_opens(cli: Cli, opened: list[Any]) -> None:
    for arguments, code in (
        (("run", "x"), 3),
        (("run", "--model", "nonsense", "x"), 2),
        (("run", "--model", "simulated:default", "--tools", "none:none", "x"), 2),
        (("run", "--model", "simulated:default", "--runs-dir", "/dev/null/x", "x"), 2),
    ):
        done = cli(*arguments)
        assert (done.code, done.err.count("\n")) == (code, 1)
    assert opened == []


def test_a_person_at_a_terminal_is_asked_for_the_task(
    cli: Cli, opened: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answering = ScriptedModel(plan=steps(add(5, 10)), answer="15")
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: answering)
    done = cli("run", "--headless", "--single-pass", stdin="add 5 and 10\n")
    assert done.code == 0
    assert done.err.startswith("Task: ")
    assert list_runs(tmp_path / ".aeon" / "runs")[0].task == "add 5 and 10"
