"""The requirement map in `docs/requirements`: no requirement is missing, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MAP = TESTS.parent / "docs" / "requirements"
ROW = re.compile(r"^\| (?P<id>[A-Z]\w*-[\w-]+) \| (?P<short>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
REQ = [(1, 5), (10, 16), (20, 30), (40, 47), (50, 55), (60, 65), (70, 73), (80, 85), (90, 96), (100, 103), (110, 115)]
REQ += [(120, 126), (130, 133), (140, 143), (150, 153), (160, 162)]


def _numbered(form: str, *spans: tuple[int, int]) -> set[str]:
    return {form.format(number) for first, last in spans for number in range(first, last + 1)}


ASKED = {
    "core": _numbered("FR-{:03}", (1, 75)) | _numbered("SC-{:03}", (1, 14)),
    "adaptive": _numbered("FR-{:03}", (1, 82)) | _numbered("FR-NEW-{:03}", (1, 10)) | _numbered("SC-{:03}", (1, 14)),
    "system2": _numbered("REQ-{:03}", *REQ)
    | {"REQ-003a", "REQ-023a", "REQ-028a", "REQ-043a"}
    | _numbered("REQ-N{:02}", (1, 6))
    | _numbered("TR-{:02}", (1, 8))
    | _numbered("AC-{}", (1, 10)),
}
WITHOUT_TEST = {"by absence", "`./dev lint` (import-linter)"}


def _rows(document: str) -> dict[str, str]:
    rows = ROW.finditer((MAP / f"{document}.md").read_text())
    return {row["id"]: row["tests"] for row in rows}


@cache
def _tests_in(path: Path) -> frozenset[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.parse(path.read_text()).body if isinstance(node, functions))


@pytest.mark.parametrize("document", sorted(ASKED))
def test_every_requirement_has_a_row_whose_tests_exist(document: str) -> None:
    rows = _rows(document)
    assert set(rows) == ASKED[document]
    missing = []
    for requirement, tests in rows.items():
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", tests)
        assert named or tests.strip() in WITHOUT_TEST, requirement
        missing += [f"{requirement}: {file}::{test}" for file, test in named if not _has(file, test)]
    assert missing == []


def _has(file: str, test: str) -> bool:
    path = TESTS / file
    return path.exists() and test in _tests_in(path)
