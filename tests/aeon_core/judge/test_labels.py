"""Labelled outcomes are read from a JSONL file; what is wrong with one is a line that names file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.judge.agreement import LabelledOutcome, read_labels, shipped_labels, spread

STEP = {"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "status": "complete"}
FULL: dict[str, Any] = {
    "id": "sums/right",
    "domain": "sums",
    "language": "de",
    "label": "bad",
    "why": "the sum is wrong",
    "codes": ["incomplete"],
    "flags": ["answer"],
    "requirements": ["Die Summe ist genannt."],
    "goal": "Addiere 5 und 10",
    "plan": {"goal": "Addiere 5 und 10", "steps": [STEP]},
    "results": {"s1": {"result": 15}},
    "failures": {},
    "answer": " 16 ",
    "memory": {"s1": {"result": 15}},
}


def outcome(**fields: Any) -> LabelledOutcome:
    return LabelledOutcome.model_validate({**FULL, **fields})


def written(tmp_path: Path, *lines: Any) -> Path:
    path = tmp_path / "labels.jsonl"
    text = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def test_an_outcome_holds_what_the_judge_sees(tmp_path: Path) -> None:
    (found,) = read_labels(written(tmp_path, FULL))
    assert found == outcome()
    shown = found.artifacts
    assert (shown.goal, shown.answer, shown.memory) == ("Addiere 5 und 10", "16", {"s1": {"result": 15}})
    assert (shown.plan.steps[0].status, shown.results, shown.failures) == ("complete", {"s1": {"result": 15}}, {})


def test_an_answer_alone_becomes_one_reasoning_step(tmp_path: Path) -> None:
    (found,) = read_labels(written(tmp_path, {"id": "a", "label": "good", "goal": "Name a prime", "answer": "7"}))
    assert [(step.agent, step.status) for step in found.plan.steps] == [("llm", "complete")]
    assert found.artifacts.results == {"s1": {"text": "7"}}
    assert found.artifacts.missing == []
    assert found.language == "und"


def test_only_newlines_end_a_line_and_blank_lines_count(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "", {**FULL, "answer": "a\u2028b"}, ""))
    assert [each.answer for each in found] == ["a\u2028b"]


def test_each_of_several_joined_files_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    first, second = (f"\ufeff{json.dumps({**FULL, 'id': name})}" for name in ("a", "b"))
    assert [each.id for each in read_labels(written(tmp_path, first, second))] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "it is not JSON ("),
        ('{"id": "a", "label": "bad", "label": "good"}', "it is not JSON (the key 'label' occurs twice in one object)"),
        ("[1]", "it is not an object; expected "),
        ({**FULL, "lable": "good"}, "the key 'lable' is unknown; did you mean 'label'?"),
        ({**FULL, "label": "fine"}, "label: Input should be 'good' or 'bad'"),
        ({key: value for key, value in FULL.items() if key != "answer"}, "answer: Field required"),
        ({**FULL, "id": " "}, "id: must not be blank"),
        ({**FULL, "plan": {"goal": "x", "steps": []}}, "plan: "),
        ({**FULL, "plan": 3}, "plan: "),
        ({**FULL, "results": []}, "results: "),
        ({"id": "a", "label": "good", "goal": 7, "answer": "7"}, "goal: "),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, line: Any, problem: str) -> None:
    path = written(tmp_path, {**FULL, "id": "first"}, line)
    with pytest.raises(UsageError) as raised:
        read_labels(path)
    assert raised.value.message.startswith(f"{path}:2: {problem}")
    assert "\n" not in raised.value.message


def test_an_id_occurs_once(tmp_path: Path) -> None:
    path = written(tmp_path, FULL, FULL)
    with pytest.raises(UsageError) as raised:
        read_labels(path)
    assert raised.value.message == f"{path}:2: the id 'sums/right' occurs twice, first at {path}:1"


def test_a_file_without_outcomes_explains_the_format(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the labels file '.*' has no labelled outcomes; expected lines such as"):
        read_labels(written(tmp_path, ""))
    with pytest.raises(UsageError, match=r"cannot read the labels file .*: No such file"):
        read_labels(tmp_path / "none.jsonl")


def test_a_sample_is_spread_evenly() -> None:
    found = [outcome(id=str(number)) for number in range(10)]
    assert [each.id for each in spread(found, 4)] == ["0", "2", "5", "7"]
    assert spread(found, 10) == found


def test_shipped_outcomes_cover_six_languages_good_and_bad() -> None:
    found = shipped_labels()
    languages = {each.language for each in found}
    assert languages >= {"ar", "de", "en", "es", "fr", "hi", "ja"}
    assert {(each.language, each.label) for each in found} == {
        (language, label) for language in languages for label in ("good", "bad")
    }
    assert {each.language for each in spread(found, 60)} == languages
