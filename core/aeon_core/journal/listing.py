"""The runs in a directory: listing, finding by name, waiting for, lineage, and deletion."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from jiter import from_json
from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from aeon_core.errors import UsageError
from aeon_core.journal.index import HEAD, seq_of
from aeon_core.journal.lock import holder, lock
from aeon_core.journal.reader import BEGINNINGS, head, open_journal, record_type
from aeon_core.journal.summary import (
    INBOX,
    SUFFIX,
    RunSummary,
    ending_of,
    is_being_written,
    is_start,
    journal_entries,
    run_id_of,
    summarise,
    summary_of,
    unended_status,
)
from aeon_core.paths import default_runs_directory, expanded
from aeon_core.regular_file import closing_fd, open_regular, read_whole, replace_file

CACHE = ".runs-list"
"""The cache's file name in the runs directory."""
ENOUGH = 500
"""The number of runs from which a cache pays off."""
_STALE = 0.01
"""The share of runs that may have changed before the cache is rewritten."""
_AT_ONCE = 300
"""Other files that each look at the live runs also checks."""
_VERSION = 7
_MAX_CACHE = 100_000_000
"""Bytes."""
_ENDS = 16 * 1024
"""Bytes read at each end of a journal."""
_BRACE = ord("{")
_FIRST = ("text", *BEGINNINGS)
"""Types of which a journal's first record is one."""

_Stamp = tuple[int, int, int, int]
"""What identifies a version of a file: size, mtime_ns, ctime_ns, inode. No writer can preserve them all, not even one
that replaces a journal with another of the same size and resets its mtime.
"""
_Known = tuple[_Stamp, RunSummary]
"""A run as its journal described it when the file had this stamp."""


def list_runs(runs_dir: Path | str | None = None, *, cache: bool = True) -> list[RunSummary]:
    """Return the runs in a directory (None: the default one), newest first, without files that are not journals.

    `cache` says whether summaries are cached in a directory with many runs. Raises UsageError if the directory cannot
    be read; a missing one has no runs.
    """
    return RunListing(_runs_folder(runs_dir), cache=cache).runs()


def _runs_folder(runs_dir: Path | str | None) -> Path:
    return expanded(runs_dir, "the runs directory") if runs_dir is not None else default_runs_directory()


class RunListing:
    """The runs in one directory, for repeated listing: an unchanged run stays the same object."""

    def __init__(self, directory: Path, *, cache: bool = True) -> None:
        self._directory, self._cache = directory, cache
        self._known: dict[str, _Known] | None = None
        """By file name; None before anything was read."""
        self._kept: dict[str, _Stamp] = {}
        """What the cache holds."""
        self._next = 0
        """Which file `live` checks next."""
        self._reading = threading.Lock()
        self.unlisted: list[str] = []
        """Names of the files that `runs` left out: not empty, but no journal, or one whose first line is broken."""

    def runs(self) -> list[RunSummary]:
        """Return the current runs as `list_runs` does, from any thread.

        Raises UsageError likewise, and if the directory of known runs no longer exists.
        """
        with self._reading:
            entries = journal_entries(self._directory)
            self._check_directory(entries)
            file = self._directory / CACHE if self._cache and len(entries) >= ENOUGH else None
            if self._known is None:
                rows = _load(file) if file is not None else {}
                self._kept = {name: row[0] for name, row in rows.items()}
                self._known = {each.name: _at(each.path, rows[each.name]) for each in entries if each.name in rows}
            found = ((entry.name, _look(entry, self._known.get(entry.name))) for entry in entries)
            self._known = {name: known for name, known in found if known is not None}
            self.unlisted = sorted(each.name for each in entries if each.name not in self._known and _has_content(each))
            if file is not None:
                self._keep(file, self._known)
            summaries = [summary for _, summary in self._known.values()]
        return _newest_first(summaries)

    def live(self) -> list[RunSummary]:
        """Return those of `runs` that a process writes.

        This is cheap enough to call often: of the runs that were not live at the last look, only the next _AT_ONCE are
        checked each time. A run resumed since then shows at once if it waits for a decision, else after a few more
        looks. Raises UsageError likewise.
        """
        if self._known is None:
            self.runs()
        with self._reading:
            known, entries = self._known or {}, {entry.name: entry for entry in _entries(self._directory)}
            self._check_directory(entries)
            wanted = {name for name, (_, run) in known.items() if run.status == "running"}
            wanted.update(islice(entries, self._next, self._next + _AT_ONCE), entries.keys() - known.keys())
            wanted.update(name.removesuffix(INBOX) + SUFFIX for name in list(wanted) if name.endswith(INBOX))
            self._next = self._next + _AT_ONCE if self._next + _AT_ONCE < len(entries) else 0
            for name in wanted:
                entry, before = entries.get(name), known.pop(name, None)
                if entry is not None and name.endswith(SUFFIX) and (found := _look(entry, before)) is not None:
                    known[name] = found
            return _newest_first(run for _, run in known.values() if run.status == "running")

    def _check_directory(self, entries: Iterable[object]) -> None:
        if self._known and not entries and not self._directory.exists():
            raise UsageError(f"the runs directory {str(self._directory)!r} was deleted or moved; put it back")

    def _keep(self, file: Path, known: dict[str, _Known]) -> None:
        """Rewrite the cache if it saves too little; only once for the same runs, whether that succeeds or not."""
        changed = sum(self._kept.get(name) != stamp for name, (stamp, _) in known.items())
        if changed + len(self._kept.keys() - known.keys()) > len(known) * _STALE:
            _save(file, known)
            self._kept = {name: stamp for name, (stamp, _) in known.items()}


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []


