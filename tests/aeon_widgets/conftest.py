from __future__ import annotations

from tests.headless_app import drawn_frames, parsed_style_sheets, undrawn_frames

__all__ = ["drawn_frames", "parsed_style_sheets", "undrawn_frames"]
