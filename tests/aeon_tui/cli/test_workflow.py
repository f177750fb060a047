"""`workflow`, and what the other commands do with a workflow's transcript, as a person calls them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from aeon_tui.cli.main import main
from aeon_tui.cli.workflow import NO_ONE
from system2.__main__ import EPILOG
from tests.aeon_tui.cli.conftest import Cli, process
from tests.aeon_tui.workflows import at_a_gate, completed, failed


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in which a workflow has been completed; its transcript's id is 20260102-030405."""
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".system2" / "runs"
    folder.mkdir(parents=True)
    written = completed()
    written.records[0]["config"]["project_root"] = str(tmp_path)
    lines = "".join(json.dumps(record) + "\n" for record in written.records)
    (folder / "20260102-030405.jsonl").write_text(lines)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path / "kept"))
    return tmp_path


def transcript(project: Path, name: str, records: list[dict[str, object]]) -> Path:
    path = project / ".system2" / "runs" / f"{name}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_runs_lists_the_workflows_of_the_project_from_any_folder_in_it(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    assert main(["runs"]) == 0
    assert "20260102-030405  completed" in (out := capsys.readouterr().out)
    assert "workflow: build a REST API for invoices" in out
    assert main(["runs", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["run_id"], run["status"], run["cost_usd"]) == ("20260102-030405", "completed", 0.42)
    assert set(run) == {"run_id", "task", "status", "model", "passes", "cost_usd", "started", "path"}


def test_show_lists_agents_gates_costs_and_tool_calls(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "20260102"]) == 0
    out = capsys.readouterr().out
    for said in (
        "status   completed",
        "◆ gate 0 scope          approved           spec/scope.md · 1 rejection",
        "✔ repo-governor",
        "repo-governor: 1 call, $0.21",
        "✔ Write file_path=spec/scope.md",
        "✎ gate 0: rejected · name the table",
    ):
        assert said in out


def test_last_may_be_a_workflow_for_show_but_not_for_replay(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "last"]) == 0
    assert capsys.readouterr().out.startswith("workflow 20260102-030405")
    assert main(["replay", "last", "--headless"]) == 2
    assert main(["demo", "--headless"]) == 0
    capsys.readouterr()
    # The run is newer than the workflow of the test's year.
    assert main(["show", "last"]) == 0
    assert "workflow" not in capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("name", [[], ["last"]])
def test_watch_follows_the_last_workflow_where_there_is_no_run(
    project: Path, capsys: pytest.CaptureFixture[str], name: list[str]
) -> None:
    assert main(["watch", *name, "--headless"]) == 0
    assert "? gate 0: spec/scope.md is waiting for a decision" in capsys.readouterr().out


def test_show_and_watch_agree_on_the_last_of_runs_and_workflows(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--headless", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answer"].splitlines()[:1]
    assert main(["watch", "last", "--headless"]) == 0
    assert answer in capsys.readouterr().out
    later = failed().records
    later[0]["ts"] = "2999-01-01T00:00:00Z"
    transcript(project, "29990101-000000", later)
    assert main(["show", "last"]) == 0
    assert "failed: the credentials were refused" in capsys.readouterr().out
    assert main(["watch", "last", "--headless"]) == 3
    assert main(["watch", "--headless"]) == 3


def test_show_gives_the_view_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "20260102-030405", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["cost_usd"], told["damage"]) == ("completed", 0.21, [])
    assert [each["decision"] for each in told["gates"][0]["decisions"]] == ["reject", "approve"]
    assert told["agents"][0]["tools"][0]["tool"] == "Write"


@pytest.mark.parametrize(
    ("form", "begins"), [("md", "# Workflow 20260102"), ("html", "<!doctype html>"), ("json", "{")]
)
def test_show_exports(project: Path, form: str, begins: str) -> None:
    assert main(["show", "20260102-030405", "--export", form, "-o", f"report.{form}"]) == 0
    text = (project / f"report.{form}").read_text()
    assert text.startswith(begins)
    assert "build a REST API for invoices" in text


