"""JSON Schemas of the public entities, the files people write and every journal record (contract: `schema [NAME]`)."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import BaseModel, Field
from pydantic.json_schema import GenerateJsonSchema

from aeon_core.entities import Entity, Timestamp
from aeon_core.errors import UsageError
from aeon_core.journal.records import RECORDS, Record
from aeon_core.plan.models import NonBlank
from aeon_core.suggest import close
from aeon_core.tools.base import Effect

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_ENTITIES = {
    "AdaptiveDepthConfiguration": "adaptive_depth",
    "ApprovalDecision": "approvals",
    "ApprovalRequest": "approvals",
    "ConvergenceAssessment": "convergence",
    "ConvergenceCriteria": "convergence",
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
    "SemanticValidationReport": "entities",
    "StepResult": "entities",
    "Subplan": "plan.models",
    "SupervisorAction": "entities",
    "TaskProfile": "task_profile",
    "Tool": "schemas",
    "ToolCall": "entities",
    "ValidationIssue": "entities",
}


FILES = ("plan-file", "criteria-file", "requirements-file", "config-file")
"""Files that people write, for which editors use a schema."""
_CITATION = re.compile(r"\s*\((?:core|adaptive|contract|data model|design|Decision|REQ)[^()]*\)")
_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
"""Pydantic's names for the bounds of a number that has a validator before it."""
_LONG_TEXT = {
    "type": "object",
    "description": "A long text, by the sha256 of its `text` record.",
    "properties": {"$text": {"type": "string"}},
    "required": ["$text"],
    "additionalProperties": False,
}
_IN_FULL = ("run_started", "text")
"""Records in which a long text stays where it is."""
_SCHEMA_LINE = {"type": "string", "description": "The JSON Schema of this file, for editors."}


class Tool(Entity):
    """The description of a tool: as registered, in prompts and in `tools --json` (data model: Tool)."""

    name: NonBlank
    description: NonBlank
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    effect: Effect = "unsafe"
    examples: list[dict[str, Any]] = Field(default_factory=list)


class Envelope(BaseModel):
    """The fields at the beginning of every line of a journal."""

    v: int = Field(description="Version of the format.")
    seq: int = Field(ge=0, description="Counts from 0 without gaps.")
    ts: Timestamp
    run: str


def schema_names() -> list[str]:
    """Return the names that `schema` takes: files that people write, entities, then the journal's record types."""
    return [*FILES, *_ENTITIES, *sorted(RECORDS)]


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of an entity or a record type. Raises UsageError that names the nearest known name."""
    if name in _ENTITIES:
        body = _described(getattr(import_module(f"aeon_core.{_ENTITIES[name]}"), name))
        if name == "RunConfig":
            _describe_settings(body["properties"])
        return {"$schema": DIALECT, **body}
    if name in FILES:
        return {"$schema": DIALECT, **_file_schema(name)}
    if name in RECORDS:
        return _record_schema(name, RECORDS[name])
    folded = {known.lower(): known for known in schema_names()}
    if name.lower() in folded:
        raise UsageError(f"the schema {name!r} is unknown; did you mean {folded[name.lower()]!r}?")
    near = close(name, tuple(schema_names()), 0.7)
    hint = f"did you mean {near!r}?" if near else f"write one of {', '.join(FILES)}"
    raise UsageError(f"the schema {name!r} is unknown; {hint} (`aeon-tui schema` lists all)")


def _record_schema(name: str, model: type[Record]) -> dict[str, Any]:
    body, envelope = _described(model), _described(Envelope)
    fields = {key: value for key, value in body.pop("properties").items() if key != "type"}
    if name not in _IN_FULL:
        body, fields = _with_long_texts(body), _with_long_texts(fields)
        body["$defs"] = {**body.get("$defs", {}), "LongText": _LONG_TEXT}
    required = [*envelope["required"], "type", *(key for key in body.pop("required", []) if key != "type")]
    properties = {**envelope["properties"], "type": {"const": name}, **fields}
    return {"$schema": DIALECT, **body, "properties": properties, "required": required}


def _with_long_texts(value: Any) -> Any:
    """Return a schema in which each free text may also be a reference to a long one."""
    if isinstance(value, list):
        return [_with_long_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") != "string" or value.keys() & {"const", "enum", "format"}:
        return {key: _with_long_texts(each) for key, each in value.items()}
    text = {key: value[key] for key in ("type", "pattern") if key in value}
    rest = {key: each for key, each in value.items() if key not in text}
    return {**rest, "anyOf": [text, {"$ref": "#/$defs/LongText"}]}


class _Describing(GenerateJsonSchema):
    """Adds to each field the docstring below it."""

    def model_schema(self, schema: Any) -> Any:
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        properties, docs = made.get("properties", {}), field_docs(model)
        for name, info in model.model_fields.items():
            if name in docs and (field := properties.get(info.serialization_alias or name)) is not None:
                field.setdefault("description", docs[name])
        return made


def _described(model: type[BaseModel]) -> dict[str, Any]:
    made: dict[str, Any] = _plain_words(model.model_json_schema(by_alias=True, schema_generator=_Describing))
    return made


def _plain_words(value: Any) -> Any:
    """Return a schema with one-line descriptions for people who write data, without citations and exceptions."""
    if isinstance(value, list):
        return [_plain_words(each) for each in value]
    if not isinstance(value, dict):
        return value
    words = {_BOUNDS.get(key, key): _plain_words(each) for key, each in value.items()}
    if isinstance(text := words.get("description"), str):
        sentences = re.split(r"(?<=\.)\s+", " ".join(_CITATION.sub("", text).split()))
        words["description"] = " ".join(each for each in sentences if " raise" not in each)
    return words


def field_docs(kind: type) -> dict[str, str]:
    """Return the docstrings below the fields of a class and its bases, by field; none if there is no source."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith(("aeon", "system2")):
            docs |= _docs_below(base)
    return docs


