"""Icons for statuses and levels, each of a different shape, since colour must not be the only sign."""

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
"""A step or model call that is still running when the run has ended is shown as stopped, and as waiting while the run
waits for a decision."""

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
"""The icon and style of each status of a run."""

REPAIRED, FALLBACK, WARNED = "✎", "~", "⚠"
"""Marks of a step: repaired by the supervisor; reasoned about because a tool is missing; the validator objects."""
REFINED = "✎"
"""Precedes the number of times that a step was refined."""
SEVERITY_ICONS: dict[str, str] = {"high": "✖", "medium": "⚠", "low": "·"}
"""The icon of each severity of an issue; the name of a severity is also that of its style."""

SCORE_ICONS: dict[str, str] = {"score-good": "✔", "score-fair": "~", "score-poor": "✖"}
"""The icon of a score that reached, is near, or is far from the required one, by the name of its style."""

UNFINISHED = frozenset({"ttl_expired", "not_converged"})
"""Statuses of a run that ended without converging: its last assessment says what is missing."""

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
    """Return the status to show for a step or a call: nothing runs in a run that has ended or is `asked` about."""
    return status if status != "running" else STOPPED if not live else WAITING if asked else status


def run_style(status: str) -> tuple[str, str]:
    """Return the icon and style name of a run's status; a neutral pair if it is unknown."""
    return RUN_STYLES.get(status, ("?", "muted"))
