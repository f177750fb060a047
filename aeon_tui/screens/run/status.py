"""A run's status, derived from its records and from the process that writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon_core.journal.view.model import RunView
from aeon_tui.screens.pane_screen import WAITING, WAITING_HERE
from aeon_tui.sources.base import RecordSource

if TYPE_CHECKING:
    from aeon_tui.sessions.runner import Runner


def first_view(runner: Runner | None) -> RunView:
    """Return the view before the first record: a run that starts here shows its task and panes from the beginning."""
    if runner is None:
        return RunView()
    job = runner.job
    return RunView(task=job.task, config={"single_pass": job.config.single_pass})


def is_live(view: RunView, source: RecordSource) -> bool:
    """Return whether the run is live, here or in another process."""
    return source.live and view.result is None


def is_being_read(view: RunView, source: RecordSource) -> bool:
    """Return whether a past run is still being read. A view of its end already has the status."""
    return not source.live and not source.ended and view.result is None and not view.whole_from


def status_of(view: RunView, source: RecordSource, runner: Runner | None) -> str:
    """Return the run's status as a word: that of its result, or its current activity."""
    if view.result is not None:
        return str(view.result.status)
    if view.status != "running":
        return view.status  # it has ended, and its result cannot be read
    if runner is not None and runner.aborting:
        return "aborting"
    if runner is not None and runner.broker.waiting is not None:
        return WAITING_HERE
    if is_live(view, source):
        return WAITING if runner is None and view.asked else "running"
    if source.waiting:
        return "waiting"
    if is_being_read(view, source):
        return "reading …"
    return "unreadable" if source.error is not None and view.last_seq < 0 else "interrupted"


def status_then(view: RunView) -> str:
    """Return the status of a run at a past moment."""
    if view.result is not None:
        return str(view.result.status)
    return view.status if view.status != "running" else WAITING if view.asked else "running"


def offers(action: str, view: RunView, *, live: bool) -> bool:
    """Return whether the run can be resumed, replayed, labelled or forked now."""
    if action == "fork":
        return bool(view.steps or view.phases)
    if live or view.last_seq < 0:
        return False
    if action == "label":
        return view.result is not None
    return action != "resume" or view.status == "running" or view.resumable
