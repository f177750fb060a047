"""The layers of the configuration: defaults, files, environment, command line; the later one wins.

Every value is checked where it stands, so that a message names the file, the variable or the option it came from.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from aeon_core.checks import close, is_server_url, nearest, shown
from aeon_core.errors import UsageError
from aeon_core.places import PROJECT_FOLDER, find_project_root

if TYPE_CHECKING:
    from aeon_core.config import RunConfig

PATH_KEYS = frozenset({"project_root", "runs_dir", "prompts_dir", "criteria"})
ENVIRONMENT_PREFIX = "AEON_"
MAX_BYTES = 1_000_000

EXPECTED = {
    "model": "text of the form PROVIDER:NAME, or a list of such texts",
    "base_url": "the address of a server, http://HOST:PORT/v1 or https://…",
    "ttl": "a whole number of cycles, 0 or more",
    "single_pass": "true or false",
    "criteria": "text, a file with criteria of convergence",
    "tools": "a list of files, shell, mcp or texts of the form module:attribute",
    "project_root": "text, a folder",
    "approve": "some of 'plan', 'pass' and 'tool', or 'none'",
    "wait": "a number of seconds, 0 or more",
    "on_unknown": "one of fail, retry, ask",
    "durability": "one of full, normal, off",
    "runs_dir": "text, a folder",
    "max_tokens": "a whole number of tokens, 1 or more",
    "timeout": "a number of seconds above 0",
    "prompts_dir": "text, a folder",
    "budget": "an amount in US dollars, 0 or more",
    "budget_warning": "an amount in US dollars, 0 or more",
    "prices": "models with their prices, MODEL: {input: …, output: …}, US dollars for a million tokens",
    "context_window": "a whole number of tokens, 1 or more",
    "policy": "lists of rules, TOOL, TOOL(GLOB) or TOOL(ARGUMENT=GLOB), under allow, ask and deny",
    "shell": "settings of the Bash tool: safety_mode, blocklist, timeout, network, env",
    "mcp_servers": "names of servers with their settings, a command or a url",
    "bedrock": "any of region, profile and role_arn, each a text",
    "otel": "true or false",
    "otel_content": "true or false",
}
KEYS = tuple(EXPECTED)
"""The fields of RunConfig, in its order."""
MAPPINGS = frozenset({"prices", "policy", "shell", "mcp_servers", "bedrock"})
"""Keys that only files and Python can give."""


@dataclass(frozen=True)
class LoadedValues:
    """The checked values of all layers, where each came from, and the files that were read."""

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)


@dataclass(frozen=True)
class LoadedConfig:
    """The configuration, where each value that is no default came from, and the files that were read."""

    config: RunConfig
    sources: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)


def load_config(
    options: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> LoadedConfig:
    """Return the configuration of all layers: what `load_values` gives, as a RunConfig. Raises UsageError."""
    from aeon_core.config import RunConfig

    loaded = load_values(options, config_file=config_file, environ=environ, start=start)
    return LoadedConfig(RunConfig(**loaded.values), loaded.sources, loaded.files)


def load_values(
    options: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    start: Path | None = None,
) -> LoadedValues:
    """Return the values of all layers (contract: Configuration), without the defaults.

    `options` are the command line's, by key; None is absent, and text is read as in the environment. `config_file` is
    `--config`; `start` the folder in which the project is looked for. `project_root` is always set in what is
    returned. Raises UsageError in one line for unknown keys, wrong values and files that cannot be read.
    """
    environ = os.environ if environ is None else environ
    loaded = LoadedValues()
    values = loaded.values

    def add(layer: Mapping[str, Any], source: str) -> None:
        values.update({key: _joined(values.get(key), value) for key, value in layer.items()})
        loaded.sources.update(dict.fromkeys(layer, source))

    def add_file(path: Path) -> None:
        loaded.files.append(path)
        add(read_config_file(path), f"the file {str(path)!r}")

    from_environment = _environment(environ)
    from_options = _texts({_option(key): (key, value) for key, value in (options or {}).items()})
    user = user_config_file(environ)
    if _exists(user):
        add_file(user)
    root = from_options.get("project_root") or from_environment.get("project_root") or values.get("project_root")
    root = Path(root).absolute() if root is not None else find_project_root(start)
    project = root / PROJECT_FOLDER / "config.yml"
    if _exists(project):
        add_file(project)
    if config_file is not None:
        add_file(config_file)
    for key, value in from_environment.items():
        add({key: value}, f"the environment variable {ENVIRONMENT_PREFIX}{key.upper()}")
    for key, value in from_options.items():
        add({key: value}, f"the option {_option(key)}")
    if not root.is_dir():
        raise UsageError(f"the project root {str(root)!r} is no folder; name an existing one with --project-root")
    values["project_root"] = root
    return loaded


def _option(key: str) -> str:
    """Return the option of the command line that gives the key; of a policy it gives the rules that allow."""
    return "--allow" if key == "policy" else f"--{key.replace('_', '-')}"


def _joined(before: Any, value: Any) -> Any:
    """Return what two layers say together: rules add up, prices and servers are told apart by name, else the later."""
    if hasattr(before, "joined"):
        return before.joined(value)
    return {**before, **value} if isinstance(before, dict) else value


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def user_config_file(environ: Mapping[str, str]) -> Path:
    """Return where a person's own configuration is looked for."""
    home = environ.get("XDG_CONFIG_HOME")
    base = Path(home) if home else Path(environ.get("HOME") or "~") / ".config"
    return base / "aeon" / "config.yml"


