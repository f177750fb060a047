from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_tui.cli import options


def arguments(**given: str) -> Namespace:
    return Namespace(**{"config": None, "project_root": None, "runs_dir": None, **given})


def test_the_runs_directory_comes_from_the_last_layer_or_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert options.runs_dir(arguments()) == tmp_path / ".aeon" / "runs"
    (tmp_path / ".aeon" / "config.yml").write_text("runs_dir: in-file\n")
    assert options.runs_dir(arguments()) == tmp_path / ".aeon" / "in-file"
    monkeypatch.setenv("AEON_RUNS_DIR", "in-environment")
    assert options.runs_dir(arguments()) == tmp_path / "in-environment"
    assert options.runs_dir(arguments(runs_dir="by-option")) == tmp_path / "by-option"


def test_the_runs_of_another_project_are_found_by_its_root(tmp_path: Path) -> None:
    (tmp_path / "other" / ".aeon").mkdir(parents=True)
    found = options.runs_dir(arguments(project_root=str(tmp_path / "other")))
    assert found == tmp_path / "other" / ".aeon" / "runs"
    assert found == options.runs_dir(arguments(project_root="other"))


@pytest.mark.parametrize("line", ["ttl: many", "timeout: 0", "modle: x", "durability: often"])
def test_settings_that_runs_does_not_need_are_checked_too(tmp_path: Path, line: str) -> None:
    (tmp_path / ".aeon" / "config.yml").write_text(line)
    with pytest.raises(UsageError, match="the config file"):
        options.runs_dir(arguments())


@pytest.mark.parametrize("rule", ["Bash(", "", "Bash(ls*) x"])
def test_a_bad_rule_is_reported_by_its_option(rule: str) -> None:
    with pytest.raises(UsageError, match=r"--allow .* is not a rule; write TOOL"):
        options.load(Namespace(config=None, project_root=None, runs_dir=None, allow=["Read", rule]))
