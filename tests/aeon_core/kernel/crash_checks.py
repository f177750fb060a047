"""What must hold of a run that was cut off, and of its continuation."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon_core import RunResult
from aeon_core.journal.reader import read_records
from aeon_core.journal.view import reducer
from aeon_core.journal.view.model import RunView
from tests.aeon_core.kernel.scenarios import ACTED, ASKED, JOURNAL, LAUNCHED, PAID, SCENARIOS, Scenario, noted
from tests.replays import replays_the_same

Records = list[dict[str, Any]]
VARYING = {"ts", "timestamp", "timing_information", "journal", "run_id", "run"}


@dataclass(frozen=True)
class Whole:
    """A run that nothing interrupts: what each interrupted one must come to in the end."""

    name: str
    folder: Path
    records: Records
    result: dict[str, Any]

    @property
    def scenario(self) -> Scenario:
        return SCENARIOS[self.name]

    @classmethod
    def of(cls, name: str, folder: Path) -> Whole:
        result = SCENARIOS[name].run(folder)
        assert result.status == {"outside": "not_converged", "short": "completed", "expired": "ttl_expired"}.get(
            name, "converged"
        )
        return cls(name, folder, read(folder / JOURNAL), told(result))


def read(path: Path) -> Records:
    """Return the records of whole lines, none of them damaged; none where the first is not whole."""
    if not path.exists() or b"\n" not in path.read_bytes():
        return []
    assert not any(part in path.read_text(errors="replace") for part in ("kanar", "vogel"))
    damage: list[str] = []
    records = list(read_records(path, damage=damage))
    assert damage == []
    return records


def told(value: Any) -> Any:
    """Return what of a record or a result is the same whenever the run is made."""
    if isinstance(value, RunResult):
        return told(value.model_dump(mode="json"))
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items() if key not in VARYING and not key.endswith("_ms")}
    return [told(item) for item in value] if isinstance(value, list) else value


def torn(path: Path) -> bytes:
    return path.read_bytes().rpartition(b"\n")[2] if path.exists() else b""


def whole_lines(path: Path) -> bytes:
    return path.read_bytes().removesuffix(torn(path))


def lost(records: Records) -> dict[str, Any] | None:
    """Return the call of a tool or a model that was begun and not ended."""
    calls = [record for record in records if record["type"] in ("tool", "llm")]
    return calls[-1] if calls and calls[-1]["state"] == "started" else None


def lost_for_good(records: Records) -> bool:
    """Whether nobody can know what became of the last call."""
    return (lost(records) or {}).get("effect") == "unsafe"


def copied(left: str | Path, folder: Path) -> Path:
    """Return a copy of what was left, so that others find it as it was."""
    to = folder / Path(left).name
    shutil.copytree(left, to)
    return to


@dataclass(frozen=True)
class Ending:
    """What going on with a crash comes to: the result, what was done in the world, and the call that was lost."""

    result: dict[str, Any]
    acted: set[tuple[Any, ...]]
    lost: dict[str, Any] | None = None

    @classmethod
    def of(cls, whole: Whole, left: Path, folder: Path) -> Ending:
        """Go on with a copy of what was left, undisturbed."""
        shutil.copytree(left, folder)
        result = whole.scenario.go_on(folder)
        return cls(told(result), _acted(folder), lost(read(left / JOURNAL)))


def goes_on_to_the_same(
    whole: Whole,
    folder: Path,
    *,
    reconciles: bool = False,
    expected: Ending | None = None,
    thoroughly: bool = True,
) -> None:
    """Go on with what a crash has left in a folder, and check the end of it: by default that of the whole run.

    Where it is not known what became of an unsafe call and no tool tells, its step has failed, and nothing else holds.
    `thoroughly` also checks that it ends once and for all, and replays.
    """
    expected = expected or Ending(whole.result, _acted(whole.folder))
    path = folder / JOURNAL
    before, lines = read(path), whole_lines(path)
    was_asked, was_paid = noted(folder, ASKED), noted(folder, PAID)
    result = whole.scenario.go_on(folder, reconciles=reconciles)
    records = read(path)
    assert path.read_bytes().startswith(lines)
    assert records[-1]["type"] == "run_finished"
    nothing_is_done_twice(folder)
    every_call_was_approved(records)
    nothing_decided_is_asked_again(before, noted(folder, ASKED)[len(was_asked) :])
    nothing_answered_is_paid_again(before, len(noted(folder, PAID)) - len(was_paid), records)
    if reconciles or not lost_for_good(before) or lost(before) == expected.lost:
        assert told(result) == expected.result, (told(result), expected.result)
        assert _acted(folder) == expected.acted
    if thoroughly:
        ended = path.read_bytes()
        assert whole.scenario.go_on(folder) == result
        assert path.read_bytes() == ended
        replays_the_same(records)


def _acted(folder: Path) -> set[tuple[Any, ...]]:
    return set(map(tuple, noted(folder, ACTED)))


def nothing_is_done_twice(folder: Path) -> None:
    launched = Counter(number for name, number in noted(folder, ACTED) if name == "launch")
    assert set(launched) <= LAUNCHED
    assert set(launched.values()) <= {1}


def every_call_was_approved(records: Records) -> None:
    """Check that each decision is about what was asked, and that only what was let go was done, as it was let go."""
    asked: dict[str, dict[str, Any]] = {}
    let_go: list[dict[str, Any]] = []
    for record in records:
        if record["type"] == "approval" and record["state"] == "asked":
            subject = record["subject"]
            assert record["digest"] == hashlib.sha256(json.dumps(subject, sort_keys=True).encode()).hexdigest()
            asked[record["digest"]] = subject
        elif record["type"] == "approval" and record["point"] == "tool":
            subject = asked[record["digest"]]
            if record["decision"] in ("approve", "edit"):
                let_go.append(record.get("edited") or subject["arguments"])
        elif record["type"] == "tool" and record["tool_name"] == "launch" and record["state"] == "started":
            assert record["arguments"] in let_go


def nothing_decided_is_asked_again(before: Records, asked: list[Any]) -> None:
    subjects = {record["digest"]: record["subject"] for record in before if "subject" in record}
    decided = [
        [record["point"], subjects[record["digest"]]["arguments"]["number"]]
        for record in before
        if record["type"] == "approval" and record["state"] == "decided"
    ]
    assert not [question for question in asked if question in decided]


def nothing_answered_is_paid_again(before: Records, paid: int, after: Records) -> None:
    """Check that a model was asked for each reply that is new, and for no other."""
    assert paid == len(_replies(after)) - len(_replies(before))
    assert set(Counter(_replies(after)).values()) == {1}


def _replies(records: Records) -> list[str]:
    return [record["call_id"] for record in records if record["type"] == "llm" and "response" in record]


def folds(records: Records) -> RunView:
    """Return the view of records, which no beginning of a journal may fail to give."""
    view = RunView()
    for record in records:
        reducer.apply(view, record)
    return view