def read_config_file(path: Path) -> dict[str, Any]:
    """Return the checked values of one YAML file; relative folders in it are relative to the file's own.

    Raises UsageError with the file, and the line where it is known.
    """
    where = f"the config file {str(path)!r}"
    data = _yaml(path, where)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(f"{where} holds {_kind(data)}, expected `key: value` lines such as `ttl: 20`")
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key not in KEYS:
            raise UsageError(f"{where} has the unknown key {key!r}{nearest(str(key), KEYS)}")
        if value is None:
            continue
        # YAML 1.1 reads a bare `off` as false.
        named = f"{key!r} in {where}"
        checked = _checked(key, "off" if key == "durability" and value is False else value, named)
        values[key] = _folder(checked, path.parent.absolute(), named) if key in PATH_KEYS else checked
    return values


def _yaml(path: Path, where: str) -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            found: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in found:
                    line = key.start_mark.line + 1
                    raise UsageError(f"{where}, line {line}: the key {key.value!r} occurs twice; keep one of them")
                found.add(str(key.value))
            return super().construct_mapping(node, deep)

    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"{where} is larger than {MAX_BYTES} bytes, expected a few lines of YAML")
        return yaml.load(content, Loader)  # noqa: S506  # a SafeLoader
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else " ".join(str(error).split())
        raise UsageError(f"{where} cannot be read: {reason}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        raise UsageError(f"{where}{line} is no YAML: {problem}") from None
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply, expected a few lines of YAML") from None


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, tuple[str, Any]] = {}
    known = tuple(f"{ENVIRONMENT_PREFIX}{key.upper()}" for key in KEYS)
    for name, value in environ.items():
        if name in known and value.strip():
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower()
            if key in MAPPINGS:
                raise UsageError(f"the environment variable {name!r} is not read; give {key!r} in a config file")
            found[f"the environment variable {name}"] = (key, value)
        # Other programs may own variables of that prefix: only what looks like a slip is an error.
        elif name.startswith(ENVIRONMENT_PREFIX) and name not in known and (near := close(name, known, 0.85)):
            raise UsageError(f"the environment variable {name!r} is unknown; did you mean {near!r}?")
    return _texts(found)


def _texts(named: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return checked values by key, of texts (or values) by the name they go under in a message."""
    values: dict[str, Any] = {}
    for where, (key, value) in named.items():
        if value is None:
            continue
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{where} is empty, expected {EXPECTED[key]}")
        if key in ("tools", "approve"):
            value = listed(value)
        elif key in ("ttl", "max_tokens", "context_window") and isinstance(value, str):
            value = _whole_number(value)
        checked = _checked(key, value, where)
        values[key] = _folder(checked, Path.cwd(), where) if key in PATH_KEYS else checked
    return values


def _folder(path: Path, base: Path, where: str) -> Path:
    try:
        return base / path.expanduser()
    except RuntimeError:
        raise UsageError(f"{where}: the home folder in {str(path)!r} is not known; write the path out") from None


def _whole_number(text: str) -> int | str:
    try:
        return int(text) if text.strip().isascii() and "_" not in text else text
    except ValueError:
        return text


def listed(value: Any) -> Any:
    """Return the parts of a text with commas; any other value as it is."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _is_text(value: Any) -> bool:
    return type(value) is str


PLAINLY_RIGHT: Mapping[str, Callable[[Any], bool]] = {
    "model": _is_text,
    "otel": lambda value: type(value) is bool,
    "otel_content": lambda value: type(value) is bool,
    "base_url": is_server_url,
    "ttl": lambda value: type(value) is int and value >= 0,
    "single_pass": lambda value: type(value) is bool,
    "tools": lambda value: type(value) is list and all(map(_is_text, value)),
    "max_tokens": lambda value: type(value) is int and value >= 1,
}
"""Which values RunConfig takes as they are: a list of runs opens without loading pydantic to be told so."""


def _checked(key: str, value: Any, where: str) -> Any:
    if isinstance(value, str) and key in PATH_KEYS:
        return Path(value)
    if key in PLAINLY_RIGHT and PLAINLY_RIGHT[key](value):
        return value
    from pydantic import TypeAdapter, ValidationError

    from aeon_core.config import RunConfig

    info = RunConfig.model_fields[key]
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", Annotated[info.annotation, info]))
        return adapter.validate_python(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from None
    except (ValidationError, RecursionError) as error:
        raise UsageError(wrong(key, where, value, error)) from None


def wrong(key: str, where: str, value: Any, error: Exception) -> str:
    """Return the message for a value that does not fit; where only a part of it does not, that part is named."""
    from pydantic import ValidationError

    part = ""
    if key in MAPPINGS and isinstance(value, Mapping) and isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False)[0]
        if place := [str(name) for name in first["loc"] if name not in (key, "[key]")]:
            what = "is unknown" if first["type"] == "extra_forbidden" else f"is {shown(first['input'])}"
            part = f", {'.'.join(place)!r} {what}"
    return f"{where} must be {EXPECTED[key]}; got {shown(value)}{part}"


def _kind(value: Any) -> str:
    return {list: "a list", str: "text", int: "a number", float: "a number", bool: "a truth value"}.get(
        type(value), f"a {type(value).__name__}"
    )
