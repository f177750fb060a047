"""What becomes of a plan when it is refined: actions, applied one by one and checked (adaptive FR-009 to FR-015)."""
