"""A tool of an MCP server as a Tool: its name, the trusted part of its description, and its results.

Results are bounded here, and contain no binary data.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from aeon_core.errors import ToolError, UsageError
from aeon_core.escape import escape_controls
from aeon_core.json_safe import clean_text
from aeon_core.redaction import REDACTED, redact_text
from aeon_core.suggest import first_problem
from aeon_core.tools.base import Effect, Tool
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.registry import ToolRegistry

_MAX_SHOWN = 300
_LEAST_SECRET = 6


_PYDANTIC = re.compile(r": \d+ validation errors? for .*", re.DOTALL)


class Words:
    """Prepares foreign text for a message, without a server's own secrets, even if it echoes them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        # The longest first, since one may contain another. Short ones, such as `1`, are no secrets.
        self._secrets = sorted((value for value in secrets if len(value) >= _LEAST_SECRET), key=len, reverse=True)

    def __call__(self, text: str, limit: int = _MAX_SHOWN) -> str:
        """Return one line, redacted, control characters visible, of at most `limit` characters."""
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        line = escape_controls(redact_text(clean_text(" ".join(text[: 4 * limit].split()))))
        return line if len(line) <= limit else f"{line[:limit]}…"

    def of(self, error: BaseException) -> str:
        """Return an error in one line of words."""
        # The SDK's own errors may end with what pydantic prints: its name for the message, the input and an address.
        said = first_problem(error) if isinstance(error, ValidationError) else _PYDANTIC.sub("", str(error))
        return self(said) or type(error).__name__


words: Words = Words()
"""For text of servers without secrets."""


MAX_TEXT = 1_000_000
"""The most characters of text, or of structured content as JSON, kept of one result."""
_MAX_BLOCKS = 100
_LINK_KEYS = ("uri", "name", "title", "description", "mimeType", "size")

Block = Mapping[str, Any]


class TooLarge(ValueError):
    """Structured content that can neither be kept whole nor be cut."""


@dataclass(frozen=True)
class ServerReply:
    """A server's reply to a call: content blocks as MCP's JSON, structured content, and whether it is an error."""

    blocks: Sequence[Block]
    structured: Any
    is_error: bool


def result_of(answer: ServerReply, *, declared: bool) -> Any:
    """Return structured content if there is any, else `{"text": …}`, with other kinds of blocks summarised.

    `declared` says that the tool has an output schema. Raises TooLarge for structured content of more than MAX_TEXT
    characters that this schema wants whole.
    """
    structured = answer.structured
    if structured is not None:
        size = len(json.dumps(structured, ensure_ascii=False))
        if size <= MAX_TEXT:
            return structured if declared or isinstance(structured, dict) else {"result": structured}
        if declared:
            raise TooLarge(f"its result has {size:,} characters, at most {MAX_TEXT:,} are allowed; ask for less")
    result: dict[str, Any] = {"text": text_of(answer.blocks)}
    others = [summary for block in answer.blocks if (summary := _summary(block))]
    if others:
        result["content"] = others[:_MAX_BLOCKS]
    if len(others) > _MAX_BLOCKS:
        result["content_left_out"] = len(others) - _MAX_BLOCKS
    return result


def text_of(blocks: Iterable[Block], limit: int = MAX_TEXT) -> str:
    """Return the text of all blocks, cut after `limit` characters with a note."""
    text = "\n".join(part for block in blocks if (part := _text(block)))
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit]}\n[cut: {more:,} more characters]"


def _text(block: Block) -> str:
    if block["type"] == "text":
        return str(block["text"])
    return str(block["resource"].get("text", "")) if block["type"] == "resource" else ""


def _summary(block: Block) -> dict[str, Any] | None:
    kind = block["type"]
    if kind == "text":
        return None
    if kind in ("image", "audio"):
        return {"type": kind, "mime": block["mimeType"], "bytes": _size(block["data"])}
    if kind == "resource":
        resource = block["resource"]
        size = len(resource["text"].encode()) if "text" in resource else _size(resource["blob"])
        return {"type": kind, "uri": resource["uri"], "mime": resource.get("mimeType"), "bytes": size}
    return {"type": kind, **{key: block[key] for key in _LINK_KEYS if key in block}}


def _size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


logger: logging.Logger = logging.getLogger("aeon")

MAX_NAME = 64
"""The longest name that every provider takes."""
_MAX_DESCRIPTION = 2_000
_MAX_SHOWN_NAME = 100
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST = 8

Listed = Mapping[str, Any]
"""A tool as its server lists it: the JSON of MCP's `Tool`."""
Invoke = Callable[["McpTool", dict[str, Any]], Any]


