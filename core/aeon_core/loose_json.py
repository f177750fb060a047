"""The JSON value in a reply: parsed strictly, else repaired without loss or a model (core FR-029; Decision 4).

The repair splits the text into tokens and writes every token except commas and comments exactly once and in order, for
the strict parser. What that cannot repair is left to `json_repair`, if its value provably has the same content.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH, clean_text, json_safe, parse_json
from aeon_core.redaction import tokens_in
from aeon_core.tools.schema import describe

T = TypeVar("T")
Doubt = Literal[0, 1, 2]
"""The doubt about a value: 0 if it was parsed as it is, 1 if it was repaired, 2 if a bracket was guessed."""
Read = Callable[[Any, Doubt], T]
"""Converts a JSON value; in doubt, it must leave nothing out. Raises ValidationError, with `problems`."""

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff\u200b]++)
  | (?P<comment>//[^\n]*+|\#[^\n]*+|/\*.*?\*/)
  | (?P<string>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}
             |"[^"\\]*+(?:\\.[^"\\]*+)*+"
             |'[^'\\]*+(?:\\.[^'\\]*+)*+'
             |`[^`\\]*+(?:\\.[^`\\]*+)*+`
             |[“”„][^“”\\]*+(?:\\.[^“”\\]*+)*+[“”]
             |[‘’‚][^‘’\\]*+(?:\\.[^‘’\\]*+)*+[‘’])
  | (?P<sign>=>|:=|::|[{}\[\]:,=])
  | (?P<word>[^\s\ufeff\u200b{}\[\]:,="'`“”„‘’‚/#]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_STRICT_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_WORDS = {"true": "true", "false": "false", "null": "null", "none": "null", "undefined": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LOOSE_NUMBER = re.compile(r"\+?(-?)([0-9]*)\.([0-9]*)|\+(?P<whole>[0-9]+)")
_FENCED = re.compile(r"\A\s*```\w*[ \t]*\n(.*?)\s*(?:\n?```)?\s*\Z", re.DOTALL)
_FENCE_END = re.compile(r"\s*```\s*\Z")
_THINKING = re.compile(r"\A\s*+<(think|thinking)>.*?</\1>\s*+", re.DOTALL | re.IGNORECASE)
_ESCAPED_JSON = re.compile(r"\s*[\[{]\s*(?:\\[nrt]\s*)*\\\"")
_OPENING = re.compile(r"[\[{]")
_CLOSED = re.compile(r"[}\]]\s*\n\s*\S")
_AFTER = re.compile(r"[\s\]},;`]*")
_QUOTED_KEY = re.compile(r"[\"'“”‘’`]\s*(?::|=>)")
_OMISSION = re.compile(r"\.\.\.|…")
_SYNTAX = re.compile(r"[\s\"'`“”„‘’‚{}\[\],:=>\\]")
_MAX_TRIED = 50
_MAX_TRIED_LONG = 3
_MAX_DECODED = 3
_MAX_REBRACKETED = 600
MAX_REPAIRABLE = 50_000
"""The longest reply that is repaired, in characters: `json_repair` takes quadratic time on degenerate ones."""


class UnreadableError(ValidationError):
    """A reply that cannot be read. `value` is its JSON value if that is certain; otherwise there is only `text`."""

    def __init__(self, problems: list[str], text: str, value: Any = None) -> None:
        super().__init__(problems[0], problems=problems)
        self.problems = problems
        self.text = text
        self.value = value


def without_thinking(text: str) -> str:
    """Return a reply without the leading `<think>…</think>` block of reasoning models."""
    return _THINKING.sub("", text, count=1)


def breaks_off(text: str) -> bool:
    """Return whether a text ends before its value can: in a string, or with a list and an object still open."""
    text = _bare(without_thinking(text))
    opening = _OPENING.search(text)
    open_braces = open_lists = 0
    if opening is None:
        return False
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return False
    try:
        for token in _scanned(text, opening.start()):
            open_braces += {"{": 1, "}": -1}.get(token.text, 0)
            open_lists += {"[": 1, "]": -1}.get(token.text, 0)
    except ValueError:
        return text[-1:] not in ("}", "]") and not _CLOSED.search(text)
    return (open_braces > 0 and open_lists > 0) or (open_braces > 0 and text[-1:] not in ("}", "]"))


def read_reply(text: str, read: Read[T], *, cut: Callable[[], bool] = lambda: False, depth: int = 0) -> tuple[T, bool]:
    """Return what `read` makes of the one value in a reply, and whether the text was repaired.

    In a reply that was `cut`, no bracket is guessed; `cut` is called only if the reply is not JSON. Raises
    UnreadableError.
    """
    said = without_thinking(clean_text(text)).strip()
    text = _bare(said)
    try:
        value, local = parse_json(text, unique_keys=True), depth > 0 or text != said
    except ValueError as error:
        if _ESCAPED_JSON.match(text):
            with suppress(ValueError):
                return read_reply(parse_json(f'"{text}"'), read, cut=cut, depth=depth + 1)
        return _repaired(text, read, cut, str(error)), True
    if isinstance(value, str) and depth < _MAX_DECODED and _OPENING.search(value):
        return read_reply(value, read, cut=cut, depth=depth + 1)
    try:
        return read(value, 0), local
    except ValidationError as error:
        raise UnreadableError(error.context["problems"], text, value) from None


def _bare(text: str) -> str:
    """Return a reply without its thinking, a fence around all of it, and invisible characters."""
    text = text.strip("\ufeff\u200b \t\r\n")
    if "</think>" in text:
        text = text.rpartition("</think>")[2]
    if '"' not in text and "&quot;" in text:
        text = html.unescape(text)
    if "```" not in text:
        return text
    fenced = _FENCED.match(text)
    return fenced[1] if fenced and "```" not in fenced[1] else _FENCE_END.sub("", text)


def _repaired(text: str, read: Read[T], cut: Callable[[], bool], strict: str) -> T:
    found = list(values_in(text))
    reason = _outside(text, found)
    values = [value for _, _, value in found] if reason is None else []
    content = values if len(values) == 1 else [value for value in values if _has_content(value)]
    made: list[T] = []
    problems: list[str] = []
    for value in content:
        try:
            made.append(read(value, 0))
        except ValidationError as error:
            problems = error.context["problems"]
    if made and len(made) == len(content) and all(one == made[0] for one in made):
        return made[0]
    if problems and len(content) == 1:
        raise UnreadableError(problems, text, content[0])
    guesses: list[T] = []
    if len(text) <= MAX_REPAIRABLE and not cut():
        likely: list[tuple[Doubt, Any]] = [(1, value) for value in _lossless(text)]
        for doubt, value in [*likely, *((2, value) for value in _rebracketed(text))]:
            with suppress(ValidationError):
                guesses.append(read(value, doubt))
    if guesses and all(one == guesses[0] for one in guesses):
        return guesses[0]
    reason = reason or ("there is more than one value" if content else "there is no value")
    raise UnreadableError([f"not JSON: {strict}; no lossless local repair: {reason}"], text)


def _has_content(value: Any) -> bool:
    """Return whether a value is more than part of a sentence, such as [1] or {}."""
    return (isinstance(value, dict) and bool(value)) or (isinstance(value, list) and any(map(_has_content, value)))


def values_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield the outermost values that can be repaired, with their positions."""
    place = tried = 0
    while (
        tried < (_MAX_TRIED if len(text) <= MAX_REPAIRABLE else _MAX_TRIED_LONG)
        and (bracket := _OPENING.search(text, place)) is not None
    ):
        try:
            tokens = _tokens(_scanned(text, bracket.start()))
            value = parse_json(_written(tokens), unique_keys=True)
        except ValueError:
            place, tried = bracket.end(), tried + 1
        else:
            yield bracket.start(), tokens[-1].end, value
            place, tried = tokens[-1].end, tried + 1


