"""The requirements of a run and what the judge says of them: shown, and each quote one key away from its place."""

from __future__ import annotations

from typing import Any

import pytest

from aeon_widgets.call_rows import RowKey
from aeon_widgets.convergence import ConvergencePane
from aeon_widgets.outcome import Outcome
from aeon_widgets.virtual_list import LinesView
from tests.aeon_tui.passes import (
    NOT_JUDGED,
    QUESTION,
    WANTED,
    Passes,
    converged_run,
    first_pass,
    given_up_run,
    step,
    unjudged_run,
)
from tests.aeon_tui.screens.run.test_screen import Shown, shown
from tests.waiting import until

SIZES = [(120, 40), (80, 24), (40, 24)]


def pane_of(run: Shown) -> ConvergencePane:
    return run.screen.query_one(ConvergencePane)


def packed(text: str) -> str:
    return " ".join(text.split())


def marked(view: LinesView) -> str:
    """What is highlighted on screen as a quote."""
    lines = range(view.line_count)
    quoted = [[text for text, style in view.pieces(line, 200) if "quote" in style.split()] for line in lines]
    return packed(" ".join(text for line in quoted for text in line))


async def quoted(run: Shown) -> None:
    """Wait until the quote that was asked for has been looked for."""
    await until(run.pilot, lambda: not run.screen._quotes._looking.busy)
    await run.pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_requirements_are_shown_once_the_profile_is_known(size: tuple[int, int]) -> None:
    run_of = Passes()
    run_of.phase("plan")
    run_of.called("profile", "{}")
    async with shown(run_of, size=size, live=True) as run:
        assert pane_of(run).pane_title == "Convergence"
        assert pane_of(run).text in ("", "No pass assessed yet.")
        profiled = Passes()
        profiled.phase("plan")
        profiled.called("profile", "{}")
        profiled.profile(1, 1, 30, "inferred")
        await run.go_on(profiled.records[len(run_of.records) :])
        assert pane_of(run).pane_title == "Convergence · 3 requirements"
        await run.press("4")
        assert [packed(text) for text in WANTED] == [
            part.strip()
            for part in packed(pane_of(run).text).removeprefix("A finished answer must satisfy").split("□")[1:]
        ]
        await run.press("3", "enter")
        assert packed(f"A finished answer must satisfy □ {WANTED[0]}") in packed(run.text.text)


async def test_a_run_without_requirements_shows_what_is_judged_instead() -> None:
    run_of = Passes()
    run_of.profile(1, 1, 30, "inferred")
    run_of.records[-1]["requirements"] = []
    async with shown(run_of, live=True) as run:
        assert packed(pane_of(run).text) == "A finished answer must do what the task says."


async def test_edited_requirements_replace_inferred_ones() -> None:
    run_of = Passes()
    run_of.profile(1, 1, 30, "inferred")
    run_of.profile(1, 1, 30, "a person edited the requirements")
    run_of.records[-1]["requirements"] = ["It is short."]
    async with shown(run_of, live=True) as run:
        assert [each for each in pane_of(run).text.splitlines() if "□" in each] == ["□ It is short."]
        assert run.screen.view.log[-1].text == "a person edited the requirements: It is short."
        assert len(run.screen.view.profiles) == 1


async def test_each_requirement_has_its_verdict_and_quote_and_the_mark() -> None:
    async with shown(given_up_run(), size=(200, 60)) as run:
        text = pane_of(run).text
        lines = [line.strip() for line in text.splitlines()]
        first = lines.index(f"◐ {WANTED[0]}")
        assert lines[first : first + 6] == [
            f"◐ {WANTED[0]}",
            "“Not finished.”",
            f"✖ {WANTED[1]}",
            f"✔ {WANTED[2]}",
            "“it is half a page long”",
            "⚠ quote not found",
        ]
        assert text.count("quote not found") == 1
        assert text.count("“Not finished.”") == 1, "other verdicts quote the same words"
        assert "✖ suspicion confirmed: the answer says 3, which no output has" in " ".join(lines)
        assert lines.index("✖ answer disagrees") < lines.index("✔ plan agrees"), "what is wrong comes first"
        assert "· the answer says that it is not done" in lines
        assert "requirement 2 is not met" not in text, "the verdict has told it"


@pytest.mark.parametrize("size", SIZES)
async def test_enter_leads_to_the_quoted_words_of_the_answer(size: tuple[int, int]) -> None:
    async with shown(converged_run(), size=size) as run:
        await run.press("4", "enter")
        await quoted(run)
        assert run.tree.selected == RowKey("calls", "answer", 2)
        assert run.screen.focused is run.text
        assert marked(run.text) == "invoices as its resources"
        await run.press("1", "up")
        assert marked(run.text) == "", "another row has no quote"
        await run.press("down")
        assert run.tree.selected == RowKey("calls", "answer", 2)
        assert marked(run.text) == "", "who comes back later does not look for it"


