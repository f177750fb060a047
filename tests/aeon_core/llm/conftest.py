"""A loopback server a test, and adapters that are closed after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core.llm.anthropic import AnthropicModel
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.openai import OpenAIModel
from tests.aeon_core.llm.server import Server

NOW = 1_800_000_000.0
KEY = "sk-test-0123456789abcdefghij"

Make = Callable[..., LLMAdapter]


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> float:
    """The time by which a wait until a date is reckoned, and which stays the same."""
    monkeypatch.setattr("aeon_core.llm.errors.time", SimpleNamespace(time=lambda: NOW))
    return NOW


@pytest.fixture
def openai_model(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    yield from _maker(OpenAIModel, f"{server.url}/v1")


@pytest.fixture
def anthropic_model(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    yield from _maker(AnthropicModel, server.url)


def _maker(kind: Any, url: str) -> Iterator[Make]:
    made: list[LLMAdapter] = []

    def make(name: str = "m1", **options: Any) -> LLMAdapter:
        model: LLMAdapter = kind(name, **{"base_url": url, "timeout": 20.0, **options})
        made.append(model)
        return model

    yield make
    for model in made:
        model.close()
