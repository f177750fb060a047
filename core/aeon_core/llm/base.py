"""What a model adapter takes, returns and raises (Decision 1), and chains of several.

An adapter has one method and does not retry; its callers do.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NotRequired

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from aeon_core.errors import LLMError, UsageError

Purpose = Literal["profile", "plan", "tool_call", "reason", "fallback", "repair", "judge", "answer", "refine", "review"]
Effort = Literal["low", "medium", "high"]

DEFAULT_MAX_TOKENS = 4096


class ToolCallDict(TypedDict):
    """A tool call that a model asks for.

    `arguments` is an object, or the text that the provider sent if that is not a JSON object, for the supervisor to
    repair.
    """

    id: NotRequired[str]
    name: str
    arguments: dict[str, Any] | str


class Message(TypedDict):
    """One turn of a conversation.

    `role` is `user`, `assistant` or `tool`; an assistant turn may carry `tool_calls`; a tool turn answers the call
    named by `tool_call_id`.
    """

    role: Literal["user", "assistant", "tool"]
    content: str
    tool_calls: NotRequired[list[ToolCallDict]]
    tool_call_id: NotRequired[str]
    is_error: NotRequired[bool]


class Usage(TypedDict):
    """Tokens of one call, as the provider counts them. `input_tokens` includes those of cache reads and writes."""

    input_tokens: Annotated[int, Field(ge=0)]
    output_tokens: Annotated[int, Field(ge=0)]
    cache_read_tokens: NotRequired[Annotated[int, Field(ge=0)]]
    cache_write_tokens: NotRequired[Annotated[int, Field(ge=0)]]


@dataclass(slots=True)
class LLMRequest:
    """One model call.

    `tools` are dicts with `name`, `description` and `input_schema` (adapters do not send other keys): the model
    may answer with a native tool call, and for the purpose `tool_call` with a single tool it must, if the
    provider supports that. `schema` asks for structured output under the schema name
    `aeon_<purpose>`. `on_delta` receives text as it arrives, on the thread that makes the call; `on_call`
    receives a native tool call as it streams: (tool name, "") when it begins, then (tool name, part of the
    arguments' JSON). `effort` is how much the model should think before it replies, if it supports that. Thinking
    counts towards `max_tokens`, of which `reply_tokens` are meant for the reply itself; None means all of them.
    """

    purpose: Purpose
    system: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    schema: dict[str, Any] | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    on_delta: Callable[[str], None] | None = field(default=None, compare=False, repr=False)
    on_call: Callable[[str, str], None] | None = field(default=None, compare=False, repr=False)
    effort: Effort | None = None
    reply_tokens: int | None = None
    cache_prefix: bool = False
    """Whether later requests will begin with this one, so that the provider should cache it if it can."""
    conversation: str | None = field(default=None, compare=False)
    """The name of the conversation that the request belongs to; only its new messages are recorded."""
    most: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The most items that are read of the schema's lists, by their keys; not recorded."""

    @property
    def forced_tool(self) -> str | None:
        """The name of the tool that the reply must call; None if the model may choose."""
        forced = self.purpose == "tool_call" and len(self.tools) == 1
        return str(self.tools[0]["name"]) if forced else None

    @property
    def thinking_tokens(self) -> int:
        """How many of the `max_tokens` are for thinking before the reply."""
        return 0 if self.reply_tokens is None else max(0, self.max_tokens - self.reply_tokens)

    @property
    def bounded_schema(self) -> dict[str, Any] | None:
        """The schema with `maxItems` for the lists in `most`, which a small model may otherwise write without end."""
        if self.schema is None or not self.most:
            return self.schema
        known = self.schema["properties"]
        bounded = {key: {**known[key], "maxItems": count} for key, count in self.most.items()}
        return {**self.schema, "properties": {**known, **bounded}}

    @property
    def prompt(self) -> str:
        """The text of all messages, separated by blank lines."""
        return "\n\n".join(message["content"] for message in self.messages)


class LLMResponse(BaseModel):
    """One model reply. Only `text` is required; `usage` is None if the provider gave none.

    `stop_reason` is `end`, `max_tokens`, `tool_use` or `refusal`, or else the provider's own word.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", defer_build=True)

    text: str
    tool_calls: list[ToolCallDict] = Field(default_factory=list)
    usage: Usage | None = None
    stop_reason: str | None = None
    model: str | None = None
    notices: list[str] = Field(default_factory=list, exclude_if=lambda notices: not notices)
    """Notes for a person about how the reply was obtained, one line each, such as an option that was refused."""


class LLMAdapter(ABC):
    """A model. Implement `complete` without retries, and raise `LLMError` for everything that goes wrong."""

    model: str = "custom"
    """The label that is shown and journaled, `PROVIDER:NAME`."""

    simulated: bool = False
    """Whether this is not a real model, which is shown wherever its results are."""

    context_window: int | None = None
    """The most tokens of request and reply together, if the adapter knows it."""

    base_url: str | None = None
    """The server's address if it is not the provider's own, so that a fork of the run asks the same server."""

    @abstractmethod
    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the model's reply to one request. Raises LLMError."""

    def generate(self, prompt: str, system_prompt: str = "", max_tokens: int = DEFAULT_MAX_TOKENS) -> str:
        """Return the reply to a single prompt as text (Decision 1). Raises LLMError."""
        request = LLMRequest(
            purpose="reason",
            system=system_prompt,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=max_tokens,
        )
        return self.complete(request).text

    def check(self) -> None:  # noqa: B027  # optional to implement
        """Raise ModelUnavailableError if something, such as credentials, is missing. Costs nothing."""

    def close(self) -> None:  # noqa: B027  # optional to implement
        """Release connections and cut off a request in flight; may be called from any thread."""


class _ForeignModel(LLMAdapter):
    """Adapts an object of another class that has a method `complete`."""

    def __init__(self, given: Any) -> None:
        self._given = given
        self.model = str(getattr(given, "model", LLMAdapter.model))
        self.simulated = getattr(given, "simulated", False) is True
        window = getattr(given, "context_window", None)
        self.context_window = window if isinstance(window, int) else None

    def complete(self, request: LLMRequest) -> LLMResponse:
        reply: LLMResponse = self._given.complete(request)
        return reply

    def close(self) -> None:
        if callable(close := getattr(self._given, "close", None)):
            close()


def as_adapter(llm: Any) -> LLMAdapter:
    """Return an adapter unchanged, and wrap anything else with a method `complete`. Raises UsageError."""
    if isinstance(llm, str):
        raise UsageError(f"{llm[:80]!r} is the name of a model, not a model; write connect({llm[:80]!r})")
    kind = type(llm).__name__
    if isinstance(llm, type) or not callable(getattr(llm, "complete", None)):
        what = f"the class {llm.__name__}" if isinstance(llm, type) else kind
        form = "write connect('PROVIDER:NAME'), or pass an object with complete(LLMRequest)"
        if isinstance(llm, list | tuple):
            form = "a list holds names only, such as ['PROVIDER:NAME', 'PROVIDER:NAME']"
        raise UsageError(f"{what} is not a model; {form}")
    if inspect.iscoroutinefunction(llm.complete):
        raise UsageError(
            f"'complete' of {kind} is async, expected a plain function; run the coroutine inside it with asyncio.run"
        )
    if not isinstance(llm, LLMAdapter):
        return _ForeignModel(llm)
    model, window = llm.model, llm.context_window
    if not isinstance(model, str) or not model.strip() or not model.isprintable():
        raise UsageError(f"the 'model' of {kind} is {repr(model)[:80]}; expected its label, such as 'local:llama'")
    if window is not None and (not isinstance(window, int) or window < 0):
        raise UsageError(f"the 'context_window' of {kind} is {repr(window)[:80]}; expected a number of tokens or None")
    return llm


JUDGING: frozenset[Purpose] = frozenset({"judge", "review"})
"""The purposes of the requests that go to the judge."""


class ModelChain(LLMAdapter):
    """Models in order of use. A run tries each up to three times before it turns to the next.

    `agents` are models for single conversations. A `judge` gets the requests to judge and to review; no other model
    replaces it. Raises UsageError for an empty chain, or one that contains a chain.
    """

    def __init__(
        self,
        models: Sequence[LLMAdapter],
        judge: LLMAdapter | None = None,
        agents: Mapping[str, LLMAdapter] | None = None,
    ) -> None:
        self.agents: dict[str, LLMAdapter] = dict(agents or {})
        if not models or any(isinstance(model, ModelChain) for model in (*models, judge, *self.agents.values())):
            raise UsageError("a chain of models needs at least one model, and none that is a chain itself")
        self.models: tuple[LLMAdapter, ...] = tuple(models)
        self.judge = judge
        self.model: str = self.models[0].model
        self.simulated: bool = self.models[0].simulated
        self.context_window: int | None = self.models[0].context_window
        self.base_url: str | None = self.models[0].base_url

    @property
    def all(self) -> list[LLMAdapter]:
        """The models, then the judge, then those of single conversations."""
        return [*self.models, *([] if self.judge is None else [self.judge]), *self.agents.values()]

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the first reply, asking each model once. Raises the last one's LLMError."""
        if self.judge is not None and request.purpose in JUDGING:
            return self.judge.complete(request)
        if request.conversation in self.agents:
            return self.agents[request.conversation].complete(request)
        for model in self.models[:-1]:
            try:
                return model.complete(request)
            except LLMError:
                continue
        return self.models[-1].complete(request)

    def check(self) -> None:
        """Check every model of the chain. Raises ModelUnavailableError."""
        for model in self.all:
            model.check()

    def close(self) -> None:
        """Close every model of the chain."""
        for model in self.all:
            model.close()
