"""What changed between two snapshots of a project, as a gate shows it: files, diffs and warnings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from aeon_core.json_safe import clean_text
from aeon_core.tools.files.edit import diff_view
from system2.snapshots import MAX_CONTENT, FileState, Snapshot

MAX_DIFF = 2_000
"""Lines of one file's diff."""
MAX_LINE = 2_000
"""Characters of a line."""
MAX_DIFFS = 10_000
"""Lines of all diffs of a gate."""
MAX_LISTED = 200
"""Files that a gate lists one by one."""
_NOTES = {
    "binary": "binary",
    "large": f"larger than {MAX_CONTENT // 1_000_000} MB",
    "unread": "not readable, or too large",
}

Status = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True)
class FileChange:
    """A file that changed."""

    path: str
    status: Status
    diff: str = ""
    """Unified, with three lines of context; empty if `note` says why."""
    added: int = 0
    removed: int = 0
    """Lines in the diff."""
    was: str = ""
    """The path before it was renamed."""
    note: str = ""
    flag: str = ""
    """Why a person should look at it, such as an agent that was not allowed to change it."""

    @property
    def summary(self) -> str:
        """One line: the status, the number of changed lines, and why a person should look at it."""
        was = f" (was {self.was})" if self.was else ""
        size = f"  +{self.added} −{self.removed}" if self.diff else ""
        about = "".join(f"  {text}" for text in (self.note, self.flag) if text)
        return f"{self.status:<8} {self.path}{was}{size}{about}"

    def as_dict(self) -> dict[str, Any]:
        """Return the change as plain JSON without empty fields; `FileChange(**data)` restores it."""
        return {name: value for name, value in asdict(self).items() if value}


def compare(
    before: Snapshot, after: Snapshot, content: Callable[[FileState], bytes | None], *, diffs: bool = True
) -> list[FileChange]:
    """Return the differences, sorted by path. `content` returns the content of a state, or None if it is unknown."""
    paths = sorted(before.files.keys() | after.files.keys())
    changed = [path for path in paths if not _same(before.files.get(path), after.files.get(path))]
    moved = _renames(changed, before.files, after.files)
    gone, left, changes = set(moved.values()), MAX_DIFFS, []
    for path in changed:
        if path in gone:
            continue
        was = moved.get(path, "")
        change = _change(path, was, before.files.get(was or path), after.files.get(path))
        if diffs and not change.note and change.status != "renamed":
            change = _with_diff(change, before.files.get(path), after.files.get(path), content, left)
            left -= change.diff.count("\n")
        changes.append(change)
    return changes


def _same(before: FileState | None, after: FileState | None) -> bool:
    return before is after or (before is not None and after is not None and before.identity == after.identity)


def _renames(changed: Iterable[str], before: Mapping[str, FileState], after: Mapping[str, FileState]) -> dict[str, str]:
    """Return the old path of each renamed file, by its new path; the content is the same."""
    changed = list(changed)
    free = {(before[path].digest, before[path].kind): path for path in changed if path not in after}
    moved = {}
    for path in changed:
        if path not in before and after[path].size:
            old = free.pop((after[path].digest, after[path].kind), None)
            if old is not None:
                moved[path] = old
    return moved


def _change(path: str, was: str, before: FileState | None, after: FileState | None) -> FileChange:
    status: Status = "changed"
    if was:
        status = "renamed"
    elif before is None or after is None:
        status = "created" if before is None else "deleted"
    notes = [_NOTES.get(state.kind, "") for state in (after, before) if state is not None]
    if "link" in {state.kind for state in (before, after) if state is not None}:
        notes.append("" if before and after and before.kind == after.kind else "symbolic link")
    if before is not None and after is not None and before.executable != after.executable:
        same = before.digest == after.digest
        notes.append(("executable now" if after.executable else "no longer executable") if same else "")
    return FileChange(clean_text(path), status, was=clean_text(was), note=next(filter(None, notes), ""))


def _with_diff(
    change: FileChange,
    before: FileState | None,
    after: FileState | None,
    content: Callable[[FileState], bytes | None],
    left: int,
) -> FileChange:
    if left <= 0:
        return replace(change, note=f"the diffs before are {MAX_DIFFS:,} lines long: this one is not shown")
    texts = [content(state) if state is not None else b"" for state in (before, after)]
    if texts[0] is None or texts[1] is None:
        return replace(change, note="what was in it before is not known")
    lines = diff_view(change.path, texts[0], texts[1], min(MAX_DIFF, left), MAX_LINE).split("\n")
    if before is None:
        lines[0] = "--- /dev/null"
    elif after is None:
        lines[1] = "+++ /dev/null"
    added, removed = (sum(line.startswith(sign) for line in lines[2:]) for sign in "+-")
    if len(lines) <= 2:
        return replace(change, note="empty")
    return replace(change, diff="\n".join(lines), added=added, removed=removed)


def list_changes(changes: Sequence[FileChange]) -> str:
    """Return one line per file, flagged ones first: its status, the number of changed lines, and why it is flagged."""
    if not changes:
        return "No file changed."
    flagged = sorted(changes, key=lambda change: not change.flag)
    lines = [f"{'⚠' if change.flag else ' '} {change.summary}" for change in flagged[:MAX_LISTED]]
    if (more := len(changes) - MAX_LISTED) > 0:
        lines.append(f"  and {more:,} more")
    return "\n".join(lines)


def diffs_of(changes: Iterable[FileChange]) -> Iterator[str]:
    """Yield the lines of all diffs, one file after the other."""
    for change in changes:
        if change.diff:
            yield from change.diff.split("\n")
