"""A program in a real terminal: a pty whose other end is read all the time, and what was on it when."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

SIZE = (120, 40)
SAMPLE_SECONDS = 0.1
_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-9;:?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|P[^\x1b]*\x1b\\|[=>()][0-9A-Z]?)"
)
_SIGN = 64
"""Bytes of a piece that may be the beginning of a sign."""
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Terminal:
    """Runs a command in a terminal of its own and reads what it paints, with the time of each piece."""

    def __init__(self, command: Sequence[str], size: tuple[int, int] = SIZE) -> None:
        self.painted: list[tuple[float, bytes]] = []
        """Monotonic seconds, and the bytes as they came."""
        self.samples: list[tuple[float, float, int]] = []
        """Monotonic seconds, seconds of processor time so far, bytes in memory."""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.execvp(command[0], list(command))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        next_sample = 0.0
        while True:
            ready, _, _ = select.select([self._fd], [], [], SAMPLE_SECONDS)
            now = time.monotonic()
            if ready:
                try:
                    data = os.read(self._fd, 1 << 18)
                except OSError:
                    return
                if not data:
                    return
                self.painted.append((now, data))
            if now >= next_sample:
                next_sample = now + SAMPLE_SECONDS
                with contextlib.suppress(OSError, IndexError):
                    self.samples.append((now, *usage(self.pid)))

    def type(self, keys: bytes) -> float:
        """Type keys; return when."""
        now = time.monotonic()
        os.write(self._fd, keys)
        return now

    def seen_after(self, moment: float, sign: bytes) -> float | None:
        """Return when a sign, a pattern with its escape sequences, was first painted after a moment; None if never."""
        before, pattern = b"", re.compile(sign)
        for when, data in self.painted[self._first_after(moment) :]:
            if pattern.search(before + data):
                return when
            before = data[-_SIGN:]
        return None

    def _first_after(self, moment: float) -> int:
        index = len(self.painted)
        while index and self.painted[index - 1][0] >= moment:
            index -= 1
        return index

    def wait_for(self, sign: bytes, seconds: float, after: float = 0.0) -> float:
        """Return when a sign has been painted. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (when := self.seen_after(after, sign)) is not None:
                return when
            time.sleep(0.001)
        raise TimeoutError(f"{sign!r} was not painted within {seconds} s")

    def found(self, pattern: re.Pattern[bytes]) -> Iterator[tuple[float, bytes]]:
        """Yield what a pattern's first group has matched in the text, the last of each piece, with the time."""
        for when, data in list(self.painted):
            matches = pattern.findall(_ESCAPES.sub(b"", data))
            if matches:
                yield when, matches[-1]

    def cpu(self, began: float, ended: float) -> float:
        """Return the share of one core that was used between two moments."""
        inside = [(when, cpu) for when, cpu, _ in self.samples if began <= when <= ended]
        if len(inside) < 2:
            return 0.0
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])

    def memory(self, began: float, ended: float) -> tuple[int, int]:
        """Return the bytes in memory at a moment, and the most until another."""
        inside = [memory for when, _, memory in self.samples if began <= when <= ended]
        return (inside[0], max(inside)) if inside else (0, 0)

    def close(self) -> None:
        """End the program."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._reader.join(2)
        os.close(self._fd)


def usage(pid: int) -> tuple[float, int]:
    """Return a process's seconds of processor time, and its bytes in memory."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE


def oldest(shown: Sequence[tuple[float, float]]) -> list[float]:
    """Return how old each shown state was when the next one took its place: shown at, and of which moment."""
    return [later[0] - earlier[1] for earlier, later in pairwise(shown)]


def at(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of them is; 0 for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
