"""The configuration of runs: its schema, how its layers are loaded and edited, and the trust that a project needs."""
