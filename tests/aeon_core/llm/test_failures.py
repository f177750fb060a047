"""Every failure of a provider is one LLMError, after one request, through both SDKs."""

from __future__ import annotations

import queue
import re
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import LLMError
from aeon_core.escape import escape_controls
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.connect import Endpoint
from aeon_core.llm.errors import (
    MAX_MESSAGE,
    is_connection_refused,
    is_too_long,
    reason_of,
    retry_after,
    status_failure,
    transport_failure,
)
from tests.aeon_core.llm.conftest import KEY, Make
from tests.aeon_core.llm.server import Reply, Server
from tests.cpu_limit import cpu_limit
from tests.waiting import PATIENCE

WHOLE = {
    "openai": {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]},
    "anthropic": {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"},
}


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(provider: str, request: pytest.FixtureRequest) -> Iterator[Make]:
    return request.getfixturevalue(f"{provider}_model")  # type: ignore[no-any-return]


def ask(**fields: Any) -> LLMRequest:
    return LLMRequest(purpose="answer", system="s", messages=[{"role": "user", "content": "hi"}], **fields)


def failed(make: Make, server: Server, *, requests: int = 1, streamed: bool = False, **options: Any) -> LLMError:
    """Return the error of one call, and see that it is one line without the key, after so many requests."""
    with pytest.raises(LLMError) as caught:
        make(**options).complete(ask(on_delta=(lambda _: None) if streamed else None))
    error = caught.value
    assert len(server.requests) == requests
    assert "\n" not in error.message
    assert KEY not in error.message
    assert len(error.message) <= MAX_MESSAGE
    assert error.__cause__ is None
    return error


@pytest.mark.parametrize("streamed", [False, True])
def test_the_query_of_a_base_url_follows_the_path(provider: str, make: Make, server: Server, streamed: bool) -> None:
    path = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[provider]
    base = f"{server.url}{path[:3] if provider == 'openai' else ''}?api-version=2024-10-21&route="
    failed(make, server, streamed=streamed, base_url=base)
    assert server.requests[0].path == f"{path}?api-version=2024-10-21&route="


@pytest.mark.exhaustive
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("status", "retryable", "exit_code"),
    [
        (400, False, 1),
        (401, False, 3),
        (403, False, 3),
        (404, False, 3),
        (413, False, 1),
        (422, False, 1),
        (408, True, 1),
        (429, True, 1),
        (500, True, 1),
        (502, True, 1),
        (503, True, 1),
        (529, True, 1),
    ],
)
def test_a_status_is_retryable_or_final_after_one_request(
    make: Make, server: Server, status: int, retryable: bool, exit_code: int, streamed: bool
) -> None:
    server.script(Reply({"error": {"message": "said so", "type": "x"}}, status=status))
    error = failed(make, server, streamed=streamed)
    assert (error.status_code, error.retryable, error.exit_code) == (status, retryable, exit_code)
    assert f"({status})" in error.message
    assert "said so" in error.message
    assert server.url in error.message


def test_a_refused_key_names_its_variable_and_is_not_shown(provider: str, make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": f"Incorrect key {KEY}"}}, status=401))
    error = failed(make, server)
    assert f"set a valid key in {provider.upper()}_API_KEY" in error.message
    assert "[redacted]" in error.message


def test_a_key_of_no_known_form_is_not_shown_either(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    from aeon_core.llm.openai import OpenAIModel

    monkeypatch.setenv("OPENAI_API_KEY", "hunter2-hunter2")
    server.script(Reply("x" * 130 + " hunter2-hunter2", status=401))
    model = OpenAIModel("m", base_url=server.url)
    with pytest.raises(LLMError) as caught:
        model.complete(ask())
    model.close()
    assert "hunter" not in caught.value.message


def test_an_unknown_model_is_named(make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "not found"}}, status=404))
    error = failed(make, server, name="gpt-\x1b[31m")
    assert "the model name 'gpt-" in error.message
    assert "is unknown at http://127.0.0.1" in error.message
    assert "\x1b" not in error.message


