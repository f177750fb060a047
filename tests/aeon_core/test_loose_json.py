"""A reply that is only badly written is read without loss, or refused (core FR-029; Decision 4)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH
from aeon_core.loose_json import Doubt, breaks_off, read_reply
from tests.cpu_limit import cpu_limit


def repair_locally(text: str) -> Any:
    """What a reply certainly says; nothing that was guessed."""

    def read(value: Any, doubt: Doubt) -> Any:
        if doubt:
            raise ValidationError("in doubt", problems=["in doubt"])
        return value

    return read_reply(text, read)[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure! Here is [your plan]:\n\n```\n{"a": [1, 2]}\n```\nI hope it\'s "fine" {sic}.', {"a": [1, 2]}),
        ('{"a": [1, 2,], "b": {"c": 3,},}', {"a": [1, 2], "b": {"c": 3}}),
        (
            '{"a": 1 "b": [1 2 "x" {"y": 1}{"z": 2}]\n"c": null}',
            {"a": 1, "b": [1, 2, "x", {"y": 1}, {"z": 2}], "c": None},
        ),
        ("{'a': 'it\\'s', 'b': \"don't\"}", {"a": "it's", "b": "don't"}),
        ("{goal: 'x', step_id: 1, $a-b: true}", {"goal": "x", "step_id": 1, "$a-b": True}),
        (
            '{"a": 1, // one\n # two\n "b": /* three */ "// no # comment /* here"}',
            {"a": 1, "b": "// no # comment /* here"},
        ),
        ("{'a': True, 'b': False, 'c': None}", {"a": True, "b": False, "c": None}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ('{“a”: “it\'s "so"”, ‘b’: ‘x’}', {"a": 'it\'s "so"', "b": "x"}),
        ('{"a": "line\nline\ttab"}', {"a": "line\nline\ttab"}),
        (r"{'a': '\x41\u00e9\U0001F600\\'}", {"a": "Aé😀\\"}),
        (r'{"a": "\ud83d\ude00 \ud800",}', {"a": "😀 �"}),
        ('const plan = {"a": -1.5e3};', {"a": -1500.0}),
        ('{"a": 1},', {"a": 1}),
        ("```\n5\n```", 5),
        ("{}", {}),
        ('{"a" => 1, b = "x"}', {"a": 1, "b": "x"}),
        ('{"a": TRUE, "b": NULL, "c": undefined}', {"a": True, "b": None, "c": None}),
        ('{"a": .5, "b": +3, "c": 5., "d": -.25}', {"a": 0.5, "b": 3, "c": 5.0, "d": -0.25}),
        ('{"a": """x "y" z""", `b`: `c`}', {"a": 'x "y" z', "b": "c"}),
        (r'{"a": "\d+\.py", "b": "C:\dir", }', {"a": r"\d+\.py", "b": "C:\\dir"}),
        ('{,"a": 1,, "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1}]}', {"a": 1}),
        ('{"a": 1} [] and [2, 3] {here}', {"a": 1}),
        (r'"{\"a\": 1}"', {"a": 1}),
        (r"{\"a\": \"x\"}", {"a": "x"}),
        ("{&quot;a&quot;: 1}", {"a": 1}),
        ('{"a": 1}\n\n{"a": 1}', {"a": 1}),
        ('{"a": 1}<|endoftext|>', {"a": 1}),
        ('and so {it} is.</think>{"a": 1}', {"a": 1}),
    ],
)
def test_malformed_json_is_repaired_without_loss(text: str, value: Any) -> None:
    assert repair_locally(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *["", "   ", "hello", "no value at all {sic}", "}", "{", "}{", "[1}", "(1, 2)", "undefined", "1 2", "'text'"],
        *['{"a": "x', '{"a": [1, 2', '{"a": [1, 2], "b": tru', '{"a": 1', '{"a":', '{"a": 1, /* never ends'],
        *['{"a": 1} {"b": 2}', '{"a": 1}, "b": 2}', '{"a": 1}: 2', '{"a": 1}, 5', '"b": 2, {"a": 1}'],
        *['"steps": [1, 2]', '{"a": 1} then "b": 2', '{"a": 1} {"b": [yes, no]'],
        *['{"a": 1, "a": 2}', "{a: 1, 'a': 2}", '{"a" 1}', '{"a": }', '{"a", "b": 1}', "{: 1}", "{None: 1}"],
        *["[1,,2]", "[,1]", "[,]", '{"a": "He said "hi" to me"}', '["a""b"]', '["a"b"]', "['it's', 'b']"],
        *[
            '{"a": yes}',
            '{"a": some words}',
            '{"a": NaN}',
            '{"a": Infinity}',
            '{"a": 1e999}',
            '{"a": 007}',
            '{"a": 1_000}',
        ],
        *['{"steps": [1, ...]}', '{"steps": [1] // ... more\n}', '{"steps": [1] /* … */}', r'{"a": "C:\new\dir"}'],
        *['{"a": "x" + "y"}', "{'a': '\\U00110000'}", '{"a": "x\\', '{"a": {"b": 1}', "[[[[1, 2]]]"],
    ],
)
def test_cut_duplicate_or_ambiguous_json_is_refused(text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        repair_locally(text)
    assert "\n" not in str(caught.value)


texts = st.text(max_size=12) | st.sampled_from(
    ['"', "'", "it's", '", "', "//", "/*", "#", "{", "]", ",", "“x”", "...", "\\"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
containers = st.lists(values, max_size=4) | st.dictionaries(texts, values, max_size=4)


def clean(value: Any) -> Any:
    return json.loads(json.dumps(value))


def unquote_keys(text: str) -> str:
    return re.sub(r'"([A-Za-z_]\w*)": ', r"\1: ", text)


def smart(text: str) -> str:
    return re.sub(r'"([^"\\]*)"', "“\\1”", text)


DAMAGES: dict[str, Callable[[Any], str]] = {
    "fence": lambda value: f"```json\n{json.dumps(value)}\n```",
    "prose": lambda value: f"Here it is: {json.dumps(value)}\nDoes it suit you?",
    "trailing commas": lambda value: re.sub(r"([\]}])", r",\1", json.dumps(value)),
    "missing commas": lambda value: json.dumps(value, separators=(" ", ": ")),
    "missing line commas": lambda value: json.dumps(value, indent=1).replace(",\n", "\n"),
    "python": repr,
    "unquoted keys": lambda value: unquote_keys(json.dumps(value)),
    "smart quotes": lambda value: smart(json.dumps(value, ensure_ascii=False)),
    "single quotes": lambda value: json.dumps(value).replace('"', "'"),
    "comments": lambda value: json.dumps(value, indent=1).replace("\n", " // why not, 5 \n"),
    "bom": lambda value: "\ufeff" + json.dumps(value, ensure_ascii=False),
    "raw breaks": lambda value: json.dumps(value, ensure_ascii=False).replace("\\n", "\n").replace("\\t", "\t"),
}
"""Damages of one value; those done by substitution may change the content of strings, but never what is left alone."""
FAITHFUL = ["fence", "prose", "missing line commas", "python", "bom"]


@pytest.mark.parametrize("damage", FAITHFUL)
@given(value=containers)
def test_damage_around_values_is_repaired_or_refused(damage: str, value: Any) -> None:
    try:
        repaired = repair_locally(DAMAGES[damage](clean(value)))
    except ValidationError:
        return
    assert repaired == json.loads(json.dumps(clean(value)).encode("utf-8"))


plain_texts = st.text(alphabet="abc xyz_09é", max_size=8)
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | plain_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_texts, inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"key": [redacted:0a1b2c3d4e5f], "n": 1}', None),
        ('{"key": [redacted:012345678901]}', None),
        ('{"key": Bearer [redacted:0a1b2c3d4e5f]}', {"key": "Bearer [redacted:0a1b2c3d4e5f]"}),
        ('{"key": "Bearer [redacted:0a1b2c3d4e5f], "n": 1}', {"key": "Bearer [redacted:0a1b2c3d4e5f]", "n": 1}),
    ],
)
def test_the_token_of_a_secret_stays_whole_or_nothing_is_read(text: str, value: Any) -> None:
    if value is None:
        with pytest.raises(ValidationError, match="no lossless local repair"):
            read_reply(text, lambda value, _: value)
    else:
        assert read_reply(text, lambda value, _: value) == (value, True)


def test_a_one_item_list_in_curly_quotes_is_not_an_aside() -> None:
    assert repair_locally("[“a”]") == ["a"]
    assert repair_locally("the list: [“”]") == [""]


@pytest.mark.parametrize("damage", DAMAGES)
@given(value=st.lists(plain_values, max_size=4) | st.dictionaries(plain_texts, plain_values, max_size=4))
def test_every_damage_to_plain_text_is_repaired(damage: str, value: Any) -> None:
    if damage == "trailing commas" and re.search(r"\[\]|\{\}", json.dumps(value)):
        return  # a comma in an empty array means that something is missing
    assert repair_locally(DAMAGES[damage](value)) == value


@given(containers, st.data())
def test_a_truncated_value_is_never_accepted(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    with pytest.raises(ValidationError):
        repair_locally(cut)


@given(st.text(alphabet="{}[]:,'\"ab1 \n\\/#*“”‘’", max_size=30))
def test_accepted_json_keeps_every_scalar_in_order(text: str) -> None:
    try:
        value = repair_locally(text)
    except ValidationError:
        return
    kept = [re.sub(r"\W", "", str(scalar)) for scalar in flattened(value)]
    without_comments = re.sub(r"//[^\n]*|#[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    assert "".join(kept) in re.sub(r"\W", "", text) or "".join(kept) in re.sub(r"\W", "", without_comments)


def flattened(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [scalar for key, item in value.items() for scalar in [key, *flattened(item)]]
    if isinstance(value, list):
        return [scalar for item in value for scalar in flattened(item)]
    return [value]


@pytest.mark.parametrize(
    "unit", ["[", '{"a":', '"', "'x' ", "/*", "// \n", "[a] ", "{a ", '["', "“", "\\", "word ", '{"a": "b\n', "[1 2] "]
)
def test_hostile_text_takes_linear_time_and_no_recursion(unit: str) -> None:
    with cpu_limit(20), suppress(ValidationError):
        repair_locally("[" + unit * (200_000 // len(unit)))


def test_five_megabytes_are_repaired() -> None:
    value = [{"id": n, "text": "some text\nof a line " * 50} for n in range(5_000)]
    damaged = json.dumps(value).replace("\\n", "\n").replace("}, {", "} {")
    assert len(damaged) > 4_900_000
    assert repair_locally(damaged) == value


def test_nesting_is_bounded() -> None:
    def nested(depth: int) -> str:
        return "[" * depth + "1," + "]" * depth

    assert repair_locally(nested(MAX_DEPTH - 1)) is not None
    for depth in (MAX_DEPTH + 1, 5000):
        with pytest.raises(ValidationError):
            repair_locally(nested(depth))


@pytest.mark.parametrize(
    ("text", "cut"), [('{"a": ["b"', True), ('{"a": "b', True), ('{"a": ["b"]}', False), ('"a {"', False)]
)
def test_a_reply_breaks_off_where_its_value_cannot_end(text: str, cut: bool) -> None:
    assert breaks_off(text) is cut
