"""What a folder's files ask to do is shown before they may, and nothing is allowed by accident."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key, Paste
from textual.pilot import Pilot
from textual.widgets import Button

from aeon_core.config.loading import LoadedConfig, assess_project, load_config
from aeon_core.config.trust import ProjectTrust, TrustItem, grant_trust
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.settings import SettingsScreen, settings_of
from aeon_tui.screens.trust import TrustGate, TrustScreen, TrustText
from aeon_tui.sessions.run_jobs import NewRunForm
from aeon_widgets.keys import KeyGuard
from tests.sampling import sample
from tests.waiting import until

SIZES = [(60, 20), (80, 24), (140, 45)]
ROOT = Path("/home/ann/invoices")
ASKED = ProjectTrust(
    ROOT,
    (
        TrustItem("tools", "run the project's tools/stock.py for the tools tools.stock", (ROOT / "tools/stock.py",)),
        TrustItem("base_url", "send every request to a model, with your key, to http://10.0.0.7/v1"),
        TrustItem("mcp_servers.docs", "start the program `python3 server.py`", (ROOT / "server.py",)),
        TrustItem("policy.allow", "allow calls without asking: Bash(git *), Write(**)"),
    ),
    "d1",
    "untrusted",
)
CHANGED = ProjectTrust(
    ROOT,
    ASKED.items,
    "d2",
    "changed",
    ("--- trusted/server.py", "+++ now/server.py", "@@ -1 +1 @@", "-serve()", "+serve('0.0.0.0')"),
)


def opened_on(trust: ProjectTrust, guard: KeyGuard | None = None) -> AeonApp:
    app = AeonApp(Path("runs"))
    app.first_screen = TrustGate(trust, guard)
    return app


def drawn(app: AeonApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


class Person:
    """Types into the question, at times of its own."""

    def __init__(self, trust: ProjectTrust) -> None:
        self.now = 50.0
        self.app = opened_on(trust, KeyGuard(lambda: self.now))
        self.pilot: Pilot[None]

    async def type(self, *keys: str, every: float = 0.1) -> None:
        for key in keys:
            self.now += every
            event = Key(key, key if len(key) == 1 else None)
            event.time = self.now
            self.app.post_message(event)
            await self.pilot.pause()

    @property
    def answer(self) -> str | None:
        gate = self.app.first_screen
        assert isinstance(gate, TrustGate)
        return gate.answer


@asynccontextmanager
async def asked(trust: ProjectTrust = ASKED, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Person]:
    person = Person(trust)
    async with person.app.run_test(size=size) as pilot:
        person.pilot = pilot
        await pilot.pause()
        await pilot.pause()
        assert isinstance(pilot.app.screen, TrustScreen)
        yield person


@pytest.mark.parametrize("size", sample(SIZES, 1))
async def test_the_dialog_lists_what_would_be_allowed_and_its_answers(size: tuple[int, int]) -> None:
    async with asked(size=size) as person:
        shown = drawn(person.app)
        for answer in ("[ Continue without it ]", "[ Trust it ]", "[ Quit ]", "c continue · a trust · esc quit"):
            assert answer in shown
        assert "Trust this folder?" in shown
        await person.type("home")
        text = person.app.screen.query_one(TrustText).text
        assert str(ROOT) in text
        for item in ASKED.items:
            assert item.text.split(" for the ")[0] in " ".join(text.split())
        assert "    tools/stock.py" in text
        assert "only its harmless settings apply: limits, colours, and rules that" in " ".join(text.split())
        assert person.app.screen.focused is person.app.screen.query_one("#continue")


@pytest.mark.parametrize("size", sample(SIZES, 1))
async def test_a_long_list_scrolls_whichever_answer_has_the_focus(size: tuple[int, int]) -> None:
    items = tuple(TrustItem(f"mcp_servers.s{number}", f"start the program `s{number}`") for number in range(200))
    async with asked(ProjectTrust(ROOT, items, "d", "untrusted"), size) as person:
        text, box = person.app.screen.query_one(TrustText), person.app.screen.query_one("Vertical")
        assert "more lines" in str(box.border_subtitle)
        for key, moved in (("j", 1), ("down", 2), ("k", 1)):
            await person.type(key, every=0.01)
            assert text.scroll_offset.y == moved
        await person.type("tab", "pagedown", every=0.01)
        assert text.scroll_offset.y > 5
        await person.type("G", every=0.01)
        assert text.scroll_offset.y == text.max_scroll_y
        assert box.border_subtitle == "c continue · a trust · esc quit"
        assert "Trust it only if" in drawn(person.app)
        assert "[ Trust it ]" in drawn(person.app)


async def test_file_contents_are_neither_markup_nor_control_characters() -> None:
    item = TrustItem("x", "run [bold red]x[/] \x1b[31mred\x1b[0m\nTrusted already.", (ROOT / "a[b]\x1b[2J.py",))
    trust = ProjectTrust(Path("/tmp/[blue]\x07"), (item,), "d", "changed", ("+[link=http://x]\x1b]0;t\x07",))
    async with asked(trust, (140, 45)) as person:
        shown = drawn(person.app)
        assert "run [bold red]x[/] \\x1b[31mred\\x1b[0m\\nTrusted already." in shown
        assert "a[b]\\x1b[2J.py" in shown
        assert "/tmp/[blue]\\x07" in shown
        assert "+[link=http://x]\\x1b]0;t\\x07" in shown


async def test_keys_in_the_first_half_second_allow_nothing() -> None:
    async with asked() as person:
        await person.type("a", "enter", "c", "y", "space", every=0.4)
        assert person.answer is None
        assert isinstance(person.app.screen, TrustScreen)
        assert "'space' was too soon" in drawn(person.app)
        await person.type("a", every=0.6)
        assert person.answer == "trust"


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["a"], "trust"),
        (["c"], "continue"),
        (["enter"], "continue"),
        (["right", "enter"], "trust"),
        (["escape"], None),
        (["q"], None),
        (["tab", "tab", "enter"], None),
    ],
    ids=lambda each: "-".join(each) if isinstance(each, list) else str(each),
)
async def test_each_answer_has_its_key_and_enter_allows_nothing(keys: list[str], answer: str | None) -> None:
    async with asked() as person:
        person.now += 2
        await person.type(*keys)
        assert person.answer == answer
        assert person.app._exit


async def test_a_paste_answers_nothing() -> None:
    async with asked() as person:
        person.now += 2
        event = Paste("t\nc\n")
        event.time = person.now
        person.app.post_message(event)
        await person.type("a", "enter", every=0.05)
        assert person.answer is None
        assert isinstance(person.app.screen, TrustScreen)


async def test_answers_are_clickable_once_they_could_be_read() -> None:
    async with asked() as person:
        person.app.screen.query_one("#trust", Button).active_effect_duration = 0
        await person.pilot.click("#trust")
        assert person.answer is None
        assert "too soon" in drawn(person.app)
        person.now += 2
        await person.pilot.click("#trust")
        await person.pilot.pause()
        assert person.answer == "trust"


async def test_changed_items_are_shown_first() -> None:
    async with asked(CHANGED) as person:
        shown = drawn(person.app)
        assert "This folder has changed since you trusted it" in shown
        assert shown.index("+serve('0.0.0.0')") < shown.index("run the project's tools/stock.py")


# In the app.

SETTINGS = "model: simulated:default\nttl: 20\ntools: [files]\nshell: {timeout: 7}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose configuration asks for more than is harmless; keys count at once."""
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)
    root = tmp_path / "project"
    (root / ".aeon").mkdir(parents=True)
    (root / ".aeon" / "config.yml").write_text(SETTINGS)
    return root