@pytest.mark.parametrize(
    ("url", "told"), [("http://me:11434", ", which ends with /v1 at most servers"), ("http://me/v1", "")]
)
def test_an_address_without_a_path_is_suspected_when_nothing_is_found(url: str, told: str) -> None:
    error = status_failure(404, "404 page not found", Endpoint("openai", "m", "", url, "OPENAI_API_KEY", KEY))
    assert error.message.endswith(f"404 page not found; check the name and the base URL{told}")


def test_a_503_or_refused_connection_may_be_a_starting_server(make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "loading the model"}}, status=503, headers={"retry-after": "3"}))
    loading = failed(make, server)
    assert (loading.context.get("unavailable"), loading.retry_after) == (True, 3.0)
    server.script(Reply({"error": {"message": "overloaded"}}, status=529))
    assert "unavailable" not in failed(make, server, requests=2).context
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    refused = failed(make, server, requests=2, base_url=f"http://127.0.0.1:{port}/v1")
    assert (refused.retryable, refused.context.get("unavailable"), refused.context.get("unsent")) == (True, True, True)
    assert "is the server running" in refused.message


def test_the_reason_of_a_failure_is_its_innermost_message() -> None:
    assert reason_of(ValueError("no reply")) == "no reply"
    assert reason_of(ConnectionError("Connection aborted.", OSError("no route to host"))) == "no route to host"
    assert reason_of(TimeoutError()) == "TimeoutError"


def test_other_failures_are_not_a_starting_server() -> None:
    unknown = OSError("connection failed")
    unknown.__cause__ = socket.gaierror(-2, "Name or service not known")
    assert is_connection_refused(unknown) is None
    circle = OSError("a")
    circle.__context__ = OSError("b")
    circle.__context__.__context__ = circle
    assert is_connection_refused(circle) is None


NO_MODEL = "is unknown at http://127.0.0.1"
NO_KEY = "rejected the key (400)"
NO_CREDIT = "has no credit left for the key in OPENAI_API_KEY"
LITELLM = "/chat/completions: Invalid model name passed in model=m1. Call `/v1/models` to view available models."
REFUSALS = {
    "litellm": ({"error": {"message": LITELLM, "type": "None", "param": "None", "code": "400"}}, NO_MODEL),
    "litellm-dict": ({"error": {"message": {"error": LITELLM}, "type": "None", "param": "None"}}, NO_MODEL),
    "litellm-sdk": (
        {"error": {"message": "litellm.BadRequestError: There is no 'model_name' with this string", "code": "400"}},
        NO_MODEL,
    ),
    "openrouter": ({"error": {"message": "m1 is not a valid model ID", "code": 400}, "user_id": "u"}, NO_MODEL),
    "deepseek": ({"error": {"message": "Model Not Exist", "type": "invalid_request_error", "param": None}}, NO_MODEL),
    "mistral": (
        {"object": "error", "message": "Invalid model: m1", "type": "invalid_model", "param": None, "code": "1500"},
        NO_MODEL,
    ),
    "hugging-face": (
        {"error": {"message": "The requested model 'm1' does not exist", "code": "model_not_found", "param": "model"}},
        NO_MODEL,
    ),
    "openai": ({"error": {"message": "invalid model ID", "type": "invalid_request_error", "param": None}}, NO_MODEL),
    "ollama": ({"error": {"message": 'model "m1" not found, try pulling it first', "type": "api_error"}}, NO_MODEL),
    "litellm-key": (
        {"error": {"message": "Authentication Error, No api key passed in.", "type": "auth_error", "code": "400"}},
        NO_KEY,
    ),
    "xai-key": ({"code": "invalid argument", "error": "Incorrect API key provided: xx***xx."}, NO_KEY),
    "google-key": (
        [
            {
                "error": {
                    "code": 400,
                    "message": "API key not valid. Please pass a valid API key.",
                    "status": "INVALID_ARGUMENT",
                    "details": [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
                }
            }
        ],
        NO_KEY,
    ),
    "litellm-budget": (
        {"error": {"message": "Budget has been exceeded!", "type": "budget_exceeded", "code": "400"}},
        NO_CREDIT,
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_proxys_400_for_an_unknown_model_or_key_means_unusable(
    openai_model: Make, server: Server, name: str, streamed: bool
) -> None:
    body, said = REFUSALS[name]
    server.script(Reply(body, status=400))
    error = failed(openai_model, server, streamed=streamed)
    assert (error.retryable, error.exit_code, error.status_code) == (False, 3, 400)
    assert said in error.message


FIELDS = [
    (404, {"code": "model_not_found"}),
    (404, {"type": "Invalid_Model"}),
    (404, {"code": "model_decommissioned"}),
    (404, {"code": "invalid_value", "param": "model"}),
    (401, {"code": "invalid_api_key"}),
    (401, {"details": ["x", {"reason": "API_KEY_INVALID"}]}),
    (401, {"type": "no_db_connection"}),
    (402, {"type": "billing_error"}),
    (402, {"type": "billing_error", "param": "model"}),
    (400, {"code": "invalid_value", "param": "seed"}),
]


@pytest.mark.parametrize(("meaning", "fields"), FIELDS)
def test_the_fields_of_a_400_say_what_it_means_whatever_its_words(meaning: int, fields: dict[str, Any]) -> None:
    place = Endpoint("openai", "m", "https://example.com/v1", None, "OPENAI_API_KEY", KEY)
    error = status_failure(400, {"error": {"message": "Nein.", **fields}}, place)
    said = {400: "refused the request (400)", 401: NO_KEY, 402: NO_CREDIT, 404: "is unknown at"}[meaning]
    assert said in error.message
    assert (error.retryable, error.exit_code) == (False, 1 if meaning == 400 else 3)


def test_a_redirect_to_nowhere_is_a_refusal() -> None:
    place = Endpoint("openai", "m", "https://example.com/v1", None, "OPENAI_API_KEY", KEY)
    assert status_failure(304, "", place, {}).message.endswith("refused the request (304)")


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "messages: at least one message is required", "type": "invalid_request_error"}},
        {"error": {"message": "temperature is too high for m1", "param": "temperature", "code": "invalid_value"}},
        {"error": {"message": "the tool 'notes' was not found in tools", "param": "tool_choice"}},
        "a page",
        ["a", "list"],
        {"error": {"code": ["model_not_found"], "details": ["x", 1]}},
    ],
)
def test_any_other_400_is_a_request_error(openai_model: Make, server: Server, body: Any) -> None:
    server.script(Reply(body, status=400))
    error = failed(openai_model, server)
    assert (error.retryable, error.exit_code) == (False, 1)


