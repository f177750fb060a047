"""What is not drawn in the tests of the app hides no failure of a widget: with `--all`, each change is looked at."""

from __future__ import annotations

import pytest
from textual._compositor import Compositor
from textual.app import App, ComposeResult
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from tests.headless_app import render_contents
from tests.waiting import painted


class Drawn(Widget):
    word = reactive("good")

    def render(self) -> str:
        return {"good": "fine"}[self.word]


class DrawnByLine(Drawn):
    def render_line(self, y: int) -> Strip:
        return Strip.blank(len(self.render()))


@pytest.mark.parametrize("kind", [Drawn, DrawnByLine])
async def test_a_widget_that_fails_for_a_moment_is_found(kind: type[Drawn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compositor, "render_update", render_contents)

    class OneWidget(App[None]):
        def compose(self) -> ComposeResult:
            yield kind()

    async def change_to(word: str) -> None:
        app = OneWidget()
        async with app.run_test() as pilot:
            app.query_one(kind).word = word
            await painted(pilot)
            app.query_one(kind).word = "good"

    await change_to("good")
    with pytest.raises(KeyError, match="bad"):
        await change_to("bad")
