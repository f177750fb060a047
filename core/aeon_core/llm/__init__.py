"""Models of all providers behind one port, a file each.

`base.LLMAdapter` is the port, `connect.connect` returns the adapter of a `PROVIDER:NAME`.
"""
