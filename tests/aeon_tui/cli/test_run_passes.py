"""`run --headless` of a run that goes round: what a person reads, the result as JSON, and the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.history import open_history
from aeon_tui.reports.exit_summary import ending, why_not_usable
from tests.aeon_core.journal.build import finished
from tests.aeon_core.kernel.test_passes import NOTHING, TASK, model, plan
from tests.aeon_tui.cli.conftest import Cli, Done
from tests.fakes import judged

OPEN_TASK = "design a REST API for invoices"
ALWAYS = {
    *("run_id", "status", "converged", "answer", "plan", "steps", "passes", "convergence", "follow_up_questions"),
    *("manual_intervention", "ttl", "usage", "cost_usd", "model", "simulated", "error", "journal"),
}
EXPIRED = {
    *("result_type", "latest_pass_result", "partial_result", "expiration_point", "ttl_expired_metadata"),
    "termination_reason",
}

TERSE = {
    "issue_id": "i1",
    "type": "relevance",
    "severity": "medium",
    "description": "the answer is terse",
    "location": {"artifact": "answer", "step_id": None},
    "proposed_repair": "say more",
}


def run(cli: Cli, *options: str, task: str = OPEN_TASK) -> Done:
    return cli("run", "--headless", "--model", "simulated:default", *options, task)


def test_passes_scores_reasons_refinements_and_questions_are_reported_in_order(cli: Cli) -> None:
    done = run(cli, "--verbose")
    assert done.code == 0
    told = done.err.splitlines()
    story = [
        "── pass 1 ──",
        "profile 1 for pass 1 (deep reasoning, ",
        "plan generated · 5 steps · ",
        "s5 complete · reasoning → ",
        "warning: validation found 1 issue · high · specificity · s5: ",
        "pass 1 not converged: the goal is not covered · completeness 0.00, coherence 1.00",
        "pass 1 · the goal is not covered, completeness is 0.00 of 0.80",
        "replace s5, accepted: executed steps are invalid and replaced: s5 by s5-r1",
        "    because: its result only repeats what is asked for; high · specificity · s5: ",
        '    change: description "Put together the final version of a REST API for invoices" → ',
        "── pass 2 ──",
        "s5-r1 complete · reasoning → ",
        "pass 2 converged: complete, coherent, consistent · completeness 1.00, coherence 1.00",
        "run converged · 2 passes · completeness 1.00, coherence 1.00 · journal ",
    ]
    places = [next(place for place, line in enumerate(told) if line.startswith(text)) for text in story]
    assert places == sorted(places)
    assert "s5 invalid · reasoning · Put together" in done.out
    assert (
        "s5-r1 complete · reasoning · Put the parts of a REST API for invoices together\n    replaces s5\n" in done.out
    )
    assert done.out.index("\nAnswer (simulated model)\n") < done.out.index("\nQuestions about the task\n")


def test_a_pass_that_is_assessed_again_prints_only_what_is_new(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = model(plan=plan(by=0), refine=NOTHING, judge={"issues": [TERSE]})
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _config: stuck)
    done = cli("run", "--headless", TASK)
    assert done.code == 5
    told = done.err.splitlines()
    assert sum(line.startswith("pass 1 not converged: ") for line in told) == 1
    found = [line for line in told if "validation found" in line]
    assert [line.partition(" · ")[2].partition(",")[0] for line in found] == [
        "high · consistency · s2: step 's2' failed: calculator: division by zero"
    ]
    assert sum("a step failed" in line for line in told) == 1
    assert told.count("pass 1 · another pass would change nothing") == 1
    assert told[-2].startswith("aeon-tui: not converged after 1 pass: step s2 failed: calculator: division by zero")
    assert told[-1].startswith("run not converged · 1 pass · completeness 0.")


def test_json_of_a_converged_run_has_its_fields_and_no_expiry(cli: Cli) -> None:
    done = run(cli, "--json")
    result = json.loads(done.out)
    assert (done.code, result["status"], result["converged"], result["passes"]) == (0, "converged", True, 2)
    assert result.keys() == ALWAYS
    assert open_history(result["journal"]).model_dump(mode="json")["final_result"] == result


@pytest.mark.parametrize(
    ("ttl", "point", "latest", "partial", "told"),
    [
        (0, "mid_phase", False, True, "the TTL of 0 cycles ran out before there was a plan"),
        (1, "mid_phase", False, True, "the TTL of 1 cycle ran out before there was a plan"),
        (2, "mid_phase", False, True, "the TTL of 2 cycles ran out before s1, s2, s3, s4, s5 could run"),
        (3, "mid_phase", False, True, "the TTL of 3 cycles ran out before s1, s2, s3, s4, s5 could run"),
        (9, "phase_boundary", True, False, "the TTL of 9 cycles ran out before the result converged"),
        (12, "mid_phase", True, False, "the TTL of 12 cycles ran out before s5-r1, s5.2, s5.3, s5.4 could run"),
        (16, "mid_phase", True, False, "the TTL of 16 cycles ran out before the answer of pass 2 was written"),
    ],
)
def test_an_expired_run_is_exit_5_with_the_expiration_response(
    cli: Cli, ttl: int, point: str, latest: bool, partial: bool, told: str
) -> None:
    done = run(cli, "--json", "--ttl", str(ttl))
    result = json.loads(done.out)
    assert (done.code, result["status"], result["converged"]) == (5, "ttl_expired", False)
    assert result.keys() == ALWAYS | EXPIRED
    assert (result["result_type"], result["termination_reason"]) == ("ttl_expired", "ttl_expired")
    assert result["ttl_expired_metadata"].keys() == {
        *("completeness_score", "coherence_score", "consistency_status", "detected_issues", "reason_codes"),
        *("pass_number", "incomplete_steps"),
    }
    assert "ttl_expired" in result["ttl_expired_metadata"]["reason_codes"]
    assert (result["latest_pass_result"] is not None) == latest
    assert (result["partial_result"] is not None) == partial
    assert result["expiration_point"] == point
    assert f"aeon-tui: {told}; raise it with --ttl\n" in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("foo: 1", "has an unknown key, 'foo'; the known ones are completeness, "),
        ("completeness: 2", "must be a number between 0 and 1; got 2"),
        ("{a: [", "is not valid YAML"),
        (None, "No such file or directory"),
    ],
)
def test_a_bad_criteria_file_is_exit_2_and_one_line_before_any_run(cli: Cli, text: str | None, told: str) -> None:
    if text is not None:
        Path("criteria.yml").write_text(text)
    done = run(cli, "--json", "--criteria", "criteria.yml")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
    assert "criteria.yml" in done.err
    assert not Path(".aeon/runs").exists()


@pytest.mark.parametrize(("asked", "passes"), [("0.5", 1), ("0.6", 2)])
def test_a_partly_met_requirement_suffices_at_a_low_threshold(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, asked: str, passes: int
) -> None:
    half = model(judge=lambda request: judged(request, met="partly"))
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _config: half)
    Path("criteria.yml").write_text(f"completeness: {asked}\n")
    done = cli("run", "--headless", "--json", "--criteria", "criteria.yml", TASK)
    result = json.loads(done.out)
    assert (result["converged"], result["passes"]) == (passes == 1, passes)


def result_of(status: str, **fields: Any) -> Any:
    return finished(status, **fields).result


@pytest.mark.parametrize("status", ["completed", "converged", "accepted"])
def test_a_usable_result_is_printed_without_explanation(status: str) -> None:
    assert why_not_usable(result_of(status)) is None


def test_an_error_is_reported_on_one_line() -> None:
    assert why_not_usable(result_of("failed", error={"message": "a\nb"})) == "a b"


def test_a_single_pass_ends_with_only_its_status() -> None:
    assert ending(result_of("not_converged")) == "run not converged"
    failed = {"step_id": "s1", "description": "add", "status": "failed", "errors": ["no such\ntool", "later"]}
    assert why_not_usable(result_of("not_converged", steps=[failed])) == "step s1 failed: no such tool"
    left = {"step_id": "s2", "description": "add", "status": "pending"}
    assert why_not_usable(result_of("not_converged", steps=[left])) == "some steps are not complete: s2"
    assert "the model gave no answer" in (why_not_usable(result_of("not_converged", answer=None)) or "")


def test_the_ending_counts_passes_and_never_rounds_scores_up() -> None:
    assessed = {"converged": False, "completeness_score": 0.796, "coherence_score": 1.0, "reason_codes": ["mine"]}
    result = result_of("not_converged", passes=1, convergence=assessed)
    assert ending(result) == "run not converged · 1 pass · completeness 0.79, coherence 1.00"
    assert why_not_usable(result) == "not converged after 1 pass: criterion 'mine' is not met"
    assert ending(result_of("ttl_expired", passes=0, convergence=assessed)) == "run TTL expired"


UNMET = [
    {"text": "Names a date", "met": "partly", "evidence": "", "quote_found": True},
    {"text": "Names a place", "met": "no", "evidence": "", "quote_found": True},
]
FAILED = [
    {"step_id": name, "description": "add", "status": "failed", "errors": [f"{name} cannot add"]} for name in "ab"
]


NOT_JUDGED = {"reason_codes": ["incomplete", "not_judged"], "detected_issues": ["x", "no verdict came"]}
DISAGREE = {"reason_codes": ["incoherent"], "detected_issues": ["s1 and the answer disagree", "b", "c"]}


@pytest.mark.parametrize(
    ("convergence", "steps", "cause"),
    [
        ({"requirements": UNMET}, FAILED, "step a failed: a cannot add, and 1 more failed step"),
        (NOT_JUDGED, [], "the result was not judged: no verdict came"),
        ({"requirements": UNMET}, [], "the answer does not satisfy “Names a place”, and 1 more requirement"),
        ({"requirements": UNMET[:1]}, [], "the answer only partly satisfies “Names a date”"),
        (DISAGREE, [], "s1 and the answer disagree, and 2 more issues"),
    ],
    ids=["failed-step", "not-judged", "requirement", "partly", "issue"],
)
def test_the_last_line_about_a_run_names_one_cause(
    convergence: dict[str, Any], steps: list[dict[str, Any]], cause: str
) -> None:
    assessed = {"converged": False, "reason_codes": ["incomplete", "incoherent"], **convergence}
    told = (
        why_not_usable(result_of("not_converged", passes=1, convergence=assessed, steps=steps, journal="/j/r.jsonl"))
        or ""
    )
    assert told == f"not converged after 1 pass: {cause} (details: `aeon-tui show /j/r.jsonl`)"
