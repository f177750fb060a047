"""What a reasoning_mode changes, up to the journal and the budget: through the port, without the loop."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.effects.port import EffectModel, Effects
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm.base import LLMRequest, Purpose
from aeon_core.prompts import STRATEGIES, ReasoningMode, build_request
from tests.fakes import ScriptedModel

PRICES = {"scripted:test": {"input": 1_000, "output": 2_000}}
"""A tenth of a cent for a token in, two for one out."""


class Asked:
    """A model behind the port, what it was asked, and what the journal holds of it."""

    def __init__(self, mode: ReasoningMode | None, **config: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.told: list[LLMRequest] = []
        self.model = ScriptedModel(reason="so", repair="so", answer="so", tool_call="so")
        settings = RunConfig(durability="off", **{"prices": PRICES, **config})
        journal = JournalWriter(None, "r", lambda line: self.lines.append(json.loads(line)))
        effects = Effects(journal, llm=self.model, config=settings)
        port = EffectModel(effects, lambda: (1, None), lambda request, _: self.told.append(request))
        self.port = port if mode is None else EffectModel(effects, port.place, port.on_response, lambda: mode)

    def ask(self, purpose: Purpose = "reason", max_tokens: int = 100) -> dict[str, Any]:
        """Ask once; return the request as it is journaled."""
        self.port.complete(build_request(purpose, {"goal": "a goal"}, max_tokens=max_tokens))
        request: dict[str, Any] = self.started["request"]
        return request

    @property
    def started(self) -> dict[str, Any]:
        return [line for line in self.lines if line["type"] == "llm" and line["state"] == "started"][-1]


def test_settings_grow_with_the_mode() -> None:
    shallow, balanced, deep = STRATEGIES["shallow"], STRATEGIES["balanced"], STRATEGIES["deep"]

    assert (shallow.effort, balanced.effort, deep.effort) == ("low", None, "high")
    assert shallow.output_characters < balanced.output_characters < deep.output_characters
    assert shallow.max_tokens_factor == balanced.max_tokens_factor == 1 < deep.max_tokens_factor
    assert balanced.instruction == ""
    assert "" not in (shallow.instruction, deep.instruction)


def test_the_mode_reaches_the_model_the_listener_and_the_journal() -> None:
    asked = Asked("deep")

    journaled = asked.ask()

    (sent,) = asked.model.requests
    assert (sent.effort, sent.max_tokens, sent.reply_tokens) == ("high", 200, 100)
    assert sent.messages[0]["content"].endswith("</reasoning>")
    assert asked.told == [sent]
    assert (journaled["effort"], journaled["max_tokens"]) == ("high", 200)
    assert journaled["messages"] == sent.messages


def test_effort_is_the_last_field_of_a_request() -> None:
    assert list(Asked("shallow").ask()) == ["system", "messages", "max_tokens", "effort"]


@pytest.mark.parametrize("mode", [None, "balanced"])
def test_without_a_mode_the_journal_is_unchanged(mode: ReasoningMode | None) -> None:
    asked = Asked(mode)
    plain = build_request("reason", {"goal": "a goal"}, max_tokens=100)

    journaled = asked.ask()

    assert asked.model.requests == [plain]
    assert json.dumps(journaled) == json.dumps(
        {"system": plain.system, "messages": plain.messages, "max_tokens": plain.max_tokens}
    )


@pytest.mark.parametrize("purpose", ["repair", "tool_call"])
def test_repairs_and_tool_calls_are_the_same_in_any_mode(purpose: Purpose) -> None:
    asked = Asked("deep")

    journaled = asked.ask(purpose)

    assert "effort" not in journaled
    assert asked.model.requests == [build_request(purpose, {"goal": "a goal"}, max_tokens=100)]


def test_the_mode_is_looked_up_for_each_request() -> None:
    modes: list[ReasoningMode | None] = [None, "shallow", "deep"]
    asked = Asked(None)
    asked.port.mode = lambda: modes.pop(0)

    assert [asked.ask().get("effort") for _ in range(3)] == [None, "low", "high"]


def test_the_budget_reserves_the_longer_reply() -> None:
    reserved = {}
    for mode in ("balanced", "deep"):
        asked = Asked(mode, budget=1_000.0)
        described = asked.ask()
        reserved[mode] = (asked.started["reserved_usd"], len(json.dumps(described["messages"])))

    (plain, short), (deep, long) = reserved["balanced"], reserved["deep"]
    assert deep - plain == pytest.approx(100 * 0.002 + (long - short) * 0.001)


def test_the_longer_reply_is_cut_to_what_the_context_window_leaves() -> None:
    asked = Asked("deep", context_window=2000)

    journaled = asked.ask(max_tokens=1000)

    (sent,) = asked.model.requests
    assert 1000 < sent.max_tokens == journaled["max_tokens"] < 2000
    assert sent.thinking_tokens == sent.max_tokens - 1000
