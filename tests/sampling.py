"""How much of a large matrix a run of the tests covers: a few cases by default, all of them with `./dev test --all`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

FEW_EXAMPLES = 25
"""Examples that Hypothesis tries of each property by default."""
scope = {"all": False}
"""Set by `tests/conftest.py` from the markers that are selected."""


def sample(cases: Iterable[Any], kept: Callable[[Any], bool] | int = 1, *, rows: bool = False) -> list[Any]:
    """Return the cases as parameters: those that are not `kept` are marked exhaustive, and made only where those run.

    `kept` tells whether a case stays in the default run, or is a number of cases, taken evenly from first to last. With
    `rows`, a case is a tuple of the values of several parameters.
    """
    listed = list(cases)
    if isinstance(kept, int):
        last = len(listed) - 1
        places = {round(last * number / max(1, kept - 1)) for number in range(min(kept, len(listed)))}
        chosen = [place in places for place in range(len(listed))]
    else:
        chosen = [kept(case) for case in listed]
    # pytest makes an item of each case before it deselects any, in each worker.
    pairs = zip(listed, chosen, strict=True)
    return [case if stays else _exhaustive(case, rows) for case, stays in pairs if stays or scope["all"]]


def examples(number: int) -> int:
    """Return how many examples of a property to try: all of them only with `--all`."""
    return number if scope["all"] else min(number, FEW_EXAMPLES)


def each(cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Make one test of a function that takes a case, or the values of a tuple; a failure names the case."""
    listed = list(cases)
    assert listed

    def over_all(test: Callable[..., None]) -> Callable[[], None]:
        def run() -> None:
            for case in listed:
                try:
                    test(*case) if isinstance(case, tuple) else test(case)
                except BaseException as error:
                    error.add_note(f"case: {case!r}")
                    raise

        # Not functools.wraps: pytest would take the parameters of the wrapped function for fixtures.
        run.__name__, run.__module__, run.__doc__ = test.__name__, test.__module__, test.__doc__
        return run

    return over_all


def _exhaustive(case: Any, rows: bool) -> Any:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=(*case.marks, pytest.mark.exhaustive), id=case.id)
    return pytest.param(*(case if rows else (case,)), marks=pytest.mark.exhaustive)
