"""The settings of `.system2/config.yml`: defaults, fallbacks, and who is told (REQ-084, REQ-085, REQ-094, REQ-140)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from system2.settings import CONFIG_FILE, WorkflowSettings, load_settings

EVERYTHING = """
providers:
  anthropic: {model: something}
  bedrock:
    region: eu-central-1
    model: us.anthropic.claude-sonnet-4-20250514-v1:0
    auth: {method: role, profile: work, role_arn: "arn:aws:iam::1:role/r"}
    orchestrator:
      cost_ceiling_usd: 10
      cost_warning_usd: 4.5
      log_format: json
      log_destination: logs/system2.log
      safety_mode: permissive
      bash_blocklist: ["custom-.*-cmd"]
      bash_network: true
      prices: {"bedrock:mine": {input: 1, output: 2}}
      transcript_dir: .runs
      file_changes: ask
      max_tool_turns: 20
      context_window_tokens: 100000
      max_output_tokens: 4096
"""


def load(root: Path, text: str | bytes | None) -> tuple[WorkflowSettings, list[str]]:
    if text is not None:
        path = root / CONFIG_FILE
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    warned: list[str] = []
    return load_settings(root, warn=warned.append), warned


def under(text: str) -> str:
    return f"providers:\n  bedrock:\n    orchestrator:\n      {text}\n"


def test_the_defaults_are_those_of_the_specification() -> None:
    assert WorkflowSettings().model_dump() == {
        "cost_ceiling_usd": 5.0,
        "cost_warning_usd": 2.0,
        "log_format": "text",
        "log_destination": "stderr",
        "safety_mode": "strict",
        "bash_blocklist": (),
        "bash_network": False,
        "file_changes": "allow",
        "prices": {},
        "transcript_dir": ".system2/runs",
        "max_tool_turns": 200,
        "context_window_tokens": 200_000,
        "max_output_tokens": 8192,
        "model": None,
        "bedrock": {},
        "temperature": None,
        "agents": {},
    }


def test_every_key_is_read_and_the_file_is_unchanged(tmp_path: Path) -> None:
    settings, warned = load(tmp_path, EVERYTHING)
    assert warned == []
    assert settings.model_dump() == {
        "cost_ceiling_usd": 10.0,
        "cost_warning_usd": 4.5,
        "log_format": "json",
        "log_destination": "logs/system2.log",
        "safety_mode": "permissive",
        "bash_blocklist": ("custom-.*-cmd",),
        "bash_network": True,
        "file_changes": "ask",
        "prices": {"bedrock:mine": {"input": 1.0, "output": 2.0}},
        "transcript_dir": ".runs",
        "max_tool_turns": 20,
        "context_window_tokens": 100_000,
        "max_output_tokens": 4096,
        "model": "us.anthropic.claude-sonnet-4-20250514-v1:0",
        "bedrock": {"region": "eu-central-1", "profile": "work", "role_arn": "arn:aws:iam::1:role/r"},
        "temperature": None,
        "agents": {},
    }
    assert (tmp_path / CONFIG_FILE).read_text() == EVERYTHING


@pytest.mark.parametrize("text", [None, "", "providers:\n", "providers:\n  bedrock:\n    region: x\n", under("")])
def test_without_settings_the_defaults_apply_silently(tmp_path: Path, text: str | None) -> None:
    settings, warned = load(tmp_path, text)
    assert settings.model_copy(update={"bedrock": {}}) == WorkflowSettings()
    assert warned == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [1", "line 2 is not valid YAML: "),
        ("[1, 2]", "must hold `key: value` lines"),
        ("providers: 1", ": providers must hold `key: value` lines"),
        (under("[1]"), "orchestrator must hold `key: value` lines"),
        (b"a: \x80\x81", "is not UTF-8 text: byte 3 is 0x80"),
        ("a: &a [*a]\n" + "- " * 3000, "line 1: anchors and aliases are not supported"),
        ("{" * 100_000, "nested deeper than 100 levels"),
        ("x" * 1_000_001, "is larger than 1,000,000 bytes; shorten it"),
    ],
)
def test_an_unusable_file_warns_and_the_defaults_apply(tmp_path: Path, text: str | bytes, why: str) -> None:
    settings, warned = load(tmp_path, text)
    assert settings == WorkflowSettings()
    assert len(warned) == 1
    assert why in warned[0]
    assert str(tmp_path / CONFIG_FILE) in warned[0]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("cost_ceiling_usd: much", "cost_ceiling_usd"),
        ("cost_ceiling_usd: -1", "cost_ceiling_usd"),
        ("cost_ceiling_usd: .inf", "cost_ceiling_usd"),
        ("cost_warning_usd: true", "cost_warning_usd"),
        ("safety_mode: off", "safety_mode"),
        ("log_format: xml", "log_format"),
        ("max_tool_turns: 0", "max_tool_turns"),
        ("bash_network: 1", "bash_network"),
    ],
)
def test_only_a_wrong_value_falls_back_with_a_warning(tmp_path: Path, text: str, key: str) -> None:
    settings, warned = load(tmp_path, under(f"{text}\n      max_output_tokens: 99"))
    assert settings == WorkflowSettings(max_output_tokens=99)
    assert len(warned) == 1
    assert f": {key} cannot be " in warned[0]


@pytest.mark.parametrize(
    ("prices", "wrong"),
    [
        ("[1]", "[1]"),
        ("{mine: {input: -1, output: 2}}", "{'mine': {'input': -1, 'output': 2}}, 'mine.input' is -1"),
        ("{mine: {input: 1}}", "{'mine': {'input': 1}}, 'mine.output' is missing"),
        ("{mine: {output: 2, in: 1}}", "{'mine': {'output': 2, 'in': 1}}, 'mine.input' is missing"),
        ("{mine: 3}", "{'mine': 3}, 'mine' is 3"),
    ],
)
def test_wrong_prices_are_reported_with_their_form_and_the_wrong_part(tmp_path: Path, prices: str, wrong: str) -> None:
    settings, warned = load(tmp_path, under(f"prices: {prices}\n      max_output_tokens: 99"))
    assert settings == WorkflowSettings(max_output_tokens=99)
    form = "models with their prices, MODEL: {input: …, output: …}, US dollars per million tokens"
    why = f"prices must be {form}; got {wrong}; the known prices are used instead"
    assert [line.partition("config.yml': ")[2] for line in warned] == [why]


def test_a_wrong_value_of_file_changes_asks_since_the_default_would_allow(tmp_path: Path) -> None:
    settings, warned = load(tmp_path, under("file_changes: maybe"))
    assert settings == WorkflowSettings(file_changes="ask")
    assert len(warned) == 1
    assert warned[0].endswith("file_changes cannot be 'maybe': Input should be 'allow' or 'ask'; 'ask' is used instead")


def test_a_pipe_in_place_of_the_file_does_not_block(tmp_path: Path) -> None:
    (tmp_path / ".system2").mkdir()
    os.mkfifo(tmp_path / CONFIG_FILE)
    settings, warned = load(tmp_path, None)
    assert settings == WorkflowSettings()
    assert warned[0].endswith(": it is a pipe, not a regular file; save its output to a file; the defaults are used")


def test_an_unknown_key_is_reported_with_the_nearest_one(tmp_path: Path) -> None:
    settings, warned = load(tmp_path, under("cost_ceiling: 3"))
    assert settings == WorkflowSettings()
    assert warned[0].endswith("has an unknown key, 'cost_ceiling', which is ignored; did you mean 'cost_ceiling_usd'?")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("cost_ceiling_usd: 3", "the top level"),
        ("providers: {cost_ceiling_usd: 3}", "providers"),
        ("providers: {bedrock: {cost_ceiling_usd: 3}}", "providers.bedrock"),
    ],
)
def test_a_setting_in_the_wrong_place_is_reported_with_the_right_one(text: str, place: str, tmp_path: Path) -> None:
    settings, warned = load(tmp_path, text)
    assert settings == WorkflowSettings()
    assert [line.partition(": ")[2] for line in warned] == [
        f"cost_ceiling_usd is at {place}, where it has no effect; move it to providers.bedrock.orchestrator"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("provider: {bedrock: {}}", "'provider' at the top level has no effect; did you mean 'providers'?"),
        ("providers: {Bedrock: {}}", "'Bedrock' at providers has no effect; did you mean 'bedrock'?"),
        (
            "providers: {bedrock: {orchestator: {cost_ceiling_usd: 1}}}",
            "'orchestator' at providers.bedrock has no effect; did you mean 'orchestrator'?",
        ),
        (
            "agent_override: {executor: {provider: bedrock}}",
            "'agent_override' at the top level has no effect; did you mean 'agent_overrides'?",
        ),
        (
            "providers: {bedrock: {default: {max_tokens: 5}}}",
            "'default' at providers.bedrock has no effect; did you mean 'defaults'?",
        ),
        (
            "providers: {bedrock: {regoin: eu-central-1}}",
            "'regoin' at providers.bedrock has no effect; did you mean 'region'?",
        ),
        (
            "providers: {bedrock: {auth: {profiel: work}}}",
            "'profiel' at providers.bedrock.auth has no effect; did you mean 'profile'?",
        ),
        (
            "providers: {bedrock: {auht: {profile: work}}}",
            "'auht' at providers.bedrock has no effect; did you mean 'auth'?",
        ),
        ("providers: {bedrock: {auth: {mode: sso}}}", None),
        ("providers: {bedrock: {regions: [a], region: }}", None),
        ("providers: {bedrock: {modle: mine}}", "'modle' at providers.bedrock has no effect; did you mean 'model'?"),
        ("providers: {bedrock: {region: [a]}}", "region at providers.bedrock cannot be ['a']; it must be text"),
        ("providers: {bedrock: {model: 5, region: }}", "model at providers.bedrock cannot be 5; it must be text"),
        (
            "providers: {bedrock: {auth: sso}}",
            "providers.bedrock.auth must hold `key: value` lines; the defaults are used",
        ),
        ("provider: bedrock", None),
        ("providers: {native: {}, bedrock: {defaults: {}}}", None),
    ],
)
def test_a_misspelt_block_or_key_is_reported(text: str, problem: str | None, tmp_path: Path) -> None:
    settings, warned = load(tmp_path, text)
    assert settings == WorkflowSettings()
    assert [line.partition(": ")[2] for line in warned] == ([problem] if problem else [])


def test_a_blocklist_in_the_wrong_place_is_never_lost(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="bash_blocklist is at the top level, where it has no effect; move it to"):
        load(tmp_path, "bash_blocklist: [rm]")
    with pytest.raises(UsageError, match="'provider' at the top level has no effect; did you mean 'providers'"):
        load(tmp_path, "provider: {bedrock: {orchestrator: {bash_blocklist: [rm]}}}")


@pytest.mark.parametrize(
    "text",
    [
        "orchestrator: {}",
        "providers: {bedrock: {}}\nprovider: {}",
        "providers: {bedrock: {defaults: {}}}",
        "providers: {bedrock: {orchestrator: {bash: {}}}}",
    ],
)
def test_a_blocklist_in_another_block_is_never_lost(text: str, tmp_path: Path) -> None:
    *_, block, _ = re.split(r"\W+", text)
    with pytest.raises(UsageError, match=f"bash_blocklist in '{block}' .*has no effect; move it to providers.bed"):
        load(tmp_path, "{bash_blocklist: [rm]}".join(text.rsplit("{}", 1)))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[{}]", "config.yml'"),
        ("providers: [{}]", "providers"),
        ("providers: {bedrock: [{}]}", "providers.bedrock"),
        ("providers: {bedrock: {orchestrator: [{}]}}", "providers.bedrock.orchestrator"),
    ],
)
def test_a_blocklist_in_a_list_in_place_of_a_block_is_never_lost(text: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{place} must hold `key: value` lines; move bash_blocklist to provide"):
        load(tmp_path, text.replace("{}", "{bash_blocklist: [rm]}"))


def test_a_named_file_that_is_missing_is_reported(tmp_path: Path) -> None:
    warned: list[str] = []
    assert load_settings(tmp_path, tmp_path / "none.yml", warned.append) == WorkflowSettings()
    where = f"the config file {str(tmp_path / 'none.yml')!r}"
    assert warned == [f"cannot read {where}: No such file or directory; the defaults are used"]


@pytest.mark.parametrize("blocklist", ["[good, '(']", "'rm'", "[1]", "{a: b}"])
def test_a_blocklist_that_cannot_be_used_is_never_lost(tmp_path: Path, blocklist: str) -> None:
    (tmp_path / ".system2").mkdir()
    text = f"providers: {{bedrock: {{orchestrator: {{bash_blocklist: {blocklist}, safety_mode: loud}}}}}}\n"
    (tmp_path / CONFIG_FILE).write_text(text)
    with pytest.raises(UsageError, match=r"bash_blocklist: .*; fix or remove it"):
        load_settings(tmp_path)


PUBLIC = """
version: "1.0"
providers:
  bedrock:
    enabled: true
    region: us-west-2
    default_model: claude-3-5-sonnet-20241022
    defaults: {temperature: 0.7, max_tokens: 4096, top_p: 0.9}
    auth:
      profile: default
    models:
      claude-3-5-haiku-20241022: {display_name: Haiku, max_tokens: 8192}
  native: {fallback: true}
