"""The command line (contract: Commands): it runs one command; without one, it opens the app.

Nothing is imported here that `--help` does not need.
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from aeon_tui.app import AeonApp


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code. Prints errors as one line; a traceback only with `--debug`."""
    arguments = sys.argv[1:] if argv is None else argv
    if argv is None:
        # The first that is registered runs last; then Python takes a while to remove its modules.
        for number in (signal.SIGINT, signal.SIGTERM):
            atexit.register(signal.signal, number, signal.SIG_IGN)
    # Objects made at startup stay alive, so the collector can skip them. The app lowers this later.
    gc.set_threshold(200_000, 20, 20)
    _open_standard_streams()
    try:
        code = _dispatch(arguments)
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 0
    except (KeyboardInterrupt, Exception) as error:
        before = _on_interrupt(signal.SIG_IGN)
        if "--debug" in arguments and isinstance(error, Exception):
            import traceback

            traceback.print_exc()
        code = _explain(error)
        if argv is not None:
            _on_interrupt(before)
    if argv is None:
        # It loses what is not printed yet.
        _on_interrupt(lambda *_: os._exit(code or 1))
    code = _flush(code)
    if argv is None:
        # From now on they do not change the exit code, but end what the process still waits for.
        for number in (signal.SIGINT, signal.SIGTERM):
            _on_interrupt(lambda *_: os._exit(code), number)
    return code


def _on_interrupt(handler: Any, number: signal.Signals = signal.SIGINT) -> Any:
    """Set the handler of Ctrl-C and return the one before; None on a thread that cannot set it, or to set none."""
    try:
        return signal.signal(number, handler) if handler is not None else None
    except ValueError:
        return None


def _dispatch(arguments: list[str]) -> int:
    from importlib import import_module

    from aeon_tui.cli.parser import build_parser

    args = build_parser(next(iter(arguments), None)).parse_args(arguments)
    # After the parser: `--help` needs nothing from the core.
    from aeon_core.interrupts import interrupts_raised

    with interrupts_raised():
        from aeon_core.paths import working_directory
        from aeon_core.process import hide_process

        hide_process()
        working_directory()
        module, _, function = args.module.partition(":")
        code: int = getattr(import_module(f"aeon_tui.cli.{module}"), function or "execute")(args)
    return code


def open_app(args: Namespace) -> int:
    """Open the app on its run browser and return its exit code. Raises UsageError without a terminal."""
    from aeon_core.errors import UsageError
    from aeon_tui.cli import options
    from aeon_tui.cli.output import has_screen
    from aeon_tui.platform.terminal import is_served

    loaded = options.load_light(args)
    if not (is_served() or has_screen()):
        raise UsageError("the app needs a terminal; without one, use `aeon-tui run --headless` or `aeon-tui runs`")
    from aeon_tui.app import run_app

    def prepare(app: AeonApp) -> None:
        app.apply_settings(loaded.app)
        if loaded.ignored and not loaded.trust.allowed:
            app.untrusted = loaded.trust

    return run_app(options.runs_dir_of(loaded), None, lambda: options.load(args), prepare)


def _explain(error: BaseException) -> int:
    from aeon_core.errors import AeonError

    # While the parser is imported, Python 3.11 raises another error for one in `__set_name__`.
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        return _report("interrupted", 1)
    if isinstance(error, AeonError):
        return _report(error.message, error.exit_code)
    if isinstance(error, OSError) and error.errno == errno.EMFILE:
        return _report("the limit of open files is reached; raise what `ulimit -n` prints, or lower --jobs", 1)
    if isinstance(error, OSError):
        what = f"{error.filename!r}: " if error.filename is not None else ""
        return _report(f"{what}{error.strerror or error}; use --debug for the traceback", 1)
    return _report(f"internal error: {type(error).__name__}: {error}; use --debug for the traceback", 1)


def _report(message: str, code: int) -> int:
    from aeon_core.escape import escape_controls
    from aeon_core.redaction import redact_text

    if sys.stderr is not None:
        try:
            print(f"aeon-tui: {escape_controls(' '.join(redact_text(message).split()))}", file=sys.stderr)
        except (OSError, ValueError):
            return code
    return code


def _open_standard_streams() -> None:
    """Fill closed standard descriptors; otherwise a journal could be opened as one and receive what is printed.

    What the terminal's encoding lacks, typed or printed, is replaced.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            # Also for the processes that this one starts, such as those of a batch.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")


def _flush(code: int) -> int:
    """Flush the buffers. A reader that has gone is no error; a full disk is."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            # The interpreter flushes again at exit, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            if stream is sys.stdout and not isinstance(error, BrokenPipeError):
                code = _report(f"cannot write the output: {error.strerror}", code or 1)
    return code
