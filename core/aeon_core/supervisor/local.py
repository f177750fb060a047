"""The local repair of a reply: JSON that is only badly written becomes JSON, without a model (core FR-029; design 4).

It is lossless by construction: the text is cut into tokens, every token but commas and comments is written out again
exactly once and in order, and the strict parser reads the result. A general repair library is no use here: it would
have to be checked against these very tokens, and takes quadratic time on some replies.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from aeon_core.plain import MAX_DEPTH, parse_json

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]++)
  | (?P<comment>//[^\n]*+|\#[^\n]*+|/\*.*?\*/)
  | (?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+"
             |'[^'\\]*+(?:\\.[^'\\]*+)*+'
             |[“”„][^“”\\]*+(?:\\.[^“”\\]*+)*+[“”]
             |[‘’‚][^‘’\\]*+(?:\\.[^‘’\\]*+)*+[‘’])
  | (?P<sign>[{}\[\]:,])
  | (?P<word>[^\s\ufeff{}\[\]:,"'“”„‘’‚/#]++)
    """,
    re.VERBOSE | re.DOTALL,
)
_STRICT_STRING = re.compile(r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_WORDS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_KEY = re.compile(r"[^\W\d][\w$-]*|\$[\w$-]*")
_FENCE = re.compile(r"\A\s*```\w*[ \t]*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_BRACKETS = re.compile(r"[{}\[\]]")
_ASIDE = re.compile(r"\[[^\[\]{}\"“”„',:]*\]|\{[^\[\]{}\"“”„',:]*\}")
_QUOTED_KEY = re.compile(r"[\"'“”‘’]\s*:")
_OMISSION = re.compile(r"\.\.\.|…")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """`string`, `sign` or `word`."""
    text: str
    end: int


def repair_locally(text: str) -> Any:
    """Return the one JSON value that is written in `text`, as plain JSON with nothing lost and nothing invented.

    Forgiven are code fences and prose around the value, missing and trailing commas, comments, quotes of other kinds,
    unquoted keys, Python's literals and escapes, line breaks in strings, a byte order mark. Raises ValueError for
    everything else: truncated text, two values, a key named twice, a word that is no value, comments that leave out.
    """
    start = _start(text)
    if start is None:
        return _scalar(text)
    tokens = _value_tokens(text, start)
    _check_prose(text[:start], text[tokens[-1].end :])
    return parse_json(_written(tokens), unique_keys=True)


def _start(text: str) -> int | None:
    """Return where the value begins: at the first bracket that is no aside in the prose, such as [your task]."""
    place = 0
    while (bracket := _BRACKETS.search(text, place)) is not None:
        aside = _ASIDE.match(text, bracket.start())
        if aside is None or not _is_aside(aside[0]):
            return bracket.start()
        place = aside.end()
    return None


def _is_aside(group: str) -> bool:
    return any(word not in _WORDS and _NUMBER.fullmatch(word) is None for word in group[1:-1].split())


def _check_prose(before: str, after: str) -> None:
    rest = _ASIDE.sub(lambda group: "" if _is_aside(group[0]) else group[0], after)
    if _BRACKETS.search(rest):
        raise ValueError("there is more than one value, or brackets do not match")
    if _QUOTED_KEY.search(before) or _QUOTED_KEY.search(after):
        raise ValueError("there are keys outside the value")
    tail = after.strip()
    if tail[:1] in (":", ",") and tail != ",":
        raise ValueError("the value goes on after its end")


def _scalar(text: str) -> Any:
    fenced = _FENCE.match(text)
    tokens = _tokens(fenced[1] if fenced else text, 0, container=False)
    if not tokens or tokens[0].kind == "sign":
        raise ValueError("there is no JSON value in the text")
    return parse_json(_written(tokens))


def _value_tokens(text: str, start: int) -> list[_Token]:
    tokens = _tokens(text, start, container=True)
    if not tokens or tokens[-1].text not in ("}", "]"):
        raise ValueError("the text ends before the value does")
    return tokens


def _tokens(text: str, start: int, *, container: bool) -> list[_Token]:
    """Return the tokens of the value at `start`: up to its closing bracket, or one scalar and nothing else."""
    tokens: list[_Token] = []
    place, depth, length = start, 0, len(text)
    while place < length:
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"at character {place}: {text[place : place + 20]!r} does not end, or is no part of JSON")
        end = match.end()
        kind = match.lastgroup or ""
        if kind in ("sign", "word", "string"):
            _check_neighbours(tokens, kind, place)
            if not container and tokens:
                raise ValueError("there is no JSON value in the text")
            tokens.append(_Token(kind, match[0], end))
            if kind == "sign" and match[0] in "{[":
                depth += 1
                if depth > MAX_DEPTH:
                    raise ValueError(f"nested deeper than {MAX_DEPTH} levels")
            elif kind == "sign" and match[0] in "}]":
                depth -= 1
                if depth <= 0 and container:
                    return tokens
        elif kind == "comment" and _OMISSION.search(match[0]):
            raise ValueError("a comment says that something was left out")
        place = end
    if container and depth > 0:
        raise ValueError("the text ends before the value does")
    return tokens


def _check_neighbours(tokens: list[_Token], kind: str, place: int) -> None:
    if kind != "sign" and tokens and tokens[-1].kind != "sign" and tokens[-1].end == place:
        raise ValueError(f"at character {place}: two values touch; a quote inside a string may be unescaped")


def _written(tokens: list[_Token]) -> str:
    """Return the tokens as JSON text, with commas exactly where one value follows another."""
    parts: list[str] = []
    for index, token in enumerate(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        follows_value = index > 0 and _ends_value(tokens[index - 1])
        if token.text == "," and following in ("}", "]") and follows_value:
            continue
        if follows_value and _begins_value(token):
            parts.append(",")
        parts.append(_token_text(token, following))
    return "".join(parts)


def _ends_value(token: _Token) -> bool:
    return token.kind != "sign" or token.text in ("}", "]")


def _begins_value(token: _Token) -> bool:
    return token.kind != "sign" or token.text in ("{", "[")


def _token_text(token: _Token, following: str) -> str:
    if token.kind == "sign":
        return token.text
    if token.kind == "string":
        return token.text if _STRICT_STRING.fullmatch(token.text) else json.dumps(_decoded(token.text[1:-1]))
    if following == ":" and token.text not in _WORDS and _KEY.fullmatch(token.text):
        return json.dumps(token.text)
    if token.text in _WORDS:
        return _WORDS[token.text]
    if _NUMBER.fullmatch(token.text):
        return token.text
    raise ValueError(f"{token.text[:40]!r} is no JSON value; a string may lack its quotes")


def _decoded(body: str) -> str:
    return _ESCAPE.sub(_unescaped, body)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        number = int(code, 16)
        if number > 0x10FFFF:
            raise ValueError(f"{match[0]!r} is no character")
        return chr(number)
    if match[4] not in _ESCAPED:
        raise ValueError(f"{match[0]!r} is no escape; a backslash may be meant literally")
    return _ESCAPED[match[4]]
