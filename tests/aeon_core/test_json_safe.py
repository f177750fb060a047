"""Foreign values become plain JSON, or are refused; secrets stay out (Decision 2 of the design)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.json_safe import MAX_DEPTH, NotJsonSafeError, clean_text, json_safe, parse_json

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(), max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(st.integers(), max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(values)
def test_plain_values_are_copied_and_valid_utf8(value: Any) -> None:
    made = json_safe(value)
    text = json.dumps(made, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode("utf-8")) == made
    assert json_safe(made) == made
    if isinstance(value, (list, dict)):
        assert made is not value


def nest(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_bounded_and_cycles_are_refused() -> None:
    assert json_safe(nest(MAX_DEPTH)) == nest(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 5000):
        with pytest.raises(NotJsonSafeError, match="nested"):
            json_safe(nest(depth))
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotJsonSafeError):
        json_safe(loop)
    with pytest.raises(NotJsonSafeError, match="object"):
        json_safe({"x": object()})


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "1e999", "[" * 5000, '{"a":' * 5000, "", "{", '{"a":1}}'])
def test_non_json_values_are_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_json(text)
    assert str(caught.value)


def test_a_number_that_python_cannot_read_is_refused_in_plain_words() -> None:
    with pytest.raises(ValueError, match=r"^a number of 5,000 characters is too long; quote it if it is text$"):
        parse_json(f'{{"id": {"9" * 5000}}}')
    assert parse_json("[-1, 0, 12345678901234567890]") == [-1, 0, 12345678901234567890]


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    assert parse_json('"\\ud800x"') == "�x"
    assert clean_text("\ud83d\ude00") == "😀"
    assert json_safe({"\udfff": 1}) == {"�": 1}
