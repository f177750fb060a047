"""Numbers found by their value are those that comparing with each of them finds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.convergence.numbers import Numbers
from aeon_core.convergence.quantities import Quantity, derived, of_value, quantities

WRITTEN = ["5 km", "4.98", "about 5", "~ 5.3", "5%", "0.05", "1.234", "1,234", "577.000", "577000", "$12", "-4", "4"]
WRITTEN += ["3.5 million", "3456789", "3 May 2025", "3 May", "Monday", "14:30", "870", "two", "1e300", "0.001", "2e-9"]
WRITTEN += ["120%", "about 12%", "1.2", "0.12", "about 1.234", "1234", "1734", "3 thousand", "3499", "1e307%", "2e306"]
numbers = st.one_of(
    st.sampled_from(WRITTEN).map(quantities).filter(bool).map(lambda found: found[0]),
    st.floats(allow_nan=False).map(of_value),
    st.integers(-2000, 2000).map(of_value),
)
several = st.lists(numbers, max_size=12)


@given(several, numbers)
@example(list(quantities("5%")), quantities("500")[0])
@example(list(quantities("2e306%")), quantities("1e300")[0])
def test_a_number_is_had_by_those_it_is_a_rounding_of(known: list[Quantity], quantity: Quantity) -> None:
    assert Numbers(known).has(quantity) == any(quantity.same(number) for number in known)


@given(several, numbers)
def test_a_number_is_stated_by_those_that_are_roundings_of_it(known: list[Quantity], quantity: Quantity) -> None:
    assert Numbers(known).state(quantity) == any(number.same(quantity) for number in known)


@given(several, numbers)
@example(list(quantities("0%")), quantities("0")[0])
def test_the_places_are_those_of_the_same_numbers_in_order(known: list[Quantity], quantity: Quantity) -> None:
    expected = [place for place, number in enumerate(known) if quantity.same(number)]
    assert Numbers(known).places(quantity) == expected


@given(several, numbers)
def test_a_number_is_led_to_by_those_that_it_is_derived_from(known: list[Quantity], quantity: Quantity) -> None:
    assert Numbers(known).lead_to(quantity) == derived(quantity, known)


@pytest.mark.parametrize(
    ("said", "given_as", "same"),
    [
        ("5", "4.98", True),
        ("about 100", "105", True),
        ("5%", "0.05", True),
        ("577.000", "577000", True),
        ("5", "6", False),
    ],
    ids=["rounded", "rough", "percent", "grouped", "other"],
)
def test_a_number_is_recognised_however_it_is_written(said: str, given_as: str, same: bool) -> None:
    assert Numbers(quantities(given_as)).has(quantities(said)[0]) is same


@pytest.mark.parametrize("written", ["{}", "{}%", "{}.000", "about {}"], ids=["plain", "percent", "grouped", "rough"])
def test_of_many_numbers_only_those_nearby_are_compared(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    known = Numbers(number for n in range(1, 900) for number in quantities(written.format(n)))
    compared: list[Quantity] = []
    same = Quantity.same

    def counted(one: Quantity, other: Quantity) -> bool:
        compared.append(other)
        return same(one, other)

    monkeypatch.setattr(Quantity, "same", counted)
    assert 99 in known.places(of_value(100))
    assert len(compared) < 20


def test_no_numbers_have_none() -> None:
    empty: Iterable[Quantity] = ()
    assert not Numbers(empty).has(of_value(1))
    assert not Numbers(empty).lead_to(of_value(1))
