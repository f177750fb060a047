"""The keys at the foot of a screen fit its width, also when more of them come, and a click presses one."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from aeon_widgets.footer import FooterKey, KeyFooter, fit_keys

KEYS = st.builds(
    FooterKey,
    key=st.just("k"),
    label=st.sampled_from(("k", "ctrl+x", "⏎", "思")),
    description=st.text("ab é思", min_size=1, max_size=12).map(str.strip).filter(bool),
    action=st.sampled_from(("reload", "zoom", "back", "quit", "keys", "open", "copy", "mark")),
)
PALETTE = FooterKey("ctrl+p", "^p", "palette", "app.command_palette")


class Keys(Screen[None]):
    """Has more keys once something is asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("n", "note", "Note", tooltip="Write it down"),
        Binding("d", "disabled", "Off"),
        *(Binding(key, f"answer('{key}')", "An answer of some length") for key in "abc"),
    ]
    asks = False
    notes = 0

    def compose(self) -> ComposeResult:
        yield KeyFooter()

    def action_note(self) -> None:
        self.notes += 1

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "disabled":
            return None
        return self.asks or action != "answer"


def last_line(screen: Screen[None]) -> str:
    return screen._compositor.render_strips()[-1].text


async def test_added_keys_replace_the_palette_key() -> None:
    app = App[None]()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Keys()
        await app.push_screen(screen)
        await pilot.pause()
        assert last_line(screen).rstrip().endswith("  ctrl+p palette")
        assert last_line(screen).startswith(" q Quit  n Note  d Off ")
        screen.asks = True
        screen.refresh_bindings()
        await pilot.pause()
        await pilot.pause()
        assert "palette" not in last_line(screen)
        assert last_line(screen).startswith(" q Quit n Note ")


async def test_a_click_presses_the_key_under_it_and_a_disabled_key_rings() -> None:
    app = App[None]()
    bells: list[str] = []
    app.bell = lambda: bells.append("bell")  # type: ignore[method-assign]
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Keys()
        await app.push_screen(screen)
        await pilot.pause()
        footer = screen.query_one(KeyFooter)
        note, off = (next(key for key in footer.keys if key.key == name) for name in "nd")
        for column in (note.start, note.end - 1):
            await pilot.click(footer, offset=(column, 0))
        await pilot.pause()
        assert screen.notes == 2
        assert not bells
        await pilot.click(footer, offset=(off.start, 0))
        assert bells == ["bell"]
        await pilot.hover(footer, offset=(note.start, 0))
        assert footer.hovered == note
        assert footer.tooltip == "Write it down"
        await pilot.hover(footer, offset=(60, 0))
        assert footer.hovered is None
        assert footer.tooltip is None


@given(st.lists(KEYS, max_size=9, unique_by=lambda key: key.action), st.integers(1, 140), st.booleans())
def test_keys_do_not_overlap_and_only_what_must_stay_may_pass_the_edge(
    keys: list[FooterKey], width: int, has_palette: bool
) -> None:
    placed = fit_keys(keys, PALETTE if has_palette else None, width)
    assert all(one.end <= other.start for one, other in pairwise(placed))
    assert all(key.width >= key.needed for key in placed)
    names = [key.action for key in placed]
    assert {key.action for key in keys} & {"quit", "keys"} <= set(names)
    assert [name for name in names if name != PALETTE.action] == [key.action for key in keys if key.action in names]
    if placed and placed[-1].end > width:
        assert set(names) <= {"quit", "keys"}


def test_back_and_pending_decisions_are_the_last_keys_dropped() -> None:
    words = {
        "n": "difference",
        "v": "beside",
        "escape": "back",
        "a": "next_decision",
        "q": "quit",
        "question_mark": "keys",
    }
    keys = [FooterKey(key, key[:3], "Something long", action) for key, action in words.items()]
    kept = [[key.action for key in fit_keys(keys, None, width)] for width in (107, 90, 75, 60, 40)]
    assert kept == [
        ["difference", "beside", "back", "next_decision", "quit", "keys"],
        ["difference", "back", "next_decision", "quit", "keys"],
        ["back", "next_decision", "quit", "keys"],
        ["next_decision", "quit", "keys"],
        ["quit", "keys"],
    ]
