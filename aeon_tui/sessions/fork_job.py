"""A fork in the app or headless: the changes at its start, and the job of the new run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.convergence import ConvergenceCriteria, parse_criteria
from aeon_core.errors import UsageError, ValidationError
from aeon_core.paths import writable
from aeon_core.plan.files import PlanEdit, parse_data, parse_plan_edit
from aeon_tui.sessions.approval_edits import as_yaml
from aeon_tui.sessions.run_jobs import Kernel, OnLine, RunJob, StartRequest, is_paced, kernel_parts
from aeon_tui.sessions.run_options import approval_points, merge_overrides, rules_for, started_of, usable_model

if TYPE_CHECKING:
    from aeon_core.approvals import Approver
    from aeon_core.config.loading import LoadedConfig
    from aeon_tui.sessions.stream import Stream

CRITERIA = "criteria"
TEXT = Path("the text")
"""The name of the edited text in errors."""
_PROBLEMS = 2


@dataclass(frozen=True)
class ForkEdits:
    """What a fork changes at its start; None for what stays as in the parent."""

    plan: PlanEdit | None = None
    criteria: ConvergenceCriteria | None = None


@dataclass(frozen=True)
class ForkRequest(StartRequest):
    """A request to fork a run."""

    parent: Path
    pass_number: int
    """The pass that it starts with."""
    options: Mapping[str, Any]
    """Options that differ from the parent's."""
    edits: ForkEdits = ForkEdits()

    def job(self, today: Callable[[], LoadedConfig], runs_dir: Path) -> ForkJob:
        options = {**self.options, "runs_dir": writable(runs_dir)}
        job = fork_job(self.parent, self.pass_number, today(), options, self.edits.plan, in_app=True)
        job.criteria = self.edits.criteria
        return job


def fork_text(plan: PlanEdit, criteria: ConvergenceCriteria) -> str:
    """Return the state at a fork's start, as YAML that `parse_fork_text` reads."""
    whole = plan.whole()
    requirements = {key: whole.pop(key) for key in ("requirements",) if key in whole}
    return as_yaml({**requirements, CRITERIA: criteria.model_dump(mode="json"), **whole})


def parse_fork_text(text: str, before: str) -> ForkEdits:
    """Return the changes of a text against the one `before`.

    Raises UsageError in one line that calls the text `TEXT`, with all `problems` of a plan.
    """
    if text.strip() == before.strip():
        return ForkEdits()
    plan, criteria = _parsed(text)
    known_plan, known_criteria = _parsed(before)
    return ForkEdits(
        None if plan == known_plan else plan, None if criteria == known_criteria else criteria or ConvergenceCriteria()
    )


def _parsed(text: str) -> tuple[PlanEdit | None, ConvergenceCriteria | None]:
    data = parse_data(text, TEXT)
    if not isinstance(data, dict):
        raise UsageError("the text is not a plan: expected `goal:` and `steps:`, as they were")
    criteria = parse_criteria(data.pop(CRITERIA)) if data.get(CRITERIA) is not None else None
    data.pop(CRITERIA, None)
    if not data:
        return None, criteria
    try:
        return parse_plan_edit(data), criteria
    except ValidationError as error:
        problems = error.context["problems"]
        raise UsageError(f"not a valid plan: {'; '.join(problems[:_PROBLEMS])}", problems=problems) from None


@dataclass
class ForkJob(RunJob):
    """A new run that starts where a pass of another one started. `edit` is the edited plan of that pass."""

    path: Path
    pass_number: int
    edit: PlanEdit | None = None
    criteria: ConvergenceCriteria | None = None
    """Convergence criteria, if overridden."""
    requirements: list[str] | None = None
    """Requirements, if overridden."""

    @property
    def beside(self) -> Path:
        return self.path

    def prepare(self) -> None:
        """Load the tools, and check model, pass and plan. Raises UsageError and other AeonErrors."""
        from aeon_core.runs.factory import build_tools
        from aeon_core.runs.fork import Fork

        known: dict[str, Any] = {"config": self.config, **self._overrides()}
        with contextlib.closing(usable_model(self.config)) as model:
            self.tools = build_tools(self.config)
            try:
                Fork(self.path, self.pass_number, model, self.tools, **known)
            except BaseException:
                self.tools.close()
                raise

    def _overrides(self) -> dict[str, Any]:
        """Return the fork's overrides; the edited file takes precedence."""
        edit = self.edit or PlanEdit()
        requirements = edit.requirements if edit.requirements is not None else self.requirements
        return {"plan": edit.plan, "criteria": self.criteria, "requirements": requirements}

    def build(self, journal: Path, on_line: OnLine, stream: Stream | None, approver: Approver | None) -> Kernel:
        from aeon_core.runs.fork import Fork

        with kernel_parts(self, on_line, stream, approver) as parts:
            given = {**parts, **self._overrides()}
            return Fork(self.path, self.pass_number, **given, config=self.config, journal=journal)


def fork_job(
    path: Path,
    pass_number: int,
    today: LoadedConfig,
    overrides: Mapping[str, Any],
    edit: PlanEdit | None = None,
    *,
    in_app: bool,
) -> ForkJob:
    """Return the job of a fork, with the parent's options and the `overrides`, and its plan or an edited one.

    Approvals are those of a new run, not the parent's; today's rules are added to the parent's. Raises UsageError if
    the journal cannot be read, or names something that needs consent and lacks it.
    """
    from aeon_core.convergence import load_criteria
    from aeon_core.plan.files import load_requirements
    from aeon_core.runs.fork import forked_config

    started, recorded = started_of(path), forked_config(path)
    task = str(started["task"])
    rules = rules_for(recorded, today)
    overrides = {**overrides, "approve": approval_points(today, in_app=in_app), "policy": rules}
    config = merge_overrides(recorded, started, today, overrides)
    return ForkJob(
        task,
        config,
        path,
        pass_number,
        edit,
        load_criteria(overrides["criteria"]) if overrides.get("criteria") is not None else None,
        load_requirements(overrides["requirements"]) if overrides.get("requirements") is not None else None,
        paced=in_app and is_paced(task, recorded, config),
    )
