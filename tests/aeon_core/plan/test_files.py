"""Plan files: JSON or YAML as plain data, and one line that says what is wrong (contract: --plan, lint)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.plan.files import MAX_BYTES, MAX_YAML_BYTES, NotPlainDataError, load_plan_file, read_plan_data

PLAN: dict[str, Any] = {
    "goal": "g",
    "steps": [{"step_id": "s1", "description": "d", "arguments": {"on": "yes", "when": "2026-01-31"}}],
}
YAML = """\
goal: g
steps:
  - step_id: s1
    description: d
    arguments:
      on: yes
      when: 2026-01-31
"""
NO_JSON = "FILE is not JSON: "
NO_VALUE = "expected a value; write one here, with text in double quotes, or remove the comma before"
NEITHER = "FILE is neither JSON nor YAML: "
NO_PLAN = "FILE is not a valid plan: "
TAG = "the tag '!!{}' is not supported; use plain data"


def write(folder: Path, text: str | bytes, name: str = "plan.yml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_plan_file(path)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    assert repr(str(path)) in caught.value.message
    return caught.value.message.replace(repr(str(path)), "FILE")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (json.dumps(PLAN), "plan.json"),
        (b"\xef\xbb\xbf" + json.dumps(PLAN).encode(), "plan"),
        (YAML, "plan.yaml"),
        ("---\n" + YAML.replace("\n", "\r\n"), "plan"),
    ],
)
def test_json_and_yaml_give_the_same_plan(tmp_path: Path, text: str | bytes, name: str) -> None:
    path = write(tmp_path, text, name)
    assert read_plan_data(path) == PLAN
    assert load_plan_file(path).model_dump(mode="json", exclude_none=True)["steps"][0]["arguments"] == {
        "on": "yes",
        "when": "2026-01-31",
    }


def test_yaml_has_only_json_types(tmp_path: Path) -> None:
    path = write(tmp_path, "[on, off, yes, 1_000, 0o7, 007, .inf, 1:30, ~, null, true, False, 5, +5, -0.5, 1e3, <<, =]")
    assert read_plan_data(path) == [
        *["on", "off", "yes", "1_000", "0o7", "007", ".inf", "1:30"],
        *[None, None, True, False, 5, 5, -0.5, 1000.0, "<<", "="],
    ]
    assert read_plan_data(write(tmp_path, "")) is None


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ('{"goal": "g",\n "steps": [}', "p.json", f"{NO_JSON}line 2, column 12: {NO_VALUE}"),
        ('{"goal": 1, "goal": 2}', "p.json", NO_PLAN + "the key 'goal' occurs twice in one object"),
        ("goal: g\ngoal: h\n", "p.yml", NO_PLAN + "line 2, column 1: the key 'goal' occurs twice; keep one of them"),
        ("goal: [g\n", "p.yml", NEITHER + "line 2, column 1: did not find expected ',' or ']'"),
        (
            "a: &x 1\n",
            "p.yml",
            NO_PLAN + "line 1, column 4: anchors and aliases are not supported; write the value out",
        ),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            "p.yml",
            NO_PLAN + f"line 1, column 4: {TAG.format('python/object/apply:os.system')}",
        ),
        ("a: !!binary aGk=\n", "p.yml", NO_PLAN + f"line 1, column 4: {TAG.format('binary')}"),
        ("1: x\n", "p.yml", NO_PLAN + "line 1, column 1: expected a text key, got '1'; quote it"),
        (
            "[a]: x\n",
            "p.yml",
            NO_PLAN + "line 1, column 1: expected a text key, got a list; quote it",
        ),
        (
            "--- a\n--- b\n",
            "p.yml",
            NO_PLAN + "line 2, column 1: a second document follows; keep one of them",
        ),
        ("a: \x07\n", "p.yml", NEITHER),
        (b"\xff\xfe\x00", "p.yml", "FILE is not UTF-8 text: byte 0 is 0xff; save it as UTF-8"),
        (
            "goal: ' '\nsteps: []\n",
            "p.yml",
            NO_PLAN
            + 'goal: expected a non-empty string, got " "; '
            + "steps: expected an array of at least one step, got an empty array",
        ),
        ("just a line\n", "p.yml", NO_PLAN + "plan: expected an object with 'goal' and 'steps', got \"just a line\""),
        ("", "p.json", f"{NO_JSON}line 1, column 1: {NO_VALUE}"),
    ],
)
def test_an_invalid_plan_is_one_line_with_file_and_place(
    tmp_path: Path, text: str | bytes, name: str, message: str
) -> None:
    told = refusal(write(tmp_path, text, name))
    assert told.startswith(message)
    assert told == message or "\x07" in str(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{'goal': 1}", "column 2: expected a key in double quotes; write one, or remove the comma before"),
        ('{"goal": "g" "a": 1}', "column 14: expected a comma or a closing bracket; write one here"),
        ('{"goal" "g"}', "column 9: expected a colon after the key; write one here"),
        ('{"goal": "g"}}', "column 14: the JSON has ended before this; remove what follows"),
        ('{"goal": "g}', "column 10: this text has no end; close it with a double quote"),
        ('{"goal": "a\nb"}', r"column 12: a text contains a control character; write a line break as \n, a tab as \t"),
        ('\ufeff\ufeff{"goal": "a"}', "column 1: a second byte order mark; remove it"),
        (r'{"goal": "C:\home"}', r"column 13: a backslash starts no known escape here; write \\ for a backslash"),
        (r'{"goal": "C:\u12"}', r"column 14: a backslash starts no known escape here; write \\ for a backslash"),
    ],
)
def test_a_fault_of_json_is_one_line_that_says_where_it_is_and_what_to_do(tmp_path: Path, text: str, told: str) -> None:
    assert refusal(write(tmp_path, text, "p.json")) == f"{NO_JSON}line 1, {told}"


@pytest.mark.parametrize("text", ['{"goal": "g",}', '{"goal": "g", "steps": [1,]}'])
def test_a_comma_too_many_in_json_is_named(tmp_path: Path, text: str) -> None:
    # Newer versions of Python point at the comma itself.
    assert "remove" in (told := refusal(write(tmp_path, text, "p.json")))
    assert "comma" in told


def test_the_first_problems_are_named_and_the_others_counted(tmp_path: Path) -> None:
    steps = [{"step_id": n, "description": "d"} for n in range(6)]
    assert refusal(write(tmp_path, json.dumps({"goal": "g", "steps": steps}))) == (
        NO_PLAN + "; ".join(f"steps[{n}].step_id: expected a string, got {n}" for n in range(3)) + "; and 3 more"
    )


def test_an_unreadable_file_is_a_usage_error(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json") == "cannot read FILE: No such file or directory"
    assert refusal(tmp_path) == "cannot read FILE: Is a directory"
    assert refusal(write(tmp_path, " " * (MAX_BYTES + 1))).startswith(f"FILE is larger than {MAX_BYTES:,} bytes")
    assert "too large for YAML" in refusal(write(tmp_path, "a" * (MAX_YAML_BYTES + 1)))


@pytest.mark.parametrize("unit", ["[", "{a: ", '{"a":'])
def test_endless_nesting_is_refused_at_once(tmp_path: Path, unit: str) -> None:
    assert "neither JSON nor YAML: its brackets do not match" in refusal(write(tmp_path, unit * 5000))


def test_a_valid_document_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    assert "nested" in refusal(write(tmp_path, "[" * 5000 + "]" * 5000, "deep.json"))
    assert "nested deeper than 100 levels" in refusal(write(tmp_path, "[" * 150 + "a" + "]" * 150))


PLAIN = "anchors and aliases are not supported"
LEVELS = "nested deeper than 100 levels"


@pytest.mark.parametrize(
    ("text", "name", "reason"),
    [
        ('{"a": 1, "a": 2}', "p.json", "the key 'a' occurs twice"),
        ('{"a": 1e999}', "p.json", "1e999 is too large a number"),
        ("[" * 300 + "]" * 300, "p.json", LEVELS),
        ("[" * 5000 + "]" * 5000, "p.json", "nested deeper than 100 levels"),
        (r'["]]\"]", ' + "[" * 5000 + "]" * 5001, "p.json", "nested deeper than 100 levels"),
        ("[" + "1" * 5000 + "]", "p.json", "a number of 5,000 characters is too long"),
        ("a: 1\na: 2\n", "p.yml", "the key 'a' occurs twice"),
        ("a: 1e999\n", "p.yml", "1e999 is too large a number"),
        ("a: &x 1\nb: *x\n", "p.yml", PLAIN),
        ("a: it's [one\nb: &x 1\n", "p.yml", PLAIN),
        ("a: !!set {b}\n", "p.yml", "the tag"),
        ("# x\n%YAML 1.2\n---\na: 1\n", "p.yml", "line 2, column 1: directives"),
        ("1: x\n", "p.yml", "expected a text key"),
        ("- " * 5000, "p.yml", "nested deeper than 100 levels"),
        ("- " * 150 + "a: it's [one", "p.yml", LEVELS),
        ("[" * 5000 + "'it''s [' # [\n" + "]" * 5000, "p.yml", LEVELS),
        ("[" * 400_000 + "a" + "]" * 400_000, "p.yml", "nested deeper than 100 levels"),
    ],
)
def test_json_or_yaml_beyond_plain_data_is_distinguished(tmp_path: Path, text: str, name: str, reason: str) -> None:
    with pytest.raises(NotPlainDataError) as caught:
        read_plan_data(write(tmp_path, text, name))
    assert reason in caught.value.reason
    assert refusal(write(tmp_path, text, name)) == NO_PLAN + caught.value.reason


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[NaN]", "p.json"),
        ("[" * 50, "p.json"),
        ("[" * 5000, "p.json"),
        ('[{"a": "]"},' * 5000, "p.json"),
        ("a: 1\nb: [\n", "p.yml"),
        ("[" * 50 + "}" * 50, "p.yml"),
        ("a: &x 1\nb: *x\nc: [\n", "p.yml"),
        ("a: &x 1\nb: 'not closed\n", "p.yml"),
        ("--- a\n--- [b\n", "p.yml"),
        ("[" * 150 + "a" + "]" * 149, "p.yml"),
        ("- " * 150 + "[", "p.yml"),
        ("[" * 5000 + "'it''s ]' # ]\n" + "]" * 4999, "p.yml"),
        ("[" * 5000 + "}" * 5000, "p.yml"),
    ],
)
def test_other_formats_are_not_mistaken_for_json_or_yaml(tmp_path: Path, text: str, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_plan_data(write(tmp_path, text, name))
    assert not isinstance(caught.value, NotPlainDataError)
