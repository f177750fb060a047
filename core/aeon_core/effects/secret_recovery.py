"""The secrets of a run at its port: concealed on the way in, revealed on the way out, recovered after a resume.

A resumed or forked run finds secrets of the recorded part in the environment and the configuration. Of any other it has
only the token: the call that returned the secret is repeated if that is safe, and its outcome must have the same token.
Otherwise whatever needs the secret fails with an error that says so; a token is never sent in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from aeon_core.errors import AeonError
from aeon_core.installation import FORM
from aeon_core.redaction import REDACTED, SecretVault, tokens_in

Line = Mapping[str, Any]
Recorded = Callable[[], Iterable[Line]]

Repeat = Callable[[Line], str | None]

_WORDS = {
    "run_started": "what the run was started with",
    "approval": "what a person decided",
    "llm": "a reply of the model",
    "memory": "the memory",
}


class LostSecretError(AeonError):
    """A value that is needed holds a secret of which only the token is recorded."""


class RunSecrets:
    """Conceals and reveals secrets for one run. `recorded` yields the records that tokens may come from, with long
    texts in full.
    """

    def __init__(self, vault: SecretVault, recorded: Recorded | None = None) -> None:
        self.vault = vault
        self._recorded = recorded
        self._repeat: Repeat | None = None
        self._origins: dict[str, Line] | None = None
        self._in_progress: set[str] = set()
        self._without_tokens: bool | None = None

    def recover_with(self, repeat: Repeat) -> None:
        """Set the function that repeats what a record began to recover a secret; it returns why it cannot."""
        self._repeat = repeat

    def conceal(self, value: Any) -> Any:
        """Return plain JSON from outside in the concealed form that the kernel and the journal use."""
        return self.vault.conceal(value)

    def conceal_edited(self, value: Any) -> Any:
        """Conceal a user's edit of a record, after replacing its tokens with their secrets."""
        return self.vault.conceal(value, keep_tokens=True)

    def shown(self, value: Any) -> Any:
        """Return the kernel's plain JSON for the person at the terminal, with every known secret."""
        return self.vault.reveal(value)

    def reveal(self, value: Any) -> Any:
        """Return the kernel's plain JSON with its secrets, for use outside. Raises LostSecretError."""
        if self._recorded is None:
            return self.vault.reveal(value)
        if self._without_tokens is None:
            first: Line = next(iter(self._recorded()), {})
            self._without_tokens = first.get("versions", {}).get("redaction") != FORM
        if self._without_tokens and _contains(value, REDACTED):
            raise LostSecretError(
                f"an earlier version recorded {REDACTED!r} instead of a secret that is needed now; start a new run"
            )
        return self.vault.reveal(value, self._recover)

    def lost_in(self, value: Any) -> Iterator[str]:
        """Yield the tokens in plain JSON whose secret is not known."""
        return (token for token in tokens_in(value) if not self.vault.knows(token))

    def _records(self) -> Iterable[Line]:
        return self._recorded() if self._recorded is not None else ()

    def _origin(self, token: str) -> Line | None:
        """Return the record in which a token first occurs."""
        if self._origins is None:
            self._origins = {}
            for line in self._records():
                for each in tokens_in(dict(line)) if line["type"] != "text" else ():
                    self._origins.setdefault(each, line)
        return self._origins.get(token)

    def _recover(self, token: str) -> str:
        line = self._origin(token)
        if line is None:
            return token  # not in any record
        why = self._repeat_origin(token, line)
        if self.vault.knows(token):
            return str(self.vault.reveal(token))
        raise LostSecretError(
            f"a secret is needed that is not recorded: it comes from {_name_of(line)}; {why}. "
            "Set the environment variable that held it and resume the run, or start a new one"
        )

    def _repeat_origin(self, token: str, line: Line) -> str:
        """Repeat what returned a token's secret; return why that did not help, None if it did."""
        begun = self._beginning(line)
        if begun is None or self._repeat is None:
            return "only a person can enter it again"
        if token in self._in_progress:
            return "repeating that needs the secret itself"
        self._in_progress.add(token)
        try:
            why = self._repeat(begun)
            if begun["type"] == "run_started":
                return "only a person can enter it again"
            return why or "repeating that gave a different one"
        finally:
            self._in_progress.discard(token)

    def _beginning(self, line: Line) -> Line | None:
        """Return the record that started the call with this outcome; None if a person gave it."""
        if line["type"] in ("memory", "run_started"):
            return line if line.get("source") != "kernel" else None
        if line["type"] not in ("llm", "tool"):
            return None
        same = ("type", "call_id", "attempt")
        return next(
            (
                each
                for each in self._records()
                if each.get("state") == "started" and all(each.get(key) == line.get(key) for key in same)
            ),
            None,
        )


def is_repeatable(effect: str | None) -> bool:
    """Return whether a tool call may be repeated just for its outcome."""
    return effect in ("pure", "idempotent")


def _name_of(line: Line) -> str:
    kind, seq = line["type"], line["seq"]
    if kind == "tool":
        return f"the result of {line['tool_name']!r} (record {seq})"
    return f"{_WORDS.get(kind, f'a {kind!r} record')} (record {seq})"


def _contains(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, dict):
        return any(_contains(key, text) or _contains(item, text) for key, item in value.items())
    return isinstance(value, list) and any(_contains(item, text) for item in value)
