"""What semantic validation found, with filters."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from typing_extensions import override

from aeon_core.journal.view import formatting
from aeon_core.journal.view.formatting import words
from aeon_core.journal.view.model import (
    AdvisoryView,
    CallView,
    IssueView,
    ProfileView,
    RefinementView,
    RepairView,
    RunView,
    StepView,
    advisories_of,
    found_issues,
    issues_of,
    refined_since,
    refinements_of,
)
from aeon_widgets.icons import REFINED, SEVERITY_ICONS
from aeon_widgets.keys import key_of
from aeon_widgets.pane import Item, Pane, PaneMessage, message, pane_css
from aeon_widgets.reply_text import requirement_blocks
from aeon_widgets.text import GAP, Block, Piece, joined, one_line, pretty, spaced, wrap, wrap_hanging
from aeon_widgets.virtual_list import RowsView


def step_change_blocks(view: RunView, step: StepView) -> list[Block]:
    """Return what validation found in a step, and the refinements that changed it."""
    step_id = step.step_id
    first: list[Block] = []
    if step.replaces is not None:
        first = [("muted", f"It replaces {one_line(step.replaces, 40)}, which is invalid.")]
    blocks = _blocks(issues_of(view, step_id), refinements_of(view, step_id), advisories_of(view, step_id))
    return [*first, *blocks] or [("muted", "No issues and no changes.")]


def for_a_person(view: RunView, step: StepView) -> list[Block]:
    """Return why a person should look at a step, if the run says so."""
    return [
        ("medium bold", f"⚠ {formatting.intervention(each)}")
        for each in view.manual_interventions
        if each.step_id == step.step_id
    ]


def calls_change_blocks(view: RunView, calls: Sequence[CallView]) -> list[Block]:
    """Return what was found and changed after the replies to these calls, before the next model call."""
    between = _from_calls_to_the_next(view, calls)
    issues = [(each.pass_number, issue) for each in view.reports if each.seq in between for issue in each.issues]
    refinements = [each for each in view.refinements if each.seq in between]
    advisories = [each for each in view.advisories if each.seq in between]
    return _blocks(issues, refinements, advisories) or [("muted", "No issues and no changes.")]


def repairs_of_calls(view: RunView, calls: Sequence[CallView]) -> list[RepairView]:
    """Return the repairs of the replies to these calls, which belong to no step."""
    between = _from_calls_to_the_next(view, calls)
    return [repair for repair in view.repairs if repair.step_id is None and repair.seq in between]


def _from_calls_to_the_next(view: RunView, calls: Sequence[CallView]) -> range:
    if not calls:
        return range(0)
    later = bisect_right(view.call_seqs, calls[-1].seq)
    return range(calls[0].seq, view.call_seqs[later] if later < len(view.call_seqs) else view.last_seq + 1)


def _blocks(
    issues: Sequence[tuple[int, IssueView]], refinements: Sequence[RefinementView], advisories: Sequence[AdvisoryView]
) -> list[Block]:
    found = [issue_blocks(*each) for each in issues]
    done = map(refinement_blocks, refinements)
    return spaced([*found, *done, [("medium", f"⚠ {formatting.advisory(each)}") for each in advisories]])


def issue_blocks(number: int, issue: IssueView) -> list[Block]:
    """Return an issue that was found in a pass, with its proposed repair."""
    icon, style = (
        SEVERITY_ICONS.get(issue.severity, "?"),
        issue.severity if issue.severity in SEVERITY_ICONS else "muted",
    )
    return [
        (f"{style} bold", f"━━ {icon} {formatting.issue_head(issue)} · pass {number}"),
        ("", issue.description),
        ("muted", f"→ {issue.repair}" if issue.repair else "No repair is proposed."),
    ]


def refinement_blocks(shown: RefinementView) -> list[Block]:
    """Return a refinement: why it was needed, what it changed, and the steps before and after."""
    icon, outcome, style = ("✔", "accepted", "complete") if shown.accepted else ("✖", "refused", "failed")
    what = f"{icon} {formatting.refinement_words(shown)}, {outcome}"
    blocks: list[Block] = [
        (f"{style} bold", f"━━ {what} · pass {shown.pass_number}"),
        ("muted", f"because: {formatting.refinement_cause(shown)}"),
    ]
    if shown.explanation:
        blocks.append(
            ("" if shown.accepted else "medium", f"{'done' if shown.accepted else 'why not'}: {shown.explanation}")
        )
    if change := formatting.refinement_change(shown):
        blocks.append(("", f"changed: {change}"))
    for name, steps in (("before", shown.before), ("after", shown.after)):
        if steps:
            blocks += [("accent", name), ("", "\n".join(map(pretty, steps)))]
    return blocks


def profile_blocks(profiles: Sequence[ProfileView]) -> list[Block]:
    """Return every version of the profile, the current one first, with its reasoning mode, cycles and cause."""
    versions = list(zip([None, *profiles], profiles, strict=False))
    return spaced(_profile(older, shown, last=shown is profiles[-1]) for older, shown in reversed(versions))


def _profile(older: ProfileView | None, shown: ProfileView, *, last: bool) -> Iterator[Block]:
    mode = f"{formatting.words(shown.reasoning_mode)} reasoning" if shown.reasoning_mode else ""
    cycles = f"{shown.allocated_ttl:,} cycles" if shown.allocated_ttl is not None else ""
    head = f"━━ profile {shown.version} · from pass {shown.pass_number} on"
    yield "accent bold", joined(head, mode, cycles)
    yield "medium", f"why: {formatting.cause(shown)}"
    if older is None or shown.dimensions != older.dimensions:
        yield from (
            ("", f"{formatting.words(name)}: {one_line(value, 40)}") for name, value in shown.dimensions.items()
        )
        yield "muted", f"inferred: {shown.raw_inference}"
    if last and shown.requirements:
        yield from (GAP, *requirement_blocks(shown.requirements))


_LEAST = 2
"""The least rows of an issue: its heading, and the beginning of its description."""
_ROOMY = 60
"""The width from which an issue's description is next to its type."""

