"""Recorded runs as tests, a pytest plugin. Every session loads this file, so it imports nothing of Aeon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_aeon.recorder import RunRecorder as RunRecorder

_PLANS = ("plans/*", "*plan.json", "*plan.yml", "*plan.yaml")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the settings."""
    group = parser.getgroup("aeon", "recorded runs (pytest-aeon)")
    group.addoption(
        "--aeon-record",
        action="store_true",
        help="call the model if `aeon_run` has no matching recording, and record the run",
    )
    group.addoption("--aeon-lint", action="store_true", help="also check plan files (setting aeon_plans)")
    parser.addini("aeon_journals", "folder of journals, each a test that replays it", default="tests/journals")
    parser.addini("aeon_plans", "patterns of the plan files that --aeon-lint checks", "args", list(_PLANS))
    parser.addini("aeon_tools", "tools that these plans name, as for `aeon-tui lint --tools`", "args", [])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a journal, or with --aeon-lint a plan file, as a test."""
    if file_path.suffix == ".jsonl" and journals_folder(parent.config) in file_path.parents:
        from pytest_aeon.recorder import JournalFile

        return JournalFile.from_parent(parent, path=file_path)
    if parent.config.option.aeon_lint and _is_plan(file_path, parent.config):
        from pytest_aeon.recorder import PlanFile

        return PlanFile.from_parent(parent, path=file_path)
    return None


@pytest.fixture
def aeon_run(request: pytest.FixtureRequest) -> RunRecorder:
    """Run a task as `Orchestrator(llm, tools, …).run(task)` does: recorded once, then replayed without a key."""
    from pytest_aeon.recorder import RunRecorder

    return RunRecorder(request.node, journals_folder(request.config), record=request.config.option.aeon_record)


def journals_folder(config: pytest.Config) -> Path:
    """Return the folder of journals and recordings."""
    return config.rootpath / str(config.getini("aeon_journals"))


def _is_plan(path: Path, config: pytest.Config) -> bool:
    return path.suffix in (".json", ".yml", ".yaml") and any(path.match(each) for each in config.getini("aeon_plans"))
