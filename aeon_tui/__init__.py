"""Aeon's terminal app and command line."""

import os

# How often a second Textual paints at most. With its own 60, what a key does waits up to two such periods, 33 ms, where
# something else has just been painted. It has to be said before Textual is loaded.
os.environ.setdefault("TEXTUAL_FPS", "120")
