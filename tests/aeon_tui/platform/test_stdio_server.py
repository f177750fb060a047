"""The server over standard input and output."""

from __future__ import annotations

import asyncio
import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import AeonError
from aeon_tui.platform.stdio_server import JsonLines, serve_until_hung_up
from tests.waiting import PATIENCE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("received", [b"", b'{"method": "initialize"}\n'], ids=["hung up", "another message"])
def test_a_reply_that_cannot_be_written_ends_the_server_with_the_reason(received: bytes) -> None:
    async def close() -> None:
        pass

    with Path("/dev/full").open("wb", buffering=0) as full:
        lines = JsonLines(io.BytesIO(received), full)

        async def serve() -> None:
            await lines.send({"id": 1, "result": {}})
            await lines.receive()

        with pytest.raises(AeonError, match=r"^cannot write the output: No space left on device$"):
            asyncio.run(serve_until_hung_up(serve, close))


async def test_messages_arrive_while_all_other_threads_are_busy() -> None:
    free, loop = threading.Event(), asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, free.wait)
    try:
        written = io.BytesIO()
        lines = JsonLines(io.BytesIO(b'{"method": "session/cancel"}\n'), written)
        async with asyncio.timeout(PATIENCE):
            assert await lines.receive() == {"method": "session/cancel"}
            await lines.send({"id": 1, "result": {}})
        assert written.getvalue() == b'{"id": 1, "result": {}}\n'
    finally:
        free.set()
        await busy


async def test_a_line_whose_sending_is_cancelled_does_not_mix_with_the_next() -> None:
    class Slow(io.BytesIO):
        def write(self, line: Any) -> int:
            started.set()
            may_end.wait(PATIENCE)
            return super().write(line)

    started, may_end, written = threading.Event(), threading.Event(), Slow()
    lines = JsonLines(io.BytesIO(), written)
    sending = asyncio.create_task(lines.send({"id": 1}))
    assert await asyncio.to_thread(started.wait, PATIENCE)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    started.clear()
    sending = asyncio.create_task(lines.send({"id": 2}))
    for _ in range(20):
        await asyncio.to_thread(int)  # time for another thread to start
    assert not started.is_set(), "the first line is still being written"
    may_end.set()
    await sending
    assert written.getvalue() == b'{"id": 1}\n{"id": 2}\n'


async def test_half_a_surrogate_pair_is_replaced() -> None:
    lines = JsonLines(io.BytesIO(b'{"id": 1, "method": "m", "params": ["\\ud83d"]}\n'), io.BytesIO())
    assert await lines.receive() == {"id": 1, "method": "m", "params": ["\ufffd"]}


async def test_an_error_that_is_no_object_is_not_a_reply() -> None:
    written = io.BytesIO()
    lines = JsonLines(io.BytesIO(b'{"id": 1, "error": "no"}\n{"id": 2, "error": {"code": 1}}\n'), written)
    assert await lines.receive() == {"id": 2, "error": {"code": 1}}
    assert json.loads(written.getvalue())["error"]["code"] == -32600
