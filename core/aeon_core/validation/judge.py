"""The model judge: one call that looks for what rules cannot see; may fail to judge (adaptive FR-081, Decision 7)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from aeon_core.errors import LLMError, RunEnding
from aeon_core.plain import clean_text, parse_json
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import (
    memory_section,
    plan_section,
    results_section,
    step_section,
    to_line,
    tools_section,
)
from aeon_core.validation.report import SEVERITIES, IssueType, Severity
from aeon_core.validation.semantic.finding import Finding
from aeon_core.visible import visible

if TYPE_CHECKING:
    from aeon_core.llm.base import LLMRequest, LLMResponse
    from aeon_core.plan.models import PlanStep
    from aeon_core.validation.semantic.execution import Execution
    from aeon_core.validation.semantic.views import PlanView
    from aeon_core.validation.validator import Judge

MAX_ISSUES = 50
"""Issues of one reply that are looked at."""

_MAX_TEXT = 500
_ARTIFACTS = ("plan", "step", "results", "answer", "memory")
_MAX_STARTS = 20
"""How many opening braces of a reply are tried as the beginning of its object."""
_TYPES: tuple[IssueType, ...] = get_args(IssueType)
_SHARES = {"yes": 1.0, "true": 1.0, "partly": 0.5, "no": 0.0, "false": 0.0}
_log = logging.getLogger("aeon")

_ISSUE_PROPERTIES: dict[str, Any] = {
    "issue_id": {"type": "string", "description": "unique within the reply"},
    "type": {"type": "string", "enum": list(_TYPES)},
    "severity": {"type": "string", "enum": list(SEVERITIES)},
    "description": {"type": "string", "description": "what is wrong, with the words or values it shows in"},
    "location": {
        "type": "object",
        "properties": {
            "artifact": {"type": "string", "enum": list(_ARTIFACTS)},
            "step_id": {"type": ["string", "null"], "description": "id of the step, null where it is about none"},
        },
        "required": ["artifact", "step_id"],
        "additionalProperties": False,
    },
    "proposed_repair": {"type": "string", "description": "the change that would put it right, ready to be made"},
}

JUDGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "issues": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _ISSUE_PROPERTIES,
                "required": list(_ISSUE_PROPERTIES),
                "additionalProperties": False,
            },
        }
    },
    "required": ["issues"],
    "additionalProperties": False,
}
"""The reply a judge is asked for; strict modes take it."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said. `failure` says in words why that is no judgement; then nothing was judged (Decision 7)."""

    findings: list[Finding]
    failure: str | None = None
    completeness: float | None = None
    """The share of the requirements that are met, 0…1; None where the judge gave no verdict on any."""
    unmet: bool = False
    """Whether it says that a requirement is not met."""


def judge_request(
    view: PlanView,
    *,
    step: PlanStep | None = None,
    execution: Execution | None = None,
    folder: Path | None = None,
) -> LLMRequest:
    """Return the request that asks a model to judge a plan, one of its steps, or what came of it."""
    sections = {
        "goal": to_line(view.goal.text),
        "tools": tools_section(view.registry.export_tools_for_llm()),
        "plan": plan_section(view.plan),
        "arguments": "\n".join(
            to_line({"step_id": inner.step_id, "arguments": inner.arguments})
            for inner in view.plan.walk()
            if inner.arguments is not None
        ),
        "step": step_section(step) if step is not None else "",
    }
    if execution is not None:
        outputs = {
            key: value if isinstance(value, dict) else {"result": value} for key, value in execution.results.items()
        }
        failures = {key: list(errors) for key, errors in execution.failures.items()}
        sections["results"] = results_section(view.plan, outputs, failures)
        sections["memory"] = memory_section(execution.memory, shown=outputs)
        sections["answer"] = to_line(execution.answer) if execution.answer is not None else ""
    return build_request("judge", sections, schema=JUDGE_SCHEMA, folder=folder)


def judged(
    judge: Judge,
    view: PlanView,
    *,
    step: PlanStep | None = None,
    execution: Execution | None = None,
    folder: Path | None = None,
) -> Judgement:
    """Return what the judge says of a plan, one of its steps, or what came of it.

    A judge that fails or whose reply cannot be read has judged nothing. What ends a run (an abort, a broken journal)
    is raised.
    """
    request = judge_request(view, step=step, execution=execution, folder=folder)
    try:
        response = judge.complete(request)
    except RunEnding:
        raise
    except LLMError as error:
        judgement = Judgement([], f"the judge failed: {error.message}")
    except Exception as error:
        judgement = Judgement([], f"the judge failed: {type(error).__name__}: {error}")
    else:
        judgement = _judgement(response, view)
    if judgement.failure is not None:
        _log.warning("%s", judgement.failure)
    return judgement


