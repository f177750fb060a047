from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.config.loading import read_config_file
from aeon_core.errors import UsageError
from aeon_tui.platform.editor import text_problems
from aeon_tui.sessions.approval_edits import load_edited_plan

PLAN = """\
# mine
goal: x
steps:
  - step_id: s1
    description: 3
  - step_id: s2
    description: Add
    tool: [a]
    colour: red
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            PLAN,
            [
                "line 5: steps[0].description: expected a string, got 3",
                "line 9: steps[1]: unknown key \"colour\", the nearest known one is 'tool'",
                "line 8: steps[1].tool: expected a string, got an array of 1",
            ],
        ),
        ("goal: [x\nsteps: 3\n", ["line 2: did not find expected ',' or ']'"]),
        ("goal: x\n", ["steps: missing, expected an array of at least one step"]),
        ("steps: &a [1]\n", ["line 1: anchors and aliases are not supported; write the value out"]),
    ],
)
def test_each_problem_with_a_plan_names_its_line(tmp_path: Path, text: str, told: list[str]) -> None:
    file = tmp_path / "plan.yml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_edited_plan(file)
    found = [str(each) for each in text_problems(caught.value, text, file)]
    assert sorted(found)[: len(told)] == sorted(told)
    assert str(tmp_path) not in " ".join(found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ttl: 7\n\ntll: 8\n", "line 3: has an unknown key, 'tll'; did you mean 'ttl'?"),
        ("ttl: 7\nbudget: much\n", "line 2: 'budget' must be"),
        ("ttl: {\n", "line 2: not valid YAML"),
        ("policy:\n  allow: ['Bash( x']\n", "line 1: "),
        ("- a\n", "is a list"),
    ],
)
def test_a_problem_with_settings_names_its_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "config.yml"
    with pytest.raises(UsageError) as caught:
        read_config_file(file, text)
    [found] = text_problems(caught.value, text, file)
    assert str(found).startswith(told)
    assert str(tmp_path) not in str(found)
    assert not file.exists()
