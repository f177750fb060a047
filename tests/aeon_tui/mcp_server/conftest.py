from __future__ import annotations

from tests.aeon_tui.cli.conftest import cli

__all__ = ["cli"]
