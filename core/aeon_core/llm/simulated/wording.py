"""How concrete a sentence is: token patterns of vague language and missing details (adaptive FR-034, FR-035)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


def listed(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


OPEN_VERBS = listed("""
    analyse analyze architect arrange automate book build check clean come configure construct create debug
    deploy design develop draft enhance establish evaluate explore fix generate handle help implement improve
    integrate investigate launch maintain make manage migrate modernise modernize monitor optimise optimize
    order organise organize plan polish prepare process produce refactor recommend redesign repair research
    resolve restructure review revise rework schedule secure send set setup solve sort structure study
    suggest support teach test tune update upgrade write
""")
"""Verbs whose outcome is not said by the verb itself: what is acted on, and to what end, must come with them."""

_EMPTY_VERBS = listed("""
    do handle manage deal look work help improve enhance address tackle
    sort process go finish continue
""")
"""Verbs that name no action of their own."""

_VAGUE_NOUNS = listed("""
    something anything everything stuff thing things usual necessary needful rest matter issue issues problem problems
    aspect aspects whatever
""")
_PRONOUNS = listed("it this that them these those one ones")
_VAGUE_ADJECTIVES = listed("""
    better best good great nice proper properly appropriate appropriately suitable modern robust scalable efficient
    efficiently fast faster quick clean cleaner intuitive user-friendly friendly simple easy professional relevant
    optimal optimally reasonable adequate adequately correctly well cool decent improved effective effectively
    interesting engaging flexible powerful seamless seamlessly smooth smoothly
""")
_HEDGES = listed("some somehow maybe perhaps possibly probably various several few etc soon roughly kind sort")
_VAGUE = _VAGUE_NOUNS | _VAGUE_ADJECTIVES | _HEDGES
_GENERIC = listed("""
    api app apps application applications architecture article backend bot code codebase content customer customers
    dashboard data database dataset deployment design device distributed document documentation documents email
    emails environment event feature features file files flight form frontend function functionality game idea ideas
    improvement improvements infrastructure laptop library list logic meeting model module network page performance
    phone pipeline plan platform portal post presentation process product program project quality queries report
    requirements rest restaurant results script scripts security server service services site software solution
    speech store story strategy system task tasks team test tests text tool tools trip ui user users version web
    website workflow microservice microservices marketing business company market job work idea topic subject
    authentication login ones way ways part parts piece set setup lot bit request requests message messages video
    image images photo photos folder folders spreadsheet table chart graph essay blog poem song letter
    schedule budget contract course class lesson exam event party birthday wedding vacation holiday home house garden
    car food dinner meal recipe diet workout exercise routine
""")
"""Nouns that name a kind of thing and say nothing of the one that is meant."""

_STOP = listed("""
    a an the and or but nor of in on at to for from by with as into onto is are was were be been being am do
    done does did will would shall should can could may might must have has had having i me my mine we us our
    you your he she his her its their they please just also then so very more most new all any each every no not
    only own same other such than too up out off over about there here when where why how what which who whom
    whose if while during before after let want need like get got give new full complete whole old
""")
_VERBS = (
    OPEN_VERBS
    | _EMPTY_VERBS
    | listed("""
    add append apply ask assign calculate call choose classify collect combine compare compile compute convert
    copy count decide define delete describe divide download estimate execute explain extract fetch filter find
    format gather give group identify email insert install join list load measure merge move multiply name open
    parse pick plot print publish query rank read record remove rename replace report return run save scrape search
    select sketch split store subtract sum summarise summarize translate upload validate verify
    """)
)
_CLAUSE = re.compile(r"[,;.:]\s+(?:and\s+|then\s+)*|\s+(?:and|then)\s+(?:then\s+)?")
_NO_THING = _STOP | _PRONOUNS | OPEN_VERBS | _EMPTY_VERBS
_CONSTRAINTS = re.compile(
    r"\b(that|which|who|whose|where|when|if|unless|using|without|must|should|under|below|above|within|about"
    r"|at (?:least|most)"
    r"|no more than|less than|more than|fewer than|instead of|so that|such as|including|containing|saying|based on"
    r"|according to|per|in order to|because|between|against|until|starting|written in|called|named|except)\b"
)
_QUANTITIES = listed("""
    two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand million
    first second third half quarter double monday tuesday wednesday thursday friday saturday sunday january february
    march april june july august september october november december today tomorrow yesterday weekly daily hourly
    monthly percent
