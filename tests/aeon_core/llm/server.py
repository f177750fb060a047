"""A provider on loopback: answers as scripted, misbehaves as told, and keeps every request."""

from __future__ import annotations

import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server sends. `hang` sends nothing until the server stops, `hang_after` the body and no end;
    `reset` cuts the connection after the body, which was announced as longer."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    hang: bool = False
    hang_after: bool = False
    reset: bool = False

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: Any


class Server:
    """Sends one scripted reply a request; what comes unasked gets a 418, which no test expects."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.arrived = threading.Semaphore(0)
        self._replies: list[Reply] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = _HTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def script(self, *replies: Reply) -> None:
        self._replies += replies

    def stop(self) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def bodies(self) -> list[Any]:
        return [request.body for request in self.requests]

    def next_reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            reply = self._replies.pop(0) if self._replies else Reply({"error": "unscripted"}, status=418)
        self.arrived.release()
        return reply

    def wait_for_stop(self) -> None:
        self._stopping.wait()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.next_reply(Request(self.path, headers, json.loads(sent)))
            if reply.hang:
                server.wait_for_stop()
                return
            self.send_response(reply.status)
            self.send_header("content-type", reply.content_type)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.reset or reply.hang_after:
                self.send_header("content-length", str(len(reply.content) + 1000))
            elif reply.content_type != "text/event-stream":
                self.send_header("content-length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)
            self.wfile.flush()
            if reply.hang_after:
                server.wait_for_stop()
            if reply.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        def log_message(self, *args: Any) -> None:
            """Tests say what they saw themselves."""

    return Handler


def stream(*events: Any, done: bool = True, **options: Any) -> Reply:
    """Return a streamed Chat Completion: one event a value, and the end mark."""
    text = "".join(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events)
    return Reply(text + ("data: [DONE]\n\n" if done else ""), content_type="text/event-stream", **options)


def named_stream(*events: Any, **options: Any) -> Reply:
    """Return a streamed Message: each event under the name of its type."""
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Reply(text, content_type="text/event-stream", **options)
