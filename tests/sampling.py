"""A few cases of a matrix for every run of the tests, the rest for `./dev test --all`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def sample(cases: Iterable[Any], kept: Callable[[Any], bool] | int = 1) -> list[Any]:
    """Return the cases as parameters, those that are not `kept` marked exhaustive.

    `kept` tells whether a case stays in the default run, or is a number of cases, taken evenly from first to last.
    """
    listed = list(cases)
    if isinstance(kept, int):
        last = len(listed) - 1
        places = {round(last * number / max(1, kept - 1)) for number in range(min(kept, len(listed)))}
        chosen = [place in places for place in range(len(listed))]
    else:
        chosen = [kept(case) for case in listed]
    return [case if stays else _exhaustive(case) for case, stays in zip(listed, chosen, strict=True)]


def _exhaustive(case: Any) -> Any:
    values = case.values if hasattr(case, "values") and hasattr(case, "marks") else None
    if values is not None:
        return pytest.param(*values, marks=(*case.marks, pytest.mark.exhaustive), id=case.id)
    several = case if isinstance(case, tuple) and not hasattr(case, "_fields") else (case,)
    return pytest.param(*several, marks=pytest.mark.exhaustive)
