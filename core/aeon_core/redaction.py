"""Secrets in records: what a record holds instead of a secret, and how the secret returns where it is used.

A secret is never altered where it is used: in a request to a model, a tool's arguments, a file, a question to the
person at the terminal. Every record (journal, transcript, log, export, telemetry, error line) holds a token instead,
`[redacted:<12 hex digits>]`: a digest of the secret, keyed with a file that belongs to the user. Two records can
therefore be compared without the secret, and nobody can find the secret by trial.

The kernel computes on tokens, live and in a replay, so that both do the same. `SecretVault.conceal` inserts the tokens
where a value enters the kernel, `SecretVault.reveal` restores the secrets where one leaves it.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from jiter import from_json
from pydantic_core import to_json

from aeon_core.secret_forms import HEADERS, LEAST, counts, header_spans, may_hold_key, secret_values, spans

REDACTED = "[redacted]"
"""The placeholder for a secret in journals of earlier versions, and in messages that name no digest."""
TOKEN = re.compile(r"\[redacted:[0-9a-f]{12}\]")
_OPENING = "[redacted:"
_LENGTH = len(_OPENING) + 13
_CUT = re.compile(r"\[redacted:[0-9a-f]{1,12}(?![0-9a-f\]])")
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SPLIT = re.compile(r"[\"\\\x00-\x1f\x7f]")
"""Characters that JSON escapes: they stay beside the tokens, so that a token means the same in any JSON text."""
_SHORTEST = 6
"""Characters of the shortest text that may hold a secret: a cookie."""
_LEVELS = 5
"""How deeply JSON text may be nested in JSON text for a secret in it to be found."""
_ROUNDS = 8
_NUMBER_BEFORE = re.compile(r"(?:\"\s*:|[\[,])\s*\Z")
_NUMBER_AFTER = re.compile(r"\s*[,\]}]")
_LONGER_BEFORE, _LONGER_AFTER = re.compile(r"\d\.?\Z"), re.compile(r"\.?\d")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOLDERS = (dict, list)
_MARK = "PRIVATE KEY"
_KEY_BYTES = 32
_KEY_FILE = "redaction.key"


def user_key() -> bytes:
    """Return the user's key for digests, created on first use; one of this process alone if none can be stored."""
    try:
        return _key_in(user_key_file().parent)
    except RuntimeError:
        return _key_in(Path(os.devnull))  # nothing can be stored there


def user_key_file() -> Path:
    """Return the file of the user's key, which may not exist. Raises RuntimeError if the home folder is unknown."""
    from platformdirs import user_state_path

    return user_state_path("aeon", appauthor=False) / _KEY_FILE


@lru_cache(maxsize=8)
def _key_in(folder: Path) -> bytes:
    path = folder / _KEY_FILE
    with contextlib.suppress(OSError):
        if (found := _read_key(path)) is None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            _create_key(path)
            found = _read_key(path)
        if found is not None:
            return found
    return secrets.token_bytes(_KEY_BYTES)


