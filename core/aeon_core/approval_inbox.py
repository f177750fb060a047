"""Decisions from another terminal (`--wait`): an inbox beside the journal, `<run_id>.inbox`, while a question waits.

The run's own process creates the file when it begins to wait, reads decisions from it, journals the one that it
applies, and removes the file. A decider elsewhere writes one line into it, and nothing else. Anyone who may write to
the file can decide. It therefore has mode 0600 and is read through the descriptor that created it, so that a file put
in its place does not count; a writer follows no link, and writes only to a file of its own user. Each question has its
own file, and each line names the `seq` and the digest of its question, so that a decision about an earlier question, or
for an earlier process, is ignored.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, ValidationError

from aeon_core.approvals import (
    ANSWERS,
    NOBODY,
    TOO_LATE,
    ApprovalDecision,
    ApprovalRequest,
    Approver,
    PendingApproval,
    ask,
    pending_approval,
    rejected,
)
from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.journal.records import AllowedRule, Decision
from aeon_core.journal.summary import INBOX, is_being_written
from aeon_core.journal.values import strs_of
from aeon_core.json_safe import NotJsonSafeError, json_safe
from aeon_core.paths import run_command

POLL_SECONDS = 0.1
"""Seconds between a waiting run's checks for a decision made elsewhere, and its sender's checks for the outcome."""
MAX_LETTER = 8 * 1024 * 1024
"""The most bytes of a line; a longer one is not read."""
_MAX_RECEIPT = 1_000
_CHUNK = 256 * 1024
_CHUNKS = 64
"""The most bytes read in one check: a waiting process must be able to end, whatever is written into the file."""
_MODE = stat.S_IRUSR | stat.S_IWUSR

Fate = Literal["waits", "taken", "passed", "died"]
"""The outcome of a decision: not read yet; the run applies it; another came first, or the run no longer
waits; or the run's process ended over it."""


def inbox_of(journal: Path) -> Path:
    """Return the file for decisions about a run."""
    return journal.with_name(f"{journal.stem}{INBOX}")


class _Letter(BaseModel):
    """One line with a decision."""

    v: Literal[1]
    id: str = Field(min_length=1, max_length=64)
    seq: int = Field(strict=True)
    digest: str
    decision: Decision
    feedback: str | None = None
    edited: dict[str, Any] | None = None
    answers: dict[str, str] | None = None
    allow: AllowedRule | None = None


class _Receipt(BaseModel):
    """The last line of the run's process: the decision (null if it no longer waits), and whose it was."""

    v: Literal[1]
    taken: str | None
    """The id of a letter; null if the decision came another way."""
    decision: Decision | None


