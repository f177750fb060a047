"""The workflow's settings in `.system2/config.yml`, most in `providers.bedrock.orchestrator` (REQ-084, 085, 140)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError

from aeon_core.budget import PriceEntry
from aeon_core.config.loading import checked_value
from aeon_core.config.schema import Dollars, Number, no_truth_value
from aeon_core.errors import UsageError
from aeon_core.suggest import NEAR, close, first_problem, nearest, shown, truth_value
from aeon_core.tools.shell.settings import compile_patterns
from aeon_core.yaml_file import load_yaml
from system2.constants import DEFAULT_TRANSCRIPT_DIR

CONFIG_FILE = Path(".system2") / "config.yml"
NAMESPACE = "providers.bedrock.orchestrator"

_AUTH_KEYS = {
    "region": ("region", "region_name", "aws_region"),
    "profile": ("profile", "profile_name", "aws_profile"),
    "role_arn": ("role_arn", "assume_role_arn"),
}
"""Our names of these keys, and the names that a file may use."""
_MODEL_KEYS = ("model", "model_id", "default_model")


def _is_pattern(value: Any) -> Any:
    if isinstance(value, str):
        try:
            compile_patterns([value])
        except UsageError as error:
            raise ValueError(error.message.partition(": ")[2].partition("; ")[0]) from None
    return value


Count = Annotated[int, BeforeValidator(no_truth_value), Field(ge=1)]
Temperature = Annotated[Number, Field(ge=0, le=1)]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class AgentOverride(BaseModel):
    """The `agent_overrides` of one agent."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    model: Text | None = None
    """Its Bedrock model, without the provider."""
    temperature: Temperature | None = None


class WorkflowSettings(BaseModel):
    """What a project may set about the workflow; every key is optional (REQ-153)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)

    cost_ceiling_usd: Dollars = 5.0
    """What a workflow may cost before a person must let it continue (REQ-132)."""
    cost_warning_usd: Dollars = 2.0
    log_format: Literal["text", "json"] = "text"
    log_destination: Text = "stderr"
    """`stderr`, or a file, relative to the project root (REQ-124)."""
    safety_mode: Literal["strict", "permissive"] = "strict"
    """`strict` refuses blocklisted Bash commands, `permissive` asks a person (REQ-115)."""
    bash_blocklist: tuple[Annotated[str, BeforeValidator(_is_pattern)], ...] = ()
    """Regular expressions in addition to the built-in patterns (REQ-028a)."""
    bash_network: Annotated[bool, BeforeValidator(truth_value), Field(strict=True)] = False
    """Whether commands may use the network; on a machine that cannot isolate them they always can."""
    file_changes: Literal["allow", "ask"] = "allow"
    """`ask` shows a person the diff before each Write and Edit; `allow` does so only for files that the agent may not
    change."""
    prices: dict[str, PriceEntry] = Field(default_factory=dict)
    """US dollars per million tokens, `input` and `output`, by model; these override known prices."""
    transcript_dir: Text = DEFAULT_TRANSCRIPT_DIR
    """Where transcripts are written, relative to the project root."""
    max_tool_turns: Count = 200
    context_window_tokens: Count = 200_000
    max_output_tokens: Count = 8192

    model: str | None = None
    """The Bedrock model of `providers.bedrock`, without the provider; None if the file names none."""
    bedrock: dict[str, str] = Field(default_factory=dict)
    """`region`, `profile` and `role_arn` of `providers.bedrock`, for `connect` (REQ-161)."""
    temperature: Temperature | None = None
    """That of `providers.bedrock.defaults`."""
    agents: dict[str, AgentOverride] = Field(default_factory=dict)
    """The file's `agent_overrides`, by agent."""


_ELSEWHERE = frozenset({"model", "bedrock", "temperature", "agents"})
"""Settings from other places in the file."""
_BLOCKLIST = "'bash_blocklist':"
"""The key as `repr` shows it."""
KEYS = tuple(key for key in WorkflowSettings.model_fields if key not in _ELSEWHERE)


