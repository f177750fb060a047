"""The question on the terminal of a headless run: only a plain yes is one, and Ctrl-C ends the waiting."""

from __future__ import annotations

import io
import json
import os
import select
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approval_inbox import Sent, inbox_of, send
from aeon_core.approvals import NOBODY, ApprovalDecision, ApprovalRequest, pending_approval
from aeon_core.journal.view.model import AssessmentView, RunView
from aeon_tui.cli.approval_prompt import TerminalApprover, prompt, question_of
from aeon_tui.cli.output import stderr
from tests.aeon_core.questions import Asking
from tests.aeon_tui.cli.conftest import Cli
from tests.fakes import steps
from tests.sampling import sample
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("default_signals")

REQUEST = ApprovalRequest(
    point="tool",
    pass_number=1,
    subject={"tool_name": "Bash", "arguments": {"command": "ls\nrm x"}, "description": "look"},
    digest="d",
)


PROMPT = prompt(question_of(REQUEST, RunView()))


def answered(monkeypatch: pytest.MonkeyPatch, typed: str) -> ApprovalDecision:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return TerminalApprover(stderr())(REQUEST)


@pytest.mark.parametrize(
    ("typed", "decision", "feedback"),
    [
        ("a\n", "approve", None),
        ("Yes\n", "approve", None),
        ("w not  this one\n", "reject", "not  this one"),
        ("Reject not this\n", "reject", "not this"),
        ("X\n", "abort", None),
        ("abort\n", "abort", None),
        ("", "reject", "the input ended without an answer"),
        ("w\nreject\nno way\n", "reject", "way"),
        ("r\nr not this\nd\nq\nx\nA\nc\na\n", "approve", None),
        ("a but not the last file\nX later\nw no\n", "reject", "no"),
    ],
)
def test_an_answer_is_read_strictly(
    monkeypatch: pytest.MonkeyPatch, typed: str, decision: str, feedback: str | None
) -> None:
    found = answered(monkeypatch, typed)
    assert (found.decision, found.feedback) == (decision, feedback)


@pytest.mark.parametrize(
    ("typed", "rule"),
    [("A\n", "erase(a.txt)"), ("A erase(*.txt)\n", "erase(*.txt)"), ("A Bash\nA erase(*.md)\nA erase\n", "erase")],
)
def test_a_rule_is_allowed_for_this_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, rule: str
) -> None:
    subject = {"tool_name": "erase", "arguments": {"path": "a.txt"}}
    subject["proposal"] = {"rule": "erase(a.txt)", "about": "a.txt"}
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    found = TerminalApprover(stderr())(REQUEST.model_copy(update={"subject": subject}))
    assert found.decision == "approve"
    assert found.allow is not None
    assert found.allow.model_dump() == {"rule": rule, "scope": "run"}
    told = capsys.readouterr().err
    assert "Always allow erase(a.txt)" in told
    assert ("the rule must begin with erase" in told) is (typed.count("A") == 3)


def test_a_proposed_rule_is_shown_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    subject = {**REQUEST.subject, "proposal": {"rule": f"Bash({'git log ' * 20}rm\u3000*)", "about": "rm"}}
    monkeypatch.setattr(sys, "stdin", io.StringIO("w no\n"))
    TerminalApprover(stderr())(REQUEST.model_copy(update={"subject": subject}))
    assert f"A [RULE]  Always allow Bash({'git log ' * 20}rm\\u3000*)\n" in capsys.readouterr().err


def test_the_call_is_shown_whole_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, "a\n")
    shown = capsys.readouterr().err
    assert shown.index("Run this command?") < shown.index("  ls\n  rm x\n") < shown.index("a         Run it\n")


PLAN = {
    "goal": "sums",
    "steps": [
        {"step_id": "s1", "description": "Add", "status": "complete", "tool": "calculator", "arguments": {"a": "5\n6"}},
        {"step_id": "s2", "description": "Say it", "status": "pending", "agent": "llm"},
    ],
}
ISSUE = {
    "issue_id": "i",
    "type": "specificity",
    "severity": "high",
    "description": "too vague",
    "location": {"artifact": "plan", "step_id": "s2"},
    "proposed_repair": "split it",
}
SUBJECT = {
    "plan": PLAN,
    "issues": [ISSUE],
    "refinements": [],
    "questions": ["For whom?"],
    "ttl": {"limit": 50, "allocated": 30, "spent": 10, "remaining": 20},
    "answer": "\n".join(f"line {number}" for number in range(100)),
    "convergence": {"converged": False, "completeness_score": 0.6, "coherence_score": 0.9, "reason_codes": []},
    "ended": None,
}


def reviewed(monkeypatch: pytest.MonkeyPatch, typed: str, point: Any = "pass", **more: Any) -> ApprovalDecision:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    request = ApprovalRequest(point=point, pass_number=2, subject={**SUBJECT, **more}, digest="d")
    return TerminalApprover(stderr(), view_of_two_passes)(request)


