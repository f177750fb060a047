"""A run that is killed at any write leaves a journal that tells all that happened, and that can be gone on with."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon_core.journal.history import open_run
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import MemoryRecord
from aeon_core.journal.recovery import reopen
from aeon_core.journal.view import RunView
from tests.aeon_core.kernel.crashes import JOURNAL, SCENARIOS, Crash, crashes
from tests.replays import replayed, replays_the_same

Records = list[dict[str, Any]]
Crashed = tuple[str, list[Crash], Records]
VARYING = {"ts", "timestamp", "timing_information", "journal", "run_id", "run"}


@pytest.fixture(scope="module", params=SCENARIOS)
def crashed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    """The scenario, what each of its crashes left behind, and the records of the run that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    SCENARIOS[request.param].run(folder)
    whole = read(folder / JOURNAL)
    return request.param, crashes(tmp_path_factory.mktemp("crashes"), request.param), whole


def copied(crash: Crash, folder: Path) -> Crash:
    """Return the same crash in another folder, so that others find what it has left."""
    to = folder / Path(crash.folder).name
    shutil.copytree(crash.folder, to)
    return replace(crash, folder=str(to))


def read(path: Path) -> Records:
    """Return the records of whole lines, none of them damaged; none where the first is not whole."""
    if not path.exists() or b"\n" not in path.read_bytes():
        return []
    damage: list[str] = []
    records = list(read_records(path, plans=False, damage=damage))
    assert damage == []
    return records


def told(value: Any) -> Any:
    """Return what of a record is the same in each run of a scenario."""
    if isinstance(value, dict):
        return {key: told(item) for key, item in value.items() if key not in VARYING and not key.endswith("_ms")}
    return [told(item) for item in value] if isinstance(value, list) else value


def test_a_run_was_killed_at_every_write_and_no_process_of_it_is_left(crashed: Crashed) -> None:
    name, found, whole = crashed
    assert Counter(crash.way for crash in found) == dict.fromkeys(SCENARIOS[name].ways, len(whole))
    assert {crash.signal for crash in found} == {signal.SIGKILL}
    assert all(crash.alone for crash in found)


def test_the_journal_is_a_prefix_of_the_uninterrupted_one_and_at_most_a_torn_line(crashed: Crashed) -> None:
    _, found, whole = crashed
    expected = [told(record) for record in whole]
    for crash in found:
        lines = crash.write - (crash.way != "after")
        assert [told(record) for record in read(crash.journal)] == expected[:lines], crash
        rest = crash.journal.read_bytes().rpartition(b"\n")[2]
        assert bool(rest) is (crash.way == "half"), crash


def test_what_is_left_can_be_shown_and_replays_as_far_as_it_goes(crashed: Crashed) -> None:
    _, found, whole = crashed
    for crash in found:
        records = read(crash.journal)
        if not records:
            continue
        view, _ = open_run(crash.journal)
        assert view.damage == [], crash
        assert view.status == ("interrupted" if len(records) < len(whole) else whole[-1]["result"]["status"])
        if crash.way == "half":
            assert replayed(records).difference is None, crash


def test_what_happened_outside_has_its_intent_inside_and_no_call_happened_twice(crashed: Crashed) -> None:
    name, found, _ = crashed
    for crash in found:
        tools = [record for record in read(crash.journal) if record["type"] == "tool"]
        begun = [[call["tool_name"], call["arguments"].get("number")] for call in tools if call["state"] == "started"]
        ended = [call["call_id"] for call in tools if call["state"] == "finished"]
        assert len(tools) - 2 * len(ended) in (0, 1), crash
        acted = [call for call in begun if call[0] != "calculator"]
        # The last call that was begun may or may not have happened; that is what nobody can know.
        assert crash.outside in (acted, acted[:-1]), crash
        if len(begun) == len(ended):
            assert crash.outside == acted, crash
    if name == "outside":
        assert max(len(crash.outside) for crash in found) == 3


def test_a_crash_leaves_a_journal_that_is_taken_over_at_once(crashed: Crashed, tmp_path: Path) -> None:
    _, found, _ = crashed
    for left in found:
        crash = copied(left, tmp_path)
        if not (before := read(crash.journal)):
            continue
        torn = crash.journal.read_bytes().rpartition(b"\n")[2]
        writer = reopen(crash.journal)
        writer.append(MemoryRecord(key="k", value="v"))
        writer.close()
        after = read(crash.journal)
        assert after[: len(before)] == before, crash
        kinds = [record["type"] for record in after[len(before) :]]
        assert kinds == (["journal_recovered", "memory"] if torn else ["memory"]), crash
        if torn:
            assert crash.journal.with_name("r.torn-1").read_bytes() == torn


def some(found: list[Crash]) -> list[Crash]:
    """Return the crashes around tool calls, and every fifth of the others."""
    last = {crash: (read(crash.journal) or [{}])[-1].get("type") for crash in found}
    return [crash for number, crash in enumerate(found) if last[crash] == "tool" or (last[crash] and number % 5 == 0)]


def unknown(crash: Crash) -> bool:
    """Whether an unsafe call had begun and not ended."""
    last = read(crash.journal)[-1]
    return last["type"] == "tool" and last["state"] == "started" and last["effect"] == "unsafe"


def test_a_run_that_is_gone_on_with_ends_as_if_nothing_had_been(crashed: Crashed, tmp_path: Path) -> None:
    name, found, whole = crashed
    expected = told(whole[-1]["result"])
    acted = Counter(
        (line["tool_name"], line["arguments"]["number"])
        for line in whole
        if line["type"] == "tool" and line["state"] == "started" and "number" in line["arguments"]
    )
    for left in some(found):
        crash = copied(left, tmp_path)
        lost = unknown(crash)
        result = SCENARIOS[name].go_on(Path(crash.folder))
        outside = Counter((tool, number) for tool, number in crash.outside)
        assert all(outside[call] <= acted[call] for call in outside if call[0] == "launch"), crash
        if not lost:
            assert outside.keys() == acted.keys(), crash
            assert told(result.model_dump(mode="json")) == expected, crash
        journal = crash.journal.read_bytes()
        assert SCENARIOS[name].go_on(Path(crash.folder)) == result, crash
        assert crash.journal.read_bytes() == journal, crash
        records = read(crash.journal)
        assert records[-1]["type"] == "run_finished"
        replays_the_same(records)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_folding_a_journal_that_is_cut_at_any_byte_never_raises(scenario: str, tmp_path: Path) -> None:
    SCENARIOS[scenario].run(tmp_path)
    whole = (tmp_path / JOURNAL).read_bytes()
    path, view, start = tmp_path / "cut.jsonl", RunView(), 0
    for line in whole.splitlines(keepends=True):
        for length in {1, len(line) // 2, len(line) - 1}:
            path.write_bytes(whole[: start + length])
            # Whole lines alone count: what is folded of such a file is what was folded of the one before.
            assert start == 0 or len(list(read_records(path, texts=False, plans=False))) == whole[:start].count(b"\n")
        view.apply(json.loads(line))
        start += len(line)
    assert view.result is not None
