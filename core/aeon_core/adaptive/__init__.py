"""How much thought a task needs (adaptive FR-001 to FR-021).

`profile.TaskProfile` is inferred by a model; `depth.AdaptiveDepth` turns it into cycles and a reasoning mode.
"""
