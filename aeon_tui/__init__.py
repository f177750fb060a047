"""Aeon's terminal app and command line."""
