"""`show` of a run of several passes, in all its forms."""

from __future__ import annotations

import fcntl
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.history import ExecutionHistory
from aeon_core.journal.records import NoticeRecord
from aeon_core.journal.view.model import AdvisoryView, AssessmentView, PhaseView, ReportView, RunView
from aeon_tui.reports.run_report import RunReport
from tests.aeon_core.journal.build import RUN_ID, pass_record, started, whole_run, write
from tests.aeon_core.journal.view.adaptive import (
    QUESTION,
    VAGUE,
    assessment,
    profile,
    refined_run,
    refinement,
    report,
    two_adaptive_passes,
)
from tests.aeon_tui.cli.conftest import Cli
from tests.aeon_tui.cli.test_show import HOSTILE, RUNS
from tests.aeon_tui.passes import NOT_JUDGED, WANTED, given_up_run, unjudged_run
from tests.aeon_tui.reports.pages import Page

PASSES = """
Passes
pass 1 · not converged
    plan 3 ms, evaluate 3 ms, refine 3 ms
    completeness 0.50, coherence 1.00 · plan agrees, step agrees, answer disagrees, memory agrees
    because: the goal is not covered
    because: a step failed
    profile 1 for pass 1 (balanced reasoning, 10 cycles): inferred from the task
        reasoning depth high
    earlier, in the plan: 2 issues
        issue: high · specificity · s1: 'Do it' says nothing → name what is done
        issue: low · do/say mismatch: the answer is terse → name what is done
    issue: low · do/say mismatch: the answer is terse → name what is done
    issue: odd
    refinement: change s1, refused: still vague
        because: it says nothing; high · specificity · s1: 'Do it' says nothing
    refinement: change s1, accepted: done
        because: it says nothing; high · specificity · s1: 'Do it' says nothing
        change: description "Do it" → "Name a prime"
    refinement: change s1, accepted: done
        because: it says nothing; high · specificity · s1: 'Do it' says nothing
    advisory: s1 · validation also proposed: less · the planner's refinement was kept
pass 2 · converged
    execute 3 ms, evaluate 3 ms
    completeness 1.00 (+0.50), coherence 1.00 (unchanged) · plan agrees, step agrees, answer agrees, memory agrees
    profile 2 for pass 2 (deep reasoning, 20 cycles): convergence was not reached
        reasoning depth high

Across passes
s1 was refined 3 times, 2 accepted (pass 1)
depth for pass 2: balanced → deep reasoning, 10 → 20 cycles; then completeness +0.50, coherence unchanged, converged

Answer (simulated model)
The sum is 15.

Questions about the task
Which database is meant?

Needs your attention
s1 needs a person: refined too often
"""


def test_passes_are_reported_with_scores_reasons_flags_refinements_and_depth(cli: Cli) -> None:
    write(RUNS, *two_adaptive_passes())
    assert cli("show", "last").out.endswith(PASSES)


def test_one_pass_is_reported_alone_with_its_profile(cli: Cli) -> None:
    write(RUNS, *two_adaptive_passes())
    first = cli("show", "last", "--pass", "1").out
    assert "\nPass\npass 1 · not converged\n" in first
    assert "pass 2" not in first
    assert QUESTION not in first
    second = cli("show", "last", "--pass", "2").out
    assert "\nPass\npass 2 · converged" in second
    assert "profile 2 for pass 2" in second
    assert "refinement" not in second.split("Needs your attention")[0]
    assert "Across passes" not in second


def test_the_engines_decisions_are_shown_from_the_journal(cli: Cli) -> None:
    RUNS.mkdir(parents=True)
    refined_run(RUNS / "r.jsonl")
    out = cli("show", "last").out
    assert "pass 1 · not converged\n    plan " in out
    assert "\n    completeness 0.50, coherence 1.00 · plan agrees" in out
    assert "\n    completeness 1.00 (+0.50), coherence 1.00 (unchanged) · plan agrees" in out
    assert "\nscores   completeness 0.50 → 1.00, coherence 1.00 → 1.00\n" in out
    assert "    refinement: change s2, accepted: executed steps are invalid and replaced: s2 by s2-r1\n" in out
    assert '        change: description "Divide 1 by 0" → "Divide 1 by 2", arguments' in out
    assert "depth for pass 2: balanced → deep reasoning" in out


@pytest.mark.parametrize("form", [(), ("--export", "md")])
def test_a_run_without_evaluation_has_no_such_sections(cli: Cli, form: tuple[str, ...]) -> None:
    write(RUNS, *whole_run())
    out = cli("show", "last", *form).out
    assert not any(title in out for title in ("Passes", "Across passes", "Questions about", "Needs your attention"))


