"""Folding records into a view, one handler a type (those of the adaptive engine are in `adaptive_fold`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from aeon_core.journal.values import counts_of, dict_of, dicts_of, id_of, int_of, number_of, str_of, strs_of
from aeon_core.journal.view import adaptive_fold, fork_fold, formatting
from aeon_core.journal.view.parts import CallView, PhaseView, RepairView, StepView, ToolCallView
from aeon_core.journal.view.plan_nodes import describe, nodes, status_of
from aeon_core.step_words import ExecutionMode
from aeon_core.suggest import first_problem

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView

Record = Mapping[str, Any]
_MODES = get_args(ExecutionMode)


def apply(view: RunView, record: Record) -> None:
    """Fold one record into `view`. Raises only on a record that is no mapping of strings."""
    handler = _HANDLERS.get(str_of(record.get("type")))
    before, view.last_seq = view.last_ts, int_of(record.get("seq"), view.last_seq)
    view.last_ts = str_of(record.get("ts")) or view.last_ts
    view.run_id = view.run_id or str_of(record.get("run"))
    if "pass" in record and record.get("type") != "profile":
        # A profile is revised in the pass before the one it is for.
        view.current_pass = int_of(record["pass"], view.current_pass)
    if handler is not None:
        handler(view, record)
    if record.get("type") == "label" and view.status != "running":
        # A run takes no longer because somebody labels it later.
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
    fork_fold.start(view, record)


def _run_resumed(view: RunView, record: Record) -> None:
    view.status, view.result, view.asked = "running", None, ""
    view.labels = [each for each in view.labels if each.seq < int_of(record.get("continues_at"), view.last_seq)]
    adaptive_fold.outcome(view, {})
    model = next((str_of(each.get("model")) for each in dicts_of(record.get("models"))), "")
    view.model = model or view.model
    view.add_line("info", "run_resumed", f"a process goes on with the run{f', with {model}' if model else ''}")


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
        if cause == "repaired" and step_id == repaired:
            step.repaired, step.validator_errors = True, []
        if errors := strs_of(node.get("errors")):
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
    if record.get("mode") in _MODES:
        step.mode = record["mode"]
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
        attempts.append(call)
        if (step := _step_of(view, record)) is not None:
            step.calls.append(call)
    if record.get("state") == "finished":
        call.finished, call.finished_seq = True, view.last_seq
        call.response, call.error = dict_of(record.get("response")), dict_of(record.get("error"))
        call.usage = counts_of(record["usage"]) if dict_of(record.get("usage")) is not None else None
        call.cost_usd, call.latency_ms = number_of(record.get("cost_usd")), number_of(record.get("latency_ms"))
        call.retry_in_s = number_of(record.get("retry_in_s"))
    else:
        request = dict_of(record.get("request"))
        call.request = request if request is not None else {}
    view.add_line(formatting.call_level(call), "llm", formatting.call(call))


def _tool(view: RunView, record: Record) -> None:
    call_id = str_of(record.get("call_id"))
    call = view.tool_calls.get(call_id)
    if call is None or record.get("state") == "started":
        call = ToolCallView(
            call_id=call_id,
            pass_number=int_of(record.get("pass")),
            step_id=str_of(record.get("step_id")),
            tool_name=str_of(record.get("tool_name")),
            arguments=dict_of(record.get("arguments")) or {},
            effect=str_of(record.get("effect")),
            seq=view.last_seq,
            started=view.last_ts,
        )
        view.tool_calls[call_id] = call
        if (step := _step_of(view, record)) is not None:
            step.tool_calls.append(call)
    if record.get("state") == "finished":
        call.finished, call.finished_seq = True, view.last_seq
        call.result, call.error = dict_of(record.get("result")), dict_of(record.get("error"))
        call.duration_ms = number_of(record.get("duration_ms"))
    view.add_line("error" if call.error is not None else "info", "tool", formatting.tool_call(call))


def _supervisor(view: RunView, record: Record) -> None:
    repair = RepairView(
        seq=view.last_seq,
        action_type=str_of(record.get("action_type")),
        method=str_of(record.get("method")),
        attempt_number=int_of(record.get("attempt_number"), 1),
        pass_number=int_of(record.get("pass")),
        step_id=id_of(record.get("step_id")),
        original_output=dict_of(record.get("original_output")) or {},
        repaired_output=dict_of(record.get("repaired_output")),
        error=dict_of(record.get("error")),
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
    """Yield the calls that came back, the last first; a repair costs no cycle."""
    for attempts in reversed(view.calls.values()):
        if attempts and attempts[-1].finished and attempts[-1].purpose != "repair":
            yield attempts[-1]


def _ttl(view: RunView, record: Record) -> None:
    if int_of(record.get("spent")) > view.ttl_spent:
        view.ttl_last = next((formatting.cycle_of(call) for call in _replies(view)), "")
    view.ttl_limit, view.ttl_allocated = int_of(record.get("limit")), int_of(record.get("allocated"))
    view.ttl_spent, view.ttl_remaining = int_of(record.get("spent")), int_of(record.get("remaining"))
    view.ttl_reason = str_of(record.get("reason"))
    view.usage, view.cost_usd = counts_of(record.get("usage")), number_of(record.get("cost_usd"))
    view.add_line("info" if view.ttl_remaining else "warning", "ttl", formatting.ttl(view))


def _approval(view: RunView, record: Record) -> None:
    asked = record.get("state") == "asked"
    text = formatting.approval(record.get("point"), record.get("step_id"), record.get("decision"), asked=asked)
    view.asked = str_of(record.get("point")) if asked else ""
    view.add_line("warning" if asked else "info", "approval", text)
    if record.get("point") == "budget":
        _budget(view, record, asked=asked)


def _budget(view: RunView, record: Record, *, asked: bool) -> None:
    """Keep what an approval would raise the budget to, and raise it."""
    if asked:
        view.proposed_usd = number_of((dict_of(record.get("subject")) or {}).get("proposed_usd"))
        return
    limits = {"approve": view.proposed_usd, "edit": number_of((dict_of(record.get("edited")) or {}).get("limit_usd"))}
    limit = limits.get(str_of(record.get("decision")))
    if limit is not None:
        view.config = {**view.config, "budget": limit}


def _policy(view: RunView, record: Record) -> None:
    answer, reason = str_of(record.get("answer")), formatting.brief(str_of(record.get("reason")), 400)
    where = f"{formatting.brief(record.get('step_id'), 40)} · {formatting.brief(record.get('tool_name'), 60)}"
    view.add_line(
        "warning" if answer == "deny" else "info", "policy", f"{where} · {formatting.brief(answer, 10)}: {reason}"
    )


_FOR_A_PERSON = ("questions", "manual_intervention")
"""Kinds of notices that are lines of a type of their own: a report tells them apart from its warnings."""


def _notice(view: RunView, record: Record) -> None:
    kind, data = record.get("kind"), dict_of(record.get("data")) or {}
    if kind == "advisory":
        adaptive_fold.advisory(view, record)
        return
    if kind == "model_fallback":
        view.model = str_of(data.get("model")) or view.model
    line = kind if kind in _FOR_A_PERSON else "notice"
    view.add_line("warning", line, formatting.brief(str_of(record.get("message")), 400))


def _cycle(view: RunView, record: Record) -> None:
    view.cycles = int_of(record.get("step_number"), view.cycles + 1)


def _pass(view: RunView, record: Record) -> None:
    view.passes = int_of(record.get("pass_number"), view.passes + 1)
    view.add_line("info", "pass", f"pass {view.passes} ended")


def _run_finished(view: RunView, record: Record) -> None:
    data = dict_of(record.get("result")) or {}
    view.status = str_of(data.get("status")) or "failed"
    view.current_step_id, view.asked = None, ""
    adaptive_fold.outcome(view, data)
    from pydantic import ValidationError

    from aeon_core.entities import RunResult

    try:
        view.result = RunResult.model_validate(data, extra="ignore")
    except ValidationError as error:
        view.add_problem(f"the result at seq {view.last_seq} cannot be read: {first_problem(error)}")
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
    "convergence": adaptive_fold.convergence,
    "label": adaptive_fold.label,
    "notice": _notice,
    "profile": adaptive_fold.profile,
    "refinement": adaptive_fold.refinement,
    "validation": adaptive_fold.validation,
    "policy": _policy,
    "cycle": _cycle,
    "pass": _pass,
    "run_finished": _run_finished,
}
