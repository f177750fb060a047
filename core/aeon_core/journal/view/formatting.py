"""Records as lines for people: one line each, clipped, with control characters made visible."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import floor
from typing import Any

from aeon_core.journal.values import brief, dict_of, dicts_of, number_of
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
    RunView,
    StepView,
    SuspicionView,
    ToolCallView,
)
from aeon_core.units import count, span

_WHOLES = {
    "profile": "profile",
    "plan": "plan",
    "review": "review",
    "judge": "verdict",
    "refine": "refinement",
    "answer": "answer",
}
"""The content of the reply to a call that belongs to no step, by the call's purpose."""
_STATE = frozenset({"status", "errors"})
"""Fields of a step that a repair does not set."""
_ABSENT = object()


def message(error: Any) -> str:
    """Return the message of an error on one line."""
    if isinstance(error, dict):
        error = error.get("message", error)
    return brief(error)


def run_started(view: RunView) -> str:
    label = " (simulated)" if view.simulated else ""
    return f"run {brief(view.run_id, 60)} · model {brief(view.model, 80)}{label} · {brief(view.task)}"


def phase(shown: PhaseView) -> str:
    if not shown.finished:
        return f"pass {shown.pass_number} · {brief(shown.phase, 20)} started"
    took = f" after {span(shown.duration_ms)}" if shown.duration_ms is not None else ""
    return f"pass {shown.pass_number} · {brief(shown.phase, 20)} finished{took}"


def plan(view: RunView, cause: str, step_id: str | None) -> str:
    step = view.steps.get(step_id) if step_id is not None else None
    if cause == "repaired" and step is not None:
        outcome = "repaired" if step.repaired else "not repaired"
        return f"{brief(step.step_id, 40)} {outcome} · {route(step)} · {brief(step.description)}"
    return f"plan {brief(cause, 20)} · {count(len(view.steps), 'step')} · {brief(view.goal)}"


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
        return f"{head} · asking the model"
    if shown.error is not None:
        again = f" · retrying in {shown.retry_in_s:.1f} s" if shown.retry_in_s is not None else ""
        return f"{head} · the model call failed: {message(shown.error)}{again}"
    usage = shown.usage or {}
    tokens = f" · {usage.get('input_tokens', 0)} → {usage.get('output_tokens', 0)} tokens" if usage else ""
    took = f" · {span(shown.latency_ms)}" if shown.latency_ms is not None else ""
    return f"{head} · the model answered{tokens}{took}"


def cut_off(parts: Sequence[str]) -> str:
    """Return in words that these parts of a result, such as `the answer`, end where the model's reply was cut off."""
    return f"cut off at the token limit: {brief(', '.join(parts), 400)}"


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


def whole(shown: RepairView) -> str:
    """Return what a repair that belongs to no step is of, such as `profile`."""
    return _WHOLES.get(shown.purpose, "plan")


def repair_words(shown: RepairView) -> tuple[str, str]:
    """Return what was repaired or not, by whom and in which attempt, without naming the step."""
    what = {
        "json_repair": f"{'tool call' if shown.step_id else whole(shown)} JSON",
        "tool_call_repair": "tool call",
        "plan_repair": "step" if shown.step_id else whole(shown),
    }.get(shown.action_type, brief(shown.action_type, 20).replace("_", " "))
    how = {"local": "locally", "llm": f"{shown.attempt_number} of 2, by the model"}
    done = "repaired" if shown.error is None else "not repaired"
    return f"{what} {done}", how.get(shown.method, brief(shown.method, 10))


def change(shown: RepairView) -> str:
    """Return what a repair changed: the differing fields if both are objects of one kind, else the new value."""
    before, after = _call_or_object(shown.original_output), _call_or_object(shown.repaired_output or {})
    return difference(before, after) or brief(shown.repaired_output)


def difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Return the first fields that differ between two objects of one kind; empty if there are none, or they are not."""
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
    """Return a step unchanged, and a tool call as its name and arguments."""
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
    """Return the purpose of the cycle that processed the call's reply."""
    purpose = _PURPOSES.get(call.purpose, brief(call.purpose, 20))
    return f"{purpose} for {brief(call.step_id, 30)}" if call.step_id else purpose


def answers(given: dict[str, Any]) -> str:
    """Return a person's answers to open questions on one line."""
    return "; ".join(f"{brief(question, 200)} {brief(words, 200)}" for question, words in given.items())


def allowed(rule: str) -> str:
    """Return that a person has allowed calls by a rule."""
    return f"allowed from here on: {brief(rule, 200)}"


def approval(point: Any, step_id: Any, decision: Any, feedback: Any, *, asked: bool) -> str:
    where = f"{brief(step_id, 40)} · " if step_id else ""
    why = f" · {brief(feedback, 200)}" if feedback else ""
    outcome = "waits for a decision" if asked else f"decided: {brief(decision, 20)}{why}"
    return f"{where}{brief(point, 20)} · {outcome}"


def run_level(status: str) -> str:
    if status in ("converged", "accepted", "completed"):
        return "info"
    return "error" if status == "failed" else "warning"


def run_finished(view: RunView, data: dict[str, Any]) -> str:
    head = f"run {words(view.status)}"
    if data.get("error") is not None:
        return f"{head} · {message(data['error'])}"
    return f"{head} · {brief(data['answer'])}" if data.get("answer") else head


_PLACE = frozenset({"step_id", "replaces"})
"""Fields of a step's state, as opposed to what it does."""


def words(name: str) -> str:
    """Return a name of the specification as words: `do_say_mismatch` as `do/say mismatch`, a TTL in capitals."""
    return re.sub(r"\bttl\b", "TTL", brief(name, 30).replace("do_say", "do/say").replace("_", " "))


def score(value: float | None) -> str:
    """Return a score with two decimals, rounded down, so that it never seems to reach a threshold: 0.796 is 0.79."""
    if value is None:
        return "–"
    return f"{floor(value * 100 + 1e-9) / 100:.2f}"


def scores(shown: AssessmentView) -> str:
    """Return both scores with their names."""
    return f"completeness {score(shown.completeness_score)}, coherence {score(shown.coherence_score)}"


def verdict(shown: AssessmentView) -> str:
    """Return whether the pass converged, with the reason."""
    why = (", " if shown.converged else "; ").join(reasons(shown)) or "no reason was recorded"
    return f"{'converged' if shown.converged else 'not converged'}: {why}"


def label(shown: LabelView) -> str:
    """Return a person's verdict on a pass, with the reason."""
    why = f": {brief(shown.why, 400)}" if shown.why else ""
    return f"pass {shown.pass_number} labelled {brief(shown.verdict, 10)}{why}"


_REASONS = {
    "complete": "complete",
    "coherent": "coherent",
    "consistent": "consistent",
    "incomplete": "the goal is not covered",
    "incoherent": "the parts are inconsistent",
    "inconsistent": "plan, steps, answer and memory disagree",
    "missing_step": "a step was not done",
    "failed_step": "a step failed",
    "contradiction_detected": "results contradict each other",
    "hallucinated_tool": "a tool that does not exist was named",
    "no_progress": "another pass would change nothing",
    "not_judged": "the judge gave no verdict",
    "ttl_expired": "the TTL ran out",
}
"""Each reason code of the specification in words; any other code is the name of an additional criterion."""


def reasons(shown: AssessmentView) -> list[str]:
    """Return each reason code in words."""
    return [_reason(code, shown) for code in shown.reason_codes[:20]]


def scored_reasons(shown: AssessmentView) -> list[str]:
    """Return each reason code in words; if a score was too low, with the score and the threshold."""
    low = {"incomplete": "completeness", "incoherent": "coherence"}
    return [
        f"{text}, {name} is {too_low}" if (name := low.get(code)) and (too_low := too_low_score(shown, name)) else text
        for code, text in zip(shown.reason_codes, reasons(shown), strict=False)
    ]