@cache
def _docs_below(kind: type) -> dict[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    except (OSError, TypeError):
        return {}
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
            docs[field.target.id] = ast.literal_eval(below.value)
    return docs


def _file_schema(name: str) -> dict[str, Any]:
    if name == "requirements-file":
        return _requirements_file()
    body = schema({"plan-file": "Plan", "criteria-file": "ConvergenceCriteria", "config-file": "RunConfig"}[name])
    if name == "config-file":
        _complete_config(body)
    if name == "plan-file":
        _complete_plan(body)
    body["properties"] = {"$schema": _SCHEMA_LINE, **body["properties"]}
    return {**body, "title": name}


def _requirements_file() -> dict[str, Any]:
    from aeon_core.plan.files import MAX_REQUIREMENT, MAX_REQUIREMENTS

    item = {"type": "string", "pattern": r"\S", "maxLength": MAX_REQUIREMENT, "description": "One requirement."}
    text = "What a finished answer must satisfy, instead of requirements that are inferred from the task."
    bounds = {"minItems": 1, "maxItems": MAX_REQUIREMENTS}
    return {"title": "requirements-file", "description": text, "type": "array", **bounds, "items": item}


def _complete_plan(body: dict[str, Any]) -> None:
    """Describe a plan that has not run, nested or flat; in a flat one, steps name their `parent`."""
    definitions = body["$defs"]
    fields = definitions["PlanStep"]["properties"]
    fields["status"] |= {"enum": ["pending"]}
    fields["errors"] |= {"anyOf": [{"type": "array", "maxItems": 0}, {"type": "null"}]}
    del definitions["Subplan"]["properties"]["depth_level"]["default"]  # derived from its place
    text = {"anyOf": [{"type": "string", "pattern": r"\S"}, {"type": "null"}]}
    own_id = {**text, "description": fields["step_id"]["description"]}
    flat = {
        "id": own_id,
        **fields,
        "step_id": own_id,
        "status": {**fields["status"], "enum": ["pending", None], "type": ["string", "null"]},
        "parent": {**text, "description": "Id of the step that this one is a part of."},
        "subplan": {"type": "null", "description": "None: its substeps name it as their `parent`."},
        "arguments_json": {**text, "description": "The arguments, as a JSON object in a string."},
    }
    definitions["FlatStep"] = {
        "title": "FlatStep",
        "type": "object",
        "description": "One step of a flat plan, in which a substep names its `parent`.",
        "properties": flat,
        "additionalProperties": False,
        "required": ["description"],
        "oneOf": [_with("id"), _with("step_id")],
        "not": {"allOf": [_with("arguments_json"), _with("arguments", "object")]},
    }
    is_flat = {"type": "object", "anyOf": [{"required": ["id"]}, {"required": ["parent"]}]}
    steps = body["properties"]["steps"]
    nested = steps.pop("items")
    steps |= {"if": {"contains": is_flat}, "then": {"items": {"$ref": "#/$defs/FlatStep"}}, "else": {"items": nested}}


def _with(name: str, kind: str = "string") -> dict[str, Any]:
    return {"required": [name], "properties": {name: {"type": kind}}}


def _describe_settings(fields: dict[str, Any]) -> None:
    """Describe each setting as the command line does."""
    from aeon_core.config.keys import CONFIG_KEYS

    for key, spec in CONFIG_KEYS.items():
        if key in fields:
            fields[key]["description"] = f"{spec.meaning} Takes {spec.expected}."


def _complete_config(body: dict[str, Any]) -> None:
    """Add the app's settings, and what only files may contain."""
    fields = body["properties"]
    points = {key: fields["approve"][key] for key in ("type", "items", "minItems")}
    fields["approve"] = {"anyOf": [points, {"type": "string"}], "default": ["none"]}
    fields["theme"] = {"type": "string"}
    fields["keys"] = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    _describe_settings(fields)
    server = body["$defs"]["McpServer"]["properties"]
    for texts in (server["args"]["items"], server["env"]["additionalProperties"]):
        texts["type"] = ["string", "number"]  # as the file's reader does
    body["description"] = "Aeon settings: a project's .aeon/config.yml, or your own."
