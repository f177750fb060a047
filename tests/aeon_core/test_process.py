"""The signals that end a command."""

from __future__ import annotations

import signal

from aeon_core.process import ending_signals


def test_a_hang_up_that_is_ignored_as_under_nohup_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ending_signals() == [signal.SIGINT, signal.SIGTERM]
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert ending_signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    finally:
        signal.signal(signal.SIGHUP, before)
