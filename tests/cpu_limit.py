"""A limit on processor time, for code that an unlucky text could keep busy for minutes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Fail once this process has used ``seconds`` of processor time inside the block, however busy the machine is.

    This measures nothing: choose at least ten times what the code needs, so that only cost of another order fails.
    """

    def expired(*_: object) -> None:
        pytest.fail(f"it was still busy after {seconds:g} s of processor time")

    previous = signal.signal(signal.SIGPROF, expired)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
