"""Models of all providers behind one port, a file each.

`base.LLMAdapter` is the port, `connect.connect` returns the adapter of a `PROVIDER:NAME`.
"""

PROVIDERS = ("anthropic", "openai", "bedrock", "llama-cpp", "simulated")
"""What a model's name may begin with. Here, where reading it loads nothing."""
