"""Whole workflows in the app, by keyboard and mouse: gates, commands, abort, past ones, and what is told."""

from __future__ import annotations

import itertools
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input

from aeon_core.approvals import ApprovalDecision
from aeon_core.config.editing import saved_rules
from aeon_core.config.schema import RunConfig
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.tools.search import GlobTool
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import ConfirmDialog, RuleDialog
from aeon_tui.screens.keys import KeyColumns
from aeon_tui.screens.new_run import NewRunScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.workflow.dialogs import WorkflowForkDialog
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.stream import Stream
from aeon_tui.sources.workflow import WORKFLOW_ROW, follow_workflow
from aeon_widgets.approval_panel import AnswerKeys, ApprovalPanel
from aeon_widgets.call_rows import SPINNER
from aeon_widgets.text_fields import FeedbackField
from aeon_widgets.virtual_list import ChoiceRows
from aeon_widgets.workflow_panes import WorkflowArtifact, WorkflowConversation, WorkflowPipeline
from system2.simulated import SimulatedAgents
from tests.aeon_tui.compared import written
from tests.aeon_tui.passes import converged_run
from tests.aeon_tui.workflows import (
    BLOCKLISTED,
    GATE,
    TASK,
    StillDesk,
    Written,
    app_on,
    asked,
    at_a_gate,
    at_work,
    completed,
    failed,
    live_app,
    request,
)
from tests.system2.workflows import read_entries, read_workflow
from tests.waiting import until


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


def drawn(app: AeonApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def rows(app: AeonApp) -> dict[str, str]:
    """The pipeline's states, by row."""
    return {row.key: row.word for row in app.screen.query_one(WorkflowPipeline)._rows}


async def test_a_whole_workflow_by_keyboard(tmp_path: Path) -> None:
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "gate")
        await until(pilot, lambda: "Gate 0 · scope: approve spec/scope.md?" in drawn(app))
        await pilot.press("w", *"name it", "enter")
        panel = await asked(pilot, "gate", panel)
        assert "Gate 0" in panel.question.headline
        for number in range(5):
            assert f"Gate {number}" in panel.question.headline
            await pilot.press("a")
            if number < 4:
                panel = await asked(pilot, "gate", panel)
        panel = await asked(pilot, "command")
        assert panel.question.body[-1][1].startswith("python3 tests/")
        await pilot.press("w", *"not now", "enter")
        panel = await asked(pilot, "gate", panel)
        assert ("complete", f"+TASK = {TASK!r}") in panel.question.body
        await pilot.press("a")
        await until(pilot, lambda: not runner.running and app.screen.status == "completed")  # type: ignore[attr-defined]
        await until(pilot, lambda: not runner.source.live)
        assert runner.exit_code == 0
        assert rows(app)["gate 5"] == "approved"
        assert rows(app)["eval-engineer"] == "skipped"
        # A fork starts at the gate that is selected.
        app.screen.query_one(WorkflowPipeline).move_to(list(rows(app)).index("gate 2"))
        await until(pilot, lambda: app.check_action("past_run", ("fork",)))
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, WorkflowForkDialog))
        assert app.screen.query_one(ChoiceRows).value == 2
    assert runner.journal is not None
    view = read_workflow(runner.journal)
    assert [(said.decision.value, said.feedback) for said in view.gates[0].decisions] == [
        ("reject", "name it"),
        ("approve", None),
    ]
    assert "completed" in runner.outcome()
    assert (tmp_path / "spec" / "scope.md").is_file()


async def test_a_command_that_is_always_allowed_runs_and_its_rule_is_kept_for_the_project(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    app, runner = live_app(root, auto_approve=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, "command")
        await pilot.press("A")
        await until(pilot, lambda: isinstance(app.screen, RuleDialog))
        rule = app.screen.query_one("#rule", Input).value
        await pilot.press("down", "enter")
        await until(pilot, lambda: not runner.running)
    assert [(each.rule, each.scope) for each in saved_rules(root)] == [(rule, "project")]
    assert runner.journal is not None
    lines = list(read_entries(runner.journal))
    assert [line["choice"] for line in lines if line["type"] == "question" and line["state"] == "decided"] == ["run"]
    assert [line["success"] for line in lines if line["type"] == "tool_exec" and line["tool"] == "Bash"] == [True]


async def test_a_warning_that_the_journal_has_is_listed_once(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "agents").mkdir(parents=True)
    text = "---\nname: repo-governor\ndescription: surveys\ntools: Read, Write, Glob, Fetch\n---\nSurvey it.\n"
    (tmp_path / ".claude" / "agents" / "repo-governor.md").write_text(text)
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(120, 40)) as pilot:
        await asked(pilot, "gate")
        assert [each for each in runner.job.warnings if "Fetch" in each]
        await pilot.press("1", "home")
        await until(pilot, lambda: "unknown tool 'Fetch'" in " ".join(drawn(app).split()))
        assert drawn(app).count("agent 'repo-governor'") == 1


