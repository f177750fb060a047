"""How a plan and a pass look that wait for a person's decision. See `test_snapshots`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core.approvals import ApprovalRequest
from aeon_core.config.schema import RunConfig
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from tests.aeon_tui.passes import (
    FIRST,
    NOT_JUDGED,
    QUESTION,
    REPLACED,
    WANTED,
    WORDED,
    Passes,
    first_pass,
    issue,
    judgement,
    second_pass,
)
from tests.aeon_tui.recordings import HOSTILE
from tests.aeon_tui.screens.run.test_run_snapshots import looks_so_when_asked
from tests.sampling import sample

Compare = Callable[..., bool]
SIZES = [pytest.param((60, 20), id="60x20"), pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40")]
TOOL = {"tool": "Write", "arguments": {"file_path": "api.yml", "content": f"openapi: 3.1\n{HOSTILE}"}}
AGREEING = {"plan": True, "step": True, "answer": False, "memory": True}
CHANGE = {
    "action": {"type": "step_modify", "target": "s3", "reason": "it says nothing of its own", "changes": {}},
    "accepted": True,
    "explanation": "executed steps are invalid and replaced: s3 by s3-r1",
    "before": [FIRST[2]],
    "after": [REPLACED],
    "replaced": {"s3": "s3-r1"},
}


def assessment(completeness: float, coherence: float, **fields: Any) -> dict[str, Any]:
    return {
        "converged": False,
        "reason_codes": ["incomplete", "inconsistent"],
        "completeness_score": completeness,
        "coherence_score": coherence,
        "consistency_status": AGREEING,
        "detected_issues": ["the error replies are named and not described"],
        **{key: value for key, value in judgement(good=False).items() if key in ("requirements", "metadata")},
        **fields,
    }


def subject(**fields: Any) -> dict[str, Any]:
    steps = [{**FIRST[0], "status": "complete"}, {**WORDED, "status": "complete"}, {**REPLACED, **TOOL}]
    return {
        "plan": {"goal": "design a REST API for invoices", "steps": steps},
        "issues": [issue("s3"), issue("s1", "low", "do_say_mismatch")],
        "refinements": [CHANGE],
        "questions": [QUESTION],
        "ttl": {"limit": 50, "allocated": 40, "spent": 19, "remaining": 21},
        **fields,
    }


PLAN = subject(issues=[issue("s2", "medium")], refinements=[], requirements=WANTED)
PASS = subject(answer="Not finished.", convergence=assessment(0.6, 0.85), ended=None)
CONVERGED = subject(
    answer="A REST API with invoices as its resources, and a code and a sentence for every error.",
    convergence=assessment(
        1.0, 0.95, converged=True, reason_codes=["complete", "coherent", "consistent"], **judgement(good=True)
    ),
    ended="converged",
    issues=[],
    refinements=[],
)

UNJUDGED = subject(
    answer="Not finished.",
    convergence={**assessment(0.0, 1.0), "reason_codes": ["not_judged"], "detected_issues": [NOT_JUDGED]}
    | {"requirements": [], "metadata": {}, "judged": False},
    ended="not_converged",
    issues=[],
    refinements=[],
)


def second_pass_assessed() -> Passes:
    run = second_pass()
    run.assess(0.6, 0.85, "incomplete", "inconsistent", answer=False)
    return run


WIDE = [pytest.param((140, 45), id="140x45"), pytest.param((200, 60), id="200x60")]


@pytest.mark.parametrize("size", WIDE)
def test_question_next_to_or_below_the_plan(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    test_review(snap_compare, monkeypatch, second_pass_assessed, "pass", PASS, (), size)


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize(
    ("run", "point", "subject", "keys"),
    [
        pytest.param(first_pass, "plan", PLAN, (), id="plan"),
        pytest.param(second_pass_assessed, "pass", PASS, (), id="pass"),
        pytest.param(second_pass_assessed, "pass", PASS, ("z",), id="zoomed"),
        pytest.param(second_pass_assessed, "pass", CONVERGED, (), id="converged"),
        pytest.param(first_pass, "pass", UNJUDGED, (), id="unjudged"),
        pytest.param(first_pass, "plan", {**PLAN, "problem": "steps[0]: unknown key"}, (), id="problem"),
        pytest.param(first_pass, "plan", PLAN, ("e",), id="editor"),
    ],
)
def test_review(
    snap_compare: Compare,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[[], Passes],
    point: Any,
    subject: dict[str, Any],
    keys: tuple[str, ...],
    size: tuple[int, int],
) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    recorded = run()
    recorded.add("approval", **{"pass": recorded.number}, point=point, state="asked", subject=subject, digest="d")
    runner = Runner(NewRunJob("task", RunConfig()), Path("runs/r.jsonl"))
    request = ApprovalRequest(point=point, pass_number=recorded.number, subject=subject, digest="d")
    assert looks_so_when_asked(snap_compare, recorded.records, runner, request, keys, size)
