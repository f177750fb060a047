"""What a goal asks for: its parts and the numbers of things it wants; and whether an answer is an answer at all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from aeon_core.convergence.words import content_stems, listed, sentences, stem

_PART_END = re.compile(
    r"\s*[,;]\s*(?:and\s+)?(?:then\s+|finally\s+|also\s+)?|\s+(?:and|then|plus|as well as)\s+(?:then\s+|also\s+)?",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[^\S\n]{2,}")
_HEADING = re.compile(r"\A[^:]*:\s+(?=\S)")
_LISTED = re.compile(r"(?:^|\s)(?:\(?\d{1,2}[.)]|\([a-h]\)|[-*•])\s+(?=\S)", re.MULTILINE)
_DEPENDENT = re.compile(
    r"(?:for|in|with|using|by|if|when|within|without|so|which|that|because|given|based|assuming|per|from|to|at|on|as|of"
    r"|excluding|rounded|who|whose|where|not|but|or|ignoring|sorted|grouped|both|via|under|after|before)\b",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"(?<=\w)\s+(?:of|in|for|from|at|on|by|with|to|about|against|between|within)\s+", re.IGNORECASE)
_DELIVERY = frozenset(
    stem(word)
    for word in listed(
        "report return give show tell print present state provide say list name compute calculate determine find get "
        "explain describe write make create produce summary summarise summarize answer result total final output out "
        "check please me need want work look value number both each sort them it compare comparison identify "
        "briefly short brief clearly many much long work how way estimate take whether"
    )
)
_MEANS = frozenset(
    stem(word)
    for word in listed(
        "read load open fetch search look parse collect research study inspect gather download examine analyse analyze "
        "review query browse scan retrieve consult use go"
    )
)
_NUMBER_WORDS = dict(
    zip(listed("two three four five six seven eight nine ten eleven twelve fifteen twenty"),
        (*range(2, 13), 15, 20), strict=True)
)  # fmt: skip
_ASKED = re.compile(
    r"\b(?:list|give|name|propose|suggest|write|find|provide|pick|choose|recommend|identify|generate|outline|describe"
    r"|select|offer|create|draft|show|brainstorm|explain|top|return|produce)\s+(?:me\s+|us\s+|out\s+|the\s+|at\s+least\s+"
    rf"|exactly\s+|top\s+|up\s+)*?(?P<count>\d{{1,2}}|(?ai:{'|'.join(_NUMBER_WORDS)}))\s+"
    r"(?P<noun>(?:[^\W\d_]+[\s-]+){0,2}?[^\W\d_]+s)\b",
    re.IGNORECASE,
)
_MEASURES = frozenset(
    listed(
        """
        words characters sentences lines pages paragraphs days weeks months years hours minutes seconds times
        decimals places digits metres meters miles kilometres kilometers dollars euros pounds grams percents points
        bytes
        """
    )
)
_ITEM = re.compile(r"^\s*(?:\(?\d{1,2}[.)]|[-*•])\s+\S", re.MULTILINE)
_INLINE_ITEM = re.compile(r"(?:^|\s)\(?\d{1,2}[.)]\s+(?=\S)")
_ENUMERATED = re.compile(r"\s*,\s*(?:and\s+|or\s+)?|\s+and\s+|\s*;\s*", re.IGNORECASE)

_GIVEN_UP = re.compile(
    r"\b(?:the|this|your) (?:task|goal|request)\b[^.;:!?\n]{0,20}\b(?:not|never|cannot|impossible)\b[^.;:!?\n]{0,20}"
    r"\b(?:complete|completed|done|finished|fulfilled|carried out|accomplished|achieved|met|possible|reached|solved)\b"
    r"|\b(?:could|can) ?(?:not|n't) (?:complete|finish|fulfil|fulfill|carry out|accomplish|do) (?:the|this|your) "
    r"(?:task|goal|request)\b",
    re.IGNORECASE,
)
_EVASIVE = re.compile(
    r"\b(?:I|we)(?:\s+am|\s+are|['’]m|['’]re)?\s+(?:\w+\s+)?"
    r"(?:cannot|can['’]?t|can\s+not|could\s+not|couldn['’]t|unable|not\s+able|don['’]t\s+(?:know|have)|do\s+not\s+(?:know|have)|"
    r"did\s+not\s+manage|lack)\b"
    r"|\bunable\s+to\s+\w+"
    r"|\b(?:could\s+not|cannot|couldn['’]t|can['’]t|has\s+not|have\s+not|was\s+not|were\s+not|is\s+not|are\s+not)\s+"
    r"(?:yet\s+)?(?:be(?:en)?\s+)?(?:yet\s+)?(?:determined|found|computed|calculated|retrieved|completed|established|"
    r"obtained|answered|produced|finished|done|known|assessed|provided)\b"
    r"|\b(?:not\s+enough|insufficient|no)\s+(?:information|data|details)\b"
    r"|\bas\s+an\s+(?:AI|assistant|language\s+model)\b"
    r"|\A\W*(?:TODO|TBD|FIXME|placeholder)\b|\blorem\s+ipsum\b|\bto\s+be\s+(?:determined|decided|added|done|completed)\b"
    r"|\b(?:I|we)(?:['’]ll|\s+will|\s+would\s+need|['’]d\s+need|\s+am\s+going|\s+are\s+going|\s+plan)\s+(?:\w+\s+)?\w+"
    r"|\blet\s+me\s+\w+|\bit\s+depends\b|\bmore\s+(?:information|details|context)\s+(?:is|are)\s+(?:needed|required)\b"
    r"|\[(?:insert|add|your|fill|number|name|date|amount|value|result|summary|details?|todo|tbd|placeholder)\b[^\]\n]{0,60}\]"
    r"(?!\()|<(?:insert|to\s+be|your|fill)\b[^>\n]{0,60}>"
    r"|\bis\s+(?:still\s+)?(?:unknown|pending|outstanding|unclear)\b|\b(?:remains|is\s+left)\s+(?:to\s+be\s+|open|unknown)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that the goal asks for."""

    text: str
    stems: frozenset[str]
    heads: frozenset[str]
    """The stems of what is wanted, without what it is wanted of: `weight` in `the weight of the bell`."""
    preparing: bool = False
    """Whether it is a means to the others: something to read, search or analyse."""