def _read_key(path: Path) -> bytes | None:
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _create_key(path: Path) -> None:
    """Create the file whole or not at all; the first of several processes wins."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, secrets.token_bytes(_KEY_BYTES))
        os.fsync(fd)
        try:
            os.link(draft, path)
        except OSError:
            # It exists by now, or the file system has no hard links.
            if not path.exists():
                draft.replace(path)
    finally:
        os.close(fd)
        draft.unlink(missing_ok=True)


class SecretVault:
    """The secrets of one run or process, and their tokens.

    `values` are secrets wherever they occur, in addition to keys in their issuers' formats. A value that is also among
    `names` (of tools, parameters, fields) is not a secret: it hides nothing, and tokens in its place would break the
    exchange. `key` returns the key for digests, by default the user's.
    """

    def __init__(
        self,
        values: Iterable[str] = (),
        names: Callable[[], frozenset[str]] = frozenset,
        key: Callable[[], bytes] = user_key,
    ) -> None:
        found = {value.strip() for value in values if counts(value.strip())}
        if any(map(_IDENTIFIER.fullmatch, found)):
            known = names()
            found = {value for value in found if not any(value in name for name in known)}
        self._values: list[str] = []
        self._values = [value for value in sorted(found) if self._written(value)]
        self._anchors = [anchor for value in self._values for anchor in _anchors(value)]
        self._key = key
        self._secrets: dict[str, str] = {}
        self._knows_values = False

    def knows(self, token: str) -> bool:
        """Return whether a token's secret is known."""
        return self._secret_of(token) is not None

    def conceal(self, value: Any, *, keep_tokens: bool = False) -> Any:
        """Return plain JSON with a token in place of each secret; the value itself if it has none.

        Text that happens to be a token is replaced by one, too: `reveal` returns exactly what was given here. With
        `keep_tokens`, tokens are kept: a person has edited what a record shows.
        """
        if isinstance(value, str):
            return self._conceal_text(value, keep_tokens)
        if isinstance(value, dict):
            concealed, same = {}, True
            for key, item in value.items():
                # Most values of a run cannot hold a secret, which a cheap check shows.
                name = key if len(key) < LEAST else self._conceal_text(key, keep_tokens)
                short = len(item) < _SHORTEST if type(item) is str else not isinstance(item, _HOLDERS)
                inner = item if short else self._conceal_member(key, item, keep_tokens)
                concealed[name] = inner
                same = same and name is key and inner is item
            return value if same else concealed
        if isinstance(value, list):
            items = self._without_key([self.conceal(item, keep_tokens=keep_tokens) for item in value])
            return value if all(map(_is_same, items, value)) else items
        return value

    def reveal(self, value: Any, missing: Callable[[str], str] | None = None) -> Any:
        """Return plain JSON with the secrets in place of their tokens; the value itself if it has none.

        `missing` returns the secret of an unknown token; without it, such a token is ordinary text. A token that is cut
        off at the end of a text, as in long ones, is removed.
        """
        if missing is None and not (self._secrets or self._values):
            return value
        if isinstance(value, str):
            return self._reveal_text(value, missing) if _OPENING in value else value
        if isinstance(value, dict):
            revealed, same = {}, True
            for key, item in value.items():
                name = self._reveal_text(key, missing) if _OPENING in key else key
                whole = _OPENING not in item if type(item) is str else not isinstance(item, _HOLDERS)
                inner = item if whole else self.reveal(item, missing)
                revealed[name] = inner
                same = same and name is key and inner is item
            return value if same else revealed
        if isinstance(value, list):
            items = [self.reveal(item, missing) for item in value]
            return value if all(map(_is_same, items, value)) else items
        return value

    def redact_json(self, body: bytes) -> bytes:
        """Return one JSON value, as text, for a record: with tokens in place of secrets."""
        if not self._may_hold_secret(body.decode()):
            return body
        value = from_json(body)
        redacted = self.conceal(value, keep_tokens=True)
        return body if redacted is value else to_json(redacted)

    def token_of(self, secret: str) -> str:
        """Return the token for a secret, which is known from now on."""
        digest = hmac.new(self._key(), secret.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
        token = f"{_OPENING}{digest[:12]}]"
        self._secrets[token] = secret
        return token

    def _may_hold_secret(self, text: str) -> bool:
        if len(text) < LEAST:
            return False
        for anchor in self._anchors:
            if anchor in text:
                return True
        return may_hold_key(text)

    def _without_key(self, items: list[Any]) -> list[Any]:
        """Return a list without a private key whose lines are its items, or have one name in each, as from a search."""
        begun: set[str | None] = set()
        for item in items:
            if type(item) is str and _MARK in item:
                begun.add(None)
            elif type(item) is dict:
                begun.update(name for name, text in item.items() if type(text) is str and _MARK in text)
        if not begun:
            return items
        named: list[dict[Any, Any]] = [{**item} if type(item) is dict else {None: item} for item in items]
        for name in begun:
            held = [item for item in named if type(item.get(name)) is str]
            # No token holds a line end.
            lines = iter(self._conceal_text("\n".join(item[name] for item in held), True).split("\n"))
            for item in held:
                item[name] = "\n".join(islice(lines, item[name].count("\n") + 1))
        found = [item.get(None, item) for item in named]
        return items if found == items else found

    def _conceal_member(self, key: str, item: Any, keep_tokens: bool) -> Any:
        if type(item) is str and len(key) <= 21 and (header := key.lower()) in HEADERS:
            return self._conceal_text(item, keep_tokens, header)
        return self.conceal(item, keep_tokens=keep_tokens)

    def _conceal_text(self, text: str, keep_tokens: bool, header: str | None = None) -> str:
        if not keep_tokens and _OPENING in text:
            text = TOKEN.sub(lambda found: self.token_of(found[0]), text)
        if header is None and not self._may_hold_secret(text):
            return text
        for _ in range(_ROUNDS):
            atoms = _merged(self._atoms(text, header), text)
            if not atoms:
                break
            parts, at = [], 0
            for start, end, secret in atoms:
                parts += [text[at:start], self.token_of(secret)]
                at = end
            text = "".join([*parts, text[at:]])
        return text

    def _written(self, value: str) -> list[str]:
        """Return the parts of a secret that are replaced by tokens if it is written without escapes."""
        blocked: set[int] = set()
        list(_views(value, blocked))
        return [secret for _, _, secret in _parts(value, value, None, 0, len(value), blocked)]

    def _atoms(self, text: str, header: str | None) -> Iterator[tuple[int, int, str]]:
        """Yield what is to be replaced in a text: the position, and the secret there, free of `_SPLIT`.

        The text is read as it is, and as JSON text with as many levels as it has escapes: of a secret that is written
        with escapes, the parts between these are replaced.
        """
        blocked = {place for token in TOKEN.finditer(text) for place in range(*token.span())}
        views = list(_views(text, blocked))
        for view, starts in views:
            for first, last in self._spans(view, header):
                yield from _parts(text, view, starts, first, last, blocked)

    def _spans(self, view: str, header: str | None) -> Iterator[tuple[int, int]]:
        if header is not None:
            yield from header_spans(header, view)
        if may_hold_key(view):
            yield from spans(view)
        for value in self._values:
            at = view.find(value)
            while at >= 0:
                if not value.isdecimal() or _is_whole_number(view, at, at + len(value)):
                    yield at, at + len(value)
                at = view.find(value, at + 1)

    def _reveal_text(self, text: str, missing: Callable[[str], str] | None) -> str:
        def secret(found: re.Match[str]) -> str:
            token = found[0]
            known = self._secret_of(token)
            if known is not None:
                return known
            return token if missing is None else missing(token)

        if _CUT.search(text):
            text = _CUT.sub(self._without_cut, text)
        return TOKEN.sub(secret, text)

    def _secret_of(self, token: str) -> str | None:
        if token not in self._secrets and not self._knows_values:
            # A token of another process: this one may not have seen the secret yet.
            self._knows_values = True
            for value in self._values:
                for secret in self._written(value):
                    self.token_of(secret)
        return self._secrets.get(token)

    def _without_cut(self, found: re.Match[str]) -> str:
        return "…" if any(token.startswith(found[0]) for token in self._secrets) else found[0]


def cut_place(text: str, at: int) -> int:
    """Return where to cut a text: at `at`, or before the token that this would split."""
    start = text.rfind(_OPENING, max(0, at - _LENGTH + 1), at + len(_OPENING) - 1)
    return start if 0 <= start < at and TOKEN.match(text, start) and at < start + _LENGTH else at


def holds_token(text: str) -> bool:
    """Return whether a text, such as a value as JSON, may contain a token."""
    return _OPENING in text


def tokens_in(value: Any) -> Iterator[str]:
    """Yield the tokens in JSON, however deeply it nests."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if _OPENING in item:
                yield from TOKEN.findall(item)
        elif isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, list):
            waiting += item


def names_in(schemas: Any) -> frozenset[str]:
    """Return the names used in plain JSON: keys, and the values of enumerations."""
    found: set[str] = set()
    waiting = [schemas]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found.update(value)
            for key in ("name", "const", "enum", "required"):
                named = value.get(key)
                found.update(each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str))
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return frozenset(found)


def redact(value: Any) -> Any:
    """Return plain JSON for a record that no run writes, such as a log, with tokens in place of secrets."""
    return _process_vault().conceal(value, keep_tokens=True)


def redact_text(text: str) -> str:
    """Return a text for a record that no run writes, such as an error line, with tokens in place of secrets."""
    redacted: str = _process_vault().conceal(text, keep_tokens=True)
    return redacted


def redact_json(body: bytes) -> bytes:
    """Return one JSON value, as text, with tokens in place of secrets."""
    return _process_vault().redact_json(body)


def conceal(value: Any) -> Any:
    """Return plain JSON from outside for a record that is read again: text like a token is concealed, too."""
    return _process_vault().conceal(value)


def holds_secret(text: str) -> bool:
    """Return whether the text contains anything that a record must not hold."""
    return redact_text(text) != text


def protect(values: Iterable[str]) -> None:
    """Treat configured keys as secrets in everything that this process records from now on."""
    _protected.update(value for value in map(str.strip, values) if counts(value))


_protected: set[str] = set()


def environment_secrets() -> frozenset[str]:
    """Return the secrets among the environment variables, searched again when one of them has changed."""
    # The raw mapping: decoding every variable for each error line would cost more than looking for secrets in it.
    # A copy first: another thread may change it meanwhile.
    raw = dict(getattr(os.environ, "_data", os.environ))
    return _values_in(frozenset(raw.items()))


def _process_vault() -> SecretVault:
    return _vault_of(environment_secrets() | _protected)


@lru_cache(maxsize=4)
def _values_in(environment: frozenset[Any]) -> frozenset[str]:
    return frozenset(secret_values({os.fsdecode(name): os.fsdecode(value) for name, value in environment}))


_vault_of = lru_cache(maxsize=4)(SecretVault)


def _anchors(value: str) -> tuple[str, ...]:
    """Return texts of which one occurs wherever the secret does, as it is or in JSON text, escaped or not."""
    if runs := re.findall(r"[ !#-.0-\[\]-~]+", value):
        return (max(runs, key=len),)
    if value.isascii() or not value.isprintable():
        return ("",)
    return max(re.findall(r"[^\0-\x7f]+", value), key=len), "\\u"


def _is_same(one: Any, other: Any) -> bool:
    return one is other


def _is_whole_number(view: str, start: int, end: int) -> bool:
    """Return whether digits are not part of a longer number, and not a JSON number, which cannot hold a token."""
    if _LONGER_BEFORE.search(view, max(0, start - 2), start) or _LONGER_AFTER.match(view, end):
        return False
    return not (_NUMBER_BEFORE.search(view, max(0, start - 20), start) and _NUMBER_AFTER.match(view, end))


def _views(text: str, blocked: set[int]) -> Iterator[tuple[str, list[int] | None]]:
    """Yield the text as it is, then as JSON text decoded once, twice …, each with its positions.

    The positions are those in the text where each character begins, and the end of the last one; None if they are the
    same. Characters of the text that are part of an escape at any level are added to `blocked`.
    """
    view, starts = text, list(range(len(text) + 1)) if "\\" in text else None
    for level in range(_LEVELS):
        yield view, starts if level else None
        if starts is None or "\\" not in view:
            return
        parts: list[str] = []
        places: list[int] = []
        at = 0
        for escape in _ESCAPE.finditer(view):
            first, last = escape.span()
            parts += [view[at:first], _meaning(escape[0])]
            places += [*starts[at:first], starts[first]]
            blocked.update(range(starts[first], starts[last]))
            at = last
        if not at:
            return
        parts.append(view[at:])
        places += starts[at:]
        view, starts = "".join(parts), places


def _meaning(escape: str) -> str:
    code = escape[1]
    return chr(int(escape[2:], 16)) if code == "u" else _ESCAPED.get(code, code)


def _parts(
    text: str, view: str, starts: list[int] | None, first: int, last: int, blocked: set[int]
) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of a span of a view that tokens can replace, as (start, end, secret) in the text."""
    begin, end, secret = -1, -1, ""
    for place in range(first, last):
        character = view[place]
        start, after = (place, place + 1) if starts is None else (starts[place], starts[place + 1])
        if after - start == 1:
            usable = start not in blocked and not _SPLIT.match(character)
        else:
            # An escape of what need not be escaped, such as `\u00e9`: the token replaces the character.
            usable = starts is not None and text[start] == "\\" and character.isprintable() and character not in '"\\/'
        if not usable:
            if secret:
                yield begin, end, secret
            begin, secret = -1, ""
            continue
        begin, end, secret = (begin if secret else start), after, secret + character
    if secret:
        yield begin, end, secret


def _merged(found: Iterable[tuple[int, int, str]], text: str) -> list[tuple[int, int, str]]:
    """Return the replacements in order, without overlaps: two that overlap become one."""
    kept: list[tuple[int, int, str]] = []
    for start, end, secret in sorted(set(found), key=lambda atom: (atom[0], -atom[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, secret))
            continue
        before, until, first = kept[-1]
        if end > until and text[start:end] == secret and text[before:until] == first:
            kept[-1] = (before, end, text[before:end])
    return kept
