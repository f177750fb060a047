"""Tools that search the project.

`tools.GrepTool` and `tools.GlobTool`, by ripgrep where it is installed.
"""
