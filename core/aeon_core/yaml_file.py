"""The only YAML reader: plain data of JSON's types, from a regular file, in time linear in a bounded size.

Anchors, aliases, merge keys, directives and tags of other types are refused: they let a small file grow without end, or
mean something other than it says. The parser's events are composed here, without recursion, and counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.errors import UsageError
from aeon_core.json_safe import MAX_DEPTH, clean_text, parse_json
from aeon_core.regular_file import read_text

if TYPE_CHECKING:
    import yaml

_CORE = "tag:yaml.org,2002:"
_STRING, _LIST, _MAPPING = (f"{_CORE}{kind}" for kind in ("str", "seq", "map"))
_MERGE = "<<"
_RESOLVED = (
    ("null", re.compile(r"~|null|Null|NULL|")),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE")),
    ("int", re.compile(r"[-+]?(?:0|[1-9][0-9]*)")),
    ("float", re.compile(r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")),
)
"""Only JSON's types: `on`, `0o7` and `2026-01-31` are text."""
_FIRST = frozenset("~nNtTfF-+.0123456789")
"""A scalar that begins with anything else is text."""
_LONGEST_NUMBER = 100
_DIRECTIVE = re.compile("(?:\\A|[\r\n\x85\u2028\u2029])%[A-Z]")
_NO_MORE = re.compile("(?:[ \t]*(?:#[^\r\n\x85\u2028\u2029]*)?[\r\n\x85\u2028\u2029])*[ \t]*(?:#.*)?\\Z")
_MAX_REASON = 200
_QUOTED = r""""[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|(?<![^\s,:\[\]{}])'[^']*(?:''[^']*)*'"""
_BRACKETS = re.compile(rf"{_QUOTED}|(?<!\S)#[^\n]*|([\[\]{{}}])", re.DOTALL)
"""Quoted text, a comment, or a bracket. An unclosed quote matches to the end, so that it is searched for once."""


@dataclass(frozen=True)
class Bounds:
    """How large a document may be."""

    size: int = 1_000_000
    """Bytes of the file."""
    depth: int = MAX_DEPTH
    """The nesting of collections."""
    nodes: int = 100_000
    """Scalars and collections in total."""


SETTINGS = Bounds()
"""For configuration and other files that a person writes."""


class YamlError(ValueError):
    """A text that cannot be read; the message says why, without file and line."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None, *, valid: bool = True) -> None:
        super().__init__(reason)
        self.line = line
        """Counts from 1; None if it is not known."""
        self.column = column
        self.valid = valid
        """Whether the text is YAML as far as it was read, so that the problem is only what Aeon refuses in it."""

    def at(self, where: str) -> str:
        """Return the message for a person; `where` names the file."""
        place = where if self.line is None else f"{where}, line {self.line}"
        return f"{place}: {self}" if self.valid else f"{place} is not valid YAML: {self}"


def load_yaml(path: Path | str, where: str, bounds: Bounds = SETTINGS) -> Any:
    """Return the content of a YAML or JSON file as plain JSON data; None for an empty one. `where` names it in errors.

    Raises UsageError, and nothing else, in one line.
    """
    text = read_text(path, where, bounds.size)
    try:
        return parse_yaml(text, bounds)
    except YamlError as error:
        raise UsageError(error.at(where)) from None


def without_schema_line(data: Any) -> Any:
    """Return a file's content without the `$schema` that it names for editors."""
    return {key: value for key, value in data.items() if key != "$schema"} if isinstance(data, dict) else data


