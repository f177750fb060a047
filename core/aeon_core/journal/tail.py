"""The end of a journal, enough of it to show a run's state before the rest has been read (Decision 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.journal.index import HEAD, JournalLine, OffsetIndex, Pages, seq_of
from aeon_core.journal.reader import head, record_type
from aeon_core.journal.view.model import RunView
from aeon_core.journal.view.reducer import fold

RECENT = 200
"""Lines from the end that are taken whole."""
WITHIN = 4 * 1024 * 1024
"""Bytes from the end in which the last state of each kind is looked for."""
_KINDS = {
    "plan": "the plan",
    "ttl": "the TTL and the totals",
    "pass": "which pass ended last",
    "profile": "the profile",
    "validation": "the last validation report",
    "convergence": "the last scores",
}
"""Types whose last record holds the current state, and the key that it is kept under."""
_STRIDE = 64
_BLOCK = 512 * 1024
_ENVELOPE: tuple[str, ...] = ("v", "seq", "ts", "run")


@dataclass(frozen=True)
class TailState:
    """Records to fold for a first view, and what they cannot tell."""

    records: list[dict[str, Any]]
    """In their order: `run_started`, the last state of each kind, then the last lines without a gap. All are records
    of the journal, but for one: if there is no `plan` near the end, one is made of the last plan that a cycle or the
    result holds in full."""
    whole_from: int
    """From this seq on nothing is left out; 0 where the records are the whole journal."""
    size: int
    """Bytes of the file up to the end of the last line that was read."""
    unknown: tuple[str, ...]
    """What a view of these records does not know yet, in words; empty where they are the whole journal."""
    problems: tuple[str, ...]
    """Lines near the end that cannot be read, and why."""

    def view(self) -> RunView:
        """Return the view of the records, which says from where on it is whole and what cannot be read."""
        view = fold(self.records)
        view.whole_from = self.whole_from if self.unknown else 0
        for problem in self.problems:
            view.add_problem(problem)
        return view


def tail_state(
    path: Path, *, recent: int = RECENT, within: int = WITHIN, before: int | None = None, gone: Sequence[range] = ()
) -> TailState:
    """Return what shows the end of a run at once, from the journal's first record and its last `within` bytes.

    `before`, where a line begins, asks for the run as it was then; the seqs in `gone` count no more.

    The plan and its statuses are those of the last `plan` record and of the steps that changed since; totals, TTL,
    pass, profile, report and scores are the last told. Raises UsageError where the file is no journal, JournalError
    where it cannot be read.
    """
    first = head(path)
    if first is None:
        raise UsageError(f"{str(path)!r} does not start like a journal; expected a run's <run_id>.jsonl file")
    with _InBlocks(path) as index:
        end = _End(index, recent, gone)
        for span in _backwards(index, within, before):
            end.add(span)
            if end.enough():
                break
        return end.state(first)


class _InBlocks(OffsetIndex):
    """Reads whole blocks and keeps them: each read lets another thread have its turn, and then waits for it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._blocks: dict[int, bytes] = {}

    def read(self, offset: int, size: int) -> bytes:
        if size > _BLOCK:
            return super().read(offset, size)
        first, last = offset // _BLOCK, max(offset, offset + size - 1) // _BLOCK
        data = b"".join(map(self._block, range(first, last + 1)))
        begin = offset - first * _BLOCK
        return data[begin : begin + size]

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            self._blocks[number] = super().read(number * _BLOCK, _BLOCK)
        return self._blocks[number]


