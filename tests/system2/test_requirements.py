"""The table in `requirements.md`: no requirement is missing, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<id>(?:REQ|TR|AC)-\w+) \| (?P<short>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
SPANS = [(1, 5), (10, 16), (20, 30), (40, 47), (50, 55), (60, 65), (70, 73), (80, 85), (90, 96), (100, 103), (110, 115)]
SPANS += [(120, 126), (130, 133), (140, 143), (150, 153), (160, 162)]
ASKED = {
    *(f"REQ-{number:03}" for first, last in SPANS for number in range(first, last + 1)),
    *("REQ-003a", "REQ-023a", "REQ-028a", "REQ-043a"),
    *(f"REQ-N{number:02}" for number in range(1, 7)),
    *(f"TR-{number:02}" for number in range(1, 9)),
    *(f"AC-{number}" for number in range(1, 11)),
}
ROWS = {row["id"]: row["tests"] for row in ROW.finditer(Path(__file__).with_name("requirements.md").read_text())}


@cache
def _tests_in(path: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))


def test_every_requirement_has_a_row() -> None:
    assert set(ROWS) == ASKED


@pytest.mark.parametrize("requirement", sorted(ROWS))
def test_each_test_of_a_row_exists(requirement: str) -> None:
    named = re.findall(r"`([^`]+)`", ROWS[requirement])
    assert named
    for name in named:
        file, _, test = name.partition("::")
        assert test in _tests_in(TESTS / file), name