class McpTool(Tool):
    """A tool of an MCP server. Its whole description is the server's word."""

    def __init__(self, listed: Listed, *, server: str, name: str, trusted: bool, invoke: Invoke) -> None:
        self.name = name
        self.server = server
        self.remote_name: str = listed["name"]
        self.shown_name: str = words(self.remote_name, _MAX_SHOWN_NAME)
        """The server's own name for it, for messages."""
        self.description: str = _description(listed, server)
        # Servers leave `properties` out for a tool without parameters.
        schema = listed["inputSchema"]
        self.input_schema: dict[str, Any] = {**schema, "properties": schema.get("properties", {})}
        self.declared: bool = "outputSchema" in listed
        """Whether the server declares the form of results."""
        self.output_schema: dict[str, Any] = listed.get("outputSchema", {"type": "object"})
        self.effect: Effect = _effect(listed.get("annotations") or {}) if trusted else "unsafe"
        self.needs_approval: bool = self.effect != "pure"
        self._invoke = invoke

    def invoke(self, /, **arguments: Any) -> Any:
        """Return the server's structured content, else `{"text": …}`. Raises ToolError that names the server."""
        return self._invoke(self, arguments)


def tools_from(server: str, settings: McpServer, listed: Iterable[Listed], invoke: Invoke) -> list[Tool]:
    """Return the listed tools of a server that the settings select, in its order.

    A tool that cannot be registered, such as one with an invalid schema or a used name, is left out with a warning, as
    is one that runs only as a task of MCP and fails in plain calls. Raises UsageError for an entry of `tools` in the
    settings that no tool matches.
    """
    by_name: dict[str, Listed] = {}
    for tool in listed:
        by_name.setdefault(tool["name"], tool)
    chosen = _chosen(server, settings, list(by_name))
    names = tool_names(server, chosen)
    made = (
        McpTool(by_name[own], server=server, name=names[own], trusted=settings.trust_annotations, invoke=invoke)
        for own in chosen
        if not _needs_task(server, by_name[own])
    )
    registry = ToolRegistry()
    return [tool for tool in made if _fits(tool, registry)]


def tool_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Return our name of each of a server's tools, `mcp__<server>__<tool>`, in characters that every provider accepts.

    Other characters become `_`, and a name longer than MAX_NAME is cut; if two names would then be the same, or
    one was cut, a digest of the server's own name distinguishes them.
    """
    full = {name: f"mcp__{server}__{_UNFIT.sub('_', name)}" for name in names}
    count = Counter(full.values())

    def clear(name: str) -> str:
        if len(full[name]) <= MAX_NAME and (count[full[name]] == 1 or not _UNFIT.search(name)):
            return full[name]
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
        return f"{full[name][: MAX_NAME - _DIGEST - 1]}_{digest}"

    return {name: clear(name) for name in full}


def _chosen(server: str, settings: McpServer, names: list[str]) -> list[str]:
    if settings.tools is None:
        return names
    for pattern in settings.tools:
        if not any(fnmatchcase(name, pattern) for name in names):
            has = ", ".join(map(repr, names)) or "none"
            raise UsageError(
                f"'tools' of {server!r} in 'mcp_servers' lists {pattern!r}, which the server does not have; "
                f"it has {words(has)}"
            )
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in settings.tools)]


def _description(listed: Listed, server: str) -> str:
    description = escape_controls(str(listed.get("description") or ""), keep="\n\t").strip()
    if not description:
        name = words(listed["name"], _MAX_SHOWN_NAME)
        return f"The tool {name!r} of the MCP server {server!r}, which gives no description."
    return description if len(description) <= _MAX_DESCRIPTION else f"{description[:_MAX_DESCRIPTION]}…"


def _effect(annotations: Mapping[str, Any]) -> Effect:
    if annotations.get("readOnlyHint") is True:
        return "pure"
    return "idempotent" if annotations.get("idempotentHint") is True else "unsafe"


def _needs_task(server: str, listed: Listed) -> bool:
    execution = listed.get("execution")
    if not isinstance(execution, Mapping) or execution.get("taskSupport") != "required":
        return False
    name = words(listed["name"], _MAX_SHOWN_NAME)
    logger.warning("MCP server %r: left out %r, which runs only as a task (taskSupport: required)", server, name)
    return True


def _fits(tool: McpTool, registry: ToolRegistry) -> bool:
    try:
        registry.register(tool)
    except ToolError as error:
        logger.warning("MCP server %r: left out a tool that cannot be used: %s", tool.server, words(error.message))
        return False
    return True
