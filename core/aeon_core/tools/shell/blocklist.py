"""The blocklist of destructive commands: 18 built-in patterns and a user's own (REQ-028, REQ-028a, REQ-115).

The built-in ones are matched against each plain command that would run, so that quotes hide nothing, and text that is
only printed or searched for is no match. A line that is more than plain commands is matched as text too, and asked
about where it matches nothing (`commands.unknown_program`). It keeps a mistaken or misled model from the known ways to
do damage. It is no wall against one that looks for others: that is what isolation is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aeon_core.errors import UsageError
from aeon_core.tools.shell.commands import read
from aeon_core.tools.shell.rules import destruction

_TEXTS = {
    "rm -rf /": r"rm\s+-rf\s+/",
    "rm -rf ~": r"rm\s+-rf\s+~",
    "rm -rf .": r"rm\s+-rf\s+\.",
    "mkfs": r"mkfs",
    "dd if=": r"dd\s+if=",
    ":(){": r":\(\)\s*\{",
    "> /dev/sd": r">\s*/dev/sd",
    "chmod -R 777": r"chmod\s+-R\s+777",
    "wget ... | sh": r"wget\s",
    "curl ... | sh": r"curl\s",
    "eval": r"\beval\b",
    "DROP TABLE": r"DROP\s+TABLE",
    "DROP DATABASE": r"DROP\s+DATABASE",
    "TRUNCATE": r"TRUNCATE",
    "deploy": r"\bdeploy\b",
    "publish": r"\bpublish\b",
    "push --force": r"push\s+--force",
    "git push -f": r"git\s+push\s+-f",
}

PATTERNS: tuple[str, ...] = tuple(_TEXTS)
"""The built-in patterns, as they are shown to people, in the order of the specification."""

_COMPILED = {name: re.compile(text) for name, text in _TEXTS.items()}
_PIPED = re.compile(r"\|\s*(?:sudo\s+)?(?:/\S*/)?(?:ba|da|z|k)?sh")
_AS_WORDS = {"eval", "deploy", "publish"}
_QUOTES = re.compile(r"\\\n|[\\'\"]")
_HOME = re.compile(r"\$HOME\b|\$\{HOME\}")
_LISTED = re.compile(r"[\\'\",\[\]()]+")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Match:
    """A command on the blocklist, and why it is."""

    pattern: str
    """The built-in pattern's name, or the user's regular expression."""
    command: str
    """The simple command that matches, or the text, cut to 200 characters."""
    why: str
    """The reason, in words for a person."""


def check_patterns(extra: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Return a user's patterns compiled. Raises UsageError that names the first that is no regular expression."""
    compiled = []
    for pattern in extra:
        try:
            compiled.append(re.compile(pattern))
        except (re.error, TypeError, OverflowError, RecursionError) as error:
            raise UsageError(
                f"blocklist: {pattern!r} is not a regular expression ({error}); fix or remove it"
            ) from None
    return tuple(compiled)


def judge(text: str, extra: Sequence[str] = ()) -> Match | None:
    """Return the first match of a line with the blocklist, None where it matches nothing (REQ-028, REQ-028a).

    A user's patterns, `extra`, are searched in the whole text, the built-in ones in what would run. What cannot be
    parsed, and what is in another language, is searched as text. Raises UsageError for a pattern that is none.
    """
    for pattern in check_patterns(extra):
        if pattern.search(text):
            return Match(pattern.pattern, _cut(text), "it matches a pattern in the configuration")
    line = read(text)
    for command in line.commands:
        if found := destruction(command, text):
            return Match(found[0], _cut(command.text), found[1])
        if command.code and (name := _in_text(command.code)):
            return Match(name, _cut(command.code), f"it is in another language, and contains {name!r}")
    if line.unread and (name := _in_text(text, without=_AS_WORDS)):
        return Match(name, _cut(text), f"{line.doubt}, and it contains {name!r}")
    return None


def _in_text(text: str, without: Iterable[str] = ()) -> str | None:
    """Return the first pattern that the text matches: as it is written, without quotes, or as a list of words."""
    text = _HOME.sub("~", text)
    spellings = (text, _QUOTES.sub("", text), _LISTED.sub(" ", text))
    return next(
        (name for name in PATTERNS if name not in without and any(_holds(name, spelling) for spelling in spellings)),
        None,
    )


def _holds(name: str, text: str) -> bool:
    found = _COMPILED[name].search(text)
    if not found or not name.endswith("| sh"):
        return bool(found)
    # Searched in two steps: one expression with `.*` takes time that grows with the square of the text's length.
    return bool(_PIPED.search(text, found.end()))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