Found = tuple[int, IssueView]
"""The number of a pass and an issue that was found in it."""


class IssuesPane(RowsView, Pane):
    """The issues of the last report or of all, the highest severity first. Enter goes to the step of an issue."""

    HELP_TITLE = "Issues"
    RECORDS: ClassVar[frozenset[str]] = frozenset({"validation", "refinement"})

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("v", "severity", "Severity", id="issues.severity"),
        Binding("V", "type", "Type", id="issues.type"),
        Binding("I", "all", "All passes", id="issues.all"),
    ]

    @message
    class Opened(PaneMessage):
        """The person wants to see the step of an issue: `issue.step_id`, which is not None."""

        issue: IssueView

    DEFAULT_CSS = pane_css("IssuesPane")

    def __init__(self) -> None:
        super().__init__()
        self._view = RunView()
        self._shown: list[Found] = []
        self._rows: list[tuple[int, int]] = []
        """For each row, the index of its issue among those shown, and the row's index within that issue."""
        self._most = _LEAST
        """The most rows of an issue."""
        self._refined: set[str] = set()
        self._severity = self._type = ""
        self._all_passes = False
        self.pane_title = "Issues"

    @property
    def item(self) -> Item | None:
        """The issue under the cursor, with its proposed repair."""
        if not self._shown:
            return None
        number, issue = self._shown[self._rows[self.cursor][0]]
        return Item("the issue", "\n".join(text for _, text in issue_blocks(number, issue)))

    def update_view(self, view: RunView) -> None:
        """Show the issues found so far."""
        self._view = view
        ever = found_issues(view)
        found = ever if self._all_passes else self._found()
        self._refined = refined_since(view)
        severity, kind = self._severity, self._type
        self._shown = [each for each in found if severity in ("", each[1].severity) and kind in ("", each[1].type)]
        self.where_empty = self._where_empty(len(found), len(ever))
        self._lay_out()
        self.pane_title = self._title(len(found), len(ever))

    def _found(self) -> list[Found]:
        if self._all_passes:
            return found_issues(self._view)
        return [(report.pass_number, issue) for report in self._view.reports[-1:] for issue in report.issues]

    def _title(self, found: int, ever: int) -> str:
        filters = [one_line(self._severity, 10), words(self._type)] if self._severity or self._type else []
        number = f"{len(self._shown)} of {found}" if filters else f"{found}"
        place = "all passes" if self._all_passes else ""
        if self._view.reports and not self._all_passes:
            more = f" ({ever} in all)" if ever > len(self._view.issues) else ""
            place = f"pass {self._view.reports[-1].pass_number}{more}"
        return joined(f"Issues {number}", *filters, place)

    def _where_empty(self, found: int, ever: int) -> Sequence[str]:
        if found:
            return [
                "No issues match the filter.",
                f"Press {key_of(self, 'issues.severity')} or {key_of(self, 'issues.type')} to change it.",
            ]
        if not self._view.reports:
            return ["Not validated yet."]
        earlier = not self._all_passes and ever
        hint = [f"Press {key_of(self, 'issues.all')} for those of all passes."] if earlier else []
        return ["No issues found.", *hint]

    @override
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("severity", "type"):
            return bool(self._found())
        return bool(found_issues(self._view)) if action == "all" else super().check_action(action, parameters)

    def action_severity(self) -> None:
        """Show only the issues of the next severity found; after the last one, all again."""
        there = [name for name in SEVERITY_ICONS if any(issue.severity == name for _, issue in self._found())]
        self._severity = _next(self._severity, there)
        self._refresh_rows()

    def action_type(self) -> None:
        """Show only the issues of the next type found; after the last one, all again."""
        self._type = _next(self._type, sorted({issue.type for _, issue in self._found()}))
        self._refresh_rows()

    def action_all(self) -> None:
        """Switch between the issues of every pass and those of the last report."""
        self._all_passes = not self._all_passes
        self._refresh_rows()

    def _refresh_rows(self) -> None:
        self.cursor = 0
        self.update_view(self._view)

    def go_to(self, step_id: str) -> bool:
        """Select the first issue of a step, removing filters that hide it. Return whether there is one."""
        if all(issue.step_id != step_id for _, issue in found_issues(self._view)):
            return False
        if self._first_of(step_id) is None:
            self._severity = self._type = ""
            self._all_passes = all(issue.step_id != step_id for issue in self._view.issues)
            self._refresh_rows()
        first = self._first_of(step_id) or 0
        self.cursor = next(row for row, (at, _) in enumerate(self._rows) if at == first)
        return True

    def _first_of(self, step_id: str) -> int | None:
        return next((number for number, (_, issue) in enumerate(self._shown) if issue.step_id == step_id), None)

    @override
    def on_resize(self) -> None:
        self._lay_out()
        super().on_resize()

    def _lay_out(self) -> None:
        """Give each issue the rows that it needs, as far as there is room for more than two of each."""
        width, height = self.scrollable_content_region.size
        needed, self._most = [_LEAST] * len(self._shown), _LEAST
        if sum(needed) < height:
            needed = [len(self._rows_of(*found, width)) for found in self._shown]
            self._most = max(needed, default=_LEAST)
            while self._most > _LEAST and sum(min(rows, self._most) for rows in needed) > height:
                self._most -= 1
        self._rows = [(at, row) for at, rows in enumerate(needed) for row in range(min(rows, self._most))]
        self.set_line_count(len(self._rows))
        self.cursor = min(self.cursor, max(0, self.line_count - 1))

    @override
    def pieces(self, index: int, width: int) -> Iterable[Piece]:
        at, row = self._rows[index]
        rows = _cut(self._rows_of(*self._shown[at], width), self._most)
        return rows[row] if row < len(rows) else []  # it may be drawn at a new width before the rows are counted again

    def _rows_of(self, number: int, issue: IssueView, width: int) -> list[list[Piece]]:
        """Return the rows of an issue: its heading, its description, and the proposed repair."""
        head, text = list(self._head(number, issue)), described(issue)
        repair = one_line(issue.repair) or "no repair is proposed"
        indent = 5 if width >= _ROOMY else 3
        if width >= _ROOMY and sum(cell_len(part) for part, _ in head) + 2 + cell_len(text) <= width:
            rows = [[*head, (": ", "muted"), (text, "")]]
        else:
            rows = [head, *([(" " * indent, ""), (line, "")] for line in wrap(text, width - indent))]
        return [*rows, *([(" " * indent, ""), (line, "muted")] for line in wrap_hanging(f"→ {repair}", width - indent))]

    def _head(self, number: int, issue: IssueView) -> Sequence[Piece]:
        style = issue.severity if issue.severity in SEVERITY_ICONS else "muted"
        place = f"{one_line(issue.step_id, 30)} " if issue.step_id else ""
        refined = issue.step_id in self._refined and any(issue is each for each in self._view.issues)
        return [
            (f" {SEVERITY_ICONS.get(issue.severity, '?')} {one_line(issue.severity, 10)} ", style),
            (f"pass {number} · " if self._all_passes else "", "muted"),
            (place, "bold"),
            (words(issue.type), "muted"),
            (f" {REFINED} refined" if refined else "", "accent"),
        ]

    @override
    def action_choose(self) -> None:
        """Ask for the step of the issue."""
        if self._rows and (issue := self._shown[self._rows[self.cursor][0]][1]).step_id is not None:
            self.post_message(self.Opened(self, issue))