def too_low_score(shown: AssessmentView, name: str) -> str:
    """Return `0.40 of 0.80` for `completeness` or `coherence`; empty if the score reaches it, or is unknown."""
    reached = shown.completeness_score if name == "completeness" else shown.coherence_score
    asked = number_of(shown.criteria.get(name))
    low = reached is not None and asked is not None and reached < asked <= 1
    return f"{score(reached)} of {score(asked)}" if low else ""


def _reason(code: str, shown: AssessmentView) -> str:
    if code == "inconsistent" and (wrong := [words(name) for name, ok in shown.consistency.items() if not ok]):
        return f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} inconsistent"
    return _REASONS.get(code) or f"criterion {brief(code, 40)!r} {'is met' if shown.converged else 'is not met'}"


def flags(shown: AssessmentView) -> list[tuple[bool, str]]:
    """Return each consistency flag in words, with whether it is good."""
    return [(ok, f"{words(name)} {'agrees' if ok else 'disagrees'}") for name, ok in shown.consistency.items()]


QUOTE_NOT_FOUND = "quote not found"
MET_ICONS = {"yes": "✔", "partly": "◐", "no": "✖"}


def requirement(shown: RequirementView) -> str:
    """Return one line about a requirement: whether it is met, and the words that the judge quotes for it."""
    return f"{MET_ICONS.get(shown.met, '?')} {brief(shown.text, 300)}{_quote(shown)}"


def check(shown: CheckView, *more: CheckView) -> str:
    """Return one line about coherence or consistency flags, and the words that the judge quotes for all of them."""
    names = ", ".join(words(each.name) for each in (shown, *more))
    return f"{'✔' if shown.ok else '✖'} {names}{_quote(shown)}"


def suspicion(shown: SuspicionView) -> str:
    """Return one line about what exact checks found odd, and the judge's opinion of it."""
    said = {True: "✖ confirmed", False: "✔ dismissed", None: "? not settled"}[shown.stands]
    return f"{said}: {brief(shown.text, 300)}{_quote(shown) if shown.stands is not None else ''}"


def _quote(shown: RequirementView | CheckView | SuspicionView) -> str:
    quote = f" — “{brief(shown.evidence, 200)}”" if shown.evidence else ""
    return quote if shown.quote_found else f"{quote} ({QUOTE_NOT_FOUND})"


def named_in_verdicts(shown: AssessmentView) -> set[str]:
    """Return the lines of `detected_issues` that only repeat a verdict of the judge, or the lack of one."""
    unmet = {"partly": "partly met", "no": "not met"}
    said = {f"requirement {each.n} is {unmet.get(each.met)}: {each.text}" for each in shown.requirements}
    return said | {each.text for each in shown.suspicions if each.stands} | {shown.not_judged}


def convergence(shown: AssessmentView) -> str:
    """Return one line about an assessment."""
    return f"pass {shown.pass_number} {verdict(shown)} · {scores(shown)}"


def profile(shown: ProfileView) -> str:
    """Return one line about a profile, with the reason for it."""
    depth = ", ".join(
        part
        for part in (
            f"{words(shown.reasoning_mode)} reasoning" if shown.reasoning_mode else "",
            count(shown.allocated_ttl, "cycle") if shown.allocated_ttl is not None else "",
        )
        if part
    )
    head = f"profile {shown.version} for pass {shown.pass_number}{f' ({depth})' if depth else ''}"
    return f"{head}: {cause(shown)}"


def dimensions(shown: ProfileView) -> str:
    """Return a profile's dimensions."""
    return ", ".join(f"{words(name)} {brief(value, 20)}" for name, value in shown.dimensions.items())


def cause(shown: ProfileView) -> str:
    """Return why a profile was made or revised, without what repeats the profile and its depth."""
    return reason(shown).partition(" TaskProfile version ")[0]


