"""Histories of real runs against the exported schemas: every field of the entities (adaptive FR-071 to FR-078)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from aeon_core import Orchestrator, RunConfig, connect
from aeon_core.journal.history import open_history
from aeon_core.schemas import schema

OPEN_TASK = "design a REST API for invoices"
MODELS = ("simulated:default", "simulated:missing-tool")
Run = tuple[dict[str, Any], dict[str, Any]]

PASS = {
    *("pass_number", "phases", "plan_state", "execution_results", "evaluation_results", "refinement_changes"),
    *("ttl_remaining", "timing_information"),
}
HISTORY = {"execution_id", "task_input", "configuration", "passes", "final_result", "overall_statistics"}
STATISTICS = {"total_passes", "total_refinements", "convergence_achieved", "total_time"}
ACTION = {"type", "target", "changes", "reason", "semantic_validation_input", "inconsistency_detected"}
ASSESSMENT = {
    *("converged", "reason_codes", "completeness_score", "coherence_score", "consistency_status", "detected_issues"),
    "metadata",
}
REPORT = {"validation_id", "artifact_type", "issues", "overall_severity", "issue_summary", "proposed_repairs"}
ISSUE = {"issue_id", "type", "severity", "description", "location", "proposed_repair"}
DEPTH = {
    *("detected_complexity", "ambiguity_score", "uncertainty_score", "allocated_ttl", "reasoning_mode"),
    *("adjustment_reason", "heuristics_used"),
}
SUBPLAN = {"parent_step_id", "subplan_goal", "substeps", "depth_level", "created_by"}
EXPIRATION = {
    *("converged", "result_type", "latest_pass_result", "partial_result", "expiration_point", "ttl_expired_metadata"),
    "termination_reason",
}


def run(folder: Path, model: str, ttl: int = 50) -> Run:
    """Return the result of a run and its history, both as JSON that was written and read."""
    config = RunConfig(ttl=ttl, durability="off")
    path = folder / "r.jsonl"
    result = Orchestrator(connect(model), config=config, journal=path).run(OPEN_TASK)
    history = open_history(path)
    return json.loads(result.model_dump_json()), json.loads(history.model_dump_json())


@pytest.fixture(scope="module", params=MODELS)
def converged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("run"), request.param)


def fits(name: str, value: Any, fields: set[str]) -> None:
    assert [error.message for error in jsonschema_rs.iter_errors(schema(name), value)] == []
    assert fields <= value.keys()


def subplans(steps: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if subplan := step.get("subplan"):
            yield subplan
            yield from subplans(subplan["substeps"])


def test_a_history_is_complete_and_holds_the_returned_result(converged: Run) -> None:
    result, history = converged
    fits("ExecutionHistory", history, HISTORY)
    fits("RunResult", result, set())
    assert history["final_result"] == result
    assert (history["execution_id"], history["task_input"]) == (result["run_id"], OPEN_TASK)
    assert history["overall_statistics"].keys() >= STATISTICS
    assert (history["overall_statistics"]["total_passes"], result["status"]) == (2, "converged")
    configuration = history["configuration"]
    assert configuration["ttl"] == 50
    assert configuration["convergence_criteria"] == result["convergence"]["metadata"]["criteria"]
    fits("AdaptiveDepthConfiguration", configuration["adaptive_depth"], DEPTH)


def test_each_pass_records_its_start_actions_and_end(converged: Run) -> None:
    result, history = converged
    first, second = history["passes"]
    for each in (first, second):
        fits("ExecutionPass", each, PASS)
        fits("Plan", each["plan_state"], {"goal", "steps"})
        fits("Plan", each["final_plan_state"], {"goal", "steps"})
        fits("TaskProfile", each["task_profile"], {"profile_version", "raw_inference"})
        for depth in [each["adaptive_depth"], *each["depth_adjustments"]]:
            fits("AdaptiveDepthConfiguration", depth, DEPTH)
        assert each["timing_information"].keys() == {"start_time", "end_time", "duration"}
        assert all(phase.keys() == {"phase", "duration_ms"} for phase in each["phases"])
    assert [phase["phase"] for phase in first["phases"]] == ["plan", "execute", "evaluate", "refine"]
    assert [phase["phase"] for phase in second["phases"]] == ["execute", "evaluate"]
    assert {step["status"] for step in first["plan_state"]["steps"]} == {"pending"}
    assert second["plan_state"] == first["final_plan_state"]
    assert second["execution_results"] == {"answer": result["answer"], "steps": result["steps"]}
    assert second["ttl_remaining"] == result["ttl"]["remaining"]


def test_each_pass_holds_its_validation_and_assessment(converged: Run) -> None:
    result, history = converged
    for each in history["passes"]:
        assert each["validation_reports"][-1] == each["evaluation_results"]["semantic_validation"]
        for report in each["validation_reports"]:
            fits("SemanticValidationReport", report, REPORT)
            for issue in report["issues"]:
                fits("ValidationIssue", issue, ISSUE)
            assert sum(report["issue_summary"].values()) == len(report["issues"])
        fits("ConvergenceAssessment", each["evaluation_results"]["convergence"], ASSESSMENT)
    assert history["passes"][-1]["evaluation_results"]["convergence"] == result["convergence"]
    assert any(report["issues"] for report in history["passes"][0]["validation_reports"])


def test_refinements_record_the_change_and_its_reason(converged: Run) -> None:
    _, history = converged
    changes = [change for each in history["passes"] for change in each["refinement_changes"]]
    assert changes
    for change in changes:
        fits("RefinementAction", change["action"], ACTION)
        assert change["action"]["reason"]
        assert change["action"]["semantic_validation_input"]
        for step in change["before"] + change["after"]:
            fits("PlanStep", step, {"step_id", "description", "status"})
    accepted = sum(change["accepted"] for change in changes)
    assert history["overall_statistics"]["total_refinements"] == accepted
    found = list(subplans(history["passes"][-1]["final_plan_state"]["steps"]))
    assert found
    for subplan in found:
        fits("Subplan", subplan, SUBPLAN)


@pytest.mark.parametrize(("ttl", "passes"), [(0, 0), (3, 0), (9, 1), (12, 1)])
def test_an_expired_run_has_the_expiration_response_and_the_passes_that_ended(
    tmp_path: Path, ttl: int, passes: int
) -> None:
    result, history = run(tmp_path, "simulated:default", ttl)
    fits("RunResult", result, EXPIRATION)
    fits("ExecutionHistory", history, HISTORY)
    assert history["final_result"] == result
    assert (len(history["passes"]), history["overall_statistics"]["total_passes"]) == (passes, passes)
    assert result["passes"] == passes
    if passes:
        assert history["passes"][-1]["execution_results"] == result["latest_pass_result"]