def load_settings(
    project_root: Path, config_path: Path | None = None, warn: Callable[[str], None] = lambda _: None
) -> WorkflowSettings:
    """Return the settings of a project, or of `config_path`; the file is never written (REQ-141).

    A wrong value falls back to its default (a wrong `file_changes` to `ask`), and all values do if the file is missing
    or not YAML; `warn` gets one line (REQ-094). A project without a settings file gets no warning.

    Raises UsageError for a wrong or misplaced blocklist, which must not be lost (REQ-028a).
    """
    path = config_path if config_path is not None else project_root / CONFIG_FILE
    where = f"the config file {str(path)!r}"
    data: dict[str, Any] = {}
    if config_path is not None or os.path.lexists(path):
        try:
            read = load_yaml(path, where)
        except UsageError as error:
            warn(f"{error.message}; the defaults are used")
        else:
            data = _mapping(read, where, warn)
    providers = _mapping(data.get("providers"), f"{where}: providers", warn)
    bedrock = _mapping(providers.get("bedrock"), f"{where}: providers.bedrock", warn)
    given = _mapping(bedrock.get("orchestrator"), f"{where}: {NAMESPACE}", warn)
    defaults = _mapping(bedrock.get("defaults"), f"{where}: providers.bedrock.defaults", warn)
    levels = (
        ("the top level", data, ("providers", "agent_overrides")),
        ("providers", providers, ("bedrock",)),
        ("providers.bedrock", bedrock, ("orchestrator", "defaults", "auth")),
    )
    for place, found, blocks in levels:
        wrong = f"is at {place}, where it has no effect; move it to {NAMESPACE}"
        problems = {key: f"{key} {wrong}" for key in found if key in KEYS}
        lost = [key for key, value in found.items() if key != blocks[0] and _BLOCKLIST in repr({key: value})]
        for key in lost:
            problems.setdefault(key, f"bash_blocklist in {key!r} at {place} has no effect; move it to {NAMESPACE}")
        given_blocks = [key for key, value in found.items() if isinstance(value, dict)]
        for block in blocks:
            if block not in found and (near := close(block, given_blocks, NEAR)):
                problems[near] = f"{near!r} at {place} has no effect; did you mean {block!r}?"
        for key, problem in problems.items():
            if key in lost:
                raise UsageError(f"{where}: {problem}")
            warn(f"{where}: {problem}")
    for key in [key for key in given if key not in KEYS]:
        if _BLOCKLIST in repr(given[key]):
            raise UsageError(f"{where}: bash_blocklist in {key!r} has no effect; move it to {NAMESPACE}")
        hint = nearest(str(key), KEYS)
        warn(f"{where}: {NAMESPACE} has an unknown key, {shown(key)}, which is ignored{hint}")
    known = {"max_output_tokens": defaults.get("max_tokens"), "temperature": defaults.get("temperature")}
    known |= {key: value for key, value in given.items() if key in KEYS}
    settings = _settings({key: value for key, value in known.items() if value is not None}, where, warn)
    agents = _overrides(_mapping(data.get("agent_overrides"), f"{where}: agent_overrides", warn), where, warn)
    model = next((bedrock[key] for key in _MODEL_KEYS if bedrock.get(key)), None)
    model = model if isinstance(model, str) else None
    return settings.model_copy(update={"model": model, "bedrock": _auth(bedrock, where, warn), "agents": agents})


def recorded_settings(options: Mapping[str, Any]) -> WorkflowSettings:
    """Return the settings in the options that a journal begins with. Raises UsageError."""
    try:
        return WorkflowSettings.model_validate(options.get("settings"))
    except ValidationError as error:
        raise UsageError(f"the journal's settings cannot be used: {first_problem(error)}") from None


