"""Tools of MCP servers.

`servers.McpTools` starts the servers and offers their tools; `connection.Connection` speaks with one.
"""
