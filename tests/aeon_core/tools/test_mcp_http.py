"""MCP servers over HTTP that refuse, forget, break off or are gone (REQ-023)."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core.errors import ToolError, UsageError
from aeon_core.tools.mcp.servers import McpTools, _is_request, why_unusable
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.mcp.stdio_transport import MAX_MESSAGE
from aeon_core.tools.mcp.tool import Words
from tests.aeon_core.tools.mcp_help import assert_nothing_is_left, connected, http_server, pids

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "old", "version": "1"},
}
TOOL = {"name": "do", "inputSchema": {"type": "object"}}


class OldServer(ThreadingHTTPServer):
    """A server of before 2026, with sessions; `fault` may answer in its place, with a status, a kind and a body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: set[str] = set()
        self.opened = 0
        self.calls: list[Any] = []
        self.answer: Any = {"content": [{"type": "text", "text": "done"}]}
        self.headers_seen: list[dict[str, str]] = []
        self.fault: Callable[[str], tuple[int, str, str] | None] = lambda method: None
        self.moved: tuple[int, str] | None = None
        self.challenge = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


class _Handler(BaseHTTPRequestHandler):
    server: OldServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.headers_seen.append(dict(self.headers))
        method = message["method"]
        if self.server.moved is not None and self.path == "/mcp":
            self._reply(self.server.moved[0], "text/plain", "", location=self.server.moved[1])
        elif fault := self.server.fault(method):
            self._reply(*fault)
        elif method == "initialize":
            self.server.opened += 1
            session = f"session-{self.server.opened}"
            self.server.sessions.add(session)
            self._result(message, INITIALIZED, session)
        elif method == "server/discover":
            self._reply(400, "text/plain", "what?")
        elif self.headers.get("mcp-session-id") not in self.server.sessions:
            self._reply(404, "text/plain", "no such session")
        elif "id" not in message:
            self._reply(202, "text/plain", "")
        elif method == "tools/list":
            self._result(message, {"tools": [TOOL]})
        else:
            self.server.calls.append(message["params"]["arguments"])
            self._result(message, self.server.answer)

    def do_GET(self) -> None:
        self._reply(405, "text/plain", "")

    def do_DELETE(self) -> None:
        self.server.sessions.discard(self.headers.get("mcp-session-id"))
        self._reply(200, "text/plain", "")

    def _result(self, message: Any, result: Any, session: str | None = None) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self._reply(200, "application/json", body, session)

    def _reply(
        self, status: int, kind: str, body: str, session: str | None = None, location: str | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body.encode())))
        if session:
            self.send_header("mcp-session-id", session)
        if self.server.challenge and status >= 400:
            self.send_header("www-authenticate", self.server.challenge)
        if location:
            self.send_header("location", location)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def old_server() -> Iterator[OldServer]:
    with OldServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def old() -> Iterator[OldServer]:
    with old_server() as server:
        yield server


def refusal(root: Path, **settings: Any) -> str:
    with pytest.raises(UsageError) as caught:
        McpTools({"web": settings}, project_root=root).connect()
    assert_nothing_is_left()
    return caught.value.message.removeprefix("cannot use the MCP server 'web': ")


def test_an_older_server_works_and_its_session_is_closed(
    tmp_path: Path, old: OldServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "abc")
    server = {"url": old.url, "headers": {"Authorization": "Bearer ${MY_TOKEN}"}}
    with connected(tmp_path, web=server) as tools:
        assert tools["mcp__web__do"].invoke(x=1) == {"text": "done"}
        assert old.sessions == {"session-1"}
    assert old.calls == [{"x": 1}]
    assert {seen["Authorization"] for seen in old.headers_seen} == {"Bearer abc"}
    assert old.sessions == set()


def test_a_forgotten_session_is_opened_again_and_the_call_made_once(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.sessions.clear()
        assert tools["mcp__web__do"].invoke(x=2) == {"text": "done"}
        assert old.opened == 2
    assert old.calls == [{"x": 2}]


def test_a_repeatedly_forgotten_session_fails_the_call(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.fault = lambda method: (404, "text/plain", "no") if method == "tools/call" else None
        with pytest.raises(ToolError, match="MCP server 'web' answered 'do' with an error: HTTP status 404"):
            tools["mcp__web__do"].invoke()
        assert old.opened == 2


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "it refused with HTTP status 401; fix its 'headers'"),
        (403, "it refused with HTTP status 403; fix its 'headers'"),
        (404, "it refused with HTTP status 404; fix its 'url'"),
        (
            407,
            (
                "a proxy refused with HTTP status 407; write a user and password into the proxy's address, "
                "or name the server's host in NO_PROXY"
            ),
        ),
        (500, "it refused with HTTP status 500; fix its 'url'"),
    ],
)
def test_a_server_that_refuses_at_startup_is_a_clear_error(
    tmp_path: Path, old: OldServer, status: int, reason: str
) -> None:
    old.fault = lambda method: (status, "text/plain", "go away")
    assert refusal(tmp_path, url=old.url) == reason


