"""How full a window is, and into which parts a conversation is summarized (REQ-054, REQ-055, AD-2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from system2.converse import SUMMARIZE, SUMMARIZER, WindowMeter, as_text, summary_parts, summary_prompt, tokens_of
from tests.system2.kit import Bench


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": [{"text": text}]}


def test_seven_tools_take_some_2500_tokens(tmp_path) -> None:  # type: ignore[no-untyped-def]
    tools = Bench(tmp_path).session()._toolbox.specs()
    assert len(tools) == 7
    assert 2400 <= WindowMeter(200_000).estimate("", [], tools) <= 3200
    assert WindowMeter(200_000).estimate("", [], [{"name": "a"}] * 7) == 2520


def test_a_request_is_estimated_by_its_length() -> None:
    assert WindowMeter(200_000).estimate("s" * 350, [user("u" * 3457)], []) == 100 + 1000
    assert tokens_of(["漢" * 350]) == 300


def test_the_providers_count_wins_if_larger() -> None:
    meter = WindowMeter(200_000)
    turns = [user("short")]
    meter.learn(turns, 50_000)
    assert meter.estimate("", turns, []) == 50_000
    longer = [*turns, user("u" * 3457)]
    assert meter.estimate("", longer, []) == 51_000
    meter.reset()
    assert meter.estimate("", turns, []) < 100


def test_the_thresholds_are_80_and_95_percent_and_the_warning_comes_once() -> None:
    meter = WindowMeter(100_000)
    judged = [meter.judge(tokens) for tokens in (79_999, 80_000, 80_001, 94_000, 95_000, 95_001, 80_001)]
    assert judged == ["fits", "fits", "warn", "fits", "fits", "overflow", "fits"]
    meter.reset()
    assert meter.judge(81_000) == "warn"


@given(st.lists(st.text(max_size=3000), max_size=8), st.integers(4_000, 60_000))
def test_every_part_fits_the_window_and_nothing_is_left_out(texts: list[str], window: int) -> None:
    reply = min(8192, window // 8)
    turns = [user(text) for text in texts]
    parts = summary_parts(turns, window, reply)
    assert "".join(parts) == as_text(turns)
    before = "s" * int(reply * 3.5)
    for part in parts:
        assert tokens_of([SUMMARIZER, summary_prompt(part, before)]) + reply <= window


def test_a_summary_is_requested_as_specified() -> None:
    assert summary_prompt("[user] hello", "").startswith(
        "Summarize the following conversation, preserving all file changes made, tool results, and decisions. "
        "This summary will replace the conversation history."
    )
    assert SUMMARIZE in summary_prompt("a", "b")


def test_a_conversation_is_shown_with_its_tool_uses_and_results() -> None:
    turns = [
        user("go"),
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "1", "name": "Read", "input": {"file_path": "a"}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "none"}], "status": "error"}}],
        },
    ]
    assert as_text(turns) == '[user] go\n\n[assistant] uses Read: {"file_path": "a"}\n\n[user] error: none'
