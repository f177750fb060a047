"""When a result counts as converged: the criteria and their file (adaptive FR-022)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator

from aeon_core.entities import Entity
from aeon_core.errors import UsageError
from aeon_core.judge.judgement import FLAGS
from aeon_core.plan.models import NonBlank
from aeon_core.suggest import nearest, shown
from aeon_core.validation.result_checks import Flag
from aeon_core.yaml_file import load_yaml, without_schema_line

REASON_CODES = (
    "complete",
    "coherent",
    "consistent",
    "incomplete",
    "incoherent",
    "inconsistent",
    "missing_step",
    "failed_step",
    "contradiction_detected",
    "hallucinated_tool",
    "no_progress",
    "not_judged",
    "ttl_expired",
)


def _no_repeats(values: list[Any]) -> list[Any]:
    names = [value if isinstance(value, str) else value.name for value in values]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ValueError(f"{twice[0]!r} occurs twice")
    return values


def _no_reason_code(name: str) -> str:
    if name in REASON_CODES:
        raise ValueError(f"{name!r} is already a reason code")
    return name


Score = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class AdditionalCriterion(Entity):
    """A custom criterion, in words: one more requirement. Its name is the reason code if it is not met."""

    name: Annotated[NonBlank, AfterValidator(_no_reason_code)]
    """The reason code if the result does not meet it."""
    description: NonBlank
    """What the result must satisfy, in words."""


class ConvergenceCriteria(Entity):
    """What a result must meet, besides what always applies: every step done, no invented tool, a judgement.

    `completeness` and `coherence` are minimum scores, 0…1; `consistency` lists the flags that must hold (adaptive
    FR-022). Unknown keys and wrong values raise UsageError, in one line.
    """

    completeness: Score = 0.8
    """Minimum share of the requirements that are met, 0 to 1."""
    coherence: Score = 0.8
    """Minimum coherence score, 0 to 1."""
    consistency: Annotated[list[Flag], AfterValidator(_no_repeats)] = Field(default_factory=lambda: list(FLAGS))
    """What must be free of contradictions."""
    additional: Annotated[list[AdditionalCriterion], AfterValidator(_no_repeats)] = Field(default_factory=list)
    """Your own criteria."""

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            failure = error
        raise UsageError(_wrong(info.context or "ConvergenceCriteria", data, failure))


_EXPECTED = {
    "completeness": "a number between 0 and 1",
    "coherence": "a number between 0 and 1",
    "consistency": f"a list of flags, each once, out of {', '.join(FLAGS)}",
    "additional": "a list of {name: …, description: …}, both text; each name unique and not a reason code",
}
_CRITERION_KEYS = tuple(AdditionalCriterion.model_fields)


def load_criteria(path: Path | str) -> ConvergenceCriteria:
    """Return the criteria in a YAML or JSON file; a missing key keeps its default (contract: --criteria).

    Raises UsageError in one line that names the file, and the key if one is wrong.
    """
    where = f"the criteria file {str(path)!r}"
    return parse_criteria(without_schema_line(load_yaml(path, where)), where)


def parse_criteria(data: Any, where: str = "the criteria") -> ConvergenceCriteria:
    """Return the criteria in plain data; `where` names its source in errors. Raises UsageError."""
    if isinstance(data, dict):
        data = {key: value for key, value in data.items() if value is not None or key not in _EXPECTED}
    return ConvergenceCriteria.model_validate({} if data is None else data, context=where)


def _wrong(where: str, data: Any, error: ValidationError) -> str:
    if not isinstance(data, dict):
        return f"{where} is {shown(data)}; expected keys such as `completeness: 0.9`"
    errors = error.errors(include_url=False, include_context=False)
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    *around, name = map(str, first["loc"])
    if first["type"] == "extra_forbidden":
        inside, known = (f", in 'additional[{around[1]}]'", _CRITERION_KEYS) if around else ("", tuple(_EXPECTED))
        return f"{where} has an unknown key, {name!r}{inside}{nearest(name, known)}"
    key = str(first["loc"][0])
    place = key + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"][1:])
    detail = f", {place!r} is {shown(first['input'])}" if place != key else ""
    if first["type"] == "missing":
        detail = f", {place!r} is missing"
    elif first["type"] == "value_error":
        detail = f", {first['msg'].removeprefix('Value error, ')}"
    return f"{key!r} in {where} must be {_EXPECTED[key]}; got {shown(data[key])}{detail}"
