"""Recorded runs as tests: a journal is replayed, a plan is linted, and `aeon_run` records a run once."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from aeon_core import (
    AeonError,
    ApprovalDecision,
    ApprovalRequest,
    ConvergenceCriteria,
    InMemoryStore,
    LLMAdapter,
    Memory,
    Orchestrator,
    Plan,
    RunConfig,
    RunRequest,
    RunResult,
    Tool,
    ToolRegistry,
    build_tools,
    lint_plan,
    replay,
)

if TYPE_CHECKING:
    from aeon_core import Difference

_MAX_NAME = 100
T = TypeVar("T")


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
    """A journal, checked as by `aeon-tui replay --check`."""

    what = "replay of"

    def runtest(self) -> None:
        difference = replay(self.path).difference
        if difference is not None:
            raise AssertionError(explain(self.config, self.path, difference))


class PlanItem(_FileItem):
    """A plan file, checked as by `aeon-tui lint`: a high-severity issue fails the test."""

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
    """Return the first difference between a run and its recording, formatted like a failed assertion."""
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


class RunRecorder:
    """Runs the tasks of one test. The n-th run is in `<journals>/<test file>/<test>[-n].jsonl`."""

    def __init__(self, test: pytest.Item, folder: Path, *, record: bool) -> None:
        self._config, self._record = test.config, record
        roots = (folder.parent, test.config.rootpath, test.path.parent)
        module = next(test.path.relative_to(root) for root in roots if test.path.is_relative_to(root))
        self._folder = folder / module.with_suffix("")
        # The test's id, without the group that xdist adds to it.
        name = f"{test.parent.nodeid if test.parent is not None else ''}::{test.name}".partition("::")[2]
        self._name = _file_name(name.replace("::", "."))
        self._runs = 0

    def __call__(
        self,
        task: str,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: ToolRegistry | Iterable[Tool | Callable[..., object]] | None = None,
        memory: Memory | None = None,
        config: RunConfig | Mapping[str, object] | None = None,
        approver: Callable[[ApprovalRequest], ApprovalDecision] | None = None,
        *,
        plan: Plan | Mapping[str, object] | None = None,
        criteria: ConvergenceCriteria | None = None,
        requirements: Sequence[str] | None = None,
    ) -> RunResult:
        """Return the result that an Orchestrator's run has with these arguments, from its recording.

        No model is connected and no tool is called; their recorded outcomes are used. Fails if there is no recording or
        the run differs from it; --aeon-record then runs and records it.
        """
        __tracebackhide__ = True
        self._runs += 1
        path = self._folder / f"{self._name}{f'-{self._runs}' if self._runs > 1 else ''}.jsonl"
        if not (tools is None or isinstance(tools, ToolRegistry)):
            tools = ToolRegistry(tools)

        def request(memory: Memory | None, plan: Plan | Mapping[str, object] | None) -> RunRequest:
            return RunRequest(task, llm, tools, memory, config, plan=plan, criteria=criteria, requirements=requirements)

        if self._record and not (path.exists() and _fits(path, request(_copied(memory), _copied(plan)))):
            with _Replaced(path):
                made = Orchestrator(
                    llm,
                    tools,
                    memory,
                    config,
                    approver,
                    # Relative, so that the recording works in another copy of the project.
                    os.path.relpath(path),
                    criteria=criteria,
                    requirements=requirements,
                )
                result = made.run(task, plan)
                if llm is not made.llm:
                    made.llm.close()
                if result.status in ("aborted", "failed"):
                    why = (result.error or {}).get("message", "")
                    pytest.fail(f"the run {result.status}, so it is not recorded: {why}", pytrace=False)
                return result
        shown, now = shown_path(self._config, path), request(memory, plan)
        if not path.exists():
            pytest.fail(f"there is no recording {shown}; record it with `pytest --aeon-record`", pytrace=False)
        try:
            done = replay(path, request=now)
        except AeonError as error:
            pytest.fail(f"{error}; record it again with `pytest --aeon-record`", pytrace=False)
        if done.difference is not None:
            found = explain(self._config, path, done.difference)
            raise AssertionError(f"{found}\nif that is what you want, record it with `pytest --aeon-record`")
        if done.result is None:
            pytest.fail(f"the recording {shown} is cut off; record it again with `pytest --aeon-record`", pytrace=False)
        return done.result.model_copy(update={"journal": str(path)})


class _Replaced:
    """A file that is replaced as a whole, or left unchanged if that fails."""

    def __init__(self, path: Path) -> None:
        self._path, self._before = path, path.with_name(f"{path.name}.before")

    def __enter__(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._path.replace(self._before)

    def __exit__(self, failure: object, *_: object) -> None:
        if failure is None:
            self._before.unlink(missing_ok=True)
            return
        self._path.unlink(missing_ok=True)
        if self._before.exists():
            self._before.replace(self._path)


def _fits(path: Path, request: RunRequest) -> bool:
    try:
        return replay(path, request=request).result is not None
    except AeonError:
        return False


def _copied(given: T) -> T:
    """Return a copy for a replay to write to, so that a later run does not see its changes."""
    return copy.deepcopy(given) if isinstance(given, InMemoryStore | Plan) else given


def _file_name(name: str) -> str:
    """Return a file name for a test, unique to it."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:_MAX_NAME].strip("-.")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
