"""A request in each reasoning_mode: its prompt, its effort, its length, and what is left alone."""

from __future__ import annotations

import copy
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.llm.base import LLMRequest, Purpose
from aeon_core.llm.simulated.prompt import read_prompt
from aeon_core.prompts import STRATEGIES, THOUGHT_OVER, ReasoningMode, build_request, in_reasoning_mode, system_prompt

LEFT_ALONE: set[Purpose] = {"profile", "tool_call", "repair"}
MODES: list[ReasoningMode] = list(get_args(ReasoningMode))

turns = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.text(max_size=20)}),
    max_size=4,
)


def request(purpose: Purpose = "reason", **fields: Any) -> LLMRequest:
    return build_request(purpose, {"goal": "a goal", "step": '{"step_id": "s1"}'}, max_tokens=1000, **fields)


@pytest.mark.parametrize("purpose", sorted(THOUGHT_OVER))
@pytest.mark.parametrize(("mode", "effort", "longest"), [("shallow", "low", 1000), ("deep", "high", 2000)])
def test_the_mode_adds_its_instruction_as_the_last_section_and_sets_effort_and_length(
    purpose: Purpose, mode: ReasoningMode, effort: str, longest: int
) -> None:
    plain, made = request(purpose), in_reasoning_mode(request(purpose), mode)

    told = f"{plain.messages[0]['content']}\n\n<reasoning>\n{STRATEGIES[mode].instruction}\n</reasoning>"
    assert made.messages == [{"role": "user", "content": told}]
    assert (made.effort, made.max_tokens) == (effort, longest)
    assert (made.system, made.purpose, made.schema) == (plain.system, plain.purpose, plain.schema)


def test_room_for_thinking_is_what_the_reply_leaves() -> None:
    deep, shallow = in_reasoning_mode(request(), "deep"), in_reasoning_mode(request(), "shallow")

    assert (deep.reply_tokens, deep.thinking_tokens) == (1000, 1000)
    assert (shallow.reply_tokens, shallow.thinking_tokens) == (None, 0)


@pytest.mark.parametrize("purpose", get_args(Purpose))
def test_balanced_adds_nothing(purpose: Purpose) -> None:
    assert in_reasoning_mode(request(purpose), "balanced") == request(purpose)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("purpose", sorted(LEFT_ALONE))
def test_profiles_tool_calls_and_repairs_are_unchanged(purpose: Purpose, mode: ReasoningMode) -> None:
    asked = request(purpose)

    assert in_reasoning_mode(asked, mode) is asked
    assert asked == request(purpose)


def test_every_purpose_is_classified_for_reasoning_modes() -> None:
    assert set(get_args(Purpose)) == THOUGHT_OVER | LEFT_ALONE
    assert not THOUGHT_OVER & LEFT_ALONE


def test_the_instruction_goes_to_the_last_message_of_the_user() -> None:
    asked = request()
    asked.messages = [
        {"role": "user", "content": "first"},
        {"role": "user", "content": ""},
        {"role": "assistant", "content": "so"},
    ]

    first, second, third = in_reasoning_mode(asked, "shallow").messages
    assert (first["content"], third["content"]) == ("first", "so")
    assert second["content"] == f"<reasoning>\n{STRATEGIES['shallow'].instruction}\n</reasoning>"


@given(turns, st.sampled_from(MODES), st.sampled_from(sorted(get_args(Purpose))))
def test_the_given_request_is_not_modified(messages: Any, mode: ReasoningMode, purpose: Purpose) -> None:
    asked = LLMRequest(purpose, "s", messages, tools=[{"name": "t"}], max_tokens=7)
    before = copy.deepcopy(asked)

    made = in_reasoning_mode(asked, mode)

    assert asked == before
    assert made.max_tokens >= asked.max_tokens
    assert [turn["role"] for turn in made.messages] == [turn["role"] for turn in asked.messages]
    changed = [one for one, other in zip(made.messages, asked.messages, strict=True) if one != other]
    assert len(changed) <= 1
    assert all(turn["role"] == "user" for turn in changed)


@pytest.mark.parametrize("mode", ["shallow", "deep"])
def test_the_simulated_model_reads_the_instruction_and_everything_before_it(mode: ReasoningMode) -> None:
    prompt = read_prompt(in_reasoning_mode(request(), mode))

    assert list(prompt.sections) == ["goal", "step", "reasoning"]
    assert prompt.text("reasoning") == STRATEGIES[mode].instruction


@pytest.mark.parametrize("purpose", ["plan", "review", "judge", "refine"])
def test_a_system_prompt_that_calls_every_section_data_excepts_this_one(purpose: Purpose) -> None:
    text = " ".join(system_prompt(purpose).split())

    assert "a last section `<reasoning>` says how much thought to take." in text.replace("A last", "a last")