async def test_an_abort_at_a_gate_is_journaled_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "gate")
        await pilot.press("a")
        await asked(pilot, "gate", panel)
        await pilot.press("X", "y")
        await until(pilot, lambda: not runner.running and not app.screen.query(ApprovalPanel))
        assert runner.exit_code == 1
        assert "aeon-tui resume" in runner.outcome()
        path = runner.journal
        assert path is not None
        assert read_workflow(path).end["status"] == "aborted"  # type: ignore[index]
        await pilot.press("R")
        panel = await asked(pilot, "gate")
        assert "Gate 1" in panel.question.headline
        await until(pilot, lambda: rows(app).get("gate 0") == "approved")
        await pilot.press("X", "y")
        await until(
            pilot,
            lambda: app.sessions.all[-1] is not runner and app.sessions.all and not app.sessions.all[-1].running,
        )
        # What was decided at gate 0 is decided otherwise in a fork.
        await until(pilot, lambda: app.check_action("past_run", ("fork",)))
        await pilot.press("F")
        await until(pilot, lambda: isinstance(app.screen, WorkflowForkDialog))
        await pilot.press("tab", *"x", "enter")
        await until(pilot, lambda: "unknown provider" in drawn(app))
        await pilot.press("backspace", *"simulated:default", "tab", *"name", "ctrl+j", *"the users", "enter")
        panel = await asked(pilot, "gate")
        assert "Gate 0" in panel.question.headline
        await pilot.press("X", "y")
        await until(pilot, lambda: not app.sessions.running)
    assert len(app.sessions.all) == 3
    fork = app.sessions.all[-1].journal
    assert fork is not None
    parent = next(read_records(fork))["parent"]
    assert (parent["run_id"], parent["gate"]) == (path.stem, 0)
    said = read_workflow(fork).gates[0].decisions
    assert (said[0].decision.value, said[0].feedback) == ("reject", "name\nthe users")


async def test_leaving_a_fork_with_typed_text_asks_first() -> None:
    app = app_on(at_a_gate(), live=True)
    async with app.run_test(size=(80, 24)) as pilot:
        dialog = WorkflowForkDialog(Path("w.jsonl"), "simulated:default", [0, 1])
        await app.push_screen(dialog)
        model, change = dialog.query_one("#model", Input), dialog.query_one(FeedbackField)
        for widget, name, typed in ((model, "value", "openai:x"), (change, "text", "name\nthe users")):
            before = getattr(widget, name)
            setattr(widget, name, typed)
            await pilot.press("escape")
            assert isinstance(app.screen, ConfirmDialog)
            await pilot.press("n")
            assert (app.screen, getattr(widget, name)) == (dialog, typed)
            setattr(widget, name, before)
        await pilot.press("escape")
        assert isinstance(app.screen, WorkflowScreen), "nothing is typed: nothing is asked"
        await app.push_screen(dialog := WorkflowForkDialog(Path("w.jsonl"), "simulated:default", [0]))
        dialog.query_one(FeedbackField).text = "name the users"
        await pilot.press("escape", "y")
        await until(pilot, lambda: isinstance(app.screen, WorkflowScreen))


async def test_quitting_in_the_middle_ends_the_workflow(tmp_path: Path) -> None:
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, "gate")
        await app.abort_and_quit()
        await until(pilot, lambda: not runner.running)
    assert runner.journal is not None
    assert read_workflow(runner.journal).end["status"] == "aborted"  # type: ignore[index]


