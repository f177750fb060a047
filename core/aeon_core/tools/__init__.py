"""Tools: what a model may call.

`base.Tool` is the port, `decorator.tool` makes one of a function, `registry.ToolRegistry` holds those of a run.
"""
