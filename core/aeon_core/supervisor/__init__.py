"""Repairs model output: `supervisor.Supervisor`, and the `invariants` that a repair must keep."""
