"""The one reader of YAML: plain data or one line, and never more work than the bytes of the file are worth."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.yaml_file import Bounds, YamlError, brackets_match, compose_yaml, load_yaml, parse_yaml
from tests.cpu_limit import cpu_limit

ALIAS_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {x: 1}\n" + "".join(f"b{n}: &b{n} {{<<: [{', '.join(['*a'] * 9)}]}}\n" for n in range(9))


@pytest.fixture(params=["c", "python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both parsers that PyYAML may have."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n---\n...\n# more\n", None),
        ("a: 1\nb: [x, {c: ~}]\n", {"a": 1, "b": ["x", {"c": None}]}),
        (
            "[on, off, yes, no, 1_000, 0o7, 007, 0x1F, .inf, .nan, 1:30, 2026-01-31, <<, =]",
            ["on", "off", "yes", "no", "1_000", "0o7", "007", "0x1F", ".inf", ".nan", "1:30", "2026-01-31", "<<", "="],
        ),
        (
            "[null, '', true, FALSE, 5, +5, -0, .5, 1., -0.5, 1e3]",
            [None, "", True, False, 5, 5, 0, 0.5, 1.0, -0.5, 1e3],
        ),
        ("a: |\n  one\n  two\nb: >-\n  one\n  two\n", {"a": "one\ntwo\n", "b": "one two"}),
        ("'<<': 1\n'1': 2\n", {"<<": 1, "1": 2}),
        (
            "a: !!str 5\nb: ! 5\nc: !!float 1\nd: !!map {}\ne: !!seq []\n",
            {"a": "5", "b": "5", "c": 1.0, "d": {}, "e": []},
        ),
        ("{a, b: }", {"a": None, "b": None}),
        ("a: 😀\r\nb: é\r\n", {"a": "😀", "b": "é"}),
        ('{"a":\t"\\ud83d\\ude00 \\/"}', {"a": "😀 /"}),
        ("{a: 1, # no JSON\n b: 2}", {"a": 1, "b": 2}),
        ("a: 1 # the end", {"a": 1}),
    ],
)
def test_yaml_and_json_are_read_as_plain_data(text: str, value: Any) -> None:
    assert parse_yaml(text) == value


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (ALIAS_BOMB, 1, "anchors and aliases are not supported; write the value out"),
        (MERGE_BOMB, 1, "anchors and aliases are not supported"),
        ("a: 1\nb: *a\n", 2, "anchors and aliases are not supported"),
        ("- &a [*a]\n", 1, "anchors and aliases are not supported"),
        ("<<: {a: 1}\n", 1, "merge keys (<<) are not supported"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' occurs twice; keep one of them"),
        ("b: {c: 1, 'c': 2}\n", 1, "the key 'c' occurs twice"),
        ("1: a\n", 1, "expected a text key, got '1'; quote it"),
        ("true: a\n", 1, "expected a text key, got 'true'"),
        ("? [a]\n: b\n", 1, "expected a text key, got a list"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, "the tag '!!python/object/apply:os.system' is not supported"),
        ("a: !!binary aGk=\n", 1, "the tag '!!binary' is not supported"),
        ("a: !!set {b}\n", 1, "the tag '!!set' is not supported"),
        ("a: !own x\n", 1, "the tag '!own' is not supported"),
        ("a: !!int x\n", 1, "'x' does not fit its tag '!!int'; remove the tag"),
        ("a: !!null x\n", 1, "'x' does not fit its tag '!!null'"),
        ("%YAML 1.1\n---\na: 1\n", 1, "directives such as %YAML and %TAG are not supported; remove the line"),
        ("# x\n%TAG ! tag:a,2000:\n--- !b c\n", 2, "directives such as %YAML and %TAG are not supported"),
        ("a: 1\n---\nb: 1\n", 2, "a second document follows; keep one of them"),
        ("--- a\n" * 10_000, 2, "a second document follows"),
        ("a\n...\nb\n", 2, "a second document follows"),
        ("a: " + "1" * 5_000, 1, "a number of 5,000 characters is too long; quote it if it is text"),
        ("a: 0." + "1" * 5_000, 1, "a number of 5,002 characters is too long"),
        ("a: 1e999\n", 1, "1e999 is too large a number"),
        ("[" * 101 + "]" * 101, 1, "nested deeper than 100 levels; flatten it"),
        ("[" * 400_000, 1, "nested deeper than 100 levels"),
        ("{a: " * 100_000, 1, "nested deeper than 100 levels"),
        ("- " * 100_000, 1, "nested deeper than 100 levels"),
        ("? " * 100_000, 1, "nested deeper than 100 levels"),
        ("".join(" " * level + "a:\n" for level in range(500)), 101, "nested deeper than 100 levels"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_unsupported_yaml_is_reported_with_place_and_reason(text: str, line: int, reason: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert caught.value.line == line
    assert caught.value.valid
    assert str(caught.value).startswith(reason)
    assert caught.value.at("the file 'f'") == f"the file 'f', line {line}: {caught.value}"


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["steps:\n\t- a", "ü: 1\nsteps:\n\t- a", "\ta: 1"])
def test_a_tab_is_named(text: str) -> None:
    with pytest.raises(YamlError, match="a tab cannot indent a line; use spaces"):
        parse_yaml(text)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "text",
    [
        *("a: [1", "a: 'x", "a: b: c", "\ta: 1\n", "a: `x`", "a: @x", "- a\nb: c", "key\nother: 1", "a: 'x' y"),
        *("a: \x00", "a: \x07", "\ud800", 'a: "\\UFFFFFFFF"', 'a: "\\q"', "a: !<", "a: *", "a: &", "]", "? ? ]"),
    ],
)
def test_invalid_yaml_is_reported_in_one_line(text: str) -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml(text)
    assert not caught.value.valid
    message = caught.value.at("the file 'f'")
    assert message.startswith("the file 'f'")
    assert " is not valid YAML: " in message
    assert "\n" not in message
    assert message.isprintable()


def test_the_number_of_values_is_limited() -> None:
    bounds = Bounds(nodes=100)
    assert len(parse_yaml("[" + "a," * 99 + "]", bounds)) == 99
    with pytest.raises(YamlError, match="more than 100 values; shorten it"):
        parse_yaml("[" + "a," * 100 + "]", bounds)


def test_an_error_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "own.yml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_yaml(path, "the file") == {"a": 1}
    for content, message in (
        (b"a: &a 1", "the file, line 1: anchors and aliases are not supported; write the value out"),
        (b"a: [", "the file, line 2 is not valid YAML: did not find expected node content"),
        (b"a: \xff", "the file is not UTF-8 text: byte 3 is 0xff; save it as UTF-8"),
        (b"a" * 1_000_001, "the file is larger than 1,000,000 bytes; shorten it"),
    ):
        path.write_bytes(content)
        with pytest.raises(UsageError) as caught:
            load_yaml(path, "the file")
        assert caught.value.message == message


def test_marks_index_the_text_whatever_characters_it_holds() -> None:
    root = compose_yaml("é: 😀\r\n\u2028b: 'c'\n")
    assert isinstance(root, yaml.MappingNode)
    [_, (key, value)] = root.value
    text = "é: 😀\r\n\u2028b: 'c'\n"
    assert text[key.start_mark.index : key.end_mark.index] == "b"
    assert text[value.start_mark.index : value.end_mark.index] == "'c'"


PIECES = [
    *"-:[]{}&*!?#|>'\",%@`\n \t\r\\",
    *("a", "b", "<<", "---", "...", "&a ", "*a", "!!int ", "%TAG ! !", "1", "1e9", "\x85", "\u2028", "\ufeff", "\x00"),
    *("  ", "- ", "? ", ": ", "true", "null", '"\\u', "'", "😀", "\ud800", "a: ", "\n  "),
]
texts = st.text(max_size=400) | st.lists(st.sampled_from(PIECES), max_size=80).map("".join)


@given(texts)
def test_any_text_gives_plain_data_or_an_error(text: str) -> None:
    message = ""
    try:
        json.dumps(parse_yaml(text), allow_nan=False).encode()
    except YamlError as error:
        message = error.at("f")
    assert "\n" not in message


@given(st.binary(max_size=300) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_file_gives_plain_data_or_a_usage_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yml"
    path.write_bytes(content)
    message = "f"
    try:
        json.dumps(load_yaml(path, "f"), allow_nan=False)
    except UsageError as error:
        message = error.message
    assert message.startswith("f")
    assert "\n" not in message


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**60), 10**60)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
        max_leaves=20,
    )
)
def test_json_is_read_as_a_json_parser_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert parse_yaml(text) == json.loads(text)


REPEATED: dict[str, Callable[[int], str]] = {
    "scalars": lambda size: "[" + "a," * size,
    "keys": lambda size: "".join(f"k{n}: 1\n" for n in range(size)),
    "empty lists": lambda size: "[" * 90 + "[]," * size,
    "flow keys": lambda size: "{" + "?," * size,
    "documents": lambda size: "---\n" * size,
    "lists": lambda size: "[" * size,
    "dashes": lambda size: "- " * size,
    "hidden brackets": lambda size: 'a: x" ' + "[" * size + '"',
}


@pytest.mark.parametrize("name", REPEATED)
def test_work_grows_at_most_linearly_with_the_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def events(text: str) -> int:
        count = 0
        real = yaml.CSafeLoader.get_event

        class Counting(yaml.CSafeLoader):
            def get_event(self) -> Any:
                nonlocal count
                count += 1
                return real(self)

        monkeypatch.setattr(yaml, "CSafeLoader", Counting)
        with contextlib.suppress(YamlError):
            parse_yaml(text)
        monkeypatch.undo()
        return count

    assert events(REPEATED[name](4_000)) <= 2 * 4 * events(REPEATED[name](1_000)) + 1_000
    assert events(REPEATED[name](4_000)) <= 4 * len(REPEATED[name](4_000)) + 100


@pytest.mark.parametrize("end", ["", "a"])
def test_an_unterminated_quote_is_handled_quickly(end: str) -> None:
    with cpu_limit(10):
        assert not brackets_match("[" + '"a\\' * 100_000 + end)
