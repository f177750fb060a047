"""JSON-RPC over two binary streams, one message per line; anything else is answered with an error."""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import threading
from typing import Any, BinaryIO

MAX_LINE = 50_000_000
"""The largest message in bytes; a prompt may hold whole files."""
PARSE_ERROR = {"code": -32700, "message": "Parse error: expected one JSON object per line"}
INVALID_REQUEST = {"code": -32600, "message": "Invalid request: expected a JSON-RPC 2.0 message"}


class LineTransport:
    """A transport for the protocol's library. Reading and writing each have a thread, so neither blocks the other."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader, self._writer = reader, writer
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Thread(target=self._write, name="aeon-acp-writer", daemon=True)
        self._sending.start()
        threading.Thread(target=self._read, name="aeon-acp-reader", daemon=True).start()

    async def send(self, message: dict[str, Any]) -> None:
        """Queue a message to be written."""
        self._to_send.put(json.dumps(message, ensure_ascii=True, default=str).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None once the other side has disconnected."""
        return await self._received.get()

    async def close(self) -> None:
        """Write all queued messages, if the other side still reads."""
        self._to_send.put(None)
        await asyncio.to_thread(self._sending.join, 1.0)

    def end(self) -> None:
        """Have `receive` return None, from any thread."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._received.put_nowait, None)

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            while line := self._reader.readline(MAX_LINE):
                if not line.strip():
                    continue
                message, fault = _parsed(line)
                if message is not None:
                    self._loop.call_soon_threadsafe(self._received.put_nowait, message)
                else:
                    self._to_send.put(json.dumps({"jsonrpc": "2.0", "id": None, "error": fault}).encode() + b"\n")
        self.end()

    def _write(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (line := self._to_send.get()) is not None:
                self._writer.write(line)
                self._writer.flush()


def _parsed(line: bytes) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the message of a line, or None and what is wrong with it."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, PARSE_ERROR
    named = isinstance(message, dict) and isinstance(message.get("method", ""), str)
    if not named or not isinstance(message.get("id"), str | int | None) or not {"method", "id"} & message.keys():
        return None, INVALID_REQUEST
    return message, {}
