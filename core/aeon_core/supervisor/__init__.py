"""Repairing what a model got wrong.

`supervisor.Supervisor`, the `actions` it records, and the `invariants` that a repair must keep.
"""
