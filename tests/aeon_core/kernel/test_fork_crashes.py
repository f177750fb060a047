"""A fork that is killed at any place leaves its parent as it is, and is gone on with like any other run."""

from __future__ import annotations

import fcntl
import signal
from pathlib import Path

import pytest

from aeon_core.effects.record_stream import RecordStream
from tests.aeon_core.kernel.crash_checks import Whole, copied, goes_on_to_the_same, read
from tests.aeon_core.kernel.crashes import Crash, crashes, different, never_waits
from tests.aeon_core.kernel.scenarios import ACTED, ASKED, JOURNAL, OTHER, PAID, PARENT, SCENARIOS, ForkScenario, noted

Forked = tuple[Whole, Path, list[Crash]]


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


@pytest.fixture(scope="module")
def parent(memory: Path) -> Path:
    """A folder with the run that is forked."""
    folder, scenario = memory / "parent", SCENARIOS["fork"]
    folder.mkdir()
    assert isinstance(scenario, ForkScenario)
    scenario.parent(folder)
    return folder


@pytest.fixture(scope="module")
def forked(parent: Path, memory: Path) -> Forked:
    """A fork that nothing interrupts, the folder of its parent, and what each crash of another left."""
    for name in ("whole", "killed"):
        (memory / name).mkdir()
    return Whole.of("fork", memory / "whole"), parent, crashes(memory / "killed", "fork", str(parent))


def same_file(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes() and one.stat().st_mtime_ns == other.stat().st_mtime_ns


@pytest.mark.exhaustive
def test_a_fork_runs_only_later_passes_and_names_its_parent(forked: Forked) -> None:
    whole, parent, _ = forked
    first = whole.records[0]
    assert (first["parent"]["run_id"], first["parent"]["pass"]) == (Path(PARENT).stem, 2)
    assert (whole.result["answer"], whole.result["passes"]) == (OTHER, 2)
    assert [purpose for purpose, _ in noted(whole.folder, PAID)] == ["answer", "judge"]
    assert noted(whole.folder, ACTED) == [["launch", 30]]
    assert read(parent / PARENT)[0]["task"] == first["task"]


@pytest.mark.exhaustive
def test_a_killed_fork_never_changes_its_parent(forked: Forked) -> None:
    _, parent, found = forked
    assert {crash.signal for crash in found} == {signal.SIGKILL}
    assert all(crash.alone for crash in found)
    for crash in found:
        assert same_file(Path(crash.folder) / PARENT, parent / PARENT), crash
        assert {path.name for path in Path(crash.folder).iterdir()} <= {PARENT, JOURNAL, ACTED, ASKED, PAID}, crash


@pytest.mark.exhaustive
def test_a_killed_fork_continues_and_ends_as_if_uninterrupted(forked: Forked, folder: Path) -> None:
    whole, parent, found = forked
    assert len(different(found)) > 20
    for crash in different(found):
        own = copied(crash.folder, folder)
        goes_on_to_the_same(whole, own)
        assert same_file(own / PARENT, parent / PARENT), crash


@pytest.mark.exhaustive
def test_a_started_fork_does_not_need_its_parent(forked: Forked, folder: Path) -> None:
    whole, _, found = forked
    own = copied(different(found)[0].folder, folder)
    (own / PARENT).unlink()
    goes_on_to_the_same(whole, own)


def test_a_run_that_another_process_writes_can_be_forked(parent: Path, folder: Path) -> None:
    own = copied(parent, folder)
    with (own / PARENT).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert SCENARIOS["fork"].go_on(own).answer == OTHER
    assert same_file(own / PARENT, parent / PARENT)
