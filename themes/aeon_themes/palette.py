"""A palette of named colours, and the Textual theme made of it.

Widgets use the variables named in `VARIABLES`: one for each status and severity, for muted text, and for the row under
the cursor. Every text colour keeps a contrast of at least 4.5:1 on each background a palette has, the cursor's too.
"""

from __future__ import annotations

from dataclasses import dataclass

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
)
BACKGROUNDS = ("background", "surface", "panel", "cursor", "cursor_blurred")


@dataclass(frozen=True)
class Palette:
    """The colours of one theme, as `#rrggbb`."""

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
            "aeon-text": self.text,
            "aeon-muted": self.muted,
            "aeon-accent": self.accent,
            "aeon-cursor": self.cursor,
            "aeon-cursor-blurred": self.cursor_blurred,
            "aeon-border": self.border,
        }

    def theme(self) -> Theme:
        """Return the theme, to be registered with an app."""
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
            variables={
                **self.variables(),
                "footer-background": self.panel,
                "footer-foreground": self.text,
                "footer-description-foreground": self.muted,
                "footer-key-foreground": self.accent,
                "block-cursor-background": self.cursor,
                "block-cursor-foreground": self.text,
                "scrollbar": self.border,
                "scrollbar-hover": self.muted,
                "scrollbar-active": self.accent,
                "scrollbar-background": self.background,
                "scrollbar-background-hover": self.background,
                "scrollbar-background-active": self.background,
                "scrollbar-corner-color": self.background,
            },
        )
