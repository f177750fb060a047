"""Text output: coloured on a terminal, plain in a pipe. Foreign text is escaped and never markup."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from aeon_core.errors import AeonError
from aeon_core.escape import escape_controls, escape_json
from aeon_core.process import is_terminal, logged_to

if TYPE_CHECKING:
    from argparse import Namespace

    from rich.console import Console

StyledText = str | tuple[str, str]
"""Text, or text and a rich style."""

STATUS_STYLES = {
    "complete": "green",
    "completed": "green",
    "converged": "green",
    "accepted": "green",
    "failed": "bold red",
    "aborted": "yellow",
    "interrupted": "yellow",
    "stopped": "yellow",
    "running": "cyan",
    "pending": "dim",
    "invalid": "dim",
    "not_converged": "yellow",
    "ttl_expired": "yellow",
    "cost_ceiling": "yellow",
}


class OutputStream:
    """A stream to print on. If its reader has gone, or never existed, text is dropped.

    So is progress on stderr that a full disk cannot take; a result on stdout that cannot be written is an error.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and not stream.closed else None
        self._console = _console(self._stream)

    @property
    def width(self) -> int | None:
        """The columns of the terminal; None in a pipe, where lines are never shortened."""
        return None if self._console is None else self._console.width

    def line(self, *parts: StyledText) -> None:
        """Print one line; control characters, including line breaks, are made visible."""
        self._print([(escape_controls(text), style) for text, style in map(_styled, parts)])

    def warning(self, text: str) -> None:
        """Print one line that begins with `warning:`."""
        self.line(("warning: ", "yellow"), text)

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print one line of prose indented by `indent` blanks; on a narrow terminal, wrap it at words."""
        if self._console is None or indent >= self._console.width // 2:
            self.line(" " * indent, (text, style))
            return
        from rich.padding import Padding
        from rich.text import Text

        try:
            self._console.print(Padding(Text(escape_controls(text), style), (0, 0, 0, indent), expand=False))
        except OSError as error:
            self._lost(error)

    def block(self, text: str, style: str = "", indent: str = "") -> None:
        """Print a text of several lines, each after `indent`."""
        for line in escape_controls(text.replace("\r\n", "\n"), keep="\n\t").split("\n"):
            self._print([(indent, ""), (line, style)] if line else [("", "")])

    def confirms(self, question: str) -> bool:
        """Ask the person at the terminal, and return whether the answer was yes."""
        self.line(f"{question} [y/N]")
        return sys.stdin.readline().strip().casefold() in ("y", "yes")

    def json(self, value: Any) -> None:
        """Print plain JSON, indented."""
        self._write(escape_json(json.dumps(value, indent=2, ensure_ascii=not self._is_utf8())) + "\n")

    def _print(self, parts: list[tuple[str, str]]) -> None:
        if self._console is None:
            self._write("".join(text for text, _ in parts).rstrip() + "\n")
            return
        from rich.text import Text

        try:
            self._console.print(Text.assemble(*parts), soft_wrap=True)
        except OSError as error:
            self._lost(error)

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        stream, self._stream, self._console = self._stream, None, None
        if stream is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise AeonError(f"cannot write the output: {error.strerror}") from None

    def _is_utf8(self) -> bool:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        return encoding.lower().replace("-", "") == "utf8"


def stdout() -> OutputStream:
    """Return the output for a command's result."""
    return OutputStream(sys.stdout)


def stderr() -> OutputStream:
    """Return the output for progress and warnings."""
    return OutputStream(sys.stderr)


def has_screen() -> bool:
    """Return whether standard input and output are terminals, which the app needs."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def in_app(args: Namespace) -> bool:
    """Return whether the command opens the app: at a terminal, unless an option says otherwise."""
    return not args.headless and not args.json and has_screen()


def _styled(part: StyledText) -> tuple[str, str]:
    return (part, "") if isinstance(part, str) else part


def _console(stream: TextIO | None) -> Console | None:
    if stream is None or not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return None
    from rich.console import Console

    return Console(file=stream, force_terminal=True, markup=False, highlight=False, emoji=False)


class _Warnings(logging.Handler):
    def __init__(self, out: OutputStream) -> None:
        super().__init__(logging.WARNING)
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        self._out.warning(self.format(record))


def warnings_on(out: OutputStream) -> contextlib.AbstractContextManager[None]:
    """Print Aeon's warnings meanwhile, one line each, such as why a judge's advice is left out."""
    return logged_to(_Warnings(out))


@contextlib.contextmanager
def diagnostics(debug: bool) -> Iterator[None]:
    """Log to stderr with --debug, otherwise nowhere: what users need is in the records."""
    handler = logging.StreamHandler() if debug else logging.NullHandler()
    # Nothing else says why a collector gets no traces.
    exporters = logging.getLogger("opentelemetry")
    exporters.addHandler(handler)
    try:
        with logged_to(handler):
            yield
    finally:
        exporters.removeHandler(handler)
