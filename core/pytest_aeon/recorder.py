"""The fixture `aeon_run`: a run is recorded once, and from then on replayed without a model."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

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
    replay,
)
from pytest_aeon.items import explain, shown_path

_MAX_NAME = 100
T = TypeVar("T")


class RunRecorder:
    """Runs the tasks of one test. The n-th run is in `<journals>/<test file>/<test>[-n].jsonl`."""

    def __init__(self, test: pytest.Item, folder: Path, *, record: bool) -> None:
        self._config, self._record = test.config, record
        roots = (folder.parent, test.config.rootpath, test.path.parent)
        module = next(test.path.relative_to(root) for root in roots if test.path.is_relative_to(root))
        self._folder = folder / module.with_suffix("")
        self._name = _file_name(test.nodeid.partition("::")[2].replace("::", "."))
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
        """Return how an Orchestrator's run of this ends, from its recording.

        No model is connected and no tool is called: their outcomes are the recorded ones. Fails where there is no
        recording or the run differs from it; --aeon-record then runs and records it.
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
                    # Usable in another copy of the project.
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
        shown = shown_path(self._config, path)
        if not path.exists():
            pytest.fail(f"there is no recording {shown}; record it with `pytest --aeon-record`", pytrace=False)
        done = replay(path, request=request(memory, plan))
        if done.difference is not None:
            found = explain(self._config, path, done.difference)
            raise AssertionError(f"{found}\nif that is what you want, record it with `pytest --aeon-record`")
        if done.result is None:
            pytest.fail(f"the recording {shown} is cut off; record it again with `pytest --aeon-record`", pytrace=False)
        return done.result.model_copy(update={"journal": str(path)})


class _Replaced:
    """A file that is replaced; if that fails, it stays as it was."""

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
    """Return a copy for a replay to write to: a run after it must not find its changes."""
    return copy.deepcopy(given) if isinstance(given, InMemoryStore | Plan) else given


def _file_name(name: str) -> str:
    """Return a file name for a test, unique to it."""
    plain = re.sub(r"[^\w.-]+", "-", name)[:_MAX_NAME].strip("-.")
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
