"""The reference pages, generated from the code so that they cannot be out of date."""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from pydantic import BaseModel

import aeon_core
import system2
from aeon_core.config.keys import APP_KEYS, CONFIG_KEYS, MAPPINGS
from aeon_core.config.schema import BedrockSettings
from aeon_core.journal import records
from aeon_core.policy import PolicyRules
from aeon_core.schemas import Envelope, field_docs, schema_names
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.shell.settings import ShellSettings
from aeon_tui.keymap import known_keys
from aeon_widgets.keys import shown_key
from system2.settings import WorkflowSettings
from tools.command_line import Command, commands


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell's line breaks become spaces, and its pipes are escaped."""
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: str) -> str:
    """Return a text as code; empty for an empty text."""
    return f"`{text}`" if text else ""


_ADDRESS = re.compile(r"(?<!`)https?://[^\s`]*[^\s`.,;:)]")


def plain(text: str) -> str:
    """Return a docstring as Markdown in which characters outside code are literal, and addresses are no links."""
    parts = _ADDRESS.sub(r"`\g<0>`", inspect.cleandoc(text)).split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", r"\*") for part in parts[::2]]
    return "`".join(parts)


def fields(model: type[BaseModel]) -> list[list[str]]:
    """Return a row for each field of a model: its key, type, default if it has one, and meaning."""
    docs, schema = field_docs(model), model.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    if "$ref" in schema:  # a model that contains itself
        schema = definitions[model.__name__]
    properties, needed = schema.get("properties", {}), schema.get("required", [])
    rows = []
    for name, info in model.model_fields.items():
        key = info.serialization_alias or name
        if info.exclude or key not in properties:
            continue
        default = "required" if key in needed else code(_default(properties[key].get("default")))
        text = docs.get(name) or info.description or ""
        rows.append([code(key), json_type(properties[key], definitions), default, plain(text)])
    return rows


def _default(value: Any) -> str:
    return "" if value is None or value in ([], {}) else str(value).lower() if isinstance(value, bool) else str(value)


