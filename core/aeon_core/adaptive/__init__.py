"""How much thought a task needs (adaptive FR-001 to FR-021).

`profile.TaskProfile`, inferred by `profile_inference`; `depth.AdaptiveDepth` turns it into cycles and a reasoning mode.
"""
