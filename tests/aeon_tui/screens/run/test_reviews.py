"""A plan before it runs and a pass when it has ended, decided by a person at the screen: each decision by its key."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Static

from aeon_core import Orchestrator, RunConfig
from aeon_core.approvals import ApprovalRequest, Approver
from aeon_core.journal.reader import read_records
from aeon_core.journal.view.model import RunView
from aeon_core.llm.base import LLMResponse
from aeon_core.runs.orchestrator import PreparedRun
from aeon_tui.app import AeonApp
from aeon_tui.screens.editor import EditorScreen
from aeon_tui.screens.run.approval_controller import ApprovalController
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import Kernel, NewRunJob, OnLine, RunJob
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.stream import Stream
from aeon_widgets.approval_panel import AnswerKeys, ApprovalPanel, ApprovalText
from aeon_widgets.outcome import Outcome
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, of, plan
from tests.fakes import ScriptedModel
from tests.waiting import until


@pytest.fixture(autouse=True)
def at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the app be one that can be suspended."""

    @contextlib.contextmanager
    def suspend(_: AeonApp) -> Iterator[None]:
        yield  # as Textual's own: it does not come back from an error

    monkeypatch.setattr(AeonApp, "suspend", suspend)


class Reviewed:
    """An app whose run of two passes is asked about."""

    def __init__(self, folder: Path, *approve: Any, scripted: ScriptedModel | None = None) -> None:
        self.model = scripted or model(plan=plan(by=0), refine=MENDED)

        def build(job: RunJob, journal: Path, line: OnLine, stream: Stream, approver: Approver | None) -> Kernel:
            orchestrator = Orchestrator(
                self.model, config=job.config, approver=approver, journal=journal, on_line=line, on_delta=stream.add
            )
            return PreparedRun(orchestrator, job.task)

        config = RunConfig(durability="off", approve=list(approve))
        self.runner = Runner(NewRunJob(TASK, config), folder / "r.jsonl", build)
        self.app = AeonApp(folder, self.runner)

    @property
    def told(self) -> list[tuple[Any, ...]]:
        """What was decided, with the pass and the words."""
        decided = [each for each in of(list(read_records(self.runner.journal)), "approval") if each["state"] != "asked"]
        return [(each["point"], each["pass"], each["decision"], each.get("feedback")) for each in decided]

    async def question(self, pilot: Any, after: ApprovalRequest | None = None) -> ApprovalRequest:
        """Wait for the next question to be on screen and in focus; return it."""
        broker = self.runner.broker

        def asked() -> bool:
            screen = pilot.app.screen
            there = isinstance(screen, RunScreen) and isinstance(screen.focused, ApprovalText)
            return there and broker.waiting not in (None, after) and screen.asking._asked is broker.waiting

        await until(pilot, asked)
        await until(pilot, lambda: bool(pilot.app.screen.query_one(ApprovalText).text))
        assert broker.waiting is not None
        return broker.waiting

    async def end(self, pilot: Any) -> None:
        self.runner.abort()
        await until(pilot, lambda: self.runner.result is not None)


def editor(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(path))


@pytest.mark.parametrize(
    ("key", "decided", "status", "passes"),
    [
        ("a", ("approve", None), "converged", 2),
        ("c", ("accept", None), "accepted", 1),
        ("X", ("abort", None), "aborted", 1),
        ("r", ("replay", None), None, 2),
    ],
)
async def test_a_pass_is_decided_by_a_key(
    tmp_path: Path, key: str, decided: tuple[str, str | None], status: str | None, passes: int
) -> None:
    reviewed = Reviewed(tmp_path, "pass")
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        assert pilot.app.screen.status == "waiting for you"  # type: ignore[attr-defined]
        await pilot.press(key)
        if status == "aborted":
            await pilot.press("y")
        if status is None:
            assert (await reviewed.question(pilot, first)).pass_number == passes
            await reviewed.end(pilot)
        elif key == "a":
            await reviewed.question(pilot, first)
            await pilot.press("a")
        await until(pilot, lambda: reviewed.runner.result is not None)
        await until(pilot, lambda: not pilot.app.screen.query(ApprovalPanel))
    assert reviewed.told[0] == ("pass", 1, *decided)
    assert reviewed.runner.result is not None
    assert reviewed.runner.result.status == (status or "aborted")
    if reviewed.runner.result.status != "aborted":
        assert reviewed.runner.result.passes == passes


