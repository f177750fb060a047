"""What the line above the list of runs asks for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aeon_core.journal.summary import RunSummary
from aeon_tui.screens.browser.run_filter import (
    FILTERS,
    HINT,
    KINDS,
    STATUSES,
    TIMES,
    FilterSuggester,
    Runs,
    asked_status,
    hint,
    offered,
    read_filter,
    with_status,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def run(run_id: str, status: str = "completed", **fields: object) -> RunSummary:
    one = RunSummary(run_id, f"task {run_id}", status, "openai:small", 1, 0.0, "2026-11-20T09:30:00.000000Z", "x")
    return replace(one, **fields)  # type: ignore[arg-type]


PRESENT = Runs(
    [run("a", "running", model="openai:large"), run("b", "failed", model="openai:large"), run("c", "failed")],
)
RUNS = [
    run("waits", "running", waits_for="pass"),
    run("goes", "running"),
    run("done", "converged", model="anthropic:large"),
    run("open", "not_converged", started="2026-11-18T09:30:00Z"),
    run("bad", "failed", damaged=True, started="2026-11-19T23:59:59Z"),
    run("cut", "interrupted", waits_for="tool", parent="done"),
    run("sim", "aborted", model="simulated:default", started="2025-01-01T00:00:00Z"),
    run("odd", "completed", started="no time"),
]


def passing(line: str) -> str:
    return " ".join(each.run_id for each in Runs(RUNS).matching(read_filter(line, NOW)))


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("status:running", "waits goes"),
        ("status:waiting", "waits"),
        ("-status:waiting status:running", "goes"),
        ("status:conv", "done"),
        ("status:not-converged", "open"),
        ("STATUS:Failed,abo", "bad sim"),
        ("-status:running -status:failed,aborted", "done open cut odd"),
        ("model:large", "done"),
        ("-model:openai", "done sim"),
        ("model:simulated,anthropic", "done sim"),
        ("since:today", "waits goes done cut"),
        ("since:yesterday", "waits goes done bad cut"),
        ("since:3h", "waits goes done cut"),
        ("since:2w before:1d", "open"),
        ("before:1y", "sim"),
        ("-since:2d", "open sim odd"),
        ("is:live", "waits goes"),
        ("is:fork", "cut"),
        ("is:damaged", "bad"),
        ("-is:ended", "waits goes cut"),
        ("is:simulated", "sim"),
        ("task status:failed", "bad"),
        ("nothing status:failed", ""),
        ("status: -model: is:", "waits goes done open bad cut sim odd"),
        ("openai:small odd", "odd"),
    ],
)
def test_a_filter_matches_these_runs(line: str, ids: str) -> None:
    assert passing(line) == ids
    assert read_filter(line, NOW).problem == ""


def test_dates_use_the_local_time_zone() -> None:
    assert passing("since:2026-11-20") == "waits goes done cut"
    assert passing("since:2026-11-18t09:31 before:2026-11-20") == "bad"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("status:weird", "unknown status 'weird'; choose from running, waiting, converged"),
        ("status:failed,x", "unknown status 'x'; choose from running"),
        ("is:blue", "unknown kind 'blue'; choose from live, ended, fork, damaged, simulated"),
        (
            "since:2q",
            "since:2q is not a time; expected an age such as 30min, 2d or 1w, a date such as 2026-11-01, or today",
        ),
        ("before:2026-13-01", "before:2026-13-01 is not a time"),
        ("since:999999y", "since:999999y is not a time"),
        ("colour:red", "unknown filter 'colour'; choose from status, model, since, before, is"),
        ("-tool:x", "unknown filter 'tool'; choose from"),
    ],
)
def test_an_invalid_term_is_reported_with_the_known_values(line: str, problem: str) -> None:
    assert read_filter(line, NOW).problem.startswith(problem)


def test_a_bad_value_is_ignored_and_an_unknown_filter_is_a_word() -> None:
    assert passing("status:weird is:live") == "waits goes"
    assert read_filter("colour:red", NOW).words == ("colour:red",)
    assert read_filter("https://a.b/c s3:x", NOW).problem.startswith("no filter") is False


@given(st.text())
def test_any_line_matches_a_subset_of_the_runs(line: str) -> None:
    asked = read_filter(line, NOW)
    found = Runs(RUNS).matching(asked)
    assert [each for each in RUNS if each in found] == list(found)
    assert asked.text.split() == [term for term in line.split() if term in asked.text.split()]
    assert hint(line, asked.problem, PRESENT)


TERMS = st.builds(
    lambda name, value: f"{name}:{value}",
    st.sampled_from(FILTERS),
    st.sampled_from([*STATUSES, *KINDS, *TIMES, "2026-11-19", "large", "openai", "x"]),
)


@given(st.lists(TERMS, max_size=4), TERMS)
def test_a_term_and_its_negation_partition_the_runs(others: list[str], term: str) -> None:
    line = " ".join(others)
    among = set(passing(line).split())
    if read_filter(term, NOW).problem:
        return
    with_it, without = set(passing(f"{line} {term}").split()), set(passing(f"{line} -{term}").split())
    assert with_it | without == among
    assert not with_it & without


@given(st.lists(TERMS, max_size=4), st.sampled_from(["", *STATUSES]))
def test_a_chosen_status_replaces_the_previous_one(terms: list[str], status: str) -> None:
    line = with_status(" ".join(terms), status)
    assert asked_status(line) == status
    assert [term for term in line.split() if not term.startswith("status:")] == [
        term for term in terms if not term.startswith("status:")
    ]


@given(st.text())
def test_completions_extend_the_line_and_are_valid(line: str) -> None:
    suggester = FilterSuggester()
    suggester.runs = PRESENT
    found = asyncio.run(suggester.get_suggestion(line))
    assert found is None or (found.startswith(line) and found != line)


def test_completion_offers_existing_values_first() -> None:
    suggester = FilterSuggester()
    suggester.runs = PRESENT

    def completed(line: str) -> str | None:
        return asyncio.run(suggester.get_suggestion(line))

    assert completed("st") == "status:"
    assert completed("report -s") == "report -status:"
    assert completed("status:") == "status:running"
    assert completed("status:f") == "status:failed"
    assert completed("-status:running,c") == "-status:running,converged"
    assert completed("model:o") == "model:openai:large"
    assert completed("is:s") == "is:simulated"
    assert completed("") is completed("zebra") is completed("status:failed") is None
    assert offered("status:", PRESENT)[:3] == ["status:running", "status:failed", "status:waiting"]


def test_the_hint_shows_filters_then_values_then_errors() -> None:
    assert hint("", "", PRESENT) == hint("report", "", PRESENT) == hint("status:failed", "", PRESENT) == HINT
    assert hint("x status:", "", PRESENT).startswith("status: running failed waiting")
    assert hint("status:co", "", PRESENT) == "status: converged completed cost_ceiling"
    assert hint("model:l", "", PRESENT) == "model: part of its name"
    assert hint("since:", "", PRESENT) == "since: today yesterday 1h 2d 1w or a date as 2026-11-01"
    assert hint("is:blue", "no kind 'blue'", PRESENT) == "✖ no kind 'blue'"


def test_ages_count_back_from_now() -> None:
    begun = run("x", started=(NOW - timedelta(minutes=30)).isoformat())
    for line, passes in (("since:31min", True), ("since:29m", False), ("since:1800s", True), ("since:1799s", False)):
        assert read_filter(line, NOW).passes(begun, "") is passes, line
