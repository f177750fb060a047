"""A plan in a person's own editor, as YAML; what was typed is kept until it has been used."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import yaml

from aeon_core.errors import UsageError, ValidationError
from aeon_core.plan.models import Plan
from aeon_core.plan.parsing import dump_plan, parse_plan, read_plan_data
from aeon_core.visible import visible
from aeon_tui.signals import handled

HINT = """\
# {what}.
# Save and close the file to go on with it; empty it to do nothing.
# A step that was executed and is not changed is not run again, unless you write `status: pending` into it.
"""
_PROBLEMS = 3
_PLAIN = re.compile(r"[A-Za-z][^\n]*")
_WORDS = frozenset({"null", "true", "false"})


@dataclass
class EditedPlan:
    """What a person made of a plan. `plan` is None where nothing was changed; `file` keeps what was typed."""

    plan: Plan | None
    file: Path

    def forget(self) -> None:
        """Remove the file: the plan was used."""
        with contextlib.suppress(OSError):
            self.file.unlink()


def edit_plan(plan: Plan, what: str) -> EditedPlan:
    """Open a plan in `$VISUAL`, else `$EDITOR`, and return it as it was left; `what` says what it is of.

    Raises UsageError where there is no editor, it fails, or what it left is no plan: then the file is kept and named.
    """
    draft = Draft(plan, what)
    return EditedPlan(draft.edit("mend it there, and give it with --plan {file}"), draft.file)


class Draft:
    """A plan in a file, to be edited as often as it takes; what was typed stays there until it is forgotten.

    `what` says what it is of; `typed` is what the file is to hold where that is not the plan. Raises UsageError where
    no editor is named.
    """

    def __init__(self, plan: Plan, what: str, typed: str = "") -> None:
        _editor()
        self.plan = plan
        descriptor, name = tempfile.mkstemp(prefix="aeon-plan-", suffix=".yml")
        self.file = Path(name)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(typed or f"{HINT.format(what=visible(what))}{plan_yaml(plan)}")

    def edit(self, hint: str) -> Plan | None:
        """Open the file in `$VISUAL`, else `$EDITOR`; return the plan it then holds, None where it is as it was.

        Raises UsageError where there is no editor, it fails, or what it left is no plan: then the file is kept and
        named, and `hint` says what to do with it. A file that was emptied is forgotten.
        """
        _run(_editor(), self)
        if not any(line.strip() and not line.startswith("#") for line in self.text().splitlines()):
            self.forget()
            raise UsageError("the plan was emptied in the editor; nothing was done")
        try:
            plan = load_edited_plan(self.file)
        except UsageError as error:
            raise UsageError(f"{error.message}; {hint.format(file=self.file)}") from None
        return None if plan == self.plan else plan

    def text(self) -> str:
        """Return what the file holds."""
        return self.file.read_text(encoding="utf-8", errors="replace")

    def forget(self) -> None:
        """Remove the file."""
        with contextlib.suppress(OSError):
            self.file.unlink()


def load_edited_plan(path: Path) -> Plan:
    """Return the plan of a JSON or YAML file, in which steps may have been executed. Raises UsageError, in one line."""
    data = read_plan_data(path)
    try:
        return parse_plan(data, fresh=False)
    except ValidationError as error:
        problems = error.context["problems"]
        more = f"; and {len(problems) - _PROBLEMS} more" if len(problems) > _PROBLEMS else ""
        raise UsageError(f"{str(path)!r} is no valid plan: {'; '.join(problems[:_PROBLEMS])}{more}") from None


def plan_yaml(plan: Plan) -> str:
    """Return a plan as YAML that `load_edited_plan` reads as the same plan."""
    return yaml.dump(dump_plan(plan), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)


class _Dumper(yaml.SafeDumper):
    """Quotes what a reader might take for a number, and writes a text of several lines as such."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: a value that occurs twice is written twice."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    style = "|" if "\n" in text else None if plain else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _editor() -> list[str]:
    named = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(named)
    except ValueError:
        raise UsageError(f"the editor {named!r} is no command; set VISUAL or EDITOR to one") from None
    if not words:
        raise UsageError("no editor is named; set VISUAL or EDITOR, or give an edited plan with --plan FILE")
    return words


def _run(editor: list[str], draft: Draft) -> None:
    screen = _terminal()
    try:
        # Ctrl-C in the editor is not meant for what waits for it.
        with handled(lambda *_: None, signal.SIGINT):
            command = [*editor, str(draft.file)]
            code = subprocess.run(command, check=False, stdout=screen, stderr=screen).returncode  # noqa: S603  # the person's own editor
    except OSError as error:
        draft.forget()
        raise UsageError(
            f"the editor {editor[0]!r} cannot be started: {error.strerror}; set VISUAL or EDITOR to another"
        ) from None
    if code != 0:
        raise UsageError(
            f"the editor ended with code {code}; nothing was done, the plan is kept in {str(draft.file)!r}"
        )


def _terminal() -> TextIO | None:
    """Return what the person sees: where the app is on screen, descriptor 1 leads elsewhere. None for what there is."""
    return next((each for each in (sys.__stdout__, sys.__stderr__) if each is not None and each.isatty()), None)