def _outside(text: str, found: list[tuple[int, int, Any]]) -> str | None:
    """Return why the text around the values may be part of their content, or of another value's; None if it is not."""
    if not found:
        return "there is no value that can be read"
    ends = [0, *(end for _, end, _ in found)]
    parts = [text[end:start] for end, (start, _, _) in zip(ends, found, strict=False)]
    tail = text[ends[-1] :]
    after = tail[_AFTER.match(tail).end() :]  # type: ignore[union-attr]  # it matches nothing too
    rest = "".join([*parts, after])
    if any(rest.count(opening) != rest.count(closing) for opening, closing in ("{}", "[]")):
        return "its brackets do not match"
    if _QUOTED_KEY.search(rest) or tail.lstrip()[:1] == ":" or (tail.lstrip()[:1] == "," and after):
        return "there are keys outside the value"
    return None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """`string`, `sign` or `word`."""
    text: str
    end: int


def _tokens(scanned: Iterable[_Token]) -> list[_Token]:
    """Return the tokens of a value that begins with a bracket, up to the closing one. Raises ValueError."""
    tokens: list[_Token] = []
    stack: list[str] = []
    for token in scanned:
        tokens.append(token)
        if token.text in ("{", "["):
            stack.append(token.text)
            if len(stack) > MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
        elif token.text in ("}", "]") and (not stack or stack.pop() + token.text not in ("{}", "[]")):
            raise ValueError(f"at character {token.end}: brackets do not match")
        if not stack:
            return tokens
    raise ValueError("the text ends before the value does")


