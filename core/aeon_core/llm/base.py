"""What a model adapter takes, gives and raises (Decision 1), and several of them as one.

Adapters are one method; retries are made above them.
"""

from __future__ import annotations

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

    `arguments` is an object; where the provider sent text that is not JSON object, it is that text, for the supervisor
    to repair.
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
    """Tokens of one call, as the provider counts them. `input_tokens` holds those read from and written to a cache."""

    input_tokens: Annotated[int, Field(ge=0)]
    output_tokens: Annotated[int, Field(ge=0)]
    cache_read_tokens: NotRequired[Annotated[int, Field(ge=0)]]
    cache_write_tokens: NotRequired[Annotated[int, Field(ge=0)]]


@dataclass(slots=True)
class LLMRequest:
    """One model call.

    `tools` are dicts with `name`, `description`, `input_schema` (and more, which an adapter leaves out of its
    request): the model may answer with a native tool use, and for the purpose `tool_call` it must, if the
    provider can force the one tool. `schema` asks for structured output under the schema name
    `aeon_<purpose>`. `on_delta` receives text as it arrives, on the thread that makes the call; `on_call`
    receives a native tool use of a streamed reply: (tool name, "") when it begins, then (tool name, part of the
    arguments' JSON). `effort` is how much the model should think before it replies, if it takes that. What it thinks
    counts in `max_tokens`, of which `reply_tokens` are meant for the reply itself, if that is not all of them.
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
    """Whether later requests begin with this one: the provider caches it if it can."""
    conversation: str | None = field(default=None, compare=False)
    """Names the conversation that the request belongs to: only the new part of each is recorded."""

    @property
    def forced_tool(self) -> str | None:
        """Return the tool that the reply has to call; None if the model is free to choose."""
        forced = self.purpose == "tool_call" and len(self.tools) == 1
        return str(self.tools[0]["name"]) if forced else None

    @property
    def thinking_tokens(self) -> int:
        """Return how many of the `max_tokens` are there for what comes before the reply."""
        return 0 if self.reply_tokens is None else max(0, self.max_tokens - self.reply_tokens)

    @property
    def prompt(self) -> str:
        """Return the text of all messages, as a person would read it."""
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
    """What a person should know about how the reply came about, a line each, such as an option that was refused."""


class LLMAdapter(ABC):
    """A model. Implement `complete`; raise `LLMError` for everything that goes wrong, with no retry of your own."""

    model: str = "custom"
    """The label shown and journaled, `PROVIDER:NAME`."""

    simulated: bool = False
    """Whether this is no real model; shown wherever its results are."""

    context_window: int | None = None
    """Tokens that request and reply may have together, where the adapter itself knows it."""

    base_url: str | None = None
    """The server's address, where it is not the provider's own: a fork of the run asks the same server."""

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
        """Raise ModelUnavailableError if credentials or the like are missing; nothing that costs is called."""

    def close(self) -> None:  # noqa: B027  # optional to implement
        """Release connections and cut a request in flight; called from any thread."""


class _ForeignModel(LLMAdapter):
    """An object of another class that has the one method, as an adapter."""

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
    """Return an adapter itself, or anything else with a method `complete` as one. Raises UsageError."""
    if isinstance(llm, LLMAdapter):
        return llm
    if callable(getattr(llm, "complete", None)) and not isinstance(llm, type):
        return _ForeignModel(llm)
    what = f"the class {llm.__name__}" if isinstance(llm, type) else type(llm).__name__
    raise UsageError(
        f"{what} is not a model: write 'PROVIDER:NAME', such as 'simulated:default', or pass an LLMAdapter, an object "
        "with complete(LLMRequest)"
    )


JUDGING: frozenset[Purpose] = frozenset({"judge", "review"})
"""The purposes of the requests that a model of their own may get."""


class ModelChain(LLMAdapter):
    """Models in the order in which they are used. A run tries each three times before it turns to the next.

    `agents` are those of single conversations. A `judge` gets the requests to judge and to review; no other model takes
    its place. Raises UsageError for an empty chain, or one that holds a chain.
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
        """Return the first reply that a model gives, each asked once. Raises the last one's LLMError."""
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
