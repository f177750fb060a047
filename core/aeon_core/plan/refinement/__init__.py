"""Refining a plan: actions, applied one by one and checked (adaptive FR-009 to FR-015)."""
