"""The guided run can be watched: a reply comes in pieces, and whole."""

from __future__ import annotations

import threading

from aeon_core.llm.base import LLMRequest
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
