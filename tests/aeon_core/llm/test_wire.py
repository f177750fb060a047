"""Tools' names on the wire and back."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aeon_core.llm.wire import ToolNames, arguments_text, read_arguments


@given(st.lists(st.text(alphabet="ab._- é", max_size=80), unique=True, max_size=12))
def test_every_tool_name_round_trips_in_an_allowed_form(names: list[str]) -> None:
    mapped = ToolNames([{"name": name} for name in names])
    wires = [mapped.wire(name) for name in names]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", wire) for wire in wires)
    assert [mapped.real(wire) for wire in wires] == names


def test_an_allowed_name_is_never_changed() -> None:
    names = ToolNames([{"name": "a.b"}, {"name": "a_b"}])
    assert (names.wire("a_b"), names.wire("a.b")) == ("a_b", "a_b_2")


def test_an_invented_name_is_passed_through() -> None:
    assert ToolNames([{"name": "echo"}]).real("made.up") == "made.up"


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.none(), max_size=5))
def test_arguments_round_trip(arguments: dict[str, Any]) -> None:
    assert read_arguments(arguments_text(arguments)) == arguments
