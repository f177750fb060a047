"""The changes of one workflow: since the last gate, and since the tasks were approved, with who has made them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from system2.changes import FileChange, compare
from system2.protected_files import steering_files
from system2.snapshots import Snapshot, SnapshotStore
from system2.write_limits import flag_of

SPEC_FOLDER = "spec/"


class ChangeTracker:
    """Compares snapshots of the project. `also` names files that count though git ignores them: the documents."""

    def __init__(self, store: SnapshotStore, also: Iterable[str]) -> None:
        self._store, self._also = store, set(also)
        self._now: Snapshot | None = None
        self._at_gate: Snapshot | None = None
        self._at_execution: Snapshot | None = None
        self._authors: dict[str, dict[str, None]] = {}
        """Who may have changed a file since the last gate."""

    def begin(self) -> str:
        """Remember the project as the workflow finds it; return what `restore` takes."""
        self._at_gate = self._look()
        return self._store.save(self._at_gate)

    def restore(self, gate: str | None, execution: str | None, authors: Iterable[tuple[str, str]]) -> bool:
        """Go on from an earlier process, with its snapshots at the last gate and when the tasks were approved.

        `authors` are the agents and files that it flagged since. Return False where the snapshots are lost: what it
        changed before is not known then.
        """
        self._at_gate = self._store.load(gate) if gate else None
        self._at_execution = self._store.load(execution) if execution else None
        for agent, path in authors:
            self._authors.setdefault(path, {})[agent] = None
        is_known = self._at_gate is not None and (execution is None or self._at_execution is not None)
        now = self._look()
        self._at_gate = self._at_gate or now
        return is_known

    def note(self, agent: str, written: Iterable[str] = ()) -> list[str]:
        """Note what has changed as the agent's work; return the paths that were not the agent's to change.

        `written` are the files that its tools have written, relative to the project root.
        """
        self._also.update(written)
        before, now = self._now or self._at_gate, self._look()
        changes = compare(before, now, self._store.content, diffs=False) if before is not None else []
        paths = [path for change in changes for path in (change.path, change.was) if path]
        for path in paths:
            self._authors.setdefault(path, {})[agent] = None
        return [path for path in paths if flag_of(path, [agent])]

    def since_gate(self, agent: str | None) -> list[FileChange]:
        """Return what has changed since the last decision at a gate, with diffs.

        `agent` is the one behind the gate: what nobody else is known to have changed counts as its work.
        """
        now = self._now or self._look()
        changes = compare(self._at_gate, now, self._store.content) if self._at_gate is not None else []
        flagged = [replace(change, flag=self._flag(change, agent)) for change in changes]
        return sorted(flagged, key=lambda change: change.path.startswith(SPEC_FOLDER))

    def decided(self, *, executes: bool) -> str:
        """Begin to compare with the project as it is now, a gate being decided; return what `restore` takes.

        What a person changed while the gate waited is no agent's. `executes` says that the executor is next.
        """
        self._at_gate = self._look()
        self._authors.clear()
        if executes:
            self._at_execution = self._at_gate
        return self._store.save(self._at_gate)

    def produced(self) -> list[FileChange] | None:
        """Return what has changed since the tasks were approved, but for `spec/`, without diffs.

        None where nobody knows how it was then.
        """
        if self._at_execution is None:
            return None
        changes = compare(self._at_execution, self._now or self._look(), self._store.content, diffs=False)
        return [change for change in changes if not change.path.startswith(SPEC_FOLDER)]

    def knows(self, path: str) -> bool:
        """Return whether a file, or any in a folder of that name, is among those that are compared."""
        files = (self._now or self._look()).files
        return path in files or any(each.startswith(f"{path}/") for each in files)

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the project is not compared, for a person."""
        return self._now.notes if self._now is not None else ()

    def finish(self) -> None:
        """Remove what was kept for a resume: there will be none."""
        self._store.remove()

    def _look(self) -> Snapshot:
        also = [*self._also, *steering_files(self._store.project_root)]
        self._now = self._store.take(self._now or self._at_gate, also)
        return self._now

    def _flag(self, change: FileChange, agent: str | None) -> str:
        paths = [path for path in (change.path, change.was) if path]
        others = [agent] if agent is not None else []
        return next(filter(None, (flag_of(path, self._authors.get(path) or others) for path in paths)), "")
