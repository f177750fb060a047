"""The layers of the configuration: defaults, files, environment, command line; later ones win.

Each value is checked when its layer is read, so that a message names the file, the variable or the option. Forms
check what a person enters in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from aeon_core.config.keys import (
    APP_KEYS,
    CONFIG_KEYS,
    KEYS,
    MAPPINGS,
    PATH_KEYS,
    THEME_VARIABLE,
    AppSettings,
    listed,
    wrong,
)
from aeon_core.config.trust import (
    ProjectTrust,
    TrustMode,
    assess_values,
    project_modules,
    refusal,
    refuse_foreign_folders,
)
from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER, existing_root, expanded, find_project_root, working_directory
from aeon_core.suggest import close, is_server_url, nearest, shown

if TYPE_CHECKING:
    from aeon_core.config.schema import RunConfig

ENVIRONMENT_PREFIX = "AEON_"
DEFAULT = "default"
"""The source of a value that has not been set."""


class Loaded(Struct, frozen=True, kw_only=True):
    """What is known about the configuration besides its values: the files read, the app's settings, and trust."""

    files: list[Path] = []
    app: AppSettings = field(default_factory=AppSettings)
    """The app's settings, which are not part of a run."""
    trust: ProjectTrust = field(default_factory=lambda: ProjectTrust(Path()))
    """What the project asks for, and whether it has consent."""
    mode: TrustMode = "ignore"
    """How keys that need consent were treated."""
    ignored: dict[str, str] = {}
    """Keys of the project that lack consent and do not apply, with their sources."""
    merged: dict[str, list[str]] = {}
    """The earlier sources of values to which a later source adds."""


class LoadedValues(Loaded, frozen=True):
    """The checked values of all layers, without the defaults, and their sources."""

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    verified: dict[str, str] = {}
    """SHA-256 of the project's files that the values would execute or read, by path, as consented to."""

    def add(self, layer: Mapping[str, Any], source: str) -> None:
        """Add the values of a later layer."""
        for key, value in layer.items():
            before, last = self.values.get(key), self.sources.get(key, source)
            if last != source and (isinstance(before, dict) or hasattr(before, "joined")):
                self.merged.setdefault(key, []).append(last)
            self.values[key], self.sources[key] = joined(before, value), source


class LoadedConfig(Loaded, frozen=True):
    """The configuration, and the source of each value that is not a default."""

    config: RunConfig
    sources: dict[str, str] = {}

    def value_of(self, key: str) -> Any:
        """Return the value of a setting of runs or of the app."""
        return getattr(self.app if key in APP_KEYS else self.config, key)

    def sources_of(self, key: str) -> list[str]:
        """Return the sources of a setting's value, in the order that they add to it; DEFAULT if it has not been set."""
        last = (self.app.sources if key in APP_KEYS else self.sources).get(key, DEFAULT)
        return [*self.merged.get(key, ()), last]

    @property
    def project_source(self) -> str:
        """The name of the project's own configuration file in `sources`."""
        return _source(self.config.root / PROJECT_FOLDER / "config.yml")


def load_config(
    options: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    start: Path | None = None,
    trust: TrustMode = "ignore",
) -> LoadedConfig:
    """Return the result of `load_values` as a RunConfig. Raises UsageError."""
    from aeon_core.config.schema import RunConfig

    loaded = load_values(options, config_file=config_file, environ=environ, start=start, trust=trust)
    config = RunConfig(**loaded.values).with_verified(loaded.verified)
    return LoadedConfig(config, loaded.sources, **{name: getattr(loaded, name) for name in Loaded.__struct_fields__})


