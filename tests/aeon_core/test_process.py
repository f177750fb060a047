"""The signals that end a command."""

from __future__ import annotations

import signal

from aeon_core.process import ending_signals, interrupts_passed_to


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


def test_a_handler_that_a_program_sets_during_a_run_stays() -> None:
    def own(*_: object) -> None:
        """What the program does on Ctrl-C from now on."""

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interrupts_passed_to(lambda: None):
            signal.signal(signal.SIGINT, own)
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_passed_on_and_the_handler_comes_back() -> None:
    before, taken = signal.signal(signal.SIGINT, signal.default_int_handler), list[str]()
    try:
        with interrupts_passed_to(lambda: taken.append("Ctrl-C")):
            signal.raise_signal(signal.SIGINT)
        assert (taken, signal.getsignal(signal.SIGINT)) == (["Ctrl-C"], signal.default_int_handler)
    finally:
        signal.signal(signal.SIGINT, before)
