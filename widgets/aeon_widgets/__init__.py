"""Aeon's panes for Textual: each is given a `RunView` and knows nothing of the kernel.

An app of your own shows a run's journal with a few lines:

    from pathlib import Path

    from aeon_core.journal.reader import read_records
    from aeon_core.journal.view.reducer import fold
    from aeon_themes import PALETTES
    from aeon_widgets import PlanTree
    from textual.app import App, ComposeResult


    class Plan(App[None]):
        def __init__(self, journal: Path) -> None:
            super().__init__()
            self.view = fold(read_records(journal))
            self.register_theme(PALETTES[0].theme())
            self.theme = PALETTES[0].name

        def compose(self) -> ComposeResult:
            yield PlanTree()

        def on_mount(self) -> None:
            self.query_one(PlanTree).update_view(self.view)


    Plan(Path("20261120-093000-a1b2c3.jsonl")).run()

To show a run as it continues, call `reducer.apply(view, record)` and `update_view` again for each new record. In
a theme that is not Aeon's, have the app's `get_theme_variable_defaults` return
`aeon_themes.fallback_variables(self.current_theme)`.
In a checkout, `./dev widget plan_tree` shows that widget, or any other, on a recorded run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aeon_widgets.approval_panel import AnswerKeys as AnswerKeys
    from aeon_widgets.approval_panel import ApprovalPanel as ApprovalPanel
    from aeon_widgets.call_rows import RowKey as RowKey
    from aeon_widgets.compare_rows import ComparedRun as ComparedRun
    from aeon_widgets.compare_rows import compare as compare
    from aeon_widgets.compare_view import CompareHeader as CompareHeader
    from aeon_widgets.compare_view import CompareView as CompareView
    from aeon_widgets.convergence import ConvergencePane as ConvergencePane
    from aeon_widgets.footer import KeyFooter as KeyFooter
    from aeon_widgets.issues import IssuesPane as IssuesPane
    from aeon_widgets.log_pane import LogPane as LogPane
    from aeon_widgets.match_list import MatchList as MatchList
    from aeon_widgets.outcome import Outcome as Outcome
    from aeon_widgets.pane import Pane as Pane
    from aeon_widgets.pane import RailLine as RailLine
    from aeon_widgets.pass_line import PassLine as PassLine
    from aeon_widgets.pass_line import Scrubber as Scrubber
    from aeon_widgets.plan_tree import PlanTree as PlanTree
    from aeon_widgets.repairs import RepairsPane as RepairsPane
    from aeon_widgets.run_header import RunHeader as RunHeader
    from aeon_widgets.run_header import RunPosition as RunPosition
    from aeon_widgets.run_list import RunLine as RunLine
    from aeon_widgets.run_list import RunList as RunList
    from aeon_widgets.run_list import RunListHeader as RunListHeader
    from aeon_widgets.run_list import as_tree as as_tree
    from aeon_widgets.run_preview import Kin as Kin
    from aeon_widgets.run_preview import RunPreview as RunPreview
    from aeon_widgets.run_preview import preview_blocks as preview_blocks
    from aeon_widgets.step_pane import StepPane as StepPane
    from aeon_widgets.tally import HeadLine as HeadLine
    from aeon_widgets.tally import Tally as Tally
    from aeon_widgets.tally import TallyHeader as TallyHeader
    from aeon_widgets.text_fields import FilterLine as FilterLine
    from aeon_widgets.text_view import TextView as TextView
    from aeon_widgets.ttl_gauge import TTLGauge as TTLGauge
    from aeon_widgets.virtual_list import LinesView as LinesView
    from aeon_widgets.virtual_list import RowsView as RowsView


_PUBLIC = {
    "approval_panel": ("AnswerKeys", "ApprovalPanel"),
    "call_rows": ("RowKey",),
    "compare_rows": ("ComparedRun", "compare"),
    "compare_view": ("CompareHeader", "CompareView"),
    "convergence": ("ConvergencePane",),
    "footer": ("KeyFooter",),
    "issues": ("IssuesPane",),
    "log_pane": ("LogPane",),
    "match_list": ("MatchList",),
    "outcome": ("Outcome",),
    "pane": ("Pane", "RailLine"),
    "pass_line": ("PassLine", "Scrubber"),
    "plan_tree": ("PlanTree",),
    "repairs": ("RepairsPane",),
    "run_header": ("RunHeader", "RunPosition"),
    "run_list": ("RunLine", "RunList", "RunListHeader", "as_tree"),
    "run_preview": ("Kin", "RunPreview", "preview_blocks"),
    "step_pane": ("StepPane",),
    "tally": ("HeadLine", "Tally", "TallyHeader"),
    "text_fields": ("FilterLine",),
    "text_view": ("TextView",),
    "ttl_gauge": ("TTLGauge",),
    "virtual_list": ("LinesView", "RowsView"),
}
"""The public names of each module."""
if not TYPE_CHECKING:  # see aeon_core
    __all__, __getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
