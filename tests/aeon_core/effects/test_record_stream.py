"""A type of records that journals from earlier versions lack: they replay and resume all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import Field

from aeon_core import Orchestrator, RunConfig, resume
from aeon_core.journal import records
from aeon_core.journal.records import Record
from aeon_core.kernel.orchestrator import Loop
from aeon_core.runs.replay import recorded_lines, replay
from tests.fakes import ScriptedModel, add, steps
from tests.replays import replayed


class DraftRecord(Record):
    """What a later version of the kernel might write."""

    type: Literal["draft"] = Field(default="draft", exclude=True)
    may_be_missing: ClassVar[bool] = True
    text: str | None


def drafts(monkeypatch: pytest.MonkeyPatch, *, may_be_missing: bool = True) -> None:
    """Have the kernel write a draft before it answers."""
    monkeypatch.setattr(DraftRecord, "may_be_missing", may_be_missing)
    monkeypatch.setattr("aeon_core.effects.replay_cursor.EMITTED", records.EMITTED | {"draft"})
    answer = Loop._answer

    def answer_with_draft(loop: Loop) -> None:
        loop.effects.emit(DraftRecord(text=loop.task))
        answer(loop)

    monkeypatch.setattr(Loop, "_answer", answer_with_draft)


def run(path: Path) -> list[dict[str, Any]]:
    plan = steps({"tool": "add", "arguments": {"a": 1, "b": 2}})
    config = RunConfig(single_pass=True, durability="off")
    Orchestrator(ScriptedModel(answer="3"), tools=[add], journal=path, config=config).run("add 1 and 2", plan)
    return recorded_lines(path)


def test_a_journal_from_before_the_type_existed_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = run(tmp_path / "r.jsonl")
    drafts(monkeypatch)
    done = replay(tmp_path / "r.jsonl")
    assert (done.difference, done.records) == (None, sum(line["type"] != "text" for line in recorded))
    assert done.result is not None
    assert done.result.answer == "3"


def test_other_new_records_are_a_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "r.jsonl")
    drafts(monkeypatch, may_be_missing=False)
    assert "draft" in str(replay(tmp_path / "r.jsonl").difference)


def test_a_recorded_optional_record_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts(monkeypatch)
    recorded = run(tmp_path / "r.jsonl")
    place = next(number for number, line in enumerate(recorded) if line["type"] == "draft")
    assert replayed(recorded).difference is None
    recorded[place]["text"] = "something else"
    assert 'draft · text was "something else", is now "add 1 and 2"' in str(replayed(recorded).difference)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_run_of_an_earlier_version_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: int) -> None:
    path = tmp_path / "r.jsonl"
    run(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:cut]))
    drafts(monkeypatch)
    assert resume(path, ScriptedModel(answer="3"), tools=[add], options={"on_unknown": "retry"}).status == "completed"
    assert replay(path).difference is None
