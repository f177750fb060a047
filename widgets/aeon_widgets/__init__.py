"""Aeon's panes for Textual: each is given a `RunView` and knows nothing of the kernel.

An app that uses them registers one of Aeon's themes, or defines the variables of `aeon_themes.Palette.variables`.
"""
