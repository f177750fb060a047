"""The ways of isolation that hold on this machine, for tests that run something in each."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation, Rung, fault_of

RUNGS: tuple[Rung, ...] = ("bubblewrap", "landlock")


def words(text: str) -> tuple[str, ...]:
    """Return the words of a table that is written as a text."""
    return tuple(text.split())


def tool_in(rung: Rung, root: Path, *, network: bool = False) -> BashTool:
    """Return a Bash tool that is held by the rung; skip the test where that does not hold here."""
    isolation = Isolation(rung, network)
    if fault := _fault(isolation):
        pytest.skip(f"{rung} does not hold on this machine: {fault}")
    return BashTool(root, isolation=isolation)


@cache
def _fault(isolation: Isolation) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        return fault_of(isolation, Path(folder).resolve())


def said(tool: BashTool, command: str) -> str:
    """Return what a command writes to both streams."""
    result = tool.invoke(command, timeout=60)
    return str(result["stdout"] + result["stderr"]).strip()
