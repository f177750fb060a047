"""What screens know of the app: what they read, and the keys of its actions. They request the rest with messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from textual.binding import Binding, BindingType
from textual.dom import DOMNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aeon_core.config.loading import LoadedConfig
    from aeon_core.journal.summary import RunSummary
    from aeon_core.judge.agreement import LabelledRuns
    from aeon_tui.settings import UserSettings


class AppContext(Protocol):
    """Implemented by the app."""

    user_settings: UserSettings

    def today(self) -> LoadedConfig:
        """Return the current configuration of all layers. Reads files, so call it on a thread. Raises UsageError."""

    def listed_runs(self) -> Sequence[RunSummary]:
        """Return the runs, newest first. Reads files, so call it on a thread. Raises UsageError."""

    @property
    def unlisted_files(self) -> Sequence[str]:
        """Names of the files in the runs directory that the last `listed_runs` left out: no journals, or damaged."""

    @property
    def labelled_runs(self) -> LabelledRuns:
        """The labelled passes of the runs directory."""


def context_of(node: DOMNode) -> AppContext:
    """Return the app of a screen or a widget as its context."""
    return cast("AppContext", node.app)


PAST_RUN_KEYS: list[BindingType] = [
    Binding("R", "app.past_run('resume')", "Resume", tooltip="Continue where it stopped", id="run.resume"),
    Binding("P", "app.past_run('replay')", "Replay", tooltip="Play it back from its journal", id="run.replay"),
    Binding(
        "L", "app.past_run('label')", "Label", show=False, tooltip="Say whether its result is good", id="run.label"
    ),
    Binding("F", "app.past_run('fork')", "Fork", tooltip="Start a new run from one of its passes", id="run.fork"),
]
"""The keys of a screen that has a `chosen_run`."""
