from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from aeon_core.errors import AeonError
from tests.aeon_tui.recordings import finished_run
from tools import pictures, web_pictures
from tools.pictures import LISTED, PICTURES, RUNS, START, Picture, on_fixed_clock, run_screen, up_to, up_to_question
from tools.screenshots import portable, take

RECORDS = finished_run().records


def test_a_records_time_depends_only_on_its_seq() -> None:
    fixed = on_fixed_clock({"seq": 10, "ts": "whenever", "latency_ms": 77.1, "duration_ms": None}, START)
    assert fixed == {"seq": 10, "ts": "2026-11-20T09:30:07.000000Z", "latency_ms": 412.0, "duration_ms": None}


def test_a_live_picture_ends_at_the_call_that_the_step_waits_for() -> None:
    last = up_to(RECORDS, "s3")[-1]
    assert (last["type"], last["state"], last["step_id"]) == ("llm", "started", "s3")
    assert up_to(RECORDS, "no such step") == RECORDS


def test_a_picture_of_a_question_needs_a_run_that_asks() -> None:
    with pytest.raises(AeonError, match="asks about a plan"):
        up_to_question(RECORDS, "plan")


def test_pictures_hold_nothing_random_or_fetched() -> None:
    svg = '.terminal-123-matrix src: local("FiraCode"), url("//x/y.woff2") format("woff2"), url("z") format("w");'
    assert portable(svg) == '.terminal-matrix src: local("FiraCode");'


async def test_the_same_run_gives_the_same_picture(tmp_path: Path) -> None:
    picture = Picture("p", partial(run_screen, RECORDS), keys=("p",))
    for name in ("one.svg", "two.svg"):
        await take(picture, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    assert "Aeon&#160;reason" in drawn


async def test_a_recorded_run_that_waits_is_shown_with_its_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures.record("tool")
    picture = next(each for each in PICTURES if each.name == "approve-tool")
    await take(picture, tmp_path / "one.svg")
    drawn = (tmp_path / "one.svg").read_text()
    assert "Write&#160;notes.md?" in drawn
    assert str(tmp_path) not in drawn


def test_without_a_browser_its_pictures_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pictures, "chromium", lambda: None)
    (tmp_path / "serve.png").write_bytes(b"as it is")
    assert web_pictures.record_web_pictures(tmp_path) == []
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"as it is"]


def test_every_picture_has_a_name_of_its_own_and_every_listed_run_is_made() -> None:
    assert len({picture.name for picture in PICTURES}) == len(PICTURES)
    assert set(LISTED) <= set(RUNS)
    assert {picture.theme for picture in PICTURES} >= {"aeon-light", "aeon-high-contrast", "aeon-colour-blind"}