def test_the_markdown_report_nests_what_belongs_to_a_pass(cli: Cli) -> None:
    write(RUNS, *two_adaptive_passes())
    out = cli("show", "last", "--export", "md").out
    assert "## Passes\n\n- pass 1 · not converged\n  - plan 3 ms, evaluate 3 ms, " in out
    assert "refine 3 ms\n  - completeness 0.50, coherence 1.00 · plan agrees" in out
    assert "  - refinement: change s1, refused: still vague\n    - because: it says nothing; high" in out
    assert "## Across passes\n\n- s1 was refined 3 times" in out
    assert out.index("## Answer") < out.index("## Passes") < out.index("## Plan")
    assert out.index("## Answer") < out.index(f"## Questions about the task\n\n- {QUESTION}")
    warnings = out[out.index("## Warnings") :]
    assert warnings == "## Warnings\n\n- s1 failed · no\n"


def test_json_holds_passes_with_reports_advisories_and_patterns(cli: Cli) -> None:
    write(RUNS, *two_adaptive_passes())
    history = json.loads(cli("show", "last", "--json").out)
    first = history["passes"][0]
    assert [each["validation_id"] for each in first["validation_reports"]] == ["v1", "v2"]
    assert (len(first["advisories"]), first["task_profile"]["profile_version"]) == (1, 1)
    assert history["overall_statistics"]["patterns"]["refined_fragments"][0]["attempts"] == 3
    assert history["execution_id"] == RUN_ID


def test_a_profile_without_a_pass_and_an_unassessed_pass_are_reported(cli: Cli) -> None:
    write(RUNS, *two_adaptive_passes()[:8], profile(2, "deep", 20, "it must be deeper"))
    out = cli("show", "last").out
    assert "\npass 1 (cut short) · not assessed\n    plan 3 ms\n    profile 1" in out
    assert (
        "\npass 2 · has not started\n    profile 2 for pass 2 (deep reasoning, 20 cycles): it must be deeper\n" in out
    )
    assert out.count("        reasoning depth high\n") == 2
    assert "depth for pass 2" not in out


def test_items_left_to_a_person_occur_once_even_in_a_cut_run(cli: Cli) -> None:
    left = {"step_id": "s1", "cause": "refinement_limit", "reason": "refined too often", "attempts": 3}
    told: dict[Any, Any] = {"questions": {"questions": [QUESTION]}, "manual_intervention": left}
    notices = [NoticeRecord(kind=kind, pass_number=1, message="for a person", data=data) for kind, data in told.items()]
    records = two_adaptive_passes()[:-1]
    write(RUNS, *records[:5], *notices, *records[5:])
    for form in ((), ("--export", "md"), ("--export", "html")):
        out = cli("show", RUN_ID, *form).out
        out = out if "html" not in form else Page(out).text.partition("of the journal\n")[0]
        assert (out.count(QUESTION), out.count("needs a person: ")) == (1, 1)
        assert "for a person\n" not in out


def test_an_unfinished_pass_is_reported_as_cut_short_unless_running(cli: Cli) -> None:
    path = write(RUNS, *two_adaptive_passes()[:-2])
    assert "\npass 1 · not converged\n" in cli("show", "last").out
    assert "\npass 2 (cut short) · converged\n" in cli("show", "last").out
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "\npass 2 · converged\n" in cli("show", "last").out


def test_many_issues_are_shown_as_the_first_few_and_a_count(cli: Cli) -> None:
    many = [{**VAGUE, "description": f"no {number}"} for number in range(25)]
    write(RUNS, started(), report(1, "v", *many), assessment(1, 0.5, "incomplete"), pass_record())
    out = cli("show", "last", "--pass", "1").out
    assert out.count("issue: high") == 20
    assert "    5 more issues; see all with --json\n" in out


def test_blockers_of_several_passes_are_named(cli: Cli) -> None:
    told = [assessment(number, 0.5, "incomplete", "missing_step") for number in (1, 2)]
    write(RUNS, started(), *told)
    out = cli("show", "last").out
    assert "incomplete prevented convergence (passes 1, 2)\n" in out
    assert "missing step prevented convergence (passes 1, 2)\n" in out


