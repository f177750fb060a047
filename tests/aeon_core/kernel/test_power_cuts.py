"""A machine that loses its power loses what was not brought to the disk: nothing that counts is among that."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.schema import Durability
from aeon_core.effects.record_stream import RecordStream
from aeon_core.runs.resume import finished_result
from tests.aeon_core.kernel.crash_checks import (
    Records,
    Whole,
    every_call_was_approved,
    goes_on_to_the_same,
    read,
)
from tests.aeon_core.kernel.crashes import never_waits
from tests.aeon_core.kernel.scenarios import ACTED, ASKED, JOURNAL, PAID, SCENARIOS, noted
from tests.sampling import sample

WORLD = (ACTED, ASKED, PAID)


@dataclass(frozen=True)
class PowerCut:
    """What is there when the power comes back: the journal as far as it was on the disk, and the world as it was."""

    journal: bytes
    world: dict[str, bytes]

    def left_in(self, folder: Path) -> Path:
        folder.mkdir()
        (folder / JOURNAL).write_bytes(self.journal)
        for name, what in self.world.items():
            (folder / name).write_bytes(what)
        return folder


@dataclass
class _Disk:
    """Looks at the world at each call that changes the disk: it may be the last thing that happens."""

    folder: Path
    synced: int = 0
    found: list[PowerCut] = field(default_factory=list)
    sizes: list[tuple[int, int]] = field(default_factory=list)
    """At each call, how many bytes of the journal were written, and how many of these are on the disk."""

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("write", "fdatasync", "fsync"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(fd: int, *given: Any) -> Any:
            self._look()
            result = real(fd, *given)
            if name == "fdatasync":
                self.synced = os.fstat(fd).st_size
            self._look()
            return result

        return call

    def _look(self) -> None:
        if not (self.folder / JOURNAL).exists():
            # The user's key is made before the run begins. A failure here would leave this process with a key of its
            # own, and those that later tests start would not know its tokens' secrets.
            return
        world = {name: path.read_bytes() for name in WORLD if (path := self.folder / name).exists()}
        written = (self.folder / JOURNAL).read_bytes()
        self.sizes.append((len(written), self.synced))
        cut = PowerCut(written[: self.synced], world)
        if cut not in self.found:
            self.found.append(cut)


def watched(folder: Path, name: str, durability: Durability) -> _Disk:
    disk = _Disk(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        disk.watch(monkeypatch)
        SCENARIOS[name].run(folder, durability)
    return disk


def power_cuts(folder: Path, name: str, durability: Durability) -> list[PowerCut]:
    return watched(folder, name, durability).found


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


@pytest.fixture
def run(folder: Path) -> Path:
    """The folder of the run whose power is cut, beside what that leaves."""
    (folder / "run").mkdir()
    return folder / "run"


def held(cut: PowerCut, folder: Path) -> tuple[Path, Records]:
    left = cut.left_in(folder)
    return left, read(left / JOURNAL)


def begun(records: Records) -> list[Any]:
    tools = [record for record in records if record["type"] == "tool" and record["state"] == "started"]
    return [[call["tool_name"], call["arguments"]["number"]] for call in tools if call["tool_name"] == "launch"]


@pytest.mark.parametrize("durability", ["normal", "full"])
def test_intents_and_decisions_are_synced_to_disk(folder: Path, run: Path, durability: Durability) -> None:
    found = power_cuts(run, "outside", durability)
    for number, cut in enumerate(found):
        left, records = held(cut, folder / str(number))
        launched = [call for call in noted(left, ACTED) if call[0] == "launch"]
        assert launched in (begun(records), begun(records)[:-1])
        every_call_was_approved(records)
        questions = [r for r in records if r["type"] == "approval" and r["state"] == "asked"]
        assert len(noted(left, ASKED)) <= len(questions)
        calls = [r for r in records if r["type"] in ("llm", "tool")]
        if durability == "full":
            # The calls of tools that can be made again, and of models, are there too but for the last one.
            assert len(noted(left, ACTED)) + len(noted(left, PAID)) - len(_begun_outside(calls)) in (-1, 0, 1)
    assert max(len(noted(folder / str(number), ACTED)) for number in range(len(found))) == 3


def _begun_outside(calls: Records) -> Records:
    return [call for call in calls if call["state"] == "started" and call.get("tool_name") != "calculator"]


def counts(record: dict[str, Any], durability: Durability) -> bool:
    """Whether a record must be on the disk before anything follows it."""
    kind, state = record["type"], record.get("state")
    if kind == "tool":
        return durability == "full" or record["tool_name"] == "launch"
    return kind in ("approval", "pass", "run_finished") or (
        durability == "full" and (kind, state) == ("llm", "finished")
    )


@pytest.mark.parametrize("durability", ["normal", "full", "off"])
@pytest.mark.parametrize("name", ["outside", "launches"])
def test_durable_records_are_synced_before_the_next_line(run: Path, name: str, durability: Durability) -> None:
    sizes = watched(run, name, durability).sizes
    records = read(run / JOURNAL)
    ends = list(accumulate(map(len, (run / JOURNAL).read_bytes().splitlines(keepends=True))))
    for end, after, record in zip(ends, [*ends[1:], None], records, strict=True):
        on_the_disk = next((synced for written, synced in sizes if written == after), sizes[-1][1])
        expected = durability != "off" and counts(record, durability)
        found = "not synced" if expected else "synced"
        assert (on_the_disk >= end) is expected, f"{found} before the next line was written: {record}"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "durability"), sample([("outside", "normal"), ("outside", "full"), ("launches", "normal")], 1, rows=True)
)
def test_a_run_continues_from_what_is_on_the_disk_and_ends_the_same(
    folder: Path, run: Path, name: str, durability: Durability
) -> None:
    (folder / "whole").mkdir()
    whole = Whole.of(name, folder / "whole")
    tried = Counter[bool]()
    for number, cut in enumerate(power_cuts(run, name, durability)):
        left, records = held(cut, folder / str(number))
        tried[bool(records)] += 1
        if records:
            goes_on_to_the_same(whole, left)
        else:
            assert not [call for call in noted(left, ACTED) if call[0] == "launch"]
    assert tried[True] >= {"outside": 20, "launches": 15}[name]


def test_the_end_of_a_run_is_on_disk_when_it_is_reported(folder: Path, run: Path) -> None:
    last = power_cuts(run, "short", "normal")[-1].left_in(folder / "last")
    assert (last / JOURNAL).read_bytes() == (run / JOURNAL).read_bytes()
    result = finished_result(last / JOURNAL)
    assert result is not None
    assert result.status == "completed"


def test_without_durability_nothing_is_synced(run: Path) -> None:
    found = power_cuts(run, "short", "off")
    assert {cut.journal for cut in found} == {b""}