@pytest.mark.parametrize("point", ["plan", "pass"])
async def test_feedback_reaches_the_planner(tmp_path: Path, point: str) -> None:
    reviewed = Reviewed(tmp_path, point, scripted=model(refine=MENDED))
    async with reviewed.app.run_test(size=(60, 20)) as pilot:
        first = await reviewed.question(pilot)
        await pilot.press("w", *"shorter", "enter")
        again = await reviewed.question(pilot, first)
        await reviewed.end(pilot)
    assert reviewed.told[0] == (point, 1, "reject", "shorter")
    assert "the user says: shorter" in [issue["description"] for issue in again.subject["issues"]]
    assert "shorter" in reviewed.model.asked("refine")[0].prompt


async def test_the_keys_of_a_pass_decide_nothing_about_a_plan(tmp_path: Path) -> None:
    reviewed = Reviewed(tmp_path, "plan")
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        panel = pilot.app.screen.query_one(ApprovalPanel)
        assert str(panel.border_title) == "9 Run this plan? 2 steps, 2 tool calls"
        await pilot.press("r", "9", "c", "9")
        assert reviewed.runner.broker.waiting is first
        await pilot.press("a")
        await until(pilot, lambda: reviewed.told[:1] == [("plan", 1, "approve", None)])
        await reviewed.end(pilot)


async def test_keys_in_the_first_half_second_decide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    reviewed = Reviewed(tmp_path, "pass")
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        await pilot.press("r", "c", "e", "a", "w", "X")
        await pilot.pause()
        assert reviewed.runner.broker.waiting is first
        await reviewed.end(pilot)


async def test_the_second_pass_is_shown_against_the_first(tmp_path: Path) -> None:
    reviewed = Reviewed(tmp_path, "pass")
    async with reviewed.app.run_test(size=(120, 40)) as pilot:
        first = await reviewed.question(pilot)
        text = pilot.app.screen.query_one(ApprovalText).text
        score = first.subject["convergence"]["completeness_score"]
        assert "because: one cannot divide by zero" not in text
        await pilot.press("enter")
        text = pilot.app.screen.query_one(ApprovalText).text
        assert f"▸ scores: completeness {score:.2f}" in text
        assert "because: one cannot divide by zero" in text
        await pilot.press("a")
        second = await reviewed.question(pilot, first)
        await pilot.press("down", "enter")
        text = pilot.app.screen.query_one(ApprovalText).text
        scores = [each.subject["convergence"]["completeness_score"] for each in (first, second)]
        assert f"✔ completeness {scores[0]:.2f} → {scores[1]:.2f}, 0.80 required" in text
        assert "Accept the result" in str(pilot.app.screen.query_one(AnswerKeys).render())
        assert "The sum of 5 and 10 is 15" in text
        await pilot.press("a")
        await until(pilot, lambda: reviewed.runner.result is not None)


async def test_a_pass_says_that_its_answer_was_cut_off(tmp_path: Path) -> None:
    half, whole = "The sum of 5 and 10 is 15, and", "The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5."
    replies: list[Any] = [LLMResponse(text=half, stop_reason="max_tokens"), whole]
    reviewed = Reviewed(tmp_path, "pass", scripted=model(plan=plan(by=0), refine=MENDED, answer=replies))
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        assert first.subject["answer"] == half
        assert "✖ cut off at the token limit: the answer\n" in pilot.app.screen.query_one(ApprovalText).text
        await pilot.press("a")
        second = await reviewed.question(pilot, first)
        assert second.subject["answer"] == whole
        assert "cut off" not in pilot.app.screen.query_one(ApprovalText).text
        await reviewed.end(pilot)


@pytest.mark.parametrize(
    ("reason", "words"), [("max_tokens", "✖ cut off at the token limit: the answer\n"), ("end", "")]
)
async def test_an_answer_that_was_cut_off_says_so(tmp_path: Path, reason: str, words: str) -> None:
    half = LLMResponse(text="The sum of 5 and 10 is 15, and", stop_reason=reason)
    reviewed = Reviewed(tmp_path, "none", scripted=model(answer=half))
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: half.text in pilot.app.screen.query_one(Outcome).source)
        assert pilot.app.screen.query_one(Outcome).source == f"{words}{half.text}"


@pytest.mark.parametrize("point", ["plan", "pass"])
async def test_an_edited_plan_replaces_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_terminal: None, point: str
) -> None:
    editor(tmp_path, monkeypatch, "sed -i 's/Divide 1 by 2/Halve 1/' \"$1\"")
    reviewed = Reviewed(tmp_path, point, scripted=model())
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        await pilot.press("e")
        if point == "pass":
            await reviewed.question(pilot, first)
            await pilot.press("a")
        await until(pilot, lambda: reviewed.runner.result is not None)
    assert reviewed.runner.result is not None
    assert reviewed.runner.result.status == "converged"
    assert [step.description for step in reviewed.runner.result.steps] == ["Add 5 and 10", "Halve 1"]
    ran = [each["step_id"] for each in of(list(read_records(reviewed.runner.journal)), "step")]
    assert ran.count("s1") == 2, "what was executed and not changed did not run again"
    assert list(tmp_path.glob("aeon-plan-*")) == []


