"""Every failure of a provider is one LLMError, after one request, through both SDKs."""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import LLMError
from aeon_core.llm._endpoint import Endpoint
from aeon_core.llm._failure import MAX_MESSAGE, retry_after, status_failure
from aeon_core.llm.base import LLMRequest
from aeon_core.visible import visible
from tests.aeon_core.llm.conftest import KEY, Make
from tests.aeon_core.llm.server import Reply, Server

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
def test_a_status_is_retryable_or_final_and_asked_for_once(
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
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "3600"}, 60.0),
        ({"retry-after": "1e999"}, 60.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 60.0),
        ({"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 99 Foo 9999999999 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({}, None),
    ],
)
def test_a_wait_asked_for_is_read_and_capped(
    make: Make, server: Server, headers: dict[str, str], expected: float | None
) -> None:
    server.script(Reply({"error": {"message": "slow"}}, status=429, headers=headers))
    assert failed(make, server).retry_after == expected


def test_a_wait_until_a_date_is_the_time_left() -> None:
    wait = retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert wait is not None
    assert 25 <= wait <= 30


def test_a_final_error_asks_for_no_wait(make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "no"}}, status=400, headers={"retry-after": "7"}))
    assert failed(make, server).retry_after is None


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (Reply("<!doctype html><p>Welcome", content_type="text/html"), "an HTML page; is the base URL right"),
        (Reply("<html>", content_type="application/json"), "an HTML page"),
        (Reply('{"choices": [', content_type="application/json"), "no JSON"),
        (Reply(b"\xff\xfe\x00\x00\xff", content_type="application/json"), "no JSON"),
        (Reply("[" * 100_000, content_type="application/json"), "no JSON"),
        (Reply('{"a": NaN}', content_type="application/json"), "no JSON"),
        (Reply("", content_type="application/json"), "is empty"),
        (Reply("gz", headers={"content-encoding": "gzip"}), "before the reply was whole|cannot be used"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_body_that_is_no_reply_is_an_error_that_may_be_retried(
    make: Make, server: Server, reply: Reply, told: str, streamed: bool
) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed)
    assert error.retryable
    assert re.search(told, error.message)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_stream_of_nothing_is_an_error_that_may_be_retried(make: Make, server: Server, streamed: bool) -> None:
    server.script(Reply("", content_type="text/event-stream"))
    assert failed(make, server, streamed=streamed).retryable


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_reset_in_the_middle_of_a_body_may_be_retried(make: Make, server: Server, streamed: bool) -> None:
    server.script(Reply('{"choices"', reset=True))
    error = failed(make, server, streamed=streamed)
    assert error.retryable
    assert "broke before the reply was whole" in error.message


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply('{"a"', hang_after=True)])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_silent_server_is_waited_for_as_long_as_told(
    make: Make, server: Server, reply: Reply, streamed: bool
) -> None:
    server.script(reply)
    error = failed(make, server, streamed=streamed, timeout=0.2)
    assert error.retryable
    assert "within 0.2 s" in error.message


def test_an_unreachable_server_is_named_without_its_credentials(make: Make, server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        url = f"http://me:hunter2@127.0.0.1:{port}/v1?token=secret"
        error = failed(make, server, requests=0, base_url=url)
    assert error.retryable
    assert f"http://127.0.0.1:{port}/v1 cannot be reached" in error.message
    assert error.context["unsent"] is True
    assert "hunter2" not in error.message
    assert "secret" not in error.message


def test_an_error_under_the_status_200_is_judged_by_its_code(make: Make, server: Server) -> None:
    server.script(Reply({"error": {"message": "busy", "code": 503}}))
    error = failed(make, server)
    assert (error.status_code, error.retryable) == (503, True)


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
    model = make(timeout=60.0)
    errors: queue.Queue[BaseException] = queue.Queue()

    def call() -> None:
        try:
            model.complete(ask(on_delta=(lambda _: None) if streamed else None))
        except BaseException as error:
            errors.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    assert server.arrived.acquire(timeout=20)
    model.close()
    error = errors.get(timeout=10)
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


def test_a_broken_proxy_setting_is_a_final_error_that_names_it(
    make: Make, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "nonsense://x")
    error = failed(make, server, requests=0)
    assert not error.retryable
    assert "the connection cannot be set up" in error.message


@given(st.integers(400, 599), st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_any_body_of_an_error_becomes_one_short_line(status: int, told: Any) -> None:
    place = Endpoint("openai", "m", "https://example.com/v1", None, "OPENAI_API_KEY", KEY)
    for body in (told, {"error": told}, {"error": {"message": told, "code": told}}, {"detail": told}):
        error = status_failure(status, body, place)
        assert visible(error.message) == error.message
        assert len(error.message) <= MAX_MESSAGE
        assert error.status_code == status
