"""RunConfig: what a run may be told, under the same names on the command line, in files and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from aeon_core.config_files import EXPECTED, KEYS, is_server_url, listed, nearest, shown
from aeon_core.errors import UsageError
from aeon_core.places import default_runs_directory
from aeon_core.places import find_project_root as find_project_root

DEFAULT_TTL = 50
Durability = Literal["full", "normal", "off"]
Approval = Literal["none"]


def _server_url(url: str) -> str:
    if not is_server_url(url):
        raise ValueError("no address of a server")
    return url


class RunConfig(BaseModel):
    """Options of one run (contract: Options of `run`). Unknown keys and wrong values raise UsageError, in one line."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str | None = None
    """`PROVIDER:NAME`; None where the caller hands over an adapter."""
    base_url: Annotated[str, AfterValidator(_server_url)] | None = None
    ttl: Annotated[int, Field(strict=True, ge=0)] = DEFAULT_TTL
    """The most cycles the run may use."""
    single_pass: bool = False
    tools: list[str] = Field(default_factory=list)
    """Tool specifications, `module:attribute`."""
    project_root: Path | None = None
    approve: Annotated[list[Approval], BeforeValidator(listed)] = ["none"]
    """What a person is asked about: nothing, in this version."""
    durability: Durability = "normal"
    runs_dir: Path | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1)] = 4096
    """The longest reply asked for, in tokens."""
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0
    """Seconds a model may be silent."""
    prompts_dir: Path | None = None
    """A folder with prompts of one's own, `<purpose>.md`, in place of the built-in ones."""

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False)[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        if key not in KEYS:
            raise UsageError(f"RunConfig has no field {key!r}{nearest(key, KEYS)}")
        raise UsageError(f"{key!r} of RunConfig must be {EXPECTED[key]}; got {shown(data[key])}")


def runs_directory(config: RunConfig | None = None) -> Path:
    """Return where runs live: the config's `runs_dir`, else what `default_runs_directory` says of its project."""
    if config is None:
        return default_runs_directory()
    return config.runs_dir if config.runs_dir is not None else default_runs_directory(config.project_root)
