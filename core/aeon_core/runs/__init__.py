"""Starts, resumes, forks and replays runs, and runs many of them as a batch."""
