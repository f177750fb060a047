from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len

from aeon_core.journal.summary import RunSummary
from aeon_core.journal.view.formatting import repair_words
from aeon_core.journal.view.model import CallView, RepairView, ResultView, RunView, StepView, ToolCallView
from aeon_core.journal.view.reducer import fold, result_of
from aeon_widgets.icons import LEVELS, ROW_ICONS, RUN_STYLES, STATUS_ICONS, VARIABLES, run_style
from aeon_widgets.outcome import outcome_blocks
from aeon_widgets.pane import rendered
from aeon_widgets.repairs import RepairsPane
from aeon_widgets.run_header import RunHeader, gauge, spent
from aeon_widgets.run_list import RunLine, RunList
from aeon_widgets.step_text import output_blocks, prompt_blocks, repair_blocks, tool_blocks, waiting
from aeon_widgets.ttl_gauge import TTLGauge
from tests.aeon_tui.recordings import finished_run


def result(status: str, **fields: Any) -> ResultView:
    return result_of({"status": status, **fields})


def call(attempt: int = 1, **fields: Any) -> CallView:
    return CallView(
        call_id="c", purpose="reason", pass_number=1, step_id="s1", attempt=attempt, seq=1, started="", **fields
    )


@pytest.mark.parametrize(
    ("remaining", "bar", "colour"),
    [
        (50, "██████████", "$status-complete"),
        (49, "█████████", "$status-complete"),
        (12, "██", "$severity-medium"),
        (5, "█", "$severity-high"),
        (1, "█", "$severity-high"),
        (0, "", "$severity-high"),
    ],
)
def test_the_gauge_is_full_only_when_nothing_is_spent_and_empty_only_at_the_end(
    remaining: int, bar: str, colour: str
) -> None:
    view = RunView(ttl_limit=60, ttl_allocated=50, ttl_remaining=remaining)
    assert gauge(view, 100) == [
        ("TTL ", "$aeon-muted"),
        (bar, colour),
        ("░" * (10 - len(bar)), "$aeon-muted"),
        (f" {remaining} of 50 left", "$aeon-text"),
    ]


def test_a_narrow_gauge_is_short() -> None:
    view = RunView(ttl_limit=50, ttl_allocated=50, ttl_remaining=46)
    assert "".join(text for text, _ in gauge(view, 60)) == "TTL ███░ 46/50 left"


@pytest.mark.parametrize(
    ("config", "cost", "words", "colour"),
    [
        ({"budget": 0.5}, 0.0123, "$0.0123 of $0.50", "$aeon-text"),
        ({"budget": 0.5}, 0.4, "$0.40 of $0.50", "$severity-medium"),
        ({"budget": 0.5, "budget_warning": 0.01}, 0.0123, "$0.0123 of $0.50", "$severity-medium"),
        ({"budget": 0.1}, 0.108, "$0.1080, budget raised", "$severity-medium"),
        ({"budget": 1200}, None, "$0.00 of $1,200.00", "$aeon-text"),
        ({"budget": 0}, 0.0, "$0.00 of $0.00", "$aeon-text"),
        ({"budget": None}, 0.1, "", ""),
        ({"budget": float("inf")}, 0.1, "", ""),
        ({"budget": "much"}, 0.1, "", ""),
        ({"budget": True}, 0.1, "", ""),
        ({}, 0.1, "", ""),
    ],
)
def test_cost_is_shown_against_the_budget(config: dict[str, Any], cost: float | None, words: str, colour: str) -> None:
    assert spent(RunView(config=config, cost_usd=cost)) == (words, colour)


def test_an_unknown_cost_is_not_shown_as_zero() -> None:
    view = RunView(config={"budget": 5}, cost_usd=None, usage={"input_tokens": 10, "output_tokens": 3})
    assert spent(view) == ("cost unknown, budget $5.00", "$severity-medium")


@pytest.mark.parametrize(
    ("config", "cost", "simulated", "shown"),
    [
        ({"budget": 0.5}, 0.0123, False, "$0.0123 of $0.50"),
        ({"budget": 0.5}, 0.0, True, "$0.00 of $0.50"),
        ({"budget": 0.5}, None, False, "unknown"),
        ({}, 0.0123, False, "$0.0123"),
        ({}, 1204.5, False, "$1,204.50"),
        ({}, 0.0, True, "$0.00 (simulated)"),
        ({}, None, False, "unknown"),
    ],
)
def test_the_ttl_pane_has_the_cost(config: dict[str, Any], cost: float | None, simulated: bool, shown: str) -> None:
    pane = TTLGauge()
    pane._view = RunView(config=config, cost_usd=cost, simulated=simulated)
    assert pane._lines(30)[-1].plain == f"cost   {shown}"


def test_a_short_ttl_pane_says_what_is_unknown() -> None:
    pane = TTLGauge()
    pane._view = RunView(cost_usd=None)
    assert [line.plain for line in pane._brief(30)][1] == "cost unknown · 0 calls"


