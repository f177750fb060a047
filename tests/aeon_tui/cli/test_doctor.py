from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.llm import Provider
from aeon_tui.health import providers
from tests.aeon_tui.cli.conftest import Cli


def own_config(text: str) -> None:
    """Write the person's own configuration file."""
    file = Path(os.environ["XDG_CONFIG_HOME"], "aeon", "config.yml")
    file.parent.mkdir(parents=True)
    file.write_text(text)


def finding(out: str, name: str) -> str:
    """Return a finding with its mark and the step below it."""
    lines = out.splitlines()
    index = next(i for i, line in enumerate(lines) if line.split()[1:2] == [name])
    return "\n".join(line.strip() for line in lines[index : index + 2] if line is lines[index] or "→" in line)


def test_without_configuration_the_next_steps_are_listed(cli: Cli, tmp_path: Path) -> None:
    done = cli("doctor")
    assert (done.code, done.err) == (0, "")
    assert "-- model" in " ".join(finding(done.out, "model").split())
    assert "AEON_MODEL" in finding(done.out, "model")
    assert "→ set OPENAI_API_KEY, or --base-url for a local server" in finding(done.out, "openai")
    assert "→ set ANTHROPIC_API_KEY" in finding(done.out, "anthropic")
    assert finding(done.out, "simulated").startswith("ok")
    assert f"{tmp_path / '.aeon' / 'runs'} (will be created)" in finding(done.out, "runs")


@pytest.mark.parametrize(
    ("arguments", "variable", "source"),
    [
        (["--model", "simulated:broken"], "simulated:down", "the option --model"),
        ([], "simulated:down", "the environment variable AEON_MODEL"),
        ([], "", "config.yml'"),
    ],
)
def test_the_model_is_shown_with_its_source(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: list[str], variable: str, source: str
) -> None:
    Path(".aeon/config.yml").write_text("model: simulated:flaky\n")
    monkeypatch.setenv("AEON_MODEL", variable)
    shown = finding(cli("doctor", *arguments).out, "model")
    assert source in shown
    assert (arguments[1] if arguments else variable or "simulated:flaky") in shown


def test_every_provider_in_the_table_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "elsewhere": Provider("m", "A", ("base_url",), keys=("ELSEWHERE_KEY",)),
        "here": Provider("m", "A"),
        "absent": Provider("m", "A", package="no_such_package"),
    }
    monkeypatch.setattr("aeon_tui.health.PROVIDERS", known)
    found = [(each.name, each.text, each.step) for each in providers(RunConfig())]
    assert found == [
        ("elsewhere", "no key", "set ELSEWHERE_KEY"),
        ("here", "usable: --model here:NAME", None),
        ("absent", "its package is missing", "reinstall aeon-tui with its dependencies"),
    ]


def test_keys_make_a_provider_usable_and_are_never_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-a-person")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret-of-a-person")
    out = cli("doctor", "--model", "openai:x", "--base-url", "https://user:pass@host/v1?key=abc").out
    assert finding(out, "openai").endswith("usable: OPENAI_API_KEY is set")
    assert finding(out, "anthropic").endswith("usable: ANTHROPIC_API_KEY is set")
    assert "openai:x at https://host/v1" in out
    for secret in ("secret", "pass@", "abc"):
        assert secret not in out


def test_a_key_that_a_run_refuses_makes_no_provider_usable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "schlüssel")
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    out = " ".join(cli("doctor").out.split())
    assert "-- openai not usable → the key in OPENAI_API_KEY has characters that a key cannot have; set it again" in out
    assert "-- anthropic no key → set ANTHROPIC_API_KEY" in out