def view_of_two_passes() -> RunView:
    criteria = {"completeness": 0.8, "coherence": 0.8}
    scores = [(1, 0.41, 0.5), (2, 0.6, 0.9)]
    return RunView(
        assessments=[
            AssessmentView(0, number, False, completeness_score=one, coherence_score=other, criteria=criteria)
            for number, one, other in scores
        ]
    )


@pytest.mark.parametrize(
    ("point", "typed", "decision", "feedback"),
    [
        ("plan", "a\n", "approve", None),
        ("plan", "r\nc\nX\n", "abort", None),
        ("plan", "w make it shorter\n", "reject", "make it shorter"),
        ("plan", "", "reject", NOBODY),
        ("pass", "r\n", "replay", None),
        ("pass", "r shorter\nreplay the first\nReplay\n", "replay", None),
        ("pass", "c\n", "accept", None),
        ("pass", "c but shorter\nw shorter\n", "reject", "shorter"),
        ("pass", "X\n", "abort", None),
        ("pass", "", "reject", NOBODY),
    ],
)
def test_a_plan_and_a_pass_are_decided_by_letters(
    monkeypatch: pytest.MonkeyPatch, point: str, typed: str, decision: str, feedback: str | None
) -> None:
    found = reviewed(monkeypatch, typed, point)
    assert (found.decision, found.feedback) == (decision, feedback)


def test_elided_parts_of_a_pass_can_be_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\n"))
    request = ApprovalRequest(point="pass", pass_number=2, subject=SUBJECT, digest="d")
    TerminalApprover(stderr(), view_of_two_passes, tmp_path / "a run.jsonl")(request)
    assert f"… 41 more lines; see all with `aeon-tui show '{tmp_path}/a run.jsonl'`" in capsys.readouterr().err


def test_all_of_a_plan_is_shown_before_it_is_approved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = {"goal": "many", "steps": [{"step_id": f"s{n}", "description": f"work {n}"} for n in range(100)]}
    reviewed(monkeypatch, "a\n", "plan", plan=plan)
    shown = capsys.readouterr().err
    assert all(f"work {n}" in shown for n in range(100))
    assert "more line" not in shown


