"""What a shell line is made of, once it is parsed."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

Finding = tuple[str, str]
"""The name of a blocklist pattern, and why a command matches it."""

_ESCAPE = re.compile(r"\\([nt]|x[0-9a-fA-F]{1,2}|[0-7]{1,4})")
_OPEN = re.compile(r"[$`]|[<>]\(")


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection, such as `2> log`."""

    operator: str
    target: str

    @property
    def writes(self) -> bool:
        """Whether the target is a file that would be opened for writing."""
        return ">" in self.operator and not (self.operator == ">&" and self.target.rstrip("-").isdigit())


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command that would run: a program with its arguments, or only assignments or redirections."""

    words: tuple[str, ...]
    """Without quotes. What cannot be known before it runs stands as it is written, such as `$(date)`."""
    literal: tuple[bool, ...]
    """For each word, whether it is exactly what would be passed: no variable, substitution, glob or brace in it."""
    text: str
    """The command on one line, quoted only where it must be."""
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[str, ...] = ()
    piped_from: tuple[SimpleCommand, ...] = ()
    """The commands of the earlier stages of its pipelines, in the order in which they are written."""
    stdin: str | None = None
    """The here-document or here-string that it reads."""
    functions: tuple[str, ...] = ()
    """The functions in whose bodies it stands, the innermost last."""
    concurrent: bool = False
    """Whether it is a stage of a pipeline, or runs in the background."""

    @property
    def program(self) -> str:
        """The program's name without its folder; empty where there is none."""
        return posixpath.basename(self.words[0]) if self.words else ""

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the program."""
        return self.words[1:]

    def is_open(self, index: int) -> bool:
        """Return whether the word at `index` cannot be known: it holds a variable or a substitution."""
        return not self.literal[index] and bool(_OPEN.search(self.words[index]))

    def input_text(self) -> str | None:
        """Return what the command reads where that is written in the line, else None."""
        if self.stdin is not None:
            return self.stdin
        texts = [text for text in map(_printed, self.piped_from) if text is not None]
        return "\n".join(texts) if texts else None


def _printed(command: SimpleCommand) -> str | None:
    """Return what `echo`, `printf` or a here-document's reader prints; None for all other commands."""
    if command.program == "echo":
        kept = [word for word in command.arguments if not re.fullmatch(r"-[neE]+", word)]
        return _unescaped(" ".join(kept))
    if command.program == "printf" and command.arguments:
        return _unescaped("\n".join(command.arguments))
    return command.stdin if command.program in {"cat", "tee"} else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _escaped(found[1]), text)


def _escaped(code: str) -> str:
    if code[0] == "x":
        return chr(int(code[1:], 16))
    return {"n": "\n", "t": "\t"}.get(code) or chr(int(code, 8) & 0xFF)
