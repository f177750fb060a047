"""A streamed Converse reply put together from its events, and the service's errors as one line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import LLMError
from aeon_core.escape import escape_controls
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.llm.bedrock import ConverseReader, bedrock_failure, scrubbed
from aeon_core.llm.connect import PLACEHOLDER_KEY, Endpoint
from aeon_core.llm.errors import MAX_MESSAGE
from aeon_core.llm.wire import ToolNames

NOBODY = LLMRequest("answer", "", [])
PLACE = Endpoint("bedrock", "m", "https://bedrock.example", None, "AWS_PROFILE", PLACEHOLDER_KEY)


def events(*parts: dict[str, Any]) -> LLMResponse:
    return ConverseReader(PLACE, NOBODY, ToolNames([])).stream(parts)


def start(index: Any, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": block}}


def delta(index: Any, **change: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": change}}


STOP = {"messageStop": {"stopReason": "end_turn"}}
USED = {"metadata": {"usage": {"inputTokens": 3, "outputTokens": 4}}}


def test_a_stream_becomes_the_unstreamed_document() -> None:
    read = events(
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0}},
        delta(0, reasoningContent={"text": "hm"}),
        delta(2, text="b"),
        delta(1, text="a"),
        delta(1, text="a"),
        start(3, toolUse={"toolUseId": "t", "name": "n"}),
        delta(3, toolUse={"input": '{"x"'}),
        delta(3, toolUse={"input": ":1}"}),
        {"SDK_UNKNOWN_MEMBER": {"name": "new"}},
        STOP,
        USED,
    )
    assert (read.text, read.stop_reason) == ("aab", "end")
    assert read.tool_calls == [{"id": "t", "name": "n", "arguments": {"x": 1}}]
    assert read.usage == {"input_tokens": 3, "output_tokens": 4}


@pytest.mark.parametrize(
    "part",
    [
        delta(None, text="a"),
        delta(0, text=5),
        delta(0, toolUse={"input": "no block"}),
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": "text"}},
        {"contentBlockDelta": "text"},
        {"messageStop": {}},
    ],
)
def test_a_malformed_stream_is_an_error_that_keeps_its_usage(part: dict[str, Any]) -> None:
    with pytest.raises(LLMError) as caught:
        events(USED, part)
    assert caught.value.retryable
    assert caught.value.usage == {"input_tokens": 3, "output_tokens": 4}


def test_quotes_in_a_signature_error_are_left_out() -> None:
    quoted = "wrong signature.\n\nThe Canonical String for this request should have been\nx-amz-security-token:tok-1"
    assert scrubbed(quoted) == "wrong signature.\n\n…"
    told = "Credential=AKIDX/2026, Signature=00ff00, x-amz-security-token:tok-2 hunter2x"
    assert not any(part in scrubbed(told, ["hunter2x"]) for part in ("AKIDX", "00ff00", "tok-2", "hunter2x"))


@given(st.text(), st.text(max_size=30), st.none() | st.integers(300, 599), st.text(max_size=20))
def test_any_error_of_the_service_becomes_one_short_line(told: str, code: str, status: int | None, name: str) -> None:
    error = Exception(told)
    error.response = {"Error": {"Code": code, "Message": told}, "ResponseMetadata": {"HTTPStatusCode": status}}  # type: ignore[attr-defined]
    place = Endpoint("bedrock", name, "https://bedrock.example", None, "AWS_PROFILE", PLACEHOLDER_KEY)
    failed = bedrock_failure(error, place)
    assert escape_controls(failed.message) == failed.message
    assert len(failed.message) <= MAX_MESSAGE


def test_credentials_that_cannot_be_renewed_during_a_call_end_it_with_exit_3() -> None:
    from botocore.exceptions import TokenRetrievalError

    failed = bedrock_failure(TokenRetrievalError(provider="sso", error_msg="Token has expired"), PLACE)
    assert (failed.retryable, failed.exit_code) == (False, 3)
    assert "Token has expired" in failed.message
    assert "`aws sso login`" in failed.message


@pytest.mark.parametrize("error", [ConnectionResetError("reset by peer"), BrokenPipeError("broken")])
def test_a_connection_that_breaks_is_reported_and_keeps_its_usage(error: Exception) -> None:
    failed = bedrock_failure(error, PLACE, (), {"input_tokens": 3, "output_tokens": 4})
    assert failed.retryable
    assert "the connection to https://bedrock.example broke before the reply was complete" in failed.message
    assert failed.usage == {"input_tokens": 3, "output_tokens": 4}


@pytest.mark.parametrize(
    ("code", "shown"), [("301", "(301): moved"), ("Slow", "(301): Slow: moved"), ("", "(301): moved")]
)
def test_a_service_error_without_a_code_is_quoted_without_one(code: str, shown: str) -> None:
    error = Exception()
    error.response = {  # type: ignore[attr-defined]
        "Error": {"Code": code, "Message": "moved"},
        "ResponseMetadata": {"HTTPStatusCode": 301},
    }
    assert bedrock_failure(error, PLACE).message.endswith(shown)
