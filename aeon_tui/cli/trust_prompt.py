"""Whether a folder is trusted, asked on the screen before a command opens the app."""

from __future__ import annotations

from pathlib import Path

from aeon_core.config.keys import AppSettings
from aeon_core.config.trust import ProjectTrust
from aeon_tui.app import AeonApp, run_app
from aeon_tui.screens.trust import TrustAnswer, TrustGate


def prompt_for_trust(trust: ProjectTrust, settings: AppSettings, runs_dir: Path) -> TrustAnswer | None:
    """Return what the person answers, None where they leave without an answer."""
    gate = TrustGate(trust)

    def prepare(app: AeonApp) -> None:
        app.apply_settings(settings)
        app.first_screen = gate

    run_app(runs_dir, None, prepare=prepare)
    return gate.answer
