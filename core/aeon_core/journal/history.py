"""Past runs: the list of them, and the structured history of one (adaptive FR-071 to FR-078)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field, ValidationError

from aeon_core.entities import Entity, RunResult
from aeon_core.errors import UsageError
from aeon_core.journal.listing import find_run
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import RECORD, RECORDS
from aeon_core.journal.summary import unended_status
from aeon_core.journal.values import dict_of, dicts_of, int_of, str_of, strs_of
from aeon_core.journal.view import reducer
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.view.model import AssessmentView, RefinementView, RunView
from aeon_core.journal.view.reducer import mode_of
from aeon_core.plan import end_of_chain
from aeon_core.suggest import first_problem
from aeon_core.units import seconds_after

_NO_FIELDS = frozenset({"v", "seq", "ts", "run", "type", "pass"})
"""Keys of a line that are not fields of the entity it holds."""


class ExecutionPass(Entity):
    """One iteration of the multi-pass loop (adaptive: Execution Pass).

    `plan_state` is the plan at the start of the pass; in the first pass, as it was made or given. `phases` holds phase
    and `duration_ms` of each; `timing_information` start_time, end_time and duration in seconds.
    """

    pass_number: Annotated[int, Field(ge=1)]
    phases: list[dict[str, Any]]
    plan_state: dict[str, Any]
    execution_results: dict[str, Any]
    """The `answer`, and the `steps` as in a RunResult."""
    evaluation_results: dict[str, Any]
    """The last `semantic_validation` and `convergence` of the pass; empty in a run without them."""
    refinement_changes: list[dict[str, Any]]
    ttl_remaining: Annotated[int, Field(ge=0)]
    timing_information: dict[str, Any]
    task_profile: dict[str, Any] | None = None
    """The profile in effect during the pass."""
    adaptive_depth: dict[str, Any] | None = None
    """How deeply to reason, and why (adaptive FR-078)."""
    depth_adjustments: list[dict[str, Any]] = Field(default_factory=list)
    """Every AdaptiveDepthConfiguration made for the pass, in order; the last one took effect."""
    final_plan_state: dict[str, Any] | None = None
    """The plan at the end of the pass, with its refinements and step statuses (adaptive FR-072)."""
    validation_reports: list[dict[str, Any]] = Field(default_factory=list)
    """Every SemanticValidationReport of the pass, in order: of the plan before it ran, and of its results (FR-075)."""
    advisories: list[dict[str, Any]] = Field(default_factory=list)
    """Repairs that validation proposed and the planner did not follow (adaptive FR-079)."""


class PassesFold:
    """Folds the records of a run into its passes. Finished passes are copies that later records do not change."""

    def __init__(self) -> None:
        self.passes: list[ExecutionPass] = []
        """The passes that have ended."""
        self._plan: dict[str, Any] | None = None
        self._statuses: dict[str, Any] = {}
        self._depths: list[tuple[int, dict[str, Any]]] = []
        self._reports: list[dict[str, Any]] = []
        self._advisories: list[dict[str, Any]] = []

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold in one record; a pass that cannot be read is left out."""
        kind = record.get("type")
        if kind == "plan":
            self._plan, self._statuses = dict_of(record.get("plan")), {}
        elif kind == "step":
            self._statuses[str_of(record.get("step_id"))] = record.get("status")
        elif kind == "profile":
            depth = deepcopy(dict_of(record.get("adaptive_depth")) or {})
            decided = (int_of(record.get("pass")), depth)
            if decided not in self._depths[-1:]:
                self._depths.append(decided)  # otherwise only the requirements were edited
        elif kind == "validation":
            report = _fields(record)
            if report not in self._reports[-1:]:
                self._reports.append(report)
        elif kind == "notice" and record.get("kind") == "advisory":
            self._advisories.append(deepcopy(dict_of(record.get("data")) or {}))
        elif kind == "pass":
            self._end(record)

    def _end(self, record: Mapping[str, Any]) -> None:
        ended = _read(record)
        if ended is not None:
            ended.final_plan_state = with_statuses(self._plan or ended.plan_state, self._statuses)
            ended.depth_adjustments = [depth for number, depth in self._depths if number == ended.pass_number]
            self._depths = [each for each in self._depths if each[0] != ended.pass_number]
            ended.validation_reports, ended.advisories = self._reports, self._advisories
            self.passes.append(ended)
        self._reports, self._advisories = [], []