def today(root: Path) -> LoadedConfig:
    return load_config({"project_root": str(root)})


@asynccontextmanager
async def app_in(root: Path, *, asks: bool = True) -> AsyncIterator[tuple[AeonApp, Pilot[None]]]:
    app = AeonApp(root / ".aeon" / "runs", today=partial(today, root))
    app.untrusted = today(root).trust if asks else None
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


def notices(app: AeonApp) -> list[str]:
    return [note.message for note in app._notifications]


async def test_the_app_asks_once_and_remembers_that_the_folder_is_trusted(project: Path) -> None:
    async with app_in(project) as (app, pilot):
        assert isinstance(app.screen, TrustScreen)
        await pilot.press("a")
        await until(pilot, lambda: assess_project(project).state == "trusted")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        assert today(project).config.shell.timeout == 7
        assert app.actions._missing_trust() is None


async def test_declining_trust_notifies_once_and_is_not_asked_again(project: Path) -> None:
    async with app_in(project) as (app, pilot):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))
        told = "Ignoring this untrusted folder's tools, shell. ctrl+p: Trust this folder."
        await until(pilot, lambda: notices(app) == [told], lambda: str(notices(app)))
        draft = NewRunForm("add 1 and 2", "simulated:default", "20")
        app.run_worker(lambda: app.actions.start(draft), thread=True)
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: app.sessions.all and app.sessions.all[-1].result is not None)
        assert app.sessions.all
        assert app.sessions.all[-1].exit_code in (0, 5)
    assert assess_project(project).state == "untrusted"
    assert today(project).config.ttl == 20
    assert today(project).config.tools == []