def _has_content(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat().st_size > 0
    except OSError:
        return False


def _newest_first(runs: Iterable[RunSummary]) -> list[RunSummary]:
    return sorted(runs, key=lambda run: (run.started, run.run_id), reverse=True)


def _look(entry: os.DirEntry[str], known: _Known | None) -> _Known | None:
    """Return stamp and summary of a run, the known ones if it has not changed; None for a file that is not a
    journal.
    """
    try:
        # The stamp is read before the file, so that later writes show the next time.
        stat = entry.stat()
        stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)
        if known is None or known[0] != stamp:
            summary = _read(entry.path, stat.st_size)
            return (stamp, summary) if summary is not None else None
        summary = known[1]
        if summary.ended or (status := unended_status(entry.path)) == summary.status:
            return known
        return stamp, replace(summary, status=status)
    except OSError:
        return None


def _read(path: str, size: int) -> RunSummary | None:
    """Return the summary of a run, None for a file that is not a journal. Raises OSError if it cannot be read."""
    beginning, end = _ends(path, size)
    line = beginning[: beginning.find(b"\n") + 1] or beginning
    if record_type(line) not in _FIRST:
        return None
    summary = _ended_run(path, line, end) or summarise(Path(path))
    if summary is not None and (_is_damaged(beginning) or (size > _ENDS and _is_damaged(end[end.find(b"\n") + 1 :]))):
        return replace(summary, damaged=True)
    return summary


def _is_damaged(part: bytes) -> bool:
    """Return whether whole lines at the start of these bytes look broken or missing.

    Only the number of lines and their beginnings are checked: there may be ten thousand journals.
    """
    at = last = count = 0
    while (end := part.find(b"\n", at)) >= 0:
        if part[at] != _BRACE:
            return True
        at, last, count = end + 1, at, count + 1
    if not count:
        return False
    first_seq, last_seq = seq_of(part), seq_of(part[last : last + HEAD])
    return first_seq is None or last_seq is None or last_seq - first_seq != count - 1


def _ends(path: str, size: int) -> tuple[bytes, bytes]:
    with closing_fd(open_regular(path)) as fd:
        beginning = os.pread(fd, _ENDS, 0)
        return beginning, (beginning if size <= _ENDS else os.pread(fd, _ENDS, size - _ENDS))


