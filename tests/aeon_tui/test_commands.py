"""The command palette: what it offers, that each line says what it does, and that foreign text is only text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.command import CommandList, CommandPalette
from textual.content import Content
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets._toast import Toast

from aeon_core.journal.listing import RunListing
from aeon_tui.app import AeonApp
from aeon_tui.commands import PaletteProvider, key_commands
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.keys import KeySettingsScreen, key_groups
from aeon_tui.screens.new_run import NewRunScreen
from aeon_tui.screens.onboarding import Onboarding
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.screens.settings import SettingsScreen
from aeon_tui.screens.workflow.dialogs import WorkflowTaskScreen
from aeon_widgets.plan_tree import PlanTree
from tests.aeon_core.journal.build import finished, started, ttl, write
from tests.aeon_tui.fakes import ListSource
from tests.aeon_tui.recordings import finished_run
from tests.waiting import until


def shown_run() -> AeonApp:
    app = AeonApp(Path("runs"))
    app.first_screen = RunScreen(ListSource(finished_run().records))
    return app


async def chosen(pilot: Pilot[None], words: str) -> None:
    """Open the palette, look for something, and take the first that is found."""
    app = pilot.app
    await pilot.press("ctrl+p")
    await until(pilot, lambda: app.screen.query(CommandList))
    await pilot.press(*words)
    listed = app.screen.query_one(CommandList)
    await until(
        pilot, lambda: listed.option_count and words[:3].lower() in str(listed.get_option_at_index(0).prompt).lower()
    )
    await app.workers.wait_for_complete()
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(app.screen, CommandPalette))


@pytest.mark.parametrize(
    ("make", "pane"), [(shown_run, PlanTree), (lambda: AeonApp(Path("runs")), Onboarding)], ids=["run", "runs"]
)
async def test_every_key_that_does_something_is_a_line_with_help(
    make: Callable[[], AeonApp], pane: type[Widget]
) -> None:
    app = make()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: isinstance(app.screen.focused, pane))
        commands = {command.name: command for command in PaletteProvider(app.screen).commands()}
        wanted = [
            each.binding.description
            for each in app.screen.active_bindings.values()
            if each.binding.id and each.enabled and each.binding.action != "command_palette"
        ]
        assert len(wanted) >= 10
        names = " ".join(commands)
        assert [description for description in wanted if description not in names] == []
        assert [name for name, command in commands.items() if not command.help.strip()] == []
        assert commands["Settings"].help == "Press ,"
        help_text = " ".join(row.label for _, rows in key_groups(app.screen.active_bindings) for row in rows)
        assert [description for description in wanted if description not in help_text] == []


async def test_a_notice_does_not_cover_the_palette_and_is_there_when_it_closes() -> None:
    app = AeonApp(Path("runs"))
    app.first_notice = "Ignoring this untrusted folder's policy. ctrl+p: Trust this folder."
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.screen.query(Toast))
        browser = app.screen
        await pilot.press("ctrl+p")
        await until(pilot, lambda: app.screen.query(CommandList) and app.screen.query(Toast))
        assert not app.screen.query_one(Toast).display
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is browser and browser.query_one(Toast).region.height > 0)


async def test_unavailable_actions_are_not_offered() -> None:
    app = AeonApp(Path("runs"))
    async with app.run_test() as pilot:
        await pilot.pause()
        names = [command.name for command in key_commands(app, app.screen)]
        assert "New run" in names
        assert not {"Resume", "Fork"} & set(names)


async def test_the_open_palette_offers_the_selected_runs_actions(tmp_path: Path) -> None:
    write(tmp_path, started(), finished(answer="15"), run="20261120-080000-aaaaaa")
    app = AeonApp(tmp_path)
    async with app.run_test() as pilot:
        screen = app.screen
        assert isinstance(screen, BrowserScreen)
        await until(pilot, lambda: screen.chosen_run)
        await pilot.press("ctrl+p")
        await pilot.pause()
        names = [command.name for command in PaletteProvider(screen).commands()]
        assert {"Replay", "Fork"} <= set(names)
        assert "Resume" not in names
        assert names.count("Compare") == 1


async def test_a_shown_run_with_a_journal_is_compared_by_key(tmp_path: Path) -> None:
    journal = write(tmp_path, started(), finished(answer="15"), run="20261120-080000-aaaaaa")
    app = AeonApp(tmp_path)
    async with app.run_test() as pilot:
        app.open_journal(journal)
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert [command.name for command in PaletteProvider(app.screen).commands()].count("Compare") == 1
        await pilot.press("C")
        await until(pilot, lambda: any("no other run to compare with" in each.message for each in app._notifications))
        assert isinstance(app.screen, RunScreen)
        write(tmp_path, started(), finished(answer="15"), run="20261120-090000-bbbbbb")
        await pilot.press("C")
        await until(pilot, lambda: isinstance(app.screen, CommandPalette))
    app = shown_run()
    async with app.run_test() as pilot:
        await pilot.press("C")
        await pilot.pause()
        assert isinstance(app.screen, RunScreen), "nothing is to be compared"


async def test_the_palette_of_a_screen_does_not_offer_to_open_that_screen(tmp_path: Path) -> None:
    app = AeonApp(tmp_path)
    opened = {"settings": SettingsScreen, "edit_keys": KeySettingsScreen, "new_run": NewRunScreen}
    titles = {screen.HELP_TITLE for screen in opened.values()}
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for action, screen in opened.items():
            await app.run_action(action)
            await pilot.pause()
            assert isinstance(app.screen, screen)
            app.screen.set_focus(None)  # a field would take the keys
            names = {command.name for command in key_commands(app, app.screen)}
            assert titles - names == {screen.HELP_TITLE}
            await app.run_action(action)
            assert len(app.screen_stack) == 2, "the key may be pressed twice"
            await app.pop_screen()
        before = [command.title for command in app.get_system_commands(app.screen)]
        app.actions.new_workflow()
        await pilot.pause()
        assert isinstance(app.screen, WorkflowTaskScreen)
        now = {command.title for command in app.get_system_commands(app.screen)}
        assert [title for title in before if title not in now] == ["New workflow"]


async def test_screen_actions_run_from_the_palette() -> None:
    app = shown_run()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await chosen(pilot, "zoom")
        await until(pilot, lambda: app.screen.maximized is not None)


@pytest.mark.parametrize(("words", "screen"), [("settings", SettingsScreen), ("new run", NewRunScreen)])
async def test_screens_are_opened_from_the_palette(words: str, screen: type[Screen[None]]) -> None:
    app = AeonApp(Path("runs"))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await chosen(pilot, words)
        await until(pilot, lambda: isinstance(app.screen, screen))


@pytest.mark.parametrize("zoomed", [False, True])
async def test_the_palette_goes_to_a_step(zoomed: bool) -> None:
    app = shown_run()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, RunScreen)
        screen.tick()
        last = list(screen.view.steps)[-1]
        if zoomed:
            await pilot.press("2", "z")
        await chosen(pilot, f"step: {last}")
        await until(pilot, lambda: screen.query_one(PlanTree).selected is not None)
        selected = screen.query_one(PlanTree).selected
        assert selected is not None
        assert (selected.kind, selected.name) == ("step", last)
        assert screen.query_one(PlanTree).has_focus
        assert screen.maximized is (screen.query_one(PlanTree) if zoomed else None)


@pytest.mark.exhaustive
async def test_the_palette_finds_a_run_by_part_of_its_task(tmp_path: Path) -> None:
    write(tmp_path, started(task="[bold]pay[/] [$accent] the \x1b[31mbill"), ttl(1), run="20261120-080000-aaaaaa")
    write(tmp_path, started(task="list customers"), finished(answer="x"), run="20261120-090000-bbbbbb")
    app = AeonApp(tmp_path)
    async with app.run_test(size=(100, 40)) as pilot:
        provider = PaletteProvider(app.screen)
        await provider.startup()
        hits = [hit async for hit in provider.search("the bill")]
        assert [hit.text for hit in hits] == [r"Go to run: [bold]pay[/] [$accent] the \x1b[31mbill"]
        assert str(hits[0].prompt) == hits[0].text
        assert isinstance(hits[0].help, Content)  # a str would be parsed as markup
        await chosen(pilot, "go to run: [bold]pay")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        assert isinstance(app.screen, RunScreen)
        await until(pilot, lambda: app.screen.view.task.startswith("[bold]pay"))  # type: ignore[attr-defined]


async def test_runs_are_read_on_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    read_on: list[str] = []

    def runs(self: RunListing) -> list[object]:
        read_on.append(threading.current_thread().name)
        return []

    app = AeonApp(tmp_path)
    async with app.run_test():
        monkeypatch.setattr(RunListing, "runs", runs)
        await PaletteProvider(app.screen).startup()
    assert read_on
    assert threading.main_thread().name not in read_on


async def test_a_directory_that_cannot_be_read_leaves_the_other_commands(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    app = AeonApp(tmp_path / "file")
    async with app.run_test():
        provider = PaletteProvider(app.screen)
        await provider.startup()
        assert "Settings" in [command.name for command in provider.commands()]
