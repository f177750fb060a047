"""The plan of two passes of a run, and what caused each difference."""

from __future__ import annotations

from typing import Any

from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_widgets.plan_difference import difference_blocks
from tests.aeon_tui.passes import Passes, issue, step

NAMED = ("the first plan", "end of pass 1")


def views(*plans: list[dict[str, Any]], **refined: Any) -> tuple[RunView, RunView]:
    run = Passes()
    run.plan(*plans[0])
    before = fold(run.records)
    if refined:
        run.refine(**refined)
    run.plan(*plans[1], cause="refined")
    return before, fold(run.records)


def lines(before: RunView, after: RunView) -> list[str]:
    return [text for _, text in difference_blocks(before, after, NAMED, "keys")]


def test_steps_are_added_removed_changed_and_invalid() -> None:
    before, after = views(
        [step("s1", "same"), step("s2", "old"), step("s3", "gone"), step("s4", "wrong", "complete")],
        [
            step("s1", "same"),
            {**step("s2", "new"), "agent": None, "tool": "search", "arguments": {"q": 1}, "depends_on": ["s1"]},
            step("s4", "wrong", "invalid"),
            step("s4-r1", "right", replaces="s4"),
        ],
    )
    told = lines(before, after)
    assert told[:3] == [
        "━━ Plan · the first plan → end of pass 1",
        "keys",
        "+ 1 added · − 1 removed · ~ 1 changed · ⊘ 1 invalid · 1 step as before",
    ]
    assert told[4:] == [
        "~ s2 new",
        "  description: old → new",
        "  tool: none → search",
        "  agent: llm → none",
        "  q: none → 1",
        "  depends on: none → s1",
        "",
        "− s3 gone",
        "",
        "⊘ s4 wrong",
        "  replaced by s4-r1",
        "",
        "+ s4-r1 right",
        "",
    ]


def test_a_long_value_is_shown_above_its_replacement() -> None:
    before, after = views([step("s1", "a" * 30)], [step("s1", "b" * 30)])
    assert lines(before, after)[5:8] == ["  description", f"  − {'a' * 30}", f"  + {'b' * 30}"]


def test_each_change_quotes_the_issue_that_caused_it() -> None:
    cause = {"semantic_validation_input": [issue("s1", "medium")], "reason": "it is vague"}
    before, after = views([step("s1", "old")], [step("s1", "new")], target="s1", action=cause)
    assert lines(before, after)[6:9] == [
        "✔ change s1, accepted in pass 1: it is vague",
        "⚠ medium · specificity · s1: the result of s1 says nothing of its own",
        "done: rewrote s1",
    ]


def test_refused_changes_come_last() -> None:
    before, after = views([step("s1", "old")], [step("s1", "old")], target="s1", accepted=False)
    assert lines(before, after)[4:] == [
        "No step was added, removed or changed.",
        "",
        "━━ Refused",
        "✖ change s1, refused in pass 1: it says nothing",
        "why not: still vague",
    ]


def test_executing_a_step_does_not_change_the_plan() -> None:
    before, after = views([step("s1", "it"), step("s2", "it")], [step("s1", "it", "complete"), step("s2", "it")])
    assert lines(before, after)[2:] == [
        "2 steps as before",
        "",
        "No step was added, removed or changed.",
        "ran: s1 pending → complete",
    ]


def test_a_plan_without_steps_as_before_does_not_count_them() -> None:
    assert lines(*views([], []))[2] == "no steps"
    assert lines(*views([step("s1", "it")], [step("s2", "it")]))[2] == "+ 1 added · − 1 removed"


def test_a_pass_does_not_differ_from_itself() -> None:
    _, after = views([step("s1", "old")], [step("s1", "new")], target="s1")
    assert "No step was added, removed or changed." in lines(after, after)


def test_model_text_is_shown_verbatim() -> None:
    before, after = views([step("s[b]", "[red]\x1b[31m")], [step("s[b]", "new\nline")])
    told = "\n".join(lines(before, after))
    assert "~ s[b] new line" in told


def test_reordered_arguments_are_not_a_change() -> None:
    call = {**step("s1", "same"), "agent": None, "tool": "search"}
    before, after = views(
        [{**call, "arguments": {"q": 1, "in": {"a": 1, "b": 2}}}],
        [{**call, "arguments": {"in": {"b": 2, "a": 1}, "q": 1}}],
    )
    assert lines(before, after)[2:] == ["1 step as before", "", "No step was added, removed or changed."]