def json_type(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """Return a JSON Schema in words: `text`, `number`, `list of …`, `one of …`."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        referred = definitions.get(name, {})
        return json_type(referred, definitions) if "enum" in referred else name
    if "const" in schema:
        return code(str(schema["const"]))
    if "enum" in schema:
        return " ".join(code(str(value)) for value in schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(json_type(option, definitions) for option in options))
    kind = schema.get("type")
    if kind == "array":
        return f"list of {json_type(schema['items'], definitions)}" if schema.get("items") else "list"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {json_type(schema['additionalProperties'], definitions)}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    return words.get(str(kind), str(kind or "anything")) + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    return "".join(f" {sign} {schema[key]}" for key, sign in signs.items() if key in schema)


_FIELDS = ("field", "type", "default", "meaning")
_NESTED: dict[str, type[BaseModel]] = {
    "policy": PolicyRules,
    "shell": ShellSettings,
    "mcp_servers": McpServer,
    "bedrock": BedrockSettings,
}


_JOURNAL = """\
A journal is a JSONL file: one record per line, UTF-8. Every line begins with these keys, in this order, then come the
fields of its type. A reader ignores types and fields it does not know. `aeon-tui schema TYPE` prints the JSON Schema
of a type; see [durability](../explanation/durability.md) for when lines are written."""
_CONFIGURATION = """\
Later sources win: built-in defaults, `$XDG_CONFIG_HOME/aeon/config.yml`, `.aeon/config.yml` in the project root,
`--config FILE`, environment variables, the command line. Command-line options have the same names with hyphens, and
`RunConfig` in Python has the same names. The environment variable of a key that is no mapping is `AEON_` and the key in
capitals, such as `AEON_SINGLE_PASS`. An unknown key is an error that names the nearest known one."""


def pages() -> dict[str, str]:
    """Return the text of every generated page, by its path below `docs/`."""
    made = {
        "commands": commands_page(),
        "configuration": configuration_page(),
        "journal": journal_page(),
        "python": python_page(),
        "keys": keys_page(),
    }
    return {f"reference/{name}.md": text for name, text in made.items()}


def commands_page() -> str:
    """Return every command with its usage and arguments."""
    program, *others = commands()
    listed = table(["command", "does"], ([f"[`{each.name}`](#{each.name})", plain(each.summary)] for each in others))
    parts = ["# Commands", plain(program.summary), f"```text\n{program.usage}\n```", _arguments(program), listed]
    for each in others:
        parts += [f"## {each.name}", plain(each.summary), f"```text\n{each.usage}\n```", _arguments(each)]
        parts += [plain(each.epilog)] if each.epilog else []
    return "\n\n".join(part.rstrip() for part in [*parts, plain(program.epilog)]) + "\n"


def _arguments(command: Command) -> str:
    return table(["argument", "meaning"], ([code(each.written), plain(each.help)] for each in command.arguments))


def configuration_page() -> str:
    """Return every key of a configuration file: its meaning, values and default."""
    config = aeon_core.RunConfig
    rows = []
    for key, info in config.model_fields.items():
        default = info.get_default(call_default_factory=True)
        given = "none" if default is None else "empty" if default in ([], {}) or key in MAPPINGS else _written(default)
        rows.append([code(key), plain(CONFIG_KEYS[key].meaning), plain(CONFIG_KEYS[key].expected), given])
    app = [[code(key), plain(CONFIG_KEYS[key].meaning), plain(CONFIG_KEYS[key].expected)] for key in APP_KEYS]
    parts = [
        "# Configuration",
        _CONFIGURATION,
        "## A run",
        table(["key", "meaning", "takes", "default"], rows),
        "## The app",
        table(["key", "meaning", "takes"], app),
    ]
    for key, model in _NESTED.items():
        parts += [f"## `{key}`", plain(model.__doc__ or ""), table(_FIELDS, fields(model))]
    parts += ["## Workflows", "In `.system2/config.yml`, under `providers.bedrock.orchestrator`:"]
    parts += [table(_FIELDS, fields(WorkflowSettings))]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _written(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value).lower()
    return code(text)


def journal_page() -> str:
    """Return every type of record with its fields."""
    found = [kind for kind in vars(records).values() if isinstance(kind, type) and issubclass(kind, records.Record)]
    by_tag: dict[str, type[records.Record]] = {kind.tag: kind for kind in found if kind.tag}
    parts = ["# Journal records", _JOURNAL]
    parts += [
        table(_FIELDS, [*fields(Envelope), ["`type`", "text", "required", "One of the types below."]]),
        table(["type", "written"], ([f"[`{tag}`](#{tag})", _summary(kind)] for tag, kind in sorted(by_tag.items()))),
    ]
    for tag, kind in sorted(by_tag.items()):
        parts += [f"## {tag}", plain(kind.__doc__ or ""), table(_FIELDS, fields(kind))]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def python_page() -> str:
    """Return the public names of `aeon_core` and `system2`."""
    parts = ["# Python", "`import aeon_core` and `import system2` load neither Textual nor a provider's SDK."]
    for package in (aeon_core, system2):
        parts += [f"## {package.__name__}"]
        for name in package.__all__:
            parts += [f"### {name}", *_described(name, getattr(package, name))]
    names = ", ".join(code(name) for name in schema_names())
    parts += ["## Schemas", f"`aeon-tui schema NAME` prints the JSON Schema of any of these: {names}."]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _described(name: str, value: Any) -> Iterator[str]:
    if value is aeon_core.RunConfig:
        yield f"{plain(value.__doc__ or '')} The fields are the keys of a [configuration](configuration.md#a-run)."
    elif isinstance(value, type) and issubclass(value, BaseModel):
        yield plain(value.__doc__ or "")
        yield table(_FIELDS, fields(value))
        yield from _methods(value)
    elif isinstance(value, type) and issubclass(value, enum.Enum):
        yield plain(value.__doc__ or "")
        yield ", ".join(code(str(member.value)) for member in value)
    elif isinstance(value, type):
        if not getattr(value, "_is_protocol", False):
            yield f"```text\n{_wrapped(_signature(name, value))}\n```"
        yield plain(value.__doc__ or "")
        if docs := field_docs(value):
            yield table(["field", "meaning"], ([code(key), plain(text)] for key, text in docs.items()))
        yield from _methods(value)
    elif callable(value):
        yield f"```text\n{_wrapped(_signature(name, value))}\n```"
        yield plain(inspect.getdoc(value) or "")
    else:
        yield plain(inspect.getdoc(value) or "")


def _methods(kind: type) -> Iterator[str]:
    rows = []
    for name, member in inspect.getmembers(kind, lambda each: inspect.isfunction(each) or isinstance(each, property)):
        function = member.fget if isinstance(member, property) else member
        ours = function.__module__.startswith(("aeon", "system2"))
        if ours and not name.startswith("_") and (text := inspect.getdoc(function)):
            rows.append([code(name if function is not member else _signature(name, function)), plain(text)])
    if rows:
        yield table(["member", "does"], rows)


def _signature(name: str, value: Any) -> str:
    try:
        text = re.sub(r"<function (\w+) at \w+>", r"\1", str(inspect.signature(value)))
    except ValueError:
        return name
    # Annotations are text, and shown without its quotes.
    text = re.sub(r"""(: |-> )(["'])(.*?)\2""", r"\1\3", text)
    return name + text.replace("(self, ", "(").replace("(self)", "()")


def _wrapped(signature: str) -> str:
    return textwrap.fill(signature, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _summary(kind: type) -> str:
    return plain((kind.__doc__ or "").partition("\n")[0])


def keys_page() -> str:
    """Return the app's keys by part of the app, with the ids that `keys:` binds."""
    parts = [
        "# Keys",
        "`keys:` in a configuration file binds other keys to an action by its id, and so does `K` in the app.",
    ]
    for title, known in groupby(known_keys().values(), key=lambda each: each.title):
        rows = ([_keys(each.keys), plain(each.description), code(each.id)] for each in known)
        parts += [f"## {title}", table(["keys", "does", "id"], rows)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _keys(keys: Iterable[str]) -> str:
    return " ".join(code(shown) for shown in dict.fromkeys(map(shown_key, keys)))