def test_the_header_has_the_cost_once() -> None:
    header = RunHeader()
    header._view = RunView(model="m", usage={"input_tokens": 3_000}, cost_usd=0.0123)
    assert [text for text, _, _ in header._facts() if text] == ["m", "$0.0123", "3,000 tokens"]
    header._view.config = {"budget": 0.5}
    assert [text for text, _, _ in header._facts() if text] == ["m", "$0.0123 of $0.50", "3,000 tokens"]


def test_the_gauge_shows_that_the_ttl_is_not_known_yet() -> None:
    assert gauge(RunView(), 100) == [("TTL –", "$aeon-muted")]


def test_statuses_differ_in_shape_not_only_in_colour() -> None:
    assert len(set(STATUS_ICONS.values())) == len(STATUS_ICONS) == 5
    assert len(set(ROW_ICONS.values())) == len(ROW_ICONS)
    assert all(cell_len(icon) == 1 for icon in ROW_ICONS.values())
    assert len({icon for icon, _ in LEVELS.values()}) == 3
    assert all(style in VARIABLES for _, style in RUN_STYLES.values())
    assert run_style("something new") == ("?", "muted")


def test_an_answer_is_shown_verbatim() -> None:
    assert outcome_blocks(result("completed", answer="[b]15[/b]")) == [("markdown", "[b]15[/b]")]
    assert outcome_blocks(result("completed")) == [("muted", "No answer was given.")]


def test_an_expired_run_names_unfinished_steps() -> None:
    metadata = {"reason_codes": ["ttl_expired"], "pass_number": 1, "incomplete_steps": ["s2", "s3"]}
    blocks = outcome_blocks(result("ttl_expired", ttl_expired_metadata=metadata))
    assert [style for style, _ in blocks] == ["medium", "medium"]
    assert blocks[1][1] == "⚠ not completed: s2, s3"


def test_a_failed_step_is_named_unless_the_error_names_it() -> None:
    steps = [{"step_id": "s1", "description": "d", "status": "failed", "errors": ["boom"]}]
    assert outcome_blocks(result("not_converged", steps=steps))[1:] == [("failed", "✖ s1 failed: boom")]
    error = {"error_type": "ToolError", "message": "boom"}
    assert outcome_blocks(result("failed", steps=steps, error=error)) == [("high", "✖ boom")]


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([], "Running …"),
        ([call()], "Waiting for the model …"),
        ([call(attempt=2)], "Waiting for the model (attempt 2) …"),
        ([call(finished=True, retry_in_s=2.5)], "Attempt 1 failed; trying again after 2.5 s …"),
        ([call(finished=True)], "Running …"),
    ],
)
def test_a_waiting_step_shows_what_it_waits_for(calls: list[CallView], said: str) -> None:
    assert waiting(calls) == said


def test_a_step_shows_how_it_was_executed_and_why_it_failed() -> None:
    step = StepView("s1", "add", status="failed", mode="fallback", errors=["boom"], validator_errors=["no tool"])
    assert output_blocks(step) == [
        ("high", "✖ boom"),
        ("bold", "add"),
        ("muted", "~ fallback: no tool found, so the model reasoned about it"),
        ("medium", "⚠ no tool"),
        ("", ""),
        ("muted", "No output."),
    ]


def test_a_prompt_is_shown_whole_with_what_came_back() -> None:
    asked = call(
        finished=True,
        request={
            "system": "Aeon reason",
            "messages": [
                {"role": "user", "content": "two\nlines"},
                {"role": "tool", "content": {"$text": "0" * 64}},
                "not a message",
            ],
            "tools": [{"name": "calculator"}, "odd"],
        },
        response={"text": "15", "tool_calls": [{"name": "echo", "arguments": {}}]},
        usage={"input_tokens": 3, "output_tokens": 1},
        latency_ms=12.0,
    )
    texts = [text for _, text in prompt_blocks([asked])]
    assert texts[:6] == [
        "━━ reason · attempt 1 · 12 ms · 3 → 1 tokens",
        "system",
        "Aeon reason",
        "user",
        "two\nlines",
        "tool",
    ]
    assert texts[7:11] == ["tools", "calculator, odd", "reply", "15"]
    assert '"name": "echo"' in texts[-1]
    assert prompt_blocks([]) == [("muted", "No model was called.")]


def test_a_failed_attempt_shows_its_error_and_the_wait() -> None:
    failed = call(finished=True, error={"message": "503", "status_code": 503}, retry_in_s=1.0)
    blocks = prompt_blocks([failed])
    assert ("high", "✖ 503") in blocks
    assert ("medium", "↻ tried again after 1.0 s") in blocks


def test_a_tool_call_shows_exact_arguments_and_result_or_error() -> None:
    step = StepView("s1", "add", tool="calculator", arguments={"a": 1})
    assert [text for _, text in tool_blocks(step)] == [
        "calculator has not been called.",
        "",
        "arguments in the plan",
        '{\n  "a": 1\n}',
    ]
    running = ToolCallView("t", 1, "s1", "calculator", {"a": "x"}, "pure", 1, "")
    step.tool_calls = [running]
    assert tool_blocks(step)[-1] == ("muted", "Running …")
    assert tool_blocks(step, live=False)[-1] == ("muted", "The run ended before this was done.")
    running.finished, running.error = True, {"message": "a is no number"}
    assert tool_blocks(step)[-1] == ("high", "✖ a is no number")
    running.error, running.result = None, {"result": 3}
    assert tool_blocks(step)[-1] == ("json", '{\n  "result": 3\n}')
    assert tool_blocks(StepView("s1", "think")) == [("muted", "This step calls no tool.")]