global: {default_provider: native}
agent_overrides:
  spec-coordinator: {provider: bedrock, model: claude-3-5-haiku-20241022, temperature: 0.5}
  design-architect: {provider: bedrock, temperature: 0.3}
mode_overrides:
  g-repo-governor: {provider: bedrock, model: claude-3-5-sonnet-20241022}
"""
"""The form of the configuration that System2 is published with."""


def test_the_published_configuration_is_read_whole(tmp_path: Path) -> None:
    settings, warned = load(tmp_path, PUBLIC)
    assert warned == []
    assert (settings.model, settings.temperature, settings.max_output_tokens) == (
        "claude-3-5-sonnet-20241022",
        0.7,
        4096,
    )
    assert {name: override.model_dump() for name, override in settings.agents.items()} == {
        "spec-coordinator": {"model": "claude-3-5-haiku-20241022", "temperature": 0.5},
        "design-architect": {"model": None, "temperature": 0.3},
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1]", "agent_overrides must hold `key: value` lines"),
        ("{executor: {provider: native}}", "of 'executor': expected `provider: bedrock`, got 'native'; ignored"),
        ("{executor: fast}", "of 'executor': expected `provider: bedrock`, got 'fast'; ignored"),
        ("{executor: {temperature: 2}}", "of 'executor' are ignored: temperature: Input should be less than"),
        ("{executor: {modle: x}}", "of 'executor' are ignored: modle: Extra inputs are not permitted"),
    ],
)
def test_an_override_that_cannot_be_used_is_reported(tmp_path: Path, text: str, why: str) -> None:
    settings, warned = load(tmp_path, f"agent_overrides: {text}\n")
    assert settings.agents == {}
    assert len(warned) == 1
    assert why in warned[0]