@pytest.mark.parametrize(
    ("status", "word"),
    [(429, "insufficient_quota"), (429, "billing_hard_limit_reached"), (402, "whatever"), (403, "insufficient_quota")],
)
@pytest.mark.parametrize("field", ["code", "type"])
def test_an_account_without_credit_fails_at_once(
    openai_model: Make, server: Server, status: int, word: str, field: str
) -> None:
    body = {"error": {"message": "You exceeded your current quota, please check your plan.", field: word}}
    server.script(Reply(body, status=status, headers={"retry-after": "20"}))
    error = failed(openai_model, server)
    assert (error.retryable, error.retry_after, error.exit_code) == (False, None, 3)
    assert f"{NO_CREDIT} ({status})" in error.message
    assert "add credit there, or use another model" in error.message


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (429, {"error": {"message": "Your account is suspended", "type": "exceeded_current_quota_error"}}),
        (429, {"error": {"message": "Insufficient balance or no resource package. Please recharge.", "code": "1113"}}),
        (429, {"code": "Some resource has been exhausted", "error": "Your team has either used all available credits"}),
        (403, {"code": "No permission", "error": "Your team has either used all available credits or reached"}),
    ],
    ids=["moonshot", "z.ai", "xai", "xai-403"],
)
def test_a_provider_that_says_in_its_own_way_that_no_credit_is_left_is_not_asked_again(
    openai_model: Make, server: Server, status: int, body: Any
) -> None:
    server.script(Reply(body, status=status))
    error = failed(openai_model, server)
    assert (error.retryable, error.exit_code) == (False, 3)
    assert f"{NO_CREDIT} ({status})" in error.message


