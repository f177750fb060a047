"""A run that is gone on with, in the app or headless."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import UsageError
from aeon_core.journal.view.formatting import words
from aeon_tui.sessions.run_jobs import Kernel, OnDelta, OnLine, is_paced, kernel_parts
from aeon_tui.sessions.run_options import (
    approval_points,
    merge_overrides,
    resumed_approval_points,
    started_of,
    usable_model,
)
from aeon_tui.sources.base import ReadAheadSource, Records, read_journal
from aeon_tui.sources.live import LiveSource

if TYPE_CHECKING:
    from aeon_core.approvals.pending import Approver
    from aeon_core.config.loading import LoadedConfig
    from aeon_core.config.schema import RunConfig
    from aeon_core.tools.registry import ToolRegistry

_WHO_AND_WHERE = frozenset({"model", "base_url", "tools", "approve", "wait", "project_root", "runs_dir"})
"""What may be overridden in addition to the kernel's options: it changes nothing that is recorded."""


@dataclass
class ResumeJob:
    """A run that continues after the end of its journal. `tools` default to those of the configuration.

    `options` are overrides: `approve`, for example, is what the user is asked about from here on.
    """

    path: Path
    task: str
    config: RunConfig
    options: Mapping[str, Any]
    tools: ToolRegistry | None = None
    guide: str = ""
    paced: bool = False
    """Whether replies take a moment to watch."""

    def prepare(self) -> None:
        """Load the tools, and check that the model can be used: what would fail the run is reported before it starts.

        Raises UsageError and ModelUnavailableError.
        """
        from aeon_core.config.journal_trust import remember_run
        from aeon_core.runs.factory import build_tools

        usable_model(self.config).close()
        self.tools = build_tools(self.config)
        remember_run(started_of(self.path), self.config)

    def journal_in(self, _runs_dir: Path) -> Path:
        """Return the run's own journal."""
        return self.path

    def source(self, journal: Path) -> LiveSource:
        """Return a source that begins with what the journal holds."""
        return resumed_source(journal)

    def build(self, journal: Path, on_line: OnLine, on_delta: OnDelta | None, approver: Approver | None) -> Kernel:
        """Return what continues the run; its journal is locked from here on."""
        from aeon_core.approvals.inbox import forget_left
        from aeon_core.runs.resume import Resumption

        with contextlib.suppress(OSError):
            forget_left(journal)
        with kernel_parts(self, on_line, approver, self.options.get("approve")) as parts:
            return Resumption(journal, **parts, options=self.options, on_delta=on_delta)


def resumed_source(journal: Path) -> LiveSource:
    """Return a source of the journal of a run, followed by the lines of the kernel that continues it.

    An ending that is taken back is not shown: the records from it on are left out from the first.
    """
    return LiveSource(journal, first=ReadAheadSource(journal, read=retained_records))


def retained_records(path: Path, damage: list[str]) -> Records:
    """Yield the records of a journal up to where a resume continues, long texts in full."""
    ends_at = _last_told(path).get("resumes_at")
    for record in read_journal(path, damage):
        if ends_at is not None and record["seq"] >= ends_at:
            return
        yield record


def _last_told(path: Path) -> dict[str, Any]:
    """Return the last record that holds the run's state, texts by reference. Raises UsageError."""
    from aeon_core.journal.reader import tail
    from aeon_core.journal.summary import last_told

    return last_told(tail(path))


@dataclass(frozen=True)
class Ended:
    """How a run has ended for good."""

    status: str
    exit_code: int

    def __str__(self) -> str:
        return f"the run ended as {words(self.status)}; there is nothing left to do"


def ended_for_good(path: Path) -> Ended | None:
    """Return how a run has ended if there is nothing to continue, else None. Raises UsageError."""
    from aeon_core.entities import EXIT_CODES
    from aeon_core.journal.values import dict_of, int_of

    last = _last_told(path)
    result = last.get("result")
    if last.get("type") != "run_finished" or last.get("resumes_at") is not None or not isinstance(result, dict):
        return None
    status = str(result.get("status"))
    error = dict_of(result.get("error")) or {}
    return Ended(status, int_of(error.get("exit_code"), EXIT_CODES.get(status, 1)))


def resume_job(path: Path, today: LoadedConfig, said: Mapping[str, Any], *, in_app: bool) -> ResumeJob:
    """Return the job that continues a run: with its own options, overridden by those `said`.

    In the app a person is asked about passes and about what a rule, the budget or a crash leaves open, unless a
    configuration says otherwise; elsewhere about nothing that is not said today: nobody might be there to answer.
    What the run stopped over is asked about again, unless `said` leaves it out.
    What the command line says has passed `check_said`. Raises UsageError where the journal names options that nobody
    knows.
    """
    from aeon_core.config.journal_trust import recorded_rules
    from aeon_core.journal.reader import read_records
    from aeon_core.runs.fork import forked_config
    from aeon_core.runs.resume import OPTIONS

    started, recorded = started_of(path), forked_config(path)
    options = {name: value for name, value in said.items() if name in OPTIONS}
    inherits = "approve" not in said
    options["approve"] = (
        resumed_approval_points(today, path, in_app=in_app) if inherits else approval_points(today, in_app=in_app)
    )
    if in_app:
        options.setdefault("on_unknown", today.config.on_unknown if "on_unknown" in today.sources else "ask")
    task = str(started["task"])
    config = merge_overrides(recorded, started, today, said, recorded_rules(read_records(path, plans=False)))
    return ResumeJob(path, task, config, options, paced=in_app and is_paced(task, recorded, config))


def check_said(names: Iterable[str]) -> None:
    """Raise UsageError for a command-line option that a resume cannot override: the run began with it."""
    from aeon_core.runs.resume import OPTIONS

    for name in names:
        if name not in _WHO_AND_WHERE and name not in OPTIONS:
            raise UsageError(f"--{name.replace('_', '-')} cannot change when a run is resumed; fork the run instead")