class Inbox:
    """The decisions about one question, for the process that waits with it; a context.

    Nothing is raised: if the file cannot be created, `problem` is the reason, and no decision comes. Not thread-safe.
    """

    def __init__(self, journal: Path | None, request: ApprovalRequest) -> None:
        self.problem = "the run keeps no journal" if journal is None else ""
        self._path = inbox_of(journal) if journal is not None else None
        self._journal = journal
        self._request = request
        self._seq = -1
        self._fd: int | None = None
        self._offset = 0
        self._rest = b""
        self._letters: deque[_Letter] = deque()
        self._taken: tuple[str, ApprovalDecision] | None = None
        self._decided: ApprovalDecision | None = None

    def __enter__(self) -> Self:
        if self._journal is not None:
            try:
                question = pending_approval(self._journal, texts=False)
                if question is None or question.digest != self._request.digest:
                    raise AeonError("the journal does not end with the question")
                self._seq = question.seq
                self._make()
            except (AeonError, OSError) as error:
                self.problem = error.message if isinstance(error, AeonError) else str(error.strerror)
        return self

    def _make(self) -> None:
        """Recreate the file: an existing one was left by an earlier process, or does not belong here."""
        assert self._path is not None
        self._close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._fd = os.open(self._path, flags, _MODE)
        self._offset, self._rest = 0, b""

    def take(self) -> ApprovalDecision | None:
        """Return the first decision about the question, None if there is none."""
        if self._fd is None:
            return None
        try:
            self._read()
        except OSError as error:
            self.problem = str(error.strerror)
            self._close()
        while self._letters:
            letter = self._letters.popleft()
            decision = self._decision_of(letter)
            if decision is not None:
                self._taken = letter.id, decision
                return decision
        return None

    def settle(self, decision: ApprovalDecision) -> ApprovalDecision:
        """Return the decision that the run applies; its writers get a receipt when the inbox closes."""
        self._decided = decision
        return decision

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is None or self._path is None:
            return
        decided, taken = self._decided, self._taken
        receipt = _Receipt(
            v=1,
            taken=taken[0] if taken is not None and decided is taken[1] else None,
            decision=decided.decision if decided is not None else None,
        )
        with contextlib.suppress(OSError):
            _append(self._fd, receipt.model_dump())
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(self._fd), self._path.lstat()):
                self._path.unlink()
        self._close()

    def _read(self) -> None:
        """Read new lines, unless others may write the file. A removed file is created again. Raises OSError."""
        assert self._fd is not None
        found = os.fstat(self._fd)
        if found.st_nlink == 0:
            self._make()
            return
        if not _is_private(found):
            self._offset, self._rest = found.st_size, b""
            return
        if found.st_size < self._offset:
            # Somebody has emptied it; read on from its new end.
            self._offset, self._rest = 0, b""
        for _ in range(_CHUNKS):
            chunk = os.pread(self._fd, _CHUNK, self._offset)
            self._offset += len(chunk)
            *whole, self._rest = (self._rest + chunk).split(b"\n")
            self._letters.extend(letter for line in whole if (letter := _letter(line)) is not None)
            # One byte too many is enough to recognise, at its end, that the line is too long.
            self._rest = self._rest[: MAX_LETTER + 1]
            if len(chunk) < _CHUNK:
                break

    def _decision_of(self, letter: _Letter) -> ApprovalDecision | None:
        """Return the decision of a letter; None if it is about another question, or not an answer to this one."""
        if (letter.seq, letter.digest) != (self._seq, self._request.digest):
            return None
        if letter.decision not in ANSWERS[self._request.point] or (letter.decision == "edit") != (
            letter.edited is not None
        ):
            return None
        try:
            edited = json_safe(letter.edited)
        except NotJsonSafeError:
            return None
        given = letter.model_dump(include={"decision", "feedback", "answers", "allow"})
        return ApprovalDecision(**given, edited=edited)

    def _close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Sent:
    """A decision that was written, and its outcome. `close` releases the file."""

    def __init__(self, journal: Path, question: PendingApproval, fd: int, letter: str) -> None:
        self.decided: Decision | None = None
        """The decision that the run applies, once known; somebody else's if this one came too late."""
        self._journal = journal
        self._question = question
        self._fd = fd
        self._letter = letter
        self._receipt: _Receipt | None = None

    def fate(self) -> Fate:
        """Return its outcome; it was accepted once the journal shows it. Raises AeonError, OSError."""
        # In this order: the process writes the receipt before the journal, and both while it lives.
        alive = is_being_written(self._journal)
        last = pending_approval(self._journal, texts=False)
        receipt = self._receipt = self._receipt or _receipt_in(self._fd)
        self.decided = receipt.decision if receipt is not None else None
        if last is not None and last.seq == self._question.seq:
            heard = receipt is not None and receipt.taken != self._letter
            return "passed" if heard else "waits" if alive else "died"
        return "taken" if receipt is not None and receipt.taken == self._letter else "passed"

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)


def send(journal: Path, question: PendingApproval, decision: ApprovalDecision) -> Sent:
    """Write a decision about the question of a waiting run, for its own process to read.

    Raises UsageError if that accepts no decisions from elsewhere, AeonError if the line cannot be written.
    """
    letter = secrets.token_hex(8)
    body = {"v": 1, "id": letter, "seq": question.seq, "digest": question.digest, **decision.model_dump()}
    if len(json.dumps(body)) > MAX_LETTER:
        raise UsageError(f"the decision is larger than {MAX_LETTER // 1024**2} MiB; shorten the edit")
    fd = _open(inbox_of(journal))
    try:
        _append(fd, body)
    except OSError as error:
        os.close(fd)
        raise AeonError(f"cannot write the decision: {error.strerror}; nothing was decided") from None
    return Sent(journal, question, fd, letter)


def forget_left(journal: Path) -> None:
    """Remove the inbox of a process that has ended. Raises OSError if the journal cannot be read."""
    if not is_being_written(journal):
        with contextlib.suppress(OSError):
            inbox_of(journal).unlink()


def takes_decisions(journal: Path) -> bool:
    """Return whether a run waits with an inbox that this user may write to."""
    try:
        os.close(_open(inbox_of(journal)))
    except UsageError:
        return False
    return True


