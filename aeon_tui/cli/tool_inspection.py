"""The tools of a command that only looks at them: nothing of the project is run unless the command line names it."""

from __future__ import annotations

from argparse import Namespace

from aeon_core.config.keys import listed
from aeon_core.config.schema import RunConfig
from aeon_core.runs import factory
from aeon_core.tools.registry import ToolRegistry
from aeon_tui.cli.output import stderr


def inspected_tools(args: Namespace, config: RunConfig) -> ToolRegistry:
    """Return the configured tools without what would run code of the project or start a server; say what is left out.

    The caller closes them. Raises UsageError for tools that cannot be loaded.
    """
    registry, left_out = factory.inspect_tools(config, listed(",".join(args.tools or ())))
    if left_out:
        names = ", ".join(left_out)
        stderr().line(("note: ", "yellow"), f"the tools {names} are not loaded; add them with --tools")
    return registry