def reason(shown: ProfileView) -> str:
    """Return why a profile was made or revised."""
    return brief(shown.reason, 500) or "no reason was recorded"


def issue_head(shown: IssueView) -> str:
    """Return severity, type and place of an issue."""
    place = f" · {brief(shown.step_id, 40)}" if shown.step_id else ""
    return f"{brief(shown.severity, 10)} · {words(shown.type)}{place}"


def issue(shown: IssueView) -> str:
    """Return one line about an issue, with the proposed repair."""
    repair = f" → {brief(shown.repair)}" if shown.repair else ""
    return f"{issue_head(shown)}: {brief(shown.description)}{repair}"


def validation(shown: ReportView) -> str:
    """Return one line about a report: the number of issues, and the worst."""
    if not shown.issues:
        return "validation found no issues"
    return f"validation found {count(len(shown.issues), 'issue')} · {issue(shown.issues[0])}"


_REFINEMENT_VERBS = {
    "plan_update": "update",
    "step_add": "add steps to",
    "step_mark_invalid": "replace",
    "step_modify": "change",
    "step_remove": "remove",
    "subplan_create": "expand",
}


def refinement(shown: RefinementView) -> str:
    """Return one line about a refinement action: what it does, whether it was accepted, and why."""
    outcome = "accepted" if shown.accepted else "refused"
    return f"{refinement_words(shown)}, {outcome}: {brief(shown.explanation)}"


def refinement_words(shown: RefinementView) -> str:
    """Return what a refinement action does, such as `replace s5`."""
    target = f"the {shown.target}" if shown.target in ("plan", "answer") else brief(shown.target, 40)
    return f"{_REFINEMENT_VERBS.get(shown.kind) or f'{words(shown.kind)} of'} {target}"


def refinement_cause(shown: RefinementView) -> str:
    """Return why a refinement was needed: the planner's reason and the issues that triggered it."""
    issues = [f"{issue_head(each)}: {brief(each.description, 120)}" for each in shown.issues[:5]]
    return "; ".join(part for part in (brief(shown.reason), *issues) if part) or "no reason was recorded"


def refinement_change(shown: RefinementView) -> str:
    """Return what a refinement changed, from before to after; empty if nothing changed."""
    if len(shown.before) == len(shown.after) == 1:
        before, after = (
            {key: value for key, value in step.items() if key not in _PLACE}
            for step in (shown.before[0], shown.after[0])
        )
        parts = before.pop("subplan", None), after.pop("subplan", None)
        substeps = _substeps(parts[1]) if parts[0] != parts[1] else ""
        return ", ".join(part for part in (difference(before, after), substeps) if part)
    removed, added = (", ".join(_first_steps(steps)) for steps in (shown.before, shown.after))
    return f"{removed or 'nothing'} → {added or 'nothing'}" if removed or added else ""


def _substeps(subplan: Any) -> str:
    steps = dicts_of((dict_of(subplan) or {}).get("substeps"))
    more = [f"and {len(steps) - 5} more"] if len(steps) > 5 else []
    named = "; ".join([*_first_steps(steps), *more])
    return f"with {count(len(steps), 'substep')}: {named}" if steps else "without substeps"


def _first_steps(steps: list[dict[str, Any]]) -> list[str]:
    return [f"{brief(step.get('step_id'), 40)} {brief(step.get('description'), 60)}" for step in steps[:5]]


def advisory(shown: AdvisoryView) -> str:
    """Return one line about a proposed repair that was not carried out."""
    place = f"{brief(shown.step_id, 40)} · " if shown.step_id else ""
    return f"{place}{brief(shown.message, 400)} · the planner's refinement was kept"


def intervention(shown: InterventionView) -> str:
    """Return one line about a fragment that a person should look at."""
    return f"{brief(shown.step_id, 40)} needs a person: {brief(shown.reason)}"
