"""`aeon-tui config`: show settings and their sources, or change one in its file, keeping comments."""

from __future__ import annotations

import contextlib
import json
import os
from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from aeon_core.config.editing import KeyPath, changed, check_project_file, edit_file
from aeon_core.config.keys import APP_KEYS, CONFIG_KEYS, MAPPINGS, PATH_KEYS, listed
from aeon_core.config.loading import (
    DEFAULT,
    LoadedConfig,
    assess_project,
    checked_text,
    read_config_file,
    user_config_file,
)
from aeon_core.config.schema import RunConfig, configured_secrets
from aeon_core.config.trust import ASKED_IN_APP
from aeon_core.errors import UsageError
from aeon_core.paths import PROJECT_FOLDER, named_project_root
from aeon_core.redaction import protect, redact
from aeon_core.suggest import did_you_mean, nearest
from aeon_core.tools import TOOL_SETS
from aeon_core.yaml_file import YamlError, parse_yaml
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, stderr, stdout
from aeon_tui.sessions.run_jobs import checked_model

_FREE = {"keys", "mcp_servers", "prices"}
"""Settings whose keys the user names."""


def execute(args: Namespace) -> int:
    """Show or change settings, and return 0. Raises UsageError for an unknown name or an invalid value."""
    if args.action != "set" and (args.value is not None or args.unset):
        raise UsageError(f"{args.action} takes no value; to change a setting, use `aeon-tui config set NAME VALUE`")
    if args.json and args.action != "get":
        raise UsageError("--json needs get")
    if args.action == "get":
        return _get(args)
    if args.action == "path":
        return _show_paths(args)
    if args.name is None or (args.value is None) is not args.unset:
        raise UsageError("set needs NAME and VALUE, or NAME and --unset; names are listed by `aeon-tui config get`")
    return _set(args)


def setting_path(name: str) -> KeyPath:
    """Return the path of keys of a setting. Raises UsageError, which names the nearest known one."""
    key, _, below = name.partition(".")
    if key not in CONFIG_KEYS:
        hint = did_you_mean(name, CONFIG_KEYS) or "; `aeon-tui config get` lists them"
        raise UsageError(f"unknown setting {name!r}{hint}")
    if not below:
        return (key,)
    if key == "prices":
        # A model's name may have dots.
        model, _, field = below.rpartition(".")
        return (key, model, field) if field in ("input", "output") and model else (key, below)
    if key == "keys":
        return (key, below)
    if key in _FREE:
        return (key, *below.split(".", 2))
    fields = tuple(getattr(RunConfig(), key).__class__.model_fields) if key in MAPPINGS else ()
    if below not in fields:
        names = [f"{key}.{field}" for field in fields]
        hint = nearest(name, names) if names else f"; {key!r} has no settings below it"
        raise UsageError(f"unknown setting {name!r}{hint}")
    return (key, below)


def _get(args: Namespace) -> int:
    path = setting_path(args.name) if args.name is not None else ()
    loaded = options.load(args)
    protect(configured_secrets(loaded.config))
    found = [_shown(loaded, path)] if path else [_shown(loaded, (key,)) for key in CONFIG_KEYS]
    out, err = stdout(), stderr()
    if args.json:
        out.json(found[0] if path else found)
    elif not path:
        _print_all(out, found)
    else:
        value, source = found[0]["value"], found[0]["source"]
        if value is not None:
            out.line(_text(value))
        origin = "not set" if value is None else source if source == DEFAULT else f"from {source}"
        # The value is that of a headless run.
        origin += f"; in the app: {', '.join(ASKED_IN_APP)}" if path == ("approve",) and source == DEFAULT else ""
        err.line((origin, "dim"))
    for key in loaded.ignored:
        if not path or key == path[0]:
            what = f"the project's value of {key} is ignored until you trust the project: `aeon-tui trust`"
            err.line(("note: ", "yellow"), what)
    return 0


def _print_all(out: OutputStream, found: list[dict[str, Any]]) -> None:
    width = max(len(each["name"]) for each in found)
    for each in found:
        value = "" if each["value"] is None else _text(each["value"])
        source = "" if each["source"] == DEFAULT else f"  from {each['source']}"
        out.line((f"{each['name']:<{width}}  ", "bold"), value, (source, "dim"))


def _shown(loaded: LoadedConfig, path: KeyPath) -> dict[str, Any]:
    """Return name, value and source of a setting, without secrets."""
    key, *below = path
    value: Any = loaded.value_of(key) if key in APP_KEYS else loaded.config.model_dump(mode="json")[key]
    source = " and ".join(loaded.sources_of(key))
    for name in below:
        value = value.get(name) if isinstance(value, dict) else None
    return {"name": ".".join(path), "value": redact(value), "source": source}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _show_paths(args: Namespace) -> int:
    if args.name is not None:
        raise UsageError("path takes no name; use `aeon-tui config get NAME` to see where a setting comes from")
    files = {
        "user": user_config_file(os.environ),
        "project": named_project_root(args.project_root) / PROJECT_FOLDER / "config.yml",
    }
    if args.user or args.project:
        stdout().line(str(files["project" if args.project else "user"]))
        return 0
    for name, file in files.items():
        missing = "" if os.access(file, os.F_OK) else "  (does not exist)"
        stdout().line((f"{name:<7}  ", "bold"), str(file), (missing, "dim"))
    return 0