def with_statuses(plan: dict[str, Any], statuses: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a plan with its steps' later statuses, given by step_id."""
    copied = deepcopy(plan)
    nodes = dicts_of(copied.get("steps"))
    while nodes:
        node = nodes.pop()
        if status := str_of(statuses.get(str_of(node.get("step_id")))):
            node["status"] = status
        nodes += dicts_of((dict_of(node.get("subplan")) or {}).get("substeps"))
    return copied


def _read(record: Mapping[str, Any]) -> ExecutionPass | None:
    try:
        return ExecutionPass.model_validate(deepcopy(dict(record)), extra="ignore")
    except ValidationError:
        return None


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    return deepcopy({key: value for key, value in record.items() if key not in _NO_FIELDS})


_ENDINGS = frozenset({"no_progress", "ttl_expired"})
"""Reason codes for how a run ended, not for what prevented convergence."""


class RefinedFragment(Entity):
    """A fragment of the plan that was refined more than once; a step and those that replace it are one fragment."""

    fragment: str
    attempts: int
    accepted: int
    """Attempts that changed the plan."""
    passes: list[int]
    reasons: list[str]


class ConvergenceBlocker(Entity):
    """A reason code that prevented convergence, and the passes in which it did."""

    reason_code: str
    passes: list[int]


class DepthAdjustment(Entity):
    """A revision of the profile, and how the pass after it compares with the pass before it.

    The changes of scores are −1…1. They and `converged` are null if one of the two passes was not assessed.
    """

    pass_number: int
    """The first pass it applies to."""
    profile_version: int
    reasoning_mode_before: str
    reasoning_mode: str
    allocated_ttl_before: int | None
    allocated_ttl: int | None
    adjustment_reason: str
    completeness_change: float | None = None
    coherence_change: float | None = None
    converged: bool | None = None


class ExecutionPatterns(Entity):
    """Patterns across passes (adaptive FR-076); empty for a run that converges in its first pass."""

    refined_fragments: list[RefinedFragment] = Field(default_factory=list)
    """The most often refined first."""
    convergence_blockers: list[ConvergenceBlocker] = Field(default_factory=list)
    """Those of the most passes first."""
    depth_adjustments: list[DepthAdjustment] = Field(default_factory=list)


def _refined_fragments(refinements: list[RefinementView]) -> list[RefinedFragment]:
    replaces = {new: old for each in refinements for old, new in each.replaced.items()}
    found: dict[str, RefinedFragment] = {}
    for each in refinements:
        name = end_of_chain(each.target, replaces)
        fragment = found.setdefault(name, RefinedFragment(fragment=name, attempts=0, accepted=0, passes=[], reasons=[]))
        fragment.attempts += 1
        fragment.accepted += each.accepted
        if each.pass_number not in fragment.passes:
            fragment.passes.append(each.pass_number)
        if each.reason not in fragment.reasons:
            fragment.reasons.append(each.reason)
    often = [fragment for fragment in found.values() if fragment.attempts > 1]
    return sorted(often, key=lambda fragment: -fragment.attempts)


def _blockers(assessments: list[AssessmentView]) -> list[ConvergenceBlocker]:
    passes: dict[str, list[int]] = {}
    for each in assessments:
        for code in [] if each.converged else dict.fromkeys(each.reason_codes):
            if code not in _ENDINGS:
                passes.setdefault(code, []).append(each.pass_number)
    found = [ConvergenceBlocker(reason_code=code, passes=numbers) for code, numbers in passes.items()]
    return sorted(found, key=lambda blocker: -len(blocker.passes))


def _adjustments(view: RunView) -> Iterator[DepthAdjustment]:
    assessed = {each.pass_number: each for each in view.assessments}
    for old, new in pairwise(view.profiles):
        before, after = assessed.get(new.pass_number - 1), assessed.get(new.pass_number)
        achieved = _achieved(before, after) if before is not None and after is not None else {}
        yield DepthAdjustment(
            pass_number=new.pass_number,
            profile_version=new.version,
            reasoning_mode_before=old.reasoning_mode,
            reasoning_mode=new.reasoning_mode,
            allocated_ttl_before=old.allocated_ttl,
            allocated_ttl=new.allocated_ttl,
            adjustment_reason=new.reason,
            **achieved,
        )


def _achieved(before: AssessmentView, after: AssessmentView) -> dict[str, Any]:
    return {
        "completeness_change": _change(before.completeness_score, after.completeness_score),
        "coherence_change": _change(before.coherence_score, after.coherence_score),
        "converged": after.converged,
    }


def _change(before: float | None, after: float | None) -> float | None:
    return round(after - before, 3) if before is not None and after is not None else None


class OverallStatistics(Entity):
    """A whole run in numbers; `total_time` is in seconds, from the first record to the last.

    `total_passes` counts finished passes, in a fork also those before it; `total_refinements` counts refinements that
    changed the plan, including those of a pass that was cut short.
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
    """A person's verdict on the result of a pass (contract: `label`); of several on one pass, the last counts.

    `source` is `decision` if it was given with the decision about the pass, `person` if it was added later. `timestamp`
    is ISO 8601, UTC.
    """

    pass_number: int
    verdict: str
    why: str | None
    source: str
    timestamp: str


class ExecutionHistory(Entity):
    """A run as its journal records it (adaptive: Execution History). `final_result` is null if it has not ended.

    `configuration` holds the run's options and its model; for an assessed run also `convergence_criteria`,
    `requirements` (what a finished answer must satisfy) and `adaptive_depth`, the first AdaptiveDepthConfiguration; for
    a fork also `parent`, with the parent's `run_id` and the `pass` it began with.
    """

    execution_id: str
    task_input: str
    configuration: dict[str, Any]
    passes: list[ExecutionPass]
    final_result: RunResult | None
    overall_statistics: OverallStatistics
    labels: list[Label] = Field(default_factory=list)


def open_history(run: str | Path, runs_dir: Path | str | None = None) -> ExecutionHistory:
    """Return the history of a run: a run id, a unique prefix of one, a path to a journal, or `last`.

    Raises UsageError if there is no such run, or more than one, or if the file is not a journal.
    """
    return open_run(run, runs_dir)[1]


def open_run(
    run: str | Path,
    runs_dir: Path | str | None = None,
    pass_number: int | None = None,
    observe: Callable[[Mapping[str, Any]], object] | None = None,
) -> tuple[RunView, ExecutionHistory]:
    """Return the view and the history of a run, or of one pass of it. `observe` is called with each record.

    The view's `damage` says what could not be read. Its status is `interrupted` if the run has not ended and no process
    writes it. Raises UsageError, also if there is no such pass.
    """
    path = find_run(run, runs_dir)
    view = RunView()
    passes = PassesFold()
    damage: list[str] = []
    one = PassFold(pass_number) if pass_number is not None else None
    for record in read_records(path, damage=damage, check=_fault):
        reducer.apply(view, record)
        if one is not None:
            one.apply(record)
        if observe is not None:
            observe(record)
        passes.apply(record)
    view.damage[:0] = damage
    if view.status == "running":
        view.status = unended_status(path)
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


_Part = TypeVar("_Part", bound=Any)


class PassFold:
    """Folds the records of a run up to the end of one pass; `found` holds the numbers of all its passes."""

    def __init__(self, number: int) -> None:
        self.found: set[int] = set()
        self._number = number
        self._view = RunView()
        self._first_seq: int | None = None
        self._started = ""
        self._cycles_before = 0
        self._touched: set[str] = set()
        self._ended = False

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold in one record, unless it belongs to a later pass."""
        number = _pass_of(record)
        if number is not None:
            self.found.add(number)
            self._ended = self._ended or number > self._number
        if self._ended:
            return
        reducer.apply(self._view, record)
        if number == self._number:
            if self._first_seq is None:
                self._first_seq, self._started = self._view.last_seq, self._view.last_ts
                self._cycles_before = self._view.cycles
            if record.get("type") == "step":
                self._touched.add(str_of(record.get("step_id")))
            self._ended = record.get("type") == "pass"

    def view(self, whole: RunView) -> RunView:
        """Return the pass's view. The status is the whole run's; the result belongs to the last pass.

        Steps are those that ran in the pass and those still pending; `usage` and `cost_usd` count the pass's own calls.
        """
        view, number = self._view, self._number

        def own(parts: list[_Part]) -> list[_Part]:
            return [part for part in parts if part.pass_number == number]

        view.status = whole.status
        if number == max(self.found, default=0):
            view.result = whole.result
            view.follow_up_questions, view.manual_interventions = whole.follow_up_questions, whole.manual_interventions
        view.started = self._started or view.started
        view.cycles -= self._cycles_before
        view.log = [line for line in view.log if self._first_seq is not None and line.seq >= self._first_seq]
        view.log_count = len(view.log)
        view.repairs = own(view.repairs)
        view.calls = {key: own(calls) for key, calls in view.calls.items()}
        view.tool_calls = {key: call for key, call in view.tool_calls.items() if call.pass_number == number}
        calls = [call for attempts in view.calls.values() for call in attempts]
        view.usage = {
            name: sum((call.usage or {}).get(name, 0) for call in calls) for name in ("input_tokens", "output_tokens")
        }
        costs = [call.cost_usd for call in calls if call.cost_usd is not None]
        view.cost_usd = sum(costs) if costs else None
        view.steps = {
            step_id: step
            for step_id, step in view.steps.items()
            if step_id in self._touched or step.status == "pending"
        }
        for step in view.steps.values():
            step.repairs = own(step.repairs)
        view.labels = own(whole.labels)
        view.reports, view.assessments = own(view.reports), own(view.assessments)
        view.refinements, view.advisories = own(view.refinements), own(view.advisories)
        view.profiles = own(view.profiles) or [each for each in view.profiles if each.pass_number <= number][-1:]
        return view


def _pass_of(record: Mapping[str, Any]) -> int | None:
    """Return the pass in which a record was written, None if it does not say.

    A profile may be written before its pass has begun.
    """
    kind = record.get("type")
    number = record.get("pass_number") if kind == "pass" else record.get("pass") if kind != "profile" else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None


def open_end(path: Path) -> tuple[RunView, ExecutionHistory]:
    """Return view and history of a journal of any size, from its beginning and its end alone.

    The view's `whole_from` is the seq from which nothing is left out, 0 if nothing is. Plan, statuses, totals and the
    last scores are current; earlier passes, repairs and warnings are missing, and so are the outputs of earlier steps
    if the run has not ended.
    """
    with LastStates(path) as end:
        end.read_on()
        view, records = end.view(), end.records()
    passes = PassesFold()
    for record in records:
        passes.apply(record)
    for result in view.result.steps if view.result is not None else ():
        step = view.steps.get(str_of(result.get("step_id")))
        if step is not None and step.output is None:
            step.output, step.errors = dict_of(result.get("output")), strs_of(result.get("errors"))
            step.mode = mode_of(result)
    if view.status == "running":
        view.status = unended_status(path)
    return view, _history(view, passes.passes)


def final_result(view: RunView) -> RunResult | None:
    """Return the run's result, None if there is none or it cannot be read; then the view says so."""
    try:
        return view.result.validated() if view.result is not None else None
    except ValidationError as error:
        view.add_problem(f"cannot read the result: {first_problem(error)}")
        return None


def _fault(record: dict[str, Any]) -> str | None:
    """Return what is wrong with a record of a known type, None if nothing is. A result's problem is in the view."""
    if record["type"] not in RECORDS or record["type"] == "run_finished":
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
        return "no pass has started"
    shown = [str(number) for number in sorted(numbers)]
    few = shown if len(shown) <= 10 else [*shown[:5], "…", *shown[-4:]]
    return f"there {'is pass' if len(shown) == 1 else 'are the passes'} {', '.join(few)}"


def _history(view: RunView, passes: list[ExecutionPass]) -> ExecutionHistory:
    accepted, final = _accepted(view, passes), final_result(view)
    return ExecutionHistory(
        execution_id=view.run_id,
        task_input=view.task,
        configuration=_configuration(view, passes),
        passes=passes,
        final_result=final,
        overall_statistics=OverallStatistics(
            total_passes=passes[-1].pass_number if passes else 0,
            total_refinements=accepted.count(True),
            refused_refinements=accepted.count(False),
            convergence_achieved=final is not None and final.converged,
            total_time=seconds_after(view.started, view.last_ts),
            total_cycles=view.cycles,
            total_repairs=len(view.repairs),
            patterns=ExecutionPatterns(
                refined_fragments=_refined_fragments(view.refinements),
                convergence_blockers=_blockers(view.assessments),
                depth_adjustments=list(_adjustments(view)),
            ),
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
        "parent": {"run_id": view.parent, "pass": view.parent_pass or None} if view.parent else None,
    }
    return {**view.config, "model": view.model, **{key: deepcopy(value) for key, value in found.items() if value}}


def _accepted(view: RunView, passes: list[ExecutionPass]) -> list[bool]:
    """Return for each refinement whether it was accepted; those of an unfinished pass come last."""
    ended = {each.pass_number for each in passes}
    found = [change.get("accepted") is not False for each in passes for change in each.refinement_changes]
    return found + [each.accepted for each in view.refinements if each.pass_number not in ended]
