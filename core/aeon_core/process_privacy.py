"""Keeping this process's memory and environment, where keys are, from other processes of the same user."""

from __future__ import annotations

import sys
from functools import lru_cache

_PR_SET_DUMPABLE = 4


@lru_cache(maxsize=1)
def hide_process() -> None:
    """Let no process without privileges read this one's environment, memory or descriptors, or trace it (Linux).

    Programs that it starts are not affected: `exec` undoes it for them. It also means no core dumps and no debugger,
    except for root, who can read every process. Elsewhere, and if the kernel refuses, nothing changes.
    """
    if sys.platform != "linux":
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):  # a C library without it
        return
