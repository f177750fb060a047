"""One-time notices about the source of a run's records."""

from __future__ import annotations

from textual.screen import Screen

from aeon_tui.sources.base import RecordSource

SECONDS = 30


class Notices:
    """Says why a source can read no more, and what has become of the process that writes the run, or of its file."""

    def __init__(self, screen: Screen[None], source: RecordSource) -> None:
        self._screen, self._source = screen, source
        self._error_told = False
        self._told = ""

    def tell(self) -> None:
        """Notify of what is new."""
        error, notice = self._source.error, self._source.notice
        if error is not None and not self._error_told:
            self._error_told = True
            self._screen.notify(error.message, severity="error", timeout=SECONDS, markup=False)
        if notice != self._told:
            # What was told before holds no more.
            self._screen.app.clear_notifications()
            self._told = notice
            if notice:
                self._screen.notify(notice, severity="warning", timeout=SECONDS, markup=False)
