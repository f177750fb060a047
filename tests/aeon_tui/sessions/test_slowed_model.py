"""The guided run and its forks can be watched: a reply comes in pieces, and whole."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from aeon_core import RunConfig
from aeon_core.config.loading import LoadedConfig
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.runs.orchestrator import Orchestrator
from aeon_tui.sessions.fork_job import fork_job
from aeon_tui.sessions.run_jobs import DEMO_MODEL, DEMO_TASK, resume_job
from aeon_tui.sessions.slowed_model import PIECES, SlowedModel
from tests.fakes import ScriptedModel
from tests.waiting import PATIENCE


def request(pieces: list[str]) -> LLMRequest:
    return LLMRequest("answer", "s", [{"role": "user", "content": "x"}], on_delta=pieces.append)


def test_a_reply_comes_in_pieces_that_add_up_to_it() -> None:
    text = "a reply of some length, in words"
    pieces: list[str] = []
    model = SlowedModel(ScriptedModel(answer=text), seconds=0.012)
    assert model.complete(request(pieces)).text == text
    assert "".join(pieces) == text
    assert 1 < len(pieces) <= PIECES
    assert model.model == "scripted:test"


def test_closing_ends_the_pauses_at_once() -> None:
    model = SlowedModel(ScriptedModel(answer="x"), seconds=3600)
    replies: list[str] = []
    thread = threading.Thread(target=lambda: replies.append(model.complete(request([])).text))
    thread.start()
    model.close()
    thread.join(PATIENCE)
    assert replies == ["x"]


def test_a_fork_of_the_guided_run_is_slowed_if_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    today, built = LoadedConfig(RunConfig()), RunConfig(model=DEMO_MODEL, durability="off", single_pass=True)
    demo, other = tmp_path / "demo.jsonl", tmp_path / "other.jsonl"
    for journal, task in ((demo, DEMO_TASK), (other, "add 5 and 10")):
        Orchestrator(ScriptedModel(answer="x"), config=built, journal=journal).run(task)
    assert fork_job(demo, 1, today, {}, in_app=True).paced
    assert fork_job(demo, 1, today, {"model": "simulated:default"}, in_app=True).paced
    assert resume_job(demo, today, {}, in_app=True).paced
    assert not fork_job(demo, 1, today, {"model": "openai:gpt-4o"}, in_app=True).paced
    assert not fork_job(demo, 1, today, {}, in_app=False).paced
    assert not fork_job(other, 1, today, {}, in_app=True).paced
    slowed: list[LLMAdapter] = []
    monkeypatch.setattr(
        "aeon_tui.sessions.slowed_model.SlowedModel", lambda model: slowed.append(model) or SlowedModel(model, 0.0)
    )
    fork_job(demo, 1, today, {}, in_app=True).build(tmp_path / "fork.jsonl", lambda _: None, None, None).close()
    assert [each.model for each in slowed] == [DEMO_MODEL]
