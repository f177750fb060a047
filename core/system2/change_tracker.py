"""The changes of one workflow: since the last gate, and since the tasks were approved, with who has made them."""

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
"""What an agent before the executor may write without a person's approval."""
_REPORTS_ONLY = ("security-sentinel", "code-reviewer", "postmortem-scribe")
"""They report what must be repaired, and repair nothing."""
_ALLOWED = LIMITS | {agent: frozenset({DOCUMENTS[agent], LOG_FILE}) for agent in _REPORTS_ONLY}
_APPROVED = frozenset(gate.artifact for gate in GATES if gate.agent is not None)


class ChangeTracker:
    """Compares named snapshots of the project, whose files are read through the port.

    `also` names files that count though git ignores them: the documents.
    """

    def __init__(self, effects: Effects, store: SnapshotStore | None, also: Iterable[str]) -> None:
        self._effects, self._files = effects, _Files(store)
        self._also = dict.fromkeys(also)
        self._now = self._at_gate = ""
        self._at_execution: str | None = None
        self._authors: dict[str, dict[str, None]] = {}
        """Who may have changed a file since the last gate."""
        self.notes: Sequence[str] = ()
        """What of the project is not compared, for a person."""

    def begin(self) -> None:
        """Remember the project as the workflow finds it."""
        self._at_gate = self._look()

    def note(self, agent: str, written: Iterable[str] = ()) -> list[str]:
        """Note what has changed as the agent's work; return the paths that were not the agent's to change.

        `written` are the files that its tools have written, relative to the project root.
        """
        self._also |= dict.fromkeys(written)
        paths = [path for change in self._changes(self._now) for path in (change.path, change.was) if path]
        for path in paths:
            self._authors.setdefault(path, {})[agent] = None
        return [path for path in paths if flag_of(path, [agent])]

    def since_gate(self, agent: str | None) -> list[FileChange]:
        """Return what has changed since the last decision at a gate, with diffs.

        `agent` is the one behind the gate: what nobody else is known to have changed counts as its work.
        """
        changes = self._changes(self._at_gate, diffs=True)
        flagged = [replace(change, flag=self._flag(change, agent)) for change in changes]
        return sorted(flagged, key=lambda change: change.path.startswith(SPEC_FOLDER))

    def decided(self, *, executes: bool) -> None:
        """Begin to compare with the project as it is now, a gate being decided.

        What a person changed while the gate waited is no agent's. `executes` says that the executor is next.
        """
        self._at_gate = self._look()
        self._authors.clear()
        if executes:
            self._at_execution = self._at_gate

    def produced(self) -> list[FileChange] | None:
        """Return what has changed since the tasks were approved, but for `spec/`, without diffs.

        None where nobody knows how it was then.
        """
        if self._at_execution is None:
            return None
        return [change for change in self._changes(self._at_execution) if not change.path.startswith(SPEC_FOLDER)]

    def unseen(self, paths: Sequence[str]) -> list[str]:
        """Return which of these paths of the project are there, and not among those that are compared."""
        found: list[str] = self._effects.observe("unseen", lambda: self._files.unseen(self._now, paths))
        return found

    def _look(self) -> str:
        name: str = self._effects.observe("snapshot", lambda: self._files.look(self._now, self._also))
        self._now = name
        return name

    def _changes(self, since: str, *, diffs: bool = False) -> list[FileChange]:
        found: Mapping[str, Any] = self._effects.observe(
            "changes", lambda: self._files.changes(since, self._now, self._also, diffs=diffs)
        )
        self._now, self.notes = found["now"], found["notes"]
        return [FileChange(**change) for change in found["changes"]]

    def _flag(self, change: FileChange, agent: str | None) -> str:
        paths = [path for path in (change.path, change.was) if path]
        others = [agent] if agent is not None else []
        return next(filter(None, (flag_of(path, self._authors.get(path) or others) for path in paths)), "")


class _Files:
    """The snapshots by name, on the disk and those that were used last."""

    def __init__(self, store: SnapshotStore | None) -> None:
        self._known: dict[str, Snapshot] = {}
        self._store = store

    def look(self, before: str, also: Iterable[str]) -> str:
        """Take a snapshot now, and return its name."""
        assert self._store is not None
        last = self._get(before)
        now = self._store.take(last, [*also, *steering_files(self._store.project_root)])
        same = last is not None and (now.files, now.notes) == (last.files, last.notes)
        name = before if same else self._store.save(now)
        self._known[name] = now
        return name

    def changes(self, since: str, before: str, also: Iterable[str], *, diffs: bool) -> dict[str, Any]:
        """Return what is different now from a snapshot, as plain JSON; `before` is the last snapshot."""
        assert self._store is not None
        name, one = self.look(before, also), self._get(since)
        now, changes = self._known[name], []
        if one is not None:
            changes = [change.as_dict() for change in compare(one, now, self._store.content, diffs=diffs)]
        notes = [*now.notes, *([LOST] if one is None else [])]
        self._known = {each: snapshot for each, snapshot in self._known.items() if each in (name, since, before)}
        return {"now": name, "changes": changes, "notes": notes}

    def unseen(self, now: str, paths: Sequence[str]) -> list[str]:
        """Return which of these paths are there, and not in a snapshot as a file or a folder."""
        assert self._store is not None
        snapshot, root = self._get(now), self._store.project_root
        files = snapshot.files if snapshot is not None else {}
        unknown = [path for path in paths if path not in files and not any(f.startswith(f"{path}/") for f in files)]
        return [path for path in unknown if (root / path).exists()]

    def _get(self, name: str) -> Snapshot | None:
        if name and name not in self._known and (found := self._store.load(name) if self._store else None) is not None:
            self._known[name] = found
        return self._known.get(name)


def flag_of(path: str, agents: Iterable[str]) -> str:
    """Return why a change is flagged, empty where it is not; `agents` are those who may have made it."""
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
