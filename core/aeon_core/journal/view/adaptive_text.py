"""What the adaptive engine found and did, as lines that a person can read: one line each, clipped, made visible."""

from __future__ import annotations

from math import floor
from typing import Any

from aeon_core.journal.values import dict_of, dicts_of, number_of
from aeon_core.journal.view.adaptive_parts import (
    AdvisoryView,
    AssessmentView,
    CheckView,
    InterventionView,
    IssueView,
    LabelView,
    ProfileView,
    RefinementView,
    ReportView,
    RequirementView,
    SuspicionView,
)
from aeon_core.journal.view.formatting import brief, difference

_PLACE = frozenset({"step_id", "replaces"})
"""Fields of a step that say where it stands, not what it does."""


def words(name: str) -> str:
    """Return a name of the specification as words: `do_say_mismatch` as `do say mismatch`."""
    return brief(name, 30).replace("_", " ")


def score(value: float | None) -> str:
    """Return a score with two decimals. It never looks as if it had reached what it has not: 0.796 is 0.79."""
    if value is None:
        return "–"
    return f"{floor(value * 100 + 1e-9) / 100:.2f}"


def scores(shown: AssessmentView) -> str:
    """Return both scores with their names."""
    return f"completeness {score(shown.completeness_score)}, coherence {score(shown.coherence_score)}"


def verdict(shown: AssessmentView) -> str:
    """Return whether the pass converged, and its reason codes."""
    codes = ", ".join(brief(code, 40) for code in shown.reason_codes[:20]) or "no reason was recorded"
    return f"{'converged' if shown.converged else 'not converged'}: {codes}"


def label(shown: LabelView) -> str:
    """Return a person's verdict on a pass, and why."""
    why = f": {brief(shown.why, 400)}" if shown.why else ""
    return f"pass {shown.pass_number} labelled {brief(shown.verdict, 10)}{why}"


_REASONS = {
    "complete": "complete",
    "coherent": "coherent",
    "consistent": "consistent",
    "incomplete": "the goal is not covered",
    "incoherent": "the parts do not hold together",
    "inconsistent": "plan, steps, answer and memory disagree",
    "missing_step": "a step was not done",
    "failed_step": "a step failed",
    "contradiction_detected": "results contradict one another",
    "hallucinated_tool": "a tool was named that does not exist",
    "no_progress": "another pass could change nothing",
    "not_judged": "the judge gave no judgement",
    "ttl_expired": "the TTL was spent",
}
"""What each reason code of the specification says; a code that is not here names a criterion of one's own."""


def reasons(shown: AssessmentView) -> list[str]:
    """Return each reason code in words."""
    return [_reason(code, shown) for code in shown.reason_codes[:20]]


def scored_reasons(shown: AssessmentView) -> list[str]:
    """Return each reason code in words; where a score was too low, with the score and what was asked."""
    low = {"incomplete": "completeness", "incoherent": "coherence"}
    return [
        f"{text}, {name} is {too_low}" if (name := low.get(code)) and (too_low := too_low_score(shown, name)) else text
        for code, text in zip(shown.reason_codes, reasons(shown), strict=False)
    ]


def too_low_score(shown: AssessmentView, name: str) -> str:
    """Return `0.40 of 0.80` for `completeness` or `coherence`; empty where the score is what was asked, or unknown."""
    reached = shown.completeness_score if name == "completeness" else shown.coherence_score
    asked = number_of(shown.criteria.get(name))
    low = reached is not None and asked is not None and reached < asked <= 1
    return f"{score(reached)} of {score(asked)}" if low else ""


def _reason(code: str, shown: AssessmentView) -> str:
    return _REASONS.get(code) or f"criterion {brief(code, 40)!r} {'is met' if shown.converged else 'is not met'}"


def flags(shown: AssessmentView) -> list[tuple[bool, str]]:
    """Return each consistency flag, and what it says in words."""
    return [(ok, f"{words(name)} {'agrees' if ok else 'disagrees'}") for name, ok in shown.consistency.items()]


QUOTE_NOT_FOUND = "quote not found"
MET_ICONS = {"yes": "✔", "partly": "◐", "no": "✖"}


def requirement(shown: RequirementView) -> str:
    """Return one line about a requirement: whether it is met, and the words that the judge quotes for it."""
    return f"{MET_ICONS.get(shown.met, '?')} {brief(shown.text, 300)}{_quote(shown)}"


def check(shown: CheckView) -> str:
    """Return one line about coherence or a consistency flag, and the words that the judge quotes for it."""
    return f"{'✔' if shown.ok else '✖'} {words(shown.name)}{_quote(shown)}"


def suspicion(shown: SuspicionView) -> str:
    """Return one line about what exact checks found odd, and what the judge says of it."""
    said = {True: "✖ confirmed", False: "✔ dismissed", None: "? not settled"}[shown.stands]
    return f"{said}: {brief(shown.text, 300)}{_quote(shown) if shown.stands is not None else ''}"


def _quote(shown: RequirementView | CheckView | SuspicionView) -> str:
    quote = f" — “{brief(shown.evidence, 200)}”" if shown.evidence else ""
    return quote if shown.quote_found else f"{quote} ({QUOTE_NOT_FOUND})"


