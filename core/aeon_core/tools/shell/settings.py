"""The user's settings of the shell: how strict it is, how long a command may take, what it may reach."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, field_validator, model_validator

from aeon_core.errors import UsageError

if TYPE_CHECKING:
    import regex

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Place = Annotated[Path, PlainSerializer(str)]
"""A path, as text in a run's journal."""


class ShellSettings(BaseModel):
    """Settings of the Bash tool (REQ-028a, REQ-115). Unknown keys and wrong values raise pydantic's ValidationError,
    an invalid pattern UsageError, so that none is dropped silently.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    safety_mode: Literal["strict", "permissive"] = "strict"
    """`strict` refuses what the blocklist matches, `permissive` asks a person."""
    blocklist: tuple[str, ...] = ()
    """Your own patterns, in addition to the built-in ones."""
    timeout: Seconds = 120.0
    """Seconds a command may take if the call sets no timeout."""
    max_timeout: Seconds = 600.0
    """The longest timeout that a call may set, in seconds."""
    network: bool = False
    """Whether commands reach the network; without isolation they always do."""
    env: tuple[str, ...] = ()
    """Names of environment variables that commands get although they look secret."""
    readable: tuple[_Place, ...] = ()
    """Folders and files in your home folder that commands may read, besides toolchains."""
    output_dir: _Place | None = None
    """Folder for the full text of long outputs; a new temporary folder if not set."""

    @field_validator("blocklist")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        compile_patterns(patterns)
        return patterns

    @model_validator(mode="after")
    def _default_within_bounds(self) -> Self:
        if self.timeout > self.max_timeout:
            raise ValueError(f"timeout must not exceed max_timeout; got {self.timeout:g} and {self.max_timeout:g}")
        return self


def compile_patterns(patterns: Sequence[str]) -> list[regex.Pattern[str]]:
    """Return a user's patterns, compiled. Search them with a timeout: a project's apply without consent.

    Raises UsageError that names the first that is not a regular expression.
    """
    if not patterns:
        return []
    import regex

    compiled = []
    for pattern in patterns:
        try:
            re.compile(pattern)
            compiled.append(regex.compile(pattern, regex.V0))
        except (re.error, regex.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"blocklist: {pattern!r} is not a regular expression ({error}); fix or remove it"
            ) from None
    return compiled
