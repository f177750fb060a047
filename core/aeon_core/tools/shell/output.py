"""What a command writes: head and tail for the model, the whole in a file, and never more memory than a bound."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

Stream = Literal["stdout", "stderr"]

SHOWN_LIMIT = 100 * 1024
"""The most bytes of a stream that the model gets (REQ-026)."""
WHOLE_LIMIT = 50 * 1000 * 1000
"""The most bytes that a command may write before it is ended."""


class Output:
    """Collects both streams of one command.

    A stream of up to `shown` bytes is kept whole; of a longer one its first and its last half of that. As soon as one
    is longer, everything goes to a file as well, in order of arrival, in the folder that `folder` returns.
    """

    def __init__(self, folder: Callable[[], Path], shown: int = SHOWN_LIMIT, whole: int = WHOLE_LIMIT) -> None:
        self._folder = folder
        self._whole = whole
        self._streams: dict[Stream, _Ends] = {"stdout": _Ends(shown), "stderr": _Ends(shown)}
        self._early: list[bytes] = []
        self._descriptor: int | None = None
        self.path: Path | None = None
        """The file with the whole output, once there is one."""
        self.problem: str | None = None
        """Why there is no such file, or not the whole output in it."""

    @property
    def truncated(self) -> bool:
        """Whether a stream is longer than what is shown of it."""
        return any(stream.left_out for stream in self._streams.values())

    @property
    def is_full(self) -> bool:
        """Whether the command has written more than it may."""
        return sum(stream.total for stream in self._streams.values()) > self._whole

    def add(self, stream: Stream, chunk: bytes) -> None:
        """Take what a stream gave next. What goes beyond the bound is dropped."""
        chunk = chunk[: max(0, self._whole + 1 - sum(one.total for one in self._streams.values()))]
        self._streams[stream].add(chunk)
        if self._descriptor is None and self.problem is None:
            self._early.append(chunk)
            if self.truncated:
                self._spill()
        else:
            self._write(chunk)

    def text(self, stream: Stream) -> str:
        """Return a stream as text, invalid UTF-8 replaced; where something is left out, a line says how much."""
        return self._streams[stream].text("" if self.path is None else f"; the whole output is in {self.path}")

    def close(self) -> None:
        """Close the file; what was collected stays readable."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _spill(self) -> None:
        early, self._early = self._early, []
        try:
            self._descriptor, name = tempfile.mkstemp(prefix="output-", suffix=".log", dir=self._folder())
        except OSError as error:
            self.problem = f"the whole output could not be kept: {error.strerror}"
            return
        self.path = Path(name)
        for chunk in early:
            self._write(chunk)

    def _write(self, chunk: bytes) -> None:
        if self._descriptor is None:
            return
        try:
            while chunk:
                chunk = chunk[os.write(self._descriptor, chunk) :]
        except OSError as error:
            self.problem = f"the file with the whole output ends early: {error.strerror}"
            self.close()


class _Ends:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def left_out(self) -> int:
        """How many bytes are not shown."""
        return max(0, self.total - 2 * self._half)

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: -self._half]

    def text(self, hint: str) -> str:
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        # A character cut in two by us is left out, not shown as broken.
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        start = next((at for at in range(4) if self._tail[at] & 0xC0 != 0x80), 0)
        tail = self._tail[start:].decode("utf-8", "replace")
        return f"{head}\n[TRUNCATED] {self.left_out} bytes left out{hint}\n{tail}"
