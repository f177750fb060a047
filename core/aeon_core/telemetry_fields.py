"""What a journal's records say in the words of OpenTelemetry's conventions for generative AI: attributes, no SDK.

Without `content` they hold no prompts, replies, tool arguments or error texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

AGENT = "aeon"

Record = Mapping[str, Any]
Fields = dict[str, Any]

_PROVIDERS = {"bedrock": "aws.bedrock", "llama-cpp": "llama_cpp"}
_REMOTE = ("anthropic", "openai", "bedrock")
_OF_METRICS = (
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.model",
    "server.address",
    "server.port",
    "error.type",
)
_FINISH_REASONS = {"end": "stop", "max_tokens": "length", "tool_use": "tool_call", "refusal": "content_filter"}


def model_fields(label: str | None, base_url: str | None = None) -> Fields:
    """Return who answers: provider, model, and the server's address where the run was given one."""
    provider, _, name = (label or "").partition(":")
    fields: Fields = {
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider) or None,
        "gen_ai.request.model": name or provider or None,
    }
    if base_url is not None and provider in _REMOTE:
        parts = urlsplit(base_url)
        fields |= {"server.address": parts.hostname, "server.port": parts.port}
    return known(fields)


def place_fields(record: Record) -> Fields:
    """Return where in a run a record belongs."""
    return known({"aeon.pass": record.get("pass"), "aeon.step_id": record.get("step_id")})


def run_fields(record: Record, *, content: bool) -> Fields:
    """Return what is known when a run starts or resumes."""
    version = record.get("versions", {}).get("aeon")
    fields: Fields = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": AGENT,
        "gen_ai.agent.version": version,
        "gen_ai.conversation.id": record["run"],
        "aeon.simulated": record.get("simulated"),
        "aeon.resumed": True if record["type"] == "run_resumed" else None,
    }
    if content and "task" in record:
        fields["gen_ai.input.messages"] = _json([_text_message("user", record["task"])])
    return known(fields)


def result_fields(result: Mapping[str, Any], *, content: bool) -> Fields:
    """Return how a run ended: status, passes, totals, and of which type its error was."""
    usage, ttl = result.get("usage") or {}, result.get("ttl") or {}
    fields: Fields = {
        "aeon.status": result.get("status"),
        "aeon.converged": result.get("converged"),
        "aeon.passes": result.get("passes"),
        "aeon.cost_usd": result.get("cost_usd"),
        "aeon.ttl.spent": ttl.get("spent"),
        "aeon.ttl.remaining": ttl.get("remaining"),
        **usage_fields(usage),
        **error_fields(result.get("error")),
    }
    if content and result.get("answer") is not None:
        fields["gen_ai.output.messages"] = _json([_text_message("assistant", result["answer"])])
    return known(fields)


def request_fields(record: Record, *, content: bool) -> Fields:
    """Return what a model was asked: limits and purpose; with `content` the messages."""
    request = record.get("request") or {}
    fields: Fields = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": record["run"],
        "gen_ai.request.max_tokens": request.get("max_tokens"),
        "gen_ai.output.type": "json" if request.get("schema") is not None else "text",
        "aeon.purpose": record.get("purpose"),
        "aeon.call_id": record.get("call_id"),
        "aeon.attempt": record.get("attempt"),
        "aeon.reserved_usd": record.get("reserved_usd"),
        **place_fields(record),
    }
    if content:
        fields["gen_ai.system_instructions"] = _json([{"type": "text", "content": request.get("system", "")}])
        fields["gen_ai.input.messages"] = _json([_message(turn) for turn in request.get("messages", ())])
    return known(fields)


def reply_fields(record: Record, *, content: bool) -> Fields:
    """Return what a model answered, what it took and cost; with `content` the reply."""
    response = record.get("response")
    fields: Fields = {
        **usage_fields(record.get("usage") or {}),
        **error_fields(record.get("error")),
        "aeon.cost_usd": record.get("cost_usd"),
        "aeon.retry_in_s": record.get("retry_in_s"),
    }
    if response is not None:
        reason = _finish_reason(response)
        fields |= {
            "gen_ai.response.model": response.get("model"),
            "gen_ai.response.finish_reasons": reason and [reason],
        }
        if content:
            reply = {"role": "assistant", "content": response.get("text"), "tool_calls": response.get("tool_calls", ())}
            fields["gen_ai.output.messages"] = _json([{**_message(reply), "finish_reason": reason or "stop"}])
    return known(fields)