def load_values(
    options: Mapping[str, Any] | None = None,
    *,
    config_file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    start: Path | None = None,
    trust: TrustMode = "ignore",
) -> LoadedValues:
    """Return the values of all layers (contract: Configuration), without the defaults.

    `options` are the command line's, by key; None means absent, and text is parsed as in the environment. `config_file`
    is `--config`; `start` is the folder from which the project is searched. `project_root` is always set in the
    result. `trust` says how to treat a project's keys that need consent. Raises UsageError in one line for unknown
    keys, wrong values, unreadable files, a project folder of another user, and, with `require`, missing consent.
    """
    loaded = LoadedValues()
    values = loaded.values

    from_environment = _environment(environ)
    from_options = checked_texts({_option(key): (key, value) for key, value in (options or {}).items()})
    user = user_config_file(environ)
    if os.access(user, os.F_OK):
        loaded.add(_read(user, loaded), _source(user))
    root = from_options.get("project_root") or from_environment.get("project_root") or values.get("project_root")
    root = Path(root).absolute() if root is not None else find_project_root(start)
    refuse_foreign_folders(root, environ)
    project = root / PROJECT_FOLDER / "config.yml"
    found = _read(project, loaded) if os.access(project, os.F_OK) else {}
    extra = _read(config_file, loaded) if config_file is not None else {}
    asked, harmless, gated = assess_values(root, found, {**values, **from_environment}, environ)
    applies = trust == "apply" or (trust != "never" and asked.allowed)
    loaded.add(harmless, _source(project))
    if applies:
        loaded.add(gated, _source(project))
    else:
        loaded.ignored.update(dict.fromkeys(gated, _source(project)))
    if config_file is not None:
        loaded.add(extra, _source(config_file))
    if theme := environ.get(THEME_VARIABLE, "").strip():
        loaded.add({"theme": theme}, f"the environment variable {THEME_VARIABLE}")
    for key, value in from_environment.items():
        loaded.add({key: value}, f"the environment variable {ENVIRONMENT_PREFIX}{key.upper()}")
    if not applies and "tools" not in extra and (left_out := project_modules(values.get("tools", ()), root)):
        loaded.ignored["tools"] = loaded.sources["tools"]
        values["tools"] = [spec for spec in values["tools"] if spec not in left_out]
    for key, value in from_options.items():
        loaded.add({key: value}, f"the option {_option(key)}")
    overrides = {*extra, *from_options, *(from_environment.keys() - {"tools"})}
    if trust == "require" and (error := refusal(asked, overrides)) is not None:
        raise error
    values["project_root"] = existing_root(root)
    verified = asked.digests_of(item for item in asked.items if item.is_asked(overrides)) if trust != "apply" else {}
    of_app = {key: values.pop(key) for key in APP_KEYS if key in values}
    app = AppSettings(**of_app, sources={key: loaded.sources.pop(key) for key in of_app})
    return replace(loaded, app=app, trust=asked, mode=trust, verified=verified if applies else {})


def _read(path: Path, loaded: LoadedValues) -> dict[str, Any]:
    loaded.files.append(path)
    return read_config_file(path)


def _source(path: Path) -> str:
    return f"the file {str(path)!r}"


def _option(key: str) -> str:
    """Return the command-line option of a key; that of `policy` is `--allow`, for the rules that allow calls."""
    return "--allow" if key == "policy" else f"--{key.replace('_', '-')}"


def joined(before: Any, value: Any) -> Any:
    """Merge two layers: rules add up, prices and servers are merged by name, and otherwise the later value wins."""
    if hasattr(before, "joined"):
        return before.joined(value)
    return {**before, **value} if isinstance(before, dict) else value


def user_config_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the user's own configuration file, never one relative to the working directory."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    if not base.is_absolute():
        base = Path("/", environ.get("HOME") or os.path.expanduser("~"), ".config")  # noqa: PTH111
    return base / "aeon" / "config.yml"


def assess_project(root: Path, environ: Mapping[str, str] = os.environ) -> ProjectTrust:
    """Return what the project's `.aeon/config.yml` asks for and whether it is trusted. Executes nothing.

    What the user's own configuration file and environment already say needs no consent. Raises UsageError if the
    file cannot be read, and for a folder that belongs to another user.
    """
    return load_values({"project_root": str(root)}, environ=environ, trust="ignore").trust


def read_config_file(path: Path, text: str | None = None) -> dict[str, Any]:
    """Return the checked values of one YAML file; paths in it are relative to the folder of the file.

    `text` is its future content, if that is not written yet. Raises UsageError with the file and, if known, the line.
    """
    from aeon_core.yaml_file import YamlError, load_yaml, parse_yaml, without_schema_line

    where = f"the config file {str(path)!r}"
    try:
        data = load_yaml(path, where) if text is None else parse_yaml(text.removeprefix("\ufeff"))
    except YamlError as error:
        raise UsageError(error.at(where)) from None
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise UsageError(f"{where} is {_kind(data)}; expected `key: value` lines such as `ttl: 20`")
    values: dict[str, Any] = {}
    for key, value in without_schema_line(data).items():
        if key not in CONFIG_KEYS:
            raise UsageError(f"{where} has an unknown key, {key!r}{nearest(str(key), CONFIG_KEYS)}")
        if value is None:
            continue
        named = f"{key!r} in {where}"
        checked = checked_value(key, value, named)
        values[key] = path.parent.absolute() / expanded(checked, named) if key in PATH_KEYS else checked
    return values


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, tuple[str, Any]] = {}
    settable = {f"{ENVIRONMENT_PREFIX}{key.upper()}": key for key in KEYS if key not in MAPPINGS}
    for name, value in environ.items():
        if not (name.startswith(ENVIRONMENT_PREFIX) and value.strip()) or name == THEME_VARIABLE:
            continue
        if name in settable:
            found[f"the environment variable {name}"] = (settable[name], value)
            continue
        of_files = _settings_of_files()
        # Other programs may use variables with that prefix, so only a likely misspelling is an error.
        near = close(name, (*settable, THEME_VARIABLE, *of_files), 0.85)
        if near in of_files:
            what = f"is not supported; set {of_files[near]!r} in a config file"
            raise UsageError(f"the environment variable {name!r} {what}")
        if near is not None:
            raise UsageError(f"the environment variable {name!r} is unknown; did you mean {near!r}?")
    return checked_texts(found)


