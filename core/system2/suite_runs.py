"""The tests that agents ran, with their exit codes, for the last gate: what the agents say does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from system2.tool_text import summary_of

_RUNS_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ctest|phpunit|rspec|doctest)\b"
    r"|\b(?:go|cargo|npm|yarn|pnpm|make|gradle|mvn|dotnet|bundle exec|rake|deno|bun|mix|swift|sbt)\b[^;&|\n]*"
    r"\b(?:test|check)s?\b"
    r"|\bpython[\d.]*\s+\S*test\S*\.py\b",
    re.IGNORECASE,
)
MAX_SHOWN = 20


@dataclass(frozen=True)
class RanCommand:
    """A command that runs tests."""

    agent: str
    command: str
    exit_code: int


def ran_test(agent: str, command: str, exit_code: int) -> RanCommand | None:
    """Return a command if it runs tests, else None."""
    return RanCommand(agent, command, exit_code) if _RUNS_TESTS.search(command) else None


def _shown(command: str) -> str:
    return summary_of({"command": command}).removeprefix("command=").strip('"')


def list_tests(ran: Iterable[RanCommand]) -> str:
    """Return how each command last ended, one per line."""
    last = {each.command: each for each in ran}
    if not last:
        return "Tests: no agent ran any."
    lines = [
        f"{' ' if each.exit_code == 0 else '⚠'} exit {each.exit_code}  {each.agent}: {_shown(command)}"
        for command, each in list(last.items())[-MAX_SHOWN:]
    ]
    return "\n".join(["Tests, as they ended last:", *lines])
