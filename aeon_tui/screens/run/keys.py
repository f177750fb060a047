"""The keys of a run's screen, beside those of its panes."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from aeon_tui.screens.context import PAST_RUN_KEYS

RUN_KEYS: list[BindingType] = [
    Binding("tab", "app.focus_next", "Next", show=True, id="pane.next"),
    Binding("shift+tab", "app.focus_previous", "Previous pane", show=False, id="pane.previous"),
    Binding("z", "zoom", "Zoom", id="run.zoom"),
    Binding("f", "follow", "Follow", id="run.follow"),
    Binding("p", "open_tab(1)", "Prompt", show=False, id="run.prompt"),
    Binding("t", "open_tab(2)", "Tool call", show=False, id="run.tool_call"),
    Binding("i", "issues", "Issues of the step", show=False, id="run.issues_of_step"),
    Binding("space", "pause_here", "Pause", id="run.pause"),
    Binding("left_square_bracket", "pass_moment(-1)", "Earlier pass", show=False, id="run.pass_back"),
    Binding("right_square_bracket", "pass_moment(1)", "Later pass", show=False, id="run.pass_on"),
    Binding("left_curly_bracket", "record_moment(-1)", "Earlier record", show=False, id="run.record_back"),
    Binding("right_curly_bracket", "record_moment(1)", "Later record", show=False, id="run.record_on"),
    # Before the plan's own key: in the past, the end that is meant is that of the run.
    Binding("end", "now", "Return to now", show=False, priority=True, id="run.now"),
    Binding("d", "changes_of_plan", "Differences of passes", show=False, id="run.differences"),
    Binding("left_parenthesis", "earlier_pass(-1)", "Compare from earlier", show=False, id="run.from_earlier"),
    Binding("right_parenthesis", "earlier_pass(1)", "Compare from later", show=False, id="run.from_later"),
    Binding("less_than_sign", "later_pass(-1)", "Compare to earlier", show=False, id="run.to_earlier"),
    Binding("greater_than_sign", "later_pass(1)", "Compare to later", show=False, id="run.to_later"),
    Binding("n", "problem(1)", "Next problem", show=False, id="run.next_problem"),
    Binding("N", "problem(-1)", "Previous problem", show=False, id="run.previous_problem"),
    Binding("slash", "search", "Search in the run", show=False, id="run.search"),
    *PAST_RUN_KEYS,
    Binding("C", "app.compare", "Compare", show=False, tooltip="With another run", id="run.compare"),
    Binding("H", "lineage", "Lineage", show=False, tooltip="Its parent and its forks, as a tree", id="run.lineage"),
    Binding(
        "v",
        "beside_parent",
        "Side by side",
        show=False,
        tooltip="With its parent",
        id="run.beside",
    ),
    Binding("escape", "leave_past", "Now", id="run.leave_past"),
    Binding("escape", "back", "Runs", id="run.back"),
]
