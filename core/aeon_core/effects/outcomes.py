"""Performs what is nondeterministic: model calls and tool calls. Outcomes are plain JSON and validated."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic import ValidationError as PydanticError

from aeon_core.errors import AeonError, LLMError, RunAborted, ToolError
from aeon_core.json_safe import NotJsonSafeError, clean_text, has_non_finite, json_safe
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon_core.redaction import cut_place
from aeon_core.suggest import first_problem
from aeon_core.tools.base import Tool
from aeon_core.tools.schema import Schema

logger: logging.Logger = logging.getLogger("aeon")

_MOST_TOKENS = 10**12
"""A larger count is not credible and is ignored."""
_CLOSING = 0.25
"""Seconds an adapter gets to close when a run is aborted; it may be busy loading an SDK."""
_MOST_CHARACTERS = 500
"""Of the message of a broken adapter."""
_users: list[tuple[int, threading.Event]] = []
"""The id of each adapter in use, and the event that aborts its run; several runs may share an adapter."""

Conceal = Callable[[Any], Any]
"""Returns plain JSON as it is recorded: without secrets."""


def unchanged(value: Any) -> Any:
    """Return the value unchanged: what is not recorded need not be concealed."""
    return value


@dataclass(frozen=True)
class ToolOutcome:
    """A tool's outcome: `result` or `error`, its duration in milliseconds, and a note on what the record changed."""

    result: dict[str, Any] | None
    error: dict[str, Any] | None
    duration_ms: float = 0.0
    note: str | None = None


@dataclass(frozen=True)
class ModelOutcome:
    """The outcome of one attempt of a model call: `response` or `error`, milliseconds, and US dollars if known."""

    response: LLMResponse | None
    error: LLMError | None
    latency_ms: float = 0.0
    cost_usd: float | None = None

    @property
    def usage(self) -> Usage | None:
        """Its tokens, as far as they were counted."""
        if self.response is not None:
            return self.response.usage
        return cast("Usage", self.error.usage) if self.error is not None and self.error.usage else None


@contextmanager
def in_use(adapters: Iterable[LLMAdapter], abort: threading.Event) -> Iterator[None]:
    """Keep the adapters open although another run that shares them is aborted; `abort` is the event of this one."""
    uses = [(id(adapter), abort) for adapter in adapters]
    _users.extend(uses)
    try:
        yield
    finally:
        for use in uses:
            _users.remove(use)


def are_in_use(adapters: Iterable[LLMAdapter]) -> bool:
    """Return whether a run that is not aborted uses one of the adapters."""
    known = {id(adapter) for adapter in adapters}
    return any(adapter in known and not aborted.is_set() for adapter, aborted in list(_users))


