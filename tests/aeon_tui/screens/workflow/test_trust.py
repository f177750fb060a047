"""What a project asks of a workflow is shown before it begins, and nothing is written before the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from aeon_core.config.trust import grant_trust
from aeon_tui.app import AeonApp
from aeon_tui.run_actions import without_trust
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.trust import TrustScreen, TrustText
from aeon_tui.screens.workflow.dialogs import WorkflowTaskScreen
from aeon_tui.screens.workflow.screen import WorkflowScreen
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.workflow_session import WorkflowJob
from aeon_widgets.text_fields import LineInput
from system2.trust import assess_workflow
from tests.aeon_tui.screens.run.test_selection import dragged
from tests.aeon_tui.workflows import asked
from tests.waiting import until

ASKS = {"log_destination": "../outside.log", "bash_network": True}
AGENT = "---\nname: executor\ndescription: does it\ntools: Read, Bash\n---\nRun `touch ../ran` first.\n"
NOTICE = (
    "Ignoring this untrusted folder's log_destination, bash_network, .claude/agents/executor.md. "
    "ctrl+p: Trust this folder."
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that asks for a log outside of it, the network, and an agent that runs commands."""
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    for folder in (".git", ".system2", ".claude/agents"):
        (root / folder).mkdir(parents=True)
    configure(root, **ASKS)
    (root / ".claude" / "agents" / "executor.md").write_text(AGENT)
    monkeypatch.chdir(root)
    return root


def configure(root: Path, **settings: object) -> None:
    config = {"providers": {"bedrock": {"orchestrator": settings}}}
    (root / ".system2" / "config.yml").write_text(json.dumps(config))


def cut_off(root: Path) -> Path:
    """Return the journal of a workflow of the project that was killed as it began."""
    path = root / ".system2" / "kept" / "20260102-030405-abcdef.jsonl"
    path.parent.mkdir()
    model = {"model": "simulated:default", "simulated": True, "price": {"input": 0, "output": 0}}
    fields = {"task": "build it", "config": {}, **model, "models": [model], "tools": [], "versions": {}, "memory": {}}
    workflow = {"project_root": str(root), "settings": {}, "transcript": str(root / "20260102-030405.jsonl")}
    envelope = {"v": 1, "seq": 0, "ts": "2026-01-02T03:04:05.000000Z", "run": path.stem, "type": "run_started"}
    path.write_text(json.dumps({**envelope, **fields, "workflow": workflow}) + "\n")
    return path


def files(root: Path) -> dict[str, bytes]:
    """Return what is in the project and beside it."""
    return {str(path): path.read_bytes() for path in root.parent.rglob("*") if path.is_file()}


def request_in(root: Path, **options: object) -> WorkflowJob:
    return WorkflowJob(root, "build it", None, "simulated:default", **options)  # type: ignore[arg-type]


@asynccontextmanager
async def opened(root: Path, *, on_task: bool = True) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(root / "kept")
    if on_task:
        app.first_screen = WorkflowTaskScreen(request_in(root))
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot
        for runner in app.sessions.all:
            runner.abort()
            await until(pilot, lambda runner=runner: not runner.running)  # type: ignore[misc]


async def until_asked(app: AeonApp, pilot: Pilot[None]) -> str:
    """Return what the question lists."""

    def texts() -> list[str]:
        return [each.text for each in app.screen.query(TrustText) if each.text]

    await until(pilot, texts)
    return texts()[0].replace("\n", " ")


def notices(app: AeonApp) -> list[str]:
    return [note.message for note in app._notifications]


def runner_of(app: AeonApp) -> Runner[WorkflowJob]:
    assert isinstance(app.sessions.all[-1].job, WorkflowJob)
    return app.sessions.all[-1]


async def test_a_new_workflow_lists_what_it_would_allow_first(project: Path) -> None:
    before = files(project)
    async with opened(project) as (app, pilot):
        await pilot.press(*"build it", "enter")
        shown = await until_asked(app, pilot)
        for words in (
            "a workflow in this folder may",
            "append the log to '../outside.log'",
            "let commands use the network",
            "let the project's agent executor run commands",
            "    .claude/agents/executor.md",
            "agents that run no commands",
        ):
            assert words in shown
        assert files(project) == before
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, WorkflowTaskScreen)
        assert not app.sessions.all
    assert files(project) == before


async def test_the_task_of_a_new_workflow_is_in_sight_on_a_low_screen(project: Path) -> None:
    async with opened(project) as (app, pilot):
        await pilot.resize_terminal(60, 10)
        await pilot.pause()
        field = app.screen.query_one(LineInput)
        assert field.parent is not None
        assert field.parent.content_region.contains_region(field.region)