def _cut(rows: list[list[Piece]], most: int) -> list[list[Piece]]:
    """Return the first rows, with an ellipsis at the end of the last if some are left out."""
    if len(rows) <= most:
        return rows
    *lead, (text, style) = rows[most - 1]
    return [*rows[: most - 1], [*lead, (f"{text} …", style)]]


def described(issue: IssueView) -> str:
    """Return an issue's description without a step id at its beginning, or a speaker and colon before that."""
    text = one_line(issue.description)
    if issue.step_id is None:
        return text
    name = re.escape(one_line(issue.step_id, 30))
    return re.sub(rf"\A([^:]{{1,40}}: )?(the )?(step )?['\"“`]?{name}['\"”`]?:? +", "", text, flags=re.IGNORECASE)


def summary(view: RunView) -> list[Piece]:
    """Return on one line the number of issues of each severity in the last report."""
    if not view.reports:
        return [("not validated yet", "muted")]
    counts = [(name, sum(issue.severity == name for issue in view.issues)) for name in SEVERITY_ICONS]
    return [(f"{SEVERITY_ICONS[name]}{number} ", name) for name, number in counts if number] or [("none", "muted")]


def _next(chosen: str, there: Sequence[str]) -> str:
    """Return the next name, cycling through no name (empty) and those in `there`."""
    circle = ["", *there]
    return circle[(circle.index(chosen) + 1) % len(circle)] if chosen in circle else ""
