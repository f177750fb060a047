"""Amazon Bedrock on loopback, and in place of the network: replies, event streams, errors, and a token service."""

from __future__ import annotations

import json
import os
import struct
import threading
from binascii import crc32
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import botocore.session
import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.llm.bedrock import BedrockClient, BedrockModel
from aeon_core.llm.errors import MAX_MESSAGE
from tests.aeon_core.llm.server import Reply, Server

ACCESS_KEY = "AK" + "IA" + "X" * 16
SECRET_KEY = "s3cret" + "k" * 34
SESSION_TOKEN = "session" + "t" * 40
ROLE_KEY = "AS" + "IA" + "R" * 16
ROLE_TOKEN = "role" + "t" * 40
STREAM_TYPE = "application/vnd.amazon.eventstream"

USAGE = {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}

Make = Callable[..., BedrockModel]

# Each session reads the same descriptions of all services: most of what these tests would take.
botocore.session.create_loader = cache(botocore.session.create_loader)


def set_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION_TOKEN)


def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave a region and nothing else: no variables, no profiles, no instance to ask."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "aws-credentials"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


def converse(*blocks: Any, stop: Any = "end_turn", **fields: Any) -> Reply:
    message = {"role": "assistant", "content": list(blocks)}
    return Reply({"output": {"message": message}, "stopReason": stop, "usage": USAGE, **fields})


def said(text: Any = "hello", **fields: Any) -> Reply:
    return converse({"text": text}, **fields)


def refused(code: str, message: str = "said so", status: int = 400, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply({"message": message}, status=status, headers={"x-amzn-errortype": code, **named})


def frame(event: str, payload: Any, kind: str = "event") -> bytes:
    """Return one event as it is on the wire: lengths, headers, payload, and the checksums of both parts."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    name = ":exception-type" if kind == "exception" else ":event-type"
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for key, value in ((":message-type", kind), (name, event), (":content-type", "application/json"))
    )
    prelude = struct.pack("!II", len(headers) + len(body) + 16, len(headers))
    whole = prelude + struct.pack("!I", crc32(prelude)) + headers + body
    return whole + struct.pack("!I", crc32(whole))


def text_frames(*texts: Any, index: int = 0) -> list[bytes]:
    parts = [frame("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": text}}) for text in texts]
    return [
        frame("messageStart", {"role": "assistant"}),
        *parts,
        frame("contentBlockStop", {"contentBlockIndex": index}),
    ]


def usage_frame(**usage: int) -> bytes:
    return frame("metadata", {"usage": {**USAGE, **usage}, "metrics": {"latencyMs": 1}})


def stop_frame(stop: str = "end_turn") -> bytes:
    return frame("messageStop", {"stopReason": stop})


def stream(*frames: bytes, **options: Any) -> Reply:
    return Reply(b"".join(frames), content_type=STREAM_TYPE, **options)


def answer_with(client: Any, *replies: Reply) -> list[Any]:
    """Have the boto3 client take the replies in place of the network; return the requests as they were signed."""
    from botocore.awsrequest import AWSResponse

    waiting, seen = list(replies), []

    def send(request: Any, **_: Any) -> Any:
        seen.append(request)
        reply = waiting.pop(0)
        headers = {"content-type": reply.content_type, **reply.headers}
        return AWSResponse(request.url, reply.status, headers, _Raw(reply.content))

    client.meta.events.register("before-send.bedrock-runtime", send)
    return seen


class _Raw:
    """A body as botocore reads it."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._content

    def close(self) -> None:
        """Nothing is open."""


class TokenService:
    """The service that gives a role's credentials: what it was asked, and whether it refuses."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.expiration = "2099-01-01T00:00:00Z"
        self.refusal: tuple[int, str, str] | None = None

    def reply(self, form: dict[str, str]) -> tuple[int, str]:
        self.asked.append(form)
        if self.refusal is not None:
            status, code, message = self.refusal
            inner = f"<Type>Sender</Type><Code>{code}</Code><Message>{message}</Message>"
            return status, f"<ErrorResponse><Error>{inner}</Error></ErrorResponse>"
        keys = f"<AccessKeyId>{ROLE_KEY}</AccessKeyId><SecretAccessKey>{SECRET_KEY}</SecretAccessKey>"
        inner = f"{keys}<SessionToken>{ROLE_TOKEN}</SessionToken><Expiration>{self.expiration}</Expiration>"
        user = "<Arn>arn:aws:sts::1:assumed-role/r/s</Arn><AssumedRoleId>A:s</AssumedRoleId>"
        result = f"<AssumedRoleUser>{user}</AssumedRoleUser><Credentials>{inner}</Credentials>"
        space = "https://sts.amazonaws.com/doc/2011-06-15/"
        return (
            200,
            f'<AssumeRoleResponse xmlns="{space}"><AssumeRoleResult>{result}</AssumeRoleResult></AssumeRoleResponse>',
        )


@contextmanager
def token_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[TokenService]:
    service = TokenService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["content-length"])).decode()
            status, text = service.reply({key: values[0] for key, values in parse_qs(sent).items()})
            self.send_response(status)
            self.send_header("content-type", "text/xml")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None:
            """Tests say what they saw themselves."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{http.server_port}")
    try:
        yield service
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def bedrock_models(server: Server) -> Iterator[Make]:
    """Give a function that makes models on the server; they are closed in the end."""
    made: list[BedrockModel] = []

    def model(name: str = "us.anthropic.claude-x-v1:0", **options: Any) -> BedrockModel:
        made.append(BedrockModel(name, **{"base_url": server.url, "timeout": 20.0, **options}))
        return made[-1]

    yield model
    for one in made:
        one.close()


def ask(streamed: bool = False, **fields: Any) -> LLMRequest:
    on_delta = (lambda _: None) if streamed else None
    given = {"purpose": "judge", "system": "Aeon judge", "messages": [{"role": "user", "content": "hi"}], **fields}
    return LLMRequest(**{"on_delta": on_delta, **given})


def checked(error: LLMError) -> LLMError:
    """Return the error, having seen that it is one line that gives nothing away."""
    assert "\n" not in error.message
    assert len(error.message) <= MAX_MESSAGE
    assert error.__cause__ is None
    for secret in (SECRET_KEY, SESSION_TOKEN, ACCESS_KEY):
        assert secret not in error.message
    return error


def answered(*replies: Reply, request: LLMRequest | None = None) -> tuple[LLMResponse | LLMError, list[Any]]:
    """Return what one call ends with and the requests it made, the replies standing in for the network."""
    client = BedrockClient()
    requests = answer_with(client.connect(), *replies)
    try:
        return BedrockModel("m", client=client).complete(request or ask()), requests
    except LLMError as error:
        return checked(error), requests
