"""Past runs: the list of them, and the structured history of one (adaptive FR-071 to FR-078)."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from aeon_core.entities import Entity, RunResult
from aeon_core.errors import UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.passes import ExecutionPass, PassesFold
from aeon_core.journal.patterns import ExecutionPatterns, patterns_of
from aeon_core.journal.reader import open_journal, read_records
from aeon_core.journal.records import RECORD, TYPES
from aeon_core.journal.summary import SUFFIX, RunSummary, is_being_written, journal_entries
from aeon_core.journal.tail import tail_state
from aeon_core.journal.view.model import RunView, fold
from aeon_core.journal.view.pass_view import PassFold
from aeon_core.paths import default_runs_directory, expanded
from aeon_core.suggest import first_problem
from aeon_core.timing import seconds_after

__all__ = [
    "ExecutionHistory",
    "ExecutionPass",
    "ExecutionPatterns",
    "OverallStatistics",
    "RunSummary",
    "find_run",
    "list_runs",
    "open_end",
    "open_history",
    "open_run",
]


class OverallStatistics(Entity):
    """A whole run in numbers; `total_time` is in seconds, from the first record to the last.

    `total_passes` have ended, in a fork with those before it; `total_refinements` changed the plan, those of a pass
    that was cut short included.
    """

    total_passes: int
    total_refinements: int
    refused_refinements: int = 0
    convergence_achieved: bool
    total_time: float
    total_cycles: int
    total_repairs: int
    patterns: ExecutionPatterns = Field(default_factory=ExecutionPatterns)


class Label(Entity):
    """A person's verdict on the result of a pass (contract: `label`); of several on one pass the last counts.

    `source` is `decision` where it was given with the decision about the pass, `person` where it was added later.
    `timestamp` is ISO 8601, UTC.
    """

    pass_number: int
    verdict: str
    why: str | None
    source: str
    timestamp: str


class ExecutionHistory(Entity):
    """A run as its journal tells it (adaptive: Execution History). `final_result` is null where it has not ended.

    `configuration` holds the run's options and its model; of a run that was assessed also `convergence_criteria`, the
    thresholds that held, `requirements`, what a finished answer must satisfy, and `adaptive_depth`, the first
    AdaptiveDepthConfiguration; of a fork `parent`, the `run_id` that it was forked from and the `pass` it began with.
    """

    execution_id: str
    task_input: str
    configuration: dict[str, Any]
    passes: list[ExecutionPass]
    final_result: RunResult | None
    overall_statistics: OverallStatistics
    labels: list[Label] = Field(default_factory=list)


def open_history(run: str | Path, runs_dir: Path | None = None) -> ExecutionHistory:
    """Return the history of a run: a run id, a unique prefix of one, a path to a journal, or `last`.

    Raises UsageError where there is no such run, or more than one.
    """
    return open_run(run, runs_dir)[1]


def open_run(
    run: str | Path, runs_dir: Path | None = None, pass_number: int | None = None
) -> tuple[RunView, ExecutionHistory]:
    """Return the view and the history of a run, or of one pass of it.

    The view's `damage` says what of the journal could not be read. Its status is `interrupted` where the run has not
    ended and no process writes it. Raises UsageError, also where there is no such pass.
    """
    path = find_run(run, runs_dir)
    view = RunView()
    passes = PassesFold()
    damage: list[str] = []
    one = PassFold(pass_number) if pass_number is not None else None
    for record in read_records(path, plans=False, damage=damage, check=_fault):
        view.apply(record)
        if one is not None:
            one.apply(record)
        passes.apply(record)
    view.damage[:0] = damage
    if view.status == "running" and not is_being_written(path):
        view.status = "interrupted"
    history = _history(view, passes.passes)
    if one is None:
        return view, history
    if pass_number not in one.found:
        raise UsageError(f"the run {view.run_id!r} has no pass {pass_number}; {_those_there_are(one.found)}")
    part = one.view(view)
    part.damage = view.damage
    own = [each for each in passes.passes if each.pass_number == pass_number]
    labels = [each for each in history.labels if each.pass_number == pass_number]
    return part, history.model_copy(update={"passes": own, "labels": labels})


def open_end(path: Path) -> tuple[RunView, ExecutionHistory]:
    """Return the same of a journal of any size from its beginning and its end alone, as far as these tell.

    The view's `whole_from` is the seq from which on nothing is left out, 0 where that is the whole. Plan, statuses,
    totals and the last scores are as they are; of what came before, passes, repairs and warnings are missing, and of
    a run that has not ended the outputs of its earlier steps.
    """
    end = tail_state(path)
    view = fold(end.records)
    passes = PassesFold()
    for record in end.records:
        passes.apply(record)
    view.whole_from = end.whole_from if end.unknown else 0
    for problem in end.problems:
        view.add_problem(problem)
    for told in view.result.steps if view.result is not None else ():
        if (step := view.steps.get(told.step_id)) is not None and step.output is None:
            step.output, step.mode, step.errors = told.output, told.mode, told.errors
    if view.status == "running" and not is_being_written(path):
        view.status = "interrupted"
    return view, _history(view, passes.passes)


def _fault(record: dict[str, Any]) -> str | None:
    """Return what is wrong with a record of a known type, None where nothing is. The view says it of a result."""
    if record["type"] not in TYPES or record["type"] == "run_finished":
        return None
    try:
        RECORD.validate_python(record, strict=True, extra="ignore")
        if record["type"] == "pass":
            ExecutionPass.model_validate(record, extra="ignore")
    except ValidationError as error:
        return first_problem(error)
    return None


def _those_there_are(numbers: set[int]) -> str:
    if not numbers:
        return "no pass of it has begun"
    shown = [str(number) for number in sorted(numbers)]
    few = shown if len(shown) <= 10 else [*shown[:5], "…", *shown[-4:]]
    return f"there {'is pass' if len(shown) == 1 else 'are the passes'} {', '.join(few)}"


def _history(view: RunView, passes: list[ExecutionPass]) -> ExecutionHistory:
    accepted = _accepted(view, passes)
    return ExecutionHistory(
        execution_id=view.run_id,
        task_input=view.task,
        configuration=_configuration(view, passes) | _parent(view),
        passes=passes,
        final_result=view.result,
        overall_statistics=OverallStatistics(
            total_passes=passes[-1].pass_number if passes else 0,
            total_refinements=accepted.count(True),
            refused_refinements=accepted.count(False),
            convergence_achieved=view.result is not None and view.result.converged,
            total_time=seconds_after(view.started, view.last_ts),
            total_cycles=view.cycles,
            total_repairs=len(view.repairs),
            patterns=patterns_of(view),
        ),
        labels=[
            Label(
                pass_number=each.pass_number,
                verdict=each.verdict,
                why=each.why or None,
                source=each.source,
                timestamp=each.ts,
            )
            for each in view.labels
        ],
    )


def _configuration(view: RunView, passes: list[ExecutionPass]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "convergence_criteria": view.assessments[-1].criteria if view.assessments else None,
        "adaptive_depth": passes[0].adaptive_depth if passes else None,
        "requirements": view.requirements,
    }
    return {**view.config, "model": view.model, **{key: deepcopy(value) for key, value in found.items() if value}}


def _parent(view: RunView) -> dict[str, Any]:
    return {"parent": {"run_id": view.parent, "pass": view.parent_pass or None}} if view.parent else {}


def _accepted(view: RunView, passes: list[ExecutionPass]) -> list[bool]:
    """Return of each refinement whether it was accepted, those of a pass that has not ended last."""
    ended = {each.pass_number for each in passes}
    found = [change.get("accepted") is not False for each in passes for change in each.refinement_changes]
    return found + [each.accepted for each in view.refinements if each.pass_number not in ended]


def is_path(run: str | Path) -> bool:
    """Return whether a run is named by the path of its journal, not by its id."""
    return isinstance(run, Path) or "/" in run or run.endswith(SUFFIX)


def find_run(run: str | Path, runs_dir: Path | None = None) -> Path:
    """Return the journal of a run id, a unique prefix of one, a path, or `last`. Raises UsageError."""
    name, directory = str(run), runs_dir if runs_dir is not None else default_runs_directory()
    if is_path(run):
        path = expanded(run, "the journal")
        open_journal(path).close()
        return path
    if name == "last":
        runs = list_runs(directory)
        if not runs:
            raise UsageError(f"there is no run in {str(directory)!r} yet; start one with `aeon-tui run`")
        return Path(runs[0].path)
    found = sorted(Path(each.path) for each in journal_entries(directory) if name and each.name.startswith(name))
    exact = [path for path in found if path.stem == name]
    if len(found) > 1 and not exact:
        ids = {each.run_id for each in list_runs(directory)}
        found = [path for path in found if path.stem in ids] or found
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        raise UsageError(f"no run {name!r} in {str(directory)!r}; `aeon-tui runs` lists those there are")
    few = ", ".join(path.stem for path in found[:3])
    raise UsageError(f"{name!r} is the beginning of {len(found)} runs ({few}, …); give more of it")
