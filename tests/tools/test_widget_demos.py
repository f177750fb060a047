"""Each widget's demo: it shows the recorded run at any size and any moment, and the record is a run that is sound."""

from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from textual.case import camel_to_snake
from textual.pilot import Pilot
from textual.widget import Widget

import aeon_widgets
from aeon_core.errors import UsageError
from aeon_core.journal.history import open_run
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold
from aeon_themes import PALETTES
from aeon_widgets.plan_tree import PlanTree
from tests.sampling import sample
from tools.widget_demos.app import DemoApp, demo_of, main, recorded
from tools.widget_demos.demos import DEMOS, LAST, RECORDING, RUN_ID, Demo, Moment, runs

BASES = {"text_fields", "virtual_list", "pane"}
"""Modules of what widgets are made of."""
FEW = {"approval_panel", "plan_tree", "step_pane"}
SHOWN = {
    "answer_keys": "a Call it",
    "approval_panel": "Finished: the result is complete",
    "compare_header": "Compare",
    "compare_view": "B TTL       17 of 33 cycles used",
    "convergence": "✔ complete ▁█ 1.00 +1.00",
    "filter_line": "design a REST API for",
    "footer": "Play",
    "issues": "No issues found.",
    "log_pane": "converged",
    "match_list": "design a REST API for",
    "outcome": "A REST API for invoices",
    "pass_line": "complete 1.00 coherent 1.00",
    "plan_tree": "s5.4 Work out the access rules",
    "rail_line": "16 of 33 left",
    "repairs": "plan JSON repaired",
    "run_list_header": "design a REST API for",
    "run_header": "SIMULATED",
    "run_list": "converged",
    "run_preview": "design a REST API for",
    "scrubber": "━●▶",
    "step_pane": "every caller carries a token",
    "tally": "1 waits for you",
    "text_view": "design a REST API for",
    "ttl_gauge": "33 cycles left",
    "workflow_artifact": "src/      │ nothing yet",
    "workflow_header": "⚠ over $2.00",
    "workflow_pipeline": "? gate 0 scope",
    "workflow_conversation": "I look at what is there first.",
}
"""What of the run is to be seen in each, with the whole of it, on 80 columns."""


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)


def drawn(app: DemoApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def test_the_recorded_run_is_complete_and_has_what_demos_need() -> None:
    view, history = open_run(RECORDING)
    assert (view.damage, view.status, view.run_id, view.last_seq) == ([], "converged", RUN_ID, LAST)
    assert (len(history.passes), len(view.repairs), len(view.refinements)) == (2, 3, 1)
    assert [(each.pass_number, each.converged) for each in view.assessments] == [(1, False), (2, True)]
    assert {record["point"] for record in recorded() if record["type"] == "approval"} == {"plan", "pass"}
    assert RECORDING.stat().st_size < 250_000


def test_the_listed_runs_differ_in_status_and_id() -> None:
    assert len({run.run_id for run in runs()}) == len({run.status for run in runs()}) == len(runs())


def test_every_module_with_a_widget_has_a_demo() -> None:
    for name in (name for _, name, _ in pkgutil.iter_modules(aeon_widgets.__path__) if name not in BASES):
        module = import_module(f"aeon_widgets.{name}")
        own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
        widgets = [camel_to_snake(each.__name__) for each in own if issubclass(each, Widget)]
        assert any(each in DEMOS for each in [name, *widgets]) is bool(widgets), name


@pytest.mark.parametrize("name", sample(DEMOS, FEW.__contains__))
async def test_a_demo_shows_the_run_at_any_moment_and_size(name: str) -> None:
    app = DemoApp(DEMOS[name])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert SHOWN[name] in drawn(app)
        for app.at in (0, 20, 60, 61, 120, len(recorded())):
            await pilot.pause()
        assert SHOWN[name] in drawn(app)
        for width, height in ((200, 60), (60, 20), (20, 5), (120, 40)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert {strip.cell_length for strip in app.screen._compositor.render_strips()} == {width}
        assert app.widget.region


@pytest.mark.parametrize("name", sample(DEMOS, FEW.__contains__))
def test_a_demo_as_a_picture(snap_compare: Callable[..., bool], name: str) -> None:
    async def still(pilot: Pilot[None]) -> None:
        await pilot.pause()

    assert snap_compare(DemoApp(DEMOS[name]), terminal_size=(80, 20), run_before=still)


async def test_keys_step_through_the_run_play_it_and_change_the_theme() -> None:
    app = DemoApp(DEMOS["plan_tree"])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("comma", "comma", "full_stop")
        assert app.at == len(recorded()) - 1
        assert app.widget.live  # type: ignore[attr-defined]
        await pilot.press("full_stop", "full_stop")
        assert app.at == len(recorded())
        await pilot.press("space")
        assert app.playing
        await pilot.press("space")
        assert not app.playing
        assert app.at < len(recorded())
        await pilot.press("t")
        assert app.theme == PALETTES[1].name
        assert PALETTES[1].name in drawn(app)


async def test_playing_ends_with_the_run() -> None:
    app = DemoApp(DEMOS["plan_tree"])
    async with app.run_test(size=(80, 24)):
        app.at, app.playing = len(recorded()) - 1, True
        app._advance()
        assert (app.at, app.playing) == (len(recorded()), False)


async def test_a_moment_shows_the_same_view_however_it_was_reached() -> None:
    shown: list[RunView] = []

    def show(widget: PlanTree, moment: Moment) -> None:
        shown.append(fold(moment.records))
        assert moment.view == shown[-1]

    app = DemoApp(Demo("plan_tree", PlanTree, show))
    async with app.run_test(size=(80, 24)):
        for app.at in (90, 40, 41, 0):
            pass
    assert len(shown) == 5


def test_an_unknown_widget_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no demo of 'plan'; widgets with a demo: answer_keys, "):
        demo_of("plan")


def test_without_a_name_the_demos_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("widgets with a demo: answer_keys, ")


def test_importing_a_widget_loads_no_demo_and_no_theme() -> None:
    paths = [str(Path(aeon_widgets.__file__).parents[2] / part) for part in (".", "core", "widgets", "themes")]
    code = f"import sys; sys.path[:0] = {paths}; import aeon_widgets.plan_tree; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "aeon_widgets.plan_tree" in loaded
    assert not {"tools", "aeon_themes"} & set(loaded)
