"""Working out a thing to be made: what belongs to each kind of thing, part by part, for what it is to serve."""

from __future__ import annotations

import re
from dataclasses import dataclass

from aeon_core.llm.simulated.outcomes import clip
from aeon_core.llm.simulated.parsing import MAX_CLAUSE
from aeon_core.llm.simulated.vocabulary import listed

_MAX_SUBJECT = 120

_API = {
    "resources": "the collection /{path}, and each of its members under its own address /{path}/{{id}}",
    "operations": "GET lists or reads, POST adds, PUT replaces and DELETE removes members of /{path}",
    "error replies": "a code, a sentence and the faulty field, whenever a request about {about} is faulty or unknown",
    "access rules": "every caller carries a token, with separate permissions to read and to change {about}",
}
_PROGRAM = {
    "inputs": "what the caller names for {about}: source, target and options, checked before anything is touched",
    "behaviour": "it reads, shows what it is going to do for {about}, and then does it once",
    "failures": "each fault concerning {about} ends with one line that names it, and leaves the originals untouched",
    "tests": "an ordinary case, an empty one, a faulty one and a repeated run, each with {about}",
}
_SITE = {
    "visitors": "people who look for {about}, on a phone first, often once only",
    "pages": "a start page about {about}, an overview, a page for every entry, and contact",
    "content": "texts and pictures about {about}, each with an owner who keeps it current",
    "operation": "hosting, backups and a monthly look at which pages about {about} are read",
}
_DATA = {
    "tables": "one for each kind of thing in {about}, one for what links them, and one for changes over time",
    "keys": "a surrogate number per row, plus a natural identifier within {about} that stays unique",
    "constraints": "mandatory columns are not null, references within {about} are enforced",
    "queries": "look up by identifier, list by date, and total per owner within {about}, each with an index",
}
_EVENT = {
    "guests": "who takes part when it comes to {about}, with confirmed and open replies, and who needs what",
    "place and time": "a start and an end that suit {about}, a room with enough seats, and another in case it rains",
    "programme": "welcome, the main part about {about}, a break with food, and a farewell",
    "costs": "rent, food, material and a reserve, added up for {about} against the money there is",
}
_KINDS = {
    noun: parts
    for nouns, parts in (
        ("api apis endpoint endpoints interface webservice", _API),
        ("tool program script library module app application command package service bot", _PROGRAM),
        ("website site homepage page portal blog shop", _SITE),
        ("database schema table tables datastore", _DATA),
        ("party wedding trip workshop meeting conference event celebration", _EVENT),
    )
    for noun in nouns.split()
}
"""The parts of each kind of thing, and what belongs there: `about` is what it serves, `path` the last word of that."""
_ARTICLES = listed("a an the my our your some new small simple good nice better modern great")
_SERVES = re.compile(r"\s+(?:for|of|about|on|with|to|that|which)\s+", re.IGNORECASE)
_DOING = re.compile(r"\b(?:that|which)\s+\w+(?:\s+(?:up|out|down|off|over|in|on|to))?\s+(?=\w)", re.IGNORECASE)
_BESIDE = re.compile(r"[,;:]| with ")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_PART = re.compile(r"Work out the (?P<part>[a-z ]{3,30}?) of (?P<subject>.+)")
_WHOLE = re.compile(r"Put the parts of (?P<subject>.+) together")


@dataclass(frozen=True)
class Elaboration:
    """The descriptions of the steps that work out a thing: its parts, and the one that puts them together."""

    parts: tuple[str, ...]
    whole: str


def elaboration(subject: str) -> Elaboration | None:
    """Return how a thing is worked out; None where its kind is unknown, or not said what it is to serve."""
    subject = clip(subject, _MAX_SUBJECT).rstrip(" .?!")
    kind = _kind(subject)
    if kind is None:
        return None
    return Elaboration(
        tuple(f"Work out the {part} of {subject}" for part in kind[0]), f"Put the parts of {subject} together"
    )


def worked_out(description: str) -> str | None:
    """Return what belongs to the part that a description asks for, None where it asks for none that is known."""
    match = _PART.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    kind = _kind(match["subject"]) if match else None
    if match is None or kind is None or match["part"] not in kind[0]:
        return None
    parts, about = kind
    path = _WORD.findall(about)[-1].lower()
    return f"{match['part'].capitalize()}: {parts[match['part']].format(about=about, path=path)}."


def part_of(description: str) -> str | None:
    """Return the thing that a description works out a part of, or None."""
    match = _PART.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    return match["subject"] if match else None


def whole_of(description: str) -> str | None:
    """Return the thing whose parts a description puts together, or None."""
    match = _WHOLE.fullmatch(description[:MAX_CLAUSE].strip().rstrip("."))
    return match["subject"] if match else None


def _kind(subject: str) -> tuple[dict[str, str], str] | None:
    """Return the parts of a thing of this kind, and what it serves: what follows it, else what qualifies it."""
    # "a script that backs up my photos" is one for my photos.
    head, *served = _SERVES.split(_DOING.sub("for ", subject, count=1), maxsplit=1)
    words = _WORD.findall(head.lower())
    place = next((index for index, word in reversed(list(enumerate(words))) if word in _KINDS), None)
    if place is None:
        return None
    about = (
        _BESIDE.split(served[0])[0].strip()
        if served
        else " ".join(word for word in words[:place] if word not in _ARTICLES)
    )
    return (_KINDS[words[place]], about) if _WORD.search(about) else None