def parse_yaml(text: str, bounds: Bounds = SETTINGS) -> Any:
    """Return the content of a YAML or JSON text as plain JSON data. Raises YamlError."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        try:
            return parse_json(text, unique_keys=True)
        except ValueError:
            pass  # YAML begins like this, too
    node = compose_yaml(text, bounds)
    return None if node is None else plain_value(node)


def yaml_fault(text: str) -> YamlError | None:
    """Return why a text is not YAML; None if it is, whatever it holds.

    A text that nests more deeply than the parser reads is only checked for matching brackets.
    """
    import yaml

    try:
        parser = _parser(text)
        try:
            while parser.check_event():
                parser.get_event()
        finally:
            parser.dispose()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        fault = _plain_error(error, MAX_DEPTH)
        if not fault.valid:
            return fault
        return None if brackets_match(text) else YamlError(UNMATCHED, valid=False)
    return None


UNMATCHED = "its brackets do not match: one is missing, or is of the other kind"


def brackets_match(text: str) -> bool:
    """Return whether all brackets in a JSON or YAML text match."""
    left: list[str] = []
    for found in _BRACKETS.finditer(text):
        bracket = found[1]
        if bracket in ("[", "{"):
            left.append("]" if bracket == "[" else "}")
        elif bracket is not None and (not left or bracket != left.pop()):
            return False
    return not left


def compose_yaml(text: str, bounds: Bounds = SETTINGS) -> yaml.Node | None:
    """Return the root node of a YAML text without a byte order mark; its marks index the text.

    Tags and keys are not checked yet. Raises YamlError for text that is not YAML, for anchors, aliases, directives and
    a second document, and for text beyond the bounds.
    """
    import yaml

    if (directive := _DIRECTIVE.search(text)) is not None:
        line = len(re.findall("\r\n?|[\n\x85\u2028\u2029]", text[: directive.end()])) + 1
        raise YamlError("directives such as %YAML and %TAG are not supported; remove the line", line, 1)
    try:
        parser = _parser(text)
        try:
            return _composed(parser, text, bounds)
        finally:
            parser.dispose()
    except YamlError:
        raise
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _plain_error(error, bounds.depth, text) from None


def _parser(text: str) -> Any:
    import yaml

    # The parser in C, if available, is about ten times faster.
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)


def _composed(parser: Any, text: str, bounds: Bounds) -> yaml.Node | None:
    """Return the root of the only document."""
    import yaml

    scalar: Any = yaml.ScalarNode
    starts: dict[Any, Any] = {yaml.SequenceStartEvent: yaml.SequenceNode, yaml.MappingStartEvent: yaml.MappingNode}
    root: yaml.Node | None = None
    open_nodes: list[Any] = []
    nodes = 0
    while (kind := type(event := parser.get_event())) not in (yaml.StreamEndEvent, yaml.DocumentEndEvent):
        if kind is yaml.AliasEvent or getattr(event, "anchor", None) is not None:
            raise _fault(event, "anchors and aliases are not supported; write the value out")
        if kind is yaml.ScalarEvent:
            node = scalar(_scalar_tag(event), event.value, event.start_mark, event.end_mark, event.style)
        elif kind in starts:
            tag = event.tag if event.tag not in (None, "!") else _LIST if kind is yaml.SequenceStartEvent else _MAPPING
            node = starts[kind](tag, [], event.start_mark, event.end_mark, event.flow_style)
        else:
            if kind in (yaml.SequenceEndEvent, yaml.MappingEndEvent):
                _close(open_nodes.pop(), event)
            continue
        nodes += 1
        if nodes > bounds.nodes:
            raise _fault(event, f"more than {bounds.nodes:,} values; shorten it")
        if open_nodes:
            open_nodes[-1].value.append(node)
        else:
            root = node
        if kind is not yaml.ScalarEvent:
            open_nodes.append(node)
            if len(open_nodes) > bounds.depth:
                raise _fault(event, _too_deep(bounds.depth))
    # Parsing ends here: what follows a document might be long.
    if kind is yaml.DocumentEndEvent and not _NO_MORE.match(text, event.end_mark.index):
        raise _fault(event, "a second document follows; keep one of them")
    return root


def _close(node: Any, event: Any) -> None:
    node.end_mark = event.end_mark
    if node.id == "mapping":
        node.value = list(zip(node.value[::2], node.value[1::2], strict=True))


def _scalar_tag(event: Any) -> str:
    if event.tag is not None:
        return _STRING if event.tag == "!" else str(event.tag)
    return _resolved(event.value) if event.implicit[0] else _STRING


def _resolved(text: str) -> str:
    """Return the tag of an unquoted scalar."""
    if text and text[0] not in _FIRST:
        return _STRING
    return _CORE + next((kind for kind, pattern in _RESOLVED if pattern.fullmatch(text)), "str")


def plain_value(node: yaml.Node) -> Any:
    """Return a node's value as plain JSON data. Raises YamlError for tags, and keys that are repeated or not text."""
    import yaml

    kind = node.tag.removeprefix(_CORE)
    if isinstance(node, yaml.MappingNode) and kind == "map":
        return _mapping(node)
    if isinstance(node, yaml.SequenceNode) and kind == "seq":
        return [plain_value(item) for item in node.value]
    if isinstance(node, yaml.ScalarNode) and kind in ("str", "null", "bool", "int", "float"):
        return _scalar(node, kind)
    raise _fault(node, f"the tag {_tag(node)} is not supported; use plain data")