@pytest.mark.parametrize("streamed", [False, True])
def test_anthropics_400_for_an_account_without_credit_means_unusable(
    anthropic_model: Make, server: Server, streamed: bool
) -> None:
    said = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
    server.script(Reply({"error": {"type": "invalid_request_error", "message": said}}, status=400))
    error = failed(anthropic_model, server, streamed=streamed)
    assert (error.retryable, error.exit_code, error.status_code) == (False, 3, 400)
    assert "has no credit left for the key in ANTHROPIC_API_KEY (400): Your credit balance" in error.message


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "3600"}, 60.0),
        ({"retry-after": "1e999"}, 60.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "2, 7"}, 7.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 60.0),
        ({"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 99 Foo 9999999999 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({}, None),
    ],
)
def test_a_requested_wait_is_read_and_capped(
    make: Make, server: Server, headers: dict[str, str], expected: float | None
) -> None:
    server.script(Reply({"error": {"message": "slow"}}, status=429, headers=headers))
    assert failed(make, server).retry_after == expected


def test_a_wait_until_a_date_is_the_remaining_time(now: float) -> None:
    assert retry_after({"retry-after": formatdate(now + 30, usegmt=True)}) == 30


def test_googles_wait_is_read_from_its_error(openai_model: Make, server: Server) -> None:
    details = ["x", {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "27.5s"}]
    body = [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED", "details": details}}]
    server.script(Reply(body, status=429), Reply(body, status=429, headers={"retry-after": "3"}))
    assert failed(openai_model, server).retry_after == 27.5
    assert failed(openai_model, server, requests=2).retry_after == 3.0


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed"])
def test_groqs_refusal_of_what_the_model_wrote_may_be_retried(openai_model: Make, server: Server, code: str) -> None:
    message = "Tool choice is required, and the JSON does not match the expected schema. See 'failed_generation'."
    server.script(Reply({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status=400))
    tool = {"name": "add", "description": "", "input_schema": {"type": "object", "properties": {}}}
    with pytest.raises(LLMError, match=r"failed \(400\): Tool choice") as caught:
        openai_model().complete(replace(ask(tools=[tool], schema={"type": "object"}), purpose="tool_call"))
    assert (caught.value.retryable, len(server.requests)) == (True, 1)


@pytest.mark.parametrize(
    "why", ["No endpoints found that support image input", "No endpoints found matching your data policy"]
)
def test_openrouters_404_for_what_is_requested_does_not_call_the_model_unknown(
    openai_model: Make, server: Server, why: str
) -> None:
    server.script(Reply({"error": {"message": why, "code": 404}}, status=404))
    error = failed(openai_model, server)
    assert error.message.endswith(f"{server.url}/v1 refused the request (404): {why} (404)")
    assert (error.retryable, error.exit_code) == (False, 3)


def test_a_reply_without_choices_is_not_blamed_on_the_address(openai_model: Make, server: Server) -> None:
    server.script(Reply({"choices": []}), Reply({"answer": "hi"}))
    assert failed(openai_model, server).message.endswith("of a reply (a list in it is empty)")
    assert failed(openai_model, server, requests=2).message.endswith("; is the base URL right?")


MESSAGES = {
    "openrouter": (
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "no such option"}}},
        "(400): Provider returned error: no such option (400)",
    ),
    "mistral": (
        {"object": "error", "message": {"detail": [{"loc": ["body", "n"], "msg": "Extra inputs"}]}, "type": "x"},
        "(400): body.n: Extra inputs",
    ),
    "cloudflare": ({"success": False, "errors": [{"code": 7003, "message": "no route"}]}, "(400): no route"),
    "api-gateway": ({"Message": "not authorized"}, "(400): {'Message': 'not authorized'}"),
    "empty": ({}, "(400)"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_reason_is_found_wherever_a_server_puts_it(openai_model: Make, server: Server, name: str) -> None:
    body, said = MESSAGES[name]
    server.script(Reply(body, status=400))
    assert failed(openai_model, server).message.endswith(f"refused the request {said}")


def test_a_long_error_is_searched_quickly() -> None:
    with cpu_limit(5):
        assert not is_too_long(400, "input tokens count " * 10_000)


def test_a_deeply_nested_error_is_one_line(openai_model: Make, server: Server) -> None:
    server.script(Reply('{"error":' + '{"message":' * 900 + "1" + "}" * 901, status=400))
    assert "refused the request (400)" in failed(openai_model, server).message


def test_a_final_error_has_no_wait(make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "no"}}, status=400, headers={"retry-after": "7"}))
    assert failed(make, server).retry_after is None


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("<!doctype html><p>Welcome", content_type="text/html"), "an HTML page; is the base URL right"),
        (Reply("<html>", content_type="application/json"), "an HTML page"),
        (Reply('{"choices": [', content_type="application/json"), "not JSON"),
        (Reply(b"\xff\xfe\x00\x00\xff", content_type="application/json"), "not JSON"),
        (Reply("[" * 100_000, content_type="application/json"), "not JSON"),
        (Reply('{"a": NaN}', content_type="application/json"), "not JSON"),
        (Reply("", content_type="application/json"), "is empty"),
        (Reply([]), "it does not have the form of a reply \\(it is not a JSON object\\)"),
        (
            Reply({"choices": [], "content": [[]]}),
            "of a reply \\((?:a list in it is empty|a part of it has another type)\\)",
        ),
        (Reply({"choices": None, "content": 5}), "of a reply \\(a part of it has another type\\)"),
        (Reply("The model is loading.", content_type="text/plain"), "not JSON"),
        (Reply("gz", headers={"content-encoding": "gzip"}), "before the reply was complete|cannot use"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_an_invalid_response_body_is_a_retryable_error(
    make: Make, server: Server, reply: Reply, told: str, streamed: bool
) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed)
    assert error.retryable
    assert re.search(told, error.message)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream", ""])