""")
_LITERAL = re.compile(
    r"""(?P<quoted>"[^"\n]{1,500}"|'[^'\s][^'\n]{0,500}'(?!\w)|`[^`\n]{1,500}`|“[^”\n]{1,500}”|‘[^’\n]{1,500}’)"""
    r"""|(?P<place>https?://\S+|\b[\w.+-]{1,60}@[\w-]{1,60}\.\w+|(?<!\w)[./~][\w.*-]{0,60}/[\w./*-]*"""
    r"""|\b\w{1,60}/[\w./-]{0,120}\.\w+|(?<![\w*-])[\w*-]{0,60}\.(?!\d)[a-z][a-z0-9]{0,4}\b"""
    r"""|\b[A-Za-z]{1,40}_\w+|\b[a-z]{1,40}[A-Z]\w*|\b\w{1,60}\(\))"""
    r"""|(?P<number>[$€£]?\d[\d.,:/%]*)"""
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_START = re.compile(r"(?:\A|[.!?:;]\s+|\n\s*)$")
_QUESTION = re.compile(
    r"^(?:who|whom|whose|what|which|when|where|why|how|is|are|was|were|does|did|has|have|will|would"
    r"|do (?=(?:i|you|we|they|the|these|those|any)\b))\b",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:please|kindly|now|then|next|first|finally|also|hi|hello|hey|ok|okay|just|so"
    r"|(?:can|could|would|will) (?:you|we)"
    r"|(?:i|we)(?: would|'d)? (?:want|need|like)(?: you)?(?: to)?|let(?:'s| us)|your task is to|try to"
    r"|(?:we|you) should)"
    r"[,:]?\s+",
    re.IGNORECASE,
)
_MAX_READ = 4_000
"""Characters of a text that are read; what is longer says more than enough."""
_LOOKED_BACK = 20
"""Characters before a word in which the end of another sentence shows."""
_MAX_THING = 4
"""Words that name what a text is about."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What the words of one sentence or request show."""

    verb: str
    """The first word after politeness, in lower case: in a request the verb."""
    question: bool
    actions: tuple[str, ...]
    """The verbs that begin the text or one of its clauses."""
    content: tuple[str, ...]
    """The words that carry meaning, in lower case and in order, literals left out."""
    thing: str
    """What it is about, in its own words: the content without the verb and what is vague."""
    generic: tuple[str, ...]
    """Those of them that only name a kind of thing."""
    vague: tuple[str, ...]
    """Vague nouns, adjectives and hedges."""
    pronouns: tuple[str, ...]
    """Pronouns that stand for something the text has not named before."""
    literals: int
    """Quoted texts, paths, addresses, identifiers and numbers."""
    names: int
    """Proper names inside a sentence."""
    constraints: int
    """Words that begin a condition, a purpose or a limit, each once."""
    listed: bool
    """Whether parts are listed, by commas or lines."""

    @property
    def own(self) -> tuple[str, ...]:
        """The words that tell this one from others of its kind: neither generic nor vague nor the verb."""
        left_out = {*self.generic, *self.vague, self.verb}
        return tuple(word for word in self.content if word not in left_out)

    @property
    def detail(self) -> float:
        """How much the text says beyond the kind of thing: 0 for nothing, 2 and more for plenty."""
        exact = 2 * self.literals + self.names + 0.5 * self.constraints + 0.5 * self.listed
        return exact + 0.5 * len(self.own)

    @property
    def open_ended(self) -> bool:
        """Whether the verb leaves open what comes out."""
        return not self.question and self.verb in OPEN_VERBS | _EMPTY_VERBS

    @property
    def empty_verb(self) -> bool:
        """Whether the verb names no action of its own."""
        return self.verb in _EMPTY_VERBS