def _settings_of_files() -> dict[str, str]:
    """Return the settings that only a file can hold, by the variable that a person may try instead."""
    from aeon_core.config.schema import RunConfig

    defaults = RunConfig()
    settings = list(MAPPINGS)
    for key in MAPPINGS:
        settings += [f"{key}.{field}" for field in getattr(type(getattr(defaults, key)), "model_fields", ())]
    return {f"{ENVIRONMENT_PREFIX}{setting.upper().replace('.', '_')}": setting for setting in settings}


def _kind(value: Any) -> str:
    return {list: "a list", str: "text", int: "a number", float: "a number", bool: "true or false"}.get(
        type(value), f"a {type(value).__name__}"
    )


def _theme(value: Any) -> str | None:
    return value.strip() if isinstance(value, str) and value.strip() and value.isprintable() else None


def _keys(value: Any, where: str) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    found = {}
    for action, keys in value.items():
        # YAML reads a digit key as a number.
        keys = str(keys) if type(keys) is int and 0 <= keys <= 9 else keys
        if not (isinstance(action, str) and isinstance(keys, str) and keys.strip() and keys.isprintable()):
            raise UsageError(f"{where} gives {shown(action)} the key {shown(keys)}; write it as Z, f5 or ctrl+d")
        found[action] = ",".join(key.strip() for key in keys.split(",") if key.strip()) or "comma"
    return found


def checked_texts(named: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Return checked values by key; `named` has each key and its text (or value) by its name in messages.

    Relative paths are relative to the working directory. Raises UsageError.
    """
    values: dict[str, Any] = {}
    for where, (key, value) in named.items():
        if value is None:
            continue
        if isinstance(value, str) and not value.strip():
            raise UsageError(f"{where} is empty, expected {CONFIG_KEYS[key].expected}")
        if CONFIG_KEYS[key].is_list:
            value = [part for text in value for part in listed(text)] if isinstance(value, list) else listed(value)
        elif CONFIG_KEYS[key].is_whole and isinstance(value, str):
            value = _whole_number(value)
        checked = checked_value(key, value, where)
        values[key] = working_directory() / expanded(checked, where) if key in PATH_KEYS else checked
    return values


def checked_text(key: str, text: str, where: str) -> Any:
    """Return the value of a text that a person typed, parsed as in the environment. Raises UsageError."""
    return checked_texts({where: (key, text)})[key]


def _whole_number(text: str) -> int | str:
    try:
        return int(text) if text.strip().isascii() and not {"_", "-"} & set(text) else text
    except ValueError:
        return text


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
"""Tests for values that RunConfig accepts unchanged, so that the list of runs opens without loading pydantic."""


def checked_value(key: str, value: Any, where: str) -> Any:
    """Return a value in the form of RunConfig or the app. Raises UsageError in one line that begins with `where`."""
    if key in APP_KEYS:
        if (checked := _theme(value) if key == "theme" else _keys(value, where)) is None:
            raise UsageError(f"{where} must be {CONFIG_KEYS[key].expected}; got {shown(value)}")
        return checked
    if isinstance(value, str) and value and key in PATH_KEYS:
        return Path(value)
    if key in PLAINLY_RIGHT and PLAINLY_RIGHT[key](value):
        return value
    from pydantic import TypeAdapter, ValidationError

    from aeon_core.config.schema import RunConfig

    info = RunConfig.model_fields[key]
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", Annotated[info.annotation, info]))
        return adapter.validate_python(value)
    except UsageError as error:
        raise UsageError(f"{where}: {error.message}") from None
    except (ValidationError, RecursionError) as error:
        raise UsageError(wrong(key, where, value, error)) from None
