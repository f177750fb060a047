"""The thirteen agents.

`library.AgentLibrary` reads their files; `transforms` and `tools` fit them to the workflow.
"""