def _settings(given: dict[str, Any], where: str, warn: Callable[[str], None]) -> WorkflowSettings:
    try:
        if "prices" in given:
            checked_value("prices", given["prices"], f"{where}: prices")
    except UsageError as error:
        warn(f"{error.message}; the known prices are used instead")
        given = {**given, "prices": {}}
    try:
        return WorkflowSettings(**given)
    except ValidationError as error:
        bad = {str(problem["loc"][0]): problem["msg"] for problem in error.errors()}
    if (problem := bad.get("bash_blocklist")) is not None:
        # Without it, commands would run that a person meant to stop.
        prefix, is_ours, ours = problem.partition("Value error, ")
        expected = f"expected a list of regular expressions, got {shown(given['bash_blocklist'])}"
        problem = ours if is_ours and not prefix else expected
        raise UsageError(f"{where}: bash_blocklist: {problem}; fix or remove it")
    used: dict[str, Any] = {}
    for key, problem in bad.items():
        # The default of `file_changes` would allow what a person may have meant to be asked about.
        default = WorkflowSettings.model_fields[key].get_default(call_default_factory=True)
        used[key] = "ask" if key == "file_changes" else default
        warn(f"{where}: {key} cannot be {shown(given[key])}: {problem}; {used[key]!r} is used instead")
    return WorkflowSettings(**given | used)


def _overrides(given: dict[str, Any], where: str, warn: Callable[[str], None]) -> dict[str, AgentOverride]:
    """Return the overrides by agent; one for another provider or with an error is reported and ignored."""
    found: dict[str, AgentOverride] = {}
    for agent, entry in given.items():
        what = f"{where}: agent_overrides of {shown(agent)}"
        provider = entry.get("provider", "bedrock") if isinstance(entry, dict) else None
        if provider != "bedrock":
            warn(f"{what}: expected `provider: bedrock`, got {shown(entry if provider is None else provider)}; ignored")
            continue
        try:
            values = {key: value for key, value in entry.items() if key != "provider"}
            found[str(agent)] = AgentOverride.model_validate(values)
        except ValidationError as error:
            warn(f"{what} are ignored: {first_problem(error)}")
    return found


def _mapping(value: Any, what: str, warn: Callable[[str], None]) -> dict[str, Any]:
    """Return a value from the file if it is a mapping, else an empty one, with a warning unless it is absent.

    Raises UsageError if a blocklist would be lost.
    """
    if value is not None and not isinstance(value, dict):
        problem = f"{what} must hold `key: value` lines"
        if _BLOCKLIST in repr(value):
            raise UsageError(f"{problem}; move bash_blocklist to {NAMESPACE}")
        warn(f"{problem}; the defaults are used")
    return value if isinstance(value, dict) else {}


def _auth(bedrock: dict[str, Any], where: str, warn: Callable[[str], None]) -> dict[str, str]:
    """Return the region, profile and role, which are among the other keys or in a block `auth`.

    Reports a key that is misspelt or no text, also one that names the model: requests would go elsewhere unnoticed.
    """
    auth = _mapping(bedrock.get("auth"), f"{where}: providers.bedrock.auth", warn)
    own = [*chain.from_iterable(_AUTH_KEYS.values())]
    levels = (("providers.bedrock", bedrock, [*_MODEL_KEYS, *own]), ("providers.bedrock.auth", auth, own))
    for place, found, names in levels:
        for key, value in found.items():
            if key in names and not isinstance(value, str | None):
                warn(f"{where}: {key} at {place} cannot be {shown(value)}; it must be text")
            near = close(str(key), names, 0.8) if key not in (*names, "models") else None
            if near is not None and near not in found:
                warn(f"{where}: {key!r} at {place} has no effect; did you mean {near!r}?")
    found = {
        name: next((place[key] for place in (bedrock, auth) for key in keys if isinstance(place.get(key), str)), None)
        for name, keys in _AUTH_KEYS.items()
    }
    return {name: value for name, value in found.items() if value}
