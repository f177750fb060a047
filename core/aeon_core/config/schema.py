"""RunConfig: the options of a run, with the same names on the command line, in files and in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from aeon_core.budget import PriceEntry
from aeon_core.config.keys import KEYS, listed, wrong
from aeon_core.errors import UsageError
from aeon_core.json_safe import json_safe
from aeon_core.paths import default_runs_directory, expanded, find_project_root
from aeon_core.policy import PolicyRules
from aeon_core.secret_forms import url_secrets
from aeon_core.suggest import is_server_url, nearest
from aeon_core.tools.mcp.settings import McpServer, server_secrets, servers_from
from aeon_core.tools.shell.settings import ShellSettings

DEFAULT_TTL = 50
_ADDRESSES = ("base_url", "mcp_servers")
"""Options that may hold a password."""
_REDACTED = "[redacted"
"""The prefix of a secret's placeholder in journals of all versions."""
Durability = Literal["full", "normal", "off"]
Approval = Literal["none", "plan", "pass", "tool"]
OnUnknown = Literal["fail", "retry", "ask"]


def _none_alone(approve: list[Approval]) -> list[Approval]:
    if "none" in approve and len(approve) > 1:
        raise ValueError("'none' excludes the others")
    return approve


def no_truth_value(value: Any) -> Any:
    """Return a value that must be a number. Raises ValueError for true and false, which pydantic accepts as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


Number = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(no_truth_value)]
Dollars = Annotated[Number, Field(ge=0)]


def _server_url(url: str) -> str:
    if not is_server_url(url):
        raise ValueError("not a server address")
    return url


def _not_empty(path: Any) -> Any:
    if path == "":
        raise ValueError("an empty path")
    return path


def _expanded(path: Path, info: ValidationInfo) -> Path:
    return expanded(path, f"{info.field_name!r} of RunConfig")


ExpandedPath = Annotated[Path, BeforeValidator(_not_empty), AfterValidator(_expanded)]


class BedrockSettings(BaseModel):
    """The region and identity for Bedrock, in place of those of the AWS environment."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    region: str | None = None
    """AWS region, such as us-east-1."""
    profile: str | None = None
    """Profile of the AWS configuration."""
    role_arn: str | None = None
    """A role to assume."""


class RunConfig(BaseModel):
    """Options of one run (contract: Options of `run`); `keys.CONFIG_KEYS` describes each.

    Unknown keys and wrong values, assigned ones too, raise UsageError, in one line.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", defer_build=True, protected_namespaces=(), validate_assignment=True
    )

    model: str | Annotated[list[str], Field(min_length=1)] | None = None
    """None if the caller passes an adapter."""
    base_url: Annotated[str, AfterValidator(_server_url)] | None = None
    ttl: Annotated[int, Field(strict=True, ge=0)] = DEFAULT_TTL
    single_pass: bool = False
    criteria: ExpandedPath | None = None
    requirements: ExpandedPath | None = None
    judge_model: str | None = None
    judge_votes: Annotated[Literal[1, 3], BeforeValidator(no_truth_value)] = 1
    tools: list[str] = Field(default_factory=list)
    project_root: ExpandedPath | None = None
    approve: Annotated[list[Approval], Field(min_length=1), BeforeValidator(listed), AfterValidator(_none_alone)] = [
        "none"
    ]
    wait: Annotated[Number, Field(ge=0)] = 0.0
    on_unknown: OnUnknown = "fail"
    durability: Durability = "normal"
    runs_dir: ExpandedPath | None = None
    max_tokens: Annotated[int, Field(strict=True, ge=1)] = 4096
    timeout: Annotated[Number, Field(gt=0)] = 120.0
    prompts_dir: ExpandedPath | None = None

    budget: Dollars | None = None
    budget_warning: Dollars | None = None
    prices: dict[str, PriceEntry] = Field(default_factory=dict)
    """By `PROVIDER:NAME` or NAME."""
    context_window: Annotated[int, Field(strict=True, ge=1)] | None = None
    policy: PolicyRules = Field(default_factory=PolicyRules)
    shell: ShellSettings = Field(default_factory=ShellSettings)
    mcp_servers: Annotated[dict[str, McpServer], BeforeValidator(servers_from)] = Field(default_factory=dict)
    bedrock: BedrockSettings = Field(default_factory=BedrockSettings)
    otel: bool = False
    otel_content: bool = False

    _verified: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def verified(self) -> dict[str, str]:
        """SHA-256 of the project's files that a person has consented to, by path; only files with these are loaded.

        Empty if nothing of the project is loaded, or the command line itself names it. It is not journaled.
        """
        return self._verified

    def with_verified(self, digests: dict[str, str]) -> Self:
        """Return a copy with the digests of the project's files that may be loaded."""
        copy = self.model_copy()
        copy._verified = dict(digests)
        return copy

    @property
    def models(self) -> list[str]:
        """The models in order of use; empty if none is configured."""
        return [self.model] if isinstance(self.model, str) else list(self.model or ())

    @property
    def root(self) -> Path:
        """The project root: the one that is set, else the one that the current folder is in."""
        return self.project_root if self.project_root is not None else find_project_root()

    def as_json(self) -> dict[str, Any]:
        """Return the values that are set as plain JSON; a path is UTF-8 text."""
        values = self.model_dump(exclude_none=True).items()
        plain: dict[str, Any] = json_safe({key: str(each) if isinstance(each, Path) else each for key, each in values})
        return plain

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_line(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            failure = error
        first = failure.errors(include_url=False, include_context=False)[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        if key not in KEYS:
            raise UsageError(f"RunConfig has no field {key!r}{nearest(key, KEYS)}")
        # Of an assignment, `data` is the object before it.
        given = first["input"] if isinstance(data, cls) else data[key]
        raise UsageError(wrong(key, f"{key!r} of RunConfig", given, failure))


def recorded_config(started: Mapping[str, Any]) -> RunConfig:
    """Return the options that a run was started with. Raises UsageError if this version does not support them.

    Options with an address whose password is not in the journal are left out, since they cannot be used.
    """
    hidden = hidden_options(started["config"])
    try:
        return RunConfig(**{key: value for key, value in started["config"].items() if key not in hidden})
    except UsageError as error:
        raise UsageError(f"this version of Aeon cannot read the options in the journal: {error.message}") from None


def hidden_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded options that lack a password and so cannot be used."""
    return {key: config[key] for key in _ADDRESSES if key in config and _REDACTED in json.dumps(config[key])}


def providers_of(model: str | list[str] | None) -> set[str]:
    """Return the providers of one or several configured models."""
    models = [model] if isinstance(model, str) else model or []
    return {each.partition(":")[0] for each in models}


def runs_directory(config: RunConfig | None = None) -> Path:
    """Return the folder of runs: the config's `runs_dir`, else the default one of its project."""
    if config is None:
        return default_runs_directory()
    return config.runs_dir if config.runs_dir is not None else default_runs_directory(config.project_root)


def configured_secrets(config: RunConfig) -> Iterator[str]:
    """Yield the keys, headers and passwords in a configuration, which are secrets wherever they occur."""
    yield from url_secrets(config.base_url or "")
    for name, server in config.mcp_servers.items():
        yield from server_secrets(name, server)
