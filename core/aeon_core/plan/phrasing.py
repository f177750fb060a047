"""What a vague request leaves open, as questions in plain English (adaptive FR-011).

What a request is about is taken out of it in its own words; what is asked follows from its verb and that thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from aeon_core.plan.wording import OPEN_VERBS, Wording, listed

_MAX_WORDS = 12
"""Words of a thing that a question repeats."""

_MEND = listed("fix repair debug resolve troubleshoot mend")
_CHANGE = listed("""
    improve enhance optimise optimize refactor clean polish modernise modernize update upgrade redesign rework
    restructure revise tune rewrite simplify speed increase reduce boost
""")
_LEARN_ABOUT = listed("""
    analyse analyze research evaluate explore investigate review check study assess examine look test compare
""")
_TEACH = listed("teach learn train")
_TAKE = listed("""
    summarise summarize translate proofread read convert parse count extract open print merge solve plot calculate prove
""")
_CHOOSE = listed("recommend suggest choose pick find buy order book")
_PRICED = listed("recommend buy order book")
_SET_UP = listed("prepare set setup organise organize arrange configure establish send")
_MAKE = listed("""
    write build create design develop make generate produce implement draft construct architect compose invent launch
    come put a an some another
""")
_PLANNED = listed("plan schedule")

_ARTICLES = listed("a an some any another few several various")
_DEFINITE = listed("the this that these those your")
_OURS = listed("my our mine")
_FAULTS = listed("""
    bug bugs issue issues problem problems error errors crash crashes failure failures fault faults leak leaks mess
""")
_ADDRESSED = listed("""
    email emails e-mail mail letter letters message messages note memo invitation invitations reply newsletter tweet
""")
_ABOUT = listed("""
    article articles blog book content documentation document essay idea ideas lecture poem post posts presentation
    report reports research slides song speech story stories summary talk video workshop novel lesson course paper quiz
""")
_SOFTWARE = listed("""
    api app apps application applications architecture backend bot chatbot code component dashboard database extension
    form frontend function game interface library microservice model module page pipeline platform plugin portal program
    query schema script server service site software store system test tests tool website workflow
