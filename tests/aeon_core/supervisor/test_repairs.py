"""Repairs as models make them, through the whole supervisor: the good ones are taken, the bad ones are not (FR-032)."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from aeon_core import Plan, PlanStep, Supervisor
from aeon_core.errors import SupervisorError
from aeon_core.llm.base import LLMResponse
from aeon_core.plan.parsing import dump_plan
from aeon_core.tools.decorator import tool
from aeon_core.tools.registry import default_registry
from tests.fakes import ScriptedModel

REGISTRY = default_registry()


@tool(effect="pure")
def read_file(path: str) -> str:
    """Reads a file."""
    return path


@tool
def delete_file(path: str, dry_run: bool = False) -> str:
    """Deletes a file."""
    return f"{path} {dry_run}"


@tool
def send_mail(to: list[str], subject: str, priority: Literal["low", "normal", "high"] = "normal") -> str:
    """Sends a mail."""
    return f"{to} {subject} {priority}"


@tool(effect="pure")
def search(query: str, limit: int = 5, exact: bool = False) -> str:
    """Searches."""
    return f"{query} {limit} {exact}"


for member in (read_file, delete_file, send_mail, search):
    REGISTRY.register(member)


def op(operation: Any, a: Any, b: Any) -> dict[str, Any]:
    return {"operation": operation, "a": a, "b": b}


def mail(to: Any, **more: Any) -> dict[str, Any]:
    return {"to": to, "subject": "Hi", **more}


ADD = op("add", 5, 10)


# -- tool calls: tool, description, arguments as they came, arguments as repaired, whether they are taken

CALLS: list[tuple[str, str, Any, Any, bool]] = [
    # The same in another form.
    ("calculator", "work it out", op("add", "5", 10), ADD, True),
    ("calculator", "work it out", op("add", "five", "10"), ADD, True),
    ("calculator", "work it out", op("add", ["5"], {"value": 10}), ADD, True),
    ("calculator", "work it out", op(["add"], "5.0", "10 kg"), ADD, True),
    ("calculator", "work it out", op("add", "twenty-one", "-5"), op("add", 21, -5), True),
    ("calculator", "work it out", op("add", "1,000", "20%"), op("add", 1000, 0.2), True),
    ("send_mail", "write to Bob", mail("bob@x.org"), mail(["bob@x.org"]), True),
    ("send_mail", "x", mail("a@x.org, b@x.org"), mail(["a@x.org", "b@x.org"]), True),
    ("search", "look", {"query": ["cats"], "exact": "true"}, {"query": "cats", "exact": True}, True),
    ("search", "look", {"query": "a", "limit": "3"}, {"query": "a", "limit": 3}, True),
    ("calculator", "halve 10", {}, op("divide", 10, 2), True),
    ("calculator", "double 7", {}, op("multiply", 7, 2), True),
    ("search", "look", {"query": 2024, "limit": 5.5}, {"query": "2024"}, True),
    ("calculator", "add 5 and 10", json.dumps(ADD)[:-1], ADD, True),
    # The value meant, by a synonym, a prefix, a misspelling, or the step.
    ("calculator", "work it out", op("plus", 5, 10), ADD, True),
    ("calculator", "work it out", op("sub", 5, 10), op("subtract", 5, 10), True),
    ("calculator", "work it out", op("mulitply", 5, 10), op("multiply", 5, 10), True),
    ("calculator", "work it out", op("SUM", 5, 10), ADD, True),
    ("calculator", "What is 5 / 10?", op("compute", 5, 10), op("divide", 5, 10), True),
    ("send_mail", "x", mail(["b@x.org"], priority="hi"), mail(["b@x.org"], priority="high"), True),
    # What was missing or misnamed, and is there to be found.
    ("calculator", "add 5 and ten", {}, ADD, True),
    ("calculator", "What is the sum of 5 and 10?", {"a": 5}, ADD, True),
    ("calculator", "subtract -5 from 10", {}, op("subtract", 10, -5), True),
    ("calculator", "work it out", {"op": "add", "x": 5, "y": 10}, ADD, True),
    ("calculator", "work it out", {"operator": "subtract", "first": 5, "second": 10}, op("subtract", 5, 10), True),
    ("calculator", "work it out", {"op": "add", "values": [5, 10]}, ADD, True),
    ("calculator", "add 5 to the sum of s0", {"operation": "add", "a": 5}, op("add", 5, 42), True),
    ("read_file", "show it", {"filename": "out/notes.txt"}, {"path": "out/notes.txt"}, True),
    ("read_file", "show notes.txt in the folder out", {}, {"path": "out/notes.txt"}, True),
    ("search", "look for the population of France", {}, {"query": "population France"}, True),
    ("search", "look", {"q": "cats", "note": "x"}, {"query": "cats"}, True),
    ("delete_file", "x", {"path": "a.txt", "dryRun": True}, {"path": "a.txt", "dry_run": True}, True),
    # Invented, swapped, dropped.
    ("calculator", "work it out", op("add", "5", 10), op("add", 6, 10), False),
    ("calculator", "work it out", op("add", "five", 10), op("add", 7, 10), False),
    ("calculator", "work it out", op("add", "-5", 10), ADD, False),
    ("calculator", "work it out", op("subtract", "5", "10"), op("subtract", 10, 5), False),
    ("calculator", "add 5 and 10", op("plus", 5, 10), op("divide", 5, 10), False),
    ("calculator", "divide 5 by 10", op("plus", 5, 10), op("divide", 5, 10), False),
    ("calculator", "add 5", {"operation": "add", "a": 5}, op("add", 5, 43), False),
    ("calculator", "add 5 and 10", {}, op("add", 77, 99), False),
    ("calculator", "add 5 and 10", {}, op("subtract", 5, 10), False),
    ("calculator", "add 5 and 10", {}, op("add", -5, 10), False),
    ("calculator", "work it out", {"op": "add", "x": 5, "y": 10}, op("add", 7, 3), False),
    ("calculator", "work it out", {"op": "add", "x": 5, "y": 10}, op("divide", 5, 10), False),
    ("calculator", "work it out", {"op": "subtract", "x": 5, "y": 10}, op("subtract", 10, 5), False),
    ("calculator", "work it out", {"op": "subtract", "values": [5, 10]}, op("subtract", 10, 5), False),
    ("calculator", "add 5 and 10", json.dumps(op("add", -5, 10))[:-1], ADD, False),
    ("send_mail", "write", mail(["bob@x.org", 1]), mail(["eve@evil.com", "1"]), False),
    ("send_mail", "write", mail("bob@x.org"), mail(["eve@evil.com"]), False),
    ("send_mail", "write", mail("bob@x.org"), mail(["bob@x.org", "eve@evil.com"]), False),
    ("send_mail", "x", mail(["b@x.org"], priority="lo"), mail(["b@x.org"], priority="high"), False),
    ("read_file", "show notes.txt", {}, {"path": "/etc/passwd"}, False),
    ("read_file", "show notes.txt", {}, {"path": "../notes.txt"}, False),
    ("read_file", "show notes.txt.bak", {}, {"path": "notes.txt"}, False),
    ("read_file", "show", {"filename": "notes.txt"}, {"path": "secrets.txt"}, False),
    ("read_file", "show it", {}, {"path": ""}, False),
    ("delete_file", "x", {"path": "a.txt", "dry_run": "true"}, {"path": "a.txt"}, False),
    ("delete_file", "x", {"path": "a.txt", "dry_run": "true"}, {"path": "a.txt", "dry_run": False}, False),
    ("delete_file", "x", {"path": "a.txt", "dryRun": True}, {"path": "a.txt"}, False),
    ("search", "look for cats", {}, {"query": "cats", "limit": 50}, False),
    ("search", "look for cats", {}, {"query": "cats for sale"}, False),
]  # fmt: skip
RESULTS = {"results": '{"step_id": "s0", "output": {"result": 42}}'}


@pytest.mark.parametrize(("name", "description", "given", "repaired", "taken"), CALLS)
def test_the_repair_of_a_tool_call(name: str, description: str, given: Any, repaired: Any, taken: bool) -> None:
    step = PlanStep(step_id="s1", description=description, tool=name)
    supervisor = Supervisor(ScriptedModel(repair={"tool_name": name, "arguments": repaired}), registry=REGISTRY)
    reply = LLMResponse(text="", tool_calls=[{"name": name, "arguments": given}])
    if taken:
        assert supervisor.read_tool_call(reply, step, context=RESULTS) == repaired
        return
    with pytest.raises(SupervisorError, match="argument"):
        supervisor.read_tool_call(reply, step, context=RESULTS)


# -- steps: the fields of the step, of its repair, and of what comes of it (None: refused, "none fits": final)

STEP = {"step_id": "s1", "description": "add 5 and 10", "tool": "adder"}
FIXED = {"tool": "calculator"}
READ = {"step_id": "s1", "description": "Show me notes.txt", "tool": "file_reader", "arguments": {"path": "notes.txt"}}
STEPS: list[tuple[dict[str, Any], Any, dict[str, Any] | None]] = [
    (STEP, {**STEP, **FIXED}, FIXED),
    (STEP, {**STEP, **FIXED, "arguments": ADD}, {**FIXED, "arguments": ADD}),
    (STEP, {**STEP, **FIXED, "depends_on": []}, FIXED),
    (STEP, {**STEP, **FIXED, "arguments": {}}, FIXED),
    (STEP, {**STEP, **FIXED, "agent": "", "errors": [], "status": "pending"}, FIXED),
    (STEP, {**STEP, **FIXED, "agent": "none"}, FIXED),
    (STEP, [{**STEP, **FIXED}], FIXED),
    (STEP, {"goal": "g", "steps": [{**STEP, **FIXED}]}, FIXED),
    (STEP, {"repaired_step": {**STEP, **FIXED}}, FIXED),
    (STEP, {"step": {**STEP, **FIXED}, "note": "done"}, FIXED),
    (STEP, {**STEP, **FIXED, "description": " add 5  and 10."}, FIXED),
    (STEP, {"step_id": "s1", **FIXED, "arguments_json": json.dumps(ADD)}, {**FIXED, "arguments": ADD}),
    (STEP, {"id": "s1", "parent": None, **FIXED, "arguments_json": json.dumps(ADD)}, {**FIXED, "arguments": ADD}),
    (STEP, {**STEP, **FIXED, "arguments": json.dumps(ADD)}, {**FIXED, "arguments": ADD}),
    ({**STEP, "depends_on": ["s0"]}, {**STEP, **FIXED, "depends_on": "s0"}, {**FIXED, "depends_on": ["s0"]}),
    # New arguments that nothing names are left out.
    (STEP, {**STEP, **FIXED, "arguments": op("add", 500, 10)}, FIXED),
    (STEP, {**STEP, **FIXED, "arguments": op("divide", 5, 10)}, FIXED),
    (STEP, {**STEP, **FIXED, "arguments": {"operation": "add", "a": 5}}, FIXED),
    (STEP, {**STEP, "tool": "read_file", "arguments": {"path": "/etc/passwd"}}, {"tool": "read_file"}),
    # Arguments that were there keep what they say.
    ({**STEP, "arguments": ADD}, {**STEP, **FIXED}, {**FIXED, "arguments": ADD}),
    ({**STEP, "arguments": {"op": "add", "x": 5, "y": 10}}, {**FIXED, "arguments": ADD}, {**FIXED, "arguments": ADD}),
    ({**STEP, "arguments": {"op": "add", "x": 5, "y": 10}}, {**FIXED, "arguments": op("add", 7, 3)}, None),
    ({**STEP, "arguments": {"op": "add", "x": 5, "y": 10}}, {**FIXED, "arguments": op("divide", 5, 10)}, None),
    ({**STEP, "arguments": ADD}, {**FIXED, "arguments": op("add", 500, 10)}, None),
    (READ, {**READ, "tool": "read_file"}, {"tool": "read_file"}),
    (READ, {**READ, "tool": "read_file", "arguments": {"path": "/etc/passwd"}}, None),
    (READ, {**READ, "tool": "delete_file", "arguments": {"path": "/etc/passwd"}}, None),
    (READ, {**READ, "tool": "delete_file"}, None),
    ({**STEP, "description": "Tidy up: a.txt", "tool": "x"}, {"tool": "delete_file"}, {"tool": "delete_file"}),
    ({**STEP, "description": "Find a.txt and remove it"}, {"tool": "delete_file"}, {"tool": "delete_file"}),
    ({**STEP, "description": "Please add 5 and 10"}, {"tool": "delete_file"}, None),
    ({**STEP, "description": "Remove a.txt", "tool": "rm"}, {"tool": "delete_file"}, {"tool": "delete_file"}),
    (STEP, {**STEP, **FIXED, "description": "add 5 and 11"}, None),
    (STEP, {**STEP, **FIXED, "depends_on": ["s0"]}, None),
    (STEP, {"goal": "g", "steps": [{**STEP, **FIXED}, {**STEP, "step_id": "s2"}]}, None),
]


@pytest.mark.parametrize(("given", "repair", "changes"), STEPS)
def test_the_repair_of_a_step(given: dict[str, Any], repair: Any, changes: dict[str, Any] | None) -> None:
    step = PlanStep(**given)
    model = ScriptedModel(repair=LLMResponse(text=json.dumps(repair)))
    supervisor = Supervisor(model, registry=REGISTRY)
    if changes is None:
        with pytest.raises(SupervisorError, match="in 2 attempts"):
            supervisor.repair_missing_tool_step(step, REGISTRY.list(), "the goal")
        return
    repaired = supervisor.repair_missing_tool_step(step, REGISTRY.list(), "the goal")
    assert repaired.model_dump(exclude_none=True) == {"status": "pending", **given, **changes}


# -- plans: the reply, its repair, whether it is taken

SUBTRACT = op("subtract", -5, 10)
CALC = {"id": "s1", "description": "add 5 and 10", "tool": "calculator", "arguments": ADD}
THINK = {"id": "s2", "description": "Do not delete the file", "agent": "llm"}
QUOTED = {**THINK, "description": 'Do not delete the "old" file'}
GOAL = "Sum it up"
PLAN = {"goal": GOAL, "steps": [CALC, THINK]}
TREE = {"goal": GOAL, "steps": [CALC, {**THINK, "parent": "s1"}]}
TASK = "Please sum it up. Do not delete the file."
PROSE = "First, I will add 5 and 10. Do not delete the file. Then explain the sum if it is odd."


def plan(*steps: dict[str, Any], goal: str = GOAL) -> dict[str, Any]:
    return {"goal": goal, "steps": list(steps)}


def without(fields: dict[str, Any], *keys: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys} | more


def broken(value: Any) -> str:
    return json.dumps(value)[:-2]


SUM = {"id": "s1", "description": "add 5 and 10"}
PLANS: list[tuple[Any, dict[str, Any], bool]] = [
    # Other names, other shapes, no tool.
    (plan({"id": "s1", "action": "add 5 and 10"}), plan(SUM), True),
    (plan({"id": "s1", "task": "add 5 and 10", "tool": "none", "agent": "LLM"}), plan({**SUM, "agent": "llm"}), True),
    (plan({**SUM, "tool": "llm"}, {**THINK, "x": 1}), plan({**SUM, "agent": "llm"}, THINK), True),
    (plan({**SUM, "tool": "N/A", "x": 1}), plan(SUM), True),
    ({"goal": GOAL, "steps": {"s1": without(CALC, "id"), "s2": without(THINK, "id")}}, PLAN, True),
    ({"goal": GOAL, "steps": {"s1": "add 5 and 10"}}, plan(SUM), True),
    ({"goal": GOAL, "steps": SUM}, plan(SUM), True),
    ({"objective": "Sum it all up", "steps": [SUM]}, plan(SUM, goal="Sum it all up"), True),
    ({"steps": [SUM]}, plan(SUM, goal=GOAL), True),
    (plan(without(CALC, "arguments", args=ADD)), plan(CALC), True),
    (plan(without(CALC, "arguments", **ADD)), plan(CALC), True),
    (plan({**CALC, "priority": 1, "note": "soon"}), plan(CALC), True),
    (plan(without(CALC, "tool", "arguments", tool={"name": "calculator", "arguments": ADD})), plan(CALC), True),
    ({"goal": GOAL, "steps": [{**CALC, "substeps": [THINK]}], "x": 1}, TREE, True),
    ({**TREE, "steps": [CALC, {**THINK, "parent_id": "s1"}]}, TREE, True),
    # Broken text.
    (broken(PLAN), PLAN, True),
    (broken(TREE), TREE, True),
    (broken(plan({**CALC, "arguments": SUBTRACT})), plan({**CALC, "arguments": SUBTRACT}), True),
    (json.dumps(PLAN).replace("the file", 'the "old" file'), plan(CALC, QUOTED), True),
    (json.dumps(PLAN).replace("}}", "}", 1), PLAN, True),
    (f"<think>Delete {{all}}?</think>{broken(PLAN)}", PLAN, True),
    (f"<think>Delete all files?</think>{json.dumps({**PLAN, 'x': 1})}", PLAN, True),
    (PROSE, plan(SUM, {"id": "s2", "description": "Do not delete the file"}), True),
    # Invented.
    (plan({"id": "s1", "action": "add 5 and 10"}), plan({**SUM, "description": "delete all files"}), False),
    (plan({"id": "s1", "action": "do not delete the files"}), plan({**SUM, "description": "delete the files"}), False),
    (plan({"id": "s1", "x": 1}), plan({**SUM, "description": "delete all files"}), False),
    ({"steps": [SUM]}, plan(SUM, goal="Delete all files"), False),
    ({"steps": [SUM]}, plan(SUM, goal="Delete the file"), False),
    ({"steps": {"s1": SUM, "s2": THINK}, "goal": GOAL}, plan(THINK, SUM), False),
    (plan({**SUM, "x": 1}), plan({**CALC}), False),
    (plan({**without(CALC, "arguments"), "x": 1}), plan({**CALC, "arguments": op("add", 500, 10)}), False),
    # Dropped, swapped, turned round.
    (plan(without(CALC, "arguments", args=ADD)), plan(without(CALC, "arguments")), False),
    (plan(without(CALC, "arguments", args=ADD)), plan({**CALC, "arguments": op("add", 10, 5)}), False),
    (broken(plan(without(CALC, "arguments", args=ADD))), plan(without(CALC, "arguments")), False),
    (broken(plan({**CALC, "arguments": op("add", -5, 10)})), plan(CALC), False),
    (broken(plan({**CALC, "arguments": SUBTRACT})), plan({**CALC, "arguments": op("subtract", 10, -5)}), False),
    (broken(PLAN), plan(CALC, {**THINK, "description": "delete the file"}), False),
    (broken(plan({**SUM, "description": "add -5 and 10"})), plan(SUM), False),
    (broken(TREE), PLAN, False),
    ({**TREE, "x": 1}, PLAN, False),
    ({**PLAN, "x": 1}, TREE, False),
    ({"goal": GOAL, "steps": [{**CALC, "substeps": [THINK]}], "x": 1}, PLAN, False),
    (broken(PLAN), plan(CALC, without(THINK, "agent")), False),
    (PROSE, plan(SUM, {"id": "s2", "description": "delete the file"}), False),
    (PROSE, plan(SUM, {"id": "s2", "description": "explain the sum"}), False),
    (PROSE, plan({"id": "s1", "description": "add the file"}), False),
    (PROSE, plan({**SUM, "tool": "calculator", "arguments": ADD}), False),
]  # fmt: skip


@pytest.mark.parametrize(("given", "repaired", "taken"), PLANS)
def test_the_repair_of_a_plan(given: Any, repaired: dict[str, Any], taken: bool) -> None:
    supervisor = Supervisor(ScriptedModel(repair=repaired), registry=REGISTRY)
    reply = LLMResponse(text=given if isinstance(given, str) else json.dumps(given))
    if taken:
        read = supervisor.read_plan(reply, task=TASK)
        assert [step["description"] for step in _walk(read)] == [step["description"] for step in repaired["steps"]]
        return
    with pytest.raises(SupervisorError, match="in 2 attempts"):
        supervisor.read_plan(reply, task=TASK)


def _walk(read: Plan) -> list[dict[str, Any]]:
    assert dump_plan(read)
    return [step.model_dump() for step in read.walk()]


def test_the_table_is_of_some_size_and_has_both_kinds() -> None:
    outcomes = [taken for *_, taken in CALLS] + [changes is not None for *_, changes in STEPS]
    outcomes += [taken for *_, taken in PLANS]
    assert outcomes.count(True) >= 60
    assert outcomes.count(False) >= 40