def test_hostile_text_stays_text_in_every_form(cli: Cli) -> None:
    issue = {**VAGUE, "description": HOSTILE, "type": HOSTILE, "proposed_repair": HOSTILE}
    refined = refinement(1, HOSTILE, accepted=True, after=[{"step_id": HOSTILE, "description": HOSTILE}])
    told = [profile(1, HOSTILE, 1, HOSTILE), report(1, "v", issue), assessment(1, 0.1, HOSTILE), refined]
    write(RUNS, started(), *told, pass_record())
    assert Page(cli("show", "last", "--export", "html").out).tags.count("script") == 2
    markdown = cli("show", "last", "--export", "md").out
    assert "&lt;script&gt;" in markdown
    assert "<script" not in markdown
    for form in ((), ("--export", "md"), ("--export", "html"), ("--json",)):
        out = cli("show", "last", *form).out
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_a_report_can_be_written_to_a_file(cli: Cli, tmp_path: Path) -> None:
    write(RUNS, *two_adaptive_passes())
    assert cli("show", "last", "-o", str(tmp_path / "r.txt")).out == ""
    assert (tmp_path / "r.txt").read_text(encoding="utf-8").endswith(PASSES)


@pytest.mark.parametrize("form", ["text", "md", "html"])
def test_requirements_verdicts_quotes_and_marks_are_in_every_form(cli: Cli, form: str) -> None:
    path = Path("r.jsonl")
    path.write_text("".join(f"{json.dumps(record)}\n" for record in given_up_run().records))
    done = cli("show", str(path), *(() if form == "text" else ("--export", form)))
    told = Page(done.out).text if form == "html" else html.unescape(done.out).replace("\\", "")
    lines = [line.strip(" -") for line in told.splitlines()]
    for text in WANTED:
        assert text in lines, "before any verdict"
    assert f"requirement ◐ {WANTED[0]} — “Not finished.”" in told
    assert f"requirement ✖ {WANTED[1]}" in told
    assert f"requirement ✔ {WANTED[2]} — “it is half a page long” (quote not found)" in told
    assert told.count("quote not found") == (2 if form == "html" else 1), (
        "a page has the requirements on their own, too"
    )
    assert "suspicion ✖ confirmed: the answer says 3, which no output has — “Not finished.”" in told
    assert "evidence ✖ answer — “Not finished.”" in told
    assert "issue: requirement 2 is not met" not in told, "the verdict has told it"


def test_verdicts_with_the_same_quote_are_one_line(cli: Cli) -> None:
    assert cli("run", "--headless", "--model", "simulated:default", "add 5 and 10").code == 0
    lines = [line.strip() for line in cli("show", "last").out.splitlines()]
    (evidence,) = [line for line in lines if line.startswith("evidence")]
    assert evidence == "evidence ✔ coherent, plan, step, answer, memory — “The sum of 5 and 10 is 15.”"


def test_json_has_the_requirements_and_the_verdicts(cli: Cli) -> None:
    path = Path("r.jsonl")
    path.write_text("".join(f"{json.dumps(record)}\n" for record in given_up_run().records))
    assert json.loads(cli("show", str(path), "--json").out)["configuration"]["requirements"] == WANTED


def test_an_unjudged_run_gives_the_reason_and_mentions_its_answer(cli: Cli) -> None:
    path = Path("r.jsonl")
    path.write_text("".join(f"{json.dumps(record)}\n" for record in unjudged_run().records))
    told = cli("show", str(path)).out
    assert told.count(f"not judged: {NOT_JUDGED}") == 1
    assert "Not finished." in told


class Counted(list[Any]):
    """A list that counts how often it is read from its start."""

    reads = 0

    def __iter__(self) -> Iterator[Any]:
        self.reads += 1
        return super().__iter__()


def test_the_time_for_a_report_grows_with_its_passes_not_with_their_square() -> None:
    view, numbers = RunView(), range(1, 31)
    view.phases = Counted(PhaseView(each, "plan", "", finished=True, duration_ms=each) for each in numbers)
    view.reports = Counted(ReportView(0, each, f"v{each}", "plan") for each in numbers)
    view.assessments = Counted(AssessmentView(0, each, converged=True) for each in numbers)
    view.advisories = Counted(AdvisoryView(0, each, None, f"advice {each}", None) for each in numbers)
    view.refinements, view.profiles = Counted(), Counted()
    notes = RunReport(view, ExecutionHistory.model_construct(passes=[]), None).pass_notes
    for number, of_pass in notes.items():
        texts = [note.text for note in of_pass]
        assert (texts[1], texts[-1].split(" · ")[0]) == (f"plan {number} ms", f"advisory: advice {number}")
    assert list(notes) == list(numbers)
    read = [view.phases, view.reports, view.assessments, view.advisories, view.refinements, view.profiles]
    assert max(each.reads for each in read if isinstance(each, Counted)) <= 3
