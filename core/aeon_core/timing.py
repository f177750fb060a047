"""The stamps of a journal: durations between them, and a person's time of day."""

from __future__ import annotations

from datetime import datetime

from aeon_core.escape import escape_controls


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one ISO 8601 stamp to another, never negative."""
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def seconds_after(start: str, end: str) -> float:
    """Return what `seconds_between` does, 0 where one of the stamps is none: for journals that are read leniently."""
    try:
        return seconds_between(start, end)
    except (TypeError, ValueError):
        return 0.0


def milliseconds_between(start: str, end: str) -> float:
    """Return the milliseconds from one ISO 8601 stamp to another, never negative."""
    return round(seconds_between(start, end) * 1000, 3)


def span(milliseconds: float | None) -> str:
    """Return a short time span, as `340 ms` or `2.1 s`; empty where it is not known."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


def local_time(stamp: str, pattern: str) -> str:
    """Return a journal's UTC stamp in the person's time zone; as it is, on one line, where it is none."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime(pattern)
    except (ValueError, OverflowError, OSError):
        return escape_controls(" ".join(stamp[:16].split()))
