from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual import on
from textual.app import App, ComposeResult

from aeon_core.journal.view.reducer import fold
from aeon_themes import fallback_variables
from aeon_widgets.compare_rows import ComparedRun, CompareRow, RunComparison, compare, text_rows
from aeon_widgets.compare_view import CompareHeader, CompareView
from tests.aeon_tui.passes import converged_run, given_up_run
from tests.aeon_tui.recordings import hostile_run

LEFT = "the same\nit costs 0.50\nonly here\nthe end"
RIGHT = "the same\nit costs 0.75\nthe end\nand more"


class Shown(App[None]):
    def __init__(self, comparison: RunComparison) -> None:
        super().__init__()
        self.comparison = comparison
        self.sides: list[int] = []

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return fallback_variables(self.current_theme)

    def compose(self) -> ComposeResult:
        yield CompareHeader()
        yield CompareView()

    def on_mount(self) -> None:
        self.view.show(self.comparison)
        self.view.focus()

    @property
    def view(self) -> CompareView:
        return self.query_one(CompareView)

    @on(CompareView.SideWanted)
    def _side(self, event: CompareView.SideWanted) -> None:
        self.sides.append(event.side)


def comparison() -> RunComparison:
    return RunComparison(tuple(text_rows(LEFT, RIGHT)))


def runs() -> RunComparison:
    return compare(*(ComparedRun("r", fold(make().records)) for make in (converged_run, given_up_run)))


async def test_a_wide_view_shows_both_sides_with_a_mark_between() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.pause()
        lines = [" ".join(line.split()) for line in app.view.text.split("\n")]
        assert lines == [
            "the same │ the same",
            "it costs 0.50 ≠ it costs 0.75",
            "only here A",
            "the end │ the end",
            "B and more",
        ]


async def test_a_narrow_view_stacks_the_sides_and_labels_each_line() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert app.view.text.split("\n") == [
            "  the same",
            "A it costs 0.50",
            "B it costs 0.75",
            "A only here",
            "  the end",
            "B and more",
        ]


async def test_the_layout_can_be_changed_by_a_key_and_back() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("v")
        assert app.view.is_beside
        assert app.view.line_count == 5
        await pilot.press("v")
        assert app.view.line_count == 6


async def test_words_that_differ_are_drawn_bold() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert list(app.view.pieces(1, 59)) == [("A ", "bold"), ("it costs ", ""), ("0.50", "accent bold")]


async def test_keys_move_between_differences_and_stop_at_the_ends() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert (app.view.place, app.view.cursor) == ("2 differences", 0)
        await pilot.press("n")
        assert (app.view.place, app.view.cursor) == ("difference 1 of 2", 1)
        await pilot.press("n", "n")
        assert (app.view.place, app.view.cursor) == ("difference 2 of 2", 5)
        await pilot.press("N")
        assert app.view.cursor == 1
        await pilot.press("N", "N")
        assert app.view.cursor == 1


async def test_only_differences_hides_equal_rows_and_keeps_headings() -> None:
    app = Shown(runs())
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("d")
        assert "task" not in app.view.text
        assert "Issues · the same" in app.view.text
        assert "status    ✔ converged" in app.view.text
        await pilot.press("d")
        assert "task" in app.view.text


async def test_the_cursor_keeps_its_row_on_updates_and_resizes() -> None:
    app = Shown(runs())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.press("n", "n", "n")
        row = app.view._row_at(app.view.cursor)
        assert row.begins
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert app.view._row_at(app.view.cursor) == row
        app.view.show(RunComparison((CompareRow("#", "new", "new"), *runs().rows)))
        assert app.view._row_at(app.view.cursor) == row


async def test_arrows_choose_a_side() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(120, 20)) as pilot:
        await pilot.press("right", "left", "l", "h")
        assert app.sides == [1, 0, 1, 0]


@pytest.mark.parametrize("size", [(20, 6), (60, 20), (100, 30), (120, 40), (200, 60)])
async def test_no_line_is_wider_than_the_view(size: tuple[int, int]) -> None:
    hostile = ComparedRun("h", fold(hostile_run().records))
    app = Shown(compare(hostile, ComparedRun("g", fold(given_up_run().records))))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        width = app.view.scrollable_content_region.width
        for at in range(min(app.view.line_count, 400)):
            line = "".join(text for text, _ in app.view.pieces(at, width))
            assert cell_len(line) <= width
            assert "\x1b" not in line


@pytest.mark.parametrize("width", [40, 60, 121])
async def test_no_word_of_a_row_is_lost_when_it_is_wrapped(width: int) -> None:
    text = "      output     " + "a word and 測試 another, " * 40
    app = Shown(RunComparison((CompareRow("A", text, "", hang=17),)))
    async with app.run_test(size=(width, 60)) as pilot:
        await pilot.pause()
        told = [line.removeprefix("A ").removesuffix(" A") for line in app.view.text.split("\n")]
        assert "".join("".join(told).split()).replace("│", "") == "".join(text.split())


async def test_a_difference_is_scrolled_into_view_with_what_is_below_it() -> None:
    rows = text_rows("\n".join(["same"] * 50 + ["old"] * 5), "\n".join(["same"] * 50 + ["new"] * 5))
    app = Shown(RunComparison(tuple(rows)))
    async with app.run_test(size=(120, 12)) as pilot:
        await pilot.press("n")
        assert app.view.cursor == 50
        assert app.view.scroll_offset.y + app.view.size.height >= 55


async def test_the_headers_show_both_runs_their_lineage_and_the_choice() -> None:
    app = Shown(comparison())
    async with app.run_test(size=(120, 20)) as pilot:
        heads = app.query_one(CompareHeader)
        one, gone = ComparedRun("r", fold(converged_run().records)), ComparedRun("gone", problem="no journal")
        heads.update_runs([one, gone], "B is a fork of A at pass 2")
        heads.place = "difference 1 of 2"
        title, names = heads.render().plain.split("\n")
        assert title.split("  ")[:3] == ["aeon", "Compare", "B is a fork of A at pass 2"]
        assert title.endswith("difference 1 of 2")
        assert names.startswith("▸ A 20261120-093000-a1b2c3 ✔ converged  design a REST")
        assert names.rstrip().endswith("│   B gone ✖ unreadable")
        heads.side = 1
        assert "│ ▸ B gone" in heads.render().plain
        heads.beside = False
        await pilot.pause()
        assert [line[:8] for line in heads.render().plain.split("\n")[1:]] == ["  A 2026", "▸ B gone"]


async def test_one_click_on_a_header_chooses_its_run_and_two_open_it() -> None:
    clicked: list[tuple[int, bool]] = []

    class Clicks(Shown):
        def on_compare_header_clicked(self, event: CompareHeader.Clicked) -> None:
            clicked.append((event.side, event.again))

    app = Clicks(comparison())
    async with app.run_test(size=(120, 20)) as pilot:
        app.query_one(CompareHeader).update_runs([ComparedRun("a"), ComparedRun("b")])
        await pilot.click(CompareHeader, offset=(100, 1))
        await pilot.click(CompareHeader, offset=(10, 0))
        app.query_one(CompareHeader).beside = False
        await pilot.pause()
        await pilot.click(CompareHeader, offset=(10, 1), times=2)
        await pilot.click(CompareHeader, offset=(90, 2))
    assert clicked == [(1, False), (0, False), (0, True), (1, False)]