async def test_enter_leads_to_the_quoted_words_of_a_step() -> None:
    async with shown(converged_run()) as run:
        await run.press("4", "down", "down", "enter")
        await quoted(run)
        assert run.tree.selected == RowKey("step", "s3")
        assert marked(run.text) == "the result of s3"
        await run.press("right")
        assert marked(run.text) == ""
        await run.press("left")
        assert marked(run.text) == "the result of s3"


async def test_a_quote_is_highlighted_although_another_tab_was_open() -> None:
    async with shown(converged_run()) as run:
        await run.press("p", "4", "down", "down", "enter")
        await quoted(run)
        assert run.tree.selected == RowKey("step", "s3")
        assert marked(run.text) == "the result of s3"


async def test_a_quote_far_down_is_scrolled_to() -> None:
    run_of = Passes()
    run_of.plan(step("s1", "Tell it"), step("s2", "Tell more"))
    run_of.do("s1", "nothing of it")
    run_of.do("s2", "\n\n".join(f"line {number} of many" for number in range(200)))
    run_of.assess(1.0, 1.0, "complete")
    run_of.records[-1]["requirements"][0]["evidence"] = "LINE 150 … line 151 of"
    run_of.finish("converged", converged=True, answer="done")
    async with shown(run_of, size=(80, 24)) as run:
        await run.press("4", "enter")
        await quoted(run)
        assert run.tree.selected == RowKey("step", "s2")
        assert marked(run.text) == "line 150 line 151 of"
        top = run.text.scroll_offset.y
        seen = [run.text._lines[line][1] for line in range(top, top + run.text.size.height)]
        assert "line 150 of many" in seen
        await run.press("home")
        assert run.text.scroll_offset.y == 0, "the person goes where they want"


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ("", "The judge quotes nothing for this."),
        ("words of nobody", "No answer, output or step contains these words."),
        ("a REST API for invoices", "These words are from the task."),
        ("fits on one page", "These words are from requirement 3."),
    ],
)
async def test_a_quote_that_leads_nowhere_is_reported(
    evidence: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of = first_pass()
    record = next(each for each in reversed(run_of.records) if each["type"] == "convergence")
    record["requirements"][0]["evidence"] = evidence
    notes: list[str] = []
    async with shown(run_of, live=True) as run:
        monkeypatch.setattr(run.screen, "notify", lambda text, **_: notes.append(text))
        before = run.tree.selected
        await run.press("4", "enter")
        await quoted(run)
        assert notes == [told]
        assert run.tree.selected == before


@pytest.mark.exhaustive
async def test_the_keys_move_between_verdicts_and_scroll_past_them() -> None:
    async with shown(given_up_run(), size=(80, 24)) as run:
        await run.press("4")
        pane = pane_of(run)
        assert pane.selected == 0
        number = len(pane._verdicts)
        await run.press(*["down"] * number)
        assert pane.selected == number - 1
        assert pane.lines_of(pane.selected)[0] in range(pane.scroll_offset.y, pane.scroll_offset.y + pane.size.height)
        await run.press(*["down"] * 40)
        assert pane.scroll_offset.y == pane.max_scroll_y
        await run.press(*["up"] * 80)
        assert (pane.selected, pane.scroll_offset.y) == (0, 0)
        selected = [line for line in range(pane.line_count) if pane.is_marked(line)]
        assert selected == list(pane.lines_of(0))
        await run.press("1")
        assert not any(pane.is_marked(line) for line in range(pane.line_count))


@pytest.mark.parametrize("size", SIZES)
async def test_unjudged_results_are_reported_everywhere(size: tuple[int, int]) -> None:
    async with shown(unjudged_run(), size=size) as run:
        assert ("not judged" in run.header[1]) == (size[0] >= 80)
        assert pane_of(run).pane_title == "Convergence · pass 1: not judged"
        outcome = packed(run.screen.query_one(Outcome).text)
        assert f"not judged: {NOT_JUDGED}" in outcome
        assert "The answer is available: check it yourself" in outcome
        await run.press("4")
        assert packed(pane_of(run).text).startswith(packed(f"✖ not judged: {NOT_JUDGED}"))
        assert packed(pane_of(run).text).count("usable verdict") == 1
        assert QUESTION in outcome


async def test_hostile_verdicts_are_text() -> None:
    hostile: Any = "[red]\x1b[31m\u202e /bold]"
    run_of = first_pass()
    record = next(each for each in reversed(run_of.records) if each["type"] == "convergence")
    record["requirements"] = [
        {"n": 1, "text": hostile, "met": hostile, "evidence": hostile, "quote_found": hostile},
        {"n": "x", "text": 3, "met": None},
        "odd",
    ]
    record["metadata"] = {"evidence": {hostile: {"ok": True, "evidence": hostile}, "x": 3}, "suspicions": [hostile, {}]}
    async with shown(run_of, live=True) as run:
        assert "? [red]\\x1b[31m\\u202e /bold]" in packed(pane_of(run).text)
        assert "\x1b" not in pane_of(run).text
        await run.press("4", "enter")
        await quoted(run)
