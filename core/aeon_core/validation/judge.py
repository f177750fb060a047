"""The model judge: one call that looks for what rules cannot see; advice, never an error (adaptive FR-081)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
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
from aeon_core.validation.report import SEVERITIES, IssueType
from aeon_core.validation.semantic.finding import Finding
from aeon_core.visible import visible

if TYPE_CHECKING:
    from aeon_core.llm.base import LLMRequest
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


def judged_findings(
    judge: Judge,
    view: PlanView,
    *,
    step: PlanStep | None = None,
    execution: Execution | None = None,
    folder: Path | None = None,
) -> list[Finding]:
    """Return what the judge finds and can be used: issues of a known type on steps that the plan has.

    A judge that fails or answers nonsense has found nothing. What ends a run (an abort, a broken journal) is raised.
    """
    request = judge_request(view, step=step, execution=execution, folder=folder)
    try:
        text = judge.complete(request).text
    except RunEnding:
        raise
    except LLMError as error:
        _log.warning("the judge failed, its advice is left out: %s", error)
        return []
    except Exception as error:
        _log.warning("the judge failed, its advice is left out: %s: %s", type(error).__name__, error)
        return []
    return list(_findings(text, view))


def beyond(known: Iterable[Finding], judged: Iterable[Finding]) -> list[Finding]:
    """Return what the judge alone found: of each type one issue at each step, and in each artifact where it is at none.

    What the rules say of a place stands; the judge's words for the same are left out.
    """
    seen = {_place(finding) for finding in known}
    new = []
    for finding in judged:
        if (place := _place(finding)) not in seen:
            seen.add(place)
            new.append(finding)
    return new


def _place(finding: Finding) -> tuple[str, str | None, str | None]:
    return finding.type, finding.step_id, (finding.artifact or "plan") if finding.step_id is None else None


def _findings(text: str, view: PlanView) -> Iterator[Finding]:
    issues = _issues(text)
    if issues is None:
        _log.warning("the judge's reply is no report, its advice is left out")
        return
    usable = [finding for issue in issues[:MAX_ISSUES] if (finding := _finding(issue, view)) is not None]
    if len(usable) < len(issues):
        _log.warning(
            "%d of the judge's %d issues are left out: of no known type, severity or step, without a description or "
            "a repair, or more than %d",
            len(issues) - len(usable),
            len(issues),
            MAX_ISSUES,
        )
    yield from usable


def _issues(text: str) -> list[Any] | None:
    """Return the issues of the first object in a reply that is a report: thoughts and fences may stand around it."""
    end, start = text.rfind("}") + 1, text.find("{")
    for _ in range(_MAX_STARTS):
        if not 0 <= start < end:
            break
        try:
            reply = parse_json(text[start:end])
        except ValueError:
            reply = None
        if isinstance(reply, dict) and isinstance(reply.get("issues"), list):
            issues: list[Any] = reply["issues"]
            return issues
        start = text.find("{", start + 1)
    return None


def _finding(issue: Any, view: PlanView) -> Finding | None:
    if not isinstance(issue, dict) or issue.get("type") not in _TYPES or issue.get("severity") not in SEVERITIES:
        return None
    place = issue.get("location")
    place = place if isinstance(place, dict) else {}
    step_id, artifact = place.get("step_id"), place.get("artifact")
    description, repair = _text(issue.get("description")), _text(issue.get("proposed_repair"))
    if not description or not repair:
        return None
    if step_id is not None and (not isinstance(step_id, str) or step_id not in view.by_id):
        return None
    known = artifact if artifact in _ARTIFACTS else None
    return Finding(issue["type"], issue["severity"], step_id, description, repair, artifact=known)


def _text(value: Any) -> str:
    """Return a text of the reply on one line, its control characters made visible; empty for what is no text."""
    return visible(" ".join(clean_text(value[: 2 * _MAX_TEXT]).split()))[:_MAX_TEXT] if isinstance(value, str) else ""
