"""The command palette: every action that has a key now, runs and steps to go to, themes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from textual.app import App
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.fuzzy import Matcher
from textual.screen import Screen
from typing_extensions import override

from aeon_core.errors import AeonError
from aeon_core.journal.view.formatting import words
from aeon_core.units import local_time
from aeon_tui.screens.item_actions import SelectableModal
from aeon_tui.screens.keys import label_of
from aeon_widgets.call_rows import RowKey
from aeon_widgets.keys import shown_key
from aeon_widgets.plan_tree import PlanTree
from aeon_widgets.run_list import WORKFLOW
from aeon_widgets.text import fit, one_line

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.navigation import Navigation
    from aeon_tui.screens.run.screen import RunScreen

NEWEST = 500
"""The most runs in the palette; the list of runs searches all of them."""
_RUNS_AT_FIRST = 3
"""The most runs offered before anything is typed."""
_WIDTH = 60
_MOVES = ("lines.", "step.tab", "pane.", "field.")
"""Actions that only navigate: they can be found, but are not suggested."""
_BEHIND = 0.8
"""The weight of a place against an action that matches equally well."""


@dataclass(frozen=True)
class Command:
    """One line of the palette: name, help and callback. `at_first` shows it before anything is typed."""

    name: str
    help: str
    act: Callable[[], object]
    at_first: bool = True
    weight: float = 1.0


class PaletteScreen(CommandPalette, SelectableModal[None]):
    """Textual's palette, with the keys that quit and suspend."""


class PaletteProvider(Provider):
    """Offers commands in their own order. Nothing in a name is parsed as markup."""

    _runs: Sequence[RunSummary] = ()

    def commands(self) -> Iterator[Command]:
        """Yield the commands of the current context: its keys, then the app's, then places to go to."""
        app = cast("Navigation", self.app)
        yield from key_commands(app, self.screen)
        for each in app.get_system_commands(self.screen):
            yield Command(each.title, each.help, each.callback)
        yield from step_commands(self.screen)
        yield from run_commands(app, self._runs)
        yield from theme_commands(app)

    @override
    async def startup(self) -> None:
        self._runs = await newest_runs(cast("Navigation", self.app))

    @override
    async def discover(self) -> Hits:
        for command in self.commands():
            if command.at_first:
                yield DiscoveryHit(Content(command.name), command.act, command.name, _plain(command.help))

    @override
    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self.commands():
            if (score := matcher.match(command.name)) > 0:
                name = _marked(matcher, query, command.name)
                yield Hit(score * command.weight, name, command.act, command.name, _plain(command.help))


def key_commands(app: App[Any], screen: Screen[Any]) -> Iterator[Command]:
    """Yield every action that has a key now: of the focused pane, of the screen, and everywhere."""
    active = [each for each in screen.active_bindings.values() if each.enabled and each.binding.id is not None]
    keys: dict[tuple[object, str], list[str]] = {}
    for each in active:
        keys.setdefault((each.node, each.binding.action), []).append(shown_key(each.binding.key))
    for each in active:
        shown = keys.pop((each.node, each.binding.action), None)
        if shown is None or each.binding.action == "command_palette":
            continue
        what = f"{each.binding.tooltip}. " if each.binding.tooltip else ""
        yield Command(
            label_of(each.binding.action, each.binding.description),
            f"{what}Press {' or '.join(dict.fromkeys(shown))}",
            partial(app.run_action, each.binding.action, each.node),
            at_first=not str(each.binding.id).startswith(_MOVES),
        )


def step_commands(screen: Screen[Any]) -> Iterator[Command]:
    """Yield the steps of the run on screen."""
    from aeon_tui.screens.run.screen import RunScreen

    if not isinstance(screen, RunScreen):
        return
    for step_id, step in screen.shown_view.steps.items():
        name = fit(one_line(f"{step_id} {step.description}"), _WIDTH)
        about = one_line(f"{step.status} · select it in the plan")
        yield Command(f"Go to step: {name}", about, partial(_go_to_step, screen, step_id), False, _BEHIND)


def run_commands(app: Navigation, runs: Sequence[RunSummary]) -> Iterator[Command]:
    """Yield runs, newest first."""
    for number, run in enumerate(runs):
        act = partial(app.open_journal, Path(run.path))
        yield Command(f"Go to run: {_task(run)}", _about(run), act, number < _RUNS_AT_FIRST, _BEHIND)


def theme_commands(app: Navigation, before: str = "Theme: ") -> Iterator[Command]:
    """Yield the themes, Aeon's first."""
    for name in sorted(app.available_themes, key=lambda name: (not name.startswith("aeon-"), name)):
        about = "Current theme" if name == app.theme else "Use this theme"
        yield Command(f"{before}{one_line(name)}", about, partial(app.user_settings.keep_theme, name), not before)


def choose_theme(app: Navigation) -> None:
    """Open the palette on the themes."""
    _choose(app, "Which theme?", list(theme_commands(app, "")))


def choose_other_run(app: Navigation, chosen: Path, others: Sequence[RunSummary]) -> None:
    """Open the palette on runs to compare with the chosen one."""
    commands = [Command(_task(run), _about(run), partial(app.compare_runs, chosen, Path(run.path))) for run in others]
    _choose(app, "Compare with which run?", commands)


def _choose(app: Navigation, question: str, commands: Sequence[Command]) -> None:
    class GivenProvider(PaletteProvider):
        @override
        async def startup(self) -> None:
            """Do nothing: there is nothing to read."""

        @override
        def commands(self) -> Iterator[Command]:
            return iter(commands)

    app.push_screen(PaletteScreen([GivenProvider], placeholder=question))


def comparable(runs: Sequence[RunSummary], chosen: Path | None) -> Sequence[RunSummary]:
    """Return the runs that can be compared with the chosen one."""
    return [run for run in runs if Path(run.path) != chosen and run.kind != WORKFLOW]


async def newest_runs(app: Navigation) -> Sequence[RunSummary]:
    """Return the newest runs, read on a thread; none if that fails."""
    try:
        return (await asyncio.to_thread(app.listed_runs))[:NEWEST]
    except (AeonError, OSError):
        return ()


def _go_to_step(screen: RunScreen, step_id: str) -> None:
    screen.query_one(PlanTree).select(RowKey("step", step_id))
    screen.action_pane(1)


def _marked(matcher: Matcher, query: str, name: str) -> Content:
    """Return a name with the matching letters marked."""
    content = Content(name)
    for offset in matcher.fuzzy_search.match(query, name)[1]:
        if not name[offset].isspace():
            content = content.stylize(matcher.match_style, offset, offset + 1)
    return content


def _plain(text: str) -> str:
    """Return a help text that is not parsed as markup, as the palette would parse a `str`."""
    return cast("str", Content(text))


def _task(run: RunSummary) -> str:
    return fit(one_line(run.task, 500), _WIDTH) or run.run_id


def _about(run: RunSummary) -> str:
    return one_line(f"{words(run.status)} · {local_time(run.started, '%Y-%m-%d %H:%M')} · {run.run_id}", 200)
