"""A document of a workflow, rendered as Markdown; nothing in it becomes a link or our own markup."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from aeon_widgets.pane import Item, Pane, message, pane_css
from aeon_widgets.text_view import TextView


class WorkflowArtifact(TextView, Pane):
    """Shows the current content of one file; left and right go to the others."""

    HELP_TITLE = "Artifact"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "other(-1)", "Previous artifact", show=False, id="workflow.artifact_before"),
        Binding("right,l", "other(1)", "Next artifact", show=False, id="workflow.artifact_next"),
    ]

    @message
    class OtherWanted(Message):
        """The person wants to see another of the files."""

        by: int

    DEFAULT_CSS = pane_css("WorkflowArtifact")

    def __init__(self) -> None:
        super().__init__()
        self._file = ""
        self.pane_title = "Artifact"

    @property
    def item(self) -> Item | None:
        return Item(self._file or "the text", self.source, ".md")

    def action_other(self, by: int) -> None:
        """Go to a neighbouring file."""
        self.post_message(self.OtherWanted(by))

    def show_file(self, name: str, content: str, more: str = "") -> None:
        """Show a file's content, keeping the place if it is the same file; `more` says which others there are."""
        blocks = [("markdown", content)]
        if name == self._file:
            self.show(blocks)
        else:
            self._file = name
            self.start(blocks, follow=False)
        self.pane_title = name
        self.border_subtitle = more

    def show_nothing(self, why: str) -> None:
        """Say why there is nothing to show."""
        self._file = ""
        self.pane_title, self.border_subtitle = "Artifact", ""
        self.start([("muted", why)], follow=False)
