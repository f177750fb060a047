"""A run's budget: the most that a request may cost, and a ceiling that is checked before each call."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from aeon_core.errors import RunEnding, UsageError
from aeon_core.units import LEAST_SHOWN, money, up_to_four_decimals

_ZERO = Decimal(0)
_EXACT = Decimal("1e-9")
"""Amounts are kept to a billionth of a dollar; the cheapest token costs several."""

_WIDE = Context(prec=400)
"""A precision with room for every float."""
_WARN_SHARE = Decimal("0.8")

_FIXED_TOKENS = 600
"""What a provider adds to each request: its system prompt for tools or structured output, and the reply's opening."""
_MESSAGE_TOKENS = 16
"""The tokens of a chat template around one message or one tool call."""
_TOOL_TOKENS = 64
"""The tokens around one tool's definition."""
_TOKENS_PER_BYTE = 1 / 3.6
"""Typical of prose and JSON in English."""

_Price = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class PriceEntry(BaseModel):
    """A model's price in the configuration, in US dollars per million tokens."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    input: _Price
    """Per million tokens of a request."""
    output: _Price
    """Per million tokens of a reply."""


class CostCeilingReached(RunEnding):
    """The next call may cost more than the budget leaves: exit 4.

    `context` holds spent_usd, held_usd, reserved_usd (what the call may cost) and limit_usd.
    """

    exit_code = 4
    status: ClassVar[Literal["cost_ceiling"]] = "cost_ceiling"


def request_bytes(described: Mapping[str, Any]) -> int:
    """Return the number of UTF-8 bytes in a described request: system, messages, tools and schema."""
    texts = [described.get("system") or "", *described.get("messages", ()), *described.get("tools", ())]
    if described.get("schema") is not None:
        texts.append(described["schema"])
    return sum(map(json_bytes, texts))


def request_tokens_at_most(described: Mapping[str, Any]) -> int:
    """Return an upper bound of the described request's tokens, for any byte-level tokenizer.

    Such a tokenizer makes no more tokens than there are UTF-8 bytes; the margins cover what templates add.
    """
    messages = described.get("messages", ())
    turns = len(messages) + sum(len(message.get("tool_calls", ())) for message in messages)
    margin = _FIXED_TOKENS + _MESSAGE_TOKENS * turns + _TOOL_TOKENS * len(described.get("tools", ()))
    return request_bytes(described) + margin


def estimated_tokens(described: Mapping[str, Any], ratio: float | None = None) -> int:
    """Return an estimate of the described request's tokens.

    `ratio` is tokens per byte in an earlier call of the run: its input tokens divided by its `request_bytes`.
    """
    return math.ceil(request_bytes(described) * (_TOKENS_PER_BYTE if ratio is None else ratio))


def json_bytes(value: Any) -> int:
    """Return the number of UTF-8 bytes in a text, or in any other value as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return len(text.encode("utf-8", "surrogatepass"))