def test_an_unstreamed_reply_is_read_for_any_content_type(provider: str, make: Make, server: Server, kind: str) -> None:
    server.script(Reply(WHOLE[provider], content_type=kind))
    assert make().complete(ask(on_delta=lambda _: None)).text == "ok"


def test_a_stream_is_read_for_any_content_type(openai_model: Make, server: Server) -> None:
    events = 'data: {"choices": [{"delta": {"content": "ok"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    server.script(Reply(events, content_type="text/plain"))
    assert openai_model().complete(ask(on_delta=lambda _: None)).text == "ok"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ([{"error": {"message": "this field is unknown", "code": 400}}], "refused the request (400): this field is"),
        ("", "refused the request (400)"),
        ({"error": None}, "refused the request (400)"),
        ({"error": True, "message": "this field is unknown"}, "refused the request (400): this field is"),
    ],
)
def test_a_list_of_errors_and_an_empty_body_are_read(make: Make, server: Server, body: Any, told: str) -> None:
    server.script(Reply(body, status=400))
    message = failed(make, server).message
    assert told in message
    assert "Error code" not in message
    assert "None" not in message


@pytest.mark.parametrize("streamed", [False, True])
def test_an_empty_stream_is_a_retryable_error(make: Make, server: Server, streamed: bool) -> None:
    server.script(Reply("", content_type="text/event-stream"))
    assert failed(make, server, streamed=streamed).retryable


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_reset_in_the_middle_of_a_body_may_be_retried(make: Make, server: Server, streamed: bool) -> None:
    server.script(Reply('{"choices"', reset=True))
    error = failed(make, server, streamed=streamed)
    assert error.retryable
    assert "broke before the reply was complete" in error.message


@pytest.mark.exhaustive
@pytest.mark.parametrize("reply", [Reply(hang=True), Reply('{"a"', hang_after=True)])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_silent_server_is_awaited_until_the_timeout(make: Make, server: Server, reply: Reply, streamed: bool) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed, timeout=0.2)
    assert error.retryable
    assert "within 0.2 s; a slow model may need a longer timeout" in error.message


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply('{"a"', hang_after=True)])
def test_replies_are_streamed_after_one_that_took_longer_than_the_timeout(
    make: Make, server: Server, reply: Reply
) -> None:
    model = make(timeout=0.2)
    server.script(reply, *[Reply(hang=True)] * 2)
    for purpose in ("answer", "judge", "answer"):
        with pytest.raises(LLMError, match="within"):
            model.complete(replace(ask(), purpose=purpose))
    assert [request.body.get("stream") for request in server.requests] == [None, True, True]


