"""The tasks of a batch: a JSONL file, each line checked before any run starts, each journal named after its id."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core.config.keys import KEYS, PATH_KEYS
from aeon_core.config.loading import joined
from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.journal.reader import head
from aeon_core.json_safe import clean_text, parse_json
from aeon_core.paths import expanded
from aeon_core.redaction import redact_text
from aeon_core.suggest import nearest, shown

MAX_LINE = 10_000_000
"""Bytes of a line: a task is a text, not a data set."""
_MAX_ID = 500
_READABLE = 48
_FORM = '{"id": "a", "task": "what is to be done"} and fields of RunConfig'
AUTO_APPROVE = "auto-approve"
"""A line's `workflow` value that approves its gates without a person."""
_OF_WORKFLOWS = ("model", "base_url", "project_root", "wait")
_PLAIN_NAME = re.compile(rf"[a-z0-9][a-z0-9_-]{{0,{_READABLE - 1}}}")
_LIKE_HASHED = re.compile(r".*-[0-9a-f]{10}")


@dataclass(frozen=True)
class BatchTask:
    """One line of the file: `config` is the batch's configuration, overridden by the line."""

    id: str
    task: str
    run_id: str
    config: RunConfig
    line: int
    workflow: bool | str = False
    """Whether it is a workflow of system2: True, or AUTO_APPROVE."""

    def journal(self, runs_dir: Path) -> Path:
        """Return the path of the run's journal, which may not exist yet."""
        return runs_dir / f"{self.run_id}.jsonl"


def read_tasks(
    lines: Iterable[bytes], *, name: str, config: RunConfig, where: str, folder: Path | None = None
) -> list[BatchTask]:
    """Return the tasks of a JSONL file; blank lines are left out.

    `name` is the batch's: the run ids begin with it. Relative paths on a line are relative to `folder` (the working
    directory). Raises UsageError with `where` and the number of the first bad line, before anything starts.
    """
    found: list[BatchTask] = []
    ids: dict[str, int] = {}
    for number, line in _numbered(lines, where):
        task = _task(line, f"{where}, line {number}", name, config, folder or Path.cwd(), number)
        if (first := ids.setdefault(task.run_id, number)) != number:
            raise UsageError(f"{where}, line {number}: duplicate id {task.id!r}, first on line {first}")
        found.append(task)
    if not found:
        raise UsageError(f"{where} has no tasks; expected lines such as {_FORM}")
    return found


def check_journals(tasks: Iterable[BatchTask], runs_dir: Path, where: str) -> None:
    """Raise UsageError if a task's journal belongs to another task, whose result would be taken for this one's."""
    for task in tasks:
        path = task.journal(runs_dir)
        first = head(path) if path.is_file() else None
        recorded = first.get("task") if first is not None else None
        if isinstance(recorded, str) and recorded not in (clean_text(task.task), redact_text(clean_text(task.task))):
            raise UsageError(
                f"{where}, line {task.line}: the run {task.run_id!r} already exists with another task, "
                f"{shown(recorded)}; change the id, or name the batch with --name"
            )


def run_name(text: str) -> str:
    """Return a part of a run id for any text: lower-case ASCII letters, digits, `-` and `_`, at most 59 of them.

    Such a text stays as it is; another one keeps what can be kept of it and gets a hash, so that two texts have two
    names also if a file system does not tell upper case from lower.
    """
    if _PLAIN_NAME.fullmatch(text) and not _LIKE_HASHED.fullmatch(text):
        return text
    kept = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:_READABLE].strip("-_")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{kept or 'id'}-{digest}"


def _numbered(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise UsageError(f"{where}, line {number} is longer than {MAX_LINE} bytes; expected {_FORM}")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield number, line


def _task(line: bytes, place: str, name: str, config: RunConfig, folder: Path, number: int) -> BatchTask:
    fields = _fields(line, place)
    task_id, task = _id(fields.pop("id", None), place), fields.pop("task", None)
    if not isinstance(task, str) or not task.strip():
        raise UsageError(f"{place}: 'task' is {_given(task)}; expected non-empty text")
    workflow = _workflow(fields, place)
    run_id = f"{run_name(name)}.{run_name(task_id)}"
    return BatchTask(task_id, task, run_id, _config(fields, config, folder, place), number, workflow)


def _workflow(fields: dict[str, Any], place: str) -> bool | str:
    """Remove the key that makes the task a workflow, and return its value. Raises UsageError."""
    value = fields.pop("workflow", None) or False
    if not isinstance(value, bool) and value != AUTO_APPROVE:
        raise UsageError(f"{place}: 'workflow' is {shown(value)}; expected true or {AUTO_APPROVE!r}")
    if value and (other := [key for key in fields if key in KEYS and key not in _OF_WORKFLOWS]):
        allowed = ", ".join(map(repr, _OF_WORKFLOWS))
        raise UsageError(f"{place}: {other[0]!r} does not apply to a workflow, which takes {allowed}")
    return value


def _fields(line: bytes, place: str) -> dict[str, Any]:
    try:
        fields = parse_json(line.decode().rstrip(), unique_keys=True)
    except UnicodeDecodeError:
        raise UsageError(f"{place} is not UTF-8; save the file as UTF-8") from None
    except ValueError as error:
        reason = " ".join(str(error).replace("line 1 ", "").split())
        raise UsageError(f"{place} is not JSON: {reason}; expected one object per line, such as {_FORM}") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{place} is {shown(fields)}; expected an object such as {_FORM}")
    return fields


def _id(value: Any, place: str) -> str:
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or not value.strip() or len(value) > _MAX_ID:
        raise UsageError(f"{place}: 'id' is {_given(value)}; expected text of 1 to {_MAX_ID} characters, or a number")
    return value


def _given(value: Any) -> str:
    return "missing" if value is None else shown(value)


def _config(fields: dict[str, Any], config: RunConfig, folder: Path, place: str) -> RunConfig:
    """Return the batch's configuration with the line's fields. Raises UsageError."""
    if "runs_dir" in fields:
        raise UsageError(f"{place}: 'runs_dir' applies to the whole batch; set it with --runs-dir")
    known = ["id", "task", "workflow", *(key for key in KEYS if key != "runs_dir")]
    for key in fields:
        if key not in known:
            raise UsageError(f"{place}: unknown field {key!r}{nearest(key, known)}")
    given = {key: value for key, value in fields.items() if value is not None}
    try:
        line = RunConfig(**given)
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}") from None
    values = {key: _value(key, getattr(line, key), getattr(config, key), folder, place) for key in given}
    return config.model_copy(update=values)


def _value(key: str, value: Any, before: Any, folder: Path, place: str) -> Any:
    """Return what the line's value comes to on top of the batch's; a path is relative to the folder."""
    return folder / expanded(value, f"{place}: {key!r}") if key in PATH_KEYS else joined(before, value)
