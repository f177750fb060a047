"""Two runs compared on the screen, by keys and by mouse; and as pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from aeon_tui.app import AeonApp
from aeon_tui.screens.browser.screen import BrowserScreen
from aeon_tui.screens.compare import CompareScreen
from aeon_tui.screens.dialogs import ExportDialog
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sources.journal import source_of
from aeon_widgets.compare_view import CompareHeader, CompareView
from tests.aeon_tui.compared import LEFT, RIGHT, app_on, compared, written
from tests.aeon_tui.passes import converged_run, given_up_run, hostile_passes
from tests.aeon_tui.recordings import Recording, finished_run
from tests.sampling import sample
from tests.waiting import until

Compare = Callable[..., bool]
SIZES = [pytest.param(size, id="x".join(map(str, size))) for size in ((60, 20), (80, 24), (120, 40), (200, 50))]


def two(folder: Path, left: Recording | None = None, right: Recording | None = None) -> tuple[Path, Path]:
    return (
        written(folder, LEFT, left or converged_run()),
        written(folder, RIGHT, right or given_up_run()),
    )


def heads(pilot: Pilot[None]) -> CompareHeader:
    return pilot.app.screen.query_one(CompareHeader)


async def test_the_runs_are_reported_with_their_differences(tmp_path: Path) -> None:
    async with app_on(*two(tmp_path)).run_test(size=(120, 40)) as pilot:
        view = await compared(pilot)
        assert "Overview · different: status, passes, steps" in view.text
        assert heads(pilot).place == "8 differences"
        assert LEFT in heads(pilot).render().plain
        await pilot.press("n")
        assert heads(pilot).place == "difference 1 of 8"


async def test_a_test_looks_at_a_screen_that_was_just_opened_once_it_has_its_widgets(tmp_path: Path) -> None:
    async with AeonApp(tmp_path).run_test() as pilot:
        pilot.app.push_screen(CompareScreen(*two(tmp_path)))
        assert (await until(pilot, lambda: pilot.app.screen.query_one(CompareView))).is_attached


async def test_a_fork_without_a_journal_yet_is_not_unreadable(tmp_path: Path) -> None:
    starting = [True]
    app = app_on(left := written(tmp_path, LEFT, converged_run()), right := tmp_path / f"{RIGHT}.jsonl")
    screen = app.first_screen = CompareScreen(left, right, 1, lambda: any(starting))
    async with app.run_test(size=(120, 40)) as pilot:
        screen._read()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "unreadable" not in heads(pilot).render().plain
        assert screen.query_one(CompareView).text == ""
        written(tmp_path, RIGHT, given_up_run())
        starting.clear()
        screen._read()
        await compared(pilot)


@pytest.mark.parametrize(
    ("keys", "run"),
    [(("enter",), LEFT), (("tab", "enter"), RIGHT), (("shift+tab", "enter"), RIGHT), (("right", "enter"), RIGHT)],
)
async def test_enter_opens_the_chosen_run(tmp_path: Path, keys: tuple[str, ...], run: str) -> None:
    async with app_on(*two(tmp_path)).run_test(size=(120, 40)) as pilot:
        await compared(pilot)
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert pilot.app.screen.chosen_run == tmp_path / f"{run}.jsonl"  # type: ignore[attr-defined]


async def test_enter_opens_the_run_before_the_comparison_has_been_read(tmp_path: Path) -> None:
    app = app_on(*two(tmp_path))
    app.first_screen = CompareScreen(tmp_path / f"{LEFT}.jsonl", tmp_path / f"{RIGHT}.jsonl", 1, lambda: True)
    async with app.run_test(size=(120, 40)) as pilot:
        assert pilot.app.screen.query_one(CompareView).text == ""
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert pilot.app.screen.chosen_run == tmp_path / f"{RIGHT}.jsonl"  # type: ignore[attr-defined]


async def test_a_second_click_on_a_name_opens_its_run(tmp_path: Path) -> None:
    async with app_on(*two(tmp_path)).run_test(size=(120, 40)) as pilot:
        await compared(pilot)
        await pilot.click(CompareHeader, offset=(100, 1))
        assert heads(pilot).side == 1
        await pilot.click(CompareHeader, offset=(100, 1), times=2)
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))


async def test_swapping_exchanges_the_sides_and_keeps_the_chosen_run(tmp_path: Path) -> None:
    async with app_on(*two(tmp_path)).run_test(size=(120, 40)) as pilot:
        await compared(pilot)
        await pilot.press("V")
        await until(pilot, lambda: f"A {RIGHT}" in heads(pilot).render().plain)
        assert f"▸ B {LEFT}" in heads(pilot).render().plain
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen))
        assert pilot.app.screen.chosen_run == tmp_path / f"{LEFT}.jsonl"  # type: ignore[attr-defined]


@pytest.mark.parametrize("parent", [LEFT, f"../{LEFT}", "..", "gone/", "a\0b", "x" * 300])
async def test_a_run_is_compared_with_its_parent_whatever_its_journal_calls_it(tmp_path: Path, parent: str) -> None:
    run = converged_run()
    run.records[0]["parent"] = {"run_id": parent, "pass": 1}
    left, right = two(tmp_path, right=run)
    app = app_on(left, right)
    app.first_screen = RunScreen(source_of(right, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.view.parent == parent)  # type: ignore[attr-defined]
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        if LEFT in parent:
            await compared(pilot)
            assert f"A {LEFT}" in heads(pilot).render().plain
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))


async def test_escape_goes_back_and_ends_the_reading(tmp_path: Path) -> None:
    app = app_on(*two(tmp_path))
    app.first_screen = None
    async with app.run_test(size=(120, 40)) as pilot:
        screen = CompareScreen(*two(tmp_path))
        await app.push_screen(screen)
        await compared(pilot)
        await pilot.press("escape")
        assert not isinstance(app.screen, CompareScreen)
        await app.workers.wait_for_complete()


async def exported(pilot: Pilot[None], file: Path) -> None:
    """Export what is chosen under the name that is offered."""
    screen = pilot.app.screen
    await pilot.press("x")
    await until(pilot, lambda: isinstance(pilot.app.screen, ExportDialog) and pilot.app.screen.is_mounted)
    await pilot.press("enter")
    await until(pilot, lambda: f"Written: {file}" in [each.message for each in pilot.app._notifications])
    assert (pilot.app.screen, file.read_text()[:5]) == (screen, "# Run")


async def test_back_from_a_run_returns_to_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = app_on(*two(tmp_path))
    app.first_screen = None
    async with app.run_test(size=(120, 40)) as pilot:
        app.compare_runs(*two(tmp_path))
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        screen = app.screen
        await compared(pilot)
        await exported(pilot, tmp_path / f"{LEFT}.md")
        await pilot.press("n", "n", "tab", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunScreen))
        await exported(pilot, tmp_path / f"{RIGHT}.md")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert heads(pilot).place == "difference 2 of 8"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, BrowserScreen))


async def test_a_run_that_is_gone_is_reported_on_its_side_and_the_other_is_shown(tmp_path: Path) -> None:
    left, right = two(tmp_path)
    right.unlink()
    async with app_on(left, right).run_test(size=(120, 40)) as pilot:
        view = await compared(pilot)
        problem, first = view.text.split("\n")[0], view.text
        assert problem.startswith(" " * 30)
        assert RIGHT in " ".join(first.split())
        assert "status    ✔ converged" in first
        assert "unreadable" in heads(pilot).render().plain


async def test_the_same_run_twice_is_reported(tmp_path: Path) -> None:
    left, _ = two(tmp_path)
    async with app_on(left, left).run_test(size=(120, 40)) as pilot:
        await compared(pilot)
        assert "the same run twice" in heads(pilot).render().plain
        assert heads(pilot).place == "no differences"
        await pilot.press("n", "N", "d")


async def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    async with app_on(*two(tmp_path, hostile_passes(), finished_run())).run_test(size=(80, 24)) as pilot:
        view = await compared(pilot)
        assert "[bold]B[/]" in view.text
        assert "\x1b" not in view.text


@pytest.mark.parametrize("size", sample(SIZES, 1))
@pytest.mark.parametrize("keys", [(), ("n", "n", "n", "n"), ("d",)], ids=["whole", "fourth", "only"])
def test_two_runs_compared(snap_compare: Compare, tmp_path: Path, keys: tuple[str, ...], size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[None]) -> None:
        await compared(pilot)
        await pilot.press(*keys)

    assert snap_compare(app_on(*two(tmp_path)), terminal_size=size, run_before=look)


def test_a_comparison_with_an_invalid_journal(
    snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two(tmp_path)
    monkeypatch.chdir(tmp_path)

    async def look(pilot: Pilot[None]) -> None:
        await compared(pilot)

    app = app_on(Path(f"{LEFT}.jsonl"), Path("gone.jsonl"))
    assert snap_compare(app, terminal_size=(120, 24), run_before=look)


async def test_every_key_of_the_screen_has_a_name_and_words(tmp_path: Path) -> None:
    async with app_on(*two(tmp_path)).run_test(size=(120, 40)) as pilot:
        await compared(pilot)
        own = [each for cls in (CompareScreen, CompareView) for each in cls.BINDINGS]
        assert all(each.id and each.id.startswith("compare.") and each.description for each in own)  # type: ignore[union-attr]
        assert len({each.id for each in own}) == len(own)  # type: ignore[union-attr]
