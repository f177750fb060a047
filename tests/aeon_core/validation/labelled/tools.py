"""The tools of the labelled plans: what an assistant for mixed work would have."""

from __future__ import annotations

from typing import Any

from aeon_core.tools.base import Effect, Tool
from aeon_core.tools.registry import ToolRegistry, default_registry

_TEXT: dict[str, Any] = {"type": "string"}
_INTEGER: dict[str, Any] = {"type": "integer"}
_NUMBER: dict[str, Any] = {"type": "number"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}


def _one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


class _Declared(Tool):
    """A tool that is only looked at."""

    def __init__(self, name: str, description: str, effect: Effect, properties: dict[str, Any]) -> None:
        self.name = name
        self.description = description
        self.effect = effect
        self.input_schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        self.output_schema = {"type": "object"}

    def invoke(self, **arguments: Any) -> dict[str, Any]:
        raise AssertionError("a labelled plan is never run")


_TOOLS = (
    _Declared("read_file", "Reads a text file and returns its content.", "pure", {"path": _TEXT}),
    _Declared("write_file", "Writes text to a file.", "idempotent", {"path": _TEXT, "content": _TEXT}),
    _Declared("delete_file", "Deletes a file or a folder.", "unsafe", {"path": _TEXT}),
    _Declared("list_directory", "Lists the files in a folder.", "pure", {"path": _TEXT}),
    _Declared("run_tests", "Runs the automated tests of a target.", "unsafe", {"target": _TEXT}),
    _Declared("Bash", "Runs a shell command.", "unsafe", {"command": _TEXT}),
    _Declared("http_get", "Fetches the content of a URL.", "pure", {"url": _TEXT}),
    _Declared("sql_query", "Runs a query on a database.", "unsafe", {"database": _TEXT, "query": _TEXT}),
    _Declared("send_email", "Sends an e-mail.", "unsafe", {"to": _TEXT, "subject": _TEXT, "body": _TEXT}),
    _Declared(
        "translate_text", "Translates a text into a language.", "pure", {"text": _TEXT, "target_language": _TEXT}
    ),
    _Declared(
        "convert_units",
        "Converts a value between units.",
        "pure",
        {"value": _NUMBER, "from_unit": _TEXT, "to_unit": _TEXT},
    ),
    _Declared(
        "sort_list", "Sorts a list of items.", "pure", {"items": _TEXTS, "order": _one_of("ascending", "descending")}
    ),
    _Declared(
        "statistics",
        "Computes a statistical measure of a column.",
        "pure",
        {"column": _TEXT, "measure": _one_of("mean", "median", "stdev", "min", "max")},
    ),
    _Declared(
        "plot_chart",
        "Draws a chart and saves it as an image.",
        "idempotent",
        {"data": _TEXT, "kind": _one_of("line", "bar", "scatter"), "path": _TEXT},
    ),
    _Declared(
        "schedule_meeting", "Schedules a meeting.", "unsafe", {"title": _TEXT, "date": _TEXT, "attendees": _TEXTS}
    ),
    _Declared("restart_service", "Restarts a service on a host.", "unsafe", {"service": _TEXT, "host": _TEXT}),
    _Declared("get_weather", "Gets the current weather of a city.", "pure", {"city": _TEXT}),
    _Declared(
        "resize_image", "Resizes an image.", "idempotent", {"path": _TEXT, "width": _INTEGER, "height": _INTEGER}
    ),
    _Declared("search_documents", "Searches documents for a query.", "pure", {"query": _TEXT, "limit": _INTEGER}),
)


def registry() -> ToolRegistry:
    """The default tools and those above."""
    tools = default_registry()
    for tool in _TOOLS:
        tools.register(tool)
    return tools
