"""The text of a plain reply: what the model says, without what it thought before."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import InMemoryStore, PlanStep, connect, execute_llm_reasoning_step
from aeon_core.errors import AeonError, UsageError
from aeon_core.llm.base import LLMResponse
from aeon_core.reasoning import reply_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is 15.", "It is 15."),
        ("<think>5 + 10\n= 15</think>\n\nIt is 15.", "It is 15."),
        (" <Thinking>a</Thinking> b", "b"),
        ("<think>a</think><think>b</think>c", "<think>b</think>c"),
        ("<think>cut off", "<think>cut off"),
        ("Tags such as <think>x</think> stay.", "Tags such as <think>x</think> stay."),
    ],
)
def test_a_leading_thinking_block_is_dropped_if_text_remains(text: str, said: str) -> None:
    assert reply_text(LLMResponse(text=text)) == said


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"text": ""}, "is empty$"),
        ({"text": " \n\t"}, "is empty"),
        ({"text": "\u200b\ufeff\u00a0\u2060"}, "is empty"),
        ({"text": "<think>only this</think> \n"}, "holds its thinking and no answer"),
        (
            {"text": "<think>cut off", "stop_reason": "max_tokens"},
            "holds its thinking and no answer: it was cut off; raise max_tokens",
        ),
        ({"text": "", "stop_reason": "max_tokens"}, "the model's reply is empty: it was cut off; raise max_tokens"),
        ({"text": "", "stop_reason": "refusal"}, "the model refused: without a reason"),
        ({"text": "I would rather not.", "stop_reason": "refusal"}, "the model refused: I would rather not."),
    ],
)
def test_an_empty_reply_is_an_error(reply: dict[str, str], reason: str) -> None:
    with pytest.raises(AeonError, match=reason):
        reply_text(LLMResponse.model_validate(reply))


@pytest.mark.parametrize(
    ("step", "memory", "told"),
    [
        ("think", InMemoryStore(), "the step is of type str, expected a PlanStep"),
        (PlanStep(step_id="1", description="think"), {}, "the memory is of type dict, expected a Memory"),
        (PlanStep(step_id="1", description="think"), None, "the memory is of type NoneType, expected a Memory"),
    ],
)
def test_anything_but_a_step_and_a_memory_is_named(step: Any, memory: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        execute_llm_reasoning_step(step, memory, connect("simulated:default"))
