"""The text of a plain reply: what the model says, without what it thought before."""

from __future__ import annotations

import pytest

from aeon_core.errors import AeonError
from aeon_core.llm.base import LLMResponse
from aeon_core.reasoning import reply_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is 15.", "It is 15."),
        ("<think>5 + 10\n= 15</think>\n\nIt is 15.", "It is 15."),
        (" <Thinking>a</Thinking> b", "b"),
        ("<think>a</think><think>b</think>c", "<think>b</think>c"),
        ("<think>only this</think> \n", "<think>only this</think> \n"),
        ("<think>cut off", "<think>cut off"),
        ("Tags such as <think>x</think> stay.", "Tags such as <think>x</think> stay."),
    ],
)
def test_one_leading_block_of_thinking_is_left_out_where_something_is_left(text: str, said: str) -> None:
    assert reply_text(LLMResponse(text=text)) == said


@pytest.mark.parametrize(
    ("reply", "reason"), [({"text": " "}, "empty"), ({"text": "", "stop_reason": "refusal"}, "refused")]
)
def test_an_empty_or_refused_reply_is_an_error(reply: dict[str, str], reason: str) -> None:
    with pytest.raises(AeonError, match=reason):
        reply_text(LLMResponse.model_validate(reply))