ASKED = 'Bearer error="invalid_token", resource_metadata="https://h.example/.well-known/oauth-protected-resource"'


@pytest.mark.parametrize(
    ("headers", "challenge", "advice"),
    [
        ({}, ASKED, """Aeon does not log in: get an access token, and add `Authorization: "Bearer ${NAME}"` to its"""),
        ({"authorization": "Bearer expired"}, ASKED, "fix its 'headers'"),
        ({}, 'Basic realm="tools"', "fix its 'headers'"),
    ],
)
def test_what_a_server_asks_for_that_refuses_is_shown(
    tmp_path: Path, old: OldServer, headers: dict[str, str], challenge: str, advice: str
) -> None:
    old.challenge = challenge
    old.fault = lambda method: (401, "text/plain", "go away")
    said = refusal(tmp_path, url=old.url, headers=headers)
    assert said.startswith(f"it refused with HTTP status 401 ({challenge}); {advice}")


def test_what_a_server_asks_for_that_refuses_a_call_is_shown(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url, "headers": {"Authorization": "Bearer t0ken-of-mine"}}) as tools:
        old.challenge = 'Bearer error="invalid_token", error_description="t0ken-of-mine expired"'
        old.fault = lambda method: (401, "text/plain", "") if method == "tools/call" else None
        with pytest.raises(ToolError) as caught:
            tools["mcp__web__do"].invoke()
    asked = 'Bearer error="invalid_token", error_description="[redacted] expired"'
    assert f"answered 'do' with an error: HTTP status 401 ({asked}), Server returned" in caught.value.message


def test_no_part_of_a_header_is_shown_that_a_refusing_server_repeats(
    tmp_path: Path, old: OldServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN", "plain-value-1")
    said = json.dumps({"code": -32001, "message": "no t0ken-of-mine, no s3ss10n1d, no plain-value-1"})
    event = f'event: message\ndata: {{"jsonrpc": "2.0", "id": 1, "error": {said}}}\n\n'
    old.fault = lambda method: (200, "text/event-stream", event) if method == "initialize" else None
    headers = {"Authorization": "Bearer t0ken-of-mine", "Cookie": "sid=s3ss10n1d", "X-Tenant": "at ${PLAIN}"}
    shown = refusal(tmp_path, url=old.url, headers=headers)
    assert shown == "it does not speak MCP as expected: no [redacted], no [redacted], no [redacted]"


def test_a_web_page_is_not_a_server(tmp_path: Path, old: OldServer) -> None:
    old.fault = lambda method: (200, "text/html", "<p>Welcome</p>")
    assert refusal(tmp_path, url=old.url) == "it does not speak MCP as expected: Unexpected content type: text/html"


def test_a_list_of_tools_without_end_is_reported(tmp_path: Path, old: OldServer) -> None:
    pages = (f'{{"tools": [], "nextCursor": "{number}"}}' for number in range(1, 300))

    def event() -> str:
        return f'event: message\ndata: {{"jsonrpc": "2.0", "id": 1, "result": {next(pages)}}}\n\n'

    old.fault = lambda method: (200, "text/event-stream", event()) if method == "tools/list" else None
    said = refusal(tmp_path, url=old.url, start_timeout=600)
    assert said == "its list of tools has no end: 200 pages so far; set 'enabled: false' for it"
    assert next(pages) == '{"tools": [], "nextCursor": "201"}'


def test_a_closed_port_is_reported(tmp_path: Path) -> None:
    with old_server() as server:
        url = server.url
    message = refusal(tmp_path, url=url)
    assert message.startswith("cannot reach it: ")
    assert message.endswith("; is it running, and is its 'url' right?")


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(2, "No such file or directory"),
        IsADirectoryError(21, "Is a directory"),
        ssl.SSLError(136, "[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found"),
    ],
)
def test_a_file_of_certificates_that_cannot_be_used_is_blamed_not_the_server(
    tmp_path: Path, old: OldServer, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def load(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "company.pem"))
    said = refusal(tmp_path, url=old.url)
    assert said == f"cannot reach it: {error}; check the variables for certificates, such as SSL_CERT_FILE"


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed", "set SSL_CERT_FILE to a file with the issuer's"),
        ("407 Proxy Authentication Required", "or name the server's host in NO_PROXY"),
    ],
)
def test_a_server_behind_a_proxy_is_not_blamed(why: str, advice: str) -> None:
    message = why_unusable(McpServer(url="https://tools.example/mcp"), OSError(why), None, Words())
    assert message.startswith(f"cannot reach it: {why}; ")
    assert message.endswith(advice)


