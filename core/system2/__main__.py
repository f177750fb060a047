"""`python -m system2 "task"`, and the script `system2`."""

from __future__ import annotations

import sys

OLDEST_PYTHON = (3, 11)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code; an error is one line on stderr."""
    # Before any import of ours: an older Python cannot read those modules (REQ-142).
    if sys.version_info < OLDEST_PYTHON:
        found, oldest = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST_PYTHON))
        sys.stderr.write(f"system2: needs Python {oldest} or newer, this is {found}; run it with a newer one\n")
        return 2
    try:
        from aeon_core.interrupts import interrupts_raised

        with interrupts_raised():
            from system2.command import execute, parse_arguments

            code = execute(parse_arguments(argv))
    except KeyboardInterrupt:
        # While it starts.
        sys.stderr.write("system2: interrupted\n")
        code = 1
    if argv is None:
        import atexit
        import os
        import signal

        # A Ctrl-C while Python exits does not change the exit code.
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    return code


if __name__ == "__main__":
    sys.exit(main())
