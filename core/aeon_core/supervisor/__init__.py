"""Repairing model output: `supervisor.Supervisor`, its `actions`, and the `invariants` that a repair must keep."""
