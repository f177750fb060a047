"""The pass timeline as text, and the rows of calls that belong to no step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import AssessmentView, PhaseView, ProfileView, RunView
from aeon_widgets.call_rows import CallRows, RowKey, call_label
from aeon_widgets.issues import profile_blocks
from aeon_widgets.pass_line import pass_parts
from aeon_widgets.ttl_gauge import depth

PHASES = st.lists(st.tuples(st.integers(1, 30), st.text(max_size=30), st.booleans()), max_size=40)


def view_of(*phases: tuple[int, str, bool], scores: dict[int, float] | None = None) -> RunView:
    return RunView(
        phases=[PhaseView(number, name, "", finished=finished) for number, name, finished in phases],
        assessments=[
            AssessmentView(1, number, score == 1, completeness_score=score, coherence_score=None)
            for number, score in (scores or {}).items()
        ],
    )


def text(view: RunView, width: int, *, live: bool = True) -> str:
    return "".join(part.text for part in pass_parts(view, width, live=live))


@given(PHASES, st.dictionaries(st.integers(1, 30), st.floats(0, 1)), st.integers(1, 120), st.booleans())
def test_a_line_of_passes_is_never_wider_than_its_pane(
    phases: list[tuple[int, str, bool]], scores: dict[int, float], width: int, live: bool
) -> None:
    assert cell_len(text(view_of(*phases, scores=scores), width, live=live)) <= width


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (78, "1 plan ─ execute ✖ 0.25 –   2 execute ✔ complete 1.00 coherent –   3 ▶ execute"),
        (77, "1 ✖ 0.25 –   2 execute ✔ complete 1.00 coherent –   3 ▶ execute"),
        (62, "1 ✖ 0.25 –   2 ✔ complete 1.00 coherent –   3 ▶ execute"),
        (53, "1 ✖ 0.25 –   2 execute ✔ 1.00 –   3 ▶ execute"),
        (40, "1 ✖ 0.25 –   2 ✔ 1.00 –   3 ▶ execute"),
        (36, "… 2 ✔ 1.00 –   3 ▶ execute"),
        (20, "… 3 ▶ execute"),
        (8, "… 3 ▶ e…"),
    ],
)
def test_older_passes_are_dropped_first(width: int, shown: str) -> None:
    phases = [(1, "plan", True), (1, "execute", True), (2, "execute", True), (3, "execute", False)]
    assert text(view_of(*phases, scores={1: 0.25, 2: 1.0}), width) == shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "1 execute ✖ 0.25 –   2 execute ✔ complete 1.00 coherent –"),
        (44, "1 ✖ 0.25 –   2 ✔ complete 1.00 coherent –"),
        (40, "1 execute ✖ 0.25 –   2 execute ✔ 1.00 –"),
        (33, "1 ✖ 0.25 –   2 execute ✔ 1.00 –"),
        (30, "1 ✖ 0.25 –   2 ✔ 1.00 –"),
        (22, "… 2 execute ✔ 1.00 –"),
    ],
)
def test_finished_phases_are_replaced_by_score_names(width: int, shown: str) -> None:
    phases = [(1, "execute", True), (2, "execute", True)]
    assert text(view_of(*phases, scores={1: 0.25, 2: 1.0}), width) == shown


def test_no_phase_is_running_after_the_run_ended() -> None:
    assert text(view_of((1, "plan", False)), 60, live=False) == "1 ◼ plan"
    assert text(RunView(), 60) == "no pass has started"


def called(*calls: tuple[str, int, str | None]) -> RunView:
    view = RunView()
    for seq, (purpose, number, step_id) in enumerate(calls):
        reducer.apply(view, begun(seq, purpose, number, step_id))
    return view


def begun(seq: int, purpose: str, number: int, step_id: str | None) -> dict[str, object]:
    of = {"call_id": f"c{seq}", "state": "started", "purpose": purpose, "pass": number, "step_id": step_id}
    return {"v": 1, "seq": seq, "ts": "", "run": "r", "type": "llm", **of}


LOOP = [("profile", 1, None), ("plan", 1, None), ("repair", 1, None), ("refine", 1, None), ("reason", 1, "s1")]
LOOP += [("answer", 1, None), ("judge", 1, None), ("repair", 1, None), ("refine", 1, None), ("answer", 2, None)]


def test_calls_are_grouped_by_pass_and_a_refinement_before_the_first_step_comes_before_the_plan() -> None:
    rows = CallRows(called(*LOOP))
    rows.update()
    assert [key.name for key in rows.before] == ["profile", "plan", "refine"]
    assert [(key.pass_number, key.name) for key in rows.after] == [
        (1, "answer"),
        (1, "judge"),
        (1, "refine"),
        (2, "answer"),
    ]
    assert [call.purpose for call in rows.calls_of(RowKey("calls", "judge", 1))] == ["judge", "repair"]
    reducer.apply(rows.view, begun(99, "judge", 2, None))
    rows.update()
    assert rows.after[-1] == RowKey("calls", "judge", 2)


def test_a_record_leads_to_the_latest_calls_before_it() -> None:
    rows = CallRows(called(*LOOP))
    assert rows.row_at(5) is None
    rows.update()
    assert rows.row_at(2) == RowKey("calls", "plan")
    assert rows.row_at(7) == RowKey("calls", "judge", 1)
    assert rows.row_at(100) == RowKey("calls", "answer", 2)


def test_a_row_of_calls_names_its_pass_if_there_are_several() -> None:
    assert call_label(RowKey("calls", "judge", 2), with_pass=True) == "pass 2 · evaluate"
    assert call_label(RowKey("calls", "judge", 2), with_pass=False) == "evaluate"
    assert call_label(RowKey("calls", "plan"), with_pass=True) == "make the plan"
    assert call_label(RowKey("calls", "a\x1b[1m"), with_pass=True) == "a\\x1b[1m"


def test_a_profile_is_one_line_and_its_versions_show_each_change() -> None:
    first = ProfileView(1, 1, 1, {"information_sufficiency": "low"}, "vague", "deep", 30, "inferred")
    second = ProfileView(9, 2, 2, {"information_sufficiency": "low"}, "vague", "deep", 40, "not converged")
    assert depth(first) == "deep · sufficiency low"
    assert depth(ProfileView(1, 1, 3, {}, "", "", None, "")) == "v3"
    assert profile_blocks([first, second]) == [
        ("accent bold", "━━ profile 2 · from pass 2 on · deep reasoning · 40 cycles"),
        ("medium", "why: not converged"),
        ("", ""),
        ("accent bold", "━━ profile 1 · from pass 1 on · deep reasoning · 30 cycles"),
        ("medium", "why: inferred"),
        ("", "information sufficiency: low"),
        ("muted", "inferred: vague"),
    ]
    assert profile_blocks([]) == []