async def test_an_invalid_plan_is_reopened_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_terminal: None
) -> None:
    editor(tmp_path, monkeypatch, "sed -i 's/step_id: s2/step_idd: s2/; s/Add 5/Sum 5/' \"$1\"")
    reviewed = Reviewed(tmp_path, "plan", scripted=model())
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        await pilot.press("e")
        await until(pilot, lambda: '"step_idd"' in pilot.app.screen.query_one(ApprovalText).text)
        assert reviewed.runner.broker.waiting is first
        assert len(list(tmp_path.glob("aeon-plan-*"))) == 1
        editor(tmp_path, monkeypatch, "sed -i 's/step_idd: s2/step_id: s2/' \"$1\"")
        await pilot.press("e")
        await until(pilot, lambda: reviewed.runner.result is not None)
    assert reviewed.runner.result is not None
    assert reviewed.runner.result.steps[0].description == "Sum 5 and 10"


async def test_an_unchanged_plan_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_terminal: None
) -> None:
    editor(tmp_path, monkeypatch, "true")
    reviewed = Reviewed(tmp_path, "plan")
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        await pilot.press("e")
        text = pilot.app.screen.query_one(ApprovalText)
        await until(pilot, lambda: text.text.startswith("✖ no changes, so nothing is decided\n"))
        assert reviewed.runner.broker.waiting is first
        await pilot.press("a")
        await until(pilot, lambda: reviewed.runner.broker.waiting is not first)
        await reviewed.end(pilot)
    assert list(tmp_path.glob("aeon-plan-*")) == []


async def test_without_an_editor_the_plan_is_edited_in_the_app_until_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    reviewed = Reviewed(tmp_path, "plan", scripted=model())
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        await reviewed.question(pilot)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, EditorScreen))
        screen = pilot.app.screen
        assert isinstance(screen, EditorScreen)
        before = screen.area.text
        assert before.startswith("# `requirements`"), "the title is above the editor, and how to save at its foot"
        screen.area.text = broken = before.replace("description: Divide 1 by 2", "description: 3")
        await pilot.press("ctrl+s")
        problems = screen.query_one("#problems", Static)
        await until(pilot, lambda: problems.display)
        line = 1 + broken.splitlines().index("  description: 3")
        assert str(problems.content) == f"✖ line {line}: steps[1].description: expected a string, got 3"
        assert screen.area.text == broken
        assert screen.area.cursor_location[0] == line - 1
        screen.area.text = before.replace("Divide 1 by 2", "Halve 1")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: reviewed.runner.broker.waiting is None)
        await reviewed.end(pilot)
    assert [step.description for step in reviewed.runner.result.steps] == ["Add 5 and 10", "Halve 1"]  # type: ignore[union-attr]
    assert list(tmp_path.glob("aeon-plan-*")) == []


async def test_a_key_typed_during_the_edit_decides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_a_terminal: None
) -> None:
    editor(tmp_path, monkeypatch, "true")
    reviewed = Reviewed(tmp_path, "plan", scripted=model())
    async with reviewed.app.run_test(size=(80, 24)) as pilot:
        first = await reviewed.question(pilot)
        panel = pilot.app.screen.query_one(ApprovalPanel)
        panel.action_choose("e")
        panel.action_choose("X")
        await until(pilot, lambda: pilot.app.screen.query_one(ApprovalText).text.startswith("✖ no changes"))
        await pilot.pause()
        assert reviewed.runner.broker.waiting is first
        assert reviewed.told == []
        await reviewed.end(pilot)


async def test_a_pass_is_shown_once_its_records_are_read(tmp_path: Path) -> None:
    broker = ApprovalBroker()
    broker._waiting = ApprovalRequest(point="pass", pass_number=1, subject={}, digest="d")
    app = AeonApp(tmp_path)
    async with app.run_test():
        home = app.screen.children[0]
        asking = ApprovalController(app.screen, broker, lambda: (app.screen, home))
        show: Callable[[RunView], None] = lambda view: asking.show(view, home=home)  # noqa: E731
        show(RunView())
        assert not asking.waits
        show(RunView(asked="pass"))
        assert asking.waits
