"""Folding records into a view, with one handler per type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, cast, get_args

from msgspec.structs import replace

from aeon_core.journal.reader import STATE_TYPES
from aeon_core.journal.values import (
    at_pass,
    brief,
    counts_of,
    dict_of,
    dicts_of,
    id_of,
    int_of,
    number_of,
    str_of,
    strs_of,
)
from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import (
    AdvisoryView,
    AssessmentView,
    CallView,
    CheckView,
    InterventionView,
    IssueView,
    LabelView,
    PhaseView,
    ProfileView,
    RefinementView,
    RepairView,
    ReportView,
    RequirementView,
    ResultView,
    RunView,
    StepView,
    SuspicionView,
    ToolCallView,
)
from aeon_core.plan import ExecutionMode, StepStatus

_STATUSES = get_args(StepStatus)


def nodes(plan: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], int, str | None]]:
    """Yield each step with its depth and its parent's id, substeps after their parent."""
    stack: list[tuple[dict[str, Any], int, str | None]] = []
    stack.extend((node, 0, None) for node in reversed(dicts_of(plan.get("steps"))))
    while stack:
        node, depth, parent = stack.pop()
        if id_of(node.get("step_id")) is None:
            continue
        yield node, depth, parent
        substeps = dicts_of((dict_of(node.get("subplan")) or {}).get("substeps"))
        stack.extend((substep, depth + 1, node["step_id"]) for substep in reversed(substeps))


def describe(step: StepView, node: Mapping[str, Any], depth: int, parent: str | None) -> None:
    """Set the fields of a step's view that the plan determines."""
    step.description, step.depth, step.parent = str_of(node.get("description")), depth, parent
    step.status = status_of(node.get("status"), step.status)
    step.tool, step.agent = id_of(node.get("tool")), id_of(node.get("agent"))
    step.arguments, step.replaces = dict_of(node.get("arguments")), id_of(node.get("replaces"))
    step.depends_on = strs_of(node.get("depends_on"))


def status_of(value: Any, default: StepStatus) -> StepStatus:
    """Return a step's status, `default` if the value is not one."""
    return cast("StepStatus", value) if value in _STATUSES else default


Record = Mapping[str, Any]
_View = TypeVar("_View")
_READERS: dict[str, Callable[[Any], Any]] = {
    "str": str_of,
    "str | None": id_of,
    "int": int_of,
    "bool": lambda value: value is True,
    "bool | None": lambda value: value if isinstance(value, bool) else None,
    "float | None": number_of,
    "list[str]": strs_of,
    "list[dict[str, Any]]": dicts_of,
    "dict[str, Any]": lambda value: dict_of(value) or {},
    "dict[str, Any] | None": dict_of,
}
"""How to read a field of each type from a record."""


@cache
def _readers(form: Any) -> dict[str, Callable[[Any], Any]]:
    return {name: _READERS[kind] for name, kind in form.__annotations__.items() if kind in _READERS}


def _read(form: type[_View], record: Record, /, **known: Any) -> _View:
    """Return a part of the view from a record's fields of the same names, except those in `known`."""
    return form(
        **{name: read(record.get(name)) for name, read in _readers(cast("Any", form)).items() if name not in known},
        **known,
    )


_SEVERITIES = ("high", "medium", "low")
_DIMENSIONS = (
    "reasoning_depth",
    "information_sufficiency",
    "expected_tool_usage",
    "output_breadth",
    "confidence_requirement",
)


def profile(view: RunView, record: Record) -> None:
    """Fold in a TaskProfile."""
    found = profile_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    last = view.profile
    if last is not None and replace(found, seq=last.seq, reason=last.reason, requirements=last.requirements) == last:
        view.profiles[-1] = replace(last, requirements=found.requirements)
        view.add_line("info", "profile", f"{found.reason}: {' · '.join(map(brief, found.requirements))}")
        return
    view.profiles.append(found)
    view.add_line("info", "profile", formatting.profile(found))