def test_an_unreachable_server_is_named_without_its_credentials(make: Make, server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        url = f"http://me:hunter2@127.0.0.1:{port}/v1?token=secret"
        error = failed(make, server, requests=0, base_url=url)
    assert error.retryable
    assert f"cannot reach http://127.0.0.1:{port}/v1" in error.message
    assert error.context["unsent"] is True
    assert "hunter2" not in error.message
    assert "secret" not in error.message


@pytest.mark.parametrize("code", [503, "503"])
def test_an_error_under_the_status_200_is_judged_by_its_code(code: int | str, make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "busy", "code": code}}))
    error = failed(make, server)
    assert (error.status_code, error.retryable) == (503, True)


TOO_LONG = {"error": {"message": "maximum context length is 8192 tokens, you sent 9000"}}


def test_a_request_that_is_too_long_is_final_and_quotes_the_server(make: Make, server: Server) -> None:
    quoted = r"\b8192 tokens, you sent 9000; "
    server.script(Reply(TOO_LONG, status=400))
    refused = failed(make, server)
    assert re.search(rf"^\S+: the request is too long for the model at \S+ \(400\): .*{quoted}", refused.message)
    server.script(Reply(TOO_LONG))
    reported = failed(make, server, requests=2)
    assert re.search(rf"^\S+: the request is too long for the model at [^ ()]+: .*{quoted}", reported.message)
    for error in (refused, reported):
        assert (error.retryable, error.context["context_too_long"]) == (False, True)


def test_after_a_failure_the_next_call_works(provider: str, make: Make, server: Server) -> None:
    server.script(Reply('{"choices"', reset=True), Reply({}, status=500), Reply(WHOLE[provider]))
    model = make()
    for _ in range(2):
        with pytest.raises(LLMError):
            model.complete(ask())
    assert model.complete(ask()).text == "ok"
    assert len(server.requests) == 3


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply('{"a"', hang_after=True)])
@pytest.mark.parametrize("streamed", [False, True])
def test_closing_cuts_a_call_in_flight_from_another_thread(
    make: Make, server: Server, reply: Reply, streamed: bool
) -> None:
    server.script(reply)
    model = make(timeout=3_600.0)
    errors: queue.Queue[BaseException] = queue.Queue()

    def call() -> None:
        try:
            model.complete(ask(on_delta=(lambda _: None) if streamed else None))
        except BaseException as error:
            errors.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert server.arrived.acquire(timeout=PATIENCE)
    model.close()
    error = errors.get(timeout=PATIENCE)
    thread.join()
    assert isinstance(error, LLMError)
    assert not error.retryable
    assert "the adapter was closed" in error.message


