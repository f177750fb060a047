"""Tools of MCP servers.

`servers.McpTools` starts the servers and offers their tools; `connection.Server` speaks with one.
"""