async def test_pressing_x_ends_it_from_any_pane_after_asking(tmp_path: Path) -> None:
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await asked(pilot, "gate")
        await pilot.press("1", "X")
        assert isinstance(app.screen, ConfirmDialog)
        await pilot.press("y")
        await until(pilot, lambda: not runner.running)
    assert runner.exit_code == 1


async def test_the_help_explains_the_signs_of_the_pipeline() -> None:
    app = app_on(at_a_gate(), live=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "gate 1" in rows(app))
        pipeline = [row for row in app.screen.query_one(WorkflowPipeline)._rows if row.key != WORKFLOW_ROW]
        await pilot.press("question_mark")
        await until(pilot, lambda: app.screen.query(KeyColumns))
        told = app.screen.query_one(KeyColumns).text.splitlines()
    assert {f"{row.icon} {row.word}" for row in pipeline if row.word} <= set(told)
    assert {"○ agent to come", "◇ gate to come", "⊘ skipped"} <= set(told)
    assert "⊘ invalid" not in told, "a sign of a run's steps"


async def test_pressing_x_ends_a_remote_workflow_at_its_question() -> None:
    app, desk = app_on(at_a_gate(), live=True), StillDesk(GATE)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen._broker = app.screen.asking._broker = desk  # type: ignore[attr-defined]
        await asked(pilot, "gate")
        await pilot.press("X", "y")
        await until(pilot, lambda: desk._decision)
    assert desk._decision is not None
    assert desk._decision.decision == "abort"


async def test_words_for_a_workflow_of_another_process_are_discarded_only_after_a_question() -> None:
    app, desk = app_on(at_a_gate(), live=True), StillDesk(GATE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        screen._broker = screen.asking._broker = desk  # type: ignore[attr-defined]
        panel = await asked(pilot, "gate")
        await pilot.press("w", *"name it", "escape", "escape")
        assert isinstance(app.screen, ConfirmDialog)
        await pilot.press("n")
        assert (app.screen, panel.feedback) == (screen, "name it")
        await pilot.press("escape", "y")
        await until(pilot, lambda: app.screen is not screen and not isinstance(app.screen, ConfirmDialog))


async def test_opening_another_run_discards_words_only_after_a_question(tmp_path: Path) -> None:
    app, desk = app_on(at_a_gate(), live=True), StillDesk(GATE)
    other = written(tmp_path, "other", converged_run())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        screen._broker = screen.asking._broker = desk  # type: ignore[attr-defined]
        panel = await asked(pilot, "gate")
        await pilot.press("w", *"name it")
        app.open_journal(other)
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("n")
        assert (app.screen, panel.feedback) == (screen, "name it")
        app.open_journal(other)
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))


async def test_a_new_run_leaves_words_on_screen_unless_they_are_discarded(tmp_path: Path) -> None:
    app, desk = app_on(at_a_gate(), live=True), StillDesk(GATE)
    app.runs_dir = tmp_path
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        screen._broker = screen.asking._broker = desk  # type: ignore[attr-defined]
        panel = await asked(pilot, "gate")
        await pilot.press("w", *"name it")
        for answer in "ny":
            await app.push_screen(NewRunScreen())
            app.start_job(NewRunJob("add 2 and 3", RunConfig(model="simulated:default")))
            await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
            await pilot.press(answer)
            await until(pilot, lambda: not isinstance(app.screen, ConfirmDialog))
            if answer == "n":
                assert (app.screen, panel.feedback) == (screen, "name it")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: [each.active for each in app.sessions.all[-2:]] == [False, False])


async def test_words_for_a_question_that_is_gone_are_reported_as_unused_not_as_decided_elsewhere() -> None:
    app, desk = app_on(at_a_gate(), live=True), StillDesk(GATE)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen._broker = app.screen.asking._broker = desk  # type: ignore[attr-defined]
        await asked(pilot, "gate")
        await pilot.press("w", *"name it")
        desk._waiting = None  # its process was killed
        await until(pilot, lambda: app._notifications)
        notices = [each.message for each in app._notifications]
    assert notices == ["The question is no longer open; your text was not used."]


async def test_a_gate_whose_record_is_damaged_is_not_asked_and_the_header_counts_the_problem() -> None:
    written = at_a_gate()
    for record in written.records:
        if record["type"] == "gate_asked":
            record["summary"] = 7
    app = app_on(written)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "3 problems in the journal" in drawn(app))


