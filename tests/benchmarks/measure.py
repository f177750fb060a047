"""Measuring: the best of several runs, taken in turn, so that a machine's moods hit all alike."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Mapping


def best_of(
    rounds: int, works: Mapping[str, Callable[[], object]], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return each work's least duration in seconds over `rounds` rounds.

    Other programs disturb wall time more the longer a work is; `time.process_time` as the clock leaves them out.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            gc.disable()
            began = clock()
            work()
            best[name] = min(best[name], clock() - began)
            gc.enable()
    return best


def peak_memory(work: Callable[[], object]) -> int:
    """Return the most bytes that were allocated at once during the work."""
    gc.collect()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