def label(view: RunView, record: Record) -> None:
    """Fold in a person's verdict on a pass."""
    found = _read(LabelView, record, seq=view.last_seq, ts=view.last_ts, pass_number=int_of(record.get("pass")))
    view.labels.append(found)
    view.add_line("info", "label", formatting.label(found))


def profile_of(record: Record, *, pass_number: int, seq: int) -> ProfileView:
    """Return the fields of a TaskProfile without its `adaptive_depth` and the `adjustment_reason`."""
    depth = dict_of(record.get("adaptive_depth")) or {}
    ttl = depth.get("allocated_ttl")
    return ProfileView(
        seq=seq,
        pass_number=pass_number,
        version=int_of(record.get("profile_version")),
        dimensions={name: str_of(record.get(name)) for name in _DIMENSIONS if id_of(record.get(name))},
        raw_inference=str_of(record.get("raw_inference")),
        reasoning_mode=str_of(depth.get("reasoning_mode")),
        allocated_ttl=int_of(ttl) if number_of(ttl) is not None else None,
        reason=str_of(record.get("adjustment_reason")),
        requirements=strs_of(record.get("requirements")),
    )


def validation(view: RunView, record: Record) -> None:
    """Fold in a report; one that is repeated in the same pass is kept once."""
    issues = sorted(map(issue_of, dicts_of(record.get("issues"))), key=_rank)
    report = _read(ReportView, record, seq=view.last_seq, pass_number=int_of(record.get("pass")), issues=issues)
    last = view.reports[-1] if view.reports else None
    if last is not None and (last.pass_number, last.validation_id) == (report.pass_number, report.validation_id):
        view.reports.pop()
    view.reports.append(report)
    view.add_line("warning" if report.issues else "info", "validation", formatting.validation(report))


def convergence(view: RunView, record: Record) -> None:
    """Fold in an assessment; a later one of the same pass replaces it, since it says how the pass ended."""
    found = assessment_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    if view.assessments and view.assessments[-1].pass_number == found.pass_number:
        view.assessments.pop()
    view.assessments.append(found)
    view.add_line("info", "convergence", formatting.convergence(found))


def assessment_of(assessment: Record, *, pass_number: int, seq: int = 0) -> AssessmentView:
    """Return a ConvergenceAssessment in a record or a result.

    For a result that was not judged there are no scores, and only the flags that exact checks found broken.
    """
    unjudged = "not_judged" in strs_of(assessment.get("reason_codes"))
    flags = dict_of(assessment.get("consistency_status")) or {}
    metadata = dict_of(assessment.get("metadata")) or {}
    return _read(
        AssessmentView,
        assessment,
        seq=seq,
        pass_number=pass_number,
        completeness_score=None if unjudged else _score(assessment.get("completeness_score")),
        coherence_score=None if unjudged else _score(assessment.get("coherence_score")),
        consistency={name: flag for name, flag in flags.items() if isinstance(flag, bool) and not (flag and unjudged)},
        criteria=dict_of(metadata.get("criteria")) or {},
        additional=_additional(dict_of(metadata.get("additional")) or {}),
        requirements=[_read(RequirementView, verdict) for verdict in dicts_of(assessment.get("requirements"))],
        checks=_checks(dict_of(metadata.get("evidence")) or {}),
        suspicions=[_read(SuspicionView, suspicion) for suspicion in dicts_of(metadata.get("suspicions"))],
    )


def _checks(record: Record) -> list[CheckView]:
    found = ((name, dict_of(check) or {}) for name, check in record.items())
    return [_read(CheckView, check, name=name) for name, check in found if isinstance(check.get("ok"), bool)]


def _additional(record: Record) -> dict[str, bool]:
    met = {name: (dict_of(verdict) or {}).get("met") for name, verdict in record.items()}
    return {name: value for name, value in met.items() if isinstance(value, bool)}


