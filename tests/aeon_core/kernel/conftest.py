"""Folders in memory: a run that is killed at every place waits for the disk a thousand times."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the module's own, in memory where there is such a place."""
    if not os.access(_MEMORY, os.W_OK):
        yield tmp_path_factory.mktemp("memory")
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY) as made:
        yield Path(made)


@pytest.fixture
def folder(memory: Path) -> Iterator[Path]:
    """A folder of the test's own, in memory where there is such a place."""
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)
