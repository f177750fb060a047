"""Additional criteria: computed where their words allow it, else judged by a model (adaptive FR-022)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from aeon_core.convergence.artifacts import Artifacts
from aeon_core.convergence.criteria import AdditionalCriterion
from aeon_core.convergence.words import sentences
from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.plain import parse_json
from aeon_core.prompts import prompt_text
from aeon_core.prompts.sections import plan_section, results_section, to_line


class Judge(Protocol):
    """A model, or the port to one."""

    @property
    def complete(self) -> Callable[[LLMRequest], LLMResponse]:
        """Returns the reply to a request; raises LLMError."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a criterion is met, who decided it, and why not where it is not."""

    met: bool
    by: Literal["rule", "judge", "nobody"]
    reason: str = ""


_UNITS: dict[str, Callable[[str], int]] = {
    "word": lambda text: len(text.split()),
    "character": len,
    "line": lambda text: len([line for line in text.splitlines() if line.strip()]),
    "sentence": lambda text: len(sentences(text)),
}
_ANSWER = r"(?:(?:the\s+)?(?:final\s+)?answer\s+)?(?:must\s+|should\s+|shall\s+)?"
_HOLDS = re.compile(
    rf"{_ANSWER}(?P<denied>(?:does\s+not|do\s+not|not|never)\s+)?(?:contains?|mentions?|includes?|names?|says?)\s+"
    r"(?:the\s+(?:word|words|phrase|text)\s+)?[\"'“](?P<text>[^\"'“”]+)[\"'”]\.?",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    rf"{_ANSWER}(?:(?:be|is|has|have|contains?|uses?)\s+)?"
    r"(?P<bound>at\s+most|no\s+more\s+than|not\s+more\s+than|up\s+to|at\s+least|no\s+fewer\s+than|exactly"
    r"|fewer\s+than|less\s+than|more\s+than)\s+"
    r"(?P<count>\d{1,6})\s+(?P<unit>(?ai:word|character|line|sentence))s?(?:\s+long)?\.?",
    re.IGNORECASE,
)

_ISSUE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "issue_id": {"type": "string"},
        "type": {"enum": ["specificity", "relevance", "consistency", "hallucination", "do_say_mismatch"]},
        "severity": {"enum": ["high", "medium", "low"]},
        "description": {"type": "string", "description": "what is lacking, with what shows it"},
        "location": {
            "type": "object",
            "properties": {
                "artifact": {"type": "string", "description": "the name of the criterion that is not met"},
                "step_id": {"type": ["string", "null"]},
            },
            "required": ["artifact", "step_id"],
            "additionalProperties": False,
        },
        "proposed_repair": {"type": "string"},
    },
    "required": ["issue_id", "type", "severity", "description", "location", "proposed_repair"],
    "additionalProperties": False,
}
REPLY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"issues": {"type": "array", "items": _ISSUE_SCHEMA}},
    "required": ["issues"],
    "additionalProperties": False,
}


def judge_additional(
    criteria: Sequence[AdditionalCriterion],
    artifacts: Artifacts,
    judge: Judge | None,
    prompts_dir: Path | None = None,
) -> dict[str, Verdict]:
    """Return the verdict on each criterion by its name.

    A description that says what the answer contains (`mentions "EUR"`) or how long it is (`at most 80 words`) is
    computed. The others take one model call for all of them; without a judge, or where its reply cannot be used, they
    are not met: nobody has said that they are. `prompts_dir` may hold a criteria.md of one's own. Raises UsageError
    where that cannot be read.
    """
    verdicts = {criterion.name: computed(criterion.description, artifacts.answer) for criterion in criteria}
    open_ones = [criterion for criterion in criteria if verdicts[criterion.name] is None]
    judged = _judged(open_ones, artifacts, judge, prompts_dir) if open_ones else {}
    return {name: verdict or judged[name] for name, verdict in verdicts.items()}


def computed(description: str, answer: str) -> Verdict | None:
    """Return the verdict on a criterion that can be computed, None for another one."""
    held = _HOLDS.fullmatch(description.strip())
    if held is not None:
        present = held["text"].casefold() in answer.casefold()
        wanted = held["denied"] is None
        reason = "" if present == wanted else f"the answer {'lacks' if wanted else 'holds'} {held['text']!r}"
        return Verdict(present == wanted, "rule", reason)
    length = _LENGTH.fullmatch(description.strip())
    if length is None:
        return None
    count, bound = int(length["count"]), " ".join(length["bound"].lower().split())
    unit = length["unit"].lower()
    found = _UNITS[unit](answer)
    met = {
        "at least": found >= count,
        "no fewer than": found >= count,
        "more than": found > count,
        "fewer than": found < count,
        "less than": found < count,
        "exactly": found == count,
    }.get(bound, found <= count)
    return Verdict(met, "rule", "" if met else f"the answer has {found} {unit}s")


def _judged(
    criteria: Sequence[AdditionalCriterion], artifacts: Artifacts, judge: Judge | None, prompts_dir: Path | None
) -> dict[str, Verdict]:
    if judge is None:
        reason = "no model is there to judge it"
        return {criterion.name: Verdict(False, "nobody", reason) for criterion in criteria}
    request = judge_request(criteria, artifacts, prompts_dir)
    try:
        issues = _issues(judge.complete(request).text)
    except (LLMError, ValueError) as error:
        reason = f"the judge gave no usable reply: {' '.join(str(error).split())[:200]}"
        return {criterion.name: Verdict(False, "nobody", reason) for criterion in criteria}
    names = [criterion.name for criterion in criteria]
    against: dict[str, str] = {}
    for issue in issues:
        for name in _names_in(issue, names):
            against.setdefault(name, str(issue.get("description") or "not met"))
    return {name: Verdict(name not in against, "judge", against.get(name, "")) for name in names}


def judge_request(
    criteria: Sequence[AdditionalCriterion], artifacts: Artifacts, prompts_dir: Path | None = None
) -> LLMRequest:
    """Return the request that asks a model for the criteria that are not met."""
    outputs = {name: value for name, value in artifacts.results.items() if isinstance(value, dict)}
    failures = {name: list(errors) for name, errors in artifacts.failures.items()}
    sections = {
        "criteria": "\n".join(to_line(criterion.model_dump()) for criterion in criteria),
        "goal": artifacts.goal,
        "plan": plan_section(artifacts.plan),
        "results": results_section(artifacts.plan, outputs, failures),
        "answer": artifacts.answer,
    }
    content = "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in sections.items() if text)
    return LLMRequest(
        purpose="judge",
        system=f"Aeon judge\n\n{prompt_text('criteria', prompts_dir)}\n",
        messages=[{"role": "user", "content": content}],
        schema=REPLY_SCHEMA,
    )


def _issues(reply: str) -> list[Mapping[str, Any]]:
    text = reply.strip()
    fenced = re.fullmatch(r"```(?:json)?\s*\n(.*)\n```", text, re.DOTALL)
    data = parse_json(fenced[1] if fenced else text)
    issues = data.get("issues") if isinstance(data, dict) else None
    if not isinstance(issues, list) or not all(isinstance(issue, dict) for issue in issues):
        raise ValueError("expected an object with a list of issues")
    return issues


def _names_in(issue: Mapping[str, Any], names: Sequence[str]) -> Sequence[str]:
    """Return the criteria that an issue is about; one that names none is held against all that were asked for."""
    location = issue.get("location")
    artifact = str(location.get("artifact") if isinstance(location, dict) else "")
    exact = [name for name in names if name == artifact]
    told = f"{artifact} {issue.get('description')}".casefold()
    return exact or [name for name in names if name.casefold() in told] or names
