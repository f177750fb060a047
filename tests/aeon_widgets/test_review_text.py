"""What a person reads before they decide about a plan or a pass: all of it, and nothing passes for something else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.journal.view.model import AssessmentView
from aeon_widgets.approval_panel import approval_blocks, title
from aeon_widgets.review_text import score_blocks, step_blocks
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
    return [text for _, text in approval_blocks(point, shown, 2, assessments)]


def before(completeness: float) -> AssessmentView:
    return AssessmentView(0, 1, False, completeness_score=completeness, coherence_score=0.9, criteria=CRITERIA)


@pytest.mark.parametrize(
    ("ended", "asked", "follows"),
    [
        (None, "Not converged yet. Another pass?", "approve: pass 3 starts; 20 cycles left"),
        ("converged", "The pass converged. Take its result?", "approve: the run ends with this result, converged"),
        (
            "not_converged",
            "Not converged, and nothing left to try",
            "approve: the run ends, not converged; another pass would change nothing",
        ),
    ],
)
def test_what_follows_an_approval_is_said_first(ended: str | None, asked: str, follows: str) -> None:
    shown = subject(ended=ended)
    assert title("pass", shown) == asked
    assert lines("pass", shown)[0] == follows


def test_that_no_cycle_is_left_is_said() -> None:
    shown = subject(ttl={**TTL, "remaining": 0})
    assert lines("plan", shown)[0] == "approve: pass 2 runs it; no cycle is left, so the TTL ends it"


def test_a_score_says_what_it_was_and_what_it_lacks() -> None:
    told = list(score_blocks(subject(convergence=assessed(0.796, 0.9)), 2, [before(0.4)]))
    assert told[:2] == [
        ("medium", "✖ completeness 0.40 → 0.79, 0.80 required"),
        ("complete", "✔ coherence 0.90 → 0.90, 0.70 required"),
    ]
    assert ("medium", "✖ the goal is not covered") in told


def test_a_pass_is_not_shown_against_itself() -> None:
    own = AssessmentView(0, 2, False, completeness_score=0.6, criteria=CRITERIA)
    assert lines("pass", subject(convergence=assessed(0.6, None)), own)[1:3] == [
        "✖ completeness 0.60, 0.80 required",
        "✖ coherence –, 0.70 required",
    ]


def test_a_pass_that_was_not_assessed_says_so() -> None:
    assert "The pass was not assessed." in lines("pass", subject(convergence=None))


def test_every_step_is_shown_with_what_it_would_call() -> None:
    inner = {"substeps": [step("s1.1", tool="Write", arguments={"file_path": "a\nb", "content": "x" * 5_000})]}
    told = list(step_blocks({"steps": [step("s1", status="complete", subplan=inner), step("s2", tool="search")]}))
    assert told == [
        ("complete", "✔ s1 do s1"),
        ("", "  ○ s1.1 do s1.1"),
        ("muted", '      calls Write {"file_path": "a\\nb", "content": "' + "x" * 5_000 + '"}'),
        ("", "○ s2 do s2"),
        ("muted", "    calls search, with the reason from the model"),
    ]


def test_a_description_cannot_pass_for_another_step_nor_the_answer_for_what_follows() -> None:
    forged = "do it\n✔ s9 all is done\napprove: the run ends with this result, converged"
    shown = subject(plan={"goal": forged, "steps": [step("s1", description=forged)]}, answer=forged, questions=[forged])
    told = lines("pass", shown)
    assert told[0] == "approve: pass 3 starts; 20 cycles left"
    assert [text for text in told if "\n" in text] == [forged], "the answer alone has lines of its own"
    assert told[told.index(forged) - 1] == "Answer"


def test_why_an_edited_plan_was_not_taken_stands_on_top() -> None:
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
def test_whatever_is_asked_can_be_shown(shown: dict[str, Any], inner: dict[str, Any]) -> None:
    for point in ("plan", "pass"):
        for given_subject in (shown, {**shown, "plan": inner, "convergence": inner}):
            assert title(point, given_subject)
            blocks = list(approval_blocks(point, given_subject))
            assert all(isinstance(style, str) and isinstance(text, str) for style, text in blocks)
            assert any(text.startswith("approve: ") for _, text in blocks)


def change(reason: str) -> dict[str, Any]:
    action = {"type": "step_modify", "target": "s1", "changes": {}, "reason": reason}
    return {"action": action, "accepted": True, "explanation": "it was applied"}


def test_changes_are_listed_under_the_pass_that_made_them() -> None:
    shown = subject(refinements=[change("made now")], earlier_refinements=[change("made before")])
    told = lines("pass", shown)
    before_pass, in_pass = told.index("Changed before this pass"), told.index("Changed in this pass")
    assert before_pass < in_pass
    (earlier,) = (number for number, line in enumerate(told) if "made before" in line)
    (now,) = (number for number, line in enumerate(told) if "made now" in line)
    assert before_pass < earlier < in_pass < now


def test_a_pass_that_changed_nothing_says_so() -> None:
    told = lines("pass", subject(earlier_refinements=[change("made before")]))
    assert told[told.index("Changed in this pass") + 1] == "Nothing changed."
