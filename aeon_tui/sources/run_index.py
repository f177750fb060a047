"""What there is to be listed: the runs of the runs directory, and the workflows of the project."""

from __future__ import annotations

from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.listing import Listing
from aeon_core.journal.summary import WORKFLOW, RunSummary
from aeon_tui.sources.transcripts import transcripts_folder


class RunIndex:
    """Lists again and again what has changed. Workflows are those of the project that the working directory is in."""

    def __init__(self, runs_dir: Path) -> None:
        self._runs = Listing(runs_dir)
        self._workflows = Listing(transcripts_folder(), cache=False)

    def runs(self) -> list[RunSummary]:
        """Return runs and workflows, the newest first. Raises UsageError where the runs directory cannot be read."""
        runs, workflows = self._runs.runs(), self._found_workflows()
        if not workflows:
            return runs
        known = {run.path for run in runs}
        both = [*runs, *(each for each in workflows if each.path not in known)]
        return sorted(both, key=lambda run: (run.started, run.run_id), reverse=True)

    def _found_workflows(self) -> list[RunSummary]:
        try:
            return [each for each in self._workflows.runs() if each.kind == WORKFLOW]
        except UsageError:
            # The list is of runs first of all: a folder of a project that cannot be read does not keep them away.
            return []
