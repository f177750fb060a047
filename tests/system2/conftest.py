"""The surroundings of workflow tests: an approval makes the user's key, which must not be a file of the project."""

from __future__ import annotations

from itertools import count

import pytest

_numbers = count()


@pytest.fixture(autouse=True)
def _state_outside_the_project(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / f"state{next(_numbers)}"))
