"""All that the adaptive engine does can be seen on the simulated model: by a task, or by one of its behaviours."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig, RunResult
from aeon_core.llm.simulated import SIMULATED_MODELS, SimulatedModel
from aeon_core.llm.simulated.calculator import decimals_asked

API = "design a REST API for invoices"
Records = list[dict[str, Any]]


def run(task: str, name: str = "default", ttl: int = 50) -> tuple[RunResult, Records]:
    records: Records = []
    config = RunConfig(durability="off", ttl=ttl)
    return Orchestrator(SimulatedModel(name), config=config, journal=False, on_record=records.append).run(task), records


def test_a_vague_task_gets_follow_up_questions_and_a_clear_one_none() -> None:
    assert run("make it better")[0].follow_up_questions[:1] == [
        "What exactly is meant by 'better' in “make it better”?"
    ]
    assert run("add 5 and 10")[0].follow_up_questions == []


def test_an_open_task_gets_a_subplan_whose_results_reach_the_step_it_expands() -> None:
    result, _ = run(API)
    whole = next(step for step in result.steps if step.step_id == "s5-r1")
    parts = [step for step in result.steps if step.step_id.startswith("s5.")]
    assert len(parts) == 4
    for part in parts:
        assert part.output is not None
        assert whole.output is not None
        assert part.output["text"] in whole.output["text"]


def test_a_step_that_gave_nothing_becomes_invalid_and_another_stands_in_for_it() -> None:
    result, records = run(API)
    assert [step.step_id for step in result.steps if step.status == "invalid"] == ["s5"]
    assert [record["replaced"] for record in records if record["type"] == "refinement"] == [{"s5": "s5-r1"}]


@pytest.mark.parametrize("task", ["divide 1 by 0", API, "write a poem about autumn"], ids=["sum", "open", "poem"])
def test_a_stubborn_planner_refines_three_times_then_a_person_is_asked_for(task: str) -> None:
    result, records = run(task, "stubborn")
    accepted = [record for record in records if record["type"] == "refinement" and record["accepted"]]
    of_plan = [record for record in accepted if record["action"]["target"] != "answer"]
    assert (result.status, len(of_plan)) == ("not_converged", 3)
    assert result.passes == 1 + len(accepted) <= 5
    (left,) = result.manual_intervention
    assert (left["step_id"], left["cause"], left["attempts"]) == (result.steps[-4].step_id, "refinement_limit", 3)


def test_refinements_that_nobody_can_read_leave_the_plan_as_it_was() -> None:
    result, records = run(API, "unrefinable")
    assert (result.status, result.passes) == ("not_converged", 2)
    assert [record["cause"] for record in records if record["type"] == "plan"] == ["generated"]
    assert [record["pass"] for record in records if record["type"] == "supervisor"] == [1, 1, 2, 2]


@pytest.mark.parametrize("task", ["add 5 and 10", "divide 1 by 0"])
def test_without_a_judge_that_can_be_read_nothing_converges(task: str) -> None:
    result, _ = run(task, "muddled")
    assert (result.status, result.passes) == ("not_converged", 1)
    assert result.convergence is not None
    assert result.convergence["reason_codes"][-1] == "not_judged"


def test_a_wrong_figure_in_the_answer_is_found_by_the_judge() -> None:
    result, _ = run("add 5 and 10", "careless")
    assert (result.status, result.answer) == ("not_converged", "The sum of 5 and 10 is 16.")
    assert result.convergence is not None
    assert "contradiction_detected" in result.convergence["reason_codes"]


@pytest.mark.parametrize("name", ["stubborn", "unrefinable"])
def test_what_needs_no_refinement_is_as_right_as_ever(name: str) -> None:
    result, _ = run("multiply 3 by 4 and add 2", name)
    assert (result.status, result.passes) == ("converged", 1)
    assert "14" in (result.answer or "")


@pytest.mark.parametrize("ttl", range(13))
def test_a_small_ttl_ends_an_open_task_and_says_so(ttl: int) -> None:
    result, _ = run(API, ttl=ttl)
    assert (result.status, result.ttl.spent) == ("ttl_expired", ttl)
    assert result.ttl_expired_metadata is not None
    assert "ttl_expired" in result.ttl_expired_metadata.reason_codes


@pytest.mark.parametrize(
    "task",
    [
        "read notes.txt and summarise it",
        "analyse the sales data in sales.csv and plot it",
        "translate 'good morning' into French",
        "What is the capital of France?",
        "explain how TLS works",
        "delete all files in /tmp",
        "send an email to bob@example.com that says hi",
        "asdf qwer zxcv",
        "???",
        "Was ist die Hauptstadt von Peru?",
        "设计一个发票系统",
    ],
)
def test_what_it_cannot_do_it_says_it_did_not_do(task: str) -> None:
    result, _ = run(task)
    assert (result.status, result.converged, result.exit_code) == ("not_converged", False, 5)
    assert (result.answer or "").startswith("The task was not completed")


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("what is 12 % of 250", "30"),
        ("(3+4)*5 - 6/2", "32"),
        ("2^10", "1024"),
        ("divide 100 by 7 and round to two decimals", "14.29"),
        ("divide 100 by 7, then round it to the nearest integer", "14"),
        ("average of 4, 8, 15, 16, 23 and 42", "18"),
        ("reverse 'hello world'", "dlrow olleh"),
        ('count the letters in "Mississippi"', "11"),
        ("uppercase 'straße' and reverse it", "ESSARTS"),
        ("build a command line tool for renaming photos", "A command line tool for renaming photos"),
        ("plan a birthday party for my daughter", "A birthday party for my daughter"),
    ],
)
def test_what_it_can_do_converges_with_the_right_answer(task: str, answer: str) -> None:
    result, _ = run(task)
    assert result.status == "converged"
    assert answer in (result.answer or "")


def test_what_builds_on_a_step_that_was_not_done_was_not_done_either() -> None:
    result, _ = run("analyse the sales data in sales.csv and plot it")
    assert [step.output for step in result.steps] == [
        {"text": "No tool is there to read sales.csv, so nothing was read."}
    ] * 2


@pytest.mark.parametrize(
    ("task", "first"),
    [("make it better", "State what is asked for by “Make it better”"), ("make a logo", "Clarify what a logo must")],
)
def test_the_vague_plan_of_an_open_task_reads_as_a_sentence(task: str, first: str) -> None:
    assert run(task)[0].steps[0].description.startswith(first)


@pytest.mark.parametrize(
    ("description", "decimals"),
    [
        ("Round to two decimals", 2),
        ("Round the result of s1 to 1 decimal place", 1),
        ("round it to the nearest whole number", 0),
        ("Round up the guests", None),
        ("Round to taste", None),
    ],
)
def test_a_rounding_says_to_how_many_decimals(description: str, decimals: int | None) -> None:
    assert decimals_asked(description) == decimals


def test_a_number_that_was_not_there_to_be_rounded_is_said_to_be_missing() -> None:
    result, _ = run("divide 1 by 0 and round to two decimals")
    assert result.status == "not_converged"
    assert result.steps[1].output is not None
    assert result.steps[1].output["text"].startswith("The result of s1 is missing, because s1 failed")


def test_quoting_what_other_steps_gave_is_no_result_of_ones_own() -> None:
    result, _ = run("add 2 and 3; reverse 'abc'; explain how TLS works")
    assert result.status == "not_converged"
    assert (result.answer or "").startswith("The task was not completed: s3 only repeats what is asked for")


def test_a_part_of_several_tasks_that_is_a_thing_to_be_made_is_worked_out_too() -> None:
    result, _ = run("add 2 and 3; design an API for pets")
    assert [step.step_id for step in result.steps if step.status == "invalid"] == ["s2"]
    assert "Resources: the collection /pets" in (result.answer or "")


def test_each_behaviour_of_the_engine_has_a_name() -> None:
    assert {"stubborn", "unrefinable", "muddled", "careless"} <= set(SIMULATED_MODELS)
