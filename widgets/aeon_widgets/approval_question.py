"""A question that waits for a person: its outcome as a headline, what is decided about, and answers named by effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aeon_widgets.text_view import Block

Typed = Literal["", "reason", "run"]
"""What is typed before an answer is sent: nothing, why it is so, or the word `run`."""
REASON: Typed = "reason"
RUN: Typed = "run"


@dataclass(frozen=True)
class Choice:
    """An answer: its key, what it does in this case, and what is sent for it."""

    key: str
    words: str
    answer: str
    typed: Typed = ""


@dataclass(frozen=True)
class Section:
    """A part that is one line until a person opens it."""

    heading: str
    blocks: tuple[Block, ...]
    folded: bool | None = True
    """None: where there is no room for all of it."""
    opens: str = ""
    """What is sent as the answer where a person presses enter on the heading; else that opens or folds the part."""


@dataclass(frozen=True)
class ApprovalQuestion:
    """What is asked. `body` is always in sight, `sections` are opened one by one."""

    kind: str
    """A point of a run (`plan`, `pass`, `tool`, `unknown`, `budget`), or of a workflow: `gate`, `command`, `choice`."""
    headline: str
    body: tuple[Block, ...]
    choices: tuple[Choice, ...]
    sections: tuple[Section, ...] = ()
    hint: str = ""
    """What the field says that a reason is typed into."""
    options: tuple[str, ...] = ()
    """Other answers, of which one is picked."""
    safe: str = ""
    """The option that nothing is lost with."""

    @property
    def text(self) -> str:
        """All that is decided about, without styles."""
        parts = [text for _, text in self.body]
        for section in self.sections:
            parts += ["", section.heading, *(f"  {text}" for _, text in section.blocks)]
        return "\n".join(parts)
