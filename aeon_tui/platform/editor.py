"""A text or a file in the user's own editor or pager, and its problems, line by line."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from aeon_core.config.editing import edit_file
from aeon_core.config.keys import CONFIG_KEYS
from aeon_core.config.loading import read_config_file, user_config_file
from aeon_core.errors import AeonError, UsageError
from aeon_core.paths import PROJECT_FOLDER, make_config_folder
from aeon_core.process import handled
from aeon_core.regular_file import read_text
from aeon_core.yaml_file import SETTINGS, YamlError, compose_yaml
from aeon_tui.platform.terminal import is_served

if TYPE_CHECKING:
    from textual.app import App


_PLACE = re.compile(r"(?:^|[^\w.])line (\d+)(?:, column \d+)?(?:: ?| )")
_PATH = re.compile(r"([A-Za-z_]\w*(?:\[\d+\]|\.\w+)*)")
_PART = re.compile(r"\[(\d+)\]|(\w+)")
_WITHIN = re.compile(r"\bthe (\w+)")
_QUOTED = re.compile(r"['\"]([\w.-]+)['\"]")


@dataclass(frozen=True)
class TextProblem:
    """A problem of a text. `line` counts from 1."""

    reason: str
    line: int | None = None

    def __str__(self) -> str:
        return self.reason if self.line is None else f"line {self.line}: {self.reason}"


def text_problems(error: AeonError, text: str, file: Path) -> list[TextProblem]:
    """Return the problems that an error reports about a YAML text; the name of `file` is left out."""
    listed = error.context.get("problems")
    if not isinstance(listed, list):
        message = error.message
        for name in (f"the config file {str(file)!r}", repr(str(file))):
            message = message.replace(f"{name}, ", "").replace(f" in {name}", "").replace(f"{name} ", "")
        listed = [message]
    root = _root(text)
    return [_located(str(each), root) for each in listed]


def _root(text: str) -> Any:
    try:
        return compose_yaml(text.removeprefix("\ufeff"))
    except YamlError:
        return None


def _located(reason: str, root: Any) -> TextProblem:
    if place := _PLACE.search(reason):
        return TextProblem(reason[place.end() :].removeprefix("is "), int(place[1]))
    found = [_place(root, path) for path in _paths(reason)]
    deepest = max(found, key=lambda each: each[0], default=(0, None))
    return TextProblem(reason, deepest[1])


def _paths(reason: str) -> Iterator[list[str | int]]:
    """Yield candidates for the path of the value that a reason is about.

    These are its beginning, what it quotes below that, and what it quotes of `the` part that it names.
    """
    start = _PATH.match(reason)
    parts = [int(index) if index else key for index, key in _PART.findall(start[1])] if start is not None else []
    yield parts
    within = _WITHIN.findall(reason)[:1]
    for quoted in _QUOTED.findall(reason):
        yield [*parts, quoted]
        yield [*within, quoted]
        yield [quoted]


def _place(node: Any, path: list[str | int]) -> tuple[int, int | None]:
    """Return how much of the path exists, and its line; None if nothing of it exists."""
    line: int | None = None
    for depth, part in enumerate(path):
        if isinstance(part, int):
            items = node.value if getattr(node, "id", None) == "sequence" else []
            key = node = items[part] if part < len(items) else None
        else:
            pairs = node.value if getattr(node, "id", None) == "mapping" else []
            key, node = next(((name, value) for name, value in pairs if name.value == part), (None, None))
        if key is None:
            return depth, line
        line = int(key.start_mark.line) + 1
    return len(path), line


@contextlib.contextmanager
def terminal_given(app: App[Any]) -> Iterator[None]:
    """Suspend the app and give the terminal to an editor. Raises SuspendNotSupported.

    An error meanwhile is raised once the app has the terminal back, since Textual would not resume otherwise.
    """
    raised: Exception | None = None
    with app.suspend():
        try:
            yield
        except Exception as error:
            raised = error
    if raised is not None:
        raise raised


def named_editor(otherwise: str) -> list[str]:
    """Return the command of `$VISUAL` or `$EDITOR`; raises UsageError, with the alternative, if there is none."""
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named!r} is not a command; set VISUAL or EDITOR to one") from None
    if not words:
        raise UsageError(f"no editor is set; set VISUAL or EDITOR, or {otherwise}")
    return words


def has_own_editor() -> bool:
    """Return whether an editor is set and would have a terminal, which an app in a browser does not."""
    return not is_served() and bool((os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip())


def run_editor(editor: list[str], file: Path, kind: str = "editor", named_by: str = "VISUAL or EDITOR") -> str:
    """Open a file in an editor, or another `kind` of program, and return how it failed; empty if it did not.

    Raises UsageError if it cannot be started; the message asks to set `named_by`.
    """
    screen = _terminal()
    try:
        # Ctrl-C in the editor is not meant for this process.
        with handled(lambda *_: None, signal.SIGINT):
            command = [*editor, str(file)]
            code = subprocess.run(command, check=False, stdout=screen, stderr=screen).returncode  # noqa: S603  # the person's own editor
    except OSError as error:
        raise UsageError(
            f"cannot start the {kind} {editor[0]!r}: {error.strerror}; set {named_by} to one that is installed"
        ) from None
    return "" if code == 0 else f"ended with code {code}" if code > 0 else f"was killed by signal {-code}"


def _terminal() -> TextIO | None:
    """Return the terminal, since descriptor 1 leads elsewhere while the app is on screen; else None."""
    return next((each for each in (sys.__stdout__, sys.__stderr__) if each is not None and each.isatty()), None)


HEAD = """\
# Aeon settings{whose}, as `key: value` lines; remove the # from those you want.
# Press `,` in the app to see what each one means; `aeon-tui doctor` checks them.
{lines}
"""
_EXAMPLES = {
    "model": "anthropic:claude-sonnet-4-5",
    "ttl": "50",
    "tools": "[files]",
    "approve": "[pass, tool]",
    "budget": "1.00",
}


def config_file_of(whose: str, project_root: Path | None) -> Path:
    """Return the user's configuration file (`own`), or the project's."""
    if whose == "own" or project_root is None:
        return user_config_file(os.environ)
    return project_root / PROJECT_FOLDER / "config.yml"


def initial_config(whose: str) -> str:
    """Return a header comment with the keys that a configuration file may contain."""
    lines = "\n".join(f"# {key}: {value}   # {CONFIG_KEYS[key].expected}" for key, value in _EXAMPLES.items())
    return HEAD.format(whose="" if whose == "own" else " for this project", lines=lines)


def make_sure_it_is_there(file: Path, whose: str) -> None:
    """Create the file with a header comment if it does not exist. Raises UsageError."""
    if file.exists():
        return
    try:
        make_config_folder(file.parent)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as made:
            made.write(initial_config(whose))
    except OSError as error:
        raise UsageError(f"cannot create {str(file)!r}: {error.strerror}") from None


class ConfigText:
    """A configuration file as an editable text; a valid one replaces it. Raises UsageError if it is unreadable."""

    def __init__(self, file: Path, whose: str) -> None:
        self._file = file
        self._on_disk = read_text(file, repr(str(file)), SETTINGS.size) if os.path.lexists(file) else ""
        self.before = self._on_disk or initial_config(whose)

    def save(self, text: str) -> None:
        """Write a text to the file. Raises UsageError if it is invalid, or the file has changed since."""
        read_config_file(self._file, text)

        def edit(now: str) -> str:
            if now != self._on_disk:
                raise ValueError("it has changed since it was opened")
            return text

        edit_file(self._file, edit)
        self._on_disk = text

    def problems(self, error: AeonError, text: str) -> list[TextProblem]:
        """Return the problems in an error of `save`, by line."""
        return text_problems(error, text, self._file)


def edit_config(file: Path) -> str | None:
    """Open a file in `$VISUAL` or `$EDITOR`; return what is wrong with it afterwards, None if nothing is.

    Raises UsageError if there is no editor, or it fails.
    """
    if failure := run_editor(named_editor(f"edit {str(file)!r} yourself"), file):
        raise UsageError(f"the editor {failure}")
    try:
        read_config_file(file)
    except UsageError as error:
        return error.message
    return None


def pager_command() -> list[str]:
    """Return the command of `$PAGER`, empty if there is none. Raises UsageError if it is not a command."""
    try:
        return shlex.split(os.environ.get("PAGER", ""))
    except ValueError:
        raise UsageError(f"the pager {os.environ['PAGER']!r} is not a command; set PAGER to one") from None


def open_text(command: list[str], text: str, suffix: str, *, in_pager: bool) -> None:
    """Open a text in the pager or the editor as a temporary file that only this user can read.

    The program gets the terminal meanwhile. Raises UsageError if it cannot be started or fails, OSError if the file
    cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix="aeon-") as folder:
        file = Path(folder) / f"text{suffix}"
        file.write_text(text, encoding="utf-8", errors="replace")
        kind, named_by = ("pager", "PAGER") if in_pager else ("editor", "VISUAL or EDITOR")
        if failure := run_editor(command, file, kind, named_by):
            raise UsageError(f"the {kind} {failure}")