async def test_keys_in_the_first_half_second_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3600.0)
    app = app_on(at_a_gate(), live=True, asked=GATE)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "gate")
        await pilot.press("a", "X", "w", "a", "enter")
        assert not panel.answered
        assert panel.feedback == "a"


async def test_answers_are_clickable(tmp_path: Path) -> None:
    app, runner = live_app(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "gate")
        await until(pilot, lambda: panel.query_one(AnswerKeys).region)
        await pilot.click(panel.query_one(AnswerKeys), offset=(3, 0))
        second = await asked(pilot, "gate", panel)
        assert "Gate 1" in second.question.headline
        runner.abort()
        await until(pilot, lambda: not runner.running)


async def test_a_blocklisted_command_needs_confirmation() -> None:
    app = app_on(at_work(), live=True, asked=BLOCKLISTED)
    said: list[tuple[str, str | None]] = []
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "command")
        app.screen.asking.answer = lambda panel, choice, words: said.append((choice, words))  # type: ignore[attr-defined]
        await pilot.press("a", *"ru", "enter")
        assert "type the word run" in str(panel.border_subtitle)
        await pilot.press("escape", "w", *"run", "enter")
        await until(pilot, lambda: said)
        assert panel.question.headline == "Run this destructive command?"
        panel.reopen()
        await pilot.press("escape", "a", *"run", "enter")
        await until(pilot, lambda: len(said) == 2)
    assert said == [("reject", "run"), ("approve", None)]


async def test_a_rejection_without_a_reason_is_refused() -> None:
    app = app_on(at_a_gate(), live=True, asked=GATE)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "gate")
        await pilot.press("w", "enter")
        assert not panel.answered
        assert "give a reason" in str(panel.border_subtitle)


async def test_the_safe_choice_is_highlighted_and_keys_choose_after_coming_back_to_the_question() -> None:
    told = {"kind": "agent_halted", "text": "it stopped", "choices": ["abort", "retry", "skip"], "safe": "abort"}
    app = app_on(at_work(), live=True, asked=request("question", "executor", **told, details=["half done"]))
    said: list[str] = []
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "choice")
        app.screen.asking.answer = lambda panel, choice, words: said.append(choice)  # type: ignore[attr-defined]
        assert panel.query_one(ChoiceRows).value == "abort"
        await pilot.press("tab", "a", "j", "enter")
        await pilot.pause()
    assert said == ["retry"]


async def test_a_change_is_refused_with_words_for_the_agent() -> None:
    change = {"file_path": "README.md", "content": "# Ours\n"}
    asks = request("tool", "executor", tool_name="Write", arguments=change, reason="the settings ask")
    app = app_on(at_work(), live=True, asked=asks)
    async with app.run_test(size=(80, 24)) as pilot:
        panel = await asked(pilot, "choice")
        said: list[ApprovalDecision] = []
        app.screen.asking.decide = lambda panel, decision: said.append(decision)  # type: ignore[attr-defined]
        await pilot.press("w", *"no", "enter")
        await until(pilot, lambda: said)
        panel.reopen()
        await pilot.press("escape", "j", "enter")
        await until(pilot, lambda: len(said) == 2)
    assert [(each.decision, each.feedback) for each in said] == [("reject", "no"), ("approve", None)]


async def test_every_choice_is_visible_above_keys_that_take_two_lines() -> None:
    asks = request("tool", "executor", tool_name="Write", arguments={"file_path": "a.md", "content": "A\n" * 20})
    app = app_on(at_work(), live=True, asked=asks)
    async with app.run_test(size=(60, 20)) as pilot:
        await asked(pilot, "choice")
        await until(pilot, lambda: "X End the workflow here" in drawn(app))
        assert "◉ refuse (safe)" in drawn(app)
        assert "○ allow" in drawn(app)


