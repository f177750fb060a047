"""What changed between two snapshots of a project, and which agents changed it, as a gate shows it.

Files that control the workflow, git or other tools are protected: whoever changes one, a person sees it (REQ-113, 150).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from aeon_core.escape import escape_controls
from aeon_core.paths import real_path
from aeon_core.tools import protected_paths
from aeon_core.tools.files import cut_diff, diff_lines
from system2.constants import ARTIFACTS, GATE_OF_AGENT, LOG_FILE
from system2.contracts import DOCUMENTS
from system2.snapshots import MAX_CONTENT, MAX_DIGESTED, FileState, Snapshot, SnapshotStore

if TYPE_CHECKING:
    from aeon_core.effects.port import Effects

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
    "unread": "not readable",
}

Content = Callable[[FileState], bytes | None]
"""Returns the content of a file in a state; None if it is unknown."""
Status = Literal["created", "changed", "deleted", "renamed"]


@dataclass(frozen=True)
class FileChange:
    """A file that changed."""

    path: str
    """As shown: a control character in a file's name is escaped, so that no name looks like two files."""
    status: Status
    diff: str = ""
    """Unified, with three lines of context; empty if the content is the same, or `note` says why."""
    added: int = 0
    removed: int = 0
    """Lines in the whole diff, of which `diff` shows the first."""
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


def compare(before: Snapshot, after: Snapshot, content: Content, *, diffs: bool = True) -> list[FileChange]:
    """Return the differences, sorted by path."""
    paths = sorted(before.files.keys() | after.files.keys())
    changed = [path for path in paths if not _same(before.files.get(path), after.files.get(path))]
    moved = _renames(changed, before.files, after.files)
    gone, left, changes = set(moved.values()), MAX_DIFFS, []
    for path in changed:
        if path in gone:
            continue
        was = moved.get(path, "")
        old, new = before.files.get(was or path), after.files.get(path)
        change = _change(path, was, old, new, content)
        if diffs and _has_diff(old, new):
            change = _with_diff(change, old, new, content, left)
            left -= change.diff.count("\n")
        changes.append(change)
    return changes


def _same(before: FileState | None, after: FileState | None) -> bool:
    return before is after or (before is not None and after is not None and before.identity == after.identity)


def _renames(changed: list[str], before: Mapping[str, FileState], after: Mapping[str, FileState]) -> dict[str, str]:
    """Return the old path of each renamed file, by its new path; the content is the same."""
    free = {(before[path].digest, before[path].kind): path for path in changed if path not in after}
    moved = {}
    for path in changed:
        is_new = path not in before and after[path].size
        if is_new and (old := free.pop((after[path].digest, after[path].kind), None)) is not None:
            moved[path] = old
    return moved


def _change(path: str, was: str, before: FileState | None, after: FileState | None, content: Content) -> FileChange:
    status: Status = "changed"
    if was:
        status = "renamed"
    elif before is None or after is None:
        status = "created" if before is None else "deleted"
    notes = [next(filter(None, (_note(state) for state in (after, before) if state is not None)), "")]
    was_link, is_link = (state is not None and state.kind == "link" for state in (before, after))
    if is_link and after is not None and not was_link:
        target = content(after)
        notes.append("symbolic link" + (f" to {escape_controls(os.fsdecode(target))}" if target is not None else ""))
    elif was_link and not is_link:
        notes.append("symbolic link" if after is None else "no longer a symbolic link")
    was_executable = before is not None and before.executable
    if after is not None and after.executable != was_executable:
        now = "executable now" if before is not None else "executable"
        notes.append(now if after.executable else "no longer executable")
    note = ", ".join(filter(None, notes))
    return FileChange(escape_controls(path), status, was=escape_controls(was), note=note)


def _has_diff(before: FileState | None, after: FileState | None) -> bool:
    """Return whether there is text to compare; the note says where a link that was created or deleted leads."""
    kinds = [state.kind for state in (before, after) if state is not None]
    is_text = all(kind in ("text", "link") for kind in kinds) and kinds != ["link"]
    return is_text and (before is None or after is None or before.digest != after.digest)


def _note(state: FileState) -> str:
    if state.kind == "unread" and state.size > MAX_DIGESTED:
        return f"larger than {MAX_DIGESTED // 1_000_000} MB: compared by size and time"
    return _NOTES.get(state.kind, "")


