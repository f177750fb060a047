from __future__ import annotations

from pathlib import Path

from aeon_tui.screenshots import RUNS, START, Picture, on_fixed_clock, portable, run_app, take, up_to
from tests.aeon_tui.recordings import finished_run

RECORDS = finished_run().records


def test_a_records_time_depends_on_its_seq_alone() -> None:
    fixed = on_fixed_clock({"seq": 10, "ts": "whenever", "latency_ms": 77.1, "duration_ms": None}, START)
    assert fixed == {"seq": 10, "ts": "2026-11-20T09:30:07.000000Z", "latency_ms": 412.0, "duration_ms": None}


def test_a_live_picture_ends_at_the_call_that_the_step_waits_for() -> None:
    last = up_to(RECORDS, "s3")[-1]
    assert (last["type"], last["state"], last["step_id"]) == ("llm", "started", "s3")
    assert up_to(RECORDS, "no such step") == RECORDS


def test_nothing_in_a_picture_is_random_or_fetched() -> None:
    svg = '.terminal-123-matrix src: local("FiraCode"), url("//x/y.woff2") format("woff2"), url("z") format("w");'
    assert portable(svg) == '.terminal-matrix src: local("FiraCode");'


async def test_the_same_run_gives_the_same_picture(tmp_path: Path) -> None:
    picture = Picture("p", 0, keys=("p",))
    for name in ("one.svg", "two.svg"):
        await take(run_app(picture, RECORDS), picture.size, picture.keys, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    assert "Aeon&#160;reason" in drawn


def test_every_picture_is_of_a_run_that_is_made() -> None:
    from aeon_tui.screenshots import PICTURES

    assert all(0 <= picture.run < len(RUNS) for picture in PICTURES)
    assert len({picture.name for picture in PICTURES}) == len(PICTURES)
