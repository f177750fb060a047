"""A server over standard input and output: JSON-RPC messages, one per line, until the client hangs up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Self

from pydantic import BaseModel, ValidationError, model_validator

from aeon_core.errors import AeonError, innermost, reason_of
from aeon_core.json_safe import parse_json
from aeon_core.process import ending_signals

MAX_LINE = 50_000_000
"""The largest message in bytes; a prompt may hold whole files."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class _Message(BaseModel, extra="allow"):
    id: int | str | None = None
    method: Any = None
    result: Any = None
    error: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _asks_or_answers(self) -> Self:
        is_reply = self.method is None and {"result", "error"} & self.model_fields_set
        if not (is_reply or isinstance(self.method, str)):
            raise ValueError("neither a request nor a reply")
        return self


def _message(line: bytes) -> _Message:
    try:
        return _Message.model_validate_json(line)
    except ValidationError as error:
        return _Message.model_validate(content_of(error))


def content_of(refused: Exception) -> Any:
    """Return the JSON of a line refused for half a surrogate pair, which many clients send; else raise the error."""
    errors = refused.errors() if isinstance(refused, ValidationError) else []
    with contextlib.suppress(ValueError):
        if errors and errors[0]["type"] == "json_invalid":
            return parse_json(errors[0]["input"])
    raise refused


def not_a_message(error: Exception) -> dict[str, Any]:
    """Return the reply to a line that is not a message, with the id of a request that is wrong otherwise."""
    errors = error.errors() if isinstance(error, ValidationError) else []
    requests = (each["input"] for each in errors if isinstance(each["input"], dict) and "method" in each["input"])
    number = next(requests, {}).get("id")
    code = PARSE_ERROR if errors and errors[0]["type"] == "json_invalid" else INVALID_REQUEST
    return {
        "jsonrpc": "2.0",
        "id": number if type(number) in (int, str) else None,
        "error": {"code": code, "message": "expected a JSON-RPC 2.0 message on each line"},
    }


class JsonLines:
    """Sends and receives messages. Anything else is answered with an error, and reading continues."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self._reader, self._writer = reader, writer
        self._failure: OSError | None = None
        # Others may occupy all threads of the loop. One thread writes, so lines never mix, even if one is cancelled.
        self._reading, self._writing = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message, unless the client has gone. `receive` raises why one cannot be written."""
        line = json.dumps(message, ensure_ascii=True, default=str).encode() + b"\n"
        try:
            await asyncio.get_running_loop().run_in_executor(self._writing, self._writer.write, line)
        except OSError as error:
            self._failure = error

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message, or None once the other side has disconnected. Raises OSError."""
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(self._reading, self._reader.readline, MAX_LINE):
            if self._failure is not None:
                break
            try:
                return _message(line).model_dump(exclude_unset=True)
            except ValidationError as error:
                await self.send(not_a_message(error))
        if self._failure is not None:
            raise self._failure
        return None

    async def close(self) -> None:
        """Do nothing: each message is written when it is sent."""


async def serve_until_hung_up(serve: Callable[[], Awaitable[object]], close: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client hangs up, then close. Raises AeonError if standard output cannot be written.

    A read of standard input cannot be interrupted: a signal closes the server, then ends this process as usual.
    """
    loop, ending = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    failure: BaseException | None = None

    async def end(number: signal.Signals) -> None:
        await close()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in ending_signals():
        loop.add_signal_handler(number, lambda signum: ending.add(loop.create_task(end(signum))), number)
    try:
        await serve()
    except* BrokenPipeError:
        pass  # the client reads no more
    except* OSError as group:
        failure = innermost(group)
    finally:
        await close()
    if failure is not None:
        raise AeonError(f"cannot write the output: {reason_of(failure)}")
