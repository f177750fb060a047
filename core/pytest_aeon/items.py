"""Files as tests: a journal is replayed, a plan is linted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aeon_core import AeonError, RunConfig, build_tools, lint_plan, replay

if TYPE_CHECKING:
    from aeon_core import Difference


class _FileItem(pytest.Item):
    """A test whose failure is a message, without a traceback into Aeon."""

    what: str

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, AeonError | AssertionError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.what} {self.path.name}"


class JournalItem(_FileItem):
    """A journal, as `aeon-tui replay --check` sees it."""

    what = "replay of"

    def runtest(self) -> None:
        difference = replay(self.path).difference
        if difference is not None:
            raise AssertionError(explain(self.config, self.path, difference))


class PlanItem(_FileItem):
    """A plan file, as `aeon-tui lint` sees it: a severe issue fails."""

    what = "lint of"

    def runtest(self) -> None:
        config = RunConfig(tools=self.config.getini("aeon_tools"), project_root=self.config.rootpath)
        registry = build_tools(config)
        try:
            issues = lint_plan(self.path, registry).issues
        finally:
            registry.close()
        if any(issue.severity == "high" for issue in issues):
            raise AssertionError("\n".join(f"{each.severity} {each.type}  {each.description}" for each in issues))


class JournalFile(pytest.File):
    """A journal in the folder of journals."""

    def collect(self) -> Iterator[pytest.Item]:
        yield JournalItem.from_parent(self, name="replay")


class PlanFile(pytest.File):
    """A plan file."""

    def collect(self) -> Iterator[pytest.Item]:
        yield PlanItem.from_parent(self, name="lint")


def explain(config: pytest.Config, journal: Path, difference: Difference) -> str:
    """Return the first difference of a run from its recording, the values compared as an assertion shows them."""
    lines = [
        f"the run is not the one in {shown_path(config, journal)}",
        f"record {difference.seq} differs: {difference.where}",
        f"  recorded  {difference.recorded}",
        f"  now       {difference.now}",
    ]
    if difference.values is not None and "…" in difference.recorded + difference.now:
        recorded, now = difference.values
        found = config.hook.pytest_assertrepr_compare(config=config, op="==", left=now, right=recorded)
        lines += next((each[1:] for each in found if each), [])
    return "\n".join(lines)


def shown_path(config: pytest.Config, path: Path) -> str:
    """Return a path as a person would type it in the root folder."""
    return str(path.relative_to(config.rootpath)) if path.is_relative_to(config.rootpath) else str(path)