@pytest.mark.parametrize(("reason", "words"), [("max_tokens", " · the reply was cut off"), ("end", "")])
def test_a_step_whose_reply_was_cut_off_says_so(reason: str, words: str) -> None:
    made = call(
        finished=True, usage={"output_tokens": 9}, response={"text": "half", "stop_reason": reason}, latency_ms=2
    )
    step = StepView("s1", "think", status="complete", mode="llm", output={"text": "half"}, calls=[made])
    assert output_blocks(step)[1] == ("muted", f"reasoning by the model · 1 model call · 9 tokens{words} · 2 ms")


def test_an_unsafe_call_that_was_cut_off_is_reported_as_unknown() -> None:
    step = StepView("s1", "pay", status="running", tool="pay")
    step.tool_calls = [ToolCallView("t", 1, "s1", "pay", {}, "unsafe", 1, "")]
    unknown = ("muted", "The run ended during this call: whether it took effect is unknown.")
    assert tool_blocks(step, live=False)[-1] == output_blocks(step, live=False)[-1] == unknown
    assert output_blocks(step)[-1] == ("muted", "Running pay …")
    step.tool_calls[-1].effect = "idempotent"
    assert output_blocks(step, live=False)[-1] == ("muted", "The run ended before this was done.")


def test_a_repair_shows_before_and_after_or_why_not() -> None:
    repair = RepairView(1, "json_repair", "local", 1, 1, None, {"text": "{"}, {"a": 1}, None)
    assert [text for _, text in repair_blocks([repair])] == [
        "━━ plan JSON repaired · locally",
        "before",
        "{",
        "after",
        '{\n  "a": 1\n}',
    ]
    repair.repaired_output, repair.error = None, {"message": "not lossless"}
    assert repair_blocks([repair])[-1] == ("high", "✖ not lossless")
    assert repair_blocks([]) == [("muted", "No repairs.")]


@pytest.mark.parametrize(
    ("kind", "step_id", "method", "shown"),
    [
        ("plan_repair", "s1", "llm", ("step not repaired", "1 of 2, by the model")),
        ("plan_repair", None, "llm", ("plan not repaired", "1 of 2, by the model")),
        ("json_repair", None, "local", ("plan JSON not repaired", "locally")),
        ("json_repair", "s1", "local", ("tool call JSON not repaired", "locally")),
        ("tool_call_repair", "s1", "llm", ("tool call not repaired", "1 of 2, by the model")),
        ("new_repair", "s1", "magic", ("new repair not repaired", "magic")),
    ],
)
def test_a_repair_is_named_after_what_it_fixes(
    kind: str, step_id: str | None, method: str, shown: tuple[str, str]
) -> None:
    assert repair_words(RepairView(1, kind, method, 1, 1, step_id, {}, None, {"message": "no"})) == shown


def test_a_repair_outside_any_step_is_named_after_its_call() -> None:
    started = {"type": "run_started", "task": "t", "config": {}}
    asked = {"type": "llm", "state": "started", "call_id": "c1", "purpose": "profile", "attempt": 1, "request": {}}
    again = {**asked, "call_id": "c2", "purpose": "repair"}
    repaired = {"type": "supervisor", "action_type": "json_repair", "method": "llm", "attempt_number": 1}
    records = [started, asked, again, repaired]
    view = fold({"seq": seq, "ts": "2026-01-01T00:00:00Z", **each} for seq, each in enumerate(records))
    assert repair_words(view.repairs[0])[0] == "profile JSON repaired"


def test_a_list_marks_simulated_runs_at_every_width() -> None:
    runs = RunList()
    for model, marked in (("simulated:default", True), ("openai:simulated", False)):
        runs._lines = [RunLine(RunSummary("r", "add", "completed", model, 1, 0.0, "2026-11-20T09:30:00Z", "x"))]
        for width in (30, 60, 89, 90, 140):
            line = "".join(text for text, _ in runs.pieces(0, width))
            assert (" sim " in line[:width]) is marked


def test_the_kind_of_repair_is_shown_if_it_fits() -> None:
    pane = RepairsPane()
    pane._repairs = fold(finished_run().records).repairs
    shown = {width: "".join(text for text, _ in pane.pieces(0, width)).strip() for width in (60, 32, 24)}
    assert shown == {
        60: "✔ s2 step repaired · 1 of 2, by the model",
        32: "✔ s2 step repaired · 1 of 2",
        24: "✔ s2 step repaired",
    }


def test_a_summary_with_wide_characters_is_cut_to_its_cells() -> None:
    shown = rendered([("日本", "high"), ("abc", "")], 6)
    assert [text for text, _ in shown] == ["日本", "a…"]
