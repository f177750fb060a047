"""What a person is asked: requests, decisions, and the question that a run waits with, from its journal alone.

A decider elsewhere therefore sees what was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aeon_core.effects.outcomes import in_one_line
from aeon_core.entities import Entity
from aeon_core.errors import RunEnding
from aeon_core.journal.reader import (
    ASKED,
    STATE_TYPES,
    opened,
    parse_line,
    read_records,
    record_type,
    resolved,
    tail,
)
from aeon_core.journal.records import AllowedRule, ApprovalPoint, Decision
from aeon_core.json_safe import NotJsonSafeError, json_safe


class ApprovalRequest(Entity):
    """A question. `digest` binds the decision to `subject`, which is what was shown.

    About a `plan`, `subject` has plan, requirements, issues, questions, refinements and ttl; about a `pass` also
    answer, convergence and `ended`: how the run ends if the pass is approved, null for another pass. About a `tool` it
    has tool_name, arguments, description and reason, and the `preview` of a change to a file (its `diff`,
    `problem` or `warning`); about an interrupted call
    (`unknown`) tool_name, arguments and call_id. About the `budget` it has limit_usd, spent_usd, reserved_usd (what the
    next call may cost) and proposed_usd, the limit if it is approved. Workflows ask about a `gate` and a `question`.
    """

    point: ApprovalPoint
    pass_number: int
    step_id: str | None = None
    subject: dict[str, Any]
    digest: str


class ApprovalDecision(Entity):
    """A decision, with feedback if given.

    `edited` is the edited plan, which may have `requirements` too, or the arguments of the call, or `{"limit_usd": …}`.
    """

    decision: Decision
    """`approve`, `reject` and `abort` fit any point, `edit` all but `unknown`, `gate` and `question`; `replay`, which
    runs the pass again, and `accept`, which takes its result as it is, fit a pass.
    """
    feedback: str | None = None
    edited: dict[str, Any] | None = None
    answers: dict[str, str] | None = None
    """The answers to open questions, by question; the run plans with them if it continues."""
    allow: AllowedRule | None = None
    """The rule that allows calls like this one from here on. Only with the approval of a tool's call."""


REVIEWED = frozenset({"plan", "pass"})
"""Points at which a rejection leads to a refinement."""

Approver = Callable[[ApprovalRequest], ApprovalDecision]


def ask(approver: Approver | None, request: ApprovalRequest) -> ApprovalDecision:
    """Return the decision; if nobody can be asked, or the approver fails, a refusal with that reason."""
    if approver is None:
        return rejected(NOBODY)
    try:
        # It may change what it gets.
        decision = approver(request.model_copy(deep=True))
    except RunEnding:
        raise
    except Exception as error:
        return _failed(request, f"the approver failed: {in_one_line(error)}")
    if not isinstance(decision, ApprovalDecision):
        return _failed(request, f"the approver returned {type(decision).__name__}, expected an ApprovalDecision")
    if decision.decision not in (fitting := ANSWERS[request.point]):
        why = f"the approver answered {decision.decision!r} about a {request.point}, expected {', '.join(fitting)}"
        return _failed(request, why)
    try:
        return ApprovalDecision.model_validate(json_safe(decision.model_dump()))
    except (NotJsonSafeError, ValidationError):
        return _failed(request, "the approver returned something that is not JSON")


def _failed(request: ApprovalRequest, why: str) -> ApprovalDecision:
    """Return an abort if a rejection would lead to more work and the same question again, else a rejection."""
    asks_again = request.point in REVIEWED or request.point == "gate"
    return ApprovalDecision(decision="abort", feedback=why) if asks_again else rejected(why)


def rejected(why: str) -> ApprovalDecision:
    """Return a rejection with its reason."""
    return ApprovalDecision(decision="reject", feedback=why)


def unattended(on_unknown: str) -> ApprovalDecision | None:
    """Return the decision of `on_unknown` about a call whose outcome is unknown; None if a person is asked."""
    if on_unknown == "ask":
        return None
    if on_unknown == "retry":
        return ApprovalDecision(decision="approve", feedback="on_unknown: retry")
    return rejected("on_unknown: fail")


