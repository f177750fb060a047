"""Durations between two stamps of the journal."""

from __future__ import annotations

from datetime import datetime


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one ISO 8601 stamp to another, never negative."""
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def milliseconds_between(start: str, end: str) -> float:
    """Return the milliseconds from one ISO 8601 stamp to another, never negative."""
    return round(seconds_between(start, end) * 1000, 3)