def _scalar(node: yaml.ScalarNode, kind: str) -> Any:
    text = str(node.value)
    if kind == "str":
        return clean_text(text)
    natural = _resolved(text).removeprefix(_CORE)
    if natural != kind and (natural, kind) != ("int", "float"):
        raise _fault(node, f"{_clipped(text)} does not fit its tag {_tag(node)}; remove the tag")
    if kind in ("null", "bool"):
        return None if kind == "null" else text.lower() == "true"
    if len(text) > _LONGEST_NUMBER:
        raise _fault(node, f"a number of {len(text):,} characters is too long; quote it if it is text")
    number = int(text) if kind == "int" else float(text)
    if number in (float("inf"), float("-inf")):
        raise _fault(node, f"{text} is too large a number")
    return number


def _mapping(node: yaml.MappingNode) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, item in node.value:
        if key.tag != _STRING:
            got = "a list" if key.id == "sequence" else "a mapping" if key.id == "mapping" else repr(key.value[:60])
            raise _fault(key, f"expected a text key, got {got}; quote it")
        if key.value == _MERGE and not key.style:
            raise _fault(key, "merge keys (<<) are not supported; write the keys out")
        name = clean_text(key.value)
        if name in found:
            raise _fault(key, f"the key {_clipped(name)} occurs twice; keep one of them")
        found[name] = plain_value(item)
    return found


def _tag(node: yaml.Node) -> str:
    return _clipped(f"!!{node.tag.removeprefix(_CORE)}" if node.tag.startswith(_CORE) else node.tag)


def _clipped(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


def _fault(place: Any, reason: str) -> YamlError:
    return YamlError(reason, place.start_mark.line + 1, place.start_mark.column + 1)


def _too_deep(deepest: int) -> str:
    return f"nested deeper than {deepest} levels; flatten it"


def _plain_error(error: Exception, deepest: int, text: str = "") -> YamlError:
    """Return what the parser says is wrong with a text, in plain words."""
    if isinstance(error, UnicodeError):
        return YamlError("it contains half a character (a lone surrogate); remove it", valid=False)
    if isinstance(error, (ValueError, OverflowError)):  # the parser in Python, where the other one has words
        return YamlError("it contains a number or an escape out of range; fix it", valid=False)
    return _syntax_error(error, deepest, text)


def _syntax_error(error: Exception, deepest: int, text: str) -> YamlError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    if "maximum nesting depth" in problem:  # the parser in C looks ahead, and has a limit of its own
        return YamlError(_too_deep(deepest), mark and mark.line + 1, mark and mark.column + 1)
    at_tab = mark is not None and text[mark.index : mark.index + 1] == "\t"
    if ("cannot start any token" in problem and at_tab) or "tab character" in problem:
        problem = "a tab cannot indent a line; use spaces"
    elif "mapping values are not allowed" in problem or "cannot start any token" in problem:
        problem = f"{problem}; quote the text"
    elif problem.startswith("but ") and getattr(error, "context", None):
        problem = f"{error.context}, {problem}"  # type: ignore[attr-defined]
    reason = " ".join(str(problem).split())[:_MAX_REASON]
    if mark is None:
        return YamlError(reason, valid=False)
    return YamlError(reason, mark.line + 1, mark.column + 1, valid=False)
