"""Every failure of Amazon Bedrock is one LLMError, after one request, through the real SDK."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from aeon_core.errors import LLMError
from aeon_core.llm.bedrock import BedrockClient, BedrockModel
from tests.aeon_core.llm.converse_server import (
    ACCESS_KEY,
    SESSION_TOKEN,
    Make,
    answered,
    ask,
    bedrock_models,
    checked,
    frame,
    no_credentials,
    refused,
    said,
    set_credentials,
    stop_frame,
    stream,
    text_frames,
    usage_frame,
)
from tests.aeon_core.llm.server import Reply, Server

READ_USAGE = {"input_tokens": 11, "output_tokens": 7}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)


@pytest.fixture
def make(server: Server) -> Iterator[Make]:
    yield from bedrock_models(server)


def failed(make: Make, server: Server, *, requests: int = 1, streamed: bool = False, **options: Any) -> LLMError:
    with pytest.raises(LLMError) as caught:
        make(**options).complete(ask(streamed))
    assert len(server.requests) == requests
    return checked(caught.value)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("code", "status", "retryable", "exit_code", "seen"),
    [
        ("ThrottlingException", 429, True, 1, 429),
        ("ThrottlingException", 400, True, 1, 429),
        ("ModelNotReadyException", 429, True, 1, 429),
        ("ServiceUnavailableException", 503, True, 1, 503),
        ("InternalServerException", 500, True, 1, 500),
        ("ModelTimeoutException", 408, True, 1, 408),
        ("ModelErrorException", 424, True, 1, 424),
        ("ValidationException", 400, False, 1, 400),
        ("ServiceQuotaExceededException", 400, False, 1, 400),
        ("AccessDeniedException", 403, False, 3, 403),
        ("UnrecognizedClientException", 403, False, 3, 403),
        ("ExpiredTokenException", 403, False, 3, 403),
        ("InvalidSignatureException", 403, False, 3, 403),
        ("IncompleteSignatureException", 400, False, 3, 400),
        ("MissingAuthenticationTokenException", 401, False, 3, 401),
        ("ResourceNotFoundException", 404, False, 3, 404),
        ("SomethingNew", 502, True, 1, 502),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_error_is_retryable_or_final_after_one_request(
    code: str, status: int, retryable: bool, exit_code: int, seen: int, streamed: bool
) -> None:
    error, requests = answered(refused(code, "said so", status), request=ask(streamed))
    assert isinstance(error, LLMError)
    assert (error.retryable, error.exit_code, error.status_code) == (retryable, exit_code, seen)
    assert "said so" in error.message
    assert "https://bedrock-runtime.eu-west-1.amazonaws.com" in error.message
    assert len(requests) == 1


@pytest.mark.parametrize("when", ["expired: 20260101T000000Z is now earlier than", "not yet current: 20260101T000000Z"])
def test_a_wrong_clock_is_not_blamed_on_the_credentials(make: Make, server: Server, when: str) -> None:
    server.script(refused("InvalidSignatureException", f"Signature {when} 20260101T010000Z", 403))
    assert failed(make, server).message.endswith("; set this machine's clock")


@pytest.mark.parametrize(
    ("code", "status", "reason", "what", "remedy"),
    [
        (
            "AccessDeniedException",
            403,
            "Authentication failed: Please make sure your API Key is valid.",
            "rejected the AWS credentials (403)",
            "or run `aws sso login`",
        ),
        (
            "AccessDeniedException",
            403,
            "Bearer Token has expired",
            "rejected the AWS credentials (403)",
            "or run `aws sso login`",
        ),
        (
            "ResourceNotFoundException",
            404,
            "Model use case details have not been submitted for this account.",
            "refused access (404)",
            "and access to the model, for these credentials",
        ),
    ],
)
def test_a_refusal_means_what_its_message_says(
    make: Make, server: Server, code: str, status: int, reason: str, what: str, remedy: str
) -> None:
    server.script(refused(code, reason, status))
    error = failed(make, server)
    assert (error.retryable, error.exit_code) == (False, 3)
    assert f" {what}: {code}: {reason}" in error.message
    assert error.message.endswith(remedy)


def test_the_longest_names_and_reasons_leave_room_for_what_to_do(make: Make, server: Server) -> None:
    server.script(refused("ResourceNotFoundException", "no such profile " * 20, 404))
    arn = "arn:aws-us-gov:bedrock:us-gov-west-1:111122223333:application-inference-profile/abcdef123456"
    error = failed(make, server, name=arn, base_url=f"{server.url}/{'long/' * 30}")
    assert error.message.endswith("; use a model id, or an inference profile such as us.anthropic.…")


def test_for_a_model_that_is_not_ready_the_console_is_named() -> None:
    error, _ = answered(refused("ModelNotReadyException", "The model is not ready for inference.", 429))
    assert "not ready for inference.; if this lasts, check the access to the model in the Bedrock console" in str(error)


@pytest.mark.parametrize(
    ("told", "exit_code", "too_long", "shown"),
    [
        ("Input is too long for requested model.", 1, True, "too long"),
        ("prompt is too long: 215000 tokens > 200000 maximum", 1, True, "215000 tokens > 200000 maximum"),
        ("Too many input tokens. Max input tokens: 8192", 1, True, "too long"),
        ("The maximum tokens you requested exceeds the model limit of 4096", 1, None, "exceeds the model limit"),
        ("The provided model identifier is invalid.", 3, None, "inference profile"),
        ("Invocation of model ID m with on-demand throughput isn’t supported.", 3, None, "inference profile"),
    ],
    ids=["input", "prompt", "tokens", "output-limit", "no-model", "on-demand"],
)
def test_a_refused_request_is_too_long_or_for_an_unknown_model(
    told: str, exit_code: int, too_long: bool | None, shown: str
) -> None:
    error, _ = answered(refused("ValidationException", told))
    assert isinstance(error, LLMError)
    assert (error.retryable, error.exit_code, error.context.get("context_too_long")) == (False, exit_code, too_long)
    assert shown in error.message


def test_a_requested_wait_is_read_in_seconds_and_as_a_date(now: float) -> None:
    waits = []
    for wait in ("7", "3600", formatdate(now + 30, usegmt=True)):
        error, _ = answered(refused("ThrottlingException", "slow", 429, retry_after=wait))
        assert isinstance(error, LLMError)
        waits.append(error.retry_after)
    assert waits == [7.0, 60.0, 30.0]


def test_no_secret_that_an_error_quotes_is_shown() -> None:
    quoted = f"token {SESSION_TOKEN} key {ACCESS_KEY} Signature=abcdef01 The Canonical String for this request: x"
    for code in ("InvalidSignatureException", "ValidationException", "ThrottlingException"):
        error, requests = answered(refused(code, quoted, 403 if code.startswith("Inv") else 400))
        assert isinstance(error, LLMError)
        assert "[redacted]" in error.message
        assert "abcdef01" not in error.message
        assert len(requests) == 1


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("<!doctype html><p>Welcome", content_type="text/html"), "HTML page; is the base URL right|'text/html'"),
        (Reply('{"output": {"message"'), "not JSON|expected"),
        (Reply(b"\xff\xfe\x00"), "not JSON|expected"),
        (Reply("[" * 100_000), "not JSON|expected"),
        (Reply(""), "is empty|expected"),
        (Reply({}), "there is no 'output'|expected"),
    ],
    ids=["page", "cut", "bytes", "deep", "empty", "nothing"],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_invalid_response_body_is_retryable(
    make: Make, server: Server, reply: Reply, told: str, streamed: bool
) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed)
    assert error.retryable
    assert re.search(told, error.message)


@pytest.mark.parametrize("output", ["text", {"message": 5}])
def test_a_reply_that_the_sdk_cannot_read_keeps_its_usage(output: Any) -> None:
    error, _ = answered(Reply({"output": output, "usage": {"inputTokens": 3, "outputTokens": 4}}))
    assert isinstance(error, LLMError)
    assert (error.retryable, error.usage) == (True, {"input_tokens": 3, "output_tokens": 4})


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_reset_in_the_middle_of_a_body_may_be_retried(make: Make, server: Server, streamed: bool) -> None:
    server.script(stream(*text_frames("he"), reset=True) if streamed else Reply('{"output"', reset=True))
    assert failed(make, server, streamed=streamed).retryable


@pytest.mark.exhaustive
@pytest.mark.parametrize("reply", [Reply(hang=True), stream(*text_frames("he"), hang_after=True)], ids=["none", "half"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_silent_server_is_awaited_until_the_timeout(make: Make, server: Server, reply: Reply, streamed: bool) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed, timeout=0.3)
    assert error.retryable
    assert "within 0.3 s" in error.message


def test_a_stale_body_is_not_mistaken_for_the_reply(make: Make, server: Server) -> None:
    server.script(said(), Reply(hang=True))
    client = BedrockClient(endpoint_url=server.url, timeout=0.3)
    client.connect().converse(modelId="m", messages=[{"role": "user", "content": [{"text": "hi"}]}])
    error = failed(make, server, requests=2, client=client)
    assert "within 0.3 s" in error.message


def broken(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        ([], "ended before its end event"),
        (text_frames("he"), "ended before its end event"),
        ([usage_frame(), broken(stop_frame())], "cannot use the reply of"),
        ([usage_frame(), stop_frame()[:-3]], "ended before its end event"),
        ([usage_frame(), frame("contentBlockDelta", b'{"cut')], "cannot use the reply of"),
        (
            [usage_frame(), frame("throttlingException", {"message": "slow"}, "exception")],
            r"\(429\): \w+: slow",
        ),
        ([usage_frame(), frame("modelStreamErrorException", {"message": "m"}, "exception")], r"\(424\)"),
        ([usage_frame(), frame("serviceUnavailableException", {"message": "m"}, "exception")], r"\(503\)"),
        ([usage_frame(), frame("internalServerException", {"message": "m"}, "exception")], r"\(500\)"),
    ],
    ids=["none", "no-end", "checksum", "half", "json", "throttled", "model", "unavailable", "internal"],
)
def test_a_stream_that_breaks_off_may_be_retried_and_keeps_its_usage(
    make: Make, server: Server, frames: list[bytes], told: str
) -> None:
    server.script(stream(*frames))
    error = failed(make, server, streamed=True)
    assert error.retryable
    assert re.search(told, error.message)
    assert error.usage == (READ_USAGE if usage_frame() in frames else None)


def test_redacted_thinking_in_a_stream_is_left_out(make: Make, server: Server) -> None:
    thoughts = ({"text": "hm"}, {"signature": "s"}, {"redactedContent": "eHg="})
    deltas = [{"contentBlockIndex": 0, "delta": {"reasoningContent": thought}} for thought in thoughts]
    frames = [frame("contentBlockDelta", delta) for delta in deltas]
    server.script(stream(*frames, *text_frames("ok", index=1), stop_frame(), usage_frame()))
    reply = make().complete(ask(streamed=True))
    assert (reply.text, reply.usage) == ("ok", READ_USAGE)


def test_an_invalid_request_found_in_the_stream_is_final(make: Make, server: Server) -> None:
    server.script(stream(frame("validationException", {"message": "Input is too long"}, "exception")))
    error = failed(make, server, streamed=True)
    assert (error.retryable, error.context["context_too_long"]) == (False, True)


def test_a_stream_that_breaks_after_its_reply_is_complete(make: Make, server: Server) -> None:
    server.script(stream(*text_frames("ok"), usage_frame(), stop_frame(), broken(usage_frame())))
    reply = make().complete(ask(streamed=True))
    assert (reply.text, reply.usage) == ("ok", READ_USAGE)


def test_an_unreachable_server_is_named_without_its_credentials(make: Make, server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = failed(make, server, requests=0, base_url=f"http://me:hunter2@127.0.0.1:{port}")
    assert error.retryable
    assert f"cannot reach http://127.0.0.1:{port}: " in error.message
    assert "Connection refused" in error.message
    assert "hunter2" not in error.message


def test_missing_credentials_are_a_final_error_of_the_call_before_any_request(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = failed(make, server, requests=0)
    assert (error.retryable, error.exit_code) == (False, 3)
    assert "no AWS credentials" in error.message
    assert "AWS_PROFILE" in error.message


def test_a_token_over_two_lines_is_a_final_error_that_does_not_quote_it(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    lines = ["[default]", f"aws_access_key_id = {ACCESS_KEY}", f"aws_secret_access_key = {'s' * 40}"]
    lines += ["aws_session_token = firsthalfofthetoken", "  secondhalfofthetoken"]
    (tmp_path / "aws-credentials").write_text("\n".join(lines), encoding="utf-8")
    error = failed(make, server, requests=0)
    assert (error.retryable, error.exit_code) == (False, 3)
    assert "such as a line break; set them again" in error.message
    assert "halfofthetoken" not in error.message


@pytest.mark.parametrize(
    "fields", [{"max_tokens": 0}, {"messages": [{"role": "user", "content": object()}]}, {"tools": [{}]}]
)
def test_a_request_that_cannot_be_sent_is_a_final_error(make: Make, server: Server, fields: dict[str, Any]) -> None:
    with pytest.raises(LLMError) as caught:
        make().complete(ask(**fields))
    assert not checked(caught.value).retryable
    assert server.requests == []


def test_an_unreachable_aws_address_hints_at_a_wrong_region() -> None:
    error = EndpointConnectionError(endpoint_url="https://bedrock-runtime.us-esat-1.amazonaws.com")
    assert BedrockModel("m")._failure(error, None).message.endswith("; check the network and the region")
