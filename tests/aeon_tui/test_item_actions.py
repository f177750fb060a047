"""The focused item is copied with one key, and opens in the pager, the editor, or a screen of its own."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.app import SuspendNotSupported

from aeon_tui.app import AeonApp
from aeon_tui.screens.item_actions import FullText, TextScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_widgets.call_rows import RowKey
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.step_pane import StepPane
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.recordings import Recording, failed_run, finished_run, live_run
from tests.aeon_tui.screens.run.test_screen import shown

ANSWER = "Five and ten make fifteen. Both the sum and the sentence were checked."


def said(app: AeonApp) -> str:
    return next(iter(app._notifications)).message


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    texts: list[str] = []
    monkeypatch.setattr(AeonApp, "copy_to_clipboard", lambda app, text: texts.append(text))
    return texts


async def test_one_key_copies_the_answer_or_the_focused_item(copied: list[str]) -> None:
    async with shown(finished_run()) as run:
        assert run.screen.focused is run.tree
        await run.press("y")
        assert (copied.pop(), said(run.app)) == (ANSWER, f"Copied the answer ({len(ANSWER)} characters)")
        run.source.journal = Path("runs/r1.jsonl")
        await run.press("Y")
        assert (copied.pop(), said(run.app)) == ("r1", "Copied the run id: r1")
        await run.press("g", "2", "y")
        assert (copied.pop(), said(run.app)) == ('{\n  "result": 15\n}', "Copied the output of s1 (18 characters)")
        await run.press("p", "1", "j", "j", "2", "y")
        assert "Say that 5 and 10 make 15." in copied.pop()
        assert said(run.app).startswith("Copied the prompt of s3 (")
        await run.press("8", "y")
        assert "completed · Five and ten make fifteen." in copied.pop()
    async with shown(converged_run()) as run:
        judged = (RowKey("calls", "judge", 1), "the result of s3 says")
        for row, told in ((RowKey("pass", "", 1), "completeness 0."), judged):
            run.tree.select(row)
            await run.press("2", "y")
            text = copied.pop()
            assert told in text
            assert '{"' not in text, "what is copied is what is shown, not the reply behind it"
        await run.press("5", "I", "y")
        assert "→ Split the step, one for each part." in copied.pop()
        assert said(run.app).startswith("Copied the issue (")


async def test_copied_text_is_safe_to_paste(copied: list[str]) -> None:
    hostile = Recording()
    hostile.plan({"step_id": "s1", "description": "one", "agent": "llm"})
    hostile.step("s1", "complete", output={"text": "a\n\x1b[2Jb\x07"})
    async with shown(hostile, live=True) as run:
        run.tree.select(RowKey("step", "s1"))
        await run.press("y")
        assert copied == ["a\n\\x1b[2Jb\\x07"]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app gives its terminal away."""

    @contextmanager
    def suspend(app: AeonApp) -> Iterator[None]:
        yield

    monkeypatch.setattr(AeonApp, "suspend", suspend)


@pytest.mark.usefixtures("given")
async def test_pager_and_editor_get_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    program.write_text(
        '#!/bin/sh\ncat "$2" > "$1.text"; stat -c %a "$(dirname "$2")" > "$1.mode"; echo "$2" > "$1.file"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PAGER", f"{program} {tmp_path / 'pager'}")
    monkeypatch.setenv("VISUAL", f"{program} {tmp_path / 'editor'}")
    async with shown(finished_run()) as run:
        await run.press("o", "O")
        assert not isinstance(run.app.screen, TextScreen)
        for who in ("pager", "editor"):
            assert (tmp_path / f"{who}.text").read_text() == ANSWER
            assert (tmp_path / f"{who}.mode").read_text() == "700\n"
            file = (tmp_path / f"{who}.file").read_text().strip()
            assert file.endswith(".md")
            assert not Path(file).exists()
        monkeypatch.setenv("PAGER", str(tmp_path / "none"))
        await run.press("o")
        missing = f"cannot start the pager '{tmp_path / 'none'}': No such file or directory; set PAGER to one that is"
        assert missing in said(run.app)
        monkeypatch.setenv("PAGER", "false")
        await run.press("o")
        assert "the pager ended with code 1" in said(run.app)


@pytest.mark.parametrize("pager", [None, "less"])
async def test_without_a_pager_or_terminal_the_text_opens_in_a_screen(
    pager: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PAGER", raising=False)
    if pager is not None:
        monkeypatch.setenv("PAGER", pager)
        monkeypatch.setattr(AeonApp, "suspend", lambda app: (_ for _ in ()).throw(SuspendNotSupported()))
    recorded = finished_run()
    recorded.records[-1]["result"]["answer"] = "**Fifteen.**"
    async with shown(recorded) as run:
        await run.press("o")
        assert isinstance(run.app.screen, TextScreen)
        assert run.app.screen.query_one(FullText).text == "Fifteen."
        await run.press("v")
        assert run.app.screen.query_one(FullText).text == "**Fifteen.**"
        await run.press("escape")
        assert isinstance(run.app.screen, RunScreen)


async def test_a_key_goes_through_problems_and_shows_each_cause_first() -> None:
    async with shown(failed_run()) as run:
        failed = [each for each in run.screen.view.steps.values() if each.status == "failed"]
        await run.press("n")
        assert run.screen.query_one(PlanTree).selected == RowKey("step", failed[0].step_id)
        assert run.screen.query_one(StepPane).tab == 0
        assert run.text.text.startswith("✖ ")
    async with shown(live_run(), live=True) as run:
        await run.press("N")
        assert said(run.app) == "No problems found."