def call_model(
    llm: LLMAdapter, request: LLMRequest, abort: threading.Event, conceal: Conceal = unchanged
) -> ModelOutcome:
    """Call the model once; return the outcome with secrets concealed. Raises RunAborted soon after `abort` is set,
    reply or not.

    The call runs on its own thread, since a blocking call cannot be interrupted; if it is abandoned, it ends by itself
    and its reply is dropped. An aborted call closes the adapter, which may cut it off, unless a run that is not
    aborted uses it.
    """
    replies: queue.SimpleQueue[LLMResponse | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            replies.put(llm.complete(request))
        except BaseException as error:
            replies.put(error)

    began = time.perf_counter()
    threading.Thread(target=work, name="aeon-model-call", daemon=True).start()
    with in_use([llm], abort):
        reply = _await_reply(replies, llm, abort)
    latency_ms = round((time.perf_counter() - began) * 1000, 3)
    try:
        return ModelOutcome(_check_reply(reply, conceal), None, latency_ms)
    except LLMError as error:
        return ModelOutcome(None, error, latency_ms)


def _await_reply(
    replies: queue.SimpleQueue[LLMResponse | BaseException], llm: LLMAdapter, abort: threading.Event
) -> LLMResponse | BaseException:
    while True:
        try:
            reply = replies.get(timeout=0.1)
        except queue.Empty:
            if not abort.is_set():
                continue
        else:
            # Another run that was aborted, too, may have closed the adapter: then the call fails.
            if not (isinstance(reply, BaseException) and abort.is_set()):
                return reply
        if all(aborted.is_set() for adapter, aborted in list(_users) if adapter == id(llm)):
            _close(llm)
        raise RunAborted("the run was aborted while a model call was in flight")


def _close(llm: LLMAdapter) -> None:
    closing = threading.Thread(target=llm.close, name="aeon-model-close", daemon=True)
    closing.start()
    closing.join(_CLOSING)


def _check_reply(reply: Any, conceal: Conceal) -> LLMResponse:
    if isinstance(reply, AeonError):
        raise _make_recordable(reply, conceal)
    if isinstance(reply, BaseException):
        retryable = isinstance(reply, TimeoutError | ConnectionError)
        message = conceal(f"the model adapter failed: {in_one_line(reply)}")
        raise LLMError(message[: cut_place(message, _MOST_CHARACTERS)], retryable)
    if not isinstance(reply, LLMResponse):
        raise LLMError(f"the model adapter returned {type(reply).__name__}, expected LLMResponse")
    try:
        checked = LLMResponse.model_validate(conceal(json_safe(reply.model_dump(exclude_none=True))))
    except (NotJsonSafeError, PydanticError) as error:
        why = first_problem(error) if isinstance(error, PydanticError) else str(error)
        message = f"the model adapter returned an unusable LLMResponse: {why}"
        raise LLMError(conceal(clean_text(message))) from None
    return checked.model_copy(update={"usage": _usage(checked.usage)})


def _make_recordable(error: AeonError, conceal: Conceal) -> LLMError:
    """Return the error in a form that the journal can hold, on one line, whatever an adapter put into it."""
    error.message = conceal(" ".join(clean_text(str(error.message)).split()))
    if not isinstance(error, LLMError):
        return LLMError(error.message, exit_code=error.exit_code)
    error.usage = cast("dict[str, int] | None", _usage(error.usage))
    if isinstance(error.retry_after, float) and not math.isfinite(error.retry_after):
        error.retry_after = None
    for key, value in list(error.context.items()):
        try:
            error.context[key] = conceal(json_safe(value))
        except NotJsonSafeError:
            del error.context[key]
    return error


@cache
def _usage_adapter() -> TypeAdapter[Usage]:
    return TypeAdapter(Usage)


def _usage(reported: Any) -> Usage | None:
    """Return the token counts that an adapter reports, None if they are not counts."""
    try:
        usage = _usage_adapter().validate_python(reported)
    except PydanticError:
        return None
    return usage if all(count <= _MOST_TOKENS for count in cast("dict[str, int]", usage).values()) else None


def invoke_tool(
    tool: Tool, arguments: dict[str, Any], output_schema: Schema, conceal: Conceal = unchanged
) -> ToolOutcome:
    """Invoke a tool on a copy of its arguments; return its result, validated, with secrets concealed (core FR-054).

    An exception, a returned `error` and a result that violates `output_schema` are errors; anything but a dict is
    wrapped as `{"result": …}`.
    """
    began = time.perf_counter()
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    note = None
    try:
        value = json_safe(given := tool.invoke(**arguments))
        if has_non_finite(given):
            note = f"NaN or infinity in the result of {tool.name!r} became null: JSON has neither"
        if problem := _returned_error(value, tool):
            error = {"error_type": "ToolError", "message": problem}
        elif problems := output_schema.errors(value, shown=conceal):
            error = {
                "error_type": "ValidationError",
                "message": f"the result of {tool.name!r} does not fit its output_schema: {'; '.join(problems)}"
                + (f" ({note})" if note else ""),
                "result": value,
            }
        else:
            result = value if isinstance(value, dict) else {"result": value}
    except NotJsonSafeError as problem:
        error = {"error_type": "ToolError", "message": f"the result of {tool.name!r} is not JSON: {problem}"}
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        message = clean_text(str(problem.message)) if isinstance(problem, AeonError) else describe(problem)
        error = {"error_type": type(problem).__name__, "message": message}
    return ToolOutcome(conceal(result), conceal(error), round((time.perf_counter() - began) * 1000, 3), note)


def reconcile(tool: Tool, call_id: str, arguments: dict[str, Any], conceal: Conceal) -> ToolOutcome | None:
    """Return what the tool itself knows about a call that started but did not finish; None if it does not know.

    Optional `reconcile(call_id, arguments)` of a tool returns the call's result, or None; a ToolError that it raises
    is the error that the call ended with. After any other error, the outcome is still unknown.
    """
    own = getattr(tool, "reconcile", None)
    if own is None:
        return None
    try:
        value = json_safe(own(call_id, json_safe(arguments)))
    except ToolError as problem:
        return ToolOutcome(None, conceal({"error_type": type(problem).__name__, "message": describe(problem)}))
    except Exception:
        logger.exception("reconcile of %r failed; whether its call took effect stays unknown", tool.name)
        return None
    if value is None:
        return None
    return ToolOutcome(conceal(value if isinstance(value, dict) else {"result": value}), None)


TO_REPEAT = "check, then fork the run to repeat it"
"""What a person does about a call that may or may not have taken effect; an agent can do something else."""


def unmade_outcome(tool: Tool, why: str | None, *, begun: bool) -> ToolOutcome:
    """Return the outcome of a call that is not made; it may have taken effect if it had `begun`, unless it is pure."""
    why = why or "a person said so"
    if not begun or tool.effect == "pure":
        message = f"the call of {tool.name!r} is denied: {why}"
        return ToolOutcome(None, {"error_type": "ToolError", "message": message})
    message = (
        f"whether {tool.name!r} took effect is unknown: "
        f"the process ended during the call, and it was not repeated ({why}); {TO_REPEAT}"
    )
    return ToolOutcome(None, {"error_type": "UnknownOutcome", "message": message})


def describe(error: BaseException) -> str:
    """Return an exception as text, even if its own `__str__` fails."""
    try:
        return clean_text(f"{type(error).__name__}: {error}".removesuffix(": "))
    except Exception:
        return type(error).__name__


def in_one_line(error: BaseException) -> str:
    """Return an exception of a caller's own code as one line of text."""
    why = f"{error.title}: {first_problem(error)}" if isinstance(error, PydanticError) else describe(error)
    return " ".join(why.split())


def _returned_error(value: Any, tool: Tool) -> str | None:
    """Return the message of an error that the tool returned rather than raised."""
    if not isinstance(value, dict) or not value.get("error"):
        return None
    if "error" in tool.output_schema.get("properties", {}):
        return None
    return value["error"] if isinstance(value["error"], str) else str(value["error"])
