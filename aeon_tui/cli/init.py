"""`aeon-tui init` and `schema`: a project's commented configuration, the schemas of its files, and a .gitignore."""

from __future__ import annotations

import json
import textwrap
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from aeon_core.config.editing import as_scalar
from aeon_core.config.keys import CONFIG_KEYS, ConfigKey
from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.paths import GITIGNORE, PROJECT_FOLDER, create_file, is_placeholder, named_project_root
from aeon_core.schemas import FILES, field_docs, schema, schema_names
from aeon_tui.cli.output import stderr, stdout

SCHEMA_LINE = "# yaml-language-server: $schema={}\n"
"""The first line of a YAML file, which names its schema for editors."""
SCHEMAS = "schemas"
"""The folder of the schemas, beside the configuration."""
_HEAD = """\
## Aeon settings for this project. Each is shown with its default; to change one, remove the `# ` before it.
## Settings that run code, redirect requests or widen access apply once you trust the project: `aeon-tui trust`.
## `aeon-tui config get` shows what applies, and where each value comes from.
"""
_DEFAULTS: dict[str, Any] = {"approve": ["pass", "tool"], "theme": None, "keys": {}}
"""The app's own defaults: writing a headless run's default to the file would change the app."""
_WIDTH = 110


def execute(args: Namespace) -> int:
    """Create the missing files, report each file, and return 0. Raises UsageError."""
    root = named_project_root(args.project_root)
    folder = root / PROJECT_FOLDER
    if folder.is_symlink() or is_placeholder(folder) or (folder.exists() and not folder.is_dir()):
        raise UsageError(f"{str(folder)!r} is not a folder of this project; remove it first")
    files = {"config.yml": config_template(), ".gitignore": GITIGNORE}
    files |= {f"{SCHEMAS}/{name}.json": json.dumps(schema(name), indent=2) + "\n" for name in FILES}
    err, is_new = stderr(), not folder.exists()
    for name, text in files.items():
        try:
            made = create_file(folder / name, text)
        except OSError as error:
            why = f"{error.strerror}; fix that, and run the command again"
            raise UsageError(f"cannot create {str(folder / name)!r}: {why}") from None
        outcome = ("created", "green") if made else ("kept", "yellow")
        err.line(outcome, f" {folder / name}{'' if made else ' (already exists)'}")
    if is_new:
        err.line((f"this project's runs are now stored in {folder / 'runs'}", "dim"))
    return 0


def config_template() -> str:
    """Return `.aeon/config.yml` with every setting commented out, with its default, meaning and possible values."""
    parts = [SCHEMA_LINE.format(f"{SCHEMAS}/config-file.json") + _HEAD]
    for key, spec in CONFIG_KEYS.items():
        default = (
            _DEFAULTS[key] if key in _DEFAULTS else RunConfig.model_fields[key].get_default(call_default_factory=True)
        )
        parts.append(_words(spec) + "".join(_setting(key, default)))
    return "\n".join(parts)


def _words(spec: ConfigKey) -> str:
    expected_value = spec.expected.removeprefix("text, ").rstrip("…")
    return _comment(spec.meaning) + _comment(f"Takes {expected_value}.")


def _comment(text: str, indent: str = "") -> str:
    lines = textwrap.wrap(text, _WIDTH - len(indent), break_long_words=False, break_on_hyphens=False)
    return "".join(f"## {indent}{line}\n" for line in lines)


def _setting(key: str, default: Any) -> Iterator[str]:
    if not isinstance(default, BaseModel):
        yield f"# {key}:{_value(default)}\n"
        return
    docs = field_docs(type(default))
    yield f"# {key}:\n"
    for name in type(default).model_fields:
        if name in docs:
            yield _comment(" ".join(docs[name].split()), "  ")
        yield f"#   {name}:{_value(getattr(default, name))}\n"


def _value(default: Any) -> str:
    if default is None:
        return ""
    plain = list(default) if isinstance(default, tuple) else default
    return f" {as_scalar(plain)}" if not isinstance(plain, dict) else f" {json.dumps(plain)}"


def schemas(args: Namespace) -> int:
    """Print a schema, or the known names, and return 0. Raises UsageError for an unknown name."""
    out = stdout()
    if args.name is None:
        for name in schema_names():
            out.line(name)
    else:
        out.json(schema(args.name))
    return 0
