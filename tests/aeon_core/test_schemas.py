from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.config.keys import CONFIG_KEYS, KEYS
from aeon_core.errors import UsageError, ValidationError
from aeon_core.plan.parsing import parse_plan
from aeon_core.runs.orchestrator import Orchestrator
from aeon_core.schemas import FILES, schema, schema_names
from aeon_core.tools.registry import default_registry
from tests.aeon_core.journal.build import lines, text, whole_run
from tests.aeon_core.kernel.test_passes import PROFILE
from tests.fakes import ScriptedModel
from tests.sampling import each

ENTITIES = {
    "ExecutionHistory",
    "ExecutionPass",
    "LogEntry",
    "MemoryEntry",
    "OrchestrationState",
    "Plan",
    "PlanStep",
    "RunConfig",
    "RunResult",
    "SemanticValidationReport",
    "Subplan",
    "SupervisorAction",
    "Tool",
    "ToolCall",
    "ValidationIssue",
}
RECORDS = {"run_started", "phase", "plan", "step", "llm", "tool", "supervisor", "memory", "ttl", "cycle", "pass"}


def test_the_public_entities_and_every_record_type_have_a_schema() -> None:
    assert set(schema_names()) >= ENTITIES | RECORDS | {"text", "approval", "run_finished", "run_resumed"}


@each(schema_names())
def test_each_schema_is_a_valid_json_schema(name: str) -> None:
    assert jsonschema_rs.meta.is_valid(schema(name))
    assert json.loads(json.dumps(schema(name))) == schema(name)


def test_lines_of_a_journal_fit_the_schema_of_their_type_and_no_other() -> None:
    records, _ = text("long")
    for line in lines(records, *whole_run()):
        record = json.loads(line)
        assert list(jsonschema_rs.iter_errors(schema(record["type"]), record)) == []
        assert not jsonschema_rs.is_valid(schema(record["type"]), {**record, "type": "other"})
        assert not jsonschema_rs.is_valid(schema(record["type"]), {key: record[key] for key in record if key != "seq"})


def test_a_line_that_refers_to_long_texts_fits_the_schema_of_its_type(tmp_path: Path) -> None:
    long = "word " * 100
    plan = {"goal": long, "steps": [{"step_id": "s1", "description": long, "agent": "llm"}]}
    answer = {"artifact": "answer"}
    issue = {"issue_id": "i1", "type": "relevance", "severity": "medium", "description": long, "location": answer}
    model = ScriptedModel(profile=PROFILE, reason=long, answer=long, judge={"issues": [issue]})
    path = tmp_path / "run.jsonl"
    Orchestrator(model, config={"ttl": 4}, requirements=[long], journal=path).run(long, plan=plan)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert isinstance(records[-1]["result"]["answer"], dict)
    for record in records:
        assert list(jsonschema_rs.iter_errors(schema(record["type"]), record)) == []


@pytest.mark.parametrize("name", FILES)
def test_every_field_of_a_file_has_a_description(name: str) -> None:
    def check(part: object) -> None:
        for field, what in (part.get("properties") or {}).items() if isinstance(part, dict) else ():
            said = what.get("description") or made["$defs"][what["$ref"].rpartition("/")[2]]["description"]
            assert said.endswith((".", "…")), field
            assert not re.search("FR-|raise", said), field

    made = schema(name)
    for part in (made, *(made.get("$defs") or {}).values()):
        check(part)


