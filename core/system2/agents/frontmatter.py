"""The YAML block at the top of an agent's file (REQ-010, REQ-012).

Only the fields below are turned into values; `hooks` and unknown keys are ignored (TR-01).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from aeon_core.yaml_file import Bounds, YamlError, compose_yaml

MAX_CHARACTERS = 64_000
"""The longest frontmatter accepted."""
_BOUNDS = Bounds(depth=50)

_OPENING = re.compile(r"\s*---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset(_CORE + kind for kind in ("str", "int", "float", "bool"))
_LISTS = ("tools", "disallowedTools")
_FIELDS = ("name", "description", *_LISTS)


class FrontmatterError(ValueError):
    """Frontmatter that cannot be used; the message says why, but does not name the file."""


@dataclass(frozen=True)
class Frontmatter:
    """The fields that are read. A field that is absent or null is None."""

    name: str | None = None
    description: str | None = None
    tools: list[str] | None = None
    denied_tools: list[str] | None = None


def split(text: str) -> tuple[str, str]:
    """Return the YAML and the body of an agent's text. A `---` further down belongs to the body.

    Raises FrontmatterError if the text does not begin with frontmatter, or if that is too long or not closed.
    """
    opening = _OPENING.match(text)
    if opening is None:
        raise FrontmatterError(
            "does not start with frontmatter; put `name`, `description` and `tools` between `---` lines"
        )
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        raise FrontmatterError("has frontmatter without an end; add a line `---` after it")
    if closing.start() - opening.end() > MAX_CHARACTERS:
        raise FrontmatterError(f"has frontmatter of more than {MAX_CHARACTERS:,} characters; shorten it")
    return text[opening.end() : closing.start()], text[closing.end() :]


def parse(block: str) -> Frontmatter:
    """Return the fields of frontmatter. Raises FrontmatterError if it is not YAML or a field has the wrong type."""
    try:
        node = compose_yaml(block, _BOUNDS)
    except YamlError as error:
        # The opening `---` is the first line of the file.
        line = f" (line {error.line + 1})" if error.line is not None else ""
        kind = "that is not valid" if error.valid else "that is not valid YAML"
        raise FrontmatterError(f"has frontmatter {kind}{line}: {error}") from None
    if not isinstance(node, yaml.MappingNode):
        raise FrontmatterError("has frontmatter without `key: value` lines; add `name`, `description` and `tools`")
    values: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value not in _FIELDS:
            continue
        if key.value in values:
            raise FrontmatterError(f"has {key.value!r} twice in its frontmatter; keep one of them")
        values[key.value] = value
    name, description = ("".join(_texts(key, values) or ()).strip() or None for key in ("name", "description"))
    # YAML sees two items in `[Agent(a, b)]`: they are joined, then split outside parentheses.
    lists = (_texts(key, values) for key in _LISTS)
    return Frontmatter(name, description, *(None if texts is None else tool_names(",".join(texts)) for texts in lists))


def _texts(key: str, values: Mapping[str, yaml.Node]) -> list[str] | None:
    """Return a field's text, or the texts of one that may be a list; None if it is absent or null."""
    node = values.get(key)
    if node is None or (isinstance(node, yaml.ScalarNode) and node.tag == f"{_CORE}null"):
        return None
    is_list = key in _LISTS and isinstance(node, yaml.SequenceNode) and node.tag == f"{_CORE}seq"
    nodes = node.value if is_list else [node]
    if all(isinstance(each, yaml.ScalarNode) and each.tag in _TEXT_TAGS for each in nodes):
        return [each.value for each in nodes]
    if key in _LISTS:
        raise FrontmatterError(f"has {key!r} that are not names; write them as `{key}: Read, Grep` or as a list")
    raise FrontmatterError(f"has a {key!r} that is not text; write it as `{key}: some text`")


def tool_names(text: str) -> list[str]:
    """Return the names in a text, which commas or spaces separate; a name keeps what follows it in parentheses."""
    names, name, depth = [], "", 0
    for character in re.sub(r"\s+\(", "(", text.strip().strip("[]")):
        depth += (character == "(") - (character == ")" and depth > 0)
        if depth == 0 and (character == "," or character.isspace()):
            names.append(name)
            name = ""
        else:
            name += character
    stripped = (each.strip().strip("\"'`") for each in [*names, name])
    return list(dict.fromkeys(each for each in stripped if each))
