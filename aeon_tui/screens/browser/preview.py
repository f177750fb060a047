"""The preview beside the list of runs, read on a thread once the cursor rests; the newest request wins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message
from textual.timer import Timer

from aeon_core.errors import AeonError
from aeon_core.units import count, money
from aeon_tui.platform.background_tasks import reason
from aeon_widgets.icons import run_style
from aeon_widgets.pane import message
from aeon_widgets.run_list import LIVE, WORKFLOW
from aeon_widgets.run_preview import Kin, RunPreview, preview_blocks
from aeon_widgets.text import Block, one_line

if TYPE_CHECKING:
    from aeon_core.journal.summary import RunSummary
    from aeon_core.journal.view.model import RunView

REST_SECONDS = 0.15
"""How long the cursor rests before a journal is read."""
LIVE_SECONDS = 3.0
WHOLE = 1024 * 1024
"""The longest journal to read whole, in bytes; of a longer one, the end is read."""


class PreviewPane(RunPreview):
    """Shows the run that was requested last. Posts `Read` with what a journal holds once it has been read."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__()
        self._clock = clock
        self._run: RunSummary | None = None
        self._kin = Kin()
        self._view: RunView | None = None
        self._rest: Timer | None = None

    @message
    class Read(Message):
        """A journal was read."""

        run: RunSummary
        damaged: bool

    def on_mount(self) -> None:
        self.set_interval(LIVE_SECONDS, self._read_live)

    def _read_live(self) -> None:
        """Keep reading a live run, since its row in the list does not show its steps."""
        if self._view is not None and self._run is not None and self._run.status == LIVE and self.screen.is_current:
            self._read()

    def select(self, run: RunSummary | None, kin: Kin) -> None:
        """Show a run, or nothing for None; a run that is shown and has not changed is not read again."""
        if run is None:
            self._run = self._view = None
            self.start([("muted", "No run is selected.")], follow=False)
        elif run != self._run:
            if self._run is None:
                self.start([], follow=False)
            if self._run is None or run.run_id != self._run.run_id:
                self._view = None
            self._run, self._kin = run, kin
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST_SECONDS, self._read)
        elif kin != self._kin:
            self._kin = kin
            self._show()

    def forget(self) -> None:
        """Read the next selection again; until then this pane is hidden."""
        self._run = self._view = None
        if self._rest is not None:
            self._rest.stop()

    def _read(self) -> None:
        run = self._run
        if run is not None:
            self.run_worker(
                lambda: self._read_on_thread(run), thread=True, exclusive=True, group="preview", exit_on_error=False
            )

    def _read_on_thread(self, run: RunSummary) -> None:
        try:
            if run.kind == WORKFLOW:
                blocks = workflow_blocks(run)
                self.app.call_from_thread(lambda: self.start(blocks, follow=False) if run is self._run else None)
                return
            view = view_of(Path(run.path))
        except (AeonError, OSError) as error:
            self.app.call_from_thread(self._apply_problem, run, reason(error))
        else:
            self.app.call_from_thread(self._apply, run, view)

    def _apply(self, run: RunSummary, view: RunView) -> None:
        if run is self._run:
            is_first, self._view = self._view is None, view
            self._show(from_top=is_first)
            self.post_message(self.Read(run, bool(view.damage)))

    def _apply_problem(self, run: RunSummary, text: str) -> None:
        if run is self._run:
            self.start([("high", f"✖ {text}")], follow=False)

    def _show(self, *, from_top: bool = False) -> None:
        if self._run is None or self._view is None:
            return
        blocks = list(preview_blocks(self._run, self._view, self._kin, self._clock()))
        if from_top:
            self.start(blocks, follow=False)
        else:
            self.show(blocks)


def view_of(path: Path) -> RunView:
    """Return the view of a journal; that of a long one is built from its end. Raises AeonError, OSError."""
    from aeon_core.journal.history import open_end
    from aeon_tui.sources.journal import whole_view

    return open_end(path)[0] if path.stat().st_size > WHOLE else whole_view(path)


_WHOLE_WORKFLOW = 16 * 1024 * 1024
"""The longest transcript to read for a preview, in bytes."""
_NAME_AND_WORD = 29
"""Cells of a row's name and word, so that it fits the narrowest preview next to the list."""


def workflow_blocks(run: RunSummary) -> list[Block]:
    """Return the preview of a workflow, from its row in the list and its transcript. Reads: for a thread.

    Raises UsageError, OSError if it cannot be read.
    """
    from aeon_core.journal.reader import read_records
    from aeon_tui.reports.workflow_report import pipeline_rows
    from aeon_tui.sources.workflow import WORKFLOW_ROW, WorkflowState

    icon, style = run_style(run.status)
    waits = f", waits for {one_line(run.waits_for, 40)}" if run.waits_for and run.status == "running" else ""
    blocks: list[Block] = [
        ("bold", run.task[:4_000]),
        (style, f"{icon} {run.status.replace('_', ' ')}{waits}"),
        ("", ""),
    ]
    if Path(run.path).stat().st_size > _WHOLE_WORKFLOW:
        return [*blocks, ("muted", "a long transcript; open it to read it")]
    state, damage = WorkflowState(), list[str]()
    for record in read_records(Path(run.path), damage=damage):
        state.apply(record)
    view = state.view
    if view.end is not None and view.end.get("error"):
        blocks.append(("high", one_line(str(view.end["error"]), 400)))
    spent = (
        f"{money(view.cost_usd)}, {count(view.api_calls, 'call')}, {view.input_tokens + view.output_tokens:,} tokens"
    )
    blocks += [("muted", f"model  {one_line(run.model, 80)}"), ("muted", f"cost   {spent}"), ("", "")]
    for row in pipeline_rows(state, run.status, state.last_ts, in_progress=run.status == "running"):
        if row.key != WORKFLOW_ROW:
            blocks.append((row.style, f"{row.icon} {row.name:<{_NAME_AND_WORD - len(row.word)}} {row.word}".rstrip()))
    return [*blocks, *(("high", f"damaged: {problem}") for problem in [*damage, *state.damage][:3])]
