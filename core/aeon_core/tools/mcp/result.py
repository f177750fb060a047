"""The result of an MCP tool as a tool's result here: bounded, without binary data."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text
from aeon_core.redaction import REDACTED, redact_text
from aeon_core.tools.mcp.settings import McpServer

logger: logging.Logger = logging.getLogger("aeon")

_CHUNK = 65_536
_MAX_LINE = 4_000
_MAX_SHOWN = 300
_LEAST_SECRET = 6


class Words:
    """Makes foreign text fit for a message; a server's own secrets do not get into one, even where it echoes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another. Short ones, such as `1`, are no secrets.
        self._secrets = sorted((value for value in secrets if len(value) >= _LEAST_SECRET), key=len, reverse=True)

    def __call__(self, text: str, limit: int = _MAX_SHOWN) -> str:
        """Return one line, redacted, control characters visible, of at most `limit` characters."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        line = escape_controls(redact_text(clean_text(" ".join(text[: 4 * limit].split()))))
        return line if len(line) <= limit else f"{line[:limit]}…"

    def of(self, error: BaseException) -> str:
        """Return an error in one line of words."""
        return self(str(error)) or type(error).__name__


words: Words = Words()
"""For text that comes from no server with secrets."""


class ErrorOutput:
    """What one server's process writes to its standard error: into the log, the last line kept."""

    def __init__(self, server: str, words: Words) -> None:
        self._server = server
        self._words = words
        self._read_end = -1
        self._rest = b""
        self.last: str = ""
        """The last line that says anything, for messages."""

    def open(self) -> TextIO:
        """Return the file to hand to the process; the running loop reads what arrives. The caller closes it."""
        self._read_end, write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        asyncio.get_running_loop().add_reader(self._read_end, self._read)
        return os.fdopen(write_end, "w")

    def close(self) -> None:
        """Take what is there still, and stop reading."""
        while self._read_end >= 0 and self._read():
            pass
        self._stop()

    def _read(self) -> bool:
        try:
            chunk = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._take(self._rest)
            self._rest = b""
            self._stop()
            return False
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        self._rest = rest[:_MAX_LINE]
        return True

    def _take(self, line: bytes) -> None:
        if said := self._words(line.decode("utf-8", "replace")):
            self.last = said
            logger.debug("MCP server %r: %s", self._server, said)

    def _stop(self) -> None:
        if self._read_end >= 0:
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1


CONNECTION_CLOSED = -32000
"""The code of the SDK's error for an answer that did not come before the connection ended."""


class Unusable(Exception):
    """A server cannot be started or reached; the message is why, and what to do."""


class Refused(Exception):
    """A server answered a call with an error, or not as it should; the message is what it says."""


class SessionLost(Refused):
    """An HTTP server did not take the call, since it does not know our session any more."""


class Ended(Exception):
    """The connection ended during a call; the message is what is known of why, or empty."""


def why_unusable(server: McpServer, error: BaseException, status: int | None, said: Words) -> str:
    """Return why a server could not be started; `status` is the HTTP status it refused with, None for none."""
    error = innermost(error)
    if isinstance(error, Unusable):
        return str(error)
    if status is not None:
        key = "headers" if status in (401, 403) else "url"
        return f"it refused with HTTP status {status}; fix its {key!r}"
    if isinstance(error, TimeoutError):
        return f"it did not list its tools within {server.start_timeout:g} s; see 'start_timeout'"
    if server.command is not None and isinstance(error, OSError):
        return _not_started(server.command, error)
    code = getattr(error, "code", None)
    if server.command is not None and code == CONNECTION_CLOSED:
        return "it ended before it listed its tools; fix its 'command', 'args' or 'env'"
    if server.url is not None and code is None:
        return f"cannot reach it: {said.of(error)}; is it running, and is its 'url' right?"
    return f"it does not speak MCP as expected: {said.of(error)}"


def innermost(error: BaseException) -> BaseException:
    """Return the first error in nested groups: the SDK's task groups wrap what happened."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _not_started(command: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"its command {words(command)!r} was not found; install it or fix 'command'"
    return f"its command {words(command)!r} cannot be started: {error.strerror}; fix 'command'"


MAX_TEXT = 1_000_000
"""The most characters of text, or of structured content as JSON, that are kept of one result."""
_MAX_BLOCKS = 100
_LINK_KEYS = ("uri", "name", "title", "description", "mimeType", "size")

Block = Mapping[str, Any]


class TooLarge(ValueError):
    """Structured content that can neither be kept whole nor be cut."""


@dataclass(frozen=True)
class Answer:
    """What a server gave for a call: blocks of content as MCP's JSON, structured content, whether it is an error."""

    blocks: list[Block]
    structured: Any
    is_error: bool


def result_of(answer: Answer, *, declared: bool) -> Any:
    """Return structured content where there is any, else `{"text": …}`, with other kinds of blocks summed up.

    `declared` says that the tool has an output schema. Raises TooLarge for structured content of more than MAX_TEXT
    characters that this schema wants whole.
    """
    structured = answer.structured
    if structured is not None:
        size = len(json.dumps(structured, ensure_ascii=False))
        if size <= MAX_TEXT:
            return structured if declared or isinstance(structured, dict) else {"result": structured}
        if declared:
            raise TooLarge(f"its result has {size:,} characters, at most {MAX_TEXT:,} are allowed; ask for less")
    result: dict[str, Any] = {"text": text_of(answer.blocks)}
    others = [summary for block in answer.blocks if (summary := _summary(block))]
    if others:
        result["content"] = others[:_MAX_BLOCKS]
    if len(others) > _MAX_BLOCKS:
        result["content_left_out"] = len(others) - _MAX_BLOCKS
    return result


def text_of(blocks: Iterable[Block], limit: int = MAX_TEXT) -> str:
    """Return the text of all blocks, one after the other; what is more than `limit` characters is cut, and said so."""
    text = "\n".join(part for block in blocks if (part := _text(block)))
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit]}\n[cut: {more:,} more characters]"


def _text(block: Block) -> str:
    if block["type"] == "text":
        return str(block["text"])
    return str(block["resource"].get("text", "")) if block["type"] == "resource" else ""


def _summary(block: Block) -> dict[str, Any] | None:
    kind = block["type"]
    if kind == "text":
        return None
    if kind in ("image", "audio"):
        return {"type": kind, "mime": block["mimeType"], "bytes": _size(block["data"])}
    if kind == "resource":
        resource = block["resource"]
        size = len(resource["text"].encode()) if "text" in resource else _size(resource["blob"])
        return {"type": kind, "uri": resource["uri"], "mime": resource.get("mimeType"), "bytes": size}
    return {"type": kind, **{key: block[key] for key in _LINK_KEYS if key in block}}


def _size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")