PLAN_FILE = schema("plan-file")
STEP = {"step_id": "s1", "description": "add", "tool": "calculator", "arguments": {"a": 1}}
FLAT = {"id": "a", "parent": None, "description": "add", "arguments_json": "{}"}
PLAN_FILES = [
    [STEP],
    [{**STEP, "status": "pending", "errors": [], "agent": None, "depends_on": None}],
    [{**STEP, "subplan": {"parent_step_id": "s1", "subplan_goal": "g", "substeps": [{**STEP, "step_id": "s2"}]}}],
    [FLAT, {**FLAT, "id": "b", "parent": "a", "status": None, "step_id": None}],
    [FLAT, {"step_id": "b", "description": "x", "parent": "a"}],
    [{"id": "a", "description": "x", "arguments": {}, "arguments_json": None}],
]
NO_PLAN_FILES = [
    [],
    [{"description": "x"}],
    [{**STEP, "status": "complete"}],
    [{**STEP, "errors": ["e"]}],
    [{**STEP, "parnet": "s0"}],
    [{**STEP, "arguments_json": "{}"}],
    [FLAT, {**STEP, "subplan": None}, {**STEP, "arguments": 1}],
    [{**FLAT, "step_id": "a"}],
    [{**FLAT, "arguments": {}}],
    [{**FLAT, "description": None}],
    [{**FLAT, "subplan": {"parent_step_id": "a", "subplan_goal": "g", "substeps": [STEP]}}],
    [{"parent": "a", "description": "x"}],
    ["add"],
]


@pytest.mark.parametrize("steps", [*PLAN_FILES, *NO_PLAN_FILES])
def test_an_editor_accepts_the_plan_files_that_a_run_accepts_nested_or_flat(steps: list[Any]) -> None:
    data = {"goal": "add", "steps": steps}
    assert jsonschema_rs.is_valid(schema("plan-file"), data) == (steps in PLAN_FILES)
    if steps in PLAN_FILES:
        parse_plan(data)
    else:
        with pytest.raises(ValidationError):
            parse_plan(data)


FIELDS = {
    "id": ["a", "b", None],
    "step_id": ["c", "d", None],
    "parent": ["a", None, " "],
    "status": ["pending", None, "failed"],
    "tool": ["echo", None, ""],
    "agent": ["llm", None, "me"],
    "arguments": [{}, None, []],
    "arguments_json": ["{}", None, "{"],
    "depends_on": [["a"], [], None, [" "]],
    "errors": [[], None, ["e"]],
    "replaces": ["z", None, 1],
    "subplan": [None, {"parent_step_id": "c", "subplan_goal": "g", "substeps": [STEP]}, {}],
}
STEPS = st.fixed_dictionaries(
    {"description": st.just("d")}, optional={k: st.sampled_from(v) for k, v in FIELDS.items()}
)


@given(st.lists(STEPS, min_size=1, max_size=2))
def test_an_editor_accepts_every_plan_a_run_accepts(steps: list[dict[str, Any]]) -> None:
    data = {"goal": "g", "steps": steps}
    try:
        parse_plan(data)
    except ValidationError:
        return
    assert jsonschema_rs.is_valid(PLAN_FILE, data)


def test_every_option_of_a_run_is_described() -> None:
    described = schema("RunConfig")["properties"]
    assert [key for key in KEYS if CONFIG_KEYS[key].meaning not in described[key].get("description", "")] == []


def test_the_requirements_file_is_a_list_of_texts() -> None:
    made = schema("requirements-file")
    assert jsonschema_rs.is_valid(made, ["names a date"])
    assert not any(jsonschema_rs.is_valid(made, wrong) for wrong in ([], [1], [" "], "x", ["x" * 1001], ["x"] * 51))


def test_an_exported_tool_fits_the_schema_of_a_tool() -> None:
    for exported in default_registry().export_tools_for_llm():
        assert list(jsonschema_rs.iter_errors(schema("Tool"), exported)) == []
    assert not jsonschema_rs.is_valid(schema("Tool"), {"name": "x"})


@pytest.mark.parametrize(
    ("name", "hint"), [("plan_step", "PlanStep"), ("runresult", "RunResult"), ("cylce", "cycle"), ("???", "plan-file")]
)
def test_an_unknown_name_is_refused_with_the_nearest_one(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        schema(name)


def test_a_dissimilar_name_is_refused_with_the_file_schemas() -> None:
    with pytest.raises(UsageError) as refused:
        schema("nope")
    message = "the schema 'nope' is unknown; write one of plan-file, criteria-file, requirements-file, config-file"
    assert str(refused.value) == f"{message} (`aeon-tui schema` lists all)"
