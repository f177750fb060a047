"""Edits of what a run asks about: its plan, a call's arguments, or its budget, checked immediately.

A value is a YAML file in the user's own editor; what was typed is kept until it has been used.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import yaml

from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.effects.approvals import SETTLED, takes_requirements
from aeon_core.errors import UsageError, ValidationError
from aeon_core.escape import escape_controls
from aeon_core.journal.values import number_of, strs_of
from aeon_core.plan.files import MAX_BYTES, NotPlainDataError, PlanEdit, parse_plan_edit, read_data, read_plan_data
from aeon_core.regular_file import read_start
from aeon_core.tools.schema import Schema
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


HINT = """\
# Finished steps that you do not change are not run again; to rerun one, give it `status: pending`.
"""
_PROBLEMS = 3


def edit_plan(plan: PlanEdit, what: str) -> tuple[PlanEdit | None, YamlDraft[PlanEdit]]:
    """Open a plan in `$VISUAL` or `$EDITOR`; return the edited plan, None if it is unchanged, and the draft.

    `what` names it. Raises what `YamlDraft.edit` does.
    """
    draft = YamlDraft(PLAN, plan, what)
    return draft.edit("fix it there and use --plan {file}"), draft


def load_edited_plan(path: Path) -> PlanEdit:
    """Return the plan of a JSON or YAML file, whose steps may have been executed, and its `requirements`, if any.

    Raises UsageError, in one line.
    """
    data = read_plan_data(path)
    try:
        return parse_plan_edit(data)
    except ValidationError as error:
        problems = error.context["problems"]
        more = f"; and {len(problems) - _PROBLEMS} more" if len(problems) > _PROBLEMS else ""
        message = f"{str(path)!r} is not a valid plan: {'; '.join(problems[:_PROBLEMS])}{more}"
        raise UsageError(message, problems=problems) from None


def plan_yaml(plan: PlanEdit) -> str:
    """Return a plan as YAML that `load_edited_plan` reads as the same plan."""
    return as_yaml(plan.whole())


PLAN = DraftForm("plan", plan_yaml, load_edited_plan, HINT, "use --plan FILE")
"""How to edit a plan."""


UNCHANGED = "no changes, so nothing is decided"
_AGAIN = "edit it again to fix it"
_ARGUMENTS_HINT = "# The tool itself cannot be changed.\n"
_LIMIT = "limit_usd"
_REQUIREMENTS_HINT = """\
# `requirements`: what a finished answer must satisfy, as a list; if empty, the task itself. They are final.
"""


class ApprovalEdits:
    """Opens the subjects of a run's questions in the user's editor. `tools` are those of the run's journal."""

    def __init__(self, tools: Iterable[Mapping[str, Any]] = ()) -> None:
        self._tools = list(tools)
        self._request: ApprovalRequest | None = None
        self._draft: YamlDraft[Any] | None = None
        self._typed = ""

    def edit(self, request: ApprovalRequest) -> ApprovalDecision | None:
        """Return the decision with the edit, None if nothing was changed.

        Raises UsageError if there is no editor, it fails, or the text does not fit the question. The file is kept,
        and the next edit of the same question opens it again, also if the question comes
        back because the run could not accept the plan.
        """
        draft = self.draft(request)
        return self.decided(draft, draft.edit(_AGAIN))

    def decided(self, draft: YamlDraft[Any], value: Any) -> ApprovalDecision | None:
        """Return the decision with the value in the draft, None if nothing was changed."""
        self._typed, self._draft = draft.text() if value is not None else "", None
        draft.forget()
        return None if value is None else ApprovalDecision(decision="edit", edited=_plain(value))

    def draft(self, request: ApprovalRequest) -> YamlDraft[Any]:
        """Return the draft of the question's subject, with what was typed before."""
        if self._draft is None or self._request is not request or not self._draft.file.exists():
            typed = self._typed if "problem" in request.subject else ""
            value, what = _shown(request)
            self._draft = YamlDraft(_form(request, self._tools), value, what, typed)
            self._request = request
        return self._draft


def load_edit(request: ApprovalRequest, tools: Iterable[Mapping[str, Any]], path: Path) -> dict[str, Any]:
    """Return the content of a JSON or YAML file in the question's form. Raises UsageError, in one line."""
    return _plain(_form(request, tools).load(path))


def _plain(value: PlanEdit | dict[str, Any]) -> dict[str, Any]:
    return value.as_dict() if isinstance(value, PlanEdit) else value


def _form(request: ApprovalRequest, tools: Iterable[Mapping[str, Any]]) -> DraftForm[Any]:
    if request.point in ("plan", "pass"):
        return _FIRST_PLAN if takes_requirements(request.point, request.pass_number) else _LATER_PLAN
    if request.point == "budget":
        return DraftForm("budget", as_yaml, partial(_load_budget, least=request.subject.get(_LIMIT)))
    name = str(request.subject.get("tool_name"))
    schema = next((tool.get("input_schema") for tool in tools if tool.get("name") == name), None)
    return DraftForm("arguments", as_yaml, partial(_load_arguments, name=name, schema=schema), _ARGUMENTS_HINT)


def _load_later_plan(path: Path) -> PlanEdit:
    edit = load_edited_plan(path)
    if edit.requirements is not None:
        raise UsageError(f"cannot use {str(path)!r}: {SETTLED}")
    return edit


_FIRST_PLAN = replace(PLAN, hint=_REQUIREMENTS_HINT + PLAN.hint, elsewhere="reject it and say what you want")
_LATER_PLAN = replace(PLAN, load=_load_later_plan, elsewhere="reject it and say what you want")


def _shown(request: ApprovalRequest) -> tuple[Any, str]:
    """Return the value to edit, and its name."""
    subject = request.subject
    if request.point in ("plan", "pass"):
        edit = parse_plan_edit(subject["plan"])
        if takes_requirements(request.point, request.pass_number):
            edit = replace(edit, requirements=strs_of(subject.get("requirements")) or None)
        return edit, f"The plan of pass {request.pass_number}"
    if request.point == "budget":
        return {_LIMIT: subject.get("proposed_usd")}, "What the run may cost, in US dollars"
    return subject.get("arguments"), f"The arguments of {subject.get('tool_name')}"


def _load_arguments(path: Path, *, name: str, schema: Any) -> dict[str, Any]:
    arguments = _load(path, f"the arguments of {name!r}")
    try:
        problems = Schema(schema).errors(arguments) if schema is not None else []
    except ValidationError:
        problems = []  # the run itself validates the arguments, whatever is known of its tools here
    if problems:
        raise UsageError(f"{str(path)!r} does not fit {name!r}: {'; '.join(problems)}")
    return arguments


def _load_budget(path: Path, *, least: Any) -> dict[str, Any]:
    budget = _load(path, "the budget")
    limit, least = number_of(budget.get(_LIMIT)), number_of(least) or 0.0
    if set(budget) != {_LIMIT} or limit is None or limit <= least:
        raise UsageError(f"{str(path)!r} does not raise the budget: expected `{_LIMIT}: USD`, more than {least}")
    return budget


def _load(path: Path, what: str) -> dict[str, Any]:
    try:
        data = read_data(path)
    except NotPlainDataError as error:
        raise UsageError(f"{str(path)!r} does not contain {what}: {error.reason}") from None
    if not isinstance(data, dict):
        raise UsageError(f"{str(path)!r} does not contain {what}: expected `name: value` lines, or a JSON object")
    return data
