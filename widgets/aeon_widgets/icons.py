"""Icons for statuses and levels, each with a shape of its own: colour is never the only sign."""

from __future__ import annotations

STATUS_ICONS: dict[str, str] = {
    "pending": "○",
    "running": "▶",
    "complete": "✔",
    "failed": "✖",
    "invalid": "⊘",
}

STOPPED = "stopped"
WAITING = "waiting"
ROW_ICONS = {**STATUS_ICONS, STOPPED: "◼", WAITING: "?"}
"""What the record leaves running when the run is over was stopped, whether it is a step or a model call; while the run
waits for a decision, it waits."""

RUN_STYLES: dict[str, tuple[str, str]] = {
    "running": ("▶", "running"),
    "reading …": ("…", "muted"),
    "replaying": ("▶", "running"),
    "paused": ("‖", "medium"),
    "waiting": ("…", "muted"),
    "unreadable": ("✖", "failed"),
    "interrupted": ("…", "medium"),
    "aborting": ("◼", "medium"),
    "waiting for you": ("?", "medium"),
    "waiting for a decision": ("?", "medium"),
    "converged": ("✔", "complete"),
    "accepted": ("✔", "complete"),
    "completed": ("✔", "complete"),
    "aborted": ("◼", "medium"),
    "failed": ("✖", "failed"),
    "cost_ceiling": ("✖", "failed"),
    "not_converged": ("✖", "medium"),
    "ttl_expired": ("✖", "medium"),
}
"""Icon and style of a run's status."""

REPAIRED, FALLBACK, WARNED = "✎", "~", "⚠"
"""Marks of a step: the supervisor replaced it; it was reasoned about for want of a tool; the validator objects."""
REFINED = "✎"
"""Stands before the number of times that a step was refined."""
SEVERITY_ICONS: dict[str, str] = {"high": "✖", "medium": "⚠", "low": "·"}
"""Of an issue, each with a shape of its own; a severity's name is the name of its style, too."""

SCORE_ICONS: dict[str, str] = {"score-good": "✔", "score-fair": "~", "score-poor": "✖"}
"""Of a score against what was asked of it: reached, near to it, far from it; each is the name of its style, too."""

UNFINISHED = frozenset({"ttl_expired", "not_converged"})
"""Statuses of a run that has ended and of which the last assessment says what is wanting."""

LEVELS: dict[str, tuple[str, str]] = {"info": (" ", ""), "warning": ("⚠", "medium"), "error": ("✖", "high")}

VARIABLES: dict[str, str] = {
    **{status: f"$status-{status}" for status in STATUS_ICONS},
    STOPPED: "$severity-medium",
    WAITING: "$severity-medium",
    "high": "$severity-high",
    "medium": "$severity-medium",
    "low": "$severity-low",
    "score-good": "$score-good",
    "score-fair": "$score-fair",
    "score-poor": "$score-poor",
    "muted": "$aeon-muted",
    "accent": "$aeon-accent",
    "text": "$aeon-text",
}
"""The theme variable behind each style name."""


def shown_status(status: str, live: bool, asked: str = "") -> str:
    """Return the status to show of a step or a call: nothing runs in a run that has ended or is `asked` about."""
    return status if status != "running" else STOPPED if not live else WAITING if asked else status


def run_style(status: str) -> tuple[str, str]:
    """Return icon and style name of a run's status; a neutral pair for one that is not known."""
    return RUN_STYLES.get(status, ("?", "muted"))
