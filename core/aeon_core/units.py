"""Amounts of money, time spans and a journal's timestamps, formatted for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal

from aeon_core.escape import escape_controls

LEAST_SHOWN = Decimal("0.0001")


def money(usd: float) -> str:
    """Return an amount in US dollars for people: "$1,204.50", "$1.38", below a dollar "$0.50" or "$0.0042".

    Only zero is "$0.00"; an amount too small to show is "<$0.0001". Raises ValueError for what is not finite.
    """
    if not math.isfinite(usd):
        raise ValueError(f"{usd!r} is not an amount of money")
    sign, size = ("-" if usd < 0 else ""), abs(usd)
    if 0 < size < LEAST_SHOWN:
        return f"{sign}<${LEAST_SHOWN}"
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}{up_to_four_decimals(Decimal(repr(usd)).copy_abs())}"


def up_to_four_decimals(amount: Decimal) -> str:
    """Return an amount with up to four decimals, as a small one needs."""
    shown = f"{amount:,.4f}"
    return f"${shown.removesuffix('00')}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 repair`, `3 repairs` or `2 passes`."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{number:,} {noun}{ending}"


def utc_timestamp() -> str:
    """Return the current time, ISO 8601 in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one ISO 8601 timestamp to another, never negative."""
    return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def seconds_after(start: str, end: str) -> float:
    """Return the same, but 0 if one of them is not a timestamp, for journals that are read leniently."""
    try:
        return seconds_between(start, end)
    except (TypeError, ValueError):
        return 0.0


def milliseconds_between(start: str, end: str) -> float:
    """Return the milliseconds from one ISO 8601 timestamp to another, never negative."""
    return round(seconds_between(start, end) * 1000, 3)


def span(milliseconds: float | None) -> str:
    """Return a short time span, as `340 ms` or `2.1 s`; empty if it is not known."""
    if milliseconds is None:
        return ""
    return f"{milliseconds:.0f} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:.1f} s"


def local_time(stamp: str, pattern: str) -> str:
    """Return a journal's UTC timestamp in the person's time zone; any other text as it is, on one line."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime(pattern)
    except (ValueError, OverflowError, OSError):
        return escape_controls(" ".join(stamp[:16].split()))
