"""A run that waits for a person: the panel shows what would happen, and the answer reaches the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.effects.approval import Approver
from aeon_tui.app import AeonApp
from aeon_tui.desk import Desk
from aeon_tui.runner import Kernel, OnDelta, OnLine, Runner, StartRun
from aeon_tui.screens.run import RunScreen
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText, approval_blocks
from tests.fakes import ScriptedModel, steps

PLAN = steps({"tool": "erase", "arguments": {"path": "notes [old].txt"}})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.approval_panel.GRACE_SECONDS", 0.0)


class Erasing:
    """An app whose run wants to call a tool that needs approval."""

    def __init__(self, folder: Path) -> None:
        self.erased: list[str] = []

        @tool(effect="unsafe", needs_approval=True)
        def erase(path: str) -> str:
            """Erases a file."""
            self.erased.append(path)
            return "gone"

        def build(start: StartRun, journal: Path, line: OnLine, delta: OnDelta, approver: Approver | None) -> Kernel:
            registry = ToolRegistry()
            registry.register(erase)
            model = ScriptedModel(plan=PLAN, answer="done")
            return Orchestrator(
                model, tools=registry, config=start.config, approver=approver, journal=journal, on_line=line
            )

        config = RunConfig(durability="off")
        self.runner = Runner(StartRun("clean up", config), folder / "r.jsonl", build)
        self.app = AeonApp(folder, self.runner)


async def until(pilot: Any, holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await pilot.pause(0.01)
    raise AssertionError("it did not come to that")


async def test_the_panel_shows_the_final_arguments_and_approval_runs_the_tool(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: bool(screen.query(ApprovalText)) and isinstance(screen.focused, ApprovalText))
        panel = screen.query_one(ApprovalPanel)
        assert str(panel.border_title) == "May erase be called?"
        text = screen.query_one(ApprovalText).text
        assert "path: notes [old].txt" in text
        assert "asked because: 'erase' needs approval" in text
        assert screen.status == "waiting for you"
        assert erasing.erased == []
        await pilot.press("a")
        await until(pilot, lambda: erasing.runner.result is not None)
        await until(pilot, lambda: not screen.query(ApprovalPanel))
    assert erasing.erased == ["notes [old].txt"]
    assert erasing.runner.exit_code == 0


@pytest.mark.parametrize(
    ("keys", "why"),
    [(["d"], "the answer was reject"), (["w", "n", "o", "enter"], "was not approved: no")],
    ids=["plain", "words"],
)
async def test_a_rejection_fails_the_step_with_the_words(tmp_path: Path, keys: list[str], why: str) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, ApprovalText))
        await pilot.press(*keys)
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == []
    assert erasing.runner.result is not None
    assert why in erasing.runner.result.steps[0].errors[0]


async def test_keys_typed_before_a_person_can_have_read_it_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_widgets.approval_panel.GRACE_SECONDS", 3_600.0)
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, ApprovalText))
        await pilot.press("a", "d", "ctrl+x")
        await pilot.pause()
        assert erasing.runner.desk.waiting is not None
        await pilot.press("w", "x", "escape")
        assert not pilot.app.screen.query_one(Input).display
        erasing.runner.abort()
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == []


async def test_quitting_while_the_run_waits_aborts_it(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, ApprovalText))
        await pilot.press("q")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.runner.result is not None
    assert (erasing.runner.result.status, erasing.erased) == ("aborted", [])


def test_an_answer_to_another_question_is_none() -> None:
    desk = Desk()
    assert not desk.decide("digest", ApprovalDecision(decision="approve"))
    desk.close()
    request = ApprovalRequest(point="tool", pass_number=1, subject={}, digest="digest")
    assert desk(request).decision == "abort"


def test_an_edit_is_shown_as_a_difference() -> None:
    subject = {"arguments": {"file_path": "a.py", "old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3"}}
    lines = [text for _, text in approval_blocks("tool", subject)]
    assert "file_path: a.py" in lines
    assert lines[-3:] == [" x = 1", "-y = 2", "+y = 3"]


def test_the_budget_is_asked_about_in_dollars() -> None:
    subject = {"spent_usd": 1.0, "limit_usd": 1.2, "reserved_usd": 0.31, "held_usd": 0.0, "proposed_usd": 2.4}
    lines = [text for _, text in approval_blocks("budget", subject)]
    assert any(line.startswith("the next call may cost up to") and line.endswith("$0.3100") for line in lines)
    assert any(line.endswith("$2.4000") for line in lines)
