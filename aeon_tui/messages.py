"""The messages with which screens request something of the app; only `app.py` handles them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from aeon_widgets.pane import message

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_tui.sessions.run_jobs import NewRunForm, StartRequest

Answered = Callable[[str | None], None]
"""Called in the app with the reason why nothing was started; None if something was, or if the app asks first."""


class SessionChanged(Message):
    """A run or workflow of this app waits for a person, waits no longer, or has ended."""


class ShowRuns(Message):
    """Show the list of runs."""


@message
class OpenJournal(Message):
    """Show the run or workflow of a journal, at the record `seq` if given."""

    path: Path
    seq: int | None = None


@message
class CompareRuns(Message):
    """Show two runs side by side. Without `right`, the app asks for it."""

    left: Path
    right: Path | None = None


@message
class ResumeRun(Message):
    """Resume the run or workflow of a journal."""

    path: Path


@message
class DeleteRun(Message):
    """Ask, then delete a run; `forks` is the number of runs forked from it. Then call `then`."""

    run: RunSummary
    forks: int
    then: Callable[[], object]


@message
class Start(Message):
    """Start a new run, a fork of one, or a workflow."""

    request: StartRequest
    answered: Answered


@message
class ForkWorkflow(Message):
    """Start a new workflow from a gate of another: with `feedback` the gate is rejected, else it is asked again."""

    path: Path
    gate: int
    feedback: str | None
    model: str | None
    """The model, if it is not the parent's."""
    answered: Answered


@message
class KeepDraft(Message):
    """Keep the content of the form for a new run for the next time, or clear it."""

    form: NewRunForm | None


@message
class TrustFolder(Message):
    """Ask for the consent that this folder needs. Then call `then`."""

    then: Callable[[], object]


@message
class RevokeTrust(Message):
    """Revoke every consent to this folder. Then call `then`."""

    then: Callable[[], object]


@message
class TitleTerminal(Message):
    """Set the terminal's title. If `urgent`, also notify a person who looks elsewhere."""

    text: str
    urgent: bool = False
