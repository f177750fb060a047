"""The signals that end a command."""

from __future__ import annotations

import signal

from aeon_core.process import ending_signals


def test_signals_ignored_at_startup_stay_ignored() -> None:
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        assert ending_signals() == numbers
        # As under `nohup`.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert ending_signals() == [signal.SIGINT, signal.SIGTERM]
        # As for a command that a script starts with `&`.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert ending_signals() == [signal.SIGTERM]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