def refinement(view: RunView, record: Record) -> None:
    """Fold in a refinement action and its result."""
    found = refinement_of(record, pass_number=int_of(record.get("pass")), seq=view.last_seq)
    view.refinements.append(found)
    view.add_line("info" if found.accepted else "warning", "refinement", formatting.refinement(found))


def refinement_of(record: Record, *, pass_number: int, seq: int = 0) -> RefinementView:
    """Return a refinement action and its result, from a record or from what a person is asked about."""
    action = dict_of(record.get("action")) or {}
    replaced = dict_of(record.get("replaced")) or {}
    return _read(
        RefinementView,
        record,
        seq=seq,
        pass_number=pass_number,
        kind=str_of(action.get("type")),
        target=str_of(action.get("target")),
        reason=str_of(action.get("reason")),
        replaced={old: new for old, new in replaced.items() if isinstance(new, str)},
        issues=[issue_of(issue) for issue in dicts_of(action.get("semantic_validation_input"))],
    )


def advisory(view: RunView, record: Record) -> None:
    """Fold in the notice that a proposed repair was not carried out (adaptive FR-079)."""
    data = dict_of(record.get("data")) or {}
    issue = dict_of(data.get("issue"))
    found = _read(
        AdvisoryView,
        record,
        seq=view.last_seq,
        pass_number=int_of(record.get("pass")),
        step_id=id_of(data.get("step_id")) or id_of(record.get("step_id")),
        issue=issue_of(issue) if issue is not None else None,
    )
    view.advisories.append(found)
    view.add_line("warning", "advisory", formatting.advisory(found))


def _left_open(view: RunView, kind: str, data: Record) -> None:
    """Fold in a notice of questions, or of a fragment that needs a person."""
    known = view.left_open
    if kind == "questions":
        known.questions += [each for each in strs_of(data.get("questions")) if each not in known.questions]
    else:
        fragment = _read(InterventionView, data)
        same = [each for each in known.interventions if each.step_id == fragment.step_id]
        known.interventions = [each for each in known.interventions if each not in same] + [fragment]
    outcome(view, {})


def outcome(view: RunView, result: Record) -> None:
    """Set the questions and fragments that are left to a person: those of the result, else those of notices."""
    known = view.left_open
    asked, fragments = result.get("follow_up_questions"), result.get("manual_intervention")
    view.follow_up_questions = list(known.questions) if asked is None else strs_of(asked)
    view.manual_interventions = (
        list(known.interventions)
        if fragments is None
        else [_read(InterventionView, each) for each in dicts_of(fragments)]
    )


def _score(value: Any) -> float | None:
    number = number_of(value)
    return number if number is not None and 0 <= number <= 1 else None


def issue_of(issue: Record) -> IssueView:
    """Return an issue in a report or, with its step, in a refinement."""
    place = dict_of(issue.get("location")) or issue
    artifact, step_id = str_of(place.get("artifact")), id_of(place.get("step_id"))
    return _read(IssueView, issue, artifact=artifact, step_id=step_id, repair=str_of(issue.get("proposed_repair")))


def _rank(issue: IssueView) -> int:
    return _SEVERITIES.index(issue.severity) if issue.severity in _SEVERITIES else len(_SEVERITIES)


def start(view: RunView, record: Record) -> None:
    """Fold in the parent in a `run_started` record, and the state that the fork starts with."""
    parent = dict_of(record.get("parent"))
    if parent is None:
        return
    view.parent, view.parent_pass = str_of(parent.get("run_id")), int_of(parent.get("pass"))
    view.add_line("info", "fork", f"a fork of {view.parent}{at_pass(view.parent_pass)}")
    if (begun := dict_of(record.get("start"))) is not None:
        _steps(view, begun)
        _restore(view, begun)


def _steps(view: RunView, begun: Record) -> None:
    plan = dict_of(begun.get("plan")) or {}
    view.goal = str_of(plan.get("goal"))
    for node, depth, parent in nodes(plan):
        step = view.steps[node["step_id"]] = StepView(step_id=node["step_id"], description="")
        describe(step, node, depth, parent)
    for result in dicts_of((dict_of(begun.get("results")) or {}).get("steps")):
        known = view.steps.get(id_of(result.get("step_id")) or "")
        if known is not None:
            known.output, known.errors = dict_of(result.get("output")), strs_of(result.get("errors"))


