"""Asking a judge: the request, the schema of the reply, and a reader that accepts near forms (contract: `judge`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, get_args

from aeon_core.entities import SEVERITIES, Finding, IssueType
from aeon_core.errors import LLMError, RunEnding, SupervisorError, UsageError, ValidationError, invalid
from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest, LLMResponse
from aeon_core.loose_json import Doubt, read_reply
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import shown
from aeon_core.prompts import build_request, plan_section, requirements_section, to_line, tools_section
from aeon_core.tools.base import object_schema
from aeon_core.tools.schema import describe, in_form
from aeon_core.validation.result_checks import Flag

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry


Met = Literal["yes", "partly", "no"]
FLAGS: tuple[Flag, ...] = get_args(Flag)
MAX_ISSUES = 50
"""The most issues read from one reply."""
_MAX_TEXT = 500
_TYPES: tuple[IssueType, ...] = get_args(IssueType)
_ARTIFACTS = ("plan", "step", "results", "answer", "memory")
_SAYING = ("description", "issue", "message", "problem")
"""The keys under which an issue may describe the problem."""
_MET: dict[Any, Met] = {
    "yes": "yes",
    "true": "yes",
    "partly": "partly",
    "partially": "partly",
    "no": "no",
    "false": "no",
}
_OK = {"true": True, "yes": True, "false": False, "no": False}


def _array(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


_QUOTE = {"type": "string", "description": "words of the answer or of an output that show it, copied exactly"}
_CHECK = object_schema({"evidence": _QUOTE, "ok": {"type": "boolean"}})
_ISSUE = object_schema(
    {
        "issue_id": {"type": "string", "description": "unique within the reply"},
        "description": {"type": "string", "description": "what is wrong, with the words or values that show it"},
        "location": object_schema(
            {
                "artifact": {"type": "string", "enum": list(_ARTIFACTS)},
                "step_id": {"type": ["string", "null"], "description": "id of the step, null where it is about none"},
            }
        ),
        "proposed_repair": {"type": "string", "description": "the change that would correct it"},
        "type": {"type": "string", "enum": list(_TYPES)},
        "severity": {"type": "string", "enum": list(SEVERITIES)},
    }
)
REVIEW_SCHEMA = object_schema({"issues": _array(_ISSUE)})
"""The schema of a plan review's reply, suitable for strict modes."""
JUDGE_SCHEMA = object_schema(
    {
        "requirements": _array(
            object_schema(
                {"n": {"type": "integer"}, "evidence": _QUOTE, "met": {"type": "string", "enum": list(get_args(Met))}}
            )
        ),
        "coherent": _CHECK,
        "consistent": object_schema(dict.fromkeys(FLAGS, _CHECK)),
        "suspicions": _array(
            object_schema({"n": {"type": "integer"}, "evidence": _QUOTE, "stands": {"type": "boolean"}})
        ),
        "issues": _array(_ISSUE),
    }
)
"""The schema of a judgement's reply, with evidence before each verdict, suitable for strict modes."""


@dataclass(frozen=True, slots=True)
class Check:
    """One verdict of a judge, with the words it quotes as evidence."""

    ok: bool
    evidence: str = ""
    quote_found: bool = True


@dataclass(frozen=True, slots=True)
class RequirementCheck:
    """Whether one requirement, counted from 1, is met."""

    n: int
    met: Met
    evidence: str = ""
    quote_found: bool = True


@dataclass(frozen=True)
class Judgement:
    """A judge's verdicts on a result."""

    requirements: tuple[RequirementCheck, ...]
    coherent: Check
    consistent: Mapping[Flag, Check]
    suspicions: Mapping[int, Check] = field(default_factory=dict)
    """By number, counted from 1; `ok` if the suspicion does not hold."""
    issues: tuple[Finding, ...] = ()

    @property
    def good(self) -> bool:
        """Whether every verdict is good."""
        checks = [self.coherent, *self.consistent.values(), *self.suspicions.values()]
        return all(check.ok for check in checks) and all(each.met == "yes" for each in self.requirements)


