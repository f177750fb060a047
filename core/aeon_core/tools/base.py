"""What a tool is (Decision 4; data model: Tool)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aeon_core.errors import ToolError

Effect = Literal["pure", "idempotent", "unsafe"]
Answer = Literal["allow", "ask", "deny"]
_SPECIAL = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class CallVerdict:
    """How to treat a call, and why, in words for a person."""

    answer: Answer
    reason: str
    proposal: dict[str, Any] | None = None
    """For `ask`: `rule`, which would allow calls like this one, and `about`, the text that it is matched against; or
    `why_not`, why no rule is proposed."""


def object_schema(properties: dict[str, Any], required: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others, by default all of them required."""
    named = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": named, "additionalProperties": False}


def exact_pattern(text: str) -> str:
    """Return the pattern of a rule that fits this text alone."""
    return _SPECIAL.sub(r"[\g<0>]", text)


class NoDiffError(ToolError):
    """The call would replace a file whose content cannot be shown as text."""


class Tool(ABC):
    """A capability that a plan's step can call: the specification's five members, and optional ones (core FR-019).

    The registry reads the members once, at registration. `effect` is what a second call would do:
    nothing (`pure`), the same again (`idempotent`), or something else (`unsafe`).
    """

    name: str
    """Unique within a registry."""
    description: str
    """What the tool does, for the model and for people."""
    input_schema: dict[str, Any]
    """JSON Schema of the arguments, an object."""
    output_schema: dict[str, Any]
    """JSON Schema of what `invoke` returns."""

    effect: Effect = "unsafe"
    needs_approval: bool = False
    """Whether each call needs approval."""
    examples: tuple[dict[str, Any], ...] = ()
    """Arguments of example invocations, shown to the model."""

    def verdict(self, arguments: dict[str, Any]) -> CallVerdict | None:  # noqa: ARG002  # for those that demand something
        """Return the tool's own verdict on this call, which overrides rules; None if it has none.

        `deny` refuses the call, `ask` requires approval even if a rule allows the call.
        """
        return None

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments in the form that policy rules match; several if one call does several things.

        A rule that allows must allow every part; one that asks or denies needs to match one. None means that the
        effect of the call is unknown: then no rule can allow it.
        """
        return [arguments]

    def spellings(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG002  # for those with several
        """Return the arguments in their plainest forms, which rules that ask or deny also match."""
        return []

    def rule_pattern(self, arguments: dict[str, Any]) -> str | None:
        """Return the pattern of the rule proposed for a call; None for a rule about the whole tool.

        It matches this call, and no call that a reader would not expect: here the first argument, unchanged,
        if that is a text. Raises ToolError if no rule should allow calls like it, with the reason.
        """
        first = next(iter(self.input_schema.get("properties", {})), None)
        value = arguments.get(first) if first is not None else None
        return exact_pattern(value) if isinstance(value, str) else None

    def preview(self, arguments: dict[str, Any]) -> str | None:  # noqa: ARG002  # for those that change a file
        """Return what the call would change now, as a unified diff of one file; None if it changes no file.

        The person asked about the call sees it, and is asked again if it has changed by the time
        they approve. Raises ToolError if the call would fail, NoDiffError if it would replace what cannot be shown.
        """
        return None

    # **args is only for type checkers: with it, a tool may declare its own parameters.
    @abstractmethod
    def invoke(self, *args: Any, **arguments: Any) -> Any:
        """Run the tool with the validated arguments as keywords, and return a dict that fits `output_schema`.

        The same arguments must give the same result. Any exception fails the step, not the run (core FR-054).
        """


Tools = Iterable[Tool | Callable[..., Any]]
"""What is accepted as a registry: a list of Tools and typed functions, or a registry itself."""
