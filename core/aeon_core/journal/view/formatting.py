"""Records as lines that a person can read: one line each, clipped, with control characters made visible."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from aeon_core.escape import escape_controls

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView
    from aeon_core.journal.view.parts import CallView, PhaseView, RepairView, StepView, ToolCallView

LIMIT = 200
"""Characters of one value that a line shows."""
_STATE = frozenset({"status", "errors"})
"""Fields of a step that a repair does not decide."""
_ABSENT = object()


def brief(value: Any, limit: int = LIMIT) -> str:
    """Return any JSON value on one line: text as it is, `{"text": …}` as its text, all else as JSON."""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get("text"), str):
        value = value["text"]
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False)
        except (RecursionError, TypeError, ValueError):
            value = "(cannot be shown)"
    # Twice the limit leaves room for runs of white space, and keeps 5 MB out of the work below.
    line = " ".join(value[: 2 * limit].split())
    clipped = line[:limit] + "…" if len(line) > limit or len(value) > 2 * limit else line
    return escape_controls(clipped)


def message(error: Any) -> str:
    """Return the message of an error's dict on one line."""
    if isinstance(error, dict):
        error = error.get("message", error)
    return brief(error)


def run_started(view: RunView) -> str:
    label = " (simulated)" if view.simulated else ""
    return f"run {brief(view.run_id, 60)} · model {brief(view.model, 80)}{label} · {brief(view.task)}"


def phase(shown: PhaseView) -> str:
    if not shown.finished:
        return f"pass {shown.pass_number} · {brief(shown.phase, 20)} started"
    took = f" after {shown.duration_ms:.0f} ms" if shown.duration_ms is not None else ""
    return f"pass {shown.pass_number} · {brief(shown.phase, 20)} finished{took}"


def plan(view: RunView, cause: str, step_id: str | None) -> str:
    step = view.steps.get(step_id) if step_id is not None else None
    if cause == "repaired" and step is not None:
        return f"{brief(step.step_id, 40)} repaired · {route(step)} · {brief(step.description)}"
    count = f"{len(view.steps)} step{'' if len(view.steps) == 1 else 's'}"
    return f"plan {brief(cause, 20)} · {count} · {brief(view.goal)}"


def validator_error(step: StepView, error: str) -> str:
    return f"{brief(step.step_id, 40)} · {brief(error)} · to be repaired"


def route(step: StepView) -> str:
    """Return how a step is, or will be, executed."""
    if step.mode == "fallback":
        return "fallback reasoning"
    if step.tool is not None and step.mode in (None, "tool"):
        return f"tool {brief(step.tool, 60)}"
    return "reasoning" if step.mode == "llm" or step.agent else "its substeps" if step.mode is None else step.mode


def step_level(step: StepView) -> str:
    if step.status == "failed":
        return "error"
    return "warning" if step.mode == "fallback" or step.status == "invalid" else "info"


def step(shown: StepView) -> str:
    head = f"{brief(shown.step_id, 40)} {shown.status}"
    if shown.status == "failed":
        return f"{head} · {brief('; '.join(shown.errors)) or 'no reason was recorded'}"
    if shown.status == "complete":
        return f"{head} · {route(shown)} → {brief(shown.output)}"
    return f"{head} · {brief(shown.description)}" if shown.description else head


def call_level(shown: CallView) -> str:
    if shown.error is None:
        return "info"
    return "error" if shown.retry_in_s is None else "warning"


def call(shown: CallView) -> str:
    where = f"{brief(shown.step_id, 40)} · " if shown.step_id else ""
    attempt = f" (attempt {shown.attempt})" if shown.attempt > 1 else ""
    head = f"{where}{brief(shown.purpose, 20)}{attempt}"
    if not shown.finished:
        return f"{head} · the model is asked"
    if shown.error is not None:
        again = f" · again in {shown.retry_in_s:.1f} s" if shown.retry_in_s is not None else ""
        return f"{head} · the model call failed: {message(shown.error)}{again}"
    usage = shown.usage or {}
    tokens = f" · {usage.get('input_tokens', 0)} → {usage.get('output_tokens', 0)} tokens" if usage else ""
    took = f" · {shown.latency_ms:.0f} ms" if shown.latency_ms is not None else ""
    return f"{head} · the model answered{tokens}{took}"


