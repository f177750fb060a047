"""Serving a client at the other end of standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable


async def serve_until_hung_up(serve: Callable[[], Awaitable[object]], close: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client hangs up, then close.

    A read of standard input cannot be interrupted: a signal closes, and ends this process as it would have.
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
