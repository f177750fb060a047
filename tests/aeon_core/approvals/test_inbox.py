"""The inbox of a question: what is taken from it, what is ignored, and the receipts of deciders."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core import approval_inbox as inbox_module
from aeon_core.approval_inbox import Inbox, forget_left, inbox_of, send, takes_decisions
from aeon_core.approvals import ApprovalDecision, ApprovalRequest, PendingApproval, pending_approval
from aeon_core.errors import UsageError
from tests.aeon_core.questions import Asked, Asking
from tests.waiting import wait_until

APPROVE = ApprovalDecision(decision="approve")
REJECT = ApprovalDecision(decision="reject", feedback="shorter")


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    made = Asking(tmp_path / "r.jsonl")
    yield made
    made.end()


def question_of(asking: Asking) -> PendingApproval:
    question = pending_approval(asking.path)
    assert question is not None
    return question


def letter(asking: Asking, **changed: Any) -> bytes:
    question = question_of(asking)
    told = {"v": 1, "id": "x", "seq": question.seq, "digest": question.digest, "decision": "approve"}
    return json.dumps({**told, **changed}).encode() + b"\n"


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_a_decision_is_taken_once_and_acknowledged_when_journaled(asking: Asking) -> None:
    request = asking.ask("plan")
    with Inbox(asking.path, request) as inbox:
        path = inbox_of(asking.path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert inbox.take() is None
        sent = send(asking.path, question_of(asking), REJECT)
        assert sent.fate() == "waits"
        decision = inbox.take()
        assert decision == REJECT
        assert inbox.take() is None
        inbox.settle(decision)
    assert not path.exists()
    assert sent.fate() == "waits", "what is not journaled yet is not told as taken"
    asking.decide(REJECT)
    assert (sent.fate(), sent.decided) == ("taken", "reject")
    sent.close()


def test_one_of_two_deciders_wins_and_the_other_is_notified(asking: Asking) -> None:
    request = asking.ask("plan")
    with Inbox(asking.path, request) as inbox:
        first, second = (send(asking.path, question_of(asking), each) for each in (REJECT, APPROVE))
        decision = inbox.take()
        assert decision == REJECT
        inbox.settle(decision)
    asking.decide(decision)
    assert (first.fate(), second.fate(), second.decided) == ("taken", "passed", "reject")
    first.close()
    second.close()


def test_a_late_decider_learns_the_local_decision(asking: Asking) -> None:
    request = asking.ask("tool")
    with Inbox(asking.path, request) as inbox:
        sent = send(asking.path, question_of(asking), APPROVE)
        inbox.take()
        inbox.settle(ApprovalDecision(decision="reject"))
    asking.decide(ApprovalDecision(decision="reject"))
    assert (sent.fate(), sent.decided) == ("passed", "reject")
    sent.close()


def test_a_long_letter_that_comes_too_late_does_not_hide_who_won(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("plan")) as inbox:
        first = send(asking.path, question_of(asking), REJECT)
        late = os.open(inbox_of(asking.path), os.O_WRONLY | os.O_APPEND)
        decision = inbox.take()
        assert decision is not None
        inbox.settle(decision)
    os.write(late, letter(asking, decision="edit", edited={"goal": "x" * 1_000_000}))
    os.close(late)
    asking.decide(decision)
    assert (first.fate(), first.decided) == ("taken", "reject")
    first.close()


def test_one_of_many_simultaneous_deciders_wins(tmp_path: Path) -> None:
    asked = Asked(tmp_path / "r.jsonl")
    asked.ask(asked.asking.ask("plan"))
    question = pending_approval(asked.asking.path)
    assert question is not None

    def decide(number: int) -> tuple[int, str, str | None]:
        try:
            sent = send(asked.asking.path, question, APPROVE if number % 2 else REJECT)
        except UsageError:
            return number, "passed", None
        wait_until(lambda: sent.fate() in ("taken", "passed"))
        told = sent.fate(), sent.decided
        sent.close()
        return number, *told

    with ThreadPoolExecutor(12) as pool:
        told = list(pool.map(decide, range(12)))
    asked.end()
    [(winner, _, decided)] = [each for each in told if each[1] == "taken"]
    assert asked.heard == [APPROVE if winner % 2 else REJECT]
    assert decided == asked.heard[0].decision
    assert {each[2] for each in told} <= {decided, None}


def test_an_undecided_question_reports_its_timeout(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("tool")):
        sent = send(asking.path, question_of(asking), APPROVE)
    assert (sent.fate(), sent.decided) == ("passed", None)
    sent.close()


def test_a_process_that_dies_takes_no_decision(asking: Asking) -> None:
    inbox = Inbox(asking.path, asking.ask("tool")).__enter__()
    sent = send(asking.path, question_of(asking), APPROVE)
    asking.end()
    assert sent.fate() == "died"
    sent.close()
    assert inbox_of(asking.path).exists()
    forget_left(asking.path)
    assert not inbox_of(asking.path).exists()
    inbox.__exit__(None, None, None)


def test_a_live_inbox_is_not_forgotten(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("tool")):
        forget_left(asking.path)
        assert inbox_of(asking.path).exists()


def test_a_repeated_question_ignores_the_first_ones_answer(asking: Asking) -> None:
    first = asking.ask("tool")
    with Inbox(asking.path, first) as inbox:
        old = question_of(asking)
        stale = letter(asking)
    asking.decide(REJECT)
    second = asking.ask("tool")
    assert second.digest == first.digest
    inbox_of(asking.path).write_bytes(stale)
    with Inbox(asking.path, second) as inbox:
        assert inbox.take() is None, "what lay there before the question"
        append(inbox_of(asking.path), stale)
        sent = send(asking.path, old, APPROVE)
        assert inbox.take() is None, "what names the earlier question"
        assert sent.fate() == "passed"
        sent.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"digest": "0" * 64},
        {"seq": 10_000},
        {"seq": "1"},
        {"v": 2},
        {"id": ""},
        {"id": "x" * 65},
        {"decision": "replay"},
        {"decision": "yes"},
        {"decision": "edit"},
        {"edited": {"path": "x"}},
        {"decision": "edit", "edited": [1]},
        {"decision": "edit", "edited": {"a": [[]] * 2}, "feedback": 3},
    ],
)
def test_a_letter_that_is_not_an_answer_is_skipped(asking: Asking, changed: dict[str, Any]) -> None:
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        append(inbox_of(asking.path), letter(asking, **changed))
        assert inbox.take() is None
        append(inbox_of(asking.path), letter(asking))
        assert inbox.take() == APPROVE


@given(st.lists(st.binary(max_size=40) | st.text(max_size=40).map(str.encode), max_size=20))
def test_other_files_neither_hide_nor_change_a_letter(
    tmp_path_factory: pytest.TempPathFactory, noise: list[bytes]
) -> None:
    asking = Asking(tmp_path_factory.mktemp("run") / "r.jsonl")
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        append(inbox_of(asking.path), b"\n".join(noise))
        assert inbox.take() is None
        sent = send(asking.path, question_of(asking), REJECT)
        append(inbox_of(asking.path), b"".join(noise))
        assert inbox.take() == REJECT
    sent.close()
    asking.end()


def test_a_line_that_is_too_long_is_skipped(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_module, "MAX_LETTER", 1_000)
    monkeypatch.setattr(inbox_module, "_CHUNK", 300)
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        append(inbox_of(asking.path), letter(asking, feedback="x" * 5_000) + letter(asking, feedback="y" * 500))
        assert (inbox.take() or APPROVE).feedback == "y" * 500
        with pytest.raises(UsageError, match="the decision is larger than"):
            send(asking.path, question_of(asking), ApprovalDecision(decision="reject", feedback="x" * 2_000))


def test_a_partial_letter_is_taken_once_complete(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        whole = letter(asking)
        for part in (whole[:7], whole[7:-1]):
            append(inbox_of(asking.path), part)
            assert inbox.take() is None
        append(inbox_of(asking.path), whole[-1:])
        assert inbox.take() == APPROVE


def test_an_inbox_that_others_may_write_is_not_read(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        path = inbox_of(asking.path)
        path.chmod(0o666)
        append(path, letter(asking))
        assert inbox.take() is None
        with pytest.raises(UsageError, match="not a file that only you can write"):
            send(asking.path, question_of(asking), APPROVE)
        path.chmod(0o600)
        assert inbox.take() is None, "what was written meanwhile"
        append(path, letter(asking))
        assert inbox.take() == APPROVE


def test_an_inbox_that_cannot_be_read_brings_no_decision(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with Inbox(asking.path, asking.ask("plan")) as inbox:
        send(asking.path, question_of(asking), APPROVE).close()
        with monkeypatch.context() as patched:
            patched.setattr(os, "pread", fail)
            assert (inbox.take(), inbox.problem) == (None, "Input/output error")
        assert inbox.take() is None


def test_a_truncated_inbox_is_still_read(asking: Asking) -> None:
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        path = inbox_of(asking.path)
        append(path, b"x" * 1_000)
        assert inbox.take() is None
        os.truncate(path, 0)
        append(path, letter(asking))
        assert inbox.take() == APPROVE


def test_an_inbox_of_another_user_is_not_written(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    with Inbox(asking.path, asking.ask("tool")):
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
        assert not takes_decisions(asking.path)


def test_a_replaced_inbox_is_not_read(asking: Asking, tmp_path: Path) -> None:
    with Inbox(asking.path, asking.ask("tool")) as inbox:
        path, other = inbox_of(asking.path), tmp_path / "other"
        other.write_bytes(letter(asking))
        path.unlink()
        path.symlink_to(other)
        assert inbox.take() is None
        assert not path.is_symlink(), "it is recreated"
        sent = send(asking.path, question_of(asking), REJECT)
        assert inbox.take() == REJECT
    assert other.read_bytes().count(b"\n") == 1, "what the link led to is as it was"
    sent.close()


def test_a_decider_follows_no_link(asking: Asking, tmp_path: Path) -> None:
    asking.ask("tool")
    (tmp_path / "other").touch(0o600)
    inbox_of(asking.path).symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="cannot write to the inbox"):
        send(asking.path, question_of(asking), APPROVE)
    assert (tmp_path / "other").read_bytes() == b""


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["fifo", "folder"])
def test_a_decider_does_not_block_on_an_irregular_file(asking: Asking, make: Any) -> None:
    asking.ask("tool")
    make(inbox_of(asking.path))
    with pytest.raises(UsageError):
        send(asking.path, question_of(asking), APPROVE)


def test_a_leftover_inbox_is_replaced_and_a_folder_refused(asking: Asking) -> None:
    request = asking.ask("tool")
    os.mkfifo(inbox_of(asking.path))
    with Inbox(asking.path, request) as inbox:
        assert inbox.problem == ""
        assert inbox_of(asking.path).is_file()
    inbox_of(asking.path).mkdir()
    with Inbox(asking.path, request) as inbox:
        assert inbox.problem != ""
        assert inbox.take() is None
    assert inbox_of(asking.path).is_dir()


def test_a_run_without_a_journal_takes_no_remote_decisions() -> None:
    request = ApprovalRequest(point="tool", pass_number=1, subject={}, digest="d")
    with Inbox(None, request) as inbox:
        assert (inbox.problem, inbox.take()) == ("the run keeps no journal", None)
