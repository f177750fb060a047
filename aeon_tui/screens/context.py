"""What screens read of the app that shows them. What they request of it are messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

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
        """Return the configuration of all layers as it is now. It reads files: for a thread. Raises UsageError."""

    def listed_runs(self) -> Sequence[RunSummary]:
        """Return the runs of the runs directory, the newest first. It reads files: for a thread. Raises UsageError."""

    @property
    def labelled_runs(self) -> LabelledRuns:
        """The labelled passes of the runs directory."""


def context_of(node: DOMNode) -> AppContext:
    """Return what a screen or a widget reads of its app."""
    return cast("AppContext", node.app)