class Budget:
    """What a run has spent and may still spend; for one thread, one call at a time.

    Before each attempt of a call, its worst case is reserved; afterwards the reserve is settled with the cost. If the
    cost stays unknown (a timeout, an abort, a reply without usage), the reserve stays held, since it may have been
    charged. Without a limit it only counts. `warn_at_usd` defaults to 80 % of the limit. Raises UsageError for limits
    that are not amounts.
    """

    def __init__(self, limit_usd: float | None, warn_at_usd: float | None = None) -> None:
        self._asked_warning = None if warn_at_usd is None else _checked(warn_at_usd, "amount to warn at")
        self._warned = False
        self._spent = self._held = _ZERO
        self._open: Decimal | None = None
        self.limit_usd = limit_usd

    @property
    def limit_usd(self) -> float | None:
        """The ceiling in US dollars; None if there is none. Changing it may make another warning due."""
        return None if self._limit is None else float(self._limit)

    @limit_usd.setter
    def limit_usd(self, usd: float | None) -> None:
        self._limit = None if usd is None else _checked(usd, "budget")
        self._warned = self._warned and self._is_near

    @property
    def spent_usd(self) -> float:
        """The cost of all settled calls, in US dollars."""
        return float(self._spent)

    @property
    def held_usd(self) -> float:
        """The reserves of calls whose cost is unknown, including the one in flight, in US dollars."""
        return float(self._unsettled)

    @property
    def _unsettled(self) -> Decimal:
        return self._held + (self._open or _ZERO)

    def reserve(self, worst_case_usd: float) -> None:
        """Reserve the most that the next call may cost. Raises CostCeilingReached, and then reserves nothing.

        A reserve that is still open stays held.
        """
        worst_case = _amount(worst_case_usd, ROUND_CEILING)
        if self._limit is not None and self._spent + self._unsettled + worst_case > self._limit:
            raise CostCeilingReached(
                f"the next call may cost up to {_up(worst_case)}, {self.summary()}; raise it with --budget",
                spent_usd=self.spent_usd,
                held_usd=self.held_usd,
                reserved_usd=float(worst_case),
                limit_usd=float(self._limit),
            )
        self._held, self._open = self._unsettled, worst_case

    def settle(self, cost_usd: float | None, *, partly: bool = False) -> None:
        """Settle the last reserve with the cost of the call, in US dollars; 0 if nothing was sent.

        None keeps it held for good; `partly` keeps what is left of it, since the call may have cost more than is known.
        Without an open reserve the cost is only added.
        """
        cost = _ZERO if cost_usd is None else _amount(cost_usd, ROUND_HALF_EVEN)
        self._spent += cost
        if (cost_usd is None or partly) and self._open is not None:
            self._held += max(_ZERO, self._open - cost)
        self._open = None

    def state(self) -> dict[str, Any]:
        """Return the state between two calls, in US dollars, as plain JSON for `restore`."""
        return {
            "limit_usd": self.limit_usd,
            "spent_usd": self.spent_usd,
            "held_usd": self.held_usd,
            "warned": self._warned,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state from `state`."""
        self.limit_usd = state["limit_usd"]
        self._spent = _amount(state["spent_usd"], ROUND_HALF_EVEN)
        self._held = _amount(state["held_usd"], ROUND_CEILING)
        self._warned, self._open = state["warned"], None

    def summary(self) -> str:
        """Return what is spent and held, and of which budget, for the user."""
        # Rounded up, so that the amounts shown exceed the budget whenever the real ones do.
        limit = "" if self._limit is None else f" of the budget of {money(float(self._limit))}"
        held = f", {_up(self._unsettled)} reserved for calls of unknown cost" if self._unsettled else ""
        return f"{_up(self._spent)}{limit} spent{held}"

    def warning_due(self) -> bool:
        """Return True once, when the amount spent or held has reached the warning level."""
        due = self._is_near and not self._warned
        self._warned = self._warned or due
        return due

    @property
    def _is_near(self) -> bool:
        used = self._spent + self._unsettled
        return self._warn_at is not None and used > 0 and used >= self._warn_at

    @property
    def _warn_at(self) -> Decimal | None:
        if self._asked_warning is not None or self._limit is None:
            return self._asked_warning
        return self._limit * _WARN_SHARE


def _up(amount: Decimal) -> str:
    return up_to_four_decimals(amount.quantize(LEAST_SHOWN, ROUND_CEILING, _WIDE))


def _checked(usd: float, what: str) -> Decimal:
    """Return a limit that the user gave, rounded down. Raises UsageError."""
    number = isinstance(usd, int | float) and not isinstance(usd, bool)
    if not number or not math.isfinite(usd) or usd < 0:
        raise UsageError(
            f"the {what} {usd!r} is not an amount in US dollars; expected a number of at least 0, such as 1.5"
        )
    return _amount(usd, ROUND_FLOOR)


def _amount(usd: float, rounding: str) -> Decimal:
    if not math.isfinite(usd) or usd < 0:
        raise ValueError(f"{usd!r} is not an amount of money that can be spent")
    return Decimal(repr(usd)).quantize(_EXACT, rounding, _WIDE)