def tool_call(shown: ToolCallView) -> str:
    head = f"{brief(shown.step_id, 40)} · {brief(shown.tool_name, 60)}"
    if not shown.finished:
        return f"{head} ← {brief(shown.arguments)}"
    if shown.error is not None:
        return f"{head} failed: {message(shown.error)}"
    return f"{head} → {brief(shown.result)}"


def repair(shown: RepairView) -> str:
    where = f"{brief(shown.step_id, 40)} · " if shown.step_id else ""
    kind, method = brief(shown.action_type, 20).replace("_", " "), brief(shown.method, 10)
    head = f"{where}{kind} ({method}, {shown.attempt_number}/2)"
    if shown.error is not None:
        return f"{head} refused: {message(shown.error)}"
    return f"{head} succeeded: {change(shown)}"


def repair_words(shown: RepairView) -> tuple[str, str]:
    """Return what was repaired or not, without naming the step, and by whom in which attempt."""
    whole = "tool call" if shown.step_id else "plan"
    what = {
        "json_repair": f"{whole} JSON",
        "tool_call_repair": "tool call",
        "plan_repair": "step" if shown.step_id else "plan",
    }.get(shown.action_type, brief(shown.action_type, 20).replace("_", " "))
    how = {"local": "locally", "llm": f"{shown.attempt_number} of 2, by the model"}
    done = "repaired" if shown.error is None else "not repaired"
    return f"{what} {done}", how.get(shown.method, brief(shown.method, 10))


def change(shown: RepairView) -> str:
    """Return what a repair changed: the fields that differ where both are objects of one kind, else the new whole."""
    before, after = _call_or_object(shown.original_output), _call_or_object(shown.repaired_output or {})
    return difference(before, after) or brief(shown.repaired_output)


def difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the first fields that differ between two objects of one kind; empty where none does, or they are not."""
    common = before.keys() & after.keys() - _STATE
    either = [*(key for key in before if key not in after), *after]
    changed = [key for key in either if key not in _STATE and after.get(key) != before.get(key)] if common else []
    return ", ".join(
        f"{brief(key, 40)} {_change(before.get(key, _ABSENT), after.get(key, _ABSENT))}" for key in changed[:5]
    )


def _change(before: Any, after: Any) -> str:
    new = "none" if after is _ABSENT else brief(_quoted(after), 60)
    return new if before is _ABSENT else f"{brief(_quoted(before), 60)} → {new}"


def _call_or_object(output: dict[str, Any]) -> dict[str, Any]:
    """Return a step as it is, and a tool call as its arguments beside its name."""
    arguments = output.get("arguments")
    if "tool_name" in output and isinstance(arguments, dict):
        return {"tool_name": output["tool_name"], **arguments}
    return output


def _quoted(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else value


def memory(key: str, value: Any, error: str | None) -> str:
    return f"{brief(key, 60)} = {brief(value)}" if error is None else f"{brief(key, 60)} not stored: {brief(error)}"


def ttl(view: RunView) -> str:
    spent_on = view.ttl_last or brief(view.ttl_reason, 80)
    return f"TTL {view.ttl_remaining} of {view.ttl_allocated} cycles left · {spent_on}"


_PURPOSES = {
    "profile": "the profile",
    "plan": "the plan",
    "reason": "reasoning",
    "tool_call": "a tool call",
    "answer": "the answer",
    "refine": "the refinement",
    "judge": "the evaluation",
}


def cycle_of(call: CallView) -> str:
    """Return what the cycle was for that processed the call's reply."""
    purpose = _PURPOSES.get(call.purpose, brief(call.purpose, 20))
    return f"{purpose} for {brief(call.step_id, 30)}" if call.step_id else purpose


def approval(point: Any, step_id: Any, decision: Any, *, asked: bool) -> str:
    where = f"{brief(step_id, 40)} · " if step_id else ""
    return f"{where}{brief(point, 20)} · " + ("waits for a decision" if asked else f"decided: {brief(decision, 20)}")


def run_level(status: str) -> str:
    if status in ("converged", "accepted", "completed"):
        return "info"
    return "error" if status == "failed" else "warning"


def run_finished(view: RunView, data: dict[str, Any]) -> str:
    head = f"run {brief(view.status, 20).replace('_', ' ')}"
    if data.get("error") is not None:
        return f"{head} · {message(data['error'])}"
    return f"{head} · {brief(data['answer'])}" if data.get("answer") else head