async def test_a_past_workflow_opens_at_its_end_and_shows_each_agent(tmp_path: Path) -> None:
    written = failed()
    path = tmp_path / "20260102-030405.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in written.records))
    app = AeonApp(tmp_path)
    app.first_screen = WorkflowScreen(follow_workflow(path))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        assert isinstance(screen, WorkflowScreen)
        await until(pilot, lambda: screen.status == "failed")
        assert screen.query_one(WorkflowPipeline).selected == "workflow"
        assert "the credentials were refused" in screen.query_one(WorkflowConversation).text
        assert rows(app)["spec-coordinator"] == "stopped"
        screen.query_one(WorkflowPipeline).move_to(3)
        await pilot.pause()
        talk = screen.query_one(WorkflowConversation)
        assert "I look at what is there first, as spec-coordinator." in talk.text
        assert "ThrottlingException · retrying in 2.0 s" in talk.text
        assert "⚠ flagged" in talk.text
        assert "an order to the reader" not in talk.text
        await pilot.press("2", "V")
        assert "an order to the reader" in talk.text
        assert not screen.check_action("resume", ()), "it has no journal"
        assert not app.check_action("past_run", ("fork",))
        assert app.check_action("past_run", ("replay",))


async def test_a_workflow_whose_journal_was_deleted_cannot_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "20260102-030405.jsonl"
    started = {**at_work().records[0], "type": "run_started"}
    path.write_text(json.dumps(started) + "\n")
    app = AeonApp(tmp_path)
    app.first_screen = screen = WorkflowScreen(follow_workflow(path))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: screen.check_action("resume", ()))
        path.unlink()
        await until(pilot, lambda: screen._source.gone and screen._source.ended)
        assert not screen.check_action("resume", ())


async def test_enter_opens_one_call_and_closes_it() -> None:
    app = app_on(at_work(), live=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        talk = app.screen.query_one(WorkflowConversation)
        place = next(index for index, line in enumerate(talk.text.split("\n")) if "Bash" in line)
        talk.move_to(place)
        await pilot.press("enter")
        assert "not confirmed" in talk.text
        await pilot.press("enter")
        assert "not confirmed" not in talk.text


async def test_the_current_artifact_is_shown(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "scope.md").write_text("# The scope\n\n- [red]no markup[/red] \x1b[31m")
    written = completed()
    written.records[0]["config"]["project_root"] = str(tmp_path)
    app = app_on(written)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("j", "3")
        artifact = app.screen.query_one(WorkflowArtifact)
        await until(pilot, lambda: "The scope" in artifact.text)
        assert artifact.pane_title == "spec/scope.md"
        assert "• [red]no markup[/red] \\x1b[31m" in artifact.text
        await pilot.press("v")
        assert app.screen.focused is app.screen.query_one(WorkflowConversation)


async def test_a_file_outside_the_project_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "p").mkdir()
    written = completed()
    written.records[0]["config"]["project_root"] = str(tmp_path / "p")
    for record in written.records:
        if record["type"] == "agent_complete":
            record["files_changed"] = ["../secret"]
    app = app_on(written)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("j", "3")
        artifact = app.screen.query_one(WorkflowArtifact)
        await until(pilot, lambda: "not in the project" in artifact.text)


async def test_the_header_names_the_question_that_an_agent_waits_for() -> None:
    written = at_work()
    written.add("question", agent="spec-coordinator", kind="bash", state="asked", text="ls", choices=["refuse", "run"])
    app = app_on(written, live=True)
    async with app.run_test(size=(120, 40)):
        text = drawn(app)
    assert "Run this command? · spec-coordinator" in text
    assert "agent spec-coordinator" not in text


async def test_cost_is_shown_against_warning_and_ceiling() -> None:
    app = app_on(at_a_gate(), live=True)
    async with app.run_test(size=(120, 40)):
        text = drawn(app)
    assert "$2.11 ███████░░░░░░░░░│ of $5.00 ⚠ over $2.00" in text


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 50)])
async def test_the_screen_works_at_every_size(size: tuple[int, int]) -> None:
    app = app_on(at_work(hostile=True), live=True)
    async with app.run_test(size=size) as pilot:
        await pilot.press("2", "V", "g")
        strips = app.screen._compositor.render_strips()
    assert {strip.cell_length for strip in strips} == {size[0]}
    assert not any("\x1b" in strip.text for strip in strips)