def _open(path: Path) -> int:
    """Return a descriptor of the inbox. Raises UsageError if there is none."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise UsageError(
            f"the run {path.stem!r} cannot take a decision from another terminal right now; answer where it runs"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot write to the inbox {str(path)!r}: {error.strerror}") from None
    found = os.fstat(fd)
    if not _is_private(found):
        os.close(fd)
        raise UsageError(f"the inbox {str(path)!r} is not a file that only you can write, so nothing was written to it")
    return fd


def _is_private(found: os.stat_result) -> bool:
    mode = found.st_mode
    return stat.S_ISREG(mode) and stat.S_IMODE(mode) & ~_MODE == 0 and found.st_uid == os.geteuid()


def _append(fd: int, value: dict[str, Any]) -> None:
    """Write one line in a single write; it starts on a new line, whatever precedes it. Raises OSError."""
    line = f"\n{json.dumps(value)}\n".encode()
    if os.write(fd, line) != len(line):
        raise OSError(0, "only part of it could be written")


def _letter(line: bytes) -> _Letter | None:
    if not 0 < len(line) <= MAX_LETTER:
        return None
    try:
        return _Letter.model_validate_json(line)
    except (ValidationError, RecursionError):
        return None


def _receipt_in(fd: int) -> _Receipt | None:
    """Return the receipt in the file, None if there is none yet; late letters follow it."""
    size = os.fstat(fd).st_size
    for line in os.pread(fd, 2 * MAX_LETTER, max(0, size - 2 * MAX_LETTER)).split(b"\n"):
        if len(line) <= _MAX_RECEIPT:
            with contextlib.suppress(ValidationError):
                return _Receipt.model_validate_json(line)
    return None


_CALLS = frozenset({"tool", "budget"})
"""Points that need approval with `tool`. The kernel itself knows when the others do."""


def about(approve: Sequence[str], approver: Approver | None) -> Approver | None:
    """Return an approver that is asked before calls only if `approve` has `tool`; otherwise nobody can be asked.

    This also holds for decisions from another terminal: `--wait` alone does not make anybody askable.
    """
    if "tool" in approve or approver is None:
        return approver
    return lambda request: ask(None if request.point in _CALLS else approver, request)


def how_to_decide(journal: Path, request: ApprovalRequest) -> str:
    """Return the command that decides, and what else it takes."""
    first, *others = ANSWERS[request.point]
    choices = strs_of(request.subject.get("choices"))
    answers = f"; {first} takes --answer {' | '.join(choices)}" if choices else ""
    return f"{run_command('decide', journal, first)} (or {', '.join(others)}){answers}"


class RemoteApprover:
    """An approver that waits this many seconds for each decision, then refuses as if nobody could be asked.

    `say` gets lines about waiting and its outcome. `pause` waits for some seconds, `clock` returns the time.
    """

    def __init__(
        self,
        journal: Path,
        seconds: float,
        say: Callable[[str], None],
        show: Callable[[ApprovalRequest], None] | None = None,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal, self._seconds = journal, seconds
        self._say, self._show = say, show
        self._pause, self._clock = pause, clock
        self._ending = False

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        """Return the decision made elsewhere; `abort` once `abort` was called."""
        if self._show is not None:
            self._show(request)
        with Inbox(self._journal, request) as inbox:
            decision = None
            if not inbox.problem:
                how = how_to_decide(self._journal, request)
                self._say(f"waiting {self._seconds:g} s for a decision about {_what(request)}: {how}")
                decision = self._decided(inbox)
            if decision is None and inbox.problem:
                self._say(f"cannot take decisions from another terminal: {inbox.problem}")
                return rejected(NOBODY)
            return inbox.settle(decision) if decision is not None else rejected(TOO_LATE)

    def _decided(self, inbox: Inbox) -> ApprovalDecision | None:
        """Return the decision, None if none arrives in time or the inbox is lost."""
        deadline = self._clock() + self._seconds
        while not self._ending:
            if (decision := inbox.take()) is not None:
                self._say(f"decided in another terminal: {decision.decision}")
                return decision
            if inbox.problem:
                return None
            if (left := deadline - self._clock()) <= 0:
                self._say(f"no decision within {self._seconds:g} s")
                return None
            self._pause(min(left, POLL_SECONDS))
        return ApprovalDecision(decision="abort")

    def abort(self) -> None:
        """Answer the waiting question and all later ones with `abort`; from any thread, and from a signal handler."""
        self._ending = True


def _what(request: ApprovalRequest) -> str:
    """Return the subject of the decision in a few words."""
    if request.point in ("plan", "pass"):
        return f"the plan of pass {request.pass_number}" if request.point == "plan" else f"pass {request.pass_number}"
    if request.point == "budget":
        return "the budget"
    if request.point == "gate":
        return f"gate {request.subject.get('gate')}"
    if request.point == "question":
        return f"this question: {escape_controls(str(request.subject.get('text')))}"
    return f"the call of {escape_controls(str(request.subject.get('tool_name')))!r}"
