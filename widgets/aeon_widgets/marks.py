"""Icons for statuses and levels, each with a shape of its own: nothing is told by colour alone."""

from __future__ import annotations

STATUS_ICONS: dict[str, str] = {
    "pending": "○",
    "running": "▶",
    "complete": "✔",
    "failed": "✖",
    "invalid": "⊘",
}

CALL_ICONS = {**STATUS_ICONS, "aborted": "◼"}
"""A model call has the statuses of a step, and may have been cut off."""

RUN_STYLES: dict[str, tuple[str, str]] = {
    "running": ("▶", "running"),
    "interrupted": ("…", "medium"),
    "aborting": ("◼", "medium"),
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

LEVELS: dict[str, tuple[str, str]] = {"info": (" ", ""), "warning": ("⚠", "medium"), "error": ("✖", "high")}

VARIABLES: dict[str, str] = {
    **{status: f"$status-{status}" for status in STATUS_ICONS},
    "aborted": "$severity-medium",
    "high": "$severity-high",
    "medium": "$severity-medium",
    "low": "$severity-low",
    "muted": "$aeon-muted",
    "accent": "$aeon-accent",
    "text": "$aeon-text",
}
"""The theme variable behind each style name."""


def run_style(status: str) -> tuple[str, str]:
    """Return icon and style name of a run's status; a neutral pair for one that is not known."""
    return RUN_STYLES.get(status, ("?", "muted"))