def test_a_pass_is_summarized(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    reviewed(monkeypatch, "a\n")
    lines = [line.strip() for line in capsys.readouterr().err.splitlines()]
    assert lines[0] == "Not finished: the judge gave no reason"
    assert "✖ completeness 0.41 → 0.60, 0.80 required" in lines
    assert "✔ coherence 0.50 → 0.90, 0.80 required" in lines
    assert "│ line 0" in lines
    assert "│ line 99" not in lines
    assert "… 41 more lines" in lines
    assert "1 issue: ✖ 1 high" in lines
    assert "too vague" in lines
    assert "? For whom?" in lines
    assert lines[-8:] == [
        "a         Run another pass",
        "w REASON  Tell it what to fix",
        "c         Accept the result as it is",
        "r         Run this pass again",
        "e         Edit the plan",
        "X         End here, not finished",
        "enter     Answer the open questions",
        "\a[a, w REASON, c, r, e, X, enter]",
    ]


def test_a_plan_is_reported_with_its_calls(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    reviewed(monkeypatch, "a\n", "plan", problem="steps[0]: no goal")
    shown = capsys.readouterr().err
    assert "✖ the edited plan was not used: steps[0]: no goal" in shown
    assert "calls calculator\n" in shown
    assert "Run this plan? 2 steps, 1 issue" in shown
    assert "line 0" not in shown


def test_pressing_e_opens_the_plan_in_an_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = tmp_path / "editor"
    script.write_text("#!/bin/sh\nsed -i 's/^goal: sums/goal: all sums/' \"$1\"\n")
    script.chmod(0o755)
    monkeypatch.setenv("VISUAL", "true")
    assert reviewed(monkeypatch, "e\na\n").decision == "approve"
    assert "no changes, so nothing is decided" in capsys.readouterr().err
    monkeypatch.setenv("VISUAL", "/no/editor")
    assert reviewed(monkeypatch, "edit\na\n").decision == "approve"
    assert "cannot start the editor '/no/editor'" in capsys.readouterr().err
    monkeypatch.setenv("VISUAL", str(script))
    found = reviewed(monkeypatch, "e\n")
    assert (found.decision, found.edited) == ("edit", {**PLAN, "goal": "all sums"})
    assert list(tmp_path.glob("aeon-plan-*")) == []


@pytest.mark.parametrize("point", sample(["plan", "pass"], 1))
def test_without_a_terminal_the_run_stops_and_can_be_continued(cli: Cli, point: str) -> None:
    done = cli("demo", "--headless", "--json", "--approve", point)
    assert done.code == 1
    result = json.loads(done.out)
    assert (result["status"], result["passes"]) == ("aborted", 0)
    assert f"the {point} needed approval, but there was no one to ask; resume it at a terminal" in done.err
    unasked = cli("resume", "last", "--json")
    assert (unasked.code, json.loads(unasked.out)["status"]) == (1, "aborted")
    again = cli("resume", "last", "--json", "--approve", "none")
    assert again.code == 0
    assert (json.loads(again.out)["status"], json.loads(again.out)["passes"]) == ("converged", 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_question_aborts_at_once(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    class Interrupting(io.StringIO):
        def readline(self, size: int | None = -1) -> str:
            signal.raise_signal(number)
            return "a\n"

    monkeypatch.setattr(sys, "stdin", Interrupting())
    before = signal.signal(number, lambda *_: None)
    try:
        assert TerminalApprover(stderr())(REQUEST).decision == "abort"
        assert signal.getsignal(number) is not signal.default_int_handler
        assert signal.getsignal(number) is not before
    finally:
        signal.signal(number, before)


def test_input_typed_before_the_question_is_not_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = os.openpty()
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        os.write(master, b"a\n")

        class Asking(io.StringIO):
            def write(self, text: str) -> int:
                if text == PROMPT:
                    os.write(master, b"w now\n")
                return len(text)

        monkeypatch.setattr(sys, "stderr", Asking())
        found = TerminalApprover(stderr())(REQUEST)
    os.close(master)
    assert (found.decision, found.feedback) == ("reject", "now")


def test_enter_answers_the_open_questions_and_the_answers_go_with_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = {**SUBJECT, "questions": ["For whom?", "When?", "Why?"], "answers": {"When?": "now", "Why?": "fun"}}
    request = ApprovalRequest(point="pass", pass_number=2, subject=subject, digest="d")
    asks = prompt(question_of(request, RunView()))
    assert asks.endswith(", enter] ")
    replies = {asks: ["\n", "a\n"], "answer: ": ["  for me \n"], "[now] ": ["later\n"], "[fun] ": ["\n"]}
    master, terminal = os.openpty()
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)

        class Typing(io.StringIO):
            def write(self, text: str) -> int:
                if replies.get(text):
                    os.write(master, replies[text].pop(0).encode())
                return super().write(text)

        terminal_text = Typing()
        monkeypatch.setattr(sys, "stderr", terminal_text)
        found = TerminalApprover(stderr())(request)
        told = terminal_text.getvalue()
    os.close(master)
    assert (found.decision, found.answers) == (
        "approve",
        {"For whom?": "for me", "When?": "later", "Why?": "fun"},
    )
    in_order = ["enter     Answer the open questions", "? For whom?\nanswer: ", "? When?\n[now] ", "? Why?\n[fun] "]
    assert sorted(in_order, key=told.index) == in_order
    assert "3 answers given; now decide" in told


def test_end_of_input_while_answering_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = reviewed(monkeypatch, "\nfor me\n")
    assert (found.decision, found.feedback, found.answers) == ("reject", NOBODY, {"For whom?": "for me"})
    assert reviewed(monkeypatch, "\n").decision == "reject"
    assert answered(monkeypatch, "\na\n").decision == "approve", "nothing is open: it is asked again"


def test_nobody_is_asked_if_the_question_cannot_be_seen(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("plan.json").write_text(json.dumps(steps({"tool": "Bash", "arguments": {"command": "echo hi"}})))
    monkeypatch.setattr("aeon_core.process.is_terminal", lambda stream: stream is sys.stdin)
    options = ("--headless", "--approve", "tool", "--tools", "shell", "--plan", "plan.json")
    done = cli("run", *options, "--model", "simulated:default", stdin="a\n")
    assert done.code == 5
    assert "there was no one to ask; allow it with --allow Bash" in done.err
    assert PROMPT not in done.err


def test_a_decision_from_another_terminal_takes_the_prompt_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = Asking(tmp_path / "r.jsonl")
    request = asking.ask("tool")
    master, terminal = os.openpty()
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)

        def decide() -> None:
            wait_until(lambda: inbox_of(asking.path).exists())
            os.write(master, b"half a li")
            question = pending_approval(asking.path)
            assert question is not None
            send(asking.path, question, ApprovalDecision(decision="reject", feedback="not now")).close()

        thread = threading.Thread(target=decide)
        thread.start()
        found = TerminalApprover(stderr(), journal=asking.path)(request)
        thread.join()
        assert select.select([stream], [], [], 0)[0] == [], "what was typed meanwhile answers nothing"
    os.close(master)
    asking.end()
    assert (found.decision, found.feedback) == ("reject", "not now")
    assert capsys.readouterr().err.endswith(f"{PROMPT}\r\x1b[Kdecided in another terminal: reject\n")
    assert not inbox_of(asking.path).exists()


def test_the_first_answer_counts_and_later_ones_are_notified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asking = Asking(tmp_path / "r.jsonl")
    request = asking.ask("tool")
    sent: list[Sent] = []

    class Typing(io.StringIO):
        def readline(self, size: int | None = -1) -> str:
            question = pending_approval(asking.path)
            assert question is not None
            sent.append(send(asking.path, question, ApprovalDecision(decision="abort")))
            return "a\n"

    monkeypatch.setattr(sys, "stdin", Typing())
    assert TerminalApprover(stderr(), journal=asking.path)(request).decision == "approve"
    assert (sent[0].fate(), sent[0].decided) == ("passed", "approve")
    sent[0].close()
    asking.end()
