"""The panes of issues and convergence: what they say, and where they lead."""

from __future__ import annotations

import pytest
from textual import on
from textual.app import App, ComposeResult
from textual.widget import Widget

from aeon_core.convergence import REASON_CODES
from aeon_core.journal.records import Record, RunResumed
from aeon_core.journal.view.formatting import reasons
from aeon_core.journal.view.model import IssueView, RunView
from aeon_core.journal.view.reducer import fold
from aeon_themes import fallback_variables
from aeon_widgets.convergence import ConvergencePane, change, convergence_parts, score_level, trend
from aeon_widgets.icons import SCORE_ICONS, VARIABLES
from aeon_widgets.issues import IssuesPane, described
from aeon_widgets.virtual_list import LinesView
from tests.aeon_core.journal.build import finished, parsed
from tests.aeon_core.journal.view.adaptive import (
    REMARK,
    VAGUE,
    assessment,
    report,
    two_adaptive_passes,
)
from tests.waiting import until

HOSTILE = "[red]\x1b[31m\u202e\n/bold]"


class Shown(App[None]):
    """Shows one pane, and keeps what it posted."""

    def __init__(self, pane: Widget) -> None:
        super().__init__()
        self.pane = pane
        self.opened: list[str | None] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.pane

    @on(IssuesPane.Opened)
    def _opened(self, event: IssuesPane.Opened) -> None:
        assert event.control is self.pane
        self.opened.append(event.issue.step_id)


def view_of(*records: Record) -> RunView:
    return fold(parsed(*records))


def drawn(pane: LinesView) -> list[str]:
    return [pane.render_line(y).text.rstrip() for y in range(pane.line_count)]


async def test_issues_show_all_their_fields_worst_first() -> None:
    pane = IssuesPane()
    async with Shown(pane).run_test(size=(100, 12)):
        pane.update_view(view_of(report(2, "v", REMARK, VAGUE)))
        assert pane.pane_title == "Issues 2 · pass 2"
        assert drawn(pane) == [
            " ✖ high s1 specificity: 'Do it' says nothing",
            "     → name what is done",
            " · low do/say mismatch: the answer is terse",
            "     → name what is done",
        ]


async def test_an_issue_is_shown_in_full_or_marked_as_cut() -> None:
    said = "step 's1' says nothing of who does what, when, or how anyone could tell that it was done"
    pane = IssuesPane()
    app = Shown(pane)
    async with app.run_test(size=(34, 12)) as pilot:
        pane.update_view(view_of(report(1, "v", REMARK, {**VAGUE, "description": said})))
        await until(pilot, lambda: pane.line_count == 8)
        assert drawn(pane) == [
            " ✖ high s1 specificity",
            "   says nothing of who does",
            "   what, when, or how anyone",
            "   could tell that it was done",
            "   → name what is done",
            " · low do/say mismatch",
            "   the answer is terse",
            "   → name what is done",
        ]
        pane.focus()
        await pilot.resize_terminal(34, 9)
        await until(pilot, lambda: pane.line_count == 7)
        assert drawn(pane)[3] == "   could tell that it was done …"
        await pilot.resize_terminal(34, 6)
        await until(pilot, lambda: pane.line_count == 4)
        assert drawn(pane)[:2] == [" ✖ high s1 specificity", "   says nothing of who does …"]
        assert said in pane.item.text  # type: ignore[union-attr]
        await pilot.resize_terminal(34, 12)
        pane.update_view(view_of(report(1, "v", {**VAGUE, "proposed_repair": "name " * 12})))
        await until(pilot, lambda: drawn(pane)[-1] == "     name name")
        assert drawn(pane)[-3:-1] == ["   → name name name name name", "     name name name name name"]


async def test_enter_on_either_row_opens_the_step_if_there_is_one() -> None:
    pane = IssuesPane()
    app = Shown(pane)
    async with app.run_test(size=(100, 12)) as pilot:
        pane.update_view(view_of(report(1, "v", REMARK, VAGUE)))
        pane.focus()
        await pilot.press("enter", "down", "enter")
        assert app.opened == ["s1", "s1"]
        await pilot.press("down", "enter", "down", "enter")
        assert app.opened == ["s1", "s1"]