def _scanned(text: str, place: int) -> Iterator[_Token]:
    before: _Token | None = None
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"at character {place}: {text[place : place + 20]!r} does not end, or is no part of JSON")
        kind = match.lastgroup or ""
        if kind in ("sign", "word", "string"):
            if kind != "sign" and before is not None and before.kind != "sign" and before.end == place:
                raise ValueError(f"at character {place}: two values touch; a quote inside a string may be unescaped")
            before = _Token(kind, ":" if match[0] in ("=>", ":=", "::", "=") else match[0], match.end())
            yield before
        elif kind == "comment" and _OMISSION.search(match[0]):
            raise ValueError("a comment says that something was left out")
        place = match.end()


def _rebracketed(text: str) -> Iterator[Any]:
    """Yield every value that the text has once one bracket is added, removed, or replaced by one of the other kind."""
    opening, end = _OPENING.search(text), max(text.rfind("}"), text.rfind("]")) + 1
    if opening is None:
        return
    with suppress(ValueError):
        tokens = list(_scanned(text[:end], opening.start()))
        count = {sign: sum(token.text == sign for token in tokens) for sign in "{}[]"}
        off = (count["{"] - count["}"], count["["] - count["]"])
        if off not in _BRACKET_EDITS or len(tokens) > _MAX_REBRACKETED:
            return
        for old, new in _BRACKET_EDITS[off]:
            sign = [_Token("sign", new, 0)] if new else []
            for place in range(len(tokens) + 1):
                if old and (place == len(tokens) or tokens[place].text != old):
                    continue
                edited = [*tokens[:place], *sign, *tokens[place + len(old) :]]
                with suppress(ValueError):
                    if len(_tokens(edited)) == len(edited):
                        yield parse_json(_written(edited), unique_keys=True)


_BRACKET_EDITS = {
    (1, 0): [("", "}")],
    (-1, 0): [("}", ""), ("", "{")],
    (0, 1): [("", "]")],
    (0, -1): [("]", ""), ("", "[")],
    (1, -1): [("]", "}"), ("[", "{")],
    (-1, 1): [("}", "]"), ("{", "[")],
}
"""The possible corrections of one bracket, by the surplus of opening braces and brackets."""


def _written(tokens: list[_Token]) -> str:
    """Return the tokens as JSON text, with a comma exactly between two values."""
    parts: list[str] = []
    stack: list[str] = []
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        before = tokens[index - 1] if index else None
        ends_value = before is not None and (before.kind != "sign" or before.text in ("}", "]"))
        if token.text == "," and token.kind == "sign":
            # In a list, two commas may mean a missing value.
            if (following in ("}", "]") and ends_value) or (stack[-1] == "{" and not ends_value):
                continue
        elif ends_value and (token.kind != "sign" or token.text in ("{", "[")):
            parts.append(",")
        if token.kind == "sign":
            if token.text in ("{", "["):
                stack.append(token.text)
            elif token.text in ("}", "]"):
                stack.pop()
        parts.append(_token_text(token, following))
    return "".join(parts)


