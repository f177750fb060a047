"""The question on the terminal of a headless run: only a plain yes is one, and Ctrl-C ends the waiting."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from aeon_core.effects.approval import ApprovalDecision, ApprovalRequest
from aeon_tui.cli._ask import QUESTION, TerminalApprover
from aeon_tui.cli._output import stderr
from tests.aeon_tui.cli.conftest import Cli
from tests.fakes import steps

REQUEST = ApprovalRequest(
    point="tool",
    pass_number=1,
    subject={"tool_name": "Bash", "arguments": {"command": "ls\nrm x"}, "description": "look"},
    digest="d",
)


def answered(monkeypatch: pytest.MonkeyPatch, typed: str) -> ApprovalDecision:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return TerminalApprover(stderr())(REQUEST)


@pytest.mark.parametrize(
    ("typed", "decision", "feedback"),
    [
        ("a\n", "approve", None),
        ("Yes\n", "approve", None),
        ("r\n", "reject", None),
        ("r not  this one\n", "reject", "not  this one"),
        ("q\n", "abort", None),
        ("", "reject", "the input ended before an answer"),
        ("\nwhat?\nn\n", "reject", None),
        ("a but not the last file\nr\n", "reject", None),
        ("y, no\nq later\nr\n", "reject", None),
    ],
)
def test_an_answer_is_read_strictly(
    monkeypatch: pytest.MonkeyPatch, typed: str, decision: str, feedback: str | None
) -> None:
    found = answered(monkeypatch, typed)
    assert (found.decision, found.feedback) == (decision, feedback)


def test_the_call_is_shown_whole_before_the_question(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(monkeypatch, "a\n")
    shown = capsys.readouterr().err
    assert shown.index("May Bash be called?") < shown.index("  ls\n  rm x\n") < shown.index(QUESTION)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def test_what_was_typed_before_the_question_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    master, terminal = os.openpty()
    with os.fdopen(terminal) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        os.write(master, b"a\n")

        class Asking(io.StringIO):
            def write(self, text: str) -> int:
                if text == QUESTION:
                    os.write(master, b"r now\n")
                return len(text)

        monkeypatch.setattr(sys, "stderr", Asking())
        found = TerminalApprover(stderr())(REQUEST)
    os.close(master)
    assert (found.decision, found.feedback) == ("reject", "now")


def test_where_the_question_could_not_be_seen_nobody_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("plan.json").write_text(json.dumps(steps({"tool": "Bash", "arguments": {"command": "echo hi"}})))
    monkeypatch.setattr("aeon_tui.cli.run.is_terminal", lambda stream: stream is sys.stdin)
    options = ("--headless", "--approve", "tool", "--tools", "shell", "--plan", "plan.json")
    done = cli("run", *options, "--model", "simulated:default", stdin="a\n")
    assert done.code == 5
    assert "nobody could be asked; allow it with --allow Bash" in done.err
    assert QUESTION not in done.err
