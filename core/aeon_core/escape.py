"""Making control characters visible: foreign text may neither steer a terminal nor hide what it says."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache

_HIDDEN = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: ANSI sequences begin with one of these
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides and isolates
    "\u2028\u2029\ufeff"  # separators that some terminals break a line at, and the byte order mark
    "\ud800-\udfff"  # lone surrogates, which have no UTF-8 form
    "\U000e0000-\U000e007f"  # tags, which no font shows
)
_JOINER = "\u200d"
"""Where it joins nothing, some count the next character as a part of it: a line would get longer than it should."""
_JOINED = frozenset({"So", "Sk", "Lo", "Lm", "Mn", "Mc"})
"""Categories of what a joiner joins: emoji, and letters of scripts that know joined forms."""
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape_controls(text: str, keep: str = "") -> str:
    r"""Return the text with every control character as an escape such as `\x1b`, except those in `keep`.

    So is a zero width joiner that joins nothing. Applying it twice changes nothing more. `keep` is usually empty, or
    newline and tab.
    """
    if text.isprintable() and text.isascii():
        return text
    return _pattern(keep).sub(_escape, text)


@lru_cache(maxsize=8)
def _pattern(keep: str) -> re.Pattern[str]:
    kept = f"(?![{re.escape(keep)}])" if keep else ""
    return re.compile(f"{kept}[{_HIDDEN}{_JOINER}]")


def _joins(match: re.Match[str]) -> bool:
    if match.group() != _JOINER:
        return False
    around = (match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1])
    return all(each and unicodedata.category(each) in _JOINED for each in around)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if _joins(match):
        return character
    if named := _NAMED.get(character):
        return named
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escape_json(text: str) -> str:
    """Return JSON text with every control character in it as a JSON escape; it means the same as before."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern("\n").sub(lambda match: match.group() if _joins(match) else json.dumps(match.group())[1:-1], text)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp"})
"""Categories of characters that show nothing: controls, marks of format, spaces."""


def has_visible_text(text: str) -> bool:
    """Return whether a text shows anything: some character that is no space, control or mark of format."""
    return any(unicodedata.category(character) not in _UNSEEN for character in text)