def _restore(view: RunView, begun: Record) -> None:
    number = view.passes = int_of(begun.get("pass_number"))
    view.cycles = int_of(begun.get("cycles"))
    _set_cycles(view, dict_of(begun.get("ttl")) or {})
    if (profile := dict_of(begun.get("task_profile"))) is not None:
        depth = dict_of(begun.get("adaptive_depth")) or {}
        record = {**profile, "adaptive_depth": depth, "adjustment_reason": depth.get("adjustment_reason")}
        record["requirements"] = begun.get("requirements")
        view.profiles.append(profile_of(record, pass_number=number, seq=view.last_seq))
    if (assessment := dict_of(begun.get("assessment"))) is not None:
        view.assessments.append(assessment_of(assessment, pass_number=number, seq=view.last_seq))


_MODES = get_args(ExecutionMode)


MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""The errors raised by a record whose fields are not as Aeon writes them."""


def apply(view: RunView, record: Record) -> None:
    """Fold one parsed line into `view`. Never raises, even on a record that it does not understand."""
    try:
        _apply(view, record)
    except MALFORMED as error:
        view.add_problem(f"a record after seq {view.last_seq} cannot be read: {type(error).__name__}")


def fold(records: Iterable[Record]) -> RunView:
    """Return the view of these records, in order. Any prefix of a journal can be folded."""
    view = RunView()
    for record in records:
        apply(view, record)
    return view


def _apply(view: RunView, record: Record) -> None:
    handler = _HANDLERS.get(str_of(record.get("type")))
    before, view.last_seq = view.last_ts, int_of(record.get("seq"), view.last_seq)
    view.last_ts = str_of(record.get("ts")) or view.last_ts
    view.run_id = view.run_id or str_of(record.get("run"))
    if "pass" in record and record.get("type") != "profile":
        # A profile is revised in the pass before the one that it applies to.
        view.current_pass = int_of(record["pass"], view.current_pass)
    if handler is not None:
        handler(view, record)
    if view.status != "running" and record.get("type") not in STATE_TYPES:
        # Records added after the end, such as labels, do not make a run longer.
        view.last_ts = before


def _run_started(view: RunView, record: Record) -> None:
    view.run_id = str_of(record.get("run")) or view.run_id
    view.task = str_of(record.get("task"))
    view.model = str_of(record.get("model"))
    view.simulated = record.get("simulated") is True
    view.started = str_of(record.get("ts"))
    view.config = dict_of(record.get("config")) or {}
    view.tools = dicts_of(record.get("tools"))
    view.memory = dict(dict_of(record.get("memory")) or {})
    view.ttl_limit = int_of(view.config.get("ttl"))
    view.add_line("info", "run_started", formatting.run_started(view))
    start(view, record)


def _run_resumed(view: RunView, record: Record) -> None:
    # A question that was asked and not decided is asked again, without another record.
    view.status, view.result, view.resumable = "running", None, False
    view.labels = [each for each in view.labels if each.seq < int_of(record.get("continues_at"), view.last_seq)]
    outcome(view, {})
    model = next((str_of(each.get("model")) for each in dicts_of(record.get("models"))), "")
    view.model = model or view.model
    view.add_line("info", "run_resumed", f"the run was resumed{f', with {model}' if model else ''}")


def _journal_recovered(view: RunView, record: Record) -> None:
    view.add_line("warning", "journal_recovered", f"a torn line at byte {int_of(record.get('offset'))} was set aside")


def _phase(view: RunView, record: Record) -> None:
    name, finished = str_of(record.get("phase")), record.get("state") == "finished"
    last = view.phases[-1] if view.phases else None
    if not finished or last is None or (last.pass_number, last.phase) != (view.current_pass, name):
        last = PhaseView(view.current_pass, name, view.last_ts)
        view.phases.append(last)
    if finished:
        last.finished, last.duration_ms = True, number_of(record.get("duration_ms"))
    view.add_line("info", "phase", formatting.phase(view.phases[-1]))


def _plan(view: RunView, record: Record) -> None:
    plan = dict_of(record.get("plan")) or {}
    cause, repaired = str_of(record.get("cause")), id_of(record.get("step_id"))
    view.goal = str_of(plan.get("goal"))
    before, view.steps = view.steps, {}
    warnings: list[str] = []
    for node, depth, parent in nodes(plan):
        step_id = str_of(node["step_id"])
        known = before.get(step_id)
        step = known or StepView(step_id=step_id, description="")
        view.steps[step_id] = step
        describe(step, node, depth, parent)
        errors = strs_of(node.get("errors"))
        if cause == "repaired" and step_id == repaired:
            # A step that could not be repaired keeps its errors.
            step.repaired, step.validator_errors = not errors, errors
        if errors:
            new = [error for error in errors if error not in step.validator_errors]
            warnings += [formatting.validator_error(step, error) for error in new]
            step.validator_errors = errors
        elif cause == "refined":
            step.validator_errors = []
    view.add_line("warning" if cause == "repaired" else "info", "plan", formatting.plan(view, cause, repaired))
    for text in warnings:
        view.add_line("warning", "plan", text)


def _step_of(view: RunView, record: Record) -> StepView | None:
    step_id = id_of(record.get("step_id"))
    return view.steps.get(step_id) if step_id is not None else None


def _step(view: RunView, record: Record) -> None:
    step_id = id_of(record.get("step_id"))
    if step_id is None:
        return
    step = view.steps.setdefault(step_id, StepView(step_id=step_id, description=""))
    step.status = status_of(record.get("status"), step.status)
    step.mode = mode_of(record) or step.mode
    if (output := dict_of(record.get("output"))) is not None:
        step.output, step.output_seq = output, view.last_seq
    if "errors" in record:
        step.errors = strs_of(record["errors"])
    if step.status == "running":
        view.current_step_id = step_id
    elif view.current_step_id == step_id:
        parent = view.steps.get(step.parent) if step.parent is not None else None
        view.current_step_id = parent.step_id if parent is not None and parent.status == "running" else None
    view.add_line(formatting.step_level(step), "step", formatting.step(step))


def _llm(view: RunView, record: Record) -> None:
    call_id, attempt = str_of(record.get("call_id")), int_of(record.get("attempt"), 1)
    attempts = view.calls.setdefault(call_id, [])
    call = next((known for known in reversed(attempts) if known.attempt == attempt and not known.finished), None)
    if call is None:
        call = CallView(
            call_id=call_id,
            purpose=str_of(record.get("purpose")),
            pass_number=int_of(record.get("pass")),
            step_id=id_of(record.get("step_id")),
            attempt=attempt,
            seq=view.last_seq,
            started=view.last_ts,
        )
        if not attempts:
            view.call_seqs.append(call.seq)
            if call.step_id is None:
                view.loose_calls.append(call)
        view.calls[call_id] = [*attempts, call]
        if (step := _step_of(view, record)) is not None:
            step.calls.append(call)
    if record.get("state") == "finished":
        call.finished, call.finished_seq = True, view.last_seq
        call.response, call.error = dict_of(record.get("response")), dict_of(record.get("error"))
        call.usage = counts_of(record["usage"]) if dict_of(record.get("usage")) is not None else None
        call.cost_usd, call.latency_ms = number_of(record.get("cost_usd")), number_of(record.get("latency_ms"))
        call.retry_in_s = number_of(record.get("retry_in_s"))
        call.is_cut = (record.get("stop_reason") or (call.response or {}).get("stop_reason")) == "max_tokens"
    else:
        # One that stays in the journal is an empty object of its own kind, which `or {}` would lose.
        request = dict_of(record.get("request"))
        call.request = request if request is not None else {}
    view.add_line(formatting.call_level(call), "llm", formatting.call(call))


def _tool(view: RunView, record: Record) -> None:
    call_id = str_of(record.get("call_id"))
    call = view.tool_calls.get(call_id)
    if call is None or record.get("state") == "started":
        fields = {name: record.get(name) for name in ("call_id", "step_id", "tool_name", "arguments", "effect")}
        number = int_of(record.get("pass"))
        call = _read(ToolCallView, fields, pass_number=number, seq=view.last_seq, started=view.last_ts)
        if call_id in view.tool_calls:
            view.tool_calls = view.tool_calls.copy()  # a FrozenView keeps the call that had the id before
        view.tool_calls[call_id] = call
        if (step := _step_of(view, record)) is not None:
            step.tool_calls.append(call)
    if record.get("state") == "finished":
        call.finished, call.finished_seq = True, view.last_seq
        call.result, call.error = dict_of(record.get("result")), dict_of(record.get("error"))
        call.duration_ms = number_of(record.get("duration_ms"))
    view.add_line("error" if call.error is not None else "info", "tool", formatting.tool_call(call))
    if note := str_of(record.get("note")):
        view.add_line("warning", "notice", brief(note, 400))


def _supervisor(view: RunView, record: Record) -> None:
    step_id = id_of(record.get("step_id"))
    calls = (call.purpose for call in reversed(view.loose_calls) if call.purpose != "repair")
    repair = _read(
        RepairView,
        record,
        seq=view.last_seq,
        attempt_number=int_of(record.get("attempt_number"), 1),
        pass_number=int_of(record.get("pass")),
        purpose=next(calls, "") if step_id is None else "",
    )
    view.repairs.append(repair)
    if (step := _step_of(view, record)) is not None:
        step.repairs.append(repair)
    view.add_line("warning", "supervisor", formatting.repair(repair))


def _memory(view: RunView, record: Record) -> None:
    key, error = str_of(record.get("key")), id_of(record.get("error"))
    if error is None:
        view.memory[key] = record.get("value")
    view.add_line("info" if error is None else "warning", "memory", formatting.memory(key, record.get("value"), error))


def _replies(view: RunView) -> Iterator[CallView]:
    """Yield the calls that have a reply, newest first; a repair costs no cycle."""
    for attempts in reversed(view.calls.values()):
        if attempts and attempts[-1].finished and attempts[-1].purpose != "repair":
            yield attempts[-1]


def _set_cycles(view: RunView, ttl: Mapping[str, Any]) -> None:
    view.ttl_limit, view.ttl_allocated = int_of(ttl.get("limit")), int_of(ttl.get("allocated"))
    view.ttl_spent, view.ttl_remaining = int_of(ttl.get("spent")), int_of(ttl.get("remaining"))


def _ttl(view: RunView, record: Record) -> None:
    before = formatting.ttl(view)
    if int_of(record.get("spent")) > view.ttl_spent:
        view.ttl_last = next((formatting.cycle_of(call) for call in _replies(view)), "")
    _set_cycles(view, record)
    view.ttl_reason = str_of(record.get("reason"))
    view.usage, view.cost_usd = counts_of(record.get("usage")), number_of(record.get("cost_usd"))
    if (now := formatting.ttl(view)) != before:
        view.add_line("info" if view.ttl_remaining else "warning", "ttl", now)


def _approval(view: RunView, record: Record) -> None:
    asked = record.get("state") == "asked"
    answer = record.get("decision"), record.get("feedback")
    text = formatting.approval(record.get("point"), record.get("step_id"), *answer, asked=asked)
    view.asked = str_of(record.get("point")) if asked else ""
    view.add_line("warning" if asked else "info", "approval", text)
    if (answers := dict_of(record.get("answers"))) and not asked:
        view.answers |= {question: str_of(words) for question, words in answers.items()}
        known = view.left_open
        known.questions = [each for each in known.questions if each not in answers]
        view.follow_up_questions = [each for each in view.follow_up_questions if each not in answers]
        view.add_line("info", "approval", formatting.answers(answers))
    if rule := str_of((dict_of(record.get("allow")) or {}).get("rule")):
        view.add_line("info", "approval", formatting.allowed(rule))
    if record.get("point") == "budget":
        _budget(view, record, asked=asked)


def _budget(view: RunView, record: Record, *, asked: bool) -> None:
    """Note the budget that an approval would set, and set it once approved."""
    if asked:
        view.proposed_usd = number_of((dict_of(record.get("subject")) or {}).get("proposed_usd"))
        return
    limits = {"approve": view.proposed_usd, "edit": number_of((dict_of(record.get("edited")) or {}).get("limit_usd"))}
    limit = limits.get(str_of(record.get("decision")))
    if limit is not None:
        view.config = {**view.config, "budget": limit}


def _policy(view: RunView, record: Record) -> None:
    answer, reason = str_of(record.get("answer")), brief(str_of(record.get("reason")), 400)
    where = f"{brief(record.get('step_id'), 40)} · {brief(record.get('tool_name'), 60)}"
    view.add_line("warning" if answer == "deny" else "info", "policy", f"{where} · {brief(answer, 10)}: {reason}")


_FOR_A_PERSON = ("questions", "manual_intervention")
"""Kinds of notices that are lines of a type of their own: a report keeps them apart from its warnings."""


def _notice(view: RunView, record: Record) -> None:
    kind, data = str_of(record.get("kind")), dict_of(record.get("data")) or {}
    if kind == "advisory":
        advisory(view, record)
        return
    if kind == "model_fallback":
        view.model = str_of(data.get("model")) or view.model
    for_a_person = kind in _FOR_A_PERSON
    view.add_line("warning", kind if for_a_person else "notice", brief(str_of(record.get("message")), 400))
    if for_a_person:
        _left_open(view, kind, data)


def mode_of(record: Record) -> ExecutionMode | None:
    """Return how a step was executed, if a record says so."""
    mode: ExecutionMode | None = record.get("mode") if record.get("mode") in _MODES else None
    return mode


def result_of(result: Record) -> ResultView:
    """Return the view of a result, whatever is missing from it."""
    answer, metadata = result.get("answer"), dict_of(result.get("ttl_expired_metadata")) or {}
    return _read(
        ResultView,
        result,
        status=str_of(result.get("status")) or "failed",
        answer=answer if isinstance(answer, str) else None,
        incomplete_steps=strs_of(metadata.get("incomplete_steps")),
        record=dict(result),
    )


def _cycle(view: RunView, record: Record) -> None:
    view.cycles = int_of(record.get("step_number"), view.cycles + 1)


def _pass(view: RunView, record: Record) -> None:
    view.passes = int_of(record.get("pass_number"), view.passes + 1)
    view.add_line("info", "pass", f"pass {view.passes} ended")


def _run_finished(view: RunView, record: Record) -> None:
    data = dict_of(record.get("result")) or {}
    view.status = str_of(data.get("status")) or "failed"
    view.current_step_id, view.asked, view.resumable = None, "", record.get("resumes_at") is not None
    outcome(view, data)
    view.result = result_of(data)
    view.add_line(formatting.run_level(view.status), "run_finished", formatting.run_finished(view, data))


_HANDLERS: dict[str, Callable[[RunView, Record], None]] = {
    "run_started": _run_started,
    "run_resumed": _run_resumed,
    "journal_recovered": _journal_recovered,
    "phase": _phase,
    "plan": _plan,
    "step": _step,
    "llm": _llm,
    "tool": _tool,
    "supervisor": _supervisor,
    "memory": _memory,
    "ttl": _ttl,
    "approval": _approval,
    "convergence": convergence,
    "label": label,
    "notice": _notice,
    "profile": profile,
    "refinement": refinement,
    "validation": validation,
    "policy": _policy,
    "cycle": _cycle,
    "pass": _pass,
    "run_finished": _run_finished,
}
