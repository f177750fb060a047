"""What a sentence of a plan says, taken apart once: words, stems, numbers, and the names of definite things."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from aeon_core.validation.semantic.lazy import lazy
from aeon_core.validation.semantic.lexicon import EMPTY_NOUNS, FUNCTION_WORDS, LEADING_WORDS, NUMBER_WORDS, PARTICLES
from aeon_core.validation.semantic.stems import stem, words

_EXACT = frozenset({"quoted", "url", "email", "file", "code", "date"})
_MADE_OF_WORDS = frozenset({"quoted", "file", "code", "url"})
_ARTICLES = words("the a an")
_JOINING = words("and then by or to that which")

MAX_LENGTH = 2000
"""Characters of a text that are looked at."""

_TOKEN = re.compile(
    r"\s?(?:(?P<plain>[A-Za-z]?[a-z]+(?=[\s,;!?)]|$|[.:](?:\s|$)))"
    r"|(?P<quoted>\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|`[^`\n]{1,200}`|(?<![\w'])'[^'\n]{1,200}'(?!\w))"
    r"|(?P<url>https?://[^\s,;)\"'>]+)"
    r"|(?P<email>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+)"
    r"|(?P<date>\d{4}-\d\d?-\d\d?|\d\d?:\d\d|\d\d?/\d\d?/\d{2,4}|v?\d+(?:\.\d+){2,})"
    r"|(?P<file>(?:~|\.{1,2})?/?(?:[\w.-]{1,100}/)+[\w.-]*|/[\w.-]+|[A-Za-z_][\w-]{0,100}\.[A-Za-z]\w{0,9}(?!\w))"
    r"|(?P<number>(?<![\w.])[-−]?(?:\d{1,3}(?:[,  ]\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s?%)?(?![\w]))"
    r"|(?P<code>[A-Za-z][\w-]*(?:_\w+|-?\d\w*)|[a-z]+[A-Z]\w*|\d\w*|[A-Za-z_]\w*\(\w*\))"
    r"|(?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)"
    r"|(?P<stop>[.;:!?,()\[\]]))"
)
"""Each piece with the blank before it, so that no alternative is tried on blanks."""
_FILE_ENDING = re.compile(r"\.[A-Za-z]\w{0,9}$")


class Token(NamedTuple):
    """A piece of a text: `kind` is one of quoted, url, email, date, file, number, code, word, stop."""

    kind: str
    text: str
    lower: str


class Phrase:
    """A text taken apart, shared and never changed. Everything is in the order of the text, and lower case."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.words: list[str] = []
        self._plain: list[str] = []
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or ""
            found = match[kind]
            lower = found.lower()
            if kind == "plain" or kind == "word":
                said = [lower] if kind == "plain" else _words_of(lower)
                kind = "word"
                self.words += said
                self._plain += said
            elif kind in _MADE_OF_WORDS:
                self.words += phrase_words(found)
            self.tokens.append(Token(kind, found, lower))
        self._kinds = {token.kind for token in self.tokens}

    @lazy
    def stems(self) -> frozenset[str]:
        """Return the stems of the words that carry meaning."""
        return frozenset(map(stem, self.content))

    @lazy
    def content(self) -> list[str]:
        """Return the words that carry meaning."""
        return [word for word in self.words if word not in FUNCTION_WORDS]

    @lazy
    def plain_words(self) -> frozenset[str]:
        """Return the meaningful words outside names, paths and identifiers."""
        return frozenset(self._plain) - FUNCTION_WORDS

    @lazy
    def numbered(self) -> list[tuple[int, float]]:
        """Return the numbers, those written as words included, each with the place of its token."""
        told = (
            (place, number_in(token))
            for place, token in enumerate(self.tokens)
            if token.kind == "number" or token.lower in NUMBER_WORDS
        )
        return [(place, number) for place, number in told if number is not None]

    @lazy
    def numbers(self) -> list[float]:
        """Return the same numbers alone."""
        return [number for _, number in self.numbered]

    @lazy
    def lower(self) -> str:
        """Return the text in lower case."""
        return self.text.lower()

    @lazy
    def names(self) -> dict[str, set[str]]:
        """Return what is named exactly, by kind: files, URLs, addresses, quoted text, dates and identifiers."""
        named: dict[str, set[str]] = {}
        for token in () if self._kinds.isdisjoint(_EXACT) else self.tokens:
            if token.kind in _EXACT:
                named.setdefault(token.kind, set()).add(_bare(token))
        return named

    @lazy
    def before(self) -> dict[str, list[str]]:
        """Return the words that stand right before each exact name."""
        found: dict[str, list[str]] = {}
        if self._kinds.isdisjoint(_EXACT):
            return found
        for word, token in zip(self.tokens, self.tokens[1:], strict=False):
            if token.kind in _EXACT:
                found.setdefault(_bare(token), []).append(word.lower)
        return found

    @lazy
    def exact_names(self) -> frozenset[str]:
        """Return the same in one set."""
        return frozenset().union(*self.names.values())

    @lazy
    def files(self) -> set[str]:
        """Return the names of files: paths with an ending, whether quoted or not."""
        named = self.names.get("file", set()) | self.names.get("quoted", set())
        return {name for name in named if " " not in name and _FILE_ENDING.search(name)}

    @lazy
    def paths(self) -> list[str]:
        """Return the files in order, and the names of folders with them."""
        return sorted(self.files | {name for name in self.names.get("file", ()) if "." in name or "/" in name})

    @lazy
    def proper(self) -> set[str]:
        """Return the words with a capital that do not begin a sentence, in lower case."""
        found: set[str] = set()
        begins = True
        if self.text[1:].islower():
            return found
        for token in self.tokens:
            if token.kind == "word" and token.text[0].isupper() and not begins and not token.text.isupper():
                found.add(token.lower)
            begins = token.kind == "stop" and token.text in ".:!?"
        return found

    @lazy
    def verb(self) -> str | None:
        """Return the first word of the sentence that can be its verb, None where a thing stands first."""
        for token in self.tokens:
            if token.kind != "word":
                return None
            if token.lower not in LEADING_WORDS:
                return token.lower
        return None

    @lazy
    def verb_stem(self) -> str | None:
        """Return the stem of that verb."""
        return None if self.verb is None else stem(self.verb)

    @lazy
    def object_order(self) -> tuple[str, ...]:
        """Return the stems of what the sentence is about: without its verb and words that stand for anything."""
        content = list(self.content)
        if self.verb in content:
            content.remove(self.verb)
        return tuple(found for found in map(stem, content) if found not in EMPTY_NOUNS)

    @lazy
    def objects(self) -> frozenset[str]:
        """Return the same in no order."""
        return frozenset(self.object_order)

    @lazy
    def direct_object(self) -> str | None:
        """Return the noun phrase behind the verb, as one thing: `the slide deck`; None for a bare or counted noun."""
        start = next((i for i, token in enumerate(self.tokens) if token.lower == self.verb), len(self.tokens))
        if not self.tokens[start + 1 :] or self.tokens[start + 1].lower not in _ARTICLES:
            return None
        noun = []
        for token in self.tokens[start + 2 : start + 6]:
            if token.kind != "word" or token.lower in FUNCTION_WORDS:
                break
            noun.append(stem(token.lower))
        return " ".join(noun) or None

    @lazy
    def negated(self) -> bool:
        """Return whether the sentence forbids what its verb says."""
        lead = [token.lower.replace("’", "'") for token in self.tokens[:2]]
        return lead[:1] in (["never"], ["don't"], ["avoid"], ["skip"]) or lead in (["do", "not"], ["must", "not"])

    @lazy
    def verbs(self) -> list[str]:
        """Return the words that begin a clause: the first verb, and those after `and`, `then`, `by`, `to` or a stop."""
        found = [] if self.verb is None else [self.verb]
        for before, token in zip(self.tokens, self.tokens[1:], strict=False):
            joins = before.kind == "stop" or before.lower in _JOINING
            if joins and token.kind == "word" and token.lower not in FUNCTION_WORDS:
                found.append(token.lower)
        return found

    @property
    def concrete(self) -> bool:
        """Return whether the text names anything exactly: a number, a quotation, a file, a proper name."""
        return bool(self.numbers or self.names or self.proper or self._acronyms)

    @lazy
    def _acronyms(self) -> set[str]:
        if self.text[1:].islower():
            return set()
        return {
            token.text for token in self.tokens if token.kind == "word" and len(token.text) > 1 and token.text.isupper()
        }


