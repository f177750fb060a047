"""The list of runs as pictures: families, live runs, filters, a search, the preview, a damaged run, dialogs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from aeon_core.journal.listing import list_runs
from aeon_core.journal.records import ConvergenceRecord
from aeon_core.journal.summary import RunSummary
from aeon_core.json_safe import clean_text
from aeon_tui.app import AeonApp
from aeon_tui.screens.browser import preview
from aeon_tui.screens.browser.preview import PreviewPane
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.dialogs import ConfirmDialog, ExportDialog
from aeon_widgets.text_fields import FilterLine
from tests.aeon_core.journal.build import finished, lines, started, ttl, whole_run, write
from tests.aeon_tui.recordings import HOSTILE
from tests.aeon_tui.screens.browser.test_screen import NOW, settle, summary
from tests.sampling import sample
from tests.waiting import until

Compare = Callable[..., bool]
SIZES = [
    pytest.param((60, 20), id="60x20"),
    pytest.param((80, 24), id="80x24"),
    pytest.param((120, 40), id="120x40"),
    pytest.param((200, 60), id="200x60"),
]
TASK = "design a REST API for invoices with customers and payments"


def fork(number: int, parent: int, status: str, at: int = 1) -> RunSummary:
    return replace(summary(number, TASK, status), parent=summary(parent).run_id, forked_at=at)


FAMILIES = [
    fork(55, 30, "completed", 2),
    replace(summary(50, "publish the report", "failed"), model="anthropic:claude-sonnet-4-5", cost_usd=1.25),
    fork(45, 40, "running", 3),
    fork(42, 30, "not_converged"),
    replace(summary(41, HOSTILE, "aborted"), damaged=True),
    fork(40, 30, "interrupted", 2),
    replace(fork(35, 5, "converged"), completeness=0.829, coherence=0.91, cost_usd=0.0123, passes=12),
    summary(30, TASK),
    replace(summary(20, "summarise the report", "ttl_expired"), completeness=0.4, cost_usd=None),
    replace(summary(10, "translate the report", "running"), waits_for="pass", passes=1),
]


def browser_app(runs: Sequence[RunSummary], *, preview: bool | None = False) -> AeonApp:
    app = AeonApp(Path("runs"))
    screen = BrowserScreen(Path("/home/ann/invoices/.aeon/runs"), lambda directory: runs, lambda: NOW)
    screen.preview_wanted = preview
    app.first_screen = screen
    return app


def then(*keys: str, preview: str = "") -> Callable[[Pilot[None]], object]:
    async def settled(pilot: Pilot[None]) -> None:
        await settle(pilot)
        pilot.app.screen.query_one(FilterLine).cursor_blink = False
        await pilot.press(*keys)
        await settle(pilot)
        screen = pilot.app.screen
        assert isinstance(screen, BrowserScreen)
        await until(pilot, lambda: screen.search is None or screen.search.ended)
        screen.look_at_search()
        await until(pilot, lambda: preview in screen.query_one(PreviewPane).text)
        await pilot.pause()

    return settled


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(("down", "down", "m"), id="all"),
        pytest.param(("slash", *"rest inv"), id="filtered"),
        pytest.param(("slash", *"nothing like it"), id="none"),
        pytest.param(("slash", *"-status:f"), id="completing"),
        pytest.param(("V", "slash", *"is:blue"), id="problem"),
    ],
)
def test_families(snap_compare: Compare, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    assert snap_compare(browser_app(FAMILIES), terminal_size=size, run_before=then(*keys))


@pytest.mark.parametrize("size", sample(SIZES, 1))
def test_found(snap_compare: Compare, tmp_path: Path, size: tuple[int, int]) -> None:
    long = f"{'what stands before it ' * 3}customers, and [b]\x1b[31m more"
    parent = {"run_id": "20261120-080000-aaaaaa", "pass": 2}
    write(tmp_path, started(), finished(answer=long), run="20261120-080000-aaaaaa")
    write(tmp_path, started(task="list the Customers", parent=parent), ttl(1), run="20261120-090000-bbbbbb")
    write(tmp_path, started(), ttl(1), run="20261120-100000-cccccc")
    app = browser_app(list_runs(tmp_path))
    assert snap_compare(app, terminal_size=size, run_before=then("slash", *"customers", "enter"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(preview, "REST_SECONDS", 0.01)
    scores = [
        ConvergenceRecord(
            pass_number=number,
            completeness_score=score,
            coherence_score=0.9,
            reason_codes=["incomplete", "failed_step"],
        )
        for number, score in ((1, 0.25), (2, 0.5), (3, 0.75))
    ]
    run = whole_run()
    write(tmp_path, *run[:-1], *scores, finished("not_converged", passes=3), run="20261120-093000-cccccc")
    parent = {"run_id": "20261120-093000-cccccc", "pass": 2}
    write(tmp_path, started(task=clean_text(HOSTILE), parent=parent), ttl(1), run="20261120-093000-bbbbbb")
    broken = lines(started(task="write a poem"), *[ttl(number) for number in range(9)], finished())
    broken[4:6] = [b"\x00\xff no record\n"]
    (tmp_path / "20261120-093000-aaaaaa.jsonl").write_bytes(b"".join(broken))
    return tmp_path


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize(
    ("keys", "text"),
    [
        pytest.param((), "Plan · 3 of 3", id="whole"),
        pytest.param(("down",), "fork of", id="hostile-fork"),
        pytest.param(("end",), "⚠ damaged", id="damaged"),
    ],
)
def test_preview(snap_compare: Compare, folder: Path, keys: tuple[str, ...], text: str, size: tuple[int, int]) -> None:
    app = browser_app(list_runs(folder), preview=True)
    assert snap_compare(app, terminal_size=size, run_before=then(*keys, preview=text))


@pytest.mark.parametrize("size", sample(SIZES[:3], 1))
@pytest.mark.parametrize(("key", "kind"), [("delete", ConfirmDialog), ("x", ExportDialog)], ids=["delete", "export"])
def test_dialogs(
    snap_compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch, key: str, kind: type, size: tuple[int, int]
) -> None:
    runs = list_runs(folder)
    monkeypatch.setattr(Path, "cwd", lambda: Path("/home/ann/invoices"))
    monkeypatch.setattr("aeon_core.paths.os.access", lambda *_: True)  # no such folder exists here

    async def ask(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press(key)
        await until(pilot, lambda: isinstance(pilot.app.screen, kind))
        for line in pilot.app.screen.query("Input"):
            line.cursor_blink = False  # type: ignore[attr-defined]
        await pilot.pause()

    assert snap_compare(browser_app(runs), terminal_size=size, run_before=ask)


def test_without_colours_everything_can_still_be_distinguished(
    snap_compare: Compare, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = browser_app([*FAMILIES, *list_runs(folder)])
    assert snap_compare(app, terminal_size=(80, 24), run_before=then("down", "m"))
