"""A server over standard input and output: JSON-RPC messages, one per line, until the client hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO

from pydantic import BaseModel, ValidationError

MAX_LINE = 50_000_000
"""The largest message in bytes; a prompt may hold whole files."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class _Message(BaseModel, extra="allow"):
    id: int | str | None = None
    method: str | None = None


class JsonLines:
    """Sends and receives messages. Anything else is answered with an error, and reading continues."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader, self._writer, self._writing = reader, writer, asyncio.Lock()

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message, unless the client has gone."""
        line = json.dumps(message, ensure_ascii=True, default=str).encode() + b"\n"
        async with self._writing:
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._writer.write, line)

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None once the other side has disconnected."""
        while line := await asyncio.to_thread(self._reader.readline, MAX_LINE):
            try:
                return _Message.model_validate_json(line).model_dump(exclude_unset=True)
            except ValidationError as error:
                code = PARSE_ERROR if error.errors()[0]["type"] == "json_invalid" else INVALID_REQUEST
                wrong = {"code": code, "message": "expected a JSON-RPC 2.0 message on each line"}
                await self.send({"jsonrpc": "2.0", "id": None, "error": wrong})
        return None

    async def close(self) -> None:
        """Do nothing: each message is written when it is sent."""


async def serve_until_hung_up(serve: Callable[[], Awaitable[object]], close: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client hangs up, then close.

    A read of standard input cannot be interrupted: a signal closes the server, then ends this process as usual.
    """
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    async def end(number: signal.Signals) -> None:
        await close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda signum: ending.add(loop.create_task(end(signum))), number)
    try:
        await serve()
    finally:
        await close()