def _backwards(index: OffsetIndex, within: int, before: int | None) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the last lines, the last first: at least one, and as many as fit in that many bytes."""
    spans = index.tail(_STRIDE, before)
    limit = (spans[-1][1] if spans else 0) - within
    while spans:
        for span in reversed(spans):
            yield span
            if span[0] <= limit:
                return
        spans = index.tail(_STRIDE, spans[0][0])


class _End:
    """What a walk from the end towards the beginning has found."""

    def __init__(self, index: OffsetIndex, recent: int, gone: Sequence[range]) -> None:
        self._index, self._pages, self._count = index, Pages(index), recent
        self._recent: list[JournalLine] = []
        self._older: list[JournalLine] = []
        self._kinds: set[str] = set()
        self._steps: set[Any] = set()
        self._full_plan: dict[str, Any] | None = None
        self._start = 0
        self._passed_over = False
        self._gone = list(gone)
        """The seqs of lines that a later resume took back."""

    def add(self, span: tuple[int, int]) -> None:
        """Take the line before those already taken, as far as it says something new."""
        self._start = span[0]
        is_recent = len(self._recent) < self._count
        head = self._index.read(span[0], min(HEAD, span[1] - span[0]))
        kind = record_type(head)
        if kind == "run_resumed":
            self._take_back(self._pages.read(span).record or {})
        if kind != "text" and any(seq_of(head) in each for each in self._gone):
            return
        if not is_recent and not self._may_be_new(kind):
            self._passed_over = True
            return
        entry = self._pages.read(span)
        is_new = self._note(entry.record or {})
        if is_recent:
            self._recent.append(entry)
        elif is_new:
            self._older.append(entry)
        else:
            self._passed_over = True

    def _may_be_new(self, kind: str | None) -> bool:
        if kind in _KINDS:
            return kind not in self._kinds
        return kind == "step" or (kind in ("cycle", "run_finished") and self._full_plan is None)

    def _take_back(self, resumed: dict[str, Any]) -> None:
        first = resumed.get("continues_at")
        if isinstance(first, int):
            self._gone.append(range(first, resumed["seq"]))

    def _note(self, record: dict[str, Any]) -> bool:
        """Keep in mind what a record tells; return whether it is the last state of its kind, or of its step."""
        kind, step_id = record.get("type"), record.get("step_id")
        if kind == "step" and isinstance(step_id, str):
            is_new = step_id not in self._steps
            self._steps.add(step_id)
            return is_new
        plan = _full_plan(record)
        if plan is not None and self._full_plan is None:
            envelope = {key: record.get(key) for key in _ENVELOPE}
            self._full_plan = {**envelope, "type": "plan", "cause": "given", "plan": plan}
        if kind not in _KINDS or kind in self._kinds:
            return False
        self._kinds.add(kind)
        return True

    def enough(self) -> bool:
        """Whether earlier lines cannot affect the current state."""
        return len(self._recent) >= self._count and self._kinds >= _KINDS.keys()

    def state(self, first: dict[str, Any]) -> TailState:
        """Return what was found, behind the journal's first record."""
        entries = [*reversed(self._older), *reversed(self._recent)]
        records = [entry.record for entry in entries if entry.record is not None]
        whole = self._start == 0 and not self._passed_over
        recent = [entry.record["seq"] for entry in reversed(self._recent) if entry.record is not None]
        whole_from = recent[0] if recent else 0
        if not whole and "plan" not in self._kinds and self._full_plan is not None:
            records = sorted([*records, self._full_plan], key=lambda record: record["seq"])
        if all(record["type"] != "run_started" for record in records):
            records.insert(0, first)
        return TailState(
            records=records,
            whole_from=whole_from,
            size=self._recent[0].offset + self._recent[0].size if self._recent else 0,
            unknown=() if whole else tuple(self._unknown(whole_from, entries)),
            problems=tuple(f"byte {entry.offset}: {entry.problem}" for entry in entries if entry.problem is not None),
        )

    def _unknown(self, whole_from: int, entries: list[JournalLine]) -> Iterator[str]:
        yield f"calls, tool calls, repairs, refinements, notices, memory and log lines before seq {whole_from}"
        yield f"the number of cycles before seq {whole_from}"
        yield "outputs and errors of steps that ended before the part that was read"
        for kind, what in _KINDS.items():
            if kind not in self._kinds and (kind != "plan" or self._full_plan is None) and self._start > 0:
                yield f"{what}, if recorded before byte {self._start}"
        if pending := set().union(*(entry.pending for entry in entries)):
            yield f"long texts stored earlier: {len(pending)}"


def _full_plan(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return the plan, with the statuses of its steps, that a cycle or the result holds in full."""
    kind, result = record.get("type"), record.get("result")
    if kind == "run_finished":
        plan = result.get("plan") if isinstance(result, dict) else None
    else:
        plan = record.get("plan_state") if kind == "cycle" else None
    return plan if isinstance(plan, dict) and plan.get("steps") and "since" not in plan else None
