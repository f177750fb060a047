"""Prompt injection in what an agent says: orders are flagged, prose about them is not (REQ-113).

The words alone do not tell an order from prose: "attackers bypass security checks" is a finding of a review. A hit
counts only where what stands before it directs it at the reader, or tells of the writer, and nothing takes it back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.escape import escape_controls

MAX_EXCERPT = 160
"""How much of a sentence a finding shows, in characters."""

_MODIFIERS = (
    r"(?:(?:the|all|any|these|those|this|every|each|our|its|your|my|further|remaining|normal|usual|other|of)\s+){0,4}"
)
_GUARD = r"(?:security|safety|sandbox(?:ing)?|permissions?|authori[sz]ation)"
_CHECK = (
    r"(?:checks?|reviews?|controls?|scans?|scanning|gates?|testing|tests?|validations?|polic(?:y|ies)|measures?"
    r"|restrictions?|steps?|rules?|guards?|guardrails?|filters?|hooks?|procedures?|requirements?|limits?|guidelines?)"
)
_ELSEWHERE = r"as|per|by|from|with|read|see|nothing|against|under|match|follow|consult|says?"
_WORDS = rf"(?:(?!(?:{_ELSEWHERE})\b)[^\s;:]+\s+){{0,6}}"
_COMMANDS = (
    "apt|apt-get|yum|dnf|brew|apk|pacman|rm|mv|cp|cat|tee|chmod|chown|chgrp|systemctl|service|su|sh|bash|zsh|npm|pip|pip3|python"
    "|python3|docker|podman|kubectl|kill|mount|make|visudo|usermod|useradd|passwd|install|sed|ln|dd|reboot|shutdown|iptables"
)

_EARLIER = (
    r"(?:(?:previous|prior|earlier|above|preceding|original|existing|system|former|initial)\s+){1,2}"
    r"(?:instructions?|prompts?|rules?|directions?|directives?|guidelines?|constraints?|messages|context(?!\s+\w))\b"
)

INJECTION_PATTERNS: dict[str, tuple[tuple[str, str], ...]] = {
    "skips or bypasses security": (
        ("skip bypass circumvent", rf"\s+{_MODIFIERS}{_GUARD}\b"),
        ("disable ignore omit suppress override evade drop", rf"\s+{_MODIFIERS}{_GUARD}[\s-]+{_CHECK}\b"),
        ("turn switch", rf"\s+off\s+{_MODIFIERS}{_GUARD}[\s-]+{_CHECK}\b"),
    ),
    "changes CLAUDE.md": (
        (
            "modify edit change update rewrite overwrite alter delete remove replace append add write insert put",
            rf"\s+{_WORDS}[\"\'`(]{{0,2}}(?:[\w.-]*/)*CLAUDE\.md\b",
        ),
        ("delete remove drop", r"\s+(?:[^\s,;:]+\s+){1,6}from\s+[\"'`(]{0,2}(?:[\w.-]*/)*CLAUDE\.md\b"),
    ),
    "escalates privileges": (
        ("escalate elevate", rf"\s+{_MODIFIERS}(?:(?:user|account|process)\s+)?privileges?\b"),
        (
            "run execute act operate continue start",
            r"\s+(?:[^\s,;:]+\s+){0,4}as\s+(?:(?:the|an?)\s+)?(?:root|super-?user|administrator)\b",
        ),
        (
            "run use execute prefix invoke try retry do",
            r"\s+(?:(?!(?:without|no|not)\b)[^\s,;:]+\s+){0,5}[\"'`(]{0,2}sudo\b",
        ),
        ("sudo", rf"\s+(?:-\S+|(?:{_COMMANDS})\b)"),
    ),
    "sets earlier instructions aside": (
        (
            "ignore disregard forget override abandon",
            rf"\s+{_MODIFIERS}{_EARLIER}",
        ),
        (
            "ignore disregard forget",
            r"\s+(?:everything|all)\s+(?:you\s+were\s+told\s+|that\s+came\s+)?(?:before|above)\b",
        ),
    ),
}
"""What a finding says the text does, and for it the verbs and what must follow one."""


def scan_for_injection(text: str) -> list[str]:
    """Return what in the text looks like an injected order: one line for each kind, with the words; empty is clean.

    The lines are fit for a screen. Marks of emphasis, invisible characters and line breaks in the text do not matter.
    """
    found: dict[str, str] = {}
    for sentence in _sentences(text):
        for kind, patterns in _COMPILED.items():
            if kind not in found and any(
                _is_order(hit, sentence, kind) for each in patterns for hit in each.finditer(sentence.text)
            ):
                found[kind] = f"{kind}: {_excerpt(sentence.text)!r}"
    return list(found.values())


def _pattern(verbs: str, rest: str) -> re.Pattern[str]:
    each = verbs.split()
    forms = "|".join(
        f"(?P<{form}>{'|'.join(ending(verb) for verb in each)})"
        for form, ending in (("base", str), ("going_on", _going_on), ("done", _done))
    )
    return re.compile(rf"(?<![\w-])(?:{forms})(?:{rest})", re.IGNORECASE)


_DOUBLED = frozenset({"skip", "omit", "run", "put", "forget", "drop"})
_IRREGULAR = {"run": "ran", "put": "put", "forget": "forgot", "write": "wrote", "do": "did"} | {
    "overwrite": "overwrote",
    "rewrite": "rewrote",
}


def _going_on(verb: str) -> str:
    return (verb.removesuffix("e") if verb.endswith("e") else verb + verb[-1] * (verb in _DOUBLED)) + "ing"


def _done(verb: str) -> str:
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("y"):
        return f"{verb[:-1]}ied"
    return f"{verb.removesuffix('e')}{verb[-1] * (verb in _DOUBLED)}ed"


_COMPILED = {kind: [_pattern(*each) for each in patterns] for kind, patterns in INJECTION_PATTERNS.items()}

_QUOTES = "\"'`“”‘’«»"
_DIRECTED = {
    "base": re.compile(
        rf"(?:\A|[,;:()\[\]>–—{_QUOTES}]|\s[-–—]|\b(?:please|kindly|now|then|and|or|also|just|simply|always|first|next|instead|so|but"
        r"|immediately|silently|quietly|must|should|shall|will|may|can|could|would|to|do|you|we|i|let['’]s|let\s+us|let\s+me"
        r"|['’]ll))\s*\Z",
        re.IGNORECASE,
    ),
    "going_on": re.compile(
        r"\b(?:(?:i\s+am|i['’]m|we\s+are|we['’]re|be|recommend|suggest|propose|start|begin|keep|continue)(?:\s+now)?)\s+\Z",
        re.IGNORECASE,
    ),
    "done": re.compile(
        r"\b(?:i|we)(?:['’]ve|\s+have|\s+also|\s+then|\s+just|\s+therefore|\s+simply|\s+already)*\s+\Z", re.I
    ),
}
"""What stands directly before an order, before what the writer is about to do, and before what the writer has done."""

_OTHERS = (
    r"attack\w*|adversar\w+|intruders?|hackers?|malicious|hostile|untrusted|compromised|users?|clients?|callers?|guests?|tenants?"
    r"|customers?|visitors?|requests?|process(?:es)?|containers?|services?|daemons?|programs?|roles?|accounts?|plugins?"
    r"|packages?|dependenc\w+|scripts?|code|bugs?|flaws?|vulnerabilit\w+|exploits?|payloads?|inputs?|anyone|someone|who|which"
    r"|they|operators?|admin(?:istrator)?s?|maintainers?|installers?|pods?|workers?|jobs?|tokens?|models?|libraries|modes?|flags?|options?|parameters?|headers?|functions?|methods?|middleware|endpoints?|handlers?|routes?"
)
_AT_THE_READER = r"you|please|we|i|me|must|should|now|so|then"
_TAKEN_BACK = [
    # Not done, or prevented.
    re.compile(
        r"(?:\b(?:not|never|cannot|nobody|no\s+one|without|nor|neither|rather\s+than|instead\s+of|refus\w+|declin\w+|no)"
        r"|n['’]t)\b(?!\s+(?:hesitate|forget|fail|worry|be\s+afraid|only))(?:\s+[^\s,;:]+){0,4}\s*\Z",
        re.I,
    ),
    re.compile(
        r"\b(?:prevent\w*|avoid\w*|block\w*|detect\w*|reject\w*|forbid\w*|prohibit\w*|mitigat\w*|flag(?:s|ged|ging)|guard\w*"
        r"|protect\w*|defend\w*|risks?|threats?|dangers?|against|warn\w*|den(?:y|ies|ied)|resist\w*|tempt\w*|harmful|unsafe)"
        rf"\b(?:\s+(?!(?:{_AT_THE_READER})\b)[^\s,;:]+){{0,6}}\s*\Z",
        re.I,
    ),
    # Done by somebody else, or possible.
    re.compile(rf"\b(?:{_OTHERS})(?:\s+(?!(?:{_AT_THE_READER})\b)[^\s,;:]+){{0,10}}\s*\Z", re.I),
    re.compile(
        r"\b(?:attempt\w*|tries|tried|trying|ways?|able|ability|possible|allow(?:s|ing)?|lets|letting|enabl\w+|permit\w*|caus\w+"
        r"|whether|used|abused|what|how|if|when)"
        rf"\b(?:\s+(?!(?:{_AT_THE_READER})\b)[^\s,;:]+){{0,6}}\s*\Z",
        re.I,
    ),
    re.compile(
        r"\A(?!.*\byou\b).*\b(?:instructions?|orders?|prompts?|text|phrases?|comments?|content)"
        r"\s+(?:\w+\s+){0,2}(?:to|like|such\s+as|(?:that|which)\s+\w+(?:\s+to)?)\s*\Z",
        re.I,
    ),
    re.compile(r"\A(?!.*\b(?:you|please)\b).*\b(?:injections?|patterns?|phrases?)\b[^.]*[:(]", re.I),
]
_NEEDS_IT = re.compile(
    r"\b(?:the|an?|this|that|its|each|every)\s+(?:[\w-]+\s+){0,3}"
    r"(?!(?:agents?|assistants?|models?|orchestrator|executor|coordinator|reviewer)\b)[\w-]+"
    r"\s+(?:must|should|shall|will|may|can|could|would|has\s+to|needs\s+to)\s*\Z",
    re.IGNORECASE,
)
"""Something that runs with more rights by its nature, as a requirement says it: "the installer must run as root"."""
_REPORTS = re.compile(
    r"\b(?:patterns?|phrases?|strings?|text|words?|say(?:s|ing)?|said|reads?|contain\w*|match\w*|detect\w*|flag\w*|like|such\s+as"
    r"|e\.g\.|examples?|injections?|attempt\w*|tries|includ\w*|found|embedded|quot\w*|uses|runs|calls|invokes|needs|requires)\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"\b(?:threats?|risks?|attack\w*|abuse|misuse|vulnerabilit\w+|findings?|adversar\w+|weakness\w*|mitigations?|patterns?|exploit\w*"
    r"|forbidden|prohibited|never|not)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Sentence:
    text: str
    announced: bool
    """Whether it stands below a heading, or an opening that ends in a colon, which announces threats or findings."""


def _is_order(hit: re.Match[str], sentence: _Sentence, kind: str) -> bool:
    before = sentence.text[max(0, hit.start() - 300) : hit.start()]
    form = str(hit.lastgroup)
    if _DIRECTED[form].search(before) is None or any(each.search(before) for each in _TAKEN_BACK):
        return False
    if kind == "escalates privileges" and _NEEDS_IT.search(before):
        return False
    if before.rstrip()[-1:] in tuple(_QUOTES) and _REPORTS.search(before):
        return False
    return not (sentence.announced and re.search(r"\w+\s+\w+", before) is None)


_LABEL = re.compile(r"\s*(?:(?:#{1,6}|[-*+•>]|\d{1,3}[.)]|\[[ xX]\])\s+)*")
_ENDS = re.compile(rf"(?<=[.!?])[{_QUOTES})]*\s+|\s*\|\s*")


def _sentences(text: str) -> Iterator[_Sentence]:
    """Yield the sentences: those of a paragraph or an item of a list across its lines."""
    announced = False
    for block in _blocks(_plainly(text)):
        content = " ".join(block.split())
        is_heading = block.lstrip().startswith("#")
        if is_heading or content.endswith(":"):
            announced = _ANNOUNCES.search(content) is not None
        label = _LABEL.match(content)
        content = content[label.end() :] if label else content
        for part in _ENDS.split(content):
            if part:
                yield _Sentence(part, announced and not is_heading)


def _blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    for line in text.split("\n"):
        starts = not line.strip() or re.match(r"\s*(?:#{1,6}\s|[-*+•]\s|\d{1,3}[.)]\s|\|)", line) is not None
        if starts and block:
            yield "\n".join(block)
            block = []
        if line.strip():
            block.append(line)
        if line.lstrip().startswith("#"):
            yield "\n".join(block)
            block = []
    if block:
        yield "\n".join(block)


def _plainly(text: str) -> str:
    """Return the text as a reader sees it: one form of each letter, nothing invisible, no marks of emphasis."""
    normal = unicodedata.normalize("NFKC", re.sub(r"\r\n?", "\n", text))
    seen = "".join(char for char in normal if char == "\n" or not unicodedata.category(char).startswith("Cf"))
    return re.sub(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|~~", "", seen)


def _excerpt(text: str) -> str:
    shown = escape_controls(text)
    return shown if len(shown) <= MAX_EXCERPT else f"{shown[:MAX_EXCERPT]}…"