def _ended_run(path: str, line: bytes, end: bytes) -> RunSummary | None:
    """Return the summary of a run if its first and last line suffice, else None."""
    last_line = end.rfind(b"\n", 0, -1) + 1
    if not last_line or not end.endswith(b"\n"):
        return None
    first, last = _record(line, "run_started"), _record(end[last_line:], "run_finished")
    if first is None or last is None or not is_start(first) or last.get("run") != first["run"]:
        return None
    ending = ending_of(iter([last]))
    # The scores of one that can be resumed may be those of a pass that did not finish.
    suffices = ending.status is not None and not ending.resumable
    return summary_of(path, first, ending) if suffices else None


def _record(line: bytes, kind: str) -> dict[str, Any] | None:
    if record_type(line) != kind:
        return None
    try:
        record = from_json(line, allow_inf_nan=False)
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("seq"), int) else None


def _load(file: Path) -> dict[str, _Known]:
    """Return the cached runs by file name; nothing if the cache cannot be read or has another version."""
    try:
        version, known = decode(read_whole(file, _MAX_CACHE), type=tuple[int, dict[str, _Known]])
    except (OSError, RecursionError, ValueError):
        return {}
    return known if version == _VERSION else {}


def _at(path: str, known: _Known) -> _Known:
    stamp, run = known
    return stamp, replace(run, run_id=run_id_of(path), path=path)


def _save(file: Path, known: dict[str, _Known]) -> None:
    """Write the cache for the next time, unless the directory cannot be written."""
    with contextlib.suppress(OSError):
        # The path comes from the file's name, since the directory may be moved.
        rows = {
            name: (stamp, replace(run, run_id="", path="")) for name, (stamp, run) in known.items() if _is_text(name)
        }
        replace_file(file, encode((_VERSION, rows)), durable=False)


def _is_text(name: str) -> bool:
    """Whether a file's name is UTF-8, as JSON must be; one that is not is read each time."""
    return name.isascii() or not any("\ud800" <= character <= "\udfff" for character in name)


def is_path(run: str | Path) -> bool:
    """Return whether a run is named by its journal's path rather than by its id."""
    return isinstance(run, Path) or "/" in run or run.endswith(SUFFIX)


def find_run(run: str | Path, runs_dir: Path | str | None = None) -> Path:
    """Return the journal of a run id, a unique prefix of one, a path, or `last`. Raises UsageError."""
    if not isinstance(run, str | os.PathLike):
        raise UsageError(f"the run is {run!r}; write a run id, a path to a journal, or 'last'")
    name, directory = str(run), _runs_folder(runs_dir)
    if is_path(run):
        path = expanded(run, "the journal")
        open_journal(path).close()
        return path
    if name == "last":
        listing = RunListing(directory)
        if not (runs := listing.runs()):
            for newest in listing.unlisted[-1:]:
                head(directory / newest)  # perhaps it cannot be read
            raise UsageError(f"no runs in {str(directory)!r} yet; start one with `aeon-tui run`")
        return Path(runs[0].path)
    found = sorted(Path(each.path) for each in journal_entries(directory) if name and each.name.startswith(name))
    exact = [path for path in found if path.stem == name]
    if len(found) > 1 and not exact:
        ids = {each.run_id for each in list_runs(directory)}
        found = [path for path in found if path.stem in ids] or found
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        is_file = os.path.lexists(name) and Path(name).is_file()  # a name that is too long is none
        see = f"the file of that name is {f'./{name}'!r}" if is_file else "see `aeon-tui runs`"
        raise UsageError(f"no run {name!r} in {str(directory)!r}; {see}")
    few = ", ".join(path.stem for path in found[:3]) + (", …" if len(found) > 3 else "")
    raise UsageError(f"{name!r} matches {len(found)} runs ({few}); use a longer prefix")


class Lineage(Struct, frozen=True):
    """The parent and the forks of a run; `parent` is None if the run is not a fork."""

    parent: str | None = None
    """The id of the run it was forked from."""
    forked_at: int | None = None
    """The pass it began with; None if that is not recorded."""
    parent_is_there: bool = False
    """Whether the parent's journal is in the same folder."""
    forks: list[RunSummary] = []
    """Its forks, oldest first."""


