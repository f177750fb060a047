"""`aeon-tui decide` and `--wait`: a run in a process of its own is decided from another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approval_inbox import Inbox, inbox_of
from aeon_core.approvals import ApprovalDecision
from aeon_core.journal.reader import read_records
from aeon_tui.cli.main import main
from tests.aeon_core.questions import CALL, Asked, Asking
from tests.aeon_tui.cli.conftest import Cli, environment
from tests.fakes import steps
from tests.waiting import PATIENCE, wait_until

PLAN = steps({"tool": "calculator", "arguments": {"expression": "2*3"}})


class Process:
    """A headless run in a folder, without a terminal."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.runs = folder / "runs"
        command = [sys.executable, "-m", "aeon_tui", *options, "--headless", "--runs-dir", str(self.runs)]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def journal(self) -> Path:
        return next(self.runs.glob("*.jsonl"))

    def waits(self) -> None:
        """Return once the run waits for a decision."""
        wait_until(lambda: any(self.runs.glob("*.inbox")) or self._process.poll() is not None)

    def ended(self) -> tuple[int, str, str]:
        out, err = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, out, err

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


def decisions(journal: Path) -> list[tuple[str, str | None]]:
    found = (record for record in read_records(journal) if record["type"] == "approval")
    return [(record["decision"], record.get("feedback")) for record in found if record["state"] == "decided"]


def run(folder: Path, *options: str) -> Process:
    (folder / "plan.json").write_text(json.dumps(PLAN))
    return Process(folder, "run", "--plan", "plan.json", "--model", "simulated:default", "--wait", "60", *options)


@pytest.mark.exhaustive
def test_a_waiting_run_is_decided_from_another_process_point_by_point(tmp_path: Path, cli: Cli) -> None:
    process = run(tmp_path, "--approve", "plan,pass")
    process.waits()
    where = ("--runs-dir", str(process.runs))
    first = cli("decide", "last", "approve", *where, "--json")
    head = "Run this plan? 1 step, 1 tool call, 4 issues (plan, pass 1)"
    assert (first.code, first.err) == (0, f"{head}\ndecided: approve; delivered to the run\n")
    told = json.loads(first.out)
    assert (told["point"], told["decision"], told["taken"], told["decided"]) == ("plan", "approve", True, "approve")
    process.waits()
    second = cli("decide", process.journal.stem, "accept", *where)
    assert (second.code, second.err.splitlines()[0].partition(" (")[2]) == (0, "pass 1)")
    assert second.err.splitlines()[1:] == ["decided: accept; delivered to the run"]
    code, _, err = process.ended()
    assert code == 0
    assert f"waiting 60 s for a decision about the plan of pass 1: `aeon-tui decide {process.journal} approve`" in err
    assert "decided in another terminal: accept" in err
    assert decisions(process.journal) == [("approve", None), ("accept", None)]
    assert not inbox_of(process.journal).exists()
    late = cli("decide", "last", "approve", *where)
    assert (late.code, late.err.count("has ended as accepted; it is not waiting for a decision")) == (2, 1)


@pytest.mark.exhaustive
def test_requirements_are_edited_from_another_process(tmp_path: Path, cli: Cli) -> None:
    process = run(tmp_path, "--approve", "plan", "--json")
    process.waits()
    (tmp_path / "wanted.json").write_text('{"requirements": ["The product is given."]}')
    where = ("--runs-dir", str(process.runs), "--edited", str(tmp_path / "wanted.json"))
    done = cli("decide", "last", "edit", *where)
    assert (done.code, done.err.splitlines()[-1]) == (0, "decided: edit; delivered to the run")
    _, out, _ = process.ended()
    assert [each["text"] for each in json.loads(out)["convergence"]["requirements"]] == ["The product is given."]


