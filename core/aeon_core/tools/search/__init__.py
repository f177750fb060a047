"""Tools that search the project: `tools.GrepTool` and `tools.GlobTool`."""
