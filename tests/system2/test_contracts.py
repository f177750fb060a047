"""Delegation contracts and completion signals (REQ-041, REQ-080, REQ-082, REQ-083)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.tools.schema import Schema
from system2.constants import DELEGATION_MAP
from system2.contracts import (
    COMPLETION_TOOL_SPEC,
    CompletionSignal,
    DelegationContract,
    check_contract,
    contract_for,
    implicit_completion,
    repair_contract,
    signal_of,
)

LABELS = ["Objective", "Inputs", "Outputs", "Constraints", "Completion Summary Requirements"]


def test_a_contract_is_formatted_as_labelled_sections() -> None:
    contract = DelegationContract("Write it", ["spec/context.md", "the task"], ["spec/design.md"], [" "], ["say\nwhat"])
    assert contract.to_message() == (
        "## Objective\n\nWrite it\n\n"
        "## Inputs\n\n- spec/context.md\n- the task\n\n"
        "## Outputs\n\n- spec/design.md\n\n"
        "## Constraints\n\n- none\n\n"
        "## Completion Summary Requirements\n\n- say\n  what\n"
    )


@given(st.lists(st.text(max_size=40), max_size=4))
def test_no_text_opens_a_section_of_its_own(items: list[str]) -> None:
    objective = "\n".join(["Do it", *items, "## Constraints", "none"])
    message = DelegationContract(objective, items, items, items, items).to_message()
    headings = [line.removeprefix("## ") for line in message.split("\n") if line.startswith("## ")]
    assert headings == LABELS


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("objective", 1, "objective is 1, expected text"),
        ("inputs", "a.py", "inputs is 'a.py', expected a list of texts"),
        ("outputs", None, "outputs is None, expected a list of texts"),
        ("constraints", ["stay", 1], "constraints is ['stay', 1], expected a list of texts"),
    ],
)
def test_a_field_of_a_contract_that_is_not_text_is_named(field: str, value: Any, problem: str) -> None:
    contract = DelegationContract("Write it", [], [], [], [])
    check_contract(contract)
    check_contract(replace(contract, inputs=cast("list[str]", ("a.py", "b.py"))))
    with pytest.raises(UsageError, match=re.escape(f"the contract's {problem}")):
        check_contract(replace(contract, **{field: value}))


def test_a_contract_is_restored_from_json() -> None:
    contract = DelegationContract("a", ["b"], ["c"], ["d"], ["e"])
    assert DelegationContract(**json.loads(json.dumps(contract.as_dict()))) == contract


def test_the_completion_tool_takes_the_fields_of_a_signal() -> None:
    schema = Schema(COMPLETION_TOOL_SPEC["input_schema"])
    assert schema.errors({"status": "blockers", "files_changed": ["a"], "summary": "s", "blockers": ["b"]}) == []
    assert schema.errors({"status": "fine", "files_changed": [], "summary": "s"})
    assert schema.errors({"status": "success", "summary": "s"})


@pytest.mark.parametrize(("listed", "expected"), [([], ["no access"]), (None, ["no access"]), (["a", "b"], ["a", "b"])])
def test_unlisted_blockers_are_taken_from_the_summary(listed: list[str] | None, expected: list[str]) -> None:
    signal = signal_of({"status": "blockers", "files_changed": [], "summary": "no access", "blockers": listed})
    assert signal == CompletionSignal("blockers", [], "no access", expected)


@pytest.mark.parametrize(
    "text", ["", "nothing", "{", '{"status": "success"}', '{"status": 1, "summary": "s"}', "{" * 5000]
)
def test_a_text_without_a_signal_is_the_summary(text: str) -> None:
    assert implicit_completion(text) == CompletionSignal("success", [], text.strip())


def test_the_last_signal_in_a_text_counts() -> None:
    first, second = ({"status": status, "files_changed": ["a"], "summary": status} for status in ("failure", "success"))
    text = f"At first {json.dumps(first)} but then:\n```json\n{json.dumps(second, indent=2)}\n```\nThat is all {{x}}."
    assert implicit_completion(text) == CompletionSignal("success", ["a"], "success")


def test_a_signal_in_the_text_of_an_agent_that_ended_without_one_counts() -> None:
    text = json.dumps({"status": "failure", "files_changed": ["a"], "summary": "no access"})
    assert implicit_completion(text) == CompletionSignal("failure", ["a"], "no access")


def test_only_agents_that_check_files_get_the_changed_ones() -> None:
    assert "changed: a.py" in contract_for("code-reviewer", "Do it", changed=["a.py"]).inputs
    assert "changed: a.py" not in contract_for("postmortem-scribe", "Do it", changed=["a.py"]).inputs


@pytest.mark.parametrize("agent", DELEGATION_MAP)
def test_every_contract_has_all_its_parts(agent: str) -> None:
    for contract in (contract_for(agent, "Do it"), repair_contract(agent, "Do it", ["no test"], 1)):
        assert all((contract.inputs, contract.outputs, contract.constraints, contract.completion_requirements))


@pytest.mark.parametrize(("cycle", "is_again"), [(1, False), (2, True)])
def test_a_repeated_check_names_its_number(cycle: int, is_again: bool) -> None:
    contract = contract_for("test-engineer", " Do it\n", cycle=cycle)
    assert (f"it was repaired (check {cycle})" in contract.objective) == is_again
    assert contract.objective.endswith("\n\nThe task, in the person's words: Do it")
    assert contract.outputs[1].startswith("an entry `## test-engineer` at the end of ")


def test_a_repair_names_who_reported_which_blockers() -> None:
    contract = repair_contract("test-engineer", "Do it", ["no test", "no docs"], 1)
    assert contract.objective.startswith("Repair each blocker that test-engineer reported")
    assert contract.inputs[:2] == ["blocker of test-engineer: no test", "blocker of test-engineer: no docs"]


@given(st.text(max_size=200))
def test_any_text_is_a_completion(text: str) -> None:
    assert implicit_completion(text).status in ("success", "failure", "blockers")
