"""What a tool is (Decision 4; data model: Tool)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

Effect = Literal["pure", "idempotent", "unsafe"]
Answer = Literal["allow", "ask", "deny"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen with a call, and why, in words for a person."""

    answer: Answer
    reason: str


class Tool(ABC):
    """A capability that a plan's step can call: the specification's five members, and what is optional (core FR-019).

    The registry reads the members once, when the tool is registered. `effect` says what a second call would do:
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
    """Whether a person is asked before each call."""
    examples: tuple[dict[str, Any], ...] = ()
    """Arguments of example invocations, shown to the model."""

    def verdict(self, arguments: dict[str, Any]) -> Verdict | None:  # noqa: ARG002  # for those that demand something
        """Return what the tool itself demands for this call, whatever the rules say; None where it demands nothing.

        `deny` refuses the call, `ask` has a person asked even where a rule allows it.
        """
        return None

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return the arguments as policy rules are to see them; several where one call does several things.

        A rule that allows must allow every part; one that asks or denies needs to match one. None says that what the
        call would do cannot be told: then no rule can allow it.
        """
        return [arguments]

    # *args stands here for type checkers alone: with it, a tool may declare the parameters that it takes.
    @abstractmethod
    def invoke(self, *args: Any, **arguments: Any) -> Any:
        """Run the tool: called with the validated arguments as keywords, returns a dict that fits `output_schema`.

        The same arguments must give the same result. Whatever it raises fails the step, not the run (core FR-054).
        """
