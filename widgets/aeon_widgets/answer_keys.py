"""The answers to a question with their keys, on a line or more; a click is as good as the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static
from typing_extensions import override

_BETWEEN = " · "
_KEY = "answer_key"
Answer = tuple[str, str]
"""A key of the parent's BINDINGS, and what it does."""


class AnswerKeys(Static):
    """Shows for example `a Run another pass · X End here`. An answer is never broken between two lines.

    Where the app has given an action another key, that is shown.
    """

    @dataclass
    class Clicked(Message):
        """The person has clicked the answer that BINDINGS have under that key."""

        key: str

    def __init__(self, answers: Sequence[Answer], *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._answers = list(answers)

    def render(self) -> Content:
        lines = (Content(_BETWEEN).join(map(self._clickable, line)) for line in self._lines(self.size.width))
        return Content("\n").join(lines)

    @override
    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines that the answers take at that width."""
        del container, viewport
        return len(self._lines(width))

    def _lines(self, width: int) -> list[list[Answer]]:
        lines: list[list[Answer]] = [[]]
        for answer in self._answers:
            if lines[-1] and cell_len(_BETWEEN.join(map(self._now, [*lines[-1], answer]))) > width:
                lines.append([])
            lines[-1].append(answer)
        return lines

    def _now(self, answer: Answer) -> str:
        return " ".join((self._key_now(answer[0]), answer[1]))

    def _key_now(self, key: str) -> str:
        """Return the key that an answer has now."""
        panel = self.parent
        assert isinstance(panel, Widget)
        own = {each.id for each in Binding.make_bindings(panel.BINDINGS) if each.key == key}
        bindings = [each.binding for each in self.screen.active_bindings.values() if each.binding.id in own]
        if not bindings or key in [binding.key for binding in bindings]:
            return key
        return self.app.get_key_display(bindings[0])

    def _clickable(self, answer: Answer) -> Content:
        key = Content.styled(self._key_now(answer[0]), "$aeon-accent bold")
        return Content.assemble(key, " ", answer[1]).stylize(Style.from_meta({_KEY: answer[0]}))

    def on_click(self, event: events.Click) -> None:
        key = event.style.meta.get(_KEY)
        if key is not None:
            event.stop()
            self.post_message(self.Clicked(key))
