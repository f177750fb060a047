"""A server of the Model Context Protocol: other agents run, check and read runs (`aeon-tui mcp-serve`)."""
