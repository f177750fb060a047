"""Delegation contracts and completion signals (REQ-041, REQ-080, REQ-082, REQ-083)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.tools.schema import Schema
from system2.contracts import (
    COMPLETION_TOOL_SPEC,
    CompletionSignal,
    DelegationContract,
    implicit_completion,
    signal_in,
    signal_of,
)

LABELS = ["Objective", "Inputs", "Outputs", "Constraints", "Completion Summary Requirements"]


def test_a_contract_is_formatted_as_labelled_sections() -> None:
    contract = DelegationContract("Write it", ["spec/context.md", "the task"], ["spec/design.md"], [], ["say\nwhat"])
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


def test_a_contract_is_restored_from_json() -> None:
    contract = DelegationContract("a", ["b"], ["c"], ["d"], ["e"])
    assert DelegationContract(**json.loads(json.dumps(contract.as_dict()))) == contract


def test_the_completion_tool_takes_the_fields_of_a_signal() -> None:
    schema = Schema(COMPLETION_TOOL_SPEC["input_schema"])
    assert schema.errors({"status": "blockers", "files_changed": ["a"], "summary": "s", "blockers": ["b"]}) == []
    assert schema.errors({"status": "fine", "files_changed": [], "summary": "s"})
    assert schema.errors({"status": "success", "summary": "s"})


def test_unlisted_blockers_are_taken_from_the_summary() -> None:
    signal = signal_of({"status": "blockers", "files_changed": [], "summary": "no access"})
    assert signal == CompletionSignal("blockers", [], "no access", ["no access"])


@pytest.mark.parametrize(
    "text", ["", "nothing", "{", '{"status": "success"}', '{"status": 1, "summary": "s"}', "{" * 5000]
)
def test_a_text_without_a_signal_is_the_summary(text: str) -> None:
    assert signal_in(text) is None
    assert implicit_completion(text) == CompletionSignal("success", [], text.strip())


def test_the_last_signal_in_a_text_counts() -> None:
    first, second = ({"status": status, "files_changed": ["a"], "summary": status} for status in ("failure", "success"))
    text = f"At first {json.dumps(first)} but then:\n```json\n{json.dumps(second, indent=2)}\n```\nThat is all {{x}}."
    assert signal_in(text) == CompletionSignal("success", ["a"], "success")


@given(st.text(max_size=200))
def test_any_text_is_a_completion(text: str) -> None:
    assert implicit_completion(text).status in ("success", "failure", "blockers")
