"""Aeon's terminal app and command line."""

import os

# The most frames that Textual paints per second. With its default of 60, the effect of a key waits up to 33 ms if
# something else has just been painted. This must be set before Textual is loaded.
os.environ.setdefault("TEXTUAL_FPS", "120")