def read_judgement(reply: Any, requirements: int, suspicions: int = 0, *, steps: Iterable[str] = ()) -> Judgement:
    """Return the verdicts of a parsed reply on this many requirements and suspicions; near forms are accepted.

    Near forms: numbers as text, keys and verdicts in another case, true and false as verdicts, a check without its
    object, issues without their list. Raises ValidationError, with `problems`, if a verdict is missing or given twice,
    a flag is unknown, or an issue is empty: no ambiguous verdict counts as good.
    """
    value = _unwrapped(_lower_keys(reply), "requirements")
    problems: list[str] = []
    entries = _numbered(value.get("requirements"), requirements)
    checks = []
    for n in range(1, requirements + 1):
        entry = entries.get(n, {})
        met = _MET.get(_word(entry.get("met")))
        if met is None:
            problems.append(f"requirements[{n}].met: expected yes, partly or no, got {shown(entry.get('met'))}")
        else:
            checks.append(RequirementCheck(n, met, _text(entry.get("evidence"))))
    coherent = _check(value.get("coherent"), "ok")
    if coherent is None:
        problems.append(f"coherent.ok: expected true or false, got {shown(value.get('coherent'))}")
    consistent = _flags(value.get("consistent"))
    if consistent is None:
        problems.append(f"consistent: expected plan, step, answer and memory, got {shown(value.get('consistent'))}")
    if problems:
        raise invalid(problems, "not a judgement: ")
    doubts = _numbered(value.get("suspicions"), suspicions)
    stands = {n: _check(doubts.get(n), "stands") for n in range(1, suspicions + 1)}
    return Judgement(
        requirements=tuple(checks),
        coherent=cast("Check", coherent),
        consistent=cast("dict[Flag, Check]", consistent),
        suspicions={n: Check(not each.ok, each.evidence) for n, each in stands.items() if each is not None},
        issues=tuple(_issues(value.get("issues"), set(steps))),
    )


def read_review(reply: Any, *, steps: Iterable[str] = ()) -> list[Finding]:
    """Return the issues of a parsed review. Raises ValidationError, with `problems`, if it has no list of them."""
    reply = _lower_keys(reply)
    value = {"issues": reply} if isinstance(reply, list) else _unwrapped(reply, "issues")
    if not isinstance(value.get("issues"), list):
        raise invalid([f"issues: expected an array, got {shown(value.get('issues'))}"], "not a review: ")
    return _issues(value["issues"], set(steps))


