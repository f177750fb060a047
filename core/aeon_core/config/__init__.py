"""The configuration of runs: its schema, loading and editing its layers, and trust in a project's files."""
