"""The command line `system2`, also `python -m system2` (contract: system2).

The workflow is imported after the options are parsed: `--help` does not need it.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any, NoReturn, TextIO

OLDEST_PYTHON = (3, 11)
EPILOG = (
    "Exit code: 0 all gates approved and nothing left open, 1 aborted, failed or something left open, 2 bad arguments "
    "or nobody to decide at the gates, 3 no usable model or rejected credentials, 4 cost ceiling reached."
)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit code; an error is one line on stderr."""
    # Before any import of ours: an older Python cannot read those modules (REQ-142).
    if sys.version_info < OLDEST_PYTHON:
        found, oldest = (".".join(map(str, version[:2])) for version in (sys.version_info, OLDEST_PYTHON))
        sys.stderr.write(f"system2: needs Python {oldest} or newer, this is {found}; run it with a newer one\n")
        return 2
    code = 1
    try:
        from aeon_core.interrupts import interrupts_raised

        with interrupts_raised():
            args = parse_arguments(argv)
            from system2.command import execute

            code = execute(args)
            _flush(sys.stderr)
    except KeyboardInterrupt:
        # While it starts.
        sys.stderr.write("system2: interrupted\n")
    except SystemExit as leave:
        # After `--help` or wrong options.
        code = int(leave.code or 0)
        raise
    finally:
        if argv is None:
            import atexit
            import signal

            # A Ctrl-C or a termination while Python exits does not change the exit code.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda *_: os._exit(code))
                atexit.register(signal.signal, number, signal.SIG_IGN)
    return code


def _parser() -> ArgumentParser:
    import argparse

    class Parser(argparse.ArgumentParser):
        def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
            """Return the options; for an unknown one, exit with 2 and suggest the nearest name."""
            parsed, rest = self.parse_known_args(args, namespace)
            if rest:
                from aeon_core.suggest import unknown_argument

                self.error(unknown_argument(rest[0], self._option_string_actions))
            return parsed

        def error(self, message: str) -> NoReturn:
            """Exit with 2 and one line."""
            self.exit(2, f"system2: {message}; see `{self.prog} --help`\n")

        def _print_message(self, message: str, file: Any = None) -> None:
            """Print help or an error. A reader that has gone is no error; unlike for argparse, a full disk is."""
            if (error := _flush(file, message)) and file is sys.stdout and not isinstance(error, BrokenPipeError):
                self.exit(1, f"system2: cannot write the output: {error.strerror}\n")

    about = "Run a workflow of thirteen agents from scope to reviewed change. You decide at each gate."
    return Parser(prog="system2", description=about, epilog=EPILOG)


def parse_arguments(argv: list[str] | None) -> Namespace:
    """Parse `argv`, or the process's arguments if it is None; wrong ones exit with 2 and one line on stderr."""
    parser = _parser()
    add = parser.add_argument
    add("task", nargs="?", help="the task")
    add("--unsafe-bash", action="store_true", help="run plain commands without asking, except blocked ones")
    add("--auto-approve", action="store_true", help="approve every gate whose work was produced, without asking")
    add("--config", metavar="PATH", help="settings file (default: .system2/config.yml in the project)")
    add("--project-root", metavar="PATH", help="project folder (default: the git root, then the working directory)")
    add("--log-format", metavar="text|json", choices=("text", "json"), help="format of the log (default: text)")
    add("--log-file", metavar="PATH", help="file for the log (default: stderr)")
    add("--verbose", action="store_true", help="log debugging details too")
    add("--model", metavar="PROVIDER:NAME", help="model to use instead of Bedrock's, such as simulated:default")
    add("--base-url", metavar="URL", help="URL of another server with the provider's protocol")
    add("--init", action="store_true", help="copy the shipped agents that the project lacks into its .claude/agents")
    text = "trust this project's files for this command only: they can run commands, redirect requests or widen access"
    add("--trust-project", action="store_true", help=text)
    add("--resume", metavar="RUN", help="continue a workflow: its id, its journal or transcript, or 'last'")
    text = "folder for journals (default: where `aeon-tui runs` finds them)"
    add("--runs-dir", metavar="PATH", help=text)
    text = "without a terminal: seconds to wait for a decision from another terminal (aeon-tui decide)"
    add("--wait", metavar="SECONDS", default="0", help=text)
    text = "what to do with the documents that an earlier workflow left in spec/ (default: ask)"
    add("--spec", metavar="continue|replace", choices=("continue", "replace"), help=text)
    return parser.parse_args(argv)


def _flush(stream: TextIO | None, text: str = "") -> OSError | None:
    """Write the text and what is buffered; return why the stream, which then drops everything, cannot take it."""
    if stream is None or stream.closed:
        return None
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # The interpreter flushes again at exit, and a failure there replaces the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return error
    return None


if __name__ == "__main__":
    sys.exit(main())