@lru_cache(maxsize=256)
def goal_parts(goal: str) -> tuple[Part, ...]:
    """Return the parts of a goal: its listed points, sentences and coordinated clauses.

    A piece that only qualifies another (`for Lyon`, `rounded to two decimals`) belongs to it; a piece that only says
    how to deliver (`and report it`) is no part, and a heading is none beside what stands under it.
    """
    parts: list[Part] = []
    for piece in _pieces(goal):
        stems = content_stems(piece) - _DELIVERY
        if stems:
            wanted = stems - _MEANS
            heads = wanted & content_stems(_QUALIFIED.split(piece, maxsplit=1)[0])
            parts.append(Part(piece, wanted, heads or wanted, preparing=bool(stems & _MEANS)))
    return tuple(parts) or (
        (Part(goal.strip(), content_stems(goal), content_stems(goal)),) if content_stems(goal) else ()
    )


def _pieces(goal: str) -> Iterator[str]:
    lines = [line for block in _LISTED.split(_BLANKS.sub(" ", goal)) for line in sentences(block)]
    for sentence in [line for line in lines[:-1] if not line.endswith(":")] + lines[-1:]:
        whole = ""
        for piece in _PART_END.split(_HEADING.sub("", sentence)):
            piece = piece.strip(" .?!:")
            joined = not content_stems(piece) or _DEPENDENT.match(piece) or _DEPENDENT.match(whole)
            if whole and joined:
                whole = f"{whole}, {piece}"
            else:
                if whole:
                    yield whole
                whole = piece
        if whole:
            yield whole


def asked_counts(goal: str) -> list[tuple[int, str]]:
    """Return how many of what a goal wants: `list three risks` gives (3, 'risks')."""
    found = []
    for match in _ASKED.finditer(goal):
        noun = match["noun"]
        if noun.split()[-1].lower() in _MEASURES or re.search(r"\bup\s+to\s*$", goal[: match.start("count")], re.I):
            continue
        count = match["count"].lower()
        found.append((_NUMBER_WORDS.get(count) or int(count), noun))
    return found


def counted_items(answer: str) -> int | None:
    """Return how many things an answer lists, None where it holds no list."""
    lines = len(_ITEM.findall(answer))
    if lines >= 2:
        return lines
    inline = len(_INLINE_ITEM.findall(answer))
    if inline >= 2:
        return inline
    rows = [line for line in answer.splitlines() if line.strip()]
    enumerated = [
        len(_ENUMERATED.split(line.strip(" ."))) for line in sentences(answer) if "," in line or " and " in line
    ]
    most = max(enumerated, default=1)
    if len(rows) > max(most, 2):
        return len(rows)
    return most if most >= 2 else None


@lru_cache(maxsize=4096)
def gives_up(sentence: str) -> bool:
    """Return whether a sentence says of the task as a whole that it was not done."""
    return _GIVEN_UP.search(sentence) is not None


@lru_cache(maxsize=4096)
def evasive(sentence: str) -> bool:
    """Return whether a sentence puts off, promises or says that nothing is known, in place of answering."""
    return _EVASIVE.search(sentence) is not None
