"""A value in the user's own editor, as a YAML file; what was typed is kept until it has been used."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls
from aeon_core.plan.files import MAX_BYTES
from aeon_core.regular_file import read_start
from aeon_tui.platform.editor import named_editor, run_editor

Value = TypeVar("Value")
HEAD = "# {what}.\n"
CLOSE_HINT = "# Save and close the file to continue; empty it to cancel.\n"
"""The header of the file; the second line is for an external editor."""
_PLAIN = re.compile(r"[A-Za-z][^\n]*")
_WORDS = frozenset({"null", "true", "false"})
_BREAKS = re.compile("[\x85\u2028\u2029]")
"""Line breaks of YAML that are kept only as escapes."""


@dataclass(frozen=True)
class DraftForm(Generic[Value]):
    """How to edit a kind of value. `load` raises UsageError, in one line, for an invalid file."""

    noun: str
    """Its name, such as `plan`; also in the name of the file."""
    write: Callable[[Value], str]
    load: Callable[[Path], Value]
    hint: str = ""
    """The comment in the file: whole lines, each with a `#`."""
    elsewhere: str = "reject it and say what you want"
    """The alternative if no editor is set."""


class YamlDraft(Generic[Value]):
    """A value in a file, edited as often as needed; what was typed stays there until it is discarded.

    `what` names it; `typed` is the content of the file if that is not the value.
    """

    def __init__(self, form: DraftForm[Value], value: Value, what: str, typed: str = "") -> None:
        self._form = form
        self.value, self.what = value, what
        self._head = HEAD.format(what=escape_controls(what))
        descriptor, name = tempfile.mkstemp(prefix=f"aeon-{form.noun}-", suffix=".yml")
        self.file = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(typed or f"{self._head}{CLOSE_HINT}{form.hint}{form.write(value)}")

    def edit(self, hint: str) -> Value | None:
        """Open the file in `$VISUAL` or `$EDITOR`; return the edited value, None if it is unchanged.

        Raises UsageError if there is no editor, it fails, or the text is invalid: then the file is kept and
        named, with `hint` as the next step. An emptied file is discarded.
        """
        try:
            editor = named_editor(self._form.elsewhere)
        except UsageError:
            self.forget()
            raise
        self._run(editor)
        if _is_empty(self.text()):
            self.forget()
            raise UsageError(f"the {self._form.noun} was emptied in the editor; cancelled")
        try:
            return self._load()
        except UsageError as error:
            raise UsageError(f"{error.message}; {hint.format(file=self.file)}") from None

    def save(self, text: str) -> Value | None:
        """Write what was typed in the app's own editor to the file; return the value, None if it is unchanged.

        Raises UsageError if it is invalid, OSError if it cannot be written.
        """
        if _is_empty(text):
            raise UsageError(f"the {self._form.noun} is empty")
        self.file.write_text(text, encoding="utf-8")
        return self._load()

    def _load(self) -> Value | None:
        value = self._form.load(self.file)
        return None if value == self.value else value

    def text(self) -> str:
        """Return the content of the file. Raises UsageError."""
        try:
            return read_start(self.file, MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"{str(self.file)!r} cannot be read: {error.strerror}") from None

    def text_here(self) -> str:
        """Return the text for the app's own editor, which shows its name as the title."""
        return self.text().replace(f"{self._head}{CLOSE_HINT}", "", 1)

    def forget(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.file.unlink()

    def _run(self, editor: list[str]) -> None:
        try:
            failure = run_editor(editor, self.file)
        except UsageError:
            self.forget()
            raise
        if failure:
            raise UsageError(f"the editor {failure}; nothing was done, your {self._form.noun} is in {str(self.file)!r}")


def _is_empty(text: str) -> bool:
    return not any(line.strip() and not line.startswith("#") for line in text.splitlines())


def as_yaml(data: Any) -> str:
    """Return plain data as YAML that `read_data` reads back as the same data."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Quotes what a reader might take for a number, and writes multi-line texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: a value that occurs twice is written twice."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    style = '"' if _BREAKS.search(text) else "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