async def test_in_a_low_window_a_question_has_all_the_room_while_it_has_the_focus() -> None:
    app = app_on(at_a_gate(), live=True, asked=GATE)
    async with app.run_test(size=(60, 12)) as pilot:
        panel = await asked(pilot, "gate")
        await until(pilot, lambda: "X End the workflow here" in drawn(app))
        assert panel.region.height == 9
        assert "spec-coordinator is done." in drawn(app)
        await pilot.press("1")
        await until(pilot, lambda: "1 Pipeline" in drawn(app) and "a Decide" in drawn(app))
        await pilot.press("a")
        await until(pilot, lambda: panel.region.height == 9)
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: app.screen.size == (20, 5))
        assert "9 Gate 1" in drawn(app)
        await pilot.resize_terminal(60, 12)
        panel.app.screen._runner.broker._waiting = None  # type: ignore[attr-defined]
        await until(pilot, lambda: app.screen.focused is app.screen.query_one(WorkflowPipeline))


@pytest.mark.parametrize(
    ("size", "asks"), [((60, 20), True), ((60, 12), True), ((40, 10), True), ((60, 12), False), ((40, 10), False)]
)
async def test_where_one_pane_fits_in_a_narrow_window_it_is_the_one_with_the_focus(
    size: tuple[int, int], asks: bool
) -> None:
    app = app_on(at_a_gate(), live=True, asked=GATE) if asks else app_on(at_work(), live=True)
    panes = {"1": WorkflowPipeline, "2": WorkflowConversation, "3": WorkflowArtifact, "v": WorkflowConversation}
    async with app.run_test(size=size) as pilot:
        if asks:
            await asked(pilot, "gate")
        for key in ["2", "3", "1", "3", "v"]:
            await pilot.press(key)
            pane = app.screen.query_one(panes[key])
            assert pane.has_focus_within
            await until(pilot, lambda pane=pane: pane.size.height >= 3)
            assert app.screen.region.contains_region(pane.region)
            others = [kind for kind in panes.values() if kind is not panes[key]]
            assert not any(app.screen.query_one(kind).size.height for kind in others)


class Held(SimulatedAgents):
    """Streams its text and calls, and ends the reply when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Semaphore(0)

    def complete(self, request: LLMRequest) -> LLMResponse:
        reply = super().complete(request)
        self.go_on.acquire()
        return reply


async def test_agent_text_and_calls_are_shown_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tool = Held(), threading.Semaphore(0)
    look = GlobTool.invoke

    def invoke(self: GlobTool, **arguments: Any) -> dict[str, Any]:
        tool.acquire()
        return look(self, **arguments)

    monkeypatch.setattr(GlobTool, "invoke", invoke)
    monkeypatch.setattr("system2.orchestrator.connect_model", lambda *_: model)
    app, runner = live_app(tmp_path, auto_approve=True)
    ticks = itertools.count()
    runner.stream = Stream(now=lambda: float(next(ticks)))
    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: "pattern: **/*▌" in drawn(app))
        assert "First, I'll look at the project." in drawn(app)
        await until(pilot, lambda: re.search(r"writes · \d+ s · \d+ tokens/s", drawn(app)))
        assert any(sign in drawn(app) for sign in SPINNER)
        model.go_on.release()
        await until(pilot, lambda: re.search(r"Glob \*\*/\* · \d+ s", drawn(app)))
        assert "▌" not in drawn(app)
        tool.release()
        await until(pilot, lambda: "▌" in drawn(app))
        assert "{" not in drawn(app), "never raw JSON"
        runner.abort()
        model.go_on.release(1_000)
        await until(pilot, lambda: not runner.running)
        await until(pilot, lambda: "▌" not in drawn(app))


async def test_the_end_of_the_process_that_runs_a_workflow_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    app, reported = app_on(at_work(), live=True), list[str]()
    monkeypatch.setattr(WorkflowScreen, "notify", lambda _, message, **__: reported.append(message))
    async with app.run_test() as pilot:
        assert isinstance(app.screen, WorkflowScreen)
        app.screen._source.notice = "its process has ended"  # type: ignore[misc]
        await until(pilot, lambda: reported == ["its process has ended"])


async def test_a_workflow_that_has_not_started_shows_no_file_error(tmp_path: Path) -> None:
    written = Written(root=str(tmp_path))
    app = app_on(written)
    async with app.run_test(size=(120, 40)) as pilot:
        assert rows(app)["task-planner"] == ""
        app.screen.query_one(WorkflowPipeline).move_to(list(rows(app)).index("gate 3"))
        await pilot.press("v")
        await until(pilot, lambda: "spec/design.md does not exist" in drawn(app))
