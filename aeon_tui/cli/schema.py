"""`aeon-tui schema`: JSON Schemas of the public entities."""

from __future__ import annotations

from argparse import Namespace

from aeon_tui.cli.output import stdout


def execute(args: Namespace) -> int:
    """Print a schema, or the names there are, and return 0. Raises UsageError for an unknown name."""
    from aeon_core.schemas import schema, schema_names

    out = stdout()
    if args.name is None:
        for name in schema_names():
            out.line(name)
    else:
        out.json(schema(args.name))
    return 0
