"""Writing a conversation as Chat Completions have it: for servers and for models in process."""

from __future__ import annotations

from typing import Any

from aeon_core.llm.base import LLMRequest, Message
from aeon_core.llm.strict_schema import is_strict
from aeon_core.llm.wire import ToolNames, arguments_text, with_ids


def chat_messages(request: LLMRequest, names: ToolNames) -> list[dict[str, Any]]:
    """Return the system prompt and the conversation, every call and result with an id."""
    system = [{"role": "system", "content": request.system}] if request.system else []
    return [*system, *(_message(message, names) for message in with_ids(request.messages))]


def chat_tool(tool: dict[str, Any], names: ToolNames) -> dict[str, Any]:
    """Return a tool as a function, without what the model has no use for."""
    function = {
        "name": names.wire(str(tool["name"])),
        "description": str(tool.get("description", "")),
        "parameters": tool.get("input_schema") or {"type": "object", "properties": {}},
    }
    return {"type": "function", "function": function}


def json_schema_format(request: LLMRequest, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` for a schema, strict only where strict mode takes it."""
    wanted = {"name": f"aeon_{request.purpose}", "schema": schema, "strict": is_strict(schema)}
    return {"type": "json_schema", "json_schema": wanted}


def _message(message: Message, names: ToolNames) -> dict[str, Any]:
    content = message["content"]
    if message["role"] == "tool":
        # Chat Completions have no mark for a failed call.
        told = f"Error: {content}" if message.get("is_error") else content
        return {"role": "tool", "tool_call_id": message.get("tool_call_id", ""), "content": told}
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    if not calls:
        return {"role": message["role"], "content": content}
    return {
        "role": "assistant",
        "content": content or None,
        "tool_calls": [
            {
                "id": call.get("id", ""),
                "type": "function",
                "function": {"name": names.wire(call["name"]), "arguments": arguments_text(call["arguments"])},
            }
            for call in calls
        ],
    }
