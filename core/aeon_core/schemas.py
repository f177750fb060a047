"""JSON Schemas of the public entities and of every journal record (contract: `schema [NAME]`)."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import BaseModel, Field

from aeon_core.entities import Entity, Timestamp
from aeon_core.errors import UsageError
from aeon_core.journal import records
from aeon_core.plan.models import NonBlank
from aeon_core.suggest import nearest
from aeon_core.tools.base import Effect

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENTITIES = {
    "AdaptiveDepthConfiguration": "adaptive.depth",
    "ApprovalDecision": "approvals.pending",
    "ApprovalRequest": "approvals.pending",
    "ConvergenceAssessment": "convergence.assessment",
    "ConvergenceCriteria": "convergence.criteria",
    "ExecutionHistory": "journal.history",
    "ExecutionPass": "journal.history",
    "LLMResponse": "llm.base",
    "LogEntry": "entities",
    "MemoryEntry": "entities",
    "OrchestrationState": "kernel.state",
    "Plan": "plan.models",
    "PlanStep": "plan.models",
    "RefinementAction": "plan.refinement.actions",
    "RunConfig": "config.schema",
    "RunResult": "entities",
    "SemanticValidationReport": "validation.report",
    "StepResult": "entities",
    "Subplan": "plan.models",
    "SupervisorAction": "entities",
    "TaskProfile": "adaptive.profile",
    "Tool": "schemas",
    "ToolCall": "entities",
    "ValidationIssue": "validation.report",
}


class Tool(Entity):
    """What a tool says of itself: as registered, in prompts and in `tools --json` (data model: Tool)."""

    name: NonBlank
    description: NonBlank
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    effect: Effect = "unsafe"
    examples: list[dict[str, Any]] = Field(default_factory=list)


class Envelope(BaseModel):
    """What every line of a journal begins with."""

    v: int = Field(description="Version of the format.")
    seq: int = Field(ge=0, description="Counts from 0 without gaps.")
    ts: Timestamp
    run: str


@lru_cache(maxsize=1)
def _records() -> dict[str, type[records.Record]]:
    found = {record.tag: record for record in vars(records).values() if _is_record(record)}
    return dict(sorted(found.items()))


def _is_record(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, records.Record) and value is not records.Record


def schema_names() -> list[str]:
    """Return the names that `schema` takes: the entities, then the journal's record types."""
    return [*_ENTITIES, *_records()]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an entity or a record type. Raises UsageError that names the nearest known name."""
    if name in _ENTITIES:
        model = getattr(import_module(f"aeon_core.{_ENTITIES[name]}"), name)
        return {"$schema": DIALECT, **model.model_json_schema(by_alias=True)}
    if name in _records():
        return _record_schema(name, _records()[name])
    folded = {known.lower(): known for known in schema_names()}
    if name.lower() in folded:
        raise UsageError(f"the schema {name!r} is unknown; did you mean {folded[name.lower()]!r}?")
    raise UsageError(f"the schema {name!r} is unknown{nearest(name, tuple(schema_names()))}")


def _record_schema(name: str, model: type[records.Record]) -> dict[str, Any]:
    body = model.model_json_schema(by_alias=True)
    envelope = Envelope.model_json_schema()
    fields = {key: value for key, value in body.pop("properties").items() if key != "type"}
    required = [*envelope["required"], "type", *(key for key in body.pop("required", []) if key != "type")]
    properties = {**envelope["properties"], "type": {"const": name}, **fields}
    return {"$schema": DIALECT, **body, "properties": properties, "required": required}