def beyond(known: Iterable[Finding], judged: Iterable[Finding]) -> list[Finding]:
    """Return what the judge alone found: of each type one issue at each step, and in each artifact where it is at none.

    What the rules say of a place is kept; the judge's words for the same are added only where it finds it worse.
    """
    worst: dict[tuple[str, str | None, str | None], int] = {}
    for finding in known:
        worst[_place(finding)] = min(worst.get(_place(finding), len(SEVERITIES)), SEVERITIES.index(finding.severity))
    new: dict[tuple[str, str | None, str | None], Finding] = {}
    for finding in judged:
        place, severity = _place(finding), SEVERITIES.index(finding.severity)
        if severity < worst.get(place, len(SEVERITIES)):
            worst[place], new[place] = severity, finding
    return list(new.values())


def _place(finding: Finding) -> tuple[str, str | None, str | None]:
    return finding.type, finding.step_id, (finding.artifact or "plan") if finding.step_id is None else None


def _judgement(response: LLMResponse, view: PlanView) -> Judgement:
    if response.stop_reason == "refusal":
        return Judgement([], f"the judge refused: {_text(response.text) or 'without a reason'}")
    reply = _report(response.text)
    if reply is None:
        return Judgement([], "the judge's reply is no report")
    issues = reply.get("issues", [])
    found = [_finding(issue, view) for issue in issues[:MAX_ISSUES]]
    usable = [finding for finding in found if finding is not None]
    if len(issues) > MAX_ISSUES:
        _log.warning("%d of the judge's %d issues are left out", len(issues) - MAX_ISSUES, len(issues))
    if len(usable) < len(found):
        return Judgement(usable, f"{len(found) - len(usable)} of the judge's {len(issues)} issues cannot be read")
    return _with_verdicts(usable, reply)


def _report(text: str) -> dict[str, Any] | None:
    """Return the first object in a reply that is a report: thoughts and fences may surround it."""
    end, start = text.rfind("}") + 1, text.find("{")
    for _ in range(_MAX_STARTS):
        if not 0 <= start < end:
            break
        try:
            reply = parse_json(text[start:end])
        except ValueError:
            reply = None
        if isinstance(reply, dict) and reply.keys() & {"issues", "requirements"}:
            lists = (reply.get("issues", []), reply.get("requirements", []))
            return reply if all(isinstance(each, list) for each in lists) else None
        start = text.find("{", start + 1)
    return None


def _finding(issue: Any, view: PlanView) -> Finding | None:
    """Return an issue of the reply, None for one without a description.

    A severity or a type that is none of ours cannot be read as a milder one: it counts as high, as `consistency`.
    """
    if not isinstance(issue, dict) or not (description := _text(issue.get("description"))):
        return None
    place = issue.get("location")
    place = place if isinstance(place, dict) else {}
    step_id, artifact = place.get("step_id"), place.get("artifact")
    kind, severity = (str(issue.get(key)).strip().lower() for key in ("type", "severity"))
    return Finding(
        next((known for known in _TYPES if known == kind), "consistency"),
        next((known for known in SEVERITIES if known == severity), "high"),
        step_id if isinstance(step_id, str) and step_id in view.by_id else None,
        description,
        _text(issue.get("proposed_repair")) or f"Correct this: {description}",
        artifact=artifact if artifact in _ARTIFACTS else None,
    )


def _with_verdicts(findings: list[Finding], reply: Mapping[str, Any]) -> Judgement:
    """Return the judgement with what it says of each requirement, of coherence and of consistency (contract: judge)."""
    shares, found = [], list(findings)
    for number, verdict in enumerate(reply.get("requirements", ()), 1):
        met = verdict.get("met") if isinstance(verdict, dict) else None
        if (share := _SHARES.get(str(met).strip().lower())) is None:
            return Judgement(found, f"the judge's verdict on requirement {number} cannot be read")
        shares.append(share)
        if share < 1:
            found.append(_unmet(f"requirement {verdict.get('n', number)}", verdict, "high" if share == 0 else "medium"))
    consistent = reply.get("consistent")
    flags = {"answer": reply.get("coherent"), **(consistent if isinstance(consistent, dict) else {})}
    found += [
        _unmet(f"the {name}", verdict, "high", artifact=name)
        for name, verdict in flags.items()
        if name in _ARTIFACTS and isinstance(verdict, dict) and verdict.get("ok") is False
    ]
    score = sum(shares) / len(shares) if shares else None
    return Judgement(found, completeness=score, unmet=0.0 in shares)


def _unmet(what: str, verdict: Mapping[str, Any], severity: Severity, artifact: str = "answer") -> Finding:
    said = _text(verdict.get("evidence"))
    description = f"the judge finds {what} wanting{f': {said}' if said else ''}"
    return Finding("do_say_mismatch", severity, None, description, f"Correct {what}.", artifact=artifact)


def _text(value: Any) -> str:
    """Return a text of the reply on one line, its control characters made visible; empty for what is no text."""
    return visible(" ".join(clean_text(value[: 2 * _MAX_TEXT]).split()))[:_MAX_TEXT] if isinstance(value, str) else ""
