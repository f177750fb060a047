"""The run that is to be followed: it may not be there yet (issue: watch)."""

from __future__ import annotations

import difflib
from pathlib import Path

from aeon_core.journal.listing import find_run, is_path, list_runs
from aeon_core.journal.summary import SUFFIX, journal_entries
from aeon_core.paths import expanded

_NEAR = 0.8
_FEW = 3


class Awaited:
    """A run by its name, as `find_run` takes it; without one, the newest live run, else the newest.

    `find` may be called again and again until the run is there. `words` names it in a sentence.
    """

    def __init__(self, run: str | Path | None, runs_dir: Path) -> None:
        self._run, self._runs_dir = run, runs_dir
        self.words: str = f"a run in {str(runs_dir)!r}"
        if run not in (None, "last"):
            self.words = f"the journal {str(run)!r}" if self._is_path else f"the run {run!r} in {str(runs_dir)!r}"

    @property
    def _is_path(self) -> bool:
        return self._run is not None and is_path(self._run)

    def find(self) -> Path | None:
        """Return the run's journal, None where there is none yet; that of a path need not exist.

        Raises UsageError where the name is the beginning of several runs, or the directory cannot be read.
        """
        if self._run in (None, "last"):
            return self._newest()
        if self._is_path:
            return expanded(self._run or "", "the journal")
        name = str(self._run)
        is_there = not name or any(entry.name.startswith(name) for entry in journal_entries(self._runs_dir))
        return find_run(name, self._runs_dir) if is_there else None

    def _newest(self) -> Path | None:
        runs = list_runs(self._runs_dir)
        live = [run for run in runs if run.status == "running"] if self._run is None else []
        return next((Path(run.path) for run in (*live, *runs)), None)

    def argument(self, path: Path) -> str:
        """Return what names the run of a journal on the command line: its id, or its path if it is elsewhere."""
        return path.stem if path.parent == self._runs_dir else str(path)

    def near(self) -> list[str]:
        """Return run ids that the name may be a misspelling of, the nearest first; few."""
        if self._run in (None, "last") or self._is_path:
            return []
        names = [entry.name.removesuffix(SUFFIX) for entry in journal_entries(self._runs_dir)]
        return difflib.get_close_matches(str(self._run), names, n=_FEW, cutoff=_NEAR)
