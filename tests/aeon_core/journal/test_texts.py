"""Long texts are written once, wherever in a record they are (contract: `text`)."""

from __future__ import annotations

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from aeon_core.journal.writer import LONG, TextTable

pieces = st.sampled_from(["\\", '"', '\\"', ":", "é", "思", "\n", "x" * 199, "y" * 200, "a" * LONG, '":"', "$text"])
texts = st.lists(pieces, max_size=6).map("".join)
keys = texts.filter(lambda key: key != "$text")
values = st.recursive(
    st.none() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


def _referring(value: Any, found: list[str]) -> Any:
    if isinstance(value, str) and len(value) >= LONG:
        found.append(value)
        return {"$text": hashlib.sha256(value.encode()).hexdigest()}
    if isinstance(value, list):
        return [_referring(item, found) for item in value]
    return {key: _referring(item, found) for key, item in value.items()} if isinstance(value, dict) else value


@given(value=st.dictionaries(keys, values, max_size=4))
def test_only_long_texts_of_a_record_are_replaced(value: dict[str, Any]) -> None:
    long = list[str]()
    expected = _referring(value, long)
    new, short = TextTable().shorten(to_json(value))
    assert [text for _, text in new] == list(dict.fromkeys(long))
    assert short == to_json(expected)


def test_a_long_list_of_numbers_is_not_a_long_text() -> None:
    body = to_json({"values": list(range(LONG)), "then": "b", "text": "c" * LONG})
    new, short = TextTable().shorten(body)
    assert [text for _, text in new] == ["c" * LONG]
    assert from_json(short)["values"] == list(range(LONG))