async def test_leaving_the_first_question_leaves_the_app(project: Path) -> None:
    async with app_in(project) as (app, pilot):
        await pilot.press("escape")
        await until(pilot, lambda: app._exit)
    assert assess_project(project).state == "untrusted"


async def test_a_new_run_asks_again_if_the_folder_has_changed(project: Path) -> None:
    grant_trust(assess_project(project))
    async with app_in(project, asks=False) as (app, pilot):
        (project / ".aeon" / "config.yml").write_text(SETTINGS.replace("timeout: 7", "timeout: 77"))
        draft = NewRunForm("add 1 and 2", "simulated:default", "20")
        app.run_worker(lambda: app.actions.start(draft), thread=True)
        await until(pilot, lambda: isinstance(app.screen, TrustScreen))
        await until(pilot, lambda: "77" in drawn(app))
        assert not app.sessions.all
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await until(pilot, lambda: app.sessions.all and app.sessions.all[-1].result is not None)
    assert assess_project(project).state == "trusted"


async def test_back_from_the_question_starts_nothing(project: Path) -> None:
    async with app_in(project, asks=False) as (app, pilot):
        app.run_worker(lambda: app.actions.start(NewRunForm("add", "simulated:default", "20")), thread=True)
        await until(pilot, lambda: isinstance(app.screen, TrustScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, BrowserScreen)
        assert not app.sessions.all


async def test_the_settings_show_and_revoke_trust(project: Path) -> None:
    grant_trust(assess_project(project))
    async with app_in(project, asks=False) as (app, pilot):
        await app.push_screen(SettingsScreen())
        await until(pilot, lambda: getattr(app.screen, "_loaded", None) is not None)
        await pilot.press("T", "y")
        await until(pilot, lambda: assess_project(project).state == "untrusted")
        screen = app.screen
        assert isinstance(screen, SettingsScreen)
        await until(pilot, lambda: screen._loaded is not None and screen._loaded.trust.state == "untrusted")
        await pilot.press("T")
        await until(pilot, lambda: isinstance(app.screen, TrustScreen))
        await pilot.press("a")
        await until(pilot, lambda: assess_project(project).state == "trusted")
        await until(pilot, lambda: screen._loaded is not None and screen._loaded.trust.state == "trusted")


async def test_the_palette_grants_and_revokes_trust(project: Path) -> None:
    async with app_in(project, asks=False) as (app, pilot):
        commands = {each.title: each.callback for each in app.get_system_commands(app.screen)}
        commands["Trust this folder"]()
        await until(pilot, lambda: isinstance(app.screen, TrustScreen))
        await pilot.press("a")
        await until(pilot, lambda: assess_project(project).state == "trusted")
        commands["Trust this folder"]()
        await until(pilot, lambda: any("already trusted" in each for each in notices(app)))
        commands["Revoke trust"]()
        await until(pilot, lambda: any("no longer trusted" in each for each in notices(app)))
    assert assess_project(project).state == "untrusted"


def test_the_settings_list_what_does_not_apply(project: Path) -> None:
    def trust(loaded: LoadedConfig) -> str:
        return next(each.value for each in settings_of(loaded) if each.key == "trust")

    assert trust(today(project)) == "not trusted; ignored: tools, shell"
    grant_trust(assess_project(project))
    assert trust(today(project)) == "trusted"
    (project / ".aeon" / "config.yml").write_text(SETTINGS.replace("7", "8"))
    assert trust(today(project)) == "changed since it was trusted; ignored: tools, shell"
    (project / ".aeon" / "config.yml").write_text("ttl: 20\n")
    assert trust(today(project)) == "nothing to trust"


# As pictures.


@pytest.mark.parametrize("size", sample([pytest.param(size, id="x".join(map(str, size))) for size in SIZES], 1))
@pytest.mark.parametrize("trust", [pytest.param(ASKED, id="untrusted"), pytest.param(CHANGED, id="changed")])
def test_question_snapshots(snap_compare: Any, trust: ProjectTrust, size: tuple[int, int]) -> None:
    async def settle(pilot: Pilot[None]) -> None:
        await pilot.pause()
        for button in pilot.app.screen.query(Button):
            button.active_effect_duration = 0
        await pilot.pause()

    assert snap_compare(opened_on(trust), terminal_size=size, run_before=settle)
