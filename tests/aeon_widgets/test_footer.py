"""The keys at the foot of a screen fit its width, also when there are more of them than before."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from aeon_widgets.footer import KeyFooter, fit_footer


class Keys(Screen[None]):
    """Has more keys once something is asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        *(Binding(key, f"answer('{key}')", "An answer of some length") for key in "abc"),
    ]
    asks = False

    def compose(self) -> ComposeResult:
        yield KeyFooter()

    def on_resize(self) -> None:
        fit_footer(self)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.asks or action != "answer"


async def test_keys_that_come_take_the_room_of_the_palettes() -> None:
    app = App[None]()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = Keys()
        await app.push_screen(screen)
        await pilot.pause()
        footer = screen.query_one(KeyFooter)
        assert footer.query(".-command-palette")
        screen.asks = True
        screen.refresh_bindings()
        await pilot.pause()
        await pilot.pause()
        assert not footer.query(".-command-palette")
        assert max(key.region.right for key in footer.query("FooterKey")) <= 80
