"""The second workflow: thirteen agents in sequence, with quality gates between them."""
