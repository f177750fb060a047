"""Workflows in the list of runs: opened, previewed, exported, deleted; what only a run can is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.color import Color
from textual.widgets import Input

from aeon_tui.app import AeonApp
from aeon_tui.reports.workflow_report import SIGNS
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.workflow.dialogs import WorkflowTaskScreen
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sessions.workflow_session import WorkflowJob
from aeon_widgets.pane import Problem
from aeon_widgets.run_preview import RunPreview
from system2.constants import DELEGATION_MAP, GATES
from tests.aeon_tui.workflows import Written, asked, at_a_gate, completed, failed
from tests.waiting import until

SIGNS_OF_ROWS = {sign for sign, _, _ in SIGNS}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / ".system2" / "runs"
    folder.mkdir(parents=True)
    for name, written in (("20260102-030405", completed()), ("20260102-030406", failed())):
        written.records[0]["config"]["project_root"] = str(tmp_path)
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in written.records))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    return tmp_path


def drawn(app: AeonApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def told(app: AeonApp) -> str:
    return "\n".join(notification.message for notification in app._notifications)


async def test_a_workflow_is_listed_marked_and_opened(project: Path) -> None:
    app = AeonApp(project / "kept")
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "workflow · build" in drawn(app))
        preview = app.screen.query_one(PreviewPane)
        await until(pilot, lambda: "◼ spec-coordinator       stopped" in preview.text)
        assert "the credentials were refused" in preview.text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, WorkflowScreen) and app.screen.status == "failed")
        await pilot.press("escape")
        assert isinstance(app.screen, BrowserScreen)


@pytest.mark.parametrize("written", [completed, at_a_gate])
async def test_each_agent_and_gate_has_one_line_in_the_preview(
    tmp_path: Path, written: Callable[[], Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "20260102-030405.jsonl").write_text("".join(json.dumps(each) + "\n" for each in written().records))
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 40)) as pilot:
        await until(pilot, lambda: "gate 5 summary" in drawn(app))
        preview = app.screen.query_one(RunPreview)
        assert "✔ repo-governor         complete\n" in preview.text
        rows = [line for line in preview.text.splitlines() if line[:1] in SIGNS_OF_ROWS]
        assert len(rows) >= len(DELEGATION_MAP) + len(GATES)
        assert all(cell_len(line) <= preview.scrollable_content_region.width for line in rows)


async def test_an_action_only_for_runs_is_one_clear_line(project: Path) -> None:
    app = AeonApp(project / "kept")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "workflow · build" in drawn(app))
        assert app.check_action("past_run", ("replay",))
        assert not app.check_action("past_run", ("label",))
        await pilot.press("F")
        await until(pilot, lambda: "it can only be shown" in told(app))
        await pilot.press("C")
        await until(pilot, lambda: "to compare" in told(app))


async def test_a_workflow_is_exported_and_deleted(project: Path) -> None:
    app = AeonApp(project / "kept")
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        await until(pilot, lambda: "workflow · build" in drawn(app))
        await pilot.press("x")
        await until(pilot, lambda: app.screen.is_modal)
        await pilot.press("enter")
        report = project / "20260102-030406.md"
        await until(pilot, report.is_file)
        assert "# Workflow" in report.read_text()
        await until(pilot, lambda: not app.screen.is_modal)
        await pilot.press("delete")
        await until(pilot, lambda: app.screen.is_modal)
        await pilot.press("y")
        await until(pilot, lambda: not (project / ".system2" / "runs" / "20260102-030406.jsonl").exists())
    assert (project / ".system2" / "runs" / "20260102-030405.jsonl").exists()


async def test_a_runs_folder_that_cannot_be_written_starts_no_workflow_and_keeps_the_task(project: Path) -> None:
    (project / "file").touch()
    app = AeonApp(project / "kept")
    app.first_screen = WorkflowTaskScreen(WorkflowJob(project, model="simulated:default", runs_dir=project / "file"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"build it", "enter")
        await until(pilot, lambda: "cannot store runs in " in drawn(app))
        assert app.screen.query_one(Input).value == "build it"
        assert app.sessions.all == []


async def test_a_task_entered_in_the_dialog_starts_a_workflow(project: Path) -> None:
    app = AeonApp(project / "kept")
    app.first_screen = WorkflowTaskScreen(WorkflowJob(project, model="simulated:default"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter")
        assert "describe the task first" in drawn(app)
        shown = app.screen.query_one(Problem)
        assert shown.styles.color == Color.parse(app.theme_variables["severity-high"])
        app.screen._request = WorkflowJob(project, model="nobody:x")  # type: ignore[attr-defined]
        await pilot.press(*"build it", "enter")
        await until(pilot, lambda: "unknown provider" in drawn(app))
        app.screen._request = WorkflowJob(project, model="simulated:default")  # type: ignore[attr-defined]
        await pilot.press("enter")
        panel = await asked(pilot, "gate")
        assert "Gate 0" in panel.question.headline
        assert app.sessions.all
        app.sessions.all[-1].abort()
        await until(pilot, lambda: app.sessions.all and not app.sessions.all[-1].running)
