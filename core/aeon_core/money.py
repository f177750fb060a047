"""Amounts of money as people read them."""

from __future__ import annotations

import math
from decimal import Decimal

LEAST_SHOWN = Decimal("0.0001")


def money(usd: float) -> str:
    """Return an amount in US dollars for people: "$1,204.50", "$1.38", below a dollar "$0.50" or "$0.0042".

    Only nothing is "$0.00"; what is too small to show is "<$0.0001". Raises ValueError for what is not finite.
    """
    if not math.isfinite(usd):
        raise ValueError(f"{usd!r} is not an amount of money")
    sign, size = ("-" if usd < 0 else ""), abs(usd)
    if 0 < size < LEAST_SHOWN:
        return f"{sign}<${LEAST_SHOWN}"
    return f"{sign}${size:,.2f}" if size >= 1 else f"{sign}{up_to_four_decimals(Decimal(repr(usd)).copy_abs())}"


def up_to_four_decimals(amount: Decimal) -> str:
    """Return an amount with as many decimals as a small one needs."""
    shown = f"{amount:,.4f}"
    return f"${shown.removesuffix('00')}"
