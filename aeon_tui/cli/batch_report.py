"""What a batch tells a person: a line as each run ends, and at the end one table with the totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from aeon_core.journal.values import brief
from aeon_tui.cli.output import STATUS_STYLES, Output

ID_CELLS = 40
REASON_CELLS = 160
NOTHING = "–"

Result = dict[str, Any]


class BatchReport:
    """Prints the progress of a batch of `total` tasks, and its table."""

    def __init__(self, out: Output, total: int) -> None:
        self._out = out
        self._total = total
        self._before = 0
        self._known = 0

    def result(self, result: Result) -> None:
        """Print one task's result; those known before anything ran are one line together."""
        self._known += 1
        if result["ended"] == "before":
            self._before += 1
            return
        self._told_before()
        parts = [_passes(result), _cost(result), _time(result)]
        status = result["status"]
        self._out.line(
            (f"[{self._known}/{self._total}] ", "dim"),
            (_id(result), "bold"),
            " · ",
            (_words(status), STATUS_STYLES.get(status, "")),
            *(f" · {part}" for part in parts if part != NOTHING),
            f" · {brief(str(_reason(result)), REASON_CELLS)}" if _reason(result) else "",
        )

    def table(self, results: Sequence[Result]) -> None:
        """Print id, status, passes, cost and time of every task, and the totals."""
        self._told_before()
        rows = [(_id(each), _words(each["status"]), _passes(each), _cost(each), _time(each)) for each in results]
        heads = ("id", "status", "passes", "cost", "time")
        widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
        self._out.line((_aligned(heads, widths), "bold"))
        for row, each in zip(rows, results, strict=True):
            self._out.line((_aligned(row, widths), STATUS_STYLES.get(each["status"], "")))
        self._out.line(_totals(results))

    def _told_before(self) -> None:
        if self._before:
            self._out.line((f"{self._before} of {self._total} tasks had already ended", "dim"))
            self._before = 0


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*left, *right])


def _totals(results: Sequence[Result]) -> str:
    counts = Counter(_words(each["status"]) for each in results)
    costs = [each["cost_usd"] for each in results if each["cost_usd"] is not None]
    unpriced = sum(1 for each in results if each["ended"] is not None and each["cost_usd"] is None)
    tasks = f"{len(results)} {'task' if len(results) == 1 else 'tasks'}"
    parts = [
        f"{tasks}: {', '.join(f'{number} {status}' for status, number in counts.most_common())}",
        f"${sum(costs):.4f}" + (f", {unpriced} without a known price" if unpriced else ""),
        f"{sum(each['seconds'] or 0.0 for each in results):.1f} s of runs",
    ]
    if any(each["status"] == "aborted" for each in results):
        parts.append("run the command again to continue the aborted ones")
    return " · ".join(parts)


def _id(result: Result) -> str:
    return brief(result["id"], ID_CELLS)


def _words(status: str) -> str:
    return status.replace("_", " ")


def _reason(result: Result) -> Any:
    return (result["error"] or {}).get("message")


def _passes(result: Result) -> str:
    if result["ended"] is None:
        return NOTHING
    return f"{result['passes']} {'pass' if result['passes'] == 1 else 'passes'}"


def _cost(result: Result) -> str:
    return NOTHING if result["cost_usd"] is None else f"${result['cost_usd']:.4f}"


def _time(result: Result) -> str:
    return NOTHING if result["seconds"] is None else f"{result['seconds']:.1f} s"