""")
_UNNAMED = listed("something anything everything stuff thing things usual necessary rest whatever")
_HEDGES = listed("some somehow maybe perhaps possibly probably various several few kind sort")
_FILLERS = listed("up out down over on into with for to at through about me us together just of")
_DETERMINERS = _ARTICLES | _DEFINITE | _OURS
_BEFORE = _FILLERS | _DETERMINERS | listed("new and")
_TAIL = listed("and or more less very much really to be look looks feel run a lot bit again please somehow now asap")
_PRONOUNS = listed("it this that them these those one everyone i we you")
_TO_YOU = {"my": "your", "our": "your", "me": "you", "us": "you"}
_HELPED = re.compile(r"\s+(?:(?:me|us)\s+)?(?:to\s+)?(?!(?:with|on|in|for|from|me|us)\b)([a-z]+)\b", re.IGNORECASE)
_RESULT = re.compile(r"\s(?:look|work|run|pass|sound|load|feel|stop|go|under)\b.*", re.IGNORECASE)
_TO = re.compile(r"\s(?:to|into|from|onto)\s")
_END = re.compile(
    r"[,;:!?()\n\"“”]|\.(?:\s|$)|\s[–—-]\s|\s(?:and|then)\s+(?=(?:then\s+)?(\w+))"
    r"|\s(?=(?:that|which|who|so|because|but|while|when|if|before|after|as|by|until|using)\s)"
)
_PREPOSITION = re.compile(r"\s(?:for|with|in|on|to|from|by|of|about|at|into|without|between)\s")


@dataclass(frozen=True, slots=True)
class _Thing:
    """What a request is about: `text` as a question repeats it, `verb` what is to be done with it."""

    verb: str
    text: str
    head: str
    """Its main noun, in lower case."""
    new: bool
    """Whether it is to come into being or to be found, as an indefinite article says."""
    rated: bool
    """Whether vague words come behind it: make it faster, handle it properly."""


def questions_about(text: str, words: Wording) -> Iterator[str]:
    """Yield the questions that a vague request raises, the most needed first."""
    if words.pronouns:
        yield f"What does {words.pronouns[0]!r} stand for?"
    vague = [word for word in words.vague if word != words.verb and word not in _FAULTS | _HEDGES]
    for word in vague[:1]:
        yield _of_vague_word(word)
    thing = None if words.question else _thing(text, words)
    if thing is not None:
        yield _of_thing(thing)
    elif not words.pronouns and not _UNNAMED.intersection(vague):
        yield "What exactly is to be done, and with what?"
    if words.open_ended:
        yield "Which constraints hold, such as deadline, budget, size or tools?"
        yield "When is the result good enough: what will it be checked against?"


def _of_vague_word(word: str) -> str:
    if word in _UNNAMED:
        return f"What exactly is meant by {word!r}?"
    return f"What does {word!r} mean here, and how would one see that it is reached?"


def _of_thing(thing: _Thing) -> str:
    of, verb = thing.text, thing.verb
    if thing.head in _FAULTS and verb not in _MAKE:
        return f"Where does one see {of}, and what should happen instead?"
    if verb in _MEND:
        return f"What is wrong with {of}, and what should happen instead?"
    if verb in _CHANGE or (verb == "make" and thing.rated):
        return f"What about {of} should change, and how is that measured?"
    if verb in _LEARN_ABOUT:
        return f"What should be found out about {of}, and to what end?"
    if verb in _TEACH:
        return f"What about {of} should be learned, and what is known already?"
    if verb in _TAKE:
        return f"Where can one find {of}, and in which form is the result wanted?"
    if verb in _CHOOSE:
        return f"What must {of} offer{', and at what price' if verb in _PRICED else ''}?"
    return _of_work(thing)


def _of_work(thing: _Thing) -> str:
    of, verb = thing.text, thing.verb
    making = verb in _MAKE or (verb in _SET_UP and thing.new)
    if thing.head in _ADDRESSED and (making or verb in _SET_UP):
        return f"What should {of} say, and to whom?"
    if verb in _PLANNED or (verb in ("organise", "organize", "arrange") and thing.new):
        return f"What should {of} include, for whom, and when?"
    if thing.head in _SOFTWARE and making:
        return f"What should {of} do or contain, and for whom?"
    if verb in ("write", "compose", "draft") or (thing.head in _ABOUT and (making or thing.new)):
        return f"What should {of} be about, and for whom?"
    if making:
        return f"What should {of} be like, and for whom?"
    return f"What exactly should be done with {_TO.split(of, maxsplit=1)[0]}, and what should come of it?"


def _thing(text: str, words: Wording) -> _Thing | None:
    """Return what a request is about: the words behind its verb, up to the next clause; None where they are empty."""
    verb, rest = _verb_and_rest(text, words.verb)
    tokens, article, vague = rest.split(), "", {*words.vague} - _FAULTS
    while tokens and (word := tokens[0].strip(",.!?").lower()) in _BEFORE | vague:
        if word in vague & _UNNAMED:
            return None
        article = word if word in _DETERMINERS else article
        tokens = tokens[1:]
    phrase, cut = _up_to_the_end(" ".join(tokens), verb)
    kept = len(phrase)
    while kept and phrase[kept - 1].lower() in _TAIL | vague:
        kept -= 1
    rated = cut or any(word.lower() in vague for word in phrase[kept:])
    named = _shortened(" ".join(phrase[:kept]))
    if not named or named.split()[0].lower() in _PRONOUNS:
        return None
    determiner = "your " if article in _OURS else "the " if article else ""
    head = _PREPOSITION.split(f" {named} ", maxsplit=1)[0].split()[-1].lower()
    return _Thing(verb, determiner + named, head, article in _ARTICLES or not article, rated)


def _verb_and_rest(text: str, verb: str) -> tuple[str, str]:
    """Return the verb that says what is wanted, which is another one behind 'help me', and the words after it."""
    found = re.search(rf"(?<!\w){re.escape(verb)}(?!\w)", text, re.IGNORECASE)
    if found is None:
        return verb, text
    if verb in _DETERMINERS:
        return verb, text[found.start() :]
    rest = text[found.end() :]
    helped = _HELPED.match(rest) if verb == "help" else None
    return (helped[1].lower(), rest[helped.end() :]) if helped is not None else (verb, rest)


def _up_to_the_end(text: str, verb: str) -> tuple[list[str], bool]:
    """Return the words up to the end of their clause, and whether behind them stands what they are to become."""
    for end in _END.finditer(f" {text} "):
        if end[1] is None or end[1].lower() in OPEN_VERBS | _MAKE | _MEND | _CHANGE | _TAKE | _LEARN_ABOUT:
            text = text[: max(end.start() - 1, 0)]
            break
    result = _RESULT.search(text) if verb in ("make", "get") else None
    words = (text[: result.start()] if result is not None else text).split()
    return [_TO_YOU.get(word.lower(), word) for word in words], result is not None


def _shortened(phrase: str) -> str:
    if len(phrase.split()) > _MAX_WORDS:
        phrase = " ".join(_PREPOSITION.split(phrase, maxsplit=1)[0].split()[:_MAX_WORDS])
    return phrase.strip(" .,")
