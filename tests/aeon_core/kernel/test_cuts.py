"""A journal that is cut at any byte is a beginning of the whole one: it can be read, shown, and gone on with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from aeon_core.effects.record_stream import RecordStream
from aeon_core.errors import UsageError
from aeon_core.journal.history import open_run
from aeon_core.journal.reader import read_records
from aeon_core.journal.summary import summarise
from aeon_core.runs.resume import Resumption
from tests.aeon_core.kernel.crash_checks import Whole, folds, goes_on_to_the_same, read
from tests.aeon_core.kernel.crashes import never_waits
from tests.aeon_core.kernel.scenarios import ACTED, JOURNAL
from tests.fakes import ScriptedModel
from tests.sampling import sample

CUT_WITHIN: list[dict[str, Any]] = [
    {"type": "approval", "state": "asked"},
    {"type": "approval", "state": "decided"},
    {"type": "tool", "state": "started"},
    {"type": "tool", "state": "finished"},
    {"type": "llm", "state": "started", "purpose": "reason"},
    {"type": "text"},
    {"type": "step", "status": "complete"},
    {"type": "pass"},
    {"type": "run_finished"},
]
"""Records that are cut within before they are gone on with; all others where they begin."""
WHOLLY = 320
"""Bytes up to which a record is cut at each one; a longer one at its ends, and here and there between."""


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


@pytest.fixture(scope="module")
def whole(memory: Path) -> Whole:
    return Whole.of("short", memory)


def lines_of(whole: Whole) -> list[bytes]:
    return (whole.folder / JOURNAL).read_bytes().splitlines(keepends=True)


@pytest.mark.exhaustive
def test_a_journal_cut_at_any_byte_reads_as_a_prefix(whole: Whole, folder: Path) -> None:
    text, path = b"".join(lines_of(whole)), folder / JOURNAL
    ends = list(accumulate(map(len, lines_of(whole))))
    path.write_bytes(text)
    expected = list(whole.records)
    for length in range(len(text) - 1, ends[0] - 1, -1):
        os.truncate(path, length)
        while ends[len(expected) - 1] > length:
            expected.pop()
        assert read(path) == expected, length


def list_records(path: Path) -> None:
    list(read_records(path))


def resumed(path: Path) -> None:
    Resumption(path, ScriptedModel())


@pytest.mark.exhaustive
def test_a_cut_first_line_is_reported_as_not_a_journal(whole: Whole, folder: Path) -> None:
    first, path = lines_of(whole)[0], folder / JOURNAL
    path.write_bytes(first)
    for length in range(len(first) - 1, -1, -1):
        os.truncate(path, length)
        for use in (
            lambda: list(read_records(path)),
            lambda: open_run(path),
            lambda: Resumption(path, ScriptedModel()),
        ):
            with pytest.raises(UsageError, match="is not a journal: ") as caught:
                use()
            assert "\n" not in caught.value.message
        assert path.stat().st_size == length


@pytest.mark.parametrize("name", sample(["outside", "launches", "expired"], 1))
def test_a_journal_cut_anywhere_is_listed_and_shown(name: str, folder: Path) -> None:
    (folder / "whole").mkdir()
    whole = Whole.of(name, folder / "whole")
    path, start = folder / JOURNAL, 0
    text = b"".join(lines_of(whole))
    for number, line in enumerate(lines_of(whole)):
        for length in {0, 1, len(line) // 2, len(line) - 1} if number else ():
            path.write_bytes(text[: start + length])
            view, _ = open_run(path)
            assert (view.damage, view.status) == ([], "interrupted")
            # What is listed was folded from the ends of the file alone.
            summary = summarise(path)
            assert summary is not None
            assert (summary.status, summary.task) == ("interrupted", whole.records[0]["task"])
        folds(whole.records[: number + 1])
        start += len(line)
    assert folds(whole.records).status == whole.result["status"]


def cuts(whole: Whole) -> Iterator[tuple[int, int]]:
    """Yield the cuts to continue from: how many whole lines, and bytes of the next."""
    left = list(CUT_WITHIN)
    for number, (record, line) in enumerate(zip(whole.records, lines_of(whole), strict=True)):
        found = next((each for each in left if each.items() <= record.items()), None)
        if found is not None:
            left.remove(found)
            yield from ((number, length) for length in range(len(line)) if _is_tried(length, len(line)))
        elif number:
            yield number, 0
    assert left == []


def _is_tried(length: int, size: int) -> bool:
    return size <= WHOLLY or min(length, size - length) <= 24 or length % 31 == 0


@pytest.mark.exhaustive
def test_a_run_cut_at_any_byte_continues_as_if_uninterrupted(whole: Whole, folder: Path) -> None:
    lines = lines_of(whole)
    for number, length in cuts(whole):
        (folder / JOURNAL).write_bytes(b"".join(lines[:number]) + lines[number][:length])
        begun = [r for r in whole.records[:number] if r["type"] == "tool" and r["state"] == "started"]
        (folder / ACTED).write_text("".join(json.dumps([r["tool_name"], 1]) + "\n" for r in begun))
        goes_on_to_the_same(whole, folder, thoroughly=length < 2)
        for file in folder.iterdir():
            file.unlink()
