from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.redaction import holds_secret
from aeon_core.tools.shell.environment import child_environment

KEY = "sk-" + "ant-" + "x" * 30


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        "AWS_PROFILE",
        "AWS_SECRET_ACCESS_KEY",
        "AEON_MODEL",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "npm_token",
        "CLIENT_SECRET_ID",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PWD",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "SIGNING_KEY",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
    ],
)
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert name not in child_environment({name: "plain"})


@pytest.mark.parametrize(
    "value",
    [KEY, "postgres://me:" + "pass@host/db", "-----BEGIN RSA " + "PRIVATE KEY-----\nabc", "ghp_" + "a" * 36],
    ids=["key", "url", "pem", "github"],
)
def test_a_secret_is_known_by_its_value(value: str) -> None:
    assert "HARMLESS" not in child_environment({"HARMLESS": value})


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "BASH_ENV", "ENV", "BASH_FUNC_ls%%", "PROMPT_COMMAND", "PYTHONSTARTUP", "GIT_SSH_COMMAND", "PS4"],
)
def test_variables_that_run_other_programs_are_left_out(name: str) -> None:
    assert name not in child_environment({name: "echo"})


@pytest.mark.parametrize(
    "name", ["PATH", "HOME", "LANG", "PWD", "OLDPWD", "VIRTUAL_ENV", "PYTHONPATH", "MONKEY", "KEYBOARD", "COMPASS"]
)
def test_variables_that_commands_need_are_passed(name: str) -> None:
    assert child_environment({name: "value"})[name] == "value"


def test_path_is_always_passed() -> None:
    assert child_environment({"PATH": f"/opt/{KEY}/bin"})["PATH"] == f"/opt/{KEY}/bin"


def test_a_variable_that_the_user_names_is_passed() -> None:
    environ = {"GITHUB_TOKEN": "t", "EDITOR": "vi", "NPM_TOKEN": "n"}
    made = child_environment(environ, allowed=("GITHUB_TOKEN", "EDITOR", "VISUAL"))
    assert (made["GITHUB_TOKEN"], made["EDITOR"], made["VISUAL"]) == ("t", "vi", "true")
    assert "NPM_TOKEN" not in made


def test_commands_neither_prompt_page_nor_colour() -> None:
    made = child_environment({"TERM": "xterm", "PAGER": "less", "TMPDIR": "/elsewhere"}, temp="/scratch")
    assert made == {
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "MANPAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        "DEBIAN_FRONTEND": "noninteractive",
        "EDITOR": "true",
        "VISUAL": "true",
        "GIT_EDITOR": "true",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "gc.auto",
        "GIT_CONFIG_VALUE_0": "0",
        "GIT_CONFIG_KEY_1": "maintenance.auto",
        "GIT_CONFIG_VALUE_1": "false",
        "TMPDIR": "/scratch",
        "XDG_CACHE_HOME": "/scratch/cache",
        "PIP_CACHE_DIR": "/scratch/cache/pip",
    }


@given(st.dictionaries(st.text(min_size=1) | st.sampled_from(["TZ", "LANG", "USER"]), st.text() | st.just(KEY)))
def test_no_key_ever_passes_unless_named(environ: dict[str, str]) -> None:
    made = child_environment(environ)
    assert not any(holds_secret(value) for name, value in made.items() if name not in ("PATH", "HOME"))
    assert child_environment(environ, allowed=list(environ)).items() >= environ.items()


@pytest.mark.parametrize(
    "name", ["SENTRY_DSN", "NPM_CONFIG__AUTH", "JWT", "SLACK_WEBHOOK_URL", "STORAGE_CONNECTION_STRING", "DB_PASS"]
)
def test_variables_that_open_services_are_withheld(name: str) -> None:
    assert name not in child_environment({name: "value"})