def lineage_of(path: Path, *, cache: bool = True) -> Lineage:
    """Return the parent and the forks of a run among those of its directory; `cache` as for `list_runs`."""
    run = summarise(path)
    if run is None:
        return Lineage()
    try:
        others = [other for other in list_runs(path.parent, cache=cache) if other.run_id != run.run_id]
    except UsageError:  # a file may be readable although its directory cannot be listed
        others = []
    return Lineage(
        parent=run.parent,
        forked_at=run.forked_at,
        parent_is_there=any(other.run_id == run.parent for other in others),
        forks=[other for other in reversed(others) if other.parent == run.run_id],
    )


_NEAR = 0.8
_FEW = 3


class Awaited:
    """A run by its name, as in `find_run`; without a name, the newest live run, else the newest.

    `find` may be called repeatedly until the run exists. `words` names it in a sentence.
    """

    def __init__(self, run: str | Path | None, runs_dir: Path) -> None:
        self._run, self._runs_dir = run, runs_dir
        self.words: str = f"a run in {str(runs_dir)!r}"
        if run not in (None, "last"):
            self.words = f"the journal {str(run)!r}" if self._is_path else f"the run {run!r} in {str(runs_dir)!r}"

    @property
    def _is_path(self) -> bool:
        return self._run is not None and is_path(self._run)

    def find(self) -> Path | None:
        """Return the run's journal, None if there is none yet; a path need not exist.

        Raises UsageError if the name is a prefix of several runs or the directory cannot be read.
        """
        if self._run in (None, "last"):
            return self._newest()
        if self._is_path:
            return expanded(self._run or "", "the journal")
        name = str(self._run)
        is_there = not name or any(entry.name.startswith(name) for entry in journal_entries(self._runs_dir))
        return find_run(name, self._runs_dir) if is_there else None

    def _newest(self) -> Path | None:
        runs = list_runs(self._runs_dir)
        live = [run for run in runs if run.status == "running"] if self._run is None else []
        return next((Path(run.path) for run in (*live, *runs)), None)

    def near(self) -> list[str]:
        """Return a few run ids that the name may be a misspelling of, nearest first."""
        if self._run in (None, "last") or self._is_path:
            return []
        import difflib

        names = [entry.name.removesuffix(SUFFIX) for entry in journal_entries(self._runs_dir)]
        return difflib.get_close_matches(str(self._run), names, n=_FEW, cutoff=_NEAR)


_BESIDE = re.compile(r"\.(?:inbox|files|torn-\d+)")
"""What follows the run's id in the names of its other files: decisions from another terminal, the snapshots of a
workflow, and what a crash left.
"""


def belongings(journal: Path) -> list[Path]:
    """Return the files of a run, its journal first. Raises OSError if the folder cannot be read."""
    run_id = journal.name.removesuffix(SUFFIX)
    with os.scandir(journal.parent) as entries:
        names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    beside = [name for name in names if name.startswith(run_id) and _BESIDE.fullmatch(name[len(run_id) :])]
    return [journal, *(journal.with_name(name) for name in beside)]


def size_of(journal: Path) -> int:
    """Return the total bytes of a run's files. Raises OSError."""
    return sum(path.stat().st_size for path in belongings(journal))


def refuse_live(journal: Path) -> None:
    """Raise UsageError if a process writes the run, or if that cannot be found out."""
    try:
        live = is_being_written(journal)
    except OSError as error:
        raise _refused(journal, error) from None
    if live:
        raise UsageError(f"the run {journal.stem!r} is still running; abort it or wait until it ends, then delete it")


def remove_run(journal: Path) -> None:
    """Delete a run's files; its forks do not need them and stay.

    Of a symbolic link, only the link is deleted. Raises UsageError if a process writes the run, if there is no such
    run, or if a file cannot be deleted.
    """
    try:
        with closing_fd(open_regular(journal)) as fd:
            # Held until the file is gone, so that nobody can resume the run.
            if not lock(fd):
                raise UsageError(
                    f"the run {journal.stem!r} is being written by {holder(fd)}; abort it or wait until it ends"
                )
            # The journal last: if something fails, the run is still listed and can be deleted again.
            for path in reversed(belongings(journal)):
                path.unlink()
    except OSError as error:
        raise _refused(journal, error) from None


def _refused(journal: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot delete the run {journal.stem!r}: {error.strerror}")