def _token_text(token: _Token, following: str) -> str:
    text = token.text
    if token.kind == "sign":
        return text
    if token.kind == "string":
        inner = text[3:-3] if text.startswith('"""') and len(text) > 5 else text[1:-1]
        return text if _STRICT_STRING.fullmatch(text) else json.dumps(decoded(inner))
    if following == ":" and text.casefold() not in _WORDS:
        return json.dumps(text)
    if text.casefold() in _WORDS:
        return _WORDS[text.casefold()]
    if (loose := _LOOSE_NUMBER.fullmatch(text)) and any(loose.groups()[1:]):
        text = loose["whole"] or f"{loose[1]}{loose[2] or 0}.{loose[3] or 0}"
    if _NUMBER.fullmatch(text):
        return text
    raise ValueError(f"{text[:40]!r} is not a JSON value; a string may lack its quotes")


def decoded(body: str) -> str:
    """Return the text between two quotes. Raises ValueError if a backslash may be an escape or itself."""
    escapes = list(_ESCAPE.finditer(body))
    literal = [match for match in escapes if match[4] is not None and match[4] not in _ESCAPED]
    if literal and any(match[4] is None or match[4] in "bfnrt" or match[4] in "\r\n" for match in escapes):
        raise ValueError(f"{literal[0][0]!r} is no escape; a backslash may be meant literally")
    return _ESCAPE.sub(lambda match: match[0] if match in literal else _unescaped(match), body)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _ESCAPED.get(match[4], match[0])
    if int(code, 16) > 0x10FFFF:
        raise ValueError(f"{match[0]!r} is no character")
    return chr(int(code, 16))


def _lossless(text: str) -> Iterator[Any]:
    """Yield the value from `json_repair` if it has all of the text's content, in order, and nothing else."""
    if text.count("{") + text.count("[") > MAX_REPAIRABLE // MAX_DEPTH:
        return
    import json_repair  # not loaded at the start: most replies need no repair

    end = max(text.rfind("}"), text.rfind("]")) + 1
    for opening in list(_OPENING.finditer(text, 0, end))[:3]:
        if _outside(text, [(opening.start(), end, None)]) is not None:
            continue
        region = text[opening.start() : end]
        try:
            value = json_safe(json_repair.loads(region))
        except (ValueError, RecursionError, IndexError, AttributeError, TypeError):
            continue
        if isinstance(value, (dict, list)) and value and _says_the_same(region, value):
            yield value


def _says_the_same(region: str, value: Any) -> bool:
    written = json.dumps(value, ensure_ascii=False)
    same = all(region.count(bracket) == written.count(bracket) for bracket in "{}[]")
    raw = clean_text(_ESCAPE.sub(_kept_escape, region))
    return (
        same
        # The brackets of a secret's token are not syntax.
        and sorted(tokens_in(region)) == sorted(tokens_in(value))
        and _SYNTAX.sub("", raw).casefold() == _SYNTAX.sub("", _ESCAPE.sub(_kept_escape, written)).casefold()
        and all(text in region or json.dumps(text, ensure_ascii=False)[1:-1] in region for text in _strings(value))
    )


def _kept_escape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16)) if match[1] else "" if match[4] in ("n", "r", "t") else match[4] or match[0]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(item)
    if isinstance(value, str):
        yield value