@lru_cache(maxsize=512)
def wording(text: str) -> Wording:
    """Return what the words of a text show. English is read; of other languages only literals and names count."""
    said = text[:_MAX_READ].strip()
    text = said
    while (shorter := _POLITE.sub("", text, count=1)) != text:
        text = shorter
    literals = sum(1 for _ in _LITERAL.finditer(text))
    rest = _LITERAL.sub(" ", text)
    found = [(match[0].lower(), match) for match in _WORD.finditer(rest)]
    words = [word for word, _ in found]
    content = tuple(word for word in words if word not in _STOP and word not in _PRONOUNS)
    verb = words[0] if words else ""
    vague = tuple(word for word, match in found if word in _VAGUE and not match[0].isupper())
    about = [match[0] for word, match in found if word in content and word not in vague and word != verb]
    quantities = sum(word in _QUANTITIES for word in words)
    return Wording(
        verb=verb,
        question=bool(_QUESTION.match(text)) or (text.endswith("?") and text == said),
        actions=_actions(text),
        content=content,
        thing=" ".join(about[:_MAX_THING]),
        generic=tuple(word for word in content if word in _GENERIC),
        vague=vague,
        pronouns=_unresolved(words),
        literals=literals + quantities,
        names=sum(_is_name(word, match, rest) for word, match in found),
        constraints=len({match[0] for match in _CONSTRAINTS.finditer(rest.lower())}),
        listed=rest.count(",") >= 2 or rest.count("\n") >= 2 or (rest.count(",") >= 1 and " and " in rest),
    )


def _actions(text: str) -> tuple[str, ...]:
    """Return the first words of the clauses of a request that are verbs it is known to begin with."""
    starts = (_WORD.match(clause.strip()) for clause in _CLAUSE.split(text.lower()))
    return tuple(start[0] for start in starts if start is not None and start[0] in _VERBS)


def _unresolved(words: list[str]) -> tuple[str, ...]:
    """Return the pronouns that come before anything they could stand for."""
    named = 0
    unresolved = []
    for place, word in enumerate(words):
        follower = words[place + 1] if place + 1 < len(words) else ""
        stands_alone = not follower or follower in _STOP or follower in _VAGUE_ADJECTIVES or follower in _EMPTY_VERBS
        if word in _PRONOUNS and word not in ("one", "ones") and stands_alone and named < 1:
            if not (word == "that" and place > 1):
                unresolved.append(word)
        elif place > 0 and word not in _NO_THING:
            named += 1
    return tuple(unresolved)


def _is_name(word: str, match: re.Match[str], text: str) -> bool:
    if not match[0][:1].isupper() or word == "i" or word in _GENERIC:
        return False
    return not _SENTENCE_START.search(text[max(0, match.start() - _LOOKED_BACK) : match.start()])


_ENOUGH_DETAIL = 2.0
_TOPIC_IS_ENOUGH = listed("""
    greeting haiku joke jokes limerick motto poem poems rhyme riddle riddles slogan song sonnet story tagline verse
""")
"""Small texts of which a request has said enough when it says what they are about."""
_DETERMINERS = ("a", "an", "some", "the")
"""What begins a request that names only the thing: a landing page."""


def is_vague(words: Wording) -> bool:
    """Return whether a request leaves open what is to come out of it (adaptive FR-012)."""
    if not words.content and not words.literals and not words.names:
        return True
    if words.literals and words.detail >= _ENOUGH_DETAIL:
        return False
    if words.pronouns and words.detail < _ENOUGH_DETAIL:
        return True
    if words.question:
        return bool(words.vague) and words.detail < 1
    if words.open_ended:
        return words.detail < (1 if _TOPIC_IS_ENOUGH.intersection(words.content) else _ENOUGH_DETAIL)
    if words.verb in _DETERMINERS and words.detail < 1:
        return True
    return _unnamed_object(words) or (bool(words.vague) and words.detail < 1)


def _unnamed_object(words: Wording) -> bool:
    """Return whether all that is acted on is a kind of thing, with nothing that tells which."""
    return bool(words.generic) and not words.own and words.detail < 1