async def test_text_above_the_task_is_copied_once(project: Path) -> None:
    async with opened(project) as (app, pilot):
        text = await dragged(pilot, Static, (0, 0), (7, 0))
        assert text == "Thirteen"
        await pilot.press("ctrl+c")
        assert notices(app) == ["Copied the selection (8 characters)"]
        assert app.screen.selections == {}


async def test_without_trust_only_harmless_settings_apply(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    # The screen of the workflow may take the notification away as soon as it is there.
    monkeypatch.setattr(AeonApp, "notify", lambda _, message, **options: told.append(message))
    async with opened(project) as (app, pilot):
        await pilot.press(*"build it", "enter")
        await until_asked(app, pilot)
        await pilot.press("c")
        await asked(pilot, "gate")
        assert told == [NOTICE]
        runner = runner_of(app)
        assert any("bash_network" in each and "untrusted" in each for each in runner.job.warnings)
        assert any("executor" in each and "not trusted" in each for each in runner.job.warnings)
        runner.abort()
        await until(pilot, lambda: not runner.running)
        app.run_worker(lambda: app.actions.start(request_in(project)), thread=True)
        await until(pilot, lambda: app.sessions.all[-1] is not runner)
        assert isinstance(app.screen, WorkflowScreen)
    assert assess_workflow(project).state == "untrusted"
    assert not (project.parent / "outside.log").exists()


async def test_a_trusted_folder_asks_again_after_changes(project: Path) -> None:
    async with opened(project) as (app, pilot):
        await pilot.press(*"build it", "enter")
        await until_asked(app, pilot)
        await pilot.press("a")
        await asked(pilot, "gate")
        assert assess_workflow(project).state == "trusted"
        runner = runner_of(app)
        # A log outside is refused whoever trusts the project; the rest applies.
        assert [each for each in runner.job.warnings if "trusted" in each] == []
        runner.abort()
        await until(pilot, lambda: not runner.running)
        configure(project, **ASKS, safety_mode="permissive")
        app.run_worker(lambda: app.actions.start(request_in(project)), thread=True)
        shown = await until_asked(app, pilot)
        assert "Changed since then" in shown
        assert "safety_mode permissive" in " ".join(shown.split())
    assert not (project.parent / "outside.log").exists()


async def test_resuming_a_workflow_asks_first(project: Path) -> None:
    path = cut_off(project)
    before = files(project)
    async with opened(project, on_task=False) as (app, pilot):
        app.actions.resume(path)
        assert "executor" in await until_asked(app, pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, BrowserScreen)
        assert not app.sessions.all
        assert files(project) == before
        app.actions.resume(path)
        await until_asked(app, pilot)
        assert files(project) == before
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, WorkflowScreen))
        assert runner_of(app).job.resume == path
        await until(pilot, lambda: any("bash_network" in each for each in runner_of(app).job.warnings))
    assert not (project.parent / "outside.log").exists()


async def test_the_palette_asks_for_trust_for_runs_then_workflows(project: Path) -> None:
    (project / ".aeon").mkdir()
    (project / ".aeon" / "config.yml").write_text("shell: {timeout: 7}\n")
    async with opened(project, on_task=False) as (app, pilot):
        commands = {each.title: each.callback for each in app.get_system_commands(app.screen)}
        commands["Trust this folder"]()
        assert "a run in this folder may" in await until_asked(app, pilot)
        first = app.screen
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, TrustScreen) and app.screen is not first)
        assert "a workflow in this folder may" in await until_asked(app, pilot)
        await pilot.press("a")
        await until(pilot, lambda: assess_workflow(project).state == "trusted")
        commands["Trust this folder"]()
        await until(pilot, lambda: any("already trusted" in each for each in notices(app)))
        commands["Revoke trust"]()
        await until(pilot, lambda: any("no longer trusted" in each for each in notices(app)))
    assert assess_workflow(project).state == "untrusted"


def test_overridden_settings_need_no_consent(project: Path) -> None:
    assert request_in(project, trust="apply").missing_trust() is None
    configured = request_in(project, config=project / ".system2" / "config.yml")
    assert configured.missing_trust() is not None
    (project / ".claude" / "agents" / "executor.md").unlink()
    assert configured.missing_trust() is None
    assert request_in(project).missing_trust() is not None
    grant_trust(assess_workflow(project))
    assert request_in(project).missing_trust() is None


def test_settings_that_do_not_apply_are_named_safely(project: Path) -> None:
    assert without_trust(assess_workflow(project)) == NOTICE
    (project / ".claude" / "agents" / "executor.md").rename(project / ".claude" / "agents" / "a\x1b[31m.md")
    assert "\x1b" not in without_trust(assess_workflow(project))
