"""Ctrl-Z: the process stops and the shell has the terminal, until `fg`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from textual.app import App, SuspendNotSupported

NO_SHELL = "Cannot suspend: no shell started this app that could bring it back."
NO_TERMINAL = "Cannot suspend: the app is not on a terminal of its own."


def suspend(app: App[Any], running: int) -> str:
    """Stop this process and what it runs until the shell continues it; return why that cannot be, else nothing."""
    if app.is_headless or not hasattr(signal, "SIGTSTP"):
        return NO_TERMINAL
    if not _has_job_control():
        return NO_SHELL
    try:
        with app.suspend():
            if running:
                them = "1 run stops" if running == 1 else f"{running} runs stop"
                sys.stderr.write(f"aeon-tui: {them} until you continue with fg\n")
                sys.stderr.flush()
            # The whole job, so that a shell that waits for a program which started this one notices.
            os.killpg(0, signal.SIGTSTP)
    except SuspendNotSupported:
        return NO_TERMINAL
    return ""


def _has_job_control() -> bool:
    """Return whether a shell made this a job of its own: else nobody would continue what has stopped."""
    return os.getpgrp() != os.getsid(0)
