"""Tracks the changes since the last gate and since the tasks were approved, and which agents made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aeon_core.effects.port import Effects
from system2.changes import FileChange, compare
from system2.constants import GATES, LOG_FILE
from system2.contracts import DOCUMENTS
from system2.protected_files import is_own_work, is_protected, steering_files
from system2.snapshots import Snapshot, SnapshotStore

SPEC_FOLDER = "spec/"
LOST = "the earlier snapshots are gone: what changed is unknown"
LIMITS = {gate.agent: frozenset({gate.artifact}) for gate in GATES if gate.agent is not None}
"""The file that each agent before the executor may write without a person's approval."""
_REPORTS_ONLY = ("security-sentinel", "code-reviewer", "postmortem-scribe")
"""These agents report what must be repaired; they repair nothing."""
_ALLOWED = LIMITS | {agent: frozenset({DOCUMENTS[agent], LOG_FILE}) for agent in _REPORTS_ONLY}
_APPROVED = frozenset(gate.artifact for gate in GATES if gate.agent is not None)


class ChangeTracker:
    """Compares named snapshots of the project, whose files are read through the port.

    `also` names files to compare even if git ignores them: the documents.
    """

    def __init__(self, effects: Effects, store: SnapshotStore | None, also: Iterable[str]) -> None:
        self._effects, self._store = effects, store
        self._also = dict.fromkeys(also)
        self._snapshots: dict[str, Snapshot] = {}
        """The most recently used ones, by name."""
        self._now = self._at_gate = ""
        self._at_execution: str | None = None
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

    def executed_changes(self) -> list[FileChange] | None:
        """Return what has changed since the tasks were approved, except for `spec/`, without diffs.

        None if they have not been approved.
        """
        if self._at_execution is None:
            return None
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
    if path in _APPROVED and not any(path in LIMITS.get(agent, ()) for agent in known):
        return "it was approved before"
    return ""
