"""From `PROVIDER:NAME` to an adapter, and what is said where there is none."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from aeon_core.errors import ModelUnavailableError, UsageError
from aeon_core.llm import PROVIDERS
from aeon_core.llm.anthropic import AnthropicModel
from aeon_core.llm.base import LLMRequest
from aeon_core.llm.connect import connect
from aeon_core.llm.openai import OpenAIModel
from tests.aeon_core.llm.server import Reply, Server


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize(
    ("model", "kind", "label"),
    [
        ("openai:gpt-6", OpenAIModel, "openai:gpt-6"),
        ("openai:meta/llama-3:8b", OpenAIModel, "openai:meta/llama-3:8b"),
        (" anthropic: claude ", AnthropicModel, "anthropic:claude"),
    ],
)
def test_a_model_is_connected_under_its_label(model: str, kind: type, label: str) -> None:
    adapter = connect(model)
    assert type(adapter) is kind
    assert (adapter.model, adapter.simulated) == (label, False)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_provider_has_its_own_adapter(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in PROVIDERS[provider].keys:
        monkeypatch.setenv(variable, "k" * 20)
    name = {"simulated": "default", "llama-cpp": "none.gguf"}.get(provider, "some-model")
    try:
        made = connect(f"{provider}:{name}")
    except ModelUnavailableError as error:
        assert provider in ("bedrock", "llama-cpp"), error  # noqa: PT017  # without region, or without the file
    else:
        assert type(made).__module__.startswith(f"aeon_core.llm.{provider.replace('-', '_')}")


def test_the_simulated_model_needs_no_key_and_is_labelled() -> None:
    adapter = connect("simulated:default")
    assert (adapter.model, adapter.simulated) == ("simulated:default", True)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("opnai:gpt-6", "the model 'opnai:gpt-6' has an unknown provider"),
        ("opnai:gpt-6", "did you mean 'openai:gpt-6'?"),
        ("Anthropic:claude", "did you mean 'anthropic:claude'?"),
        ("gpt-6", "the model 'gpt-6' has no provider; expected PROVIDER:NAME with a provider of anthropic, openai"),
        ("openai", "the model 'openai' has no name; expected 'openai:NAME'"),
        ("openai:  ", "has no name; expected 'openai:NAME'"),
        ("openai:a\x1b[31m", "contains control characters"),
        ("", "the model '' has no provider"),
        (":x", "the model ':x' has an unknown provider"),
        ("x" * 5_000_000, "has no provider"),
        (None, "the model must be text, got NoneType"),
    ],
)
def test_a_malformed_model_name_is_a_usage_error(model: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        connect(model)
    assert told in caught.value.message
    assert caught.value.exit_code == 2
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 400


@pytest.mark.parametrize(
    ("bedrock", "told"),
    [
        ({"regoin": "eu-west-1"}, "bedrock has an unknown key, 'regoin'; did you mean 'region'?"),
        ("eu-west-1", "bedrock is of type str, expected a Mapping"),
        ({"region": 1}, "'region' in bedrock must be text; got 1"),
    ],
)
def test_a_wrong_setting_for_bedrock_is_named(bedrock: Any, told: str) -> None:
    with pytest.raises(UsageError, match=re.escape(told)):
        connect("bedrock:m", bedrock=bedrock)


@pytest.mark.parametrize("value", [None, "", "  "])
@pytest.mark.parametrize(("model", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")])
def test_a_missing_key_names_its_variable(
    model: str, variable: str, value: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv(variable, value)
    with pytest.raises(ModelUnavailableError, match=f"no key for '{model}': set {variable}") as caught:
        connect(model)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnavailableError, match="the key in OPENAI_API_KEY has characters") as caught:
        connect("openai:m")
    assert key not in caught.value.message


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_key_in_quotes_is_refused(quote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{quote}sk-x{quote}")
    with pytest.raises(ModelUnavailableError, match="OPENAI_API_KEY begins with a quotation mark; set it without"):
        connect("openai:m", base_url="http://localhost:8000/v1")


@pytest.mark.parametrize("from_environment", [False, True])
def test_a_self_hosted_server_needs_no_key(
    server: Server, monkeypatch: pytest.MonkeyPatch, from_environment: bool
) -> None:
    url = f"{server.url}/v1"
    if from_environment:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    server.script(Reply({"choices": [{"message": {"content": "ok"}}]}))
    adapter = connect("openai:m", base_url=None if from_environment else url)
    reply = adapter.complete(LLMRequest("answer", "s", [{"role": "user", "content": "hi"}]))
    adapter.close()
    assert reply.text == "ok"
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_a_base_url_given_wins_over_the_environments(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    server.script(Reply({"content": []}))
    adapter = connect("anthropic:m", base_url=server.url)
    adapter.generate("hi")
    adapter.close()
    assert len(server.requests) == 1


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "http://x:99999", "http://a b", "/v1"])
def test_an_invalid_base_url_is_a_usage_error(provider: str, url: str) -> None:
    with pytest.raises(UsageError, match=r"base_url .* is not a server address"):
        connect(f"{provider}:m", base_url=url)


def test_a_wrong_address_in_the_environment_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL 'localhost' is not a server address"):
        connect("openai:m")


@pytest.mark.usefixtures("keys")
@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), True, "5"])
def test_an_invalid_timeout_is_a_usage_error(timeout: float) -> None:
    with pytest.raises(UsageError, match="is not a number of seconds"):
        connect("openai:m", timeout=timeout)


def test_connecting_loads_no_sdk() -> None:
    code = (
        "import os, sys; os.environ['OPENAI_API_KEY'] = os.environ['ANTHROPIC_API_KEY'] = 'k'\n"
        "from aeon_core.llm.connect import connect\n"
        "connect('openai:m'); connect('anthropic:m')\n"
        "print(sorted(name for name in ('openai', 'anthropic', 'httpx2') if name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