@pytest.mark.exhaustive
def test_one_of_two_simultaneous_deciders_wins(tmp_path: Path) -> None:
    process = run(tmp_path, "--approve", "pass")
    process.waits()
    command = [sys.executable, "-m", "aeon_tui", "decide", "last"]
    where = ["--runs-dir", str(process.runs)]
    both = [
        subprocess.Popen([*command, answer, *where], cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
        for answer in ("accept", "abort")
    ]
    ends = [(each.communicate(timeout=PATIENCE)[1], each.returncode) for each in both]
    process.ended()
    taken = decisions(process.journal)
    assert len(taken) == 1
    won, lost = (ends[0], ends[1]) if taken[0][0] == "accept" else (ends[1], ends[0])
    assert won[1] == 0
    assert lost[1] in (1, 2), "2 where it came when the run had ended"
    told = (
        f"already decided elsewhere: {taken[0][0]}",
        "too late: the run",
        "not waiting for a decision",
        "cannot take a decision",
    )
    assert any(words in lost[0] for words in told), lost[0]


def test_a_run_that_is_decided_and_ends_meanwhile_is_not_offered_a_resume(
    asked: Asked, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.asking.ask("tool")

    def ends(_: Path) -> bool:
        asked.asking.decide(ApprovalDecision(decision="approve"))
        return False

    monkeypatch.setattr("aeon_tui.cli.decide.is_being_written", ends)
    done = cli("decide", "r.jsonl", "approve")
    assert (done.code, done.err.count("it is not waiting for a decision")) == (2, 1)


def test_a_journal_of_somebody_else_that_cannot_be_read_is_named(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "theirs.jsonl"
    journal.touch()

    def refuse(path: Path) -> int:
        raise PermissionError(13, os.strerror(13), str(path))

    monkeypatch.setattr("aeon_core.journal.summary.open_regular", refuse)
    done = cli("decide", str(journal), "approve")
    assert (done.code, done.err) == (2, f"aeon-tui: cannot read the journal {str(journal)!r}: Permission denied\n")


def test_an_undecided_run_ends_when_its_time_is_over(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    options = ("--headless", "--plan", "plan.json", "--model", "simulated:default")
    done = cli("run", *options, "--approve", "plan", "--wait", "0.2")
    assert done.code == 1
    assert "no decision within 0.2 s" in done.err
    assert "the plan needed approval, but no one decided in time; resume it" in done.err
    at_once = cli("run", *options, "--approve", "plan")
    assert at_once.code == 1
    assert "waiting" not in at_once.err


@pytest.mark.exhaustive
def test_a_run_that_was_killed_while_it_waited_is_resumed_and_asks_again(tmp_path: Path, cli: Cli) -> None:
    process = run(tmp_path, "--approve", "plan")
    process.waits()
    journal = process.journal
    process.kill()
    assert inbox_of(journal).exists()
    done = cli("decide", str(journal), "approve")
    assert done.code == 2
    assert f"has ended, so nothing can take the decision; `aeon-tui resume {journal}` continues the run" in done.err
    assert not inbox_of(journal).exists()
    again = Process(tmp_path, "resume", str(journal), "--approve", "plan", "--wait", "60")
    wait_until(lambda: inbox_of(journal).exists())
    assert cli("decide", str(journal), "reject", "--feedback", "shorter").code == 0
    wait_until(lambda: inbox_of(journal).exists())
    assert cli("decide", str(journal), "abort").code == 0
    assert again.ended()[0] == 1
    assert decisions(journal) == [("reject", "shorter"), ("abort", None)]


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    made = Asked(tmp_path / "r.jsonl")
    yield made
    made.end()


@pytest.mark.parametrize(
    ("point", "arguments", "told"),
    [
        (
            "tool",
            ["replay"],
            "'replay' is not a valid answer to the question about a tool's call; choose from approve, edit,",
        ),
        ("unknown", ["edit"], "choose from approve, reject, abort"),
        ("tool", ["aprove"], "accept, abort; got 'aprove'; did you mean 'approve'?"),
        ("tool", ["approve", "--feedback", "why"], "--feedback is only for reject"),
        ("tool", ["approve", "--edited", "x.json"], "--edited is only for edit, not for approve"),
        ("tool", ["approve", "--answer", "x"], "--answer is given 1 time, but 0 questions are open"),
        ("tool", ["edit"], "edit needs --edited FILE, the arguments of the call as JSON or YAML"),
        ("tool", ["edit", "--edited", "missing.yml"], "cannot read 'missing.yml'"),
    ],
)
def test_a_decision_that_does_not_fit_the_question_is_reported(
    asked: Asked, cli: Cli, point: Any, arguments: list[str], told: str
) -> None:
    asked.ask(asked.asking.ask(point))
    done = cli("decide", "r.jsonl", *arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert done.err.count("\n") == 1
    assert asked.heard == []


COMMAND = "echo one\n" + "echo " + "x" * 300
WRITE = {"tool_name": "Bash", "arguments": {"command": COMMAND}, "reason": "a rule", "description": "run it"}
GATE = {"gate": 0, "title": "scope", "artifact": "spec/scope.md", "summary": "Wrote it.", "content": "# Scope\n\nAll."}


def test_without_a_decision_the_question_is_printed_in_full_and_nothing_is_decided(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("tool", WRITE))
    done = cli("decide", "r.jsonl")
    assert (done.code, asked.heard) == (0, [])
    assert done.out.startswith("Run this command?\n")
    assert [line.strip() for line in done.out.splitlines()][-2:] == COMMAND.split("\n")
    assert done.err.startswith("to decide: `aeon-tui decide ")
    with_reason = cli("decide", "r.jsonl", "--feedback", "no")
    assert (with_reason.code, asked.heard) == (2, [])
    assert "--feedback needs a decision: approve, edit, reject, abort\n" in with_reason.err


def test_the_question_of_a_gate_is_printed_with_its_document(tmp_path: Path, cli: Cli) -> None:
    made = Asked(tmp_path / "r.jsonl", {})
    made.ask(made.asking.ask("gate", GATE))
    done = cli("decide", "r.jsonl")
    made.end()
    shown = [line.strip() for line in done.out.splitlines() if line.strip()]
    assert shown[:2] == ["Gate 0 · scope: approve spec/scope.md?", "Wrote it."]
    assert shown[2:] == ["── spec/scope.md ──", "# Scope", "All.", "── end of spec/scope.md ──"]


def test_a_script_decides_only_the_question_that_it_has_read(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("tool", WRITE))
    read = json.loads(cli("decide", "r.jsonl", "--json").out)
    assert (read["point"], read["subject"]["arguments"]) == ("tool", {"command": COMMAND})
    seq, digest = str(read["seq"]), read["digest"]
    wrong = [(["--seq", "99"], "its seq is"), (["--seq", seq, "--digest", "abc"], f"its digest is {digest}, not abc;")]
    for options, why in wrong:
        refused = cli("decide", "r.jsonl", "approve", *options)
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert f"is asking something else: {why}" in refused.err
    assert asked.heard == []
    assert cli("decide", "r.jsonl", "approve", "--seq", seq, "--digest", digest).code == 0
    assert [heard.decision for heard in asked.heard] == ["approve"]


@pytest.mark.parametrize("decision", ["reject", "abort", "accept"])
def test_a_decision_can_be_given_a_reason(asked: Asked, cli: Cli, decision: str) -> None:
    asked.ask(asked.asking.ask("pass", {"questions": []}))
    assert cli("decide", "r.jsonl", decision, "--feedback", "the wrong report").code == 0
    assert [(heard.decision, heard.feedback) for heard in asked.heard] == [(decision, "the wrong report")]


def test_open_questions_are_answered_in_their_order(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("pass", {"questions": ["Which?", "For whom?", "When?"]}))
    assert cli("decide", "r.jsonl", "approve", "--answer", "this one", "--answer", "me").code == 0
    assert asked.heard[0].answers == {"Which?": "this one", "For whom?": "me"}


CHOICES = ["stop", "continue", "replace"]
CHOICE = {"kind": "existing_spec", "text": "Which?", "choices": CHOICES, "safe": "stop", "questions": ["Which?"]}


@pytest.mark.parametrize("decision", ["reject", "abort"])
def test_a_choice_answers_only_an_approved_question(asked: Asked, cli: Cli, decision: str) -> None:
    asked.ask(asked.asking.ask("question", CHOICE))
    done = cli("decide", "r.jsonl", decision, "--answer", "replace")
    assert (done.code, asked.heard) == (2, [])
    assert f"--answer chooses what to approve; leave it out to {decision}" in done.err


def test_the_choices_of_a_workflows_question_are_listed_with_the_command(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("question", CHOICE))
    how = " (or reject, abort); approve takes --answer stop | continue | replace\n"
    assert cli("show", "r.jsonl").err.endswith(how)


@pytest.mark.parametrize(("answer", "code"), [("replace", 0), ("repalce", 2)])
def test_a_workflows_question_takes_only_one_of_its_choices_as_an_answer(
    asked: Asked, cli: Cli, answer: str, code: int
) -> None:
    asked.ask(asked.asking.ask("question", CHOICE))
    done = cli("decide", "r.jsonl", "approve", "--answer", answer)
    assert done.code == code
    assert [heard.answers for heard in asked.heard] == ([{"Which?": answer}] if code == 0 else [])
    why = "--answer 'repalce' is not a choice of this question; choose from stop, continue, replace\n"
    assert code == 0 or done.err.endswith(why)


@pytest.mark.parametrize(
    ("workflow", "point", "step_id", "place"),
    [
        (None, "tool", "s1", "Call erase? (tool, pass 1, step s1)"),
        ({}, "tool", "executor", "Call erase? (tool, executor)"),
        ({}, "gate", None, "Gate 5 · summary: approve the work? (gate)"),
    ],
)
def test_a_decision_names_its_place_in_a_run_or_a_workflow(
    tmp_path: Path, cli: Cli, workflow: dict[str, Any] | None, point: Any, step_id: str | None, place: str
) -> None:
    gate = {"gate": 5, "title": "summary", "artifact": "the work"}
    made = Asked(tmp_path / "r.jsonl", workflow)
    made.ask(made.asking.ask(point, gate if point == "gate" else None, step_id))
    done = cli("decide", "r.jsonl", "reject")
    made.end()
    assert (done.code, done.err.splitlines()[0]) == (0, place)


def test_the_arguments_of_a_call_are_edited_from_standard_input(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("tool"))
    done = cli("decide", "r.jsonl", "edit", "--edited", "-", stdin="path: mine.txt\n")
    assert done.code == 0
    assert (asked.heard[0].decision, asked.heard[0].edited) == ("edit", {"path": "mine.txt"})


def test_a_wrong_edit_from_standard_input_names_no_temporary_file(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("tool"))
    done = cli("decide", "r.jsonl", "edit", "--edited", "-", stdin="[1]")
    assert (done.code, asked.heard) == (2, [])
    assert done.err.startswith("aeon-tui: standard input does not contain the arguments of 'erase'")


def test_a_closed_standard_input_is_reported(
    asked: Asked, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.ask(asked.asking.ask("tool"))
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["decide", "r.jsonl", "edit", "--edited", "-"]) == 2
    assert "standard input is closed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("point", "subject", "text", "told"),
    [
        ("tool", CALL, "[1]", "does not contain the arguments of 'erase': expected `name: value` lines"),
        ("budget", {"limit_usd": 2.0, "proposed_usd": 4.0}, "limit_usd: 1", "expected `limit_usd: USD`, more than 2.0"),
        ("plan", {"plan": PLAN}, "goals: x", 'is not a valid plan: plan: unknown key "goals"'),
        ("plan", {"plan": PLAN}, "requirements: 3", "requirements: expected a list of one sentence or more, got 3"),
        ("pass", {"plan": PLAN}, "requirements: [x]", "the requirements are final since the first plan"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_before_it_is_written(
    asked: Asked, cli: Cli, point: Any, subject: dict[str, Any], text: str, told: str
) -> None:
    asked.ask(asked.asking.ask(point, subject))
    Path("edited.yml").write_text(text)
    done = cli("decide", "r.jsonl", "edit", "--edited", "edited.yml")
    assert done.code == 2
    assert told in done.err
    assert asked.heard == []


def test_an_idle_run_differs_from_one_without_remote_decisions(
    asked: Asked, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_tui.sessions.approval_broker.OPENING_SECONDS", 0)
    done = cli("decide", "r.jsonl", "approve")
    assert (done.code, "is not waiting for a decision right now" in done.err) == (2, True)
    asked.asking.ask("tool")
    done = cli("decide", "r.jsonl", "approve")
    assert (done.code, "cannot take a decision from another terminal right now" in done.err) == (2, True)


def test_a_decision_waits_for_a_run_that_has_just_asked(
    asked: Asked, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = asked.asking.ask("tool")
    wait = time.sleep
    opening = [lambda: asked.ask(request)]

    def sleep(seconds: float) -> None:
        opening.pop()() if opening else wait(seconds)

    monkeypatch.setattr("aeon_tui.sessions.approval_broker.time.sleep", sleep)
    done = cli("decide", "r.jsonl", "approve")
    assert (done.code, done.err.splitlines()[-1]) == (0, "decided: approve; delivered to the run")


def test_an_unheard_decision_is_reported(asked: Asked, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_tui.sessions.approval_broker.PATIENCE_SECONDS", 0.05)
    with Inbox(asked.asking.path, asked.asking.ask("tool")):
        done = cli("decide", "r.jsonl", "approve", "--json")
    assert done.code == 1
    assert "has not taken the decision within 0.05 s, but still may" in done.err
    assert json.loads(done.out)["taken"] is False


def test_last_decides_nothing_while_several_runs_wait(asked: Asked, cli: Cli, tmp_path: Path) -> None:
    asked.ask(asked.asking.ask("tool"))
    other = Asking(tmp_path / "r2.jsonl")
    other.ask("plan")
    done = cli("decide", "last", "approve", "--runs-dir", str(tmp_path))
    assert done.code == 2
    assert "2 runs wait for a decision, so name the one you mean: " in done.err
    assert [each in done.err for each in ("r2 (plan: clean up)", "r (tool: clean up)")] == [True, True]
    other.end()
    done = cli("decide", "last", "approve", "--runs-dir", str(tmp_path))
    assert (done.code, asked.heard) == (2, []), "r2 is the last, and has ended"
    assert "but another one is, so name it: r (tool: clean up)" in done.err
    other.path.unlink()
    assert cli("decide", "last", "approve", "--runs-dir", str(tmp_path)).code == 0


def test_show_and_watch_name_the_question_and_the_command(asked: Asked, cli: Cli) -> None:
    asked.ask(asked.asking.ask("tool"))
    how = f"`aeon-tui decide {Path('r.jsonl').absolute()} approve` (or edit, reject, abort)"
    assert cli("show", "r.jsonl").err == f"waiting: Call erase? · to decide: {how}\n"
    watch = subprocess.Popen(
        [sys.executable, "-m", "aeon_tui", "watch", "--headless", "./r.jsonl"],
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watch.stderr is not None
    told: list[str] = []
    while not told or "to decide:" not in told[-1]:
        told.append(watch.stderr.readline())
        assert told[-1], told
    watch.kill()
    watch.communicate()
    assert "Call erase?\n" in told
    assert "  path: notes.txt\n" in told
    assert told[-1] == f"to decide: {how}\n"


@pytest.mark.exhaustive
def test_a_run_of_a_batch_is_decided_too(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "task": "add 2 and 3"}\n')
    options = ("--model", "simulated:default", "--approve", "plan", "--wait", "60")
    process = Process(tmp_path, "batch", "tasks.jsonl", *options)
    process.waits()
    assert cli("decide", str(process.journal), "approve").code == 0
    code, _, err = process.ended()
    assert code == 0
    assert (
        f"run tasks.a: waiting 60 s for a decision about the plan of pass 1: `aeon-tui decide {process.journal}" in err
    )
