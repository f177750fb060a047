"""Text of MCP servers, which is foreign: made plain for messages, and read from their standard error into the log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import TextIO

from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text
from aeon_core.redaction import REDACTED, redact_text

logger = logging.getLogger("aeon")

_CHUNK = 65_536
_MAX_LINE = 4_000
_MAX_SHOWN = 300
_LEAST_SECRET = 6


class Words:
    """Makes foreign text fit for a message; a server's own secrets do not get into one, even where it echoes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first: one may be a part of another. Short ones, such as `1`, are no secrets.
        self._secrets = sorted((value for value in secrets if len(value) >= _LEAST_SECRET), key=len, reverse=True)

    def __call__(self, text: str, limit: int = _MAX_SHOWN) -> str:
        """Return one line, redacted, control characters visible, of at most `limit` characters."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        line = escape_controls(redact_text(clean_text(" ".join(text[: 4 * limit].split()))))
        return line if len(line) <= limit else f"{line[:limit]}…"

    def of(self, error: BaseException) -> str:
        """Return an error in one line of words."""
        return self(str(error)) or type(error).__name__


words = Words()
"""For text that comes from no server with secrets."""


class ErrorOutput:
    """What one server's process writes to its standard error: into the log, the last line kept."""

    def __init__(self, server: str, words: Words) -> None:
        self._server = server
        self._words = words
        self._read_end = -1
        self._rest = b""
        self.last = ""
        """The last line that says anything, for messages."""

    def open(self) -> TextIO:
        """Return the file to hand to the process; the running loop reads what arrives. The caller closes it."""
        self._read_end, write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        asyncio.get_running_loop().add_reader(self._read_end, self._read)
        return os.fdopen(write_end, "w")

    def close(self) -> None:
        """Take what is there still, and stop reading."""
        while self._read_end >= 0 and self._read():
            pass
        self._stop()

    def _read(self) -> bool:
        try:
            chunk = os.read(self._read_end, _CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self._take(self._rest)
            self._rest = b""
            self._stop()
            return False
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._take(line)
        self._rest = rest[:_MAX_LINE]
        return True

    def _take(self, line: bytes) -> None:
        if said := self._words(line.decode("utf-8", "replace")):
            self.last = said
            logger.debug("MCP server %r: %s", self._server, said)

    def _stop(self) -> None:
        if self._read_end >= 0:
            asyncio.get_running_loop().remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1
