"""Labelled outcomes: what came of a task, and whether a person would accept it. A JSONL file, one a line."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, ValidationError

from aeon_core.entities import Entity
from aeon_core.errors import UsageError
from aeon_core.errors import ValidationError as PlanError
from aeon_core.json_safe import parse_json
from aeon_core.plan.models import NonBlank, Plan
from aeon_core.plan.parsing import parse_plan
from aeon_core.regular_file import read_text
from aeon_core.suggest import first_problem, nearest
from aeon_core.validation.result_checks import Artifacts

MAX_BYTES = 100_000_000
SHIPPED = "labelled/outcomes"
"""The folder of our own labels in this package, a file a language."""
_FORM = '{"id": "a", "label": "good" or "bad", "goal": "…", "plan": {…}, "results": {"s1": {…}}, "answer": "…"}'


class LabelledOutcome(Entity):
    """What a run came to, labelled by a person. Only `id`, `label`, `goal` and `answer` are needed.

    Without a `plan` the answer is that of one reasoning step. `requirements` are what a finished answer must satisfy;
    the goal where there are none. `why` says what is wrong with a bad one, `codes` are reason codes and `flags`
    consistency flags that it must show. `language` is an ISO 639-1 code.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    id: NonBlank
    domain: str = ""
    language: str = "und"
    label: Literal["good", "bad"]
    why: str | None = None
    codes: list[str] = Field(default_factory=list)
    flags: list[str] = Field(default_factory=list)
    requirements: list[NonBlank] = Field(default_factory=list)
    goal: NonBlank
    plan: Plan
    results: dict[str, Any] = Field(default_factory=dict)
    failures: dict[str, list[str]] = Field(default_factory=dict)
    answer: str
    memory: dict[str, Any] | None = None

    @property
    def artifacts(self) -> Artifacts:
        """What a judge is shown of it."""
        return Artifacts(
            goal=self.goal,
            plan=self.plan,
            results=self.results,
            answer=self.answer.strip(),
            memory=self.memory or {},
            failures=self.failures,
        )


def read_labels(path: Path) -> list[LabelledOutcome]:
    """Return the outcomes of a JSONL file; blank lines are left out.

    Raises UsageError with file and line where one is bad, an id occurs twice, or there is none.
    """
    return _read([(str(path), read_text(path, f"the labels {str(path)!r}", MAX_BYTES))])


def shipped_labels() -> list[LabelledOutcome]:
    """Return the outcomes that ship with Aeon, by language. Raises UsageError where the package lacks them."""
    folder = files("aeon_core.judge").joinpath(SHIPPED)
    found = sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []
    return _read([(file.name, file.read_text(encoding="utf-8")) for file in found if file.name.endswith(".jsonl")])


def spread(outcomes: list[LabelledOutcome], most: int) -> list[LabelledOutcome]:
    """Return at most so many of them, evenly from the first to the last: some of each language where these follow."""
    count = len(outcomes)
    return outcomes if count <= most else [outcomes[place * count // most] for place in range(most)]


def _read(texts: Iterable[tuple[str, str]]) -> list[LabelledOutcome]:
    found: list[LabelledOutcome] = []
    places: dict[str, str] = {}
    for name, text in texts:
        # Not splitlines: a JSON text may contain U+2028.
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            place = f"{name}:{number}"
            outcome = _outcome(line, place)
            if (first := places.setdefault(outcome.id, place)) != place:
                raise UsageError(f"{place}: the id {outcome.id!r} occurs twice, first at {first}")
            found.append(outcome)
    if not found:
        raise UsageError(f"there are no labelled outcomes, expected lines of the form {_FORM}")
    return found


def _outcome(line: str, place: str) -> LabelledOutcome:
    try:
        fields = parse_json(line)
    except ValueError as error:
        raise UsageError(f"{place}: it is not JSON ({error}), expected {_FORM}") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{place}: it is no object, expected {_FORM}")
    known = tuple(LabelledOutcome.model_fields)
    if (unknown := next((key for key in fields if key not in known), None)) is not None:
        raise UsageError(f"{place}: the key {unknown!r} is unknown{nearest(unknown, known)}")
    try:
        if fields.get("plan") is None:
            fields = {**fields, **_one_step(fields)}
        fields["plan"] = parse_plan(fields["plan"], fresh=False)
        return LabelledOutcome.model_validate(fields)
    except PlanError as error:
        raise UsageError(f"{place}: plan: {error.context['problems'][0]}") from None
    except ValidationError as error:
        raise UsageError(f"{place}: {first_problem(error)}") from None


def _one_step(fields: dict[str, Any]) -> dict[str, Any]:
    """Return plan and results of an outcome that names no plan: one reasoning step that gave the answer."""
    goal = str(fields.get("goal") or "?")
    step = {"step_id": "s1", "description": goal, "agent": "llm", "status": "complete"}
    results = fields.get("results") or {"s1": {"text": fields.get("answer")}}
    return {"plan": {"goal": goal, "steps": [step]}, "results": results}
