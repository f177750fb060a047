"""A palette of named colours, and the Textual theme made of it.

Widgets use the variables that `Palette.variables` returns: one for each status, severity and level of a score, for
muted text, and for the row under the cursor. Every text colour keeps a contrast of at least 4.5:1 on each background
that a palette has, the cursor's too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.theme import Theme

TEXT_COLOURS = (
    "text",
    "muted",
    "accent",
    "pending",
    "running",
    "complete",
    "failed",
    "invalid",
    "high",
    "medium",
    "low",
    "score_good",
    "score_fair",
    "score_poor",
)
BACKGROUNDS = ("background", "surface", "panel", "cursor", "cursor_blurred")
COLOURS = (*BACKGROUNDS, "border", *TEXT_COLOURS)
"""The names of all colours of a palette."""


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, each `#rrggbb` (or a colour of the terminal, such as `ansi_red`)."""

    name: str
    dark: bool
    background: str
    surface: str
    panel: str
    cursor: str
    """Background of the selected row in the focused pane."""
    cursor_blurred: str
    """Background of the selected row elsewhere."""
    border: str
    text: str
    muted: str
    accent: str
    pending: str
    running: str
    complete: str
    failed: str
    invalid: str
    high: str
    medium: str
    low: str
    score_good: str
    """A score that reaches what was asked."""
    score_fair: str
    """A score that is near to it."""
    score_poor: str

    def variables(self) -> dict[str, str]:
        """Return the CSS variables that Aeon's widgets use, by name without the dollar sign."""
        return {
            "status-pending": self.pending,
            "status-running": self.running,
            "status-complete": self.complete,
            "status-failed": self.failed,
            "status-invalid": self.invalid,
            "severity-high": self.high,
            "severity-medium": self.medium,
            "severity-low": self.low,
            "score-good": self.score_good,
            "score-fair": self.score_fair,
            "score-poor": self.score_poor,
            "aeon-text": self.text,
            "aeon-muted": self.muted,
            "aeon-accent": self.accent,
            "aeon-cursor": self.cursor,
            "aeon-cursor-blurred": self.cursor_blurred,
            "aeon-border": self.border,
        }

    def textual_variables(self) -> dict[str, str]:
        """Return the variables of Textual's own widgets that are not to be mixed by Textual, by name."""
        return {
            "foreground": self.text,
            "panel-lighten-1": self.panel,
            "text-error": self.high,
            "text-warning": self.medium,
            "text-success": self.complete,
            "text-muted": self.muted,
            "text-disabled": self.muted,
            "footer-background": self.panel,
            "footer-foreground": self.text,
            "footer-description-foreground": self.muted,
            "footer-key-foreground": self.accent,
            "block-cursor-background": self.cursor,
            "block-cursor-foreground": self.text,
            "block-cursor-blurred-background": self.cursor_blurred,
            "block-cursor-blurred-foreground": self.text,
            "input-selection-background": self.accent,
            "input-selection-foreground": self.background,
            "screen-selection-background": self.accent,
            "screen-selection-foreground": self.background,
            "border": self.accent,
            "border-blurred": self.border,
            "scrollbar": self.border,
            "scrollbar-hover": self.muted,
            "scrollbar-active": self.accent,
            "scrollbar-background": self.background,
            "scrollbar-background-hover": self.background,
            "scrollbar-background-active": self.background,
            "scrollbar-corner-color": self.background,
        }

    def theme(self) -> Theme:
        """Return the theme, to be registered with an app."""
        from textual.theme import Theme

        return Theme(
            name=self.name,
            dark=self.dark,
            primary=self.accent,
            secondary=self.muted,
            accent=self.accent,
            warning=self.medium,
            error=self.high,
            success=self.complete,
            foreground=self.text,
            background=self.background,
            surface=self.surface,
            panel=self.panel,
            variables={**self.variables(), **self.textual_variables()},
        )