async def test_the_cursor_stays_on_an_existing_row_when_issues_go() -> None:
    pane = IssuesPane()
    async with Shown(pane).run_test(size=(100, 12)) as pilot:
        pane.update_view(view_of(report(1, "v", REMARK, VAGUE)))
        pane.focus()
        await pilot.press("end")
        assert pane.cursor == 3
        pane.update_view(view_of(report(1, "v", REMARK, VAGUE), report(2, "w", REMARK)))
        assert (pane.cursor, pane.line_count) == (1, 2)
        pane.update_view(view_of(report(3, "x")))
        await pilot.press("enter")
        assert (pane.cursor, pane.line_count, pane.pane_title) == (0, 0, "Issues 0 · pass 3")


async def test_foreign_text_stays_text_on_one_line() -> None:
    hostile = {**VAGUE, "severity": HOSTILE, "type": HOSTILE, "description": HOSTILE, "proposed_repair": HOSTILE}
    pane = IssuesPane()
    async with Shown(pane).run_test(size=(200, 12)):
        pane.update_view(view_of(report(1, "v", hostile)))
        first, second = drawn(pane)
        assert first.startswith(" ? [red]\\x1b[")
        assert second == "     → [red]\\x1b[31m\\u202e /bold]"


def test_convergence_shows_score_trends_flags_and_reasons() -> None:
    assert list(convergence_parts(view_of(*two_adaptive_passes()))) == [
        ("", "  complete ▄█ 1.00 +0.50"),
        ("", "  coherent ██ 1.00 ±0"),
        ("flags", "✔ plan ✔ step ✔ answer ✔ memory"),
        ("complete", "✔ complete, coherent, consistent"),
        ("muted", "pass 1 not converged: the goal is not covered; a step failed"),
    ]


def test_unmet_flags_and_issues_are_distinguished() -> None:
    blocks = list(convergence_parts(view_of(*two_adaptive_passes()[:12])))
    assert blocks[2:] == [
        ("flags", "✔ plan ✔ step ✖ answer ✔ memory"),
        ("high", "disagreeing: answer"),
        ("medium", "✖ the goal is not covered"),
        ("medium", "✖ a step failed"),
        ("muted", "· the answer is terse"),
        ("muted", "· odd"),
    ]


def test_a_score_has_icon_and_style_and_its_reason_the_threshold() -> None:
    asked = {"criteria": {"completeness": 0.8, "coherence": 0.7}}
    codes = ("incomplete", "incoherent", "inconsistent", "tone", "no_progress")
    consistency = {"plan": False, "step": True, "answer": True, "memory": False}
    more = {"coherence_score": 0.699, "consistency_status": consistency}
    blocks = list(convergence_parts(view_of(assessment(1, 0.5, *codes, metadata=asked, **more))))
    assert blocks[:2] == [("score-poor", "✖ complete ▄ 0.50"), ("score-fair", "~ coherent ▅ 0.69")]
    assert [text for style, text in blocks if style == "medium"] == [
        "✖ the goal is not covered, completeness is 0.50 of 0.80",
        "✖ the parts are inconsistent, coherence is 0.69 of 0.70",
        "✖ plan and memory are inconsistent",
        "✖ criterion 'tone' is not met",
        "✖ another pass would change nothing",
    ]


@pytest.mark.parametrize(
    ("reached", "asked", "level"),
    [
        (0.8, 0.8, "score-good"),
        (1.0, 0.8, "score-good"),
        (0.799, 0.8, "score-fair"),
        (0.64, 0.8, "score-fair"),
        (0.6, 0.8, "score-poor"),
        (0.0, 0.0, "score-good"),
        (None, 0.8, ""),
        (0.5, None, ""),
    ],
)
def test_a_score_is_good_at_its_threshold_and_fair_near_it(
    reached: float | None, asked: float | None, level: str
) -> None:
    assert score_level(reached, asked) == level
    assert level in VARIABLES or not level
    assert level in SCORE_ICONS or not level


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ([0.5, 0.62], " +0.12"),
        ([0.62, 0.5], " -0.12"),
        ([0.5, 0.5], " ±0"),
        ([0.501, 0.509], " ±0"),
        ([0.499, 0.5], " +0.01"),
        ([None, 0.5], ""),
        ([0.5, None], ""),
        ([0.5], ""),
        ([], ""),
    ],
)
def test_a_change_is_computed_from_the_displayed_numbers(scores: list[float | None], text: str) -> None:
    assert change(scores) == text