def test_a_page_escapes_model_text(project: Path) -> None:
    written = failed()
    written.records[0]["task"] = "<script>alert(1)</script>"
    path = transcript(project, "20260103-030405", written.records)
    assert main(["show", str(path), "--export", "html", "-o", "r.html"]) == 0
    assert "<script>" not in (project / "r.html").read_text()


def test_an_unknown_home_folder_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "20260102-030405", "-o", "~nobodyx/x.md"]) == 2
    assert "the option -o: the home folder in '~nobodyx/x.md' is unknown" in capsys.readouterr().err


def test_a_workflow_has_no_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "20260102-030405", "--pass", "1"]) == 2
    assert "which has no passes" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["replay", "--check"], ["resume", "--headless"], ["fork", "--gate", "1"]])
def test_commands_that_need_a_journal_refuse_an_early_transcript(
    project: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "20260102-030405"]) == 2
    err = capsys.readouterr().err
    assert "20260102-030405" in err
    assert err.splitlines()[-1:] == err.splitlines()


def test_a_workflow_is_resumed_forked_and_replayed_like_a_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--auto-approve", "--model", "simulated:default", "--project-root", str(project)]
    assert main(["workflow", "--headless", *own, "count the invoices"]) == 0
    assert main(["runs", "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [run["status"] for run in runs] == ["completed", "completed"]
    (run_id,) = (run["run_id"] for run in runs if run["task"] == "count the invoices")
    assert main(["replay", run_id, "--check"]) == 0
    assert "identical; the run ended as completed" in capsys.readouterr().out
    assert main(["replay", run_id, "--headless"]) == 0
    assert "completed · replayed from" in capsys.readouterr().err
    assert main(["replay", run_id, "--headless", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["show", run_id]) == 0
    assert "count the invoices" in capsys.readouterr().out
    assert main(["watch", run_id, "--headless"]) == 0
    # Nobody is there to decide: the fork waits at its gate, and can be resumed.
    assert main(["fork", run_id, "--gate", "2", "--model", "nobody:x", "--headless", "--wait", "0.01"]) == 2
    assert main(["fork", run_id, "--gate", "2", "--feedback", " ", "--headless"]) == 2
    capsys.readouterr()
    assert main(["runs", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(runs)
    words = ["--feedback", "use one table"]
    assert main(["fork", run_id, "--gate", "3", *words, "--headless", "--wait", "0.01"]) == 1
    shown = capsys.readouterr().err
    assert "=== Gate 3 (design) ===" in shown
    assert "aborted at gate 3 (design)" in shown
    assert main(["runs", "--json"]) == 0
    fork = json.loads(capsys.readouterr().out)[0]
    assert (fork["status"], fork["task"]) == ("aborted", "count the invoices")
    assert main(["resume", fork["run_id"], "--headless"]) == 2
    assert capsys.readouterr().err == f"aeon-tui: {NO_ONE}\n"
    # Its model is its own, not the default of a new workflow.
    assert main(["workflow", "--headless", "--auto-approve", "--resume", fork["run_id"]]) == 0
    assert main(["resume", fork["run_id"], "--headless"]) == 2
    assert "is complete" in capsys.readouterr().err


@pytest.mark.parametrize("gate", ["x", "6", "9" * 5000])
def test_forking_at_an_unknown_gate_is_reported(project: Path, capsys: pytest.CaptureFixture[str], gate: str) -> None:
    assert main(["fork", "20260102-030405", "--gate", gate]) == 2
    assert capsys.readouterr().err == f"aeon-tui: --gate must be a whole number from 0 to 5; got {gate[:40]!r}\n"


def test_watch_prints_a_workflow_and_returns_its_exit_code(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "20260102-030405", "--headless"]) == 0
    out = capsys.readouterr().out
    assert "? gate 0: spec/scope.md is waiting for a decision" in out
    assert "repo-governor          ✎ gate 0: rejected" in out
    path = transcript(project, "20260103-030405", failed().records)
    assert main(["watch", str(path), "--headless"]) == 3


def test_watch_reports_an_interrupted_workflow(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *others = at_a_gate().records
    path = transcript(project, "20260103-030405", [{**first, "journal": "20260103-030405"}, *others])
    assert main(["watch", str(path), "--headless"]) == 1
    assert "the run's process has ended; continue it with" in capsys.readouterr().err
    earlier = transcript(project, "20260104-030405", [first, *others])
    assert main(["watch", str(earlier), "--headless"]) == 1
    assert "its transcript has no journal, so it can only be shown" in capsys.readouterr().err


def test_a_workflow_that_starts_while_watch_waits_is_followed_as_a_workflow(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / ".system2" / "runs" / "20260103-030405.jsonl"
    monkeypatch.setattr(time, "sleep", lambda _: transcript(project, path.stem, completed().records))
    assert main(["watch", str(path), "--headless"]) == 0
    assert "? gate 0: spec/scope.md is waiting for a decision" in capsys.readouterr().out


def test_watch_ends_with_a_workflow_whose_end_cannot_be_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = completed().records
    path = transcript(project, "20260103-030405", [*records[:-1], {**records[-1], "exit_code": "none"}])
    assert main(["watch", str(path), "--headless"]) == 1
    told = capsys.readouterr().err.splitlines()
    seq = records[-1]["seq"]
    assert told == [
        f"warning: the journal is damaged: the record with seq {seq} cannot be read: exit_code: expected int, got str",
        f"aeon-tui: the workflow in {str(path)!r} has ended, but how it ended cannot be read",
    ]


def test_without_task_and_terminal_it_is_one_line(project: Path, cli: Cli) -> None:
    done = cli("workflow")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith("aeon-tui: no task given")


def test_headless_equals_the_system2_command(tmp_path: Path) -> None:
    command = ["workflow", "--headless", "--auto-approve", "--model", "simulated:default", "--log-format", "json"]
    ran = process(*command, "--project-root", str(tmp_path), "count the invoices")
    assert (ran.returncode, ran.stdout) == (0, "")
    assert all(json.loads(line)["level"] for line in ran.stderr.splitlines())
    assert "count the invoices" in (tmp_path / "spec" / "scope.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a task"], 2, "needs a terminal"),
        (["a task", "--headless"], 2, "add --auto-approve"),
        (["  "], 2, "the task is empty"),
        (["a task", "--resume", "last"], 2, "drop the task"),
        (["a task", "--modle", "x"], 2, "did you mean '--model'?"),
    ],
)
def test_bad_arguments(
    project: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    assert main(["workflow", *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a task", "--project-root", "nowhere"], 2, "is not a folder"),
        (["a task", "--config", "~nobody-here/x"], 2, "--config: the home folder in '~nobody-here/x' is unknown"),
        (["a task", "--model", "simulated:default", "--runs-dir", ".git/HEAD"], 2, "cannot store runs in "),
        (["--resume", "20260102-030405"], 2, "has no journal"),
        (["--resume", "2031"], 2, "no run '2031'"),
        (["--resume", ""], 2, "no run ''"),
        (["a task", "--base-url", ""], 2, "--base-url is empty; give it a value, or leave it out"),
        (["--resume", "/nowhere.jsonl"], 2, "the journal '/nowhere.jsonl' does not exist"),
        (["a task", "--model", "anthropic:claude"], 3, "ANTHROPIC_API_KEY"),
    ],
)
def test_a_workflow_that_cannot_start_is_reported_before_the_app(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr("aeon_tui.cli.workflow.has_screen", lambda: True)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    (project / ".git" / "HEAD").touch()
    assert main(["workflow", *arguments]) == code
    assert said in capsys.readouterr().err


def test_the_help_explains_exit_codes_like_system2(capsys: pytest.CaptureFixture[str]) -> None:
    """A workflow that leaves a blocker open exits with 1 although every gate was approved."""
    assert main(["workflow", "--help"]) == 0
    assert EPILOG in " ".join(capsys.readouterr().out.split())
