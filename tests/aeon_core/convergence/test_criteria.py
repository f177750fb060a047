"""Criteria: defaults, and the file of `--criteria` (adaptive FR-022)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from aeon_core.convergence import AdditionalCriterion, ConvergenceCriteria, load_criteria
from aeon_core.errors import UsageError
from aeon_core.plan.files import load_requirements


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "criteria.yml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_defaults_require_every_flag_and_no_custom_criteria() -> None:
    criteria = ConvergenceCriteria()
    assert criteria.model_dump() == {
        "completeness": 0.8,
        "coherence": 0.8,
        "consistency": ["plan", "step", "answer", "memory"],
        "additional": [],
    }


def test_yaml_and_json_files_are_equivalent(tmp_path: Path) -> None:
    values = {
        "completeness": 0.95,
        "consistency": ["answer"],
        "additional": [{"name": "priced", "description": "every option has a price"}],
    }
    yaml = (
        "completeness: 0.95\nconsistency: [answer]\n"
        "additional:\n- name: priced\n  description: every option has a price\n"
    )
    as_json = tmp_path / "criteria.json"
    as_json.write_text(json.dumps(values), encoding="utf-8")
    assert load_criteria(written(tmp_path, yaml)) == load_criteria(as_json) == ConvergenceCriteria(**values)
    assert load_criteria(as_json).coherence == 0.8


def test_an_empty_file_leaves_the_defaults(tmp_path: Path) -> None:
    assert load_criteria(written(tmp_path, "# nothing yet\n")) == ConvergenceCriteria()
    assert load_criteria(written(tmp_path, "coherence:\nadditional:\n")) == ConvergenceCriteria()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("completness: 0.9", "has an unknown key, 'completness'; did you mean 'completeness'?"),
        ("completeness: 1.5", "'completeness' in the criteria file {path} must be a number between 0 and 1; got 1.5"),
        ("coherence: '0.9'", "'coherence' in the criteria file {path} must be a number between 0 and 1; got '0.9'"),
        ("coherence: true", "must be a number between 0 and 1; got True"),
        ("coherence: .nan", "must be a number between 0 and 1; got '.nan'"),
        ("consistency: [anser]", "got ['anser'], 'consistency[0]' is 'anser'"),
        ("consistency: [plan, plan]", "'plan' occurs twice"),
        ("additional: [{name: x}]", "'additional[0].description' is missing"),
        (
            "additional: [{name: x, desription: y}]",
            "unknown key, 'desription', in 'additional[0]'; did you mean 'description'?",
        ),
        ("additional: [{name: complete, description: y}]", "'complete' is already a reason code"),
        ("additional: [{name: x, description: y}, {name: x, description: z}]", "'x' occurs twice"),
        ("additional: [{name: ' ', description: y}]", "'additional[0].name' is ' '"),
        ("- 1", "is [1]; expected keys such as `completeness: 0.9`"),
        ("completeness: 1\ncompleteness: 0.5", "line 2: the key 'completeness' occurs twice"),
        ("completeness: [", "is not valid YAML"),
        ("a: !!python/object:os.system {}", "line 1: the tag '!!python/object:os.system' is not supported"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else None,
)
def test_an_error_in_a_file_is_one_line_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_criteria(path)
    assert said.replace("{path}", repr(str(path))) in caught.value.message
    assert repr(str(path)) in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"completeness": 2}, "'completeness' in ConvergenceCriteria must be a number between 0 and 1; got 2"),
        ({"complete": 1}, "ConvergenceCriteria has an unknown key, 'complete'; did you mean 'completeness'?"),
        (0.9, "ConvergenceCriteria is 0.9; expected keys such as `completeness: 0.9`"),
    ],
)
def test_an_error_from_python_is_one_line(values: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        ConvergenceCriteria(**values) if isinstance(values, dict) else ConvergenceCriteria.model_validate(values)
    assert caught.value.message == told


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yml': No such file or directory"):
        load_criteria(tmp_path / "none.yml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(UsageError, match="binary'"):
        load_criteria(tmp_path / "binary")


def test_a_criterion_must_not_take_the_name_of_a_reason_code() -> None:
    with pytest.raises(ValidationError, match="already a reason code"):
        AdditionalCriterion(name="no_progress", description="x")


@pytest.mark.parametrize("name", ["r.yml", "r.yaml", "r.json", "r.YML"])
def test_requirements_may_be_a_list(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text('["names  a date", "names a place: Rome"]')
    assert load_requirements(file) == ["names a date", "names a place: Rome"]
    if name != "r.json":
        file.write_text("# yaml-language-server: $schema=x.json\n- names a date\n")
        assert load_requirements(file) == ["names a date"]


@pytest.mark.parametrize("text", ["# - names a date\n", "", "null", "[]"])
def test_a_list_of_requirements_that_are_all_left_out_has_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "r.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"r\.yml' has no requirements; write one per line"):
        load_requirements(file)


def test_requirements_may_end_their_lines_as_any_editor_does(tmp_path: Path) -> None:
    file = tmp_path / "r.txt"
    file.write_bytes(b"\xef\xbb\xbfnames a date\rnames a place\r\n\r\nnames a person\n")
    assert load_requirements(file) == ["names a date", "names a place", "names a person"]


@pytest.mark.parametrize("text", ["names a date", "{a: b}", "[1]", "[]", "- [a]"])
def test_a_requirements_file_that_is_not_a_list_of_strings_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "r.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"r\.yml"):
        load_requirements(file)
