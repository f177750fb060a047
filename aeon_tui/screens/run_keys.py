"""The keys of a run's screen, beside those of its panes."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from aeon_tui.run_actions import RUN_ACTIONS

RUN_KEYS: list[BindingType] = [
    Binding("tab", "app.focus_next", "Next", show=True),
    Binding("shift+tab", "app.focus_previous", "Previous pane", show=False),
    Binding("z", "zoom", "Zoom"),
    Binding("f", "follow", "Follow"),
    Binding("o", "tab(0)", "Output", show=False),
    Binding("p", "tab(1)", "Prompt", show=False),
    Binding("t", "tab(2)", "Tool call", show=False),
    Binding("r", "tab(3)", "Repairs of the step", show=False),
    Binding("c", "tab(4)", "Changes of the step", show=False),
    Binding("i", "issues", "Issues of the step", show=False),
    Binding("1", "pane(1)", "Plan", show=False),
    Binding("2", "pane(2)", "Step", show=False),
    Binding("3", "pane(3)", "Log", show=False),
    Binding("4", "pane(4)", "Repairs", show=False),
    Binding("5", "pane(5)", "Answer", show=False),
    Binding("6", "pane(6)", "Decision", show=False),
    Binding("7", "pane(7)", "Issues", show=False),
    Binding("8", "pane(8)", "Convergence", show=False),
    Binding("9", "pane(9)", "TTL", show=False),
    Binding("slash", "search", "Search in the run", show=False),
    Binding("x", "hide_guide", "Hide the guide", show=False),
    *RUN_ACTIONS,
    Binding("escape", "back", "Runs"),
]
