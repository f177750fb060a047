"""The form of a conversation, and that every tool use in it has its result (REQ-030, REQ-051, REQ-061, REQ-080)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.llm.base import LLMResponse, Message
from system2.converse import (
    NOT_CARRIED_OUT,
    NOTHING_SAID,
    SUMMARIZED,
    Conversation,
    ToolResult,
    as_turns,
    reply_message,
    tool_uses,
    use_ids,
)
from tests.system2.kit import check_order, said, uses

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["Read", "Bash"]), st.just({"file_path": "a"}), st.sampled_from(["", "x", "x!", "y" * 80])
    ),
    max_size=4,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reply"), st.text(max_size=5), CALLS),
        st.tuples(st.just("answer"), st.integers(0, 5)),
        st.tuples(st.just("say"), st.text(min_size=1, max_size=5)),
        st.tuples(st.just("summarize"), st.text(max_size=5)),
    ),
    max_size=25,
)


def message_of(response: LLMResponse, taken: list[str] | None = None) -> Message:
    """A reply as a message."""
    return reply_message(response, tool_uses(response, taken or ()))


def test_a_result_becomes_a_converse_block() -> None:
    (turn,) = as_turns([ToolResult("u1", "text").message, ToolResult("u2", "text", is_error=True).message])
    assert turn["role"] == "user"
    assert turn["content"][0] == {"toolResult": {"toolUseId": "u1", "content": [{"text": "text"}], "status": "success"}}
    assert turn["content"][1]["toolResult"]["status"] == "error"


def test_a_reply_is_parsed() -> None:
    reply = uses(("Read", {"file_path": "a"}, "r1"), text="Look.")
    assert [(use.tool_use_id, use.name, use.input) for use in tool_uses(reply)] == [("r1", "Read", {"file_path": "a"})]
    assert as_turns([message_of(reply)]) == [
        {
            "role": "assistant",
            "content": [
                {"text": "Look."},
                {"toolUse": {"toolUseId": "r1", "name": "Read", "input": {"file_path": "a"}}},
            ],
        }
    ]


def test_an_empty_reply_does_not_become_an_empty_turn() -> None:
    assert message_of(said("")) == {"role": "assistant", "content": NOTHING_SAID}


def test_an_input_that_is_not_an_object_is_kept_as_text() -> None:
    (use,) = tool_uses(LLMResponse(text="", tool_calls=[{"name": "Read", "arguments": "{file"}]))
    assert (use.input, use.malformed) == ({"text": "{file"}, True)


def test_tool_uses_with_equal_ids_are_distinguished() -> None:
    found = tool_uses(uses(("Read", {}, "x"), ("Read", {}, "x"), ("Read", {}, "")), taken=["x"])
    assert [use.tool_use_id for use in found] == ["x_2", "x_3", "tool"]


def test_only_an_open_tool_use_is_answered() -> None:
    conversation = Conversation()
    conversation.add_text("go")
    conversation.add_reply(message_of(uses(("Read", {}, "r1"))))
    conversation.answer(ToolResult("r1", "text"))
    for other in ("r1", "r2"):
        with pytest.raises(ValueError, match=f"'{other}' is not an open tool use"):
            conversation.answer(ToolResult(other, "text"))


def test_no_empty_turn_is_sent() -> None:
    conversation = Conversation()
    with pytest.raises(ValueError, match="nothing to say"):
        conversation.outgoing()


def test_a_tool_use_without_a_result_is_answered_as_not_executed() -> None:
    conversation = Conversation()
    conversation.add_text("go")
    conversation.add_reply(message_of(uses(("Read", {}, "r1"), ("Read", {}, "r2"))))
    conversation.answer(ToolResult("r2", "second"))
    assert conversation.outgoing()[-2:] == [
        ToolResult("r1", NOT_CARRIED_OUT, is_error=True).message,
        ToolResult("r2", "second").message,
    ]


def test_a_summary_replaces_all_but_the_task_and_unsent_turns() -> None:
    conversation = Conversation()
    conversation.add_text("the task")
    conversation.add_reply(message_of(uses(("Read", {}, "r1"))))
    conversation.answer(ToolResult("r1", "long text"))
    conversation.add_text("the feedback")
    conversation.replace_by_summary("read a file")
    summary = f"{SUMMARIZED}\n\nWhat was said and done so far:\n\nread a file"
    told = "\n\n".join(["the task", summary, "the feedback"])
    assert conversation.outgoing() == [{"role": "user", "content": told}]


def test_the_last_of_two_summaries_is_kept() -> None:
    conversation = Conversation()
    conversation.add_text("the task")
    for number in (1, 2):
        conversation.add_reply(message_of(said("so be it")))
        conversation.add_text("go on")
        conversation.replace_by_summary(f"summary {number}")
    (message,) = conversation.outgoing()
    assert message["content"].startswith("the task")
    assert message["content"].count(SUMMARIZED) == 1
    assert "summary 2" in message["content"]


@given(STEPS)
def test_roles_and_results_are_always_in_valid_order(steps: list[tuple[Any, ...]]) -> None:
    conversation = Conversation()
    for step in steps:
        conversation = _after(step, conversation)
        check_order(as_turns(conversation.messages))
        sent = _sent(conversation)
        check_order(as_turns(sent))
        answered = [message["tool_call_id"] for message in sent if message["role"] == "tool"]
        assert answered == list(use_ids(sent))


def _sent(conversation: Conversation) -> list[Message]:
    """What would be sent, had the user one thing more to say; the conversation stays as it is."""
    one = copy.deepcopy(conversation)
    one.add_text("next")
    return one.outgoing()


def _after(step: tuple[Any, ...], conversation: Conversation) -> Conversation:
    if step[0] == "reply":
        conversation.add_text("go on")
        taken = list(use_ids(conversation.messages))
        conversation.add_reply(message_of(uses(*step[2], text=step[1]), taken))
    elif step[0] == "answer":
        for use_id in conversation.open_uses[: step[1]]:
            conversation.answer(ToolResult(use_id, "result", is_error=step[1] == 1))
    elif step[0] == "say":
        conversation.add_text(step[1])
    elif step[0] == "summarize" and conversation.messages:
        conversation.replace_by_summary(step[1])
    return conversation