def test_additional_criteria_are_shown_by_name_once() -> None:
    told = {"additional": {"tone_of_voice": {"met": False, "by": "judge"}, "length": {"met": True, "by": "rule"}}}
    blocks = list(convergence_parts(view_of(assessment(1, 0.5, "incomplete", "tone_of_voice", metadata=told))))
    assert blocks[3:6] == [
        ("medium", "✖ tone of voice: not met"),
        ("complete", "✔ length"),
        ("medium", "✖ the goal is not covered"),
    ]
    assert len([text for _, text in blocks if "tone" in text]) == 1
    odd = {"additional": {"a": {"met": "yes"}, "b": 3}}
    assert fold(parsed(assessment(1, 0.5, "incomplete", metadata=odd))).assessments[0].additional == {}


@pytest.mark.parametrize("passes", [1, 2, 8, 9, 30])
def test_a_trend_of_any_length_fits_one_line_of_the_narrowest_column(passes: int) -> None:
    asked = {"criteria": {"completeness": 0.8}}
    records = (assessment(number, number % 2, "incomplete", metadata=asked) for number in range(1, passes + 1))
    blocks = convergence_parts(view_of(*records))
    assert all(len(text) <= 33 for _, text in (next(blocks), next(blocks)))


def test_every_reason_code_of_the_contract_is_reported_in_words() -> None:
    shown = fold(parsed(assessment(1, 0.5, *REASON_CODES))).assessment
    assert shown is not None
    assert not [text for text in reasons(shown) if "_" in text or "criterion" in text]


def test_the_pane_shows_that_no_pass_was_assessed_yet() -> None:
    assert list(convergence_parts(RunView())) == [("muted", "No pass assessed yet.")]


def test_only_the_last_eight_passes_are_shown_with_a_mark() -> None:
    blocks = list(convergence_parts(view_of(*(assessment(number, 0.5, "incomplete") for number in range(1, 13)))))
    assert blocks[0][1] == f"  complete …{'▄' * 8} 0.50 ±0"
    told = [text.split()[1] for style, text in blocks if style == "muted"]
    assert told == ["11", "10", "9", "8", "7", "6", "5"]


@pytest.mark.parametrize(
    ("scores", "text"),
    [([0.0], "▁ 0.00"), ([0, 0.99, 1.0], "▁▇█ 0.99 → 1.00"), ([None, 0.5], " ▄ – → 0.50"), ([], " ")],
)
def test_a_bar_is_full_only_for_a_full_score(scores: list[float | None], text: str) -> None:
    assert trend(scores) == text


async def test_the_convergence_pane_wraps_foreign_text_and_follows_the_run() -> None:
    pane = ConvergencePane()
    async with Shown(pane).run_test(size=(60, 30)):
        pane.update_view(view_of(assessment(1, 0.5, HOSTILE, detected_issues=[HOSTILE])))
        assert pane.pane_title == "Convergence · pass 1: not yet"
        assert "[red]\\x1b[31m\\u202e /bold]" in pane.text
        assert "\x1b" not in pane.text
        pane.update_view(view_of(*two_adaptive_passes(), RunResumed(options={}, continues_at=0)))
        assert pane.pane_title == "Convergence · pass 2: yes"
        pane.update_view(view_of(assessment(1, 0.5, "incomplete"), finished("not_converged")))
        assert pane.pane_title == "Convergence · pass 1: no"


def test_every_pane_style_comes_from_the_theme() -> None:
    blocks = [
        *convergence_parts(view_of(*two_adaptive_passes())),
        *convergence_parts(view_of(*two_adaptive_passes()[:12])),
    ]
    assert {style for style, _ in blocks} - {""} <= {*VARIABLES, "flags"}


def test_the_panes_are_redrawn_by_the_records_they_show() -> None:
    assert {"validation", "refinement"} == IssuesPane.RECORDS
    assert {"convergence", "run_started", "run_finished", "run_resumed", "profile"} == ConvergencePane.RECORDS


def test_a_row_does_not_repeat_the_step_above_it() -> None:
    def row(step_id: str | None, description: str) -> str:
        return described(IssueView("i", "specificity", "high", description, "plan", step_id, ""))

    assert row("s5", "step 's5' gives no result of its own") == "gives no result of its own"
    assert row("s5", "s5: too vague") == "too vague"
    assert row("s5", "step 's51' is fine, 's5' is not") == "step 's51' is fine, 's5' is not"
    assert row("s5", "simulated judge, a plain rule: step 's5' gives nothing") == "gives nothing"
    assert row("s5", "a word: of s6: s5 is vague") == "a word: of s6: s5 is vague"
    assert row(None, "step 's5' is vague") == "step 's5' is vague"