def _set(args: Namespace) -> int:
    path = setting_path(args.name)
    file = user_config_file(os.environ)
    if args.project:
        file = named_project_root(args.project_root) / PROJECT_FOLDER / "config.yml"
        if not file.parent.is_dir():
            raise UsageError(f"{str(file.parent.parent)!r} has no {PROJECT_FOLDER}; run `aeon-tui init` there first")
        check_project_file(file)
    values = [None] if args.unset else _values(path, args.value, args.name, file)
    value, is_changed = None, True

    def edit(before: str) -> str:
        """Return the text with the first of the values that fits."""
        nonlocal value, is_changed
        failure: UsageError | None = None
        for value in values:
            after = changed(before, path, value)
            try:
                _check_use(path, read_config_file(file, after))
            except UsageError as error:
                failure = failure or error
            else:
                is_changed = after != before
                return after
        raise failure or UsageError(f"invalid value for {args.name!r}")

    edit_file(file, edit)
    secret = path[0] == "mcp_servers"  # its env and headers may hold keys
    what = f"{args.name} is {'set' if not args.unset else 'no longer set' if is_changed else 'not set'}"
    what = what if args.unset or secret else f"{args.name} = {_text(value)}"
    stderr().line((what, "green"), f" in {file}{_reservation(args, path[0], file)}")
    return 0


def _values(path: KeyPath, text: str, name: str, file: Path) -> Iterator[Any]:
    """Yield the values that a text may mean, likeliest first. Raises UsageError if there are none."""
    # As `config get` prints a list.
    if text.lstrip().startswith("[") and (path[0] == "model" or CONFIG_KEYS[path[0]].is_list):
        with contextlib.suppress(YamlError):
            found = parse_yaml(text)
            yield checked_model(", ".join(map(str, found))) if path[0] == "model" else found
            return
    if path[0] in ("model", "judge_model"):
        yield checked_model(text)
        return
    if path[0] not in APP_KEYS and path[0] not in MAPPINGS:
        value = checked_text(path[0], text, repr(name))
        yield _relative(value, file) if path[0] in PATH_KEYS else value
        return
    if path[0] == "theme":
        yield text
        return
    if path[0] == "keys" and path[1:]:
        from aeon_tui.keymap import known_keys

        if path[1] not in (known := known_keys()):
            raise UsageError(f"unknown action {path[1]!r}{nearest(path[1], tuple(known))}")
    with contextlib.suppress(YamlError):
        if (value := parse_yaml(text)) is not None:
            yield value
    yield text
    yield listed(text)


def _check_use(path: KeyPath, held: Mapping[str, Any]) -> None:
    """Raise UsageError if the new value of the setting would be unusable."""
    key, *below = path
    if (value := held.get(key)) is None:
        return
    if key == "keys":
        from aeon_tui.keymap import checked_keys

        if below:
            # What is wrong with the other keys in the file is not what was asked for.
            others = {action: text for action, text in value.items() if action not in below}
            value = {each: value[each] for each in below if each in value} | dict(checked_keys(others).keymap)
        if problems := checked_keys(value).problems:
            raise UsageError(problems[0])
    elif key == "tools":
        from aeon_core.tools.loader import spec_parts

        for spec in value:
            if spec not in TOOL_SETS:
                spec_parts(spec)
    elif key == "theme":
        from aeon_tui.settings import why_no_theme

        if problem := why_no_theme(value):
            raise UsageError(problem)


def _relative(path: Path, file: Path) -> str:
    """Return a path as written in a settings file: relative to the file inside the project, else absolute."""
    inside = file.parent.name == PROJECT_FOLDER and path.is_relative_to(file.parent.parent)
    return os.path.relpath(path, file.parent) if inside else str(path)


def _reservation(args: Namespace, key: str, file: Path) -> str:
    """Return why a change has no effect yet; empty if it has one."""
    try:
        loaded = options.load(args)
    except UsageError as error:
        return f"; {error.message}"
    if args.project and key in loaded.ignored and not assess_project(named_project_root(args.project_root)).allowed:
        return "; it applies once you trust this project: `aeon-tui trust`"
    source = loaded.sources_of(key)[-1]
    if not args.unset and key not in MAPPINGS and source != f"the file {str(file)!r}":
        return f"; {source} overrides it"
    return ""