def _lower_keys(value: Any) -> Any:
    """Return a reply with lower-case keys. Raises ValidationError if two keys become the same."""
    if isinstance(value, list):
        return [_lower_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    lowered: dict[str, Any] = {}
    for key, item in value.items():
        name = key.strip().lower()
        if name in lowered:
            raise invalid([f"{name}: said twice"])
        lowered[name] = _lower_keys(item)
    return lowered


def _unwrapped(reply: Any, key: str) -> dict[str, Any]:
    """Return the object of a reply that has `key`: the reply itself, or the only such object in it."""
    value = reply[0] if isinstance(reply, list) and len(reply) == 1 else reply
    for _ in range(3):
        if isinstance(value, dict) and key not in value and len(value) == 1:
            value = next(iter(value.values()))
    if not isinstance(value, dict):
        raise invalid([f"expected an object with {key!r}, got {shown(value)}"])
    return value


def _numbered(value: Any, count: int) -> dict[int, dict[str, Any]]:
    """Return the entries of a list, or of an object with numbers as keys, by number; else by position."""
    if isinstance(value, dict):
        value = [{"n": key, **_entry(entry)} for key, entry in value.items()]
    if not isinstance(value, list):
        return {}
    entries = [_entry(entry) for entry in value]
    numbers = [_number(entry.get("n")) for entry in entries]
    if None in numbers:
        numbers = list(range(1, len(entries) + 1)) if len(entries) == count else numbers
    given = [n for n in numbers if n is not None]
    if len(set(given)) < len(given):
        raise invalid([f"the number {next(n for n in given if given.count(n) > 1)} is given twice"])
    return {n: entry for n, entry in zip(numbers, entries, strict=True) if n is not None}


def _entry(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"met": value, "stands": value}


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    digits = "".join(filter(str.isdigit, value)) if isinstance(value, str) else value
    try:
        return int(digits)
    except (TypeError, ValueError, OverflowError):
        return None


def _word(value: Any) -> str:
    return str(value).strip(" .\"'`*_").lower() if isinstance(value, str | bool) else ""


def _check(value: Any, key: str) -> Check | None:
    entry = value if isinstance(value, dict) else {key: value}
    ok = _OK.get(_word(entry.get(key)))
    return None if ok is None else Check(ok, _text(entry.get("evidence")))


def _flags(value: Any) -> dict[Flag, Check] | None:
    """Return the check of each flag, None if that of the answer is missing or a flag is unknown.

    Other flags may be left out, which means that nothing is wrong.
    """
    if (whole := _check(value, "ok")) is not None:
        return dict.fromkeys(FLAGS, whole)
    if not isinstance(value, dict) or value.keys() - set(FLAGS) or "answer" not in value:
        return None
    found = {flag: _check(value.get(flag, True), "ok") for flag in FLAGS}
    return {flag: check for flag, check in found.items() if check is not None} if None not in found.values() else None


def _issues(value: Any, steps: set[str]) -> list[Finding]:
    """Return the issues in a list, in an object that is an issue or holds issues by id, or in a text."""
    if isinstance(value, dict):
        value = [value] if any(name in value for name in _SAYING) else list(value.values())
    entries = [value] if isinstance(value, str) and value.strip() else value if isinstance(value, list) else []
    return [found for entry in entries[:MAX_ISSUES] if (found := _issue(entry, steps)) is not None]


def _issue(entry: Any, steps: set[str]) -> Finding | None:
    """Return an issue with normalized type, severity and location; None for an empty one.

    An unknown severity counts as `high`, never as a milder one. Raises ValidationError if an issue's text is under an
    unknown key.
    """
    if isinstance(entry, str):
        entry = {"description": entry}
    if not isinstance(entry, dict):
        return None
    description = next((text for name in _SAYING if (text := _text(entry.get(name)))), None)
    if description is None:
        if any(isinstance(item, str) and item.strip() for item in entry.values()):
            raise invalid([f"issues: expected what is wrong as a description, got {shown(entry)}"])
        return None
    kind, severity, place = _word(entry.get("type")), _word(entry.get("severity")), entry.get("location")
    place = place if isinstance(place, dict) else {"artifact": place, "step_id": place}
    step_id, artifact = _step_in(place.get("step_id"), steps), _word(place.get("artifact"))
    return Finding(
        type=kind.replace(" ", "_") if kind.replace(" ", "_") in _TYPES else "consistency",  # type: ignore[arg-type]
        severity=severity if severity in SEVERITIES else "high" if severity else "medium",
        step_id=step_id,
        description=description,
        repair=_text(entry.get("proposed_repair")) or f"Correct it: {description}",
        artifact=artifact if artifact in _ARTIFACTS else None,
    )


def _step_in(value: Any, steps: set[str]) -> str | None:
    """Return the step that a location names: by its id, or by the only known id among other words."""
    text = str(value)
    if text in steps:
        return text
    named = {word for word in re.split(r"[^\w.\-]+", text) if word in steps}
    return named.pop() if len(named) == 1 else None


def _text(value: Any) -> str:
    """Return a text of the reply on one line, with visible control characters; empty if it is not text."""
    if isinstance(value, list):
        value = " … ".join(item for item in value if isinstance(item, str))
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return (
        escape_controls(" ".join(clean_text(value[: 2 * _MAX_TEXT]).split()))[:_MAX_TEXT]
        if isinstance(value, str)
        else ""
    )


T = TypeVar("T")


class Judge(Protocol):
    """A model that judges: any LLMAdapter."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply."""


class Ask(Protocol):
    """Asks a model, and returns the result of `read` on its reply's JSON. Raises LLMError, SupervisorError."""

    def __call__(self, request: LLMRequest, what: str, read: Callable[[Any], T]) -> T: ...


def ask_of(judge: Judge | Ask | None) -> Ask | None:
    """Return the function that asks a judge. An adapter's reply is parsed directly, accepting near forms of JSON.

    The function raises LLMError if the adapter fails and SupervisorError if its reply cannot be used. Raises
    UsageError for something else, such as a model's name.
    """
    if judge is None or not hasattr(judge, "complete"):
        if judge is not None and not callable(judge):
            raise UsageError(f"the judge is {describe(judge)}; write connect('PROVIDER:NAME')")
        return judge

    def ask(request: LLMRequest, what: str, read: Callable[[Any], T]) -> T:
        def certain(value: Any, doubt: Doubt) -> T:
            if doubt:
                raise invalid(["it is not certain that all of it is there"])
            try:
                return read(value)
            except ValidationError:
                return read(in_form(value, request.schema or {}))

        try:
            response = judge.complete(request)
        except (RunEnding, LLMError):
            raise
        except Exception as error:
            raise LLMError(f"the judge failed: {type(error).__name__}: {error}") from None
        if response.stop_reason == "refusal":
            raise SupervisorError(f"{what} was refused: {response.text[:200].strip() or 'without a reason'}")
        try:
            return read_reply(response.text, certain, cut=lambda: response.stop_reason == "max_tokens")[0]
        except ValidationError as error:
            raise SupervisorError(f"{what} cannot be read: {error.message}") from None

    return ask


def review_request(
    plan: Plan,
    registry: ToolRegistry,
    *,
    task: str | None = None,
    requirements: Sequence[str] = (),
    folder: Path | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
) -> LLMRequest:
    """Return the request to review a plan that is about to run, against the task and its requirements."""
    arguments = (step for step in plan.walk() if step.arguments is not None)
    sections = {
        "task": task or plan.goal,
        "requirements": requirements_section(requirements),
        "tools": tools_section(registry.export_tools_for_llm()),
        "plan": plan_section(plan),
        "arguments": "\n".join(to_line({"step_id": step.step_id, "arguments": step.arguments}) for step in arguments),
    }
    most = {"issues": MAX_ISSUES}
    return build_request("review", sections, schema=REVIEW_SCHEMA, most=most, max_tokens=max_tokens, folder=folder)