_CLOSING = STATE_TYPES - {"run_resumed"}
"""Types of records that close a question. A process that resumes the run may ask it again."""
_CALL: tuple[Decision, ...] = ("approve", "edit", "reject", "abort")
NOBODY = "there was no one to ask"
TOO_LATE = "no one decided in time"
"""The feedback of a decision that no person made: nobody was there, or they took longer than `wait`."""
UNASKED = "a {} no longer needs approval"
"""The feedback of an approval that no person gave, by its point."""
ANSWERS: dict[ApprovalPoint, tuple[Decision, ...]] = {
    "plan": _CALL,
    "pass": get_args(Decision),
    "tool": _CALL,
    "unknown": ("approve", "reject", "abort"),
    "budget": _CALL,
    "gate": ("approve", "reject", "abort"),
    "question": ("approve", "reject", "abort"),
}
"""The decisions that each point accepts, in display order."""


class PendingApproval(BaseModel):
    """A record in the state `asked`. `seq` and `digest` together identify the question."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, defer_build=True)

    seq: int = Field(strict=True, ge=0)
    point: ApprovalPoint
    pass_number: int = Field(alias="pass", strict=True)
    step_id: str | None = None
    subject: dict[str, Any]
    digest: str


def pending_approval(path: Path, *, texts: bool = True) -> PendingApproval | None:
    """Return the question that the journal ends with, None if the last one was decided or the run has continued.

    `is_being_written` returns whether a process still waits with it. Without `texts`, long texts are left
    as references. Raises UsageError if the file cannot be opened, JournalError if it cannot be read.
    """
    record = _last(tail(path)) or _last_of_all(path)
    if record is None or not _is_asked(record):
        return None
    try:
        question = PendingApproval.model_validate(record)
    except ValidationError:
        return None
    return question.model_copy(update={"subject": _in_full(path, question.subject)}) if texts else question


def nobody_answered(feedback: object) -> bool:
    """Return whether a decision's feedback means that no person made it; older journals use other words."""
    return feedback in (NOBODY, TOO_LATE, "nobody could be asked")


def was_unasked(feedback: object, point: str) -> bool:
    """Return whether a decision's feedback means that none was needed any more; older journals use other words."""
    return feedback in (UNASKED.format(point), f"nobody is asked about a {point} any more")


def asked_again(path: Path) -> ApprovalPoint | None:
    """Return the point of the question that a resume reaches first: it was open, nobody could be asked, or a person
    aborted the run over it.

    None if there is none. Raises UsageError if the file cannot be opened, JournalError if it cannot be read.
    """
    recent = list(tail(path))
    last = _last(recent) or _last_of_all(path)
    if last is None:
        return None
    since = last.get("resumes_at") if last["type"] == "run_finished" else last["seq"]
    if since is None:
        return None
    whole = bool(recent) and recent[-1]["seq"] <= since
    records = reversed(recent) if whole else read_records(path, texts=False)
    point: ApprovalPoint | None = None
    for record in records:
        if record["seq"] >= since and record["type"] in ASKED:
            unused = record.get("decision") == "abort" or nobody_answered(record.get("feedback"))
            point = record.get("point") if _is_asked(record) or unused else None
    return point


def _is_asked(record: Mapping[str, Any]) -> bool:
    return record["type"] in ASKED and record.get("state") == "asked"


def _last(newest_first: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    return next((record for record in newest_first if record["type"] in _CLOSING), None)


def _last_of_all(path: Path) -> dict[str, Any] | None:
    """Return that question if `tail` reads only records to skip, since the question may be a long line."""
    last: dict[str, Any] | None = None
    for record in read_records(path, texts=False):
        last = record if record["type"] in _CLOSING else last
    return last


def _in_full(path: Path, subject: dict[str, Any]) -> dict[str, Any]:
    missing: set[str] = set()
    resolved(subject, {}, missing)
    found: dict[str, Any] = resolved(subject, _texts(path, missing) if missing else {}, set())
    return found


def _texts(path: Path, wanted: set[str]) -> dict[str, str]:
    """Return the wanted texts in the journal by sha256; read no further than the last of them."""
    found: dict[str, str] = {}
    with opened(path) as file:
        for line in file:
            if record_type(line) == "text" and (record := parse_line(line, 0, [])) is not None:
                if (sha256 := record.get("sha256")) in wanted:
                    found[str(sha256)] = str(record.get("text", ""))
                if len(found) == len(wanted):
                    break
    return found
