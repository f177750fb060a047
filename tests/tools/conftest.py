from __future__ import annotations

from tests.headless_app import parsed_style_sheets, undrawn_frames

__all__ = ["parsed_style_sheets", "undrawn_frames"]
