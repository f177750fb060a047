"""Ctrl-C while a command starts. Imports next to nothing, since it is to handle one during the other imports."""

from __future__ import annotations

import contextlib
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Timer


@contextlib.contextmanager
def interrupts_raised() -> Iterator[None]:
    """Raise KeyboardInterrupt also for a Ctrl-C that came while Python or pydantic cannot raise it, as during imports.

    Python drops one in a callback of an import or of the garbage collector, so it comes again, after 50 ms. In
    `__set_name__` Python 3.11 raises another error for it, and so does pydantic while it builds a class's validator.
    """
    again: Timer | None = None
    before = sys.unraisablehook

    def raise_again(dropped: sys.UnraisableHookArgs) -> None:
        nonlocal again
        if dropped.exc_type is not KeyboardInterrupt:
            before(dropped)
            return
        import threading

        # Not at once, since it would be dropped in here too; if it is, this is called again.
        again = threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))
        again.daemon = True
        again.start()

    sys.unraisablehook = raise_again
    try:
        # msgspec and jiter import it while they load. A Ctrl-C in that moment would be lost, and they crash later.
        import datetime  # noqa: F401

        yield
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt) or str(error).rstrip().endswith("KeyboardInterrupt:"):
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = before
        if again is not None:
            again.cancel()
        # After a Ctrl-C in an `exec`, as dataclasses use, `python -m` dies of it unless another `exec` succeeds.
        exec("")  # noqa: S102
