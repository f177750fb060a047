"""What a reply becomes is read from any beginning of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.journal.view.draft import Draft, DraftStep, DraftVerdict, read_draft
from tests.sampling import examples

WORDS = st.text(alphabet='ab "\\{[}],:\n\u2028é→', min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


@st.composite
def flat(draw: st.DrawFn) -> dict[str, Any]:
    """A plan as models are asked for it: one list, each step with its parent."""
    steps: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 5))):
        parent = draw(st.sampled_from([None, *(step["id"] for step in steps)]))
        steps.append({"id": f"s{number}", "parent": parent, "description": draw(WORDS), "depends_on": []})
    return {"goal": draw(WORDS), "steps": steps}


@st.composite
def nested(draw: st.DrawFn, depth: int = 0, prefix: str = "s") -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        step: dict[str, Any] = {"step_id": f"{prefix}{number}", "description": draw(WORDS), "status": "pending"}
        if depth < 2 and draw(st.booleans()):
            substeps = draw(nested(depth + 1, f"{prefix}{number}."))
            step["subplan"] = {"subplan_goal": "parts", "substeps": substeps}
        steps.append(step)
    return steps


PLANS = st.one_of(flat(), st.builds(lambda steps: {"goal": "g", "steps": steps}, nested()))


@settings(max_examples=examples(200))
@given(PLANS, st.sampled_from(["", "```json\n", "Here it is:\n"]), st.booleans())
def test_the_steps_of_any_beginning_of_a_plan_only_grow(plan: dict[str, Any], before: str, ascii_only: bool) -> None:
    text = before + json.dumps(plan, ensure_ascii=ascii_only)
    whole = read_draft("plan", f"{text}\n```")
    assert whole is not None
    known: tuple[DraftStep, ...] = ()
    for end in range(len(text) + 1):
        draft = read_draft("plan", text[:end])
        steps = draft.steps if draft is not None else ()
        assert len(steps) >= len(known)
        assert [step.step_id for step in known] == [step.step_id for step in steps[: len(known)]]
        assert all(
            last.text.startswith(step.text.rstrip("\ufffd")) for step, last in zip(steps, whole.steps, strict=False)
        )
        known = steps
    assert known == whole.steps
    assert [step.step_id for step in known] == _ids(plan["steps"])


def _ids(steps: list[dict[str, Any]]) -> list[str]:
    found = []
    for step in steps:
        found.append(step.get("id") or step["step_id"])
        found += _ids(step.get("subplan", {}).get("substeps", []))
    return found


@given(st.sampled_from(["plan", "refine", "judge", "profile", "review"]), st.text(max_size=40))
def test_garbage_gives_neither_draft_nor_error(purpose: str, text: str) -> None:
    draft = read_draft(purpose, text)
    assert draft is None or draft.purpose == purpose


REFINEMENT = {
    "actions": [
        {"type": "step_modify", "target": "s1", "changes": {"steps": [{"id": "s1", "description": "Do it"}]}},
        {"type": "step_remove", "target": "s4", "changes": {}, "reason": "not needed"},
        {
            "type": "step_mark_invalid",
            "target": "s5",
            "changes": {
                "steps": [{"id": "s5", "description": "All"}, {"id": "s5.1", "parent": "s5", "description": "A"}]
            },
            "reason": "empty",
        },
        {"type": "step_add", "target": "plan", "changes": {"after": "s2", "steps": [{"description": "Check"}]}},
    ],
    "follow_up_questions": ["For whom?"],
}


def test_a_refinement_draft_shows_what_happens_to_each_step() -> None:
    draft = read_draft("refine", json.dumps(REFINEMENT))
    assert draft is not None
    assert draft.steps == (
        DraftStep("~", "s1", "Do it", after="s1"),
        DraftStep("−", "s4", "not needed", after="s4"),
        DraftStep("−", "s5", "empty", after="s5"),
        DraftStep("+", "s5", "All", after="s5"),
        DraftStep("+", "s5.1", "A", 1, "s5"),
        DraftStep("+", "", "Check", after="s2"),
    )
    assert draft.questions == ("For whom?",)
    text = json.dumps(REFINEMENT)
    half = read_draft("refine", text[: text.index('"s4"') + 3])
    assert half is not None
    assert half.steps == draft.steps[:1], "half an action is none yet"


def test_a_verdict_counts_once_written() -> None:
    text = '{"requirements": [{"n": 2, "evidence": "it is", "met": "partly"}, {"evidence": "no'
    assert read_draft("judge", text) == Draft(
        "judge", verdicts=(DraftVerdict(2, "partly", "it is"), DraftVerdict(2, "", "no"))
    )
    assert read_draft("judge", '{"requirements": [{"n": 1, "met": "ye') == Draft(
        "judge", verdicts=(DraftVerdict(1, "", ""),)
    )


@pytest.mark.parametrize(
    ("purpose", "text", "expected"),
    [
        (
            "profile",
            '{"requirements": ["names the parts", "fits on',
            Draft("profile", requirements=("names the parts", "fits on")),
        ),
        ("review", '{"issues": [{"type": "x", "description": "too va', Draft("review", issues=("too va",))),
        (
            "plan",
            '{"plan": {"steps": [{"id": 1, "task": "Name',
            Draft("plan", (DraftStep("+", "1", "Name"),)),
        ),
        ("plan", "I cannot do that.", None),
    ],
)
def test_other_replies_are_read_incrementally(purpose: str, text: str, expected: Draft | None) -> None:
    assert read_draft(purpose, text) == expected