def test_a_server_that_refuses_later_fails_the_call_with_the_status(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.fault = lambda method: (401, "text/plain", "expired") if method == "tools/call" else None
        with pytest.raises(ToolError, match="MCP server 'web' answered 'do' with an error: HTTP status 401"):
            tools["mcp__web__do"].invoke()
        old.fault = lambda method: None
        assert tools["mcp__web__do"].invoke() == {"text": "done"}
    assert old.opened == 1


def test_an_answer_that_is_not_json_fails_only_the_call(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.fault = lambda method: (200, "application/json", "{nonsense") if method == "tools/call" else None
        with pytest.raises(ToolError, match=r"'web' answered 'do' with an error: Failed to parse JSON response$"):
            tools["mcp__web__do"].invoke()
        old.fault = lambda method: None
        assert tools["mcp__web__do"].invoke() == {"text": "done"}


def test_an_answer_that_is_too_long_fails_only_the_call(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.answer = {"content": [{"type": "text", "text": "x" * MAX_MESSAGE}]}
        with pytest.raises(ToolError, match=r"'web' answered 'do' with an error: .*: longer than 16 MB"):
            tools["mcp__web__do"].invoke()
        old.answer = {"content": [{"type": "text", "text": "done"}]}
        assert tools["mcp__web__do"].invoke() == {"text": "done"}


@pytest.mark.parametrize("answer", [{}, {"content": [{"type": "hologram"}]}, {"content": "text"}, {"isError": 5}])
def test_a_malformed_answer_fails_only_the_call(tmp_path: Path, old: OldServer, answer: Any) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        good, old.answer = old.answer, answer
        with pytest.raises(ToolError, match="MCP server 'web' answered 'do' with an error: cannot use it: "):
            tools["mcp__web__do"].invoke()
        old.answer = good
        assert tools["mcp__web__do"].invoke() == {"text": "done"}


def test_a_large_answer_in_a_stream_arrives(tmp_path: Path, old: OldServer) -> None:
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "é" * 900_000}]}})
    with connected(tmp_path, web={"url": old.url}) as tools:
        event = f"event: message\ndata: {large}\n\n"
        old.fault = lambda method: (200, "text/event-stream", event) if method == "tools/call" else None
        assert tools["mcp__web__do"].invoke() == {"text": "é" * 900_000}


def test_a_stream_that_breaks_off_fails_the_call_with_its_effect_unknown(tmp_path: Path, old: OldServer) -> None:
    with connected(tmp_path, web={"url": old.url}) as tools:
        old.fault = lambda method: (200, "text/event-stream", ": nothing\n\n") if method == "tools/call" else None
        with pytest.raises(ToolError, match=r"answered 'do' with an error: .*; whether it took effect is unknown$"):
            tools["mcp__web__do"].invoke()
        old.fault = lambda method: None
        assert tools["mcp__web__do"].invoke() == {"text": "done"}


@pytest.mark.exhaustive
def test_a_vanished_server_fails_the_call_and_is_reconnected_later(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with http_server(notes) as (url, process), connected(tmp_path, web={"url": url}) as tools:
        with pytest.raises(ToolError, match="'web' ended during 'die'; whether it took effect is unknown"):
            tools["mcp__web__die"].invoke()
        process.wait()
        for _ in range(2):
            with pytest.raises(ToolError, match="'web' has ended and cannot be restarted: cannot reach it"):
                tools["mcp__web__add"].invoke(a=1, b=1)
        port = url.split(":")[2].split("/")[0]
        with http_server(notes, port):
            assert tools["mcp__web__add"].invoke(a=1, b=1) == {"sum": 2}
    assert len(pids(notes)) == 2


@pytest.mark.parametrize(
    ("method", "content", "expected"),
    [
        ("POST", '{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', True),
        ("POST", '{"jsonrpc": "2.0", "method": "notifications/cancelled"}', False),
        ("POST", '{"jsonrpc": "2.0", "id": 1, "result": {}}', False),
        ("POST", "[]", False),
        ("POST", "", False),
        ("DELETE", "", False),
    ],
)
def test_only_the_status_of_a_request_says_whether_the_session_is_known(
    method: str, content: str, expected: bool
) -> None:
    assert _is_request(SimpleNamespace(method=method, read=lambda: content)) is expected


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_to_another_path_of_the_server_is_followed(tmp_path: Path, old: OldServer, status: int) -> None:
    old.moved = (status, f"{old.url}/")
    with connected(tmp_path, web={"url": old.url, "headers": {"X-Key": "k3y"}}) as tools:
        assert tools["mcp__web__do"].invoke(x=1) == {"text": "done"}
        assert {seen["X-Key"] for seen in old.headers_seen} == {"k3y"}
        old.fault = lambda method: (401, "text/plain", "expired") if method == "tools/call" else None
        with pytest.raises(ToolError, match="MCP server 'web' answered 'do' with an error: HTTP status 401"):
            tools["mcp__web__do"].invoke()
    assert old.calls == [{"x": 1}]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_header_is_sent_to_another_server_that_a_redirect_names(tmp_path: Path, old: OldServer, status: int) -> None:
    with old_server() as other:
        old.moved = (status, other.url)
        said = refusal(tmp_path, url=old.url, headers={"Authorization": "Bearer t0ken"})
        assert f"Redirect to {other.url} not followed; use that URL" in said
        assert other.headers_seen == []
