"""What a RunResult says to a command."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import RunResult


@pytest.mark.parametrize(
    ("error", "code"), [(None, 1), ({"exit_code": 3}, 3), ({"exit_code": "three"}, 1), ({"exit_code": None}, 1)]
)
def test_an_invalid_exit_code_is_derived_from_the_status(error: dict[str, Any] | None, code: int) -> None:
    assert RunResult.model_construct(status="failed", error=error).exit_code == code