def usage_fields(usage: Mapping[str, Any]) -> Fields:
    """Return tokens by their names in the conventions."""
    return known(
        {
            "gen_ai.usage.input_tokens": usage.get("input_tokens"),
            "gen_ai.usage.output_tokens": usage.get("output_tokens"),
            "gen_ai.usage.cache_read.input_tokens": usage.get("cache_read_tokens"),
            "gen_ai.usage.cache_creation.input_tokens": usage.get("cache_write_tokens"),
        }
    )


def tool_fields(record: Record, *, content: bool) -> Fields:
    """Return which tool is invoked; with `content` its arguments."""
    fields: Fields = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.conversation.id": record["run"],
        "gen_ai.tool.name": record.get("tool_name"),
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": record.get("call_id"),
        "aeon.effect": record.get("effect"),
        **place_fields(record),
    }
    if content:
        fields["gen_ai.tool.call.arguments"] = _json(record.get("arguments") or {})
    return known(fields)


def outcome_fields(record: Record, *, content: bool) -> Fields:
    """Return how a tool call ended; with `content` its result."""
    fields = error_fields(record.get("error"))
    if content and record.get("result") is not None:
        fields["gen_ai.tool.call.result"] = _json(record["result"])
    return fields


def error_fields(error: Mapping[str, Any] | None) -> Fields:
    """Return an error's type: the HTTP status where there was one, else its class. Its message is content."""
    if error is None:
        return {}
    return {"error.type": str(error.get("status_code") or error.get("error_type") or "_OTHER")}


def event_fields(record: Record, *, content: bool) -> Fields:
    """Return what happened beside calls: a repair, a notice, a question to a person."""
    told = ("action_type", "method", "attempt_number", "kind", "point", "state", "decision")
    fields: Fields = {f"aeon.{record['type']}.{name}": record.get(name) for name in told}
    if record["type"] == "supervisor":
        fields["aeon.supervisor.repaired"] = record.get("repaired_output") is not None
    if content:
        fields["aeon.message"] = record.get("message") or record.get("feedback")
    return known({**fields, **place_fields(record), **error_fields(record.get("error"))})


def evaluations(record: Record) -> Iterator[Fields]:
    """Yield what an assessment says: one result a score, one of consistency, and the verdict with its reasons."""
    scores = {name.removesuffix("_score"): value for name, value in record.items() if name.endswith("_score")}
    for name, value in record.items():
        if name.endswith("_scores") and isinstance(value, Mapping):
            scores |= value
    for name, value in scores.items():
        if isinstance(value, int | float):
            yield _evaluation(record, name, **{"gen_ai.evaluation.score.value": float(value)})
    flags = record.get("consistency_status")
    if isinstance(flags, Mapping):
        label = "consistent" if all(flags.values()) else "inconsistent"
        yield _evaluation(record, "consistency", **{"gen_ai.evaluation.score.label": label})
    if "converged" in record:
        label = "converged" if record["converged"] else "not_converged"
        reasons = ", ".join(map(str, record.get("reason_codes") or ())) or None
        told = {"gen_ai.evaluation.score.label": label, "gen_ai.evaluation.explanation": reasons}
        yield _evaluation(record, "convergence", **told)


def _evaluation(record: Record, name: str, **fields: Any) -> Fields:
    return known({"gen_ai.evaluation.name": name, **fields, **place_fields(record)})


def metric_fields(fields: Fields) -> Fields:
    """Return those of a call's fields that are attributes of its metrics."""
    return {name: fields[name] for name in _OF_METRICS if name in fields}


def known(fields: Fields) -> Fields:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _finish_reason(response: Mapping[str, Any]) -> str | None:
    reason = response.get("stop_reason")
    return None if reason is None else _FINISH_REASONS.get(reason, str(reason))


def _text_message(role: str, text: str) -> Fields:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _message(turn: Mapping[str, Any]) -> Fields:
    """Return one turn of a conversation in the conventions' form."""
    text = turn.get("content")
    if turn["role"] == "tool":
        answer = {"type": "tool_call_response", "id": turn.get("tool_call_id"), "response": text}
        return {"role": "tool", "parts": [answer]}
    parts: list[Fields] = [{"type": "text", "content": text}] if text else []
    for call in turn.get("tool_calls") or ():
        called = {"type": "tool_call", "id": call.get("id"), "name": call["name"], "arguments": call["arguments"]}
        parts.append(called)
    return {"role": turn["role"], "parts": parts}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
