"""The result of an MCP tool as a tool's result here: bounded, without binary data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MAX_TEXT = 1_000_000
"""The most characters of text, or of structured content as JSON, that are kept of one result."""
_MAX_BLOCKS = 100
_LINK_KEYS = ("uri", "name", "title", "description", "mimeType", "size")

Block = Mapping[str, Any]


class TooLarge(ValueError):
    """Structured content that can neither be kept whole nor be cut."""


@dataclass(frozen=True)
class Answer:
    """What a server gave for a call: blocks of content as MCP's JSON, structured content, whether it is an error."""

    blocks: list[Block]
    structured: Any
    is_error: bool


def result_of(answer: Answer, *, declared: bool) -> Any:
    """Return structured content where there is any, else `{"text": …}`, with other kinds of blocks summed up.

    `declared` says that the tool has an output schema. Raises TooLarge for structured content of more than MAX_TEXT
    characters that this schema wants whole.
    """
    structured = answer.structured
    if structured is not None:
        size = len(json.dumps(structured, ensure_ascii=False))
        if size <= MAX_TEXT:
            return structured if declared or isinstance(structured, dict) else {"result": structured}
        if declared:
            raise TooLarge(f"its result has {size:,} characters, expected at most {MAX_TEXT:,}; ask for less")
    result: dict[str, Any] = {"text": text_of(answer.blocks)}
    others = [summary for block in answer.blocks if (summary := _summary(block))]
    if others:
        result["content"] = others[:_MAX_BLOCKS]
    if len(others) > _MAX_BLOCKS:
        result["content_left_out"] = len(others) - _MAX_BLOCKS
    return result


def text_of(blocks: Iterable[Block], limit: int = MAX_TEXT) -> str:
    """Return the text of all blocks, one after the other; what is more than `limit` characters is cut, and said so."""
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