def _with_diff(
    change: FileChange, before: FileState | None, after: FileState | None, content: Content, left: int
) -> FileChange:
    if left <= 0:
        return _noted(change, f"the diffs before are {MAX_DIFFS:,} lines long: this one is not shown")
    texts = [content(state) if state is not None else b"" for state in (before, after)]
    if texts[0] is None or texts[1] is None:
        return _noted(change, "what was in it before is not known")
    lines = list(diff_lines(change.path, texts[0], texts[1], MAX_LINE))
    if before is None:
        lines[0] = "--- /dev/null"
    elif after is None:
        lines[1] = "+++ /dev/null"
    added, removed = (sum(line.startswith(sign) for line in lines[2:]) for sign in "+-")
    if len(lines) <= 2:
        return _noted(change, "empty")
    return replace(change, diff="\n".join(cut_diff(lines, min(MAX_DIFF, left))), added=added, removed=removed)


def _noted(change: FileChange, note: str) -> FileChange:
    return replace(change, note=", ".join(filter(None, (note, change.note))))


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
    return (line for change in changes if change.diff for line in change.diff.split("\n"))


PROTECTED = frozenset({*protected_paths.PROTECTED, ".gitmodules", "claude.md"})
"""Folders and files, in lower case."""
_MAX_STEERING = 1000
"""The most files of one folder."""
_FILES = ("CLAUDE.md", ".gitmodules", ".system2/config.yml", ".aeon/config.yml")
_NOT_LISTED = (".system2", ".aeon", ".venv", ".git")
"""Protected folders, or links to them, with much that steers nobody."""

_GOVERNOR = "repo-governor"
_GOVERNED = re.compile(r"(?:CLAUDE|AGENTS)\.md|\.claude/rules/[\w.-]+\.md")


def is_own_work(agent: str, path: str) -> bool:
    """Return whether writing a file that steers agents is this agent's task: the rules of the repository.

    They are text that a person sees at Gate 0; settings and hooks can run commands, and stay protected.
    """
    return agent == _GOVERNOR and _GOVERNED.fullmatch(PurePosixPath(path).as_posix()) is not None


def is_protected(path: str) -> bool:
    """Return whether a project's file, or a folder that it is in, is protected."""
    return any(part.lower() in PROTECTED for part in PurePosixPath(path).parts)


def protected_state(project_root: Path) -> dict[str, object]:
    """Return the state of the files that steer agents, so that a change by a command is noticed."""
    return {path: protected_paths.file_state(project_root / path) for path in steering_files(project_root)}


def steering_files(project_root: Path) -> list[str]:
    """Return the files that steer agents and git; they are compared even if git ignores them."""
    root = real_path(project_root)
    protected = protected_paths.find_protected(root, protected_paths.find_repositories(root))
    places = {*(root / name for name in _FILES), *protected.existing, *protected.watched} - {real_path(sys.prefix)}
    found = chain.from_iterable(
        islice(_files_in(place), _MAX_STEERING)
        for place in sorted(places)
        if os.path.lexists(place) and place.is_relative_to(root)
    )
    return [
        path.relative_to(root).as_posix()
        for path in found
        if path.suffix != ".sample" and not protected_paths.is_plain_todo(path)
    ]


def _files_in(place: Path) -> Iterator[Path]:
    inside = () if place.name in _NOT_LISTED else place.rglob("*")
    # Unlike `Path.is_dir`, these take a path in a folder that may not be searched.
    return (path for path in chain([place], inside) if os.path.islink(path) or not os.path.isdir(path))  # noqa: PTH112, PTH114


