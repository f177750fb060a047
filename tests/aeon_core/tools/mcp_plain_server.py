"""A server over stdio that needs no SDK and so starts at once: `mcp_plain_server.py stdio [garbage]`.

It has some of the tools of `mcp_server.py`, which behave alike, and the variable `TEST_NOTES` means the same.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def tool(name: str, properties: dict[str, str], **more: Any) -> dict[str, Any]:
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    return {"name": name, "inputSchema": {"type": "object", "properties": kinds, "required": list(kinds)}, **more}


SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
TOOLS = [
    tool("add", {"a": "integer", "b": "integer"}, outputSchema=SUM, annotations={"readOnlyHint": True}),
    tool("say", {"text": "string"}),
    tool("fail", {"why": "string"}, annotations={"idempotentHint": True}),
    tool("slow", {}),
    tool("die", {}, annotations={"readOnlyHint": True}),
    tool("surroundings", {}),
]
ANSWERS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "plain", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
}


def note(line: str) -> None:
    if "TEST_NOTES" in os.environ:
        with Path(os.environ["TEST_NOTES"]).open("a") as notes:
            notes.write(f"{line}\n")


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a call; None for one that never ends."""
    if name == "die":
        print("dying, as told", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "slow":
        note("began slow")
        return None
    if name == "add":
        return {"content": [], "structuredContent": {"sum": arguments["a"] + arguments["b"]}}
    if name == "surroundings":
        return {"content": [], "structuredContent": dict(os.environ)}
    text = f"<{arguments['text']}>" if name == "say" else f"failed:\n{arguments['why']}"
    return {"content": [{"type": "text", "text": text}], "isError": name == "fail"}


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    if message["method"] == "tools/call":
        result = call(message["params"]["name"], message["params"].get("arguments") or {})
        return None if result is None else {"result": result}
    if message["method"] in ANSWERS:
        return {"result": ANSWERS[message["method"]]}
    return {"error": {"code": -32601, "message": "there is no such method"}}


if __name__ == "__main__":
    note(f"pid {os.getpid()}")
    if "garbage" in sys.argv:
        sys.stdout.buffer.write(b"Welcome! this is no JSON\n\xff\xfe nor text\n{}\n\n")
        sys.stdout.buffer.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and (given := answer(message)) is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **given}), flush=True)