def phrase(text: str) -> Phrase:
    """Return the text taken apart; of a long one its beginning."""
    return _taken_apart(text[:MAX_LENGTH])


# A plan is looked at in every pass, and few of its texts change from one to the next.
@lru_cache(maxsize=4096)
def _taken_apart(text: str) -> Phrase:
    return Phrase(text)


_PART = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@lru_cache(maxsize=4096)
def phrase_words(text: str) -> tuple[str, ...]:
    """Return the words that a name is made of: `loadUser_data` gives load, user, data."""
    return tuple(word.lower() for word in _PART.findall(_HUMP.sub(" ", text)))


def _words_of(word: str) -> list[str]:
    if word.isalpha():
        return [word]
    word = word.replace("’", "'").removesuffix("'s")
    if word in PARTICLES or "-" not in word:
        return [word]
    return word.split("-")


def number_in(token: Token) -> float | None:
    """Return the number that a token is, a percentage as it is written, or None."""
    if token.kind == "word":
        return NUMBER_WORDS.get(token.lower)
    if token.kind != "number":
        return None
    digits = re.sub(r"[,  \s%]", "", token.text).replace("−", "-")
    return float(digits) if len(digits) < 30 else None


def _bare(token: Token) -> str:
    text = token.text[1:-1] if token.kind == "quoted" else token.text
    return text.rstrip(".").lower()
