"""A run that is killed at any place leaves a journal that tells all that happened, and that can be gone on with."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path

import pytest

from aeon_core.effects.record_stream import RecordStream
from aeon_core.journal.history import open_run
from aeon_core.journal.records import MemoryRecord
from aeon_core.journal.recovery import reopen
from tests.aeon_core.kernel.crash_checks import (
    Whole,
    copied,
    every_call_was_approved,
    goes_on_to_the_same,
    lost,
    lost_for_good,
    nothing_is_done_twice,
    read,
    told,
    torn,
)
from tests.aeon_core.kernel.crashes import Crash, crashes, different, never_waits
from tests.aeon_core.kernel.scenarios import JOURNAL, PAID, noted
from tests.replays import replayed

pytestmark = pytest.mark.exhaustive
Crashed = tuple[Whole, list[Crash]]


@pytest.fixture(scope="module", params=["outside", "launches"])
def crashed(request: pytest.FixtureRequest, memory: Path) -> Crashed:
    """The run that nothing interrupts, and what each crash of it left behind."""
    whole, killed = memory / f"{request.param}-whole", memory / f"{request.param}-killed"
    whole.mkdir()
    killed.mkdir()
    return Whole.of(request.param, whole), crashes(killed, request.param)


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


def test_a_run_killed_at_every_write_leaves_no_process(crashed: Crashed) -> None:
    whole, found = crashed
    calls = Counter((crash.call, crash.way) for crash in found)
    assert calls["write", "half"] == calls["write", "before"] == calls["write", "after"] == len(whole.records)
    assert calls["fdatasync", "before"] == calls["fdatasync", "after"] == {"outside": 12, "launches": 11}[whole.name]
    assert {crash.signal for crash in found} == {signal.SIGKILL}
    assert all(crash.alone for crash in found)


def test_the_journal_is_a_prefix_of_the_uninterrupted_one_and_at_most_a_torn_line(crashed: Crashed) -> None:
    whole, found = crashed
    expected = [told(record) for record in whole.records]
    written = 0
    for crash in found:
        written += (crash.call, crash.way) == ("write", "after")
        assert [told(record) for record in read(crash.journal)] == expected[:written], crash
        assert bool(torn(crash.journal)) is (crash.way == "half"), crash


def test_the_remaining_journal_is_shown_and_replays(crashed: Crashed) -> None:
    whole, found = crashed
    for crash in different(found):
        records = read(crash.journal)
        view, _ = open_run(crash.journal)
        assert view.damage == [], crash
        ended = len(records) == len(whole.records)
        assert view.status == (whole.result["status"] if ended else "interrupted"), crash
        if crash.way == "half":
            assert replayed(records).difference is None, crash


def test_every_outside_effect_has_its_intent_and_happens_once(crashed: Crashed) -> None:
    whole, found = crashed
    for crash in found:
        records = read(crash.journal)
        tools = [record for record in records if record["type"] == "tool" and record["tool_name"] != "calculator"]
        begun = [[call["tool_name"], call["arguments"]["number"]] for call in tools if call["state"] == "started"]
        # The last call that was begun may or may not have happened; that is what nobody can know.
        is_open = (lost(records) or {}).get("type") == "tool"
        assert crash.acted == begun or (is_open and crash.acted == begun[:-1]), crash
        asked = [record for record in records if record["type"] == "llm" and record["state"] == "started"]
        is_open = (lost(records) or {}).get("type") == "llm"
        assert len(noted(crash.folder, PAID)) in (len(asked), len(asked) - is_open), crash
        nothing_is_done_twice(Path(crash.folder))
        every_call_was_approved(records)
    assert max(len(crash.acted) for crash in found) == {"outside": 3, "launches": 2}[whole.name]


def test_a_journal_can_be_resumed_right_after_a_crash(crashed: Crashed, folder: Path) -> None:
    _, found = crashed
    for crash in different(found):
        path = copied(crash.folder, folder) / JOURNAL
        before, rest = read(path), torn(path)
        writer = reopen(path)
        writer.append(MemoryRecord(key="k", value="v"))
        writer.close()
        after = read(path)
        assert after[: len(before)] == before, crash
        kinds = [record["type"] for record in after[len(before) :]]
        assert kinds == (["journal_recovered", "memory"] if rest else ["memory"]), crash
        if rest:
            assert path.with_name("r.torn-1").read_bytes() == rest


def test_a_continued_run_ends_as_if_uninterrupted(crashed: Crashed, folder: Path) -> None:
    whole, found = crashed
    for number, crash in enumerate(different(found)):
        goes_on_to_the_same(whole, copied(crash.folder, folder), thoroughly=number % 4 == 0)


def test_a_tool_that_reconciles_recovers_a_lost_call(crashed: Crashed, folder: Path) -> None:
    whole, found = crashed
    cut = [crash for crash in different(found) if lost_for_good(read(crash.journal))]
    assert len(cut) == {"outside": 6, "launches": 6}[whole.name]
    for crash in cut:
        goes_on_to_the_same(whole, copied(crash.folder, folder), reconciles=True)
