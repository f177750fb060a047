"""What a user may set about the shell: how strict it is, how long a command may take, what it may reach.

`Limits` is what a command is held to in the end, whichever way of isolation does it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from aeon_core.errors import UsageError

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ShellSettings(BaseModel):
    """Settings of the Bash tool (REQ-028a, REQ-115). Unknown keys and wrong values raise pydantic's ValidationError,
    a pattern that is none UsageError: no pattern is lost without a word.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    safety_mode: Literal["strict", "permissive"] = "strict"
    """`strict` refuses what the blocklist matches, `permissive` asks a person."""
    blocklist: tuple[str, ...] = ()
    """Patterns of one's own, merged with the built-in ones."""
    timeout: Seconds = 120.0
    """Seconds a command may take where the call does not say."""
    max_timeout: Seconds = 600.0
    """The most seconds that a call may ask for."""
    network: bool = False
    """Whether commands reach the network; without isolation they always do."""
    env: tuple[str, ...] = ()
    """Names of environment variables that commands get although they look secret."""
    readable: tuple[Path, ...] = ()
    """Folders and files of the home that commands may read, besides toolchains."""
    output_dir: Path | None = None
    """Where long outputs are kept whole; a fresh folder among the temporary files where it is None."""

    @field_validator("blocklist")
    @classmethod
    def _are_patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise UsageError(
                    f"blocklist: {pattern!r} is not a regular expression ({error}); fix or remove it"
                ) from None
        return patterns

    @model_validator(mode="after")
    def _default_within_bounds(self) -> Self:
        if self.timeout > self.max_timeout:
            raise ValueError(f"timeout must not exceed max_timeout; got {self.timeout:g} and {self.max_timeout:g}")
        return self


@dataclass(frozen=True, slots=True)
class Limits:
    """All paths are absolute, resolved, and exist."""

    root: Path
    """The project root: read and write."""
    scratch: Path
    """A folder for temporary files: read and write."""
    network: bool
    hidden: tuple[Path, ...] = ()
    """Places with keys: neither read nor write, but for what is `shown` in them. May hold the root."""
    shown: tuple[Path, ...] = ()
    """What may be read within what is hidden, or among the temporary files. May be symbolic links."""
    protected: tuple[Path, ...] = ()
    """What may be read and not changed, within what may be written to. bubblewrap alone holds commands to it."""
    placeholders: tuple[Path, ...] = ()
    """Stand-ins for what must not be made: to a command they are empty and cannot be changed."""
    git_folders: tuple[Path, ...] = ()
    """Repositories outside the root that its `.git` belongs to: read and write."""
