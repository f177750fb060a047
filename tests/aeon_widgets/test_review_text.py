"""What a person reads before they decide about a plan or a pass: all of it, and nothing passes for something else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.view.model import AssessmentView
from aeon_widgets.rendered_text import QUOTED, block_lines
from aeon_widgets.run_question import run_question, step_blocks
from aeon_widgets.text import MAX_SHOWN

TTL = {"limit": 50, "allocated": 30, "spent": 10, "remaining": 20}
CRITERIA = {"completeness": 0.8, "coherence": 0.7}


def step(step_id: str, **fields: Any) -> dict[str, Any]:
    return {"step_id": step_id, "description": f"do {step_id}", "status": "pending", **fields}


def subject(**fields: Any) -> dict[str, Any]:
    told = {"plan": {"goal": "the goal", "steps": [step("s1")]}, "issues": [], "refinements": [], "questions": []}
    return {**told, "ttl": TTL, "answer": "42", "ended": None, **fields}


def assessed(completeness: float | None, coherence: float | None, **fields: Any) -> dict[str, Any]:
    scores = {"completeness_score": completeness, "coherence_score": coherence}
    return {"converged": False, "reason_codes": ["incomplete"], "detected_issues": [], **scores, **fields}


def lines(point: str, shown: dict[str, Any], *assessments: AssessmentView) -> list[str]:
    """Everything that can be read, with all sections open."""
    question = run_question(point, shown, 2, assessments)
    opened = [block for section in question.sections for block in (("", section.heading), *section.blocks)]
    return [text for _, text in (*question.body, *opened)]


def before(completeness: float) -> AssessmentView:
    return AssessmentView(0, 1, False, completeness_score=completeness, coherence_score=0.9, criteria=CRITERIA)


def verdicts(*met: str) -> dict[str, Any]:
    found = [
        {"n": n, "text": f"r{n}", "met": each, "evidence": f"q{n}", "quote_found": True}
        for n, each in enumerate(met, 1)
    ]
    return assessed(0.5, 0.9, requirements=found, judged=True)


NO_CYCLES = {**TTL, "remaining": 0}
FINE = "w Tell it what to fix"
MORE = ["r Run this pass again", "e Edit the plan"]


@pytest.mark.parametrize(
    ("point", "shown", "headline", "choices"),
    [
        ("plan", subject(), "Run this plan? 1 step",
         ["a Run this plan", "w Tell it what to change", "e Edit the plan", "X End here, not finished"]),
        ("plan", subject(ttl=NO_CYCLES, issues=[{}]), "Run this plan? 1 step, 1 issue",
         ["a Run this plan", "e Edit the plan", "X End here, not finished"]),
        ("pass", subject(convergence=verdicts("yes", "no", "yes", "yes")),
         "Not finished: 1 of 4 requirements is unmet",
         ["a Run another pass", FINE, "c Accept the result as it is", *MORE, "X End here, not finished"]),
        ("pass", subject(convergence=verdicts("partly", "no")), "Not finished: 2 of 2 requirements are unmet",
         ["a Run another pass", FINE, "c Accept the result as it is", *MORE, "X End here, not finished"]),
        ("pass", subject(convergence=verdicts("no"), ttl=NO_CYCLES), "Not finished: the requirement is unmet",
         ["a End here, out of cycles", "c Accept the result as it is", "X Stop here, decide later"]),
        ("pass", subject(convergence=verdicts("yes", "yes"), ended="converged"),
         "Finished: all 2 requirements are met", ["a Accept the result", FINE, *MORE, "X End here, not finished"]),
        ("pass", subject(convergence=verdicts("yes", "no"), ended="not_converged"),
         "Not finished: 1 of 2 requirements is unmet",
         ["a End here, not finished", FINE, "c Accept the result as it is", *MORE, "X Stop here, decide later"]),
        ("pass", subject(convergence={**assessed(1.0, 0.4), "reason_codes": ["incoherent"]}),
         "Not finished: the parts are inconsistent", None),
        ("pass", subject(convergence=None), "Not finished: the pass was not assessed", None),
        ("tool", {"tool_name": "Edit", "arguments": {"file_path": "notes.md"}}, "Edit notes.md?",
         ["a Edit it", "w Refuse it, and say why", "e Edit the arguments", "X End here, not finished"]),
        ("tool", {"tool_name": "Bash", "arguments": {"command": "ls"}}, "Run this command?",
         ["a Run it", "w Refuse it, and say why", "e Edit the arguments", "X End here, not finished"]),
        ("tool", {"tool_name": "mcp__web__fetch", "arguments": {"url": "http://x.org"}}, "Fetch http://x.org?", None),
        ("tool", {"tool_name": "send_mail", "arguments": {"to": "ann"}}, "Call send_mail?",
         ["a Call it", "w Refuse it, and say why", "e Edit the arguments", "X End here, not finished"]),
        ("budget", {"limit_usd": 1.2, "proposed_usd": 2.4}, "Raise the budget from $1.20 to $2.40?",
         ["a Raise it to $2.40", "e Set another budget", "w End at the ceiling, and say why",
          "X Stop here, decide later"]),
    ],
)  # fmt: skip
def test_a_question_is_headed_by_its_outcome_and_its_answers_say_what_they_do(
    point: str, shown: dict[str, Any], headline: str, choices: list[str] | None
) -> None:
    question = run_question(point, shown, 2)
    assert question.headline == headline
    told = [f"{each.key} {each.words}" for each in question.choices]
    assert told == choices or choices is None
    assert all(each.typed == "reason" for each in question.choices if each.answer == "reject")


def test_requirements_come_first_the_unmet_ones_before_the_others() -> None:
    told = lines("pass", subject(convergence=verdicts("yes", "no")))
    assert told[:6] == ["✖ r2", "  “q2”", "✔ r1", "  “q1”", "Answer", "42"]


def test_a_reason_does_not_repeat_what_the_scores_say() -> None:
    shown = assessed(0.5, 0.9, reason_codes=["incomplete", "failed_step"])
    told = [text for _, text in run_question("pass", subject(convergence=shown)).body]
    assert "✖ a step failed" in told
    assert not any("goal is not covered" in text for text in told)


def test_running_out_of_cycles_is_reported() -> None:
    assert lines("plan", subject(ttl=NO_CYCLES))[0] == "No cycles are left: a step that needs one ends the run."


@pytest.mark.parametrize("point", ["plan", "pass"])
def test_a_question_reports_that_a_rejection_changed_nothing(point: str) -> None:
    said = "The last rejection changed nothing: no usable change was proposed."
    assert lines(point, subject(unchanged=True))[0] == said
    assert said not in lines(point, subject())


def test_a_score_shows_its_change_and_what_is_missing() -> None:
    told = lines("pass", subject(convergence=assessed(0.796, 0.9)), before(0.4))
    at = told.index("scores: completeness 0.79 · coherence 0.90")
    assert told[at + 1 : at + 3] == [
        "✖ completeness 0.40 → 0.79, 0.80 required",
        "✔ coherence 0.90 → 0.90, 0.70 required",
    ]


def test_a_pass_is_not_shown_against_itself() -> None:
    own = AssessmentView(0, 2, False, completeness_score=0.6, criteria=CRITERIA)
    assert "✖ completeness 0.60, 0.80 required" in lines("pass", subject(convergence=assessed(0.6, None)), own)


def test_every_step_is_shown_with_what_it_would_call() -> None:
    inner = {"substeps": [step("s1.1", tool="Write", arguments={"file_path": "a\nb", "opts": {"n": 2}})]}
    told = list(step_blocks({"steps": [step("s1", status="complete", subplan=inner), step("s2", tool="search")]}))
    assert told == [
        ("complete", "✔ s1 do s1"),
        ("", "  ○ s1.1 do s1.1"),
        ("muted", "      calls Write"),
        ("bold", "        file_path:"),
        ("", "        a\n        b"),
        ("bold", "        opts.n: 2"),
        ("", "○ s2 do s2"),
        ("muted", "    calls search, with arguments that the model chooses"),
    ]


def test_a_description_cannot_pass_for_another_step_nor_the_answer_for_a_section() -> None:
    forged = "do it\n✔ s9 all is done\n▸ scores: completeness 1.00"
    shown = subject(plan={"goal": forged, "steps": [step("s1", description=forged)]}, answer=forged, questions=[forged])
    question = run_question("pass", shown)
    assert [block for block in question.body if "▸" in block[1]] == [(QUOTED, forged)]
    assert [line.text for line in block_lines(QUOTED, f"# {forged}", 20)][-2:] == ["│ ▸ scores:", "│ completeness 1.00"]
    texts = [text for section in question.sections for _, text in section.blocks]
    assert not any("\n" in text for text in texts)


def test_the_reason_an_edited_plan_was_refused_comes_first() -> None:
    assert lines("plan", subject(problem="steps[0]: missing"))[0] == (
        "✖ the edited plan was not used: steps[0]: missing"
    )


def test_a_long_answer_is_shown_whole() -> None:
    answer = "word " * 100_000
    told = [text for text in lines("pass", subject(answer=answer)) if "word" in text]
    assert "".join(told) == answer
    assert all(len(text) <= MAX_SHOWN for text in told)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
names = st.sampled_from([*subject(), "convergence", "problem", "plan", "steps"])


@given(shown=st.dictionaries(names, json_values), inner=st.dictionaries(names, json_values))
def test_every_question_can_be_shown(shown: dict[str, Any], inner: dict[str, Any]) -> None:
    for point in ("plan", "pass"):
        for given_subject in (shown, {**shown, "plan": inner, "convergence": inner}):
            question = run_question(point, given_subject)
            assert question.headline
            blocks = [*question.body, *(block for each in question.sections for block in each.blocks)]
            assert all(isinstance(style, str) and isinstance(text, str) for style, text in blocks)
            assert question.choices[0].key == "a"


def change(reason: str) -> dict[str, Any]:
    action = {"type": "step_modify", "target": "s1", "changes": {}, "reason": reason}
    return {"action": action, "accepted": True, "explanation": "it was applied"}


def test_changes_are_listed_under_the_pass_that_made_them() -> None:
    plan = {"goal": "g", "steps": [step("s1", description="now"), step("s2")]}
    now = {**change("made now"), "before": [step("s1", description="then")], "after": [step("s1", description="now")]}
    earlier = {**change("made before"), "before": [], "after": [step("s2")]}
    shown = subject(plan=plan, refinements=[now], earlier_refinements=[earlier])
    sections = {each.heading: [text for _, text in each.blocks] for each in run_question("pass", shown).sections}
    assert sections["changed: ~ 1 changed · 1 step as before"] == [
        "~ s1 now",
        "  description: then → now",
        "because: made now",
    ]
    assert sections["changed before this pass: + 1 added · 1 step as before"] == ["+ s2 do s2", "because: made before"]


def test_a_pass_that_changed_nothing_has_no_section_for_it() -> None:
    assert not any("changed" in each.heading for each in run_question("pass", subject()).sections)


def test_a_changed_call_is_reported_argument_by_argument() -> None:
    old = step("s1", tool="Write", arguments={"file_path": "a.md", "content": "x"})
    new = step("s1", tool="Write", arguments={"file_path": "b.md", "content": "x", "times": 2})
    plan = {"goal": "g", "steps": [new, step("s2", tool="search", arguments={"query": "rates"})]}
    made = {**change("both"), "before": [old], "after": [new, plan["steps"][1]]}
    (section, *_) = run_question("pass", subject(plan=plan, refinements=[made])).sections
    assert [text for _, text in section.blocks] == [
        "~ s1 do s1",
        "  file_path: a.md → b.md",
        "  times: none → 2",
        "+ s2 do s2",
        "  calls search",
        "  query: none → rates",
        "because: both",
    ]