def test_an_address_of_the_environment_is_shown_with_the_model(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hunter2@gateway.example/v1")
    out = cli("doctor", "--model", "openai:m").out
    assert "openai:m at https://gateway.example/v1, " in " ".join(out.split())
    assert "hunter2" not in out


def test_a_local_server_needs_no_key(cli: Cli) -> None:
    out = cli("doctor", "--base-url", "http://127.0.0.1:8000/v1").out
    assert "needs no key" in finding(out, "openai")


def test_a_broken_config_is_shown_with_the_rest_and_exit_2(cli: Cli) -> None:
    Path(".aeon/config.yml").write_text("tlt: 3\n")
    done = cli("doctor")
    assert (done.code, done.err) == (2, "")
    assert "did you mean 'ttl'?" in finding(done.out, "config")
    assert finding(done.out, "simulated").startswith("ok")


@pytest.mark.parametrize(
    ("folder", "why"),
    [("/dev/null/runs", "'/dev/null' is not a folder"), (f"{'x' * 300}/runs", "/runs: its path is too long")],
)
def test_an_impossible_runs_directory_is_exit_2(cli: Cli, folder: str, why: str) -> None:
    done = cli("doctor", "--runs-dir", folder)
    assert (done.code, done.err) == (2, "")
    assert why in finding(done.out, "runs")


def test_config_files_that_are_read_are_listed(cli: Cli, tmp_path: Path) -> None:
    Path(".aeon/config.yml").write_text("ttl: 3\n")
    assert str(tmp_path / ".aeon" / "config.yml") in finding(cli("doctor").out, "config")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("keys: {run.zoum: Z}\n", "the action 'run.zoum' is unknown; did you mean 'run.zoom'?"),
        ("theme: aeon-drak\n", "unknown theme 'aeon-drak'; did you mean 'aeon-dark'?"),
    ],
)
def test_settings_that_the_app_refuses_are_not_ok(cli: Cli, text: str, why: str) -> None:
    own_config(text)
    done = cli("doctor")
    assert done.code == 0
    assert finding(done.out, "setting").startswith("--")
    assert why in finding(done.out, "setting")


@pytest.mark.parametrize(
    ("arguments", "code", "step"),
    [
        (["--model", "nope:x"], 2, "has an unknown provider"),
        (["--model", "openai:x"], 3, "set OPENAI_API_KEY"),
        (["--model", "simulated:nonsense"], 3, "nonsense"),
        (["--model", "openai:x", "--base-url", "nowhere"], 2, "nowhere"),
    ],
)
def test_an_unusable_model_is_not_ok(cli: Cli, arguments: list[str], code: int, step: str) -> None:
    done = cli("doctor", *arguments)
    assert (done.code, done.err) == (code, "")
    if "--base-url" not in arguments:
        assert finding(done.out, "model").startswith("--")
        assert step in finding(done.out, "model").partition("→")[2]
    assert step in done.out


def test_a_model_with_its_key_is_usable(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    done = cli("doctor", "--model", "openai:x")
    assert (done.code, finding(done.out, "model").split()[0]) == (0, "ok")


@pytest.mark.parametrize(
    ("package", "config", "name", "code"),
    [
        ("opentelemetry", "otel: true", "otel", 3),
        ("opentelemetry", "ttl: 3", "otel", 0),
        ("mcp", "tools: [mcp]", "mcp", 3),
        ("mcp", "ttl: 3", "mcp", 0),
        (None, "tools: [mcp]", "mcp", 2),
    ],
)
def test_a_missing_extra_that_the_config_needs_is_exit_3(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, package: str | None, config: str, name: str, code: int
) -> None:
    monkeypatch.setattr("aeon_tui.health.find_spec", lambda found: None if found == package else find_spec(found))
    own_config(f"{config}\n")
    done = cli("doctor", "--model", "simulated:default")
    assert (done.code, done.err) == (code, "")
    assert finding(done.out, name).startswith("--")


@pytest.mark.parametrize(("prices", "code"), [("", 2), ("prices: {'openai:own': {input: 1, output: 4}}", 0)])
def test_a_budget_without_a_price_is_exit_2_as_for_a_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, prices: str, code: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    own_config(f"budget: 1\n{prices}\n")
    done = cli("doctor", "--model", "openai:own")
    assert done.code == code
    assert ("a budget cannot be enforced" in finding(done.out, "model")) == (code == 2)
