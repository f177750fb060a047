"""`aeon-tui tools`: the tools that a plan's steps can call."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from aeon_core.config.keys import listed
from aeon_core.config.schema import RunConfig
from aeon_core.runs import factory
from aeon_core.tools.registry import ToolRegistry
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, stderr, stdout
from aeon_tui.platform.stdio_capture import capture_stdio


def inspected_tools(args: Namespace, config: RunConfig) -> ToolRegistry:
    """Return the configured tools without those that would run project code or start a server; report what is left out.

    The caller closes them. Raises UsageError for tools that cannot be loaded.
    """
    registry, left_out = factory.inspect_tools(config, listed(",".join(args.tools or ())))
    if left_out:
        names = ", ".join(left_out)
        stderr().line(("note: ", "yellow"), f"the tools {names} are not loaded; add them with --tools")
    return registry


def execute(args: Namespace) -> int:
    """Print the registered tools and return 0. Raises UsageError for tools that cannot be loaded."""
    config = options.load(args).config
    with capture_stdio():
        registry = inspected_tools(args, config)
        exported = registry.export_tools_for_llm()
        asking = {tool.name for tool in registry if tool.needs_approval}
        registry.close()
    out = stdout()
    if args.json:
        out.json(exported)
        return 0
    for index, tool in enumerate(exported):
        if index:
            out.line()
        _print(out, tool, asks=tool["name"] in asking)
    return 0


def _print(out: OutputStream, tool: dict[str, Any], *, asks: bool) -> None:
    out.line((tool["name"], "bold"), (f"  {tool['effect']}{', needs approval' if asks else ''}", "dim"))
    out.block(tool["description"], indent="  ")
    for label, schema in (("takes", tool["input_schema"]), ("gives", tool["output_schema"])):
        out.line(f"  {label}  ", _shape(schema))
    for example in tool["examples"]:
        out.line(("  e.g.   ", "dim"), (json.dumps(example, ensure_ascii=False), "dim"))


def _shape(schema: Any) -> str:
    """Return the fields of an object on one line; any other schema as it is."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if properties == {}:
        return "nothing"
    if not isinstance(properties, dict):
        return json.dumps(schema, ensure_ascii=False)
    required, named = schema.get("required", []), schema.get("$defs")
    kinds = {name: _kind(value, named if isinstance(named, dict) else {}) for name, value in properties.items()}
    return ", ".join(f"{name}{'' if name in required else '?'}: {kind}" for name, kind in kinds.items())


def _kind(schema: Any, named: dict[str, Any]) -> str:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _kind(named.get(str(schema["$ref"]).rpartition("/")[2]), {})  # no further: it may name itself
        if isinstance(schema.get("anyOf"), list):
            return " | ".join(dict.fromkeys(_kind(each, named) for each in schema["anyOf"]))
        if isinstance(schema.get("enum"), list):
            return " | ".join(str(value) for value in schema["enum"])
        if "type" in schema:
            kinds = schema["type"]
            return " | ".join(map(str, kinds)) if isinstance(kinds, list) else str(kinds)
    return "any"
