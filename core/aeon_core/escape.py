"""Escapes control and invisible characters: foreign text must neither control a terminal nor hide its content."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache

_HIDDEN = (
    "\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: ANSI sequences begin with one of these
    "\u2028\u2029\ufff9-\ufffb"  # separators that some terminals break a line at, and marks of annotations
    "\ud800-\udfff"  # lone surrogates, which have no UTF-8 form
    # What Unicode calls ignorable, since no font shows it: direction marks, fillers, joiners, selectors, tags
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IS_HIDDEN = re.compile(f"[{_HIDDEN}]")
_IS_SELECTOR = re.compile("[\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Matches a character that selects the form of the one before it, such as an emoji's coloured form."""
_JOINERS = frozenset("\u200b\u200c\u200d")
"""Zero width space, non-joiner and joiner: in many scripts they determine letter forms and line breaks."""
_JOINED = frozenset({"So", "Sk", "Lo", "Lm", "Mn", "Mc"})
"""Categories of the characters between which they have an effect: emoji, and letters of scripts with joined forms."""
_KEYCAP = "\u20e3"
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escape_controls(text: str, keep: str = "") -> str:
    r"""Return the text with every control or invisible character as an escape such as `\x1b`, except those in `keep`.

    A selector stays after the symbol or letter that it belongs to, and a joiner between the two that it joins. Applying
    it twice changes nothing more. `keep` is usually empty, or newline and tab.
    """
    if text.isprintable() and text.isascii():
        return text
    return _pattern(keep).sub(_escape, text)


@lru_cache(maxsize=8)
def _pattern(keep: str) -> re.Pattern[str]:
    kept = f"(?![{re.escape(keep)}])" if keep else ""
    return re.compile(f"{kept}[{_HIDDEN}]")


def _has_effect(match: re.Match[str]) -> bool:
    """Return whether an invisible character is a selector or joiner that changes what is shown."""
    text, place = match.string, match.start()
    after = text[place + 1 : place + 2]
    if match.group() in _JOINERS:
        before = text[place - 2 : place - 1] if _selects(text, place - 1, _KEYCAP) else text[place - 1 : place]
        return all(
            each and not _IS_HIDDEN.match(each) and unicodedata.category(each) in _JOINED for each in (before, after)
        )
    return _selects(text, place, after)


def _selects(text: str, place: int, after: str) -> bool:
    if place < 1 or not _IS_SELECTOR.match(text, place):
        return False
    before = text[place - 1]
    if before.isascii():
        return after == _KEYCAP and before in "0123456789#*"
    return has_visible_text(before) and not _IS_HIDDEN.match(before)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if _has_effect(match):
        return character
    return _NAMED.get(character) or _coded(character)


def _coded(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_BLANKS = re.compile("[\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
"""Characters that look like a space but are not one."""


def escape_blanks(text: str) -> str:
    """Return a command, path or other exact text with every blank except the space as an escape such as `\\u3000`.

    Use it for what a person approves: a shell treats such a blank as a letter. French and Japanese prose contains some.
    """
    return text if text.isascii() else _BLANKS.sub(lambda match: _coded(match.group()), text)


def escape_json(text: str) -> str:
    """Return JSON text with every control character as a JSON escape; its value stays the same."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern("\n").sub(
        lambda match: match.group() if _has_effect(match) else json.dumps(match.group())[1:-1], text
    )


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Zs", "Zl", "Zp"})
"""Categories of invisible characters: controls, format characters, spaces."""


def has_visible_text(text: str) -> bool:
    """Return whether a text has a visible character: one other than a space, control or format character."""
    return any(unicodedata.category(character) not in _UNSEEN for character in text)
