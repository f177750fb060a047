"""An agent of the Agent Client Protocol: an editor drives runs over standard input and output (`aeon-tui acp`)."""