def told_by_verdicts(shown: AssessmentView) -> set[str]:
    """Return the lines of `detected_issues` that only repeat a verdict of the judge, or that there is none."""
    unmet = {"partly": "partly met", "no": "not met"}
    said = {f"requirement {each.n} is {unmet.get(each.met)}: {each.text}" for each in shown.requirements}
    return said | {each.text for each in shown.suspicions if each.stands} | {shown.not_judged}


def convergence(shown: AssessmentView) -> str:
    """Return one line about an assessment."""
    return f"pass {shown.pass_number} {verdict(shown)} · {scores(shown)}"


def profile(shown: ProfileView) -> str:
    """Return one line about a profile, with the reason that it is as it is."""
    depth = ", ".join(
        part
        for part in (
            f"{words(shown.reasoning_mode)} reasoning" if shown.reasoning_mode else "",
            f"{shown.allocated_ttl} cycles" if shown.allocated_ttl is not None else "",
        )
        if part
    )
    head = f"profile {shown.version} for pass {shown.pass_number}{f' ({depth})' if depth else ''}"
    return f"{head}: {cause(shown)}"


def dimensions(shown: ProfileView) -> str:
    """Return what a profile says of its task, dimension by dimension."""
    return ", ".join(f"{words(name)} {brief(value, 20)}" for name, value in shown.dimensions.items())


def cause(shown: ProfileView) -> str:
    """Return why a profile was made or revised, without what the reason repeats of the profile and its depth."""
    return reason(shown).partition(" TaskProfile version ")[0]


def reason(shown: ProfileView) -> str:
    """Return why a profile was made or revised."""
    return brief(shown.reason, 500) or "no reason was recorded"


def issue_head(shown: IssueView) -> str:
    """Return severity, type and place of an issue."""
    place = f" · {brief(shown.step_id, 40)}" if shown.step_id else ""
    return f"{brief(shown.severity, 10)} · {words(shown.type)}{place}"


def issue(shown: IssueView) -> str:
    """Return one line about an issue, with the repair that is proposed."""
    repair = f" → {brief(shown.repair)}" if shown.repair else ""
    return f"{issue_head(shown)}: {brief(shown.description)}{repair}"


def validation(shown: ReportView) -> str:
    """Return one line about a report: how many issues it has, and the worst."""
    if not shown.issues:
        return "validation found no issues"
    number = len(shown.issues)
    return f"validation found {number} issue{'s' if number > 1 else ''} · {issue(shown.issues[0])}"


def refinement(shown: RefinementView) -> str:
    """Return one line about a refinement action: what it is for, and what became of it."""
    outcome = "accepted" if shown.accepted else "refused"
    return f"{brief(shown.target, 40)} · {words(shown.kind)} {outcome}: {brief(shown.explanation)}"


def refinement_cause(shown: RefinementView) -> str:
    """Return why a refinement was needed: the planner's reason and the issues that triggered it."""
    issues = [f"{issue_head(each)}: {brief(each.description, 120)}" for each in shown.issues[:5]]
    return "; ".join(part for part in (brief(shown.reason), *issues) if part) or "no reason was recorded"


def refinement_change(shown: RefinementView) -> str:
    """Return what a refinement changed, from before to after; empty where it changed nothing."""
    if len(shown.before) == len(shown.after) == 1:
        before, after = (
            {key: value for key, value in step.items() if key not in _PLACE}
            for step in (shown.before[0], shown.after[0])
        )
        parts = before.pop("subplan", None), after.pop("subplan", None)
        substeps = _substeps(parts[1]) if parts[0] != parts[1] else ""
        return ", ".join(part for part in (difference(before, after), substeps) if part)
    removed, added = (
        ", ".join(f"{brief(step.get('step_id'), 40)} {brief(step.get('description'), 60)}" for step in steps[:5])
        for steps in (shown.before, shown.after)
    )
    return f"{removed or 'nothing'} → {added or 'nothing'}" if removed or added else ""


def _substeps(subplan: Any) -> str:
    steps = dicts_of((dict_of(subplan) or {}).get("substeps"))
    named = "; ".join(f"{brief(step.get('step_id'), 40)} {brief(step.get('description'), 60)}" for step in steps[:5])
    more = f"; and {len(steps) - 5} more" if len(steps) > 5 else ""
    return f"with {len(steps)} substep{'' if len(steps) == 1 else 's'}: {named}{more}" if steps else "without substeps"


def advisory(shown: AdvisoryView) -> str:
    """Return one line about a repair that was proposed and not carried out."""
    place = f"{brief(shown.step_id, 40)} · " if shown.step_id else ""
    return f"{place}{brief(shown.message, 400)} · the planner's refinement stands"


def intervention(shown: InterventionView) -> str:
    """Return one line about a fragment that a person should look at."""
    tried = f" after {shown.attempts} refinement{'' if shown.attempts == 1 else 's'}" if shown.attempts else ""
    return f"{brief(shown.step_id, 40)} needs a person{tried} ({words(shown.cause)}): {brief(shown.reason)}"