def changed_files(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


SPEC_FOLDER = "spec/"
LOST = "the earlier snapshots are gone: what changed is unknown"
LIMITS = {agent: frozenset({gate.artifact}) for agent, gate in GATE_OF_AGENT.items()}
"""The file that each agent before the executor may write without a person's approval."""
_REPORTS_ONLY = ("security-sentinel", "code-reviewer", "postmortem-scribe")
"""These agents report what must be repaired; they repair nothing."""
_ALLOWED = LIMITS | {agent: frozenset({DOCUMENTS[agent], LOG_FILE}) for agent in _REPORTS_ONLY}


class ChangeTracker:
    """Compares named snapshots of the project, whose files are read through the port.

    `also` names files to compare even if git ignores them: the documents.
    """

    def __init__(self, effects: Effects, store: SnapshotStore | None, also: Iterable[str]) -> None:
        self._effects, self._store = effects, store
        self._also = dict.fromkeys(also)
        self._snapshots: dict[str, Snapshot] = {}
        """The most recently used ones, by name."""
        self._now = self._at_gate = self._at_execution = ""
        self._authors: dict[str, dict[str, None]] = {}
        """Who may have changed a file since the last gate."""
        self.notes: Sequence[str] = ()
        """What is not compared, in words for a person."""

    def begin(self) -> None:
        """Remember the state of the project at the start of the workflow."""
        self._at_gate = self._look()

    def note(self, agent: str, written: Iterable[str] = ()) -> list[str]:
        """Attribute the changes since the last snapshot to an agent; return the paths that it may not change.

        `written` lists the files that its tools wrote, relative to the project root.
        """
        self._also |= dict.fromkeys(written)
        paths = [path for change in self._changes(self._now) for path in (change.path, change.was) if path]
        for path in paths:
            self._authors.setdefault(path, {})[agent] = None
        return [path for path in paths if flag_of(path, [agent])]

    def since_gate(self, agent: str | None) -> list[FileChange]:
        """Return what has changed since the last decision at a gate, with diffs.

        `agent` is the one whose gate this is; changes without a known author are attributed to it.
        """
        changes = self._changes(self._at_gate, diffs=True)
        flagged = [replace(change, flag=self._flag(change, agent)) for change in changes]
        return sorted(flagged, key=lambda change: change.path.startswith(SPEC_FOLDER))

    def note_decision(self, *, executes: bool) -> None:
        """Compare with the current state of the project from now on, because a gate was decided.

        What changed while the gate waited is not attributed to an agent. `executes` says that the executor is next.
        """
        self._at_gate = self._look()
        self._authors.clear()
        if executes:
            self._at_execution = self._at_gate

    def executed_changes(self) -> list[FileChange]:
        """Return what has changed since the tasks were approved, except for `spec/`, without diffs."""
        return [change for change in self._changes(self._at_execution) if not change.path.startswith(SPEC_FOLDER)]

    def unseen(self, paths: Sequence[str]) -> list[str]:
        """Return which of these project paths exist but are not compared."""

        def find() -> list[str]:
            assert self._store is not None
            snapshot, root = self._snapshot(self._now), self._store.project_root
            files = snapshot.files if snapshot is not None else {}
            unknown = [path for path in paths if path not in files and not any(f.startswith(f"{path}/") for f in files)]
            return [path for path in unknown if (root / path).exists()]

        found: list[str] = self._effects.observe("unseen", find)
        return found

    def _look(self) -> str:
        self._now = self._effects.observe("snapshot", self._take)
        return self._now

    def _changes(self, since: str, *, diffs: bool = False) -> list[FileChange]:
        found: Mapping[str, Any] = self._effects.observe("changes", lambda: self._compare(since, diffs=diffs))
        self._now, self.notes = found["now"], found["notes"]
        return [FileChange(**change) for change in found["changes"]]

    def _flag(self, change: FileChange, agent: str | None) -> str:
        paths = [path for path in (change.path, change.was) if path]
        others = [agent] if agent is not None else []
        return next(filter(None, (flag_of(path, self._authors.get(path) or others) for path in paths)), "")

    def _take(self) -> str:
        """Take a snapshot and return its name, which is that of the last one if nothing changed."""
        assert self._store is not None
        last = self._snapshot(self._now)
        now = self._store.take(last, [*self._also, *steering_files(self._store.project_root)])
        same = last is not None and (now.files, now.notes) == (last.files, last.notes)
        name = self._now if same else self._store.save(now)
        self._snapshots[name] = now
        return name

    def _compare(self, since: str, *, diffs: bool) -> dict[str, Any]:
        """Return what differs now from a snapshot, as plain JSON."""
        assert self._store is not None
        name, before = self._take(), self._snapshot(since)
        now, changes = self._snapshots[name], []
        if before is not None:
            changes = [change.as_dict() for change in compare(before, now, self._store.content, diffs=diffs)]
        self._snapshots = {each: self._snapshots[each] for each in (name, since) if each in self._snapshots}
        return {"now": name, "changes": changes, "notes": [*now.notes, *([LOST] if before is None else [])]}

    def _snapshot(self, name: str) -> Snapshot | None:
        if name and name not in self._snapshots and self._store is not None:
            if (found := self._store.load(name)) is None:
                return None
            self._snapshots[name] = found
        return self._snapshots.get(name)


def flag_of(path: str, agents: Iterable[str]) -> str:
    """Return why a change is flagged, or "" if it is not; `agents` are those that may have made it."""
    known = list(agents)
    for agent in known:
        allowed = _ALLOWED.get(agent)
        if allowed is not None and path not in allowed and not is_own_work(agent, path):
            return f"{agent} changed it, outside its document"
    if is_protected(path) and not (known and all(is_own_work(agent, path) for agent in known)):
        return "it controls the workflow or other tools"
    if path in ARTIFACTS and not any(path in LIMITS.get(agent, ()) for agent in known):
        return "it was approved before"
    return ""