def test_an_adapter_works_again_after_it_was_closed(provider: str, make: Make, server: Server) -> None:
    server.script(Reply(WHOLE[provider]), Reply(WHOLE[provider]))
    model = make()
    model.complete(ask())
    model.close()
    model.close()
    assert model.complete(ask()).text == "ok"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("nonsense://x", "cannot set up the connection: .*; check the variables for certificates and proxies"),
        ("socks5://127.0.0.1:9", "a package is missing: socksio, which a SOCKS proxy needs; install it"),
    ],
)
def test_a_broken_proxy_setting_is_a_final_error_that_names_it(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch, value: str, told: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", value)
    monkeypatch.setitem(sys.modules, "socksio", None)
    error = failed(make, server, requests=0)
    assert not error.retryable
    assert re.search(told, error.message)


@pytest.mark.parametrize("named", ["http://user:hunter2@{}", "{}"])
def test_a_proxy_that_refuses_the_connection_is_named_without_its_credentials(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    for variable in ("no_proxy", "NO_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", named.format(place))
    error = failed(make, server, requests=0, base_url="https://model.example/v1")
    assert f"https://model.example/v1 through the proxy http://{place}: " in error.message
    assert error.message.endswith("; is the proxy running, and is its address right?")
    assert "hunter2" not in error.message
    kind = type("ConnectError", (OSError,), {})
    endpoint = Endpoint("openai", "m", "", "https://model.example/v1", "", "")
    for odd in (
        "http://user:a/hunter2@{}",
        "http://user:a#hunter2@{}",
        "//user:hunter2@{}",
        "http://user:a@b/hunter2@{}",
    ):
        monkeypatch.setenv("HTTPS_PROXY", odd.format(place))
        assert f"through the proxy http://{place}: " in transport_failure(kind("refused"), endpoint).message
    monkeypatch.setenv("NO_PROXY", "model.example")
    assert "proxy" not in transport_failure(kind("refused"), endpoint).message


@pytest.mark.parametrize(("provider", "variable"), [("openai", "SSL_CERT_FILE"), ("bedrock", "AWS_CA_BUNDLE")])
def test_a_certificate_that_is_not_trusted_names_the_variable(provider: str, variable: str) -> None:
    endpoint = Endpoint(provider, "m", "https://example.com/v1", None, "", "")
    error = transport_failure(ssl.SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"), endpoint)
    assert f"; if you trust its certificate, set {variable} to a file with the issuer's" in error.message


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("Hostname mismatch, certificate is not valid for 'vm'", "use a host name that its certificate is for"),
        ("certificate has expired", "renew its certificate, or set this machine's clock"),
    ],
)
def test_no_issuer_is_blamed_for_a_certificate_of_another_host_or_time(reason: str, told: str) -> None:
    endpoint = Endpoint("openai", "m", "https://example.com/v1", None, "", "")
    error = transport_failure(ssl.SSLError(f"[SSL: CERTIFICATE_VERIFY_FAILED] {reason}"), endpoint)
    assert error.message.endswith(f"; {told}")


@pytest.mark.parametrize("reason", ["[Errno 2] No such file", "[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate"])
def test_an_unusable_file_of_certificates_is_named_for_bedrock(reason: str) -> None:
    endpoint = Endpoint("bedrock", "m", "https://example.com", None, "", "")
    message = transport_failure(ssl.SSLError(reason), endpoint).message
    assert message.endswith("; AWS_CA_BUNDLE must name a file with certificates")


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("no_proxy", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://corp:80")
    monkeypatch.setenv("ALL_PROXY", "socks5://all:1080")


@pytest.mark.usefixtures("proxies")
@pytest.mark.parametrize(
    ("provider", "url", "reason", "told"),
    [
        (
            "openai",
            "http://me/v1",
            "refused",
            "proxy http://corp:80: refused; is the proxy running, or should NO_PROXY",
        ),
        ("openai", "https://me/v1", "refused", "proxy socks5://all:1080: refused; is the proxy running, and is its"),
        ("openai", "https://me/v1", "407 Sign in", "407 Sign in; write a user and password into the proxy's address"),
        ("openai", "https://me/v1", "403 Forbidden", "403 Forbidden; does the proxy allow this address?"),
        (
            "bedrock",
            "http://me",
            "Tunnel connection failed: 407 X",
            "write a user and password into the proxy's address",
        ),
        ("bedrock", "https://me", "refused", "cannot reach https://me: refused; is the server running"),
    ],
)
def test_what_a_proxy_needs_is_named(provider: str, url: str, reason: str, told: str) -> None:
    kind = type("ProxyError", (OSError,), {})
    assert told in transport_failure(kind(reason), Endpoint(provider, "m", "", url, "", "")).message


@pytest.mark.usefixtures("proxies")
def test_amazon_bedrock_is_not_reached_through_socks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://corp:1080")
    kind = type("ProxyConnectionError", (OSError,), {})
    error = transport_failure(kind("no such host"), Endpoint("bedrock", "m", "https://aws", None, "", ""))
    assert error.message.endswith("; Amazon Bedrock needs an HTTP proxy")


@pytest.mark.usefixtures("proxies")
def test_the_key_is_not_blamed_for_a_page_of_a_proxy() -> None:
    page, endpoint = "<html>Blocked</html>", Endpoint("openai", "m", "", "http://me/v1", "OPENAI_API_KEY", KEY)
    assert status_failure(403, page, endpoint).message.endswith("(403): an HTML page; http://corp:80 may have sent it")
    message = status_failure(407, page, endpoint).message
    assert "the proxy http://corp:80 requires a user and password (407)" in message


@given(st.integers(400, 599), st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_body_of_an_error_becomes_one_short_line(status: int, told: Any) -> None:
    place = Endpoint("openai", "m", "https://example.com/v1", None, "OPENAI_API_KEY", KEY)
    for body in (told, {"error": told}, {"error": {"message": told, "code": told}}, {"detail": told}):
        error = status_failure(status, body, place)
        assert escape_controls(error.message) == error.message
        assert len(error.message) <= MAX_MESSAGE
        assert error.status_code == status
