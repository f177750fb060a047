"""A model call that was begun and not ended may have been paid: its reserve stays held, and it is asked for again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core import RunResult
from aeon_core.effects.record_stream import RecordStream
from aeon_core.journal.reader import read_records
from aeon_core.runs.replay import replay
from tests.aeon_core.kernel.crashes import never_waits
from tests.aeon_core.kernel.scenarios import JOURNAL, PAID, SCENARIOS, noted

Records = list[dict[str, Any]]
SHORT = SCENARIOS["short"]


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStream, "wait", never_waits)


def cut_in(folder: Path, purpose: str, records: Records) -> dict[str, Any]:
    """Cut the journal behind the last call with that purpose that was begun; return the line."""
    begun = [r for r in records if r["type"] == "llm" and r["state"] == "started" and r["purpose"] == purpose][-1]
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[: begun["seq"] + 1]))
    return begun


def records_of(folder: Path) -> Records:
    return list(read_records(folder / JOURNAL))


def whole_run(folder: Path, budget: float = 10.0) -> tuple[RunResult, Records]:
    return SHORT.run(folder, "off", budget), records_of(folder)


def needed(records: Records) -> float:
    """Return the least budget of a run: what was spent before a call, and the most that it may cost."""
    spent, most = 0.0, 0.0
    for record in records:
        if record["type"] == "llm":
            most = max(most, spent + record.get("reserved_usd", 0.0))
            spent += record.get("cost_usd") or 0.0
    return most


def test_a_lost_call_is_retried_as_another_attempt(
    tmp_path: Path,
) -> None:
    whole, records = whole_run(tmp_path)
    lost = cut_in(tmp_path, "reason", records)
    result = SHORT.go_on(tmp_path)
    calls = [r for r in records_of(tmp_path) if r["type"] == "llm" and r["call_id"] == lost["call_id"]]
    assert [(r["state"], r["attempt"]) for r in calls] == [
        ("started", 1),
        ("finished", 1),
        ("started", 2),
        ("finished", 2),
    ]
    assert (calls[1]["usage"], calls[1]["cost_usd"], calls[1]["error"]["retryable"]) == (None, None, True)
    assert calls[2]["request"] == lost["request"]
    assert (result.answer, result.cost_usd, result.usage) == (whole.answer, whole.cost_usd, whole.usage)


def test_the_reserve_of_a_lost_call_counts_against_the_budget(tmp_path: Path) -> None:
    _, records = whole_run(tmp_path)
    (tmp_path / "tight").mkdir()
    folder, enough = tmp_path / "tight", needed(records) + 1e-6
    whole, records = whole_run(folder, enough)
    assert whole.status == "completed"
    lost = cut_in(folder, "reason", records)
    paid = noted(folder, PAID)
    result = SHORT.go_on(folder)
    assert (result.status, noted(folder, PAID)) == ("cost_ceiling", paid)
    assert result.error is not None
    assert result.error["held_usd"] == lost["reserved_usd"]
    assert replay(folder / JOURNAL).difference is None
    more = SHORT.go_on(folder, budget=enough + lost["reserved_usd"])
    assert (more.status, more.cost_usd) == ("completed", whole.cost_usd)


def test_a_reserve_that_is_held_stays_held_after_the_pass_in_which_the_call_was_lost(tmp_path: Path) -> None:
    scenario = SCENARIOS["passes"]
    scenario.run(tmp_path, "off")
    first = [r for r in records_of(tmp_path) if r["type"] != "llm" or r["pass"] == 1]
    lost = cut_in(tmp_path, "answer", first)
    scenario.go_on(tmp_path)
    records = records_of(tmp_path)
    ended = next(record["seq"] for record in records if record["type"] == "pass")
    lines = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    (tmp_path / JOURNAL).write_bytes(b"".join(lines[: ended + 1]))
    result = scenario.go_on(tmp_path, budget=lost["reserved_usd"] + 0.001)
    assert (result.status, result.passes) == ("cost_ceiling", 1)
    assert result.error is not None
    assert result.error["held_usd"] == lost["reserved_usd"]
    spent = [
        record["cost_usd"] or 0.0 for record in records[:ended] if "cost_usd" in record and record["type"] == "llm"
    ]
    assert result.error["spent_usd"] == pytest.approx(sum(spent))


@pytest.mark.parametrize("deaths", [2, 3, 5])
def test_a_repeatedly_lost_call_is_retried_each_time(tmp_path: Path, deaths: int) -> None:
    whole, records = whole_run(tmp_path)
    lost = cut_in(tmp_path, "reason", records)
    for _ in range(deaths - 1):
        SHORT.go_on(tmp_path)
        cut_in(tmp_path, "reason", records_of(tmp_path))
    result = SHORT.go_on(tmp_path)
    assert (result.status, result.answer, result.usage) == ("completed", whole.answer, whole.usage)
    replies = [r for r in records_of(tmp_path) if r["type"] == "llm" and "response" in r]
    assert [r["call_id"] for r in replies].count(lost["call_id"]) == 1
    assert json.dumps(result.cost_usd) == json.dumps(whole.cost_usd)
