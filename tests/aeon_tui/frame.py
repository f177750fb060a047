"""The app's own screens with what they would read given to them: the same on every machine."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, Static, TextArea

from aeon_core.config.keys import AppSettings
from aeon_core.config.loading import LoadedConfig
from aeon_core.config.schema import RunConfig
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.keys import KeyRow, KeySettingsScreen
from aeon_tui.screens.new_run import ModelChoice, ModelList, NewRunScreen
from aeon_tui.screens.onboarding import Onboarding, models_text
from aeon_tui.screens.settings import SettingsList, SettingsScreen
from aeon_tui.sessions.run_jobs import NewRunForm
from tests.waiting import until

FILE = "/home/ann/.config/aeon/config.yml"
CHOICES = [
    ModelChoice("anthropic:claude-sonnet-4-5", "configured"),
    ModelChoice("openai:", "no key", "set OPENAI_API_KEY, or --base-url for a local server"),
    ModelChoice("bedrock:", "not usable", "no AWS region for Amazon Bedrock: set AWS_REGION, such as us-east-1"),
    ModelChoice("simulated:default", "no key, no network: answers every request correctly"),
]
TODAY = LoadedConfig(
    RunConfig(
        model="anthropic:claude-sonnet-4-5",
        ttl=30,
        tools=["files", "own.tools:TOOLS"],
        project_root=Path("/home/ann/invoices"),
        base_url="http://localhost:8080/v1",
        budget=1.5,
    ),
    {
        "model": "the environment variable AEON_MODEL",
        "ttl": f"the file {FILE!r}",
        "tools": "the file '/home/ann/invoices/.aeon/config.yml'",
        "base_url": f"the file {FILE!r}",
        "budget": "the option --budget",
    },
    files=[Path(FILE)],
    app=AppSettings("aeon-light", {"run.zoom": "Z"}, {"theme": f"the file {FILE!r}", "keys": f"the file {FILE!r}"}),
)
DRAFT = NewRunForm(
    task="Design a REST API for invoices.\nA good one has an OpenAPI file.",
    model="antropic:claude",
    ttl="3o",
    budget="1.50",
    approve=("plan", "tool"),
    tools=("files",),
)
ROWS = [
    KeyRow("app.quit", "Everywhere", "Quit", ("q",), False),
    KeyRow("app.palette", "Everywhere", "Command palette", ("ctrl+p",), False),
    KeyRow("run.zoom", "Run", "Zoom", ("Z", "f9"), True),
    KeyRow("run.search", "Run", "Search in the run", ("slash",), False),
    KeyRow("replay.faster", "Replay", "Faster", ("plus", "equals_sign", "greater_than_sign"), False),
]


def frame_app(screen: str) -> AeonApp:
    """Return an app that opens on a screen of its frame; `fill` gives that what it shows."""
    app = AeonApp(Path("runs"), today=lambda: TODAY)
    made = {
        "settings": SettingsScreen,
        "keys": KeySettingsScreen,
        "first": lambda: BrowserScreen(Path("runs"), lambda _: []),
    }
    drafts = {"new": None, "new-problems": DRAFT}
    app.first_screen = NewRunScreen(drafts[screen]) if screen in drafts else made[screen]()
    return app


async def fill(pilot: Pilot[None]) -> None:
    """Wait for what the screen reads, and put in its place what every machine has."""
    screen = pilot.app.screen
    await pilot.pause()
    for first in screen.query(Onboarding):
        shown = first.query_one("#models", Static)
        await until(pilot, lambda shown=shown: str(shown.render()))
        first.show_models(models_text(CHOICES, ","))
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    for models in screen.query(ModelList):
        models.update_rows(CHOICES)
    if isinstance(screen, KeySettingsScreen):
        screen._apply(ROWS)
    for settings in screen.query(SettingsList):
        settings.move_to(2)
    for field in screen.query(Input):
        field.cursor_blink = False
    for area in screen.query(TextArea):
        area.cursor_blink = False
    await pilot.pause()