_KEY = r"[\"'“”`]?(?P<key>[\w$-]+)[\"'“”`]?\s*(?::|=>|=)\s*"
_PAIR = re.compile(
    _KEY + r"(?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|(?P<bare>-?[0-9][0-9.eE+-]*|true|false)"
    r"|\[(?P<list>(?:[^\[\]{}\"]|\"(?:[^\"\\]|\\.)*\")*)\])"
    r"(?=\s*[,}\]])",
    re.DOTALL,
)
_CUT_TEXT = re.compile(_KEY + r"\"(?P<text>(?:[^\"\\]|\\.)*)\\?\Z", re.DOTALL)
_CUT_BARE = re.compile(r"[\"'](?P<key>[\w$-]+)[\"']\s*:\s*(?P<text>-?[0-9.]+)\Z")
_JSON_NUMBER = re.compile(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PARTED = re.compile(r"(?:[\s\"'“”„‘’`]|\\.)+")
_IGNORED = frozenset({"status", "errors", "parent_step_id", "depthlevel", "createdby", "subplangoal", "parentstepid"})


def text_refusal(
    text: str, repaired: Any, *, cut: bool, name: Callable[[str], str], ignored: frozenset[str] = _IGNORED
) -> str | None:
    """Return why a value is refused as the meaning of a text that is not JSON.

    Every value that can be read in the text must be in the repair, in order, and every value of the repair must be in
    the text. If the text was cut off, the repair may continue from there. `name` normalizes the spelling of keys.
    """
    said, made = (_by_name(found, name, ignored) for found in (_pairs(text), _leaves(repaired)))
    for key, values in said.items():
        kept = iter(made.get(key, [])[: len(values) if cut else None])
        if not all(any(_as_text(value) == _as_text(item) for item in kept) for value in values):
            return f"what the original says under {key!r} was changed; a repair keeps it"
    if cut:
        match = _CUT_TEXT.search(text) or _CUT_BARE.search(text)
        key, begun = (match["key"], _as_text(_decoded(match["text"]))) if match is not None else ("", "")
        rest = made.get(name(key), [])[len(said.get(name(key), [])) :]
        if begun and not (rest and _as_text(rest[0]).startswith(begun)):
            return f"the original breaks off in {key!r} after {describe(begun)}; a repair continues from there"
        return None
    for key, values in made.items():
        for value in values:
            if not _is_written(text, value):
                return f"{describe(value)} under {key!r} is not in the original; a repair makes nothing up"
    steps, described = len(made.get("description", [])), sum(name(key) == "description" for key in keys(text))
    if described and steps != described:
        return f"the repair has {steps} descriptions, the original {described}; a repair adds and drops none"
    return None


def _by_name(
    found_pairs: Iterator[tuple[str, Any]], name: Callable[[str], str], ignored: frozenset[str]
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in found_pairs:
        if (known := name(key)) not in ignored:
            found.setdefault(known, []).append(value)
    return found


def _pairs(text: str) -> Iterator[tuple[str, Any]]:
    """Yield every complete scalar under a key, with the key; those of a list one by one."""
    for match in _PAIR.finditer(text):
        if match["list"] is not None:
            with suppress(ValueError):
                yield from ((match["key"], item) for item in parse_json(f"[{match['list']}]"))
        elif match["bare"] is not None or _decoded(match["text"]).strip():
            yield match["key"], match["bare"] if match["bare"] is not None else _decoded(match["text"])


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every scalar in a JSON value as `_pairs` would in its text, except blank ones."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, key)
    elif value is not None and _as_text(value):
        yield key, value


def keys(text: str) -> list[str]:
    """Return all texts that look like keys, in order."""
    return [match["key"] for match in re.finditer(_KEY, text)]


def _is_written(text: str, value: Any) -> bool:
    """Return whether a scalar is written in a text as a whole value, ignoring quotes, blanks and escapes."""
    if isinstance(value, bool):
        return re.search(rf"\b{value}\b", text, re.IGNORECASE) is not None
    if isinstance(value, (int, float)):
        return any(float(number) == value for number in _JSON_NUMBER.findall(text))
    parts = [part for part in _PARTED.split(value) if part]
    for form in (parts, [json.dumps(part)[1:-1] for part in parts], [part.replace("/", r"\/") for part in parts]):
        between = r"(?:[\s\"'“”„‘’`]|\\.)*".join(map(re.escape, form))
        if re.search(rf"(?:\A|[\"'“”„‘’`:=\[{{,(])\s*{between}[\"'“”„‘’`\\]*\s*(?:\Z|[\"'“”,}}\]\n])", text):
            return True
    return not parts


def _as_text(value: Any) -> str:
    """Return a scalar as text with single blanks between words."""
    return " ".join((value if isinstance(value, str) else json.dumps(value)).split())


def _decoded(text: str) -> str:
    with suppress(ValueError):
        return decoded(text)
    return text
