"""What `mcp_servers` may contain, and how errors in it are reported (REQ-023)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import UsageError
from aeon_core.tools.mcp.settings import McpServer, resolved, server_secrets, servers_from

SECRET = "sk-" + "ant-" + "x" * 30


def refusal(value: Any) -> str:
    with pytest.raises(UsageError) as caught:
        servers_from(value)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_both_kinds_of_servers_are_read_with_their_defaults() -> None:
    found = servers_from({"files": {"command": "npx", "args": ["-y", 1]}, "web_2": {"url": "https://h.example/mcp"}})
    assert list(found) == ["files", "web_2"]
    assert found["files"] == McpServer(command="npx", args=["-y", "1"])
    web = found["web_2"]
    assert (web.timeout, web.start_timeout, web.tools, web.enabled, web.trust_annotations) == (
        60,
        30,
        None,
        True,
        False,
    )


def test_parsed_settings_are_accepted_unchanged() -> None:
    server = McpServer(command="x")
    assert servers_from({"a": server}) == {"a": server}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "'mcp_servers' must be a mapping of names to settings; got []"),
        ({"a": "npx"}, "'a' in 'mcp_servers' must be a mapping with 'command' or 'url'; got 'npx'"),
        ({"a": None}, "'a' in 'mcp_servers' must be a mapping with 'command' or 'url'; got None"),
        ({"a": {}}, "'a' in 'mcp_servers' has neither of 'command' and 'url'; set one"),
        ({"a": {"command": "x", "url": "http://h"}}, "'a' in 'mcp_servers' has both of 'command' and 'url'; set one"),
        ({"a": {"comand": "x"}}, "'a' in 'mcp_servers' has an unknown key, 'comand'; did you mean 'command'?"),
        ({"a": {"command": ""}}, "'command' of 'a' in 'mcp_servers' must be the program to start, as text; got ''"),
        (
            {"a": {"command": "x", "args": "-y"}},
            "'args' of 'a' in 'mcp_servers' must be a list of text values; got '-y'",
        ),
        ({"a": {"url": "ftp://h"}}, "'url' of 'a' in 'mcp_servers' must be the address of a server, http://HOST:PORT"),
        (
            {"a": {"command": "x", "timeout": 0}},
            "'timeout' of 'a' in 'mcp_servers' must be a number of seconds above 0",
        ),
        ({"a": {"command": "x", "start_timeout": float("inf")}}, "'start_timeout' of 'a' in 'mcp_servers' must be a"),
        ({"a": {"command": "x", "tools": []}}, "'tools' of 'a' in 'mcp_servers' must be a list of tool names"),
        ({"a": {"command": "x", "headers": {"A": "b"}}}, "'headers' of 'a' in 'mcp_servers' needs 'url', which is"),
        ({"a": {"url": "http://h", "env": {"A": "b"}}}, "'env' of 'a' in 'mcp_servers' needs 'command', which is"),
        ({"a": {"url": "http://h", "cwd": "/"}}, "'cwd' of 'a' in 'mcp_servers' needs 'command', which is not"),
    ],
)
def test_wrong_settings_are_reported_in_a_line_with_server_and_key(value: Any, message: str) -> None:
    assert refusal(value).startswith(message)


@pytest.mark.parametrize("name", ["", "a b", "a__b", "_a", "a_", "ü", "a.b", "x" * 33, 5])
def test_a_name_must_be_fit_for_the_names_of_tools(name: Any) -> None:
    assert refusal({name: {"command": "x"}}).startswith("'mcp_servers' has a server named ")


def test_a_wrong_value_that_may_be_a_key_is_not_shown() -> None:
    message = refusal({"a": {"command": "x", "env": {"TOKEN": ["my-own-secret"]}}})
    assert message == "'env' of 'a' in 'mcp_servers' must be a mapping of variables to text"


def test_no_dump_shows_a_key() -> None:
    env = {"A": "my-own-secret", "B": "${HOME}", "C": "Bearer ${T}", "D": "${A}my-own-secret"}
    server = McpServer(command="x", env=env, cwd=Path("/there"))
    masked = {"A": "[redacted]", "B": "${HOME}", "C": "Bearer ${T}", "D": "[redacted]"}
    for mode in ("json", "python"):
        dumped = server.model_dump(mode=mode)
        assert dumped["env"] == masked
        assert dumped["cwd"] == "/there"
    assert "my-own-secret" not in repr(server)
    assert server.env == env


def test_variables_are_taken_from_the_environment() -> None:
    values = {"A": "${X}", "B": "pre ${X}${Y} post", "C": "$${X} $X $ {X}", "D": ""}
    assert resolved("s", "env", values, {"X": "1", "Y": "${X}"}) == {
        "A": "1",
        "B": "pre 1${X} post",
        "C": "${X} $X $ {X}",
        "D": "",
    }


@given(st.dictionaries(st.text("ABC_", min_size=1), st.text(st.characters(exclude_characters="$\0"))))
def test_values_without_a_variable_are_unchanged(values: dict[str, str]) -> None:
    assert resolved("s", "env", values, {}) == values


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        (
            "env",
            {"T": "${NOPE}"},
            "'env' of 's' in 'mcp_servers': 'T' needs the environment variable 'NOPE', which is not",
        ),
        ("headers", {"T": "a ${N-O}"}, "'headers' of 's' in 'mcp_servers': 'T' holds a '${' that names no variable"),
        ("env", {"T": "${OPEN"}, "'env' of 's' in 'mcp_servers': 'T' holds a '${' that names no variable"),
        ("env", {"A=B": "x"}, "'env' of 's' in 'mcp_servers': 'A=B' is not valid; expected a name without '='"),
        ("env", {"A": "x\0"}, "'env' of 's' in 'mcp_servers': 'A' is not valid; expected a name without '='"),
        ("headers", {"A B": "x"}, "'headers' of 's' in 'mcp_servers': 'A B' is not valid; expected a header's name"),
        ("headers", {"A": "x\r\nB: y"}, "'headers' of 's' in 'mcp_servers': 'A' is not valid; expected a header's"),
        ("headers", {"A": "${BAD}"}, "'headers' of 's' in 'mcp_servers': 'A' is not valid; expected a header's name"),
    ],
)
def test_an_unusable_variable_is_named_without_its_value(key: str, values: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolved("s", key, values, {"BAD": f"{SECRET}\n"})
    assert caught.value.message.startswith(message)
    assert SECRET not in caught.value.message


def test_settings_and_the_tools_module_do_not_import_mcp() -> None:
    code = "import aeon_core.tools.mcp.servers, sys; print(*{'mcp', 'mcp_types', 'httpx2', 'anyio'} & set(sys.modules))"
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_a_word_in_the_env_of_a_server_is_no_secret_unless_its_name_says_so() -> None:
    words = {"NODE_ENV": "production", "LEVEL": "WARNING", "MODE": "Development"}
    secret = {"DB_PASSWORD": "production", "ID": "5f1c9d2e-77ab", "SESSION": "s3ss10n1d", "NAME": "my-own-secret"}
    found = server_secrets("files", McpServer(command="x", env=words | secret))
    assert list(found) == list(secret.values())


def test_what_a_server_is_configured_with_is_secret_in_whole_and_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESSION", "s3ss10n1d")
    monkeypatch.setenv("TENANT", "acme-7")
    monkeypatch.setenv("WORK", str(tmp_path))
    headers = {
        "Authorization": "Bearer t0ken.of-mine",
        "X-Key": "custom-value",
        "Cookie": "sid=${SESSION}; theme=dark",
        "X-Tenant": "tenant ${TENANT}",
        "X-Plain": "$${SESSION}",
    }
    web = set(server_secrets("web", McpServer(url="https://me:pa55word@h.example/mcp", headers=headers)))
    assert {"pa55word", "t0ken.of-mine", "custom-value", "s3ss10n1d", "acme-7"} <= web
    assert "sid=s3ss10n1d; theme=dark" in web

    env = {
        "DSN": "postgres://app:${SESSION}@db/x",
        "FOLDER": f"{tmp_path}/data",
        "CACHE": "${WORK}/cache",
        "API": "https://api.example/v4",
        "HOOK": "https://api.example/?key=abcdefgh",
        "KEY": "literal-key",
    }
    program = set(server_secrets("files", McpServer(command="x", args=["--token", "t0ken"], env=env)))
    secret = {"t0ken", "s3ss10n1d", "postgres://app:s3ss10n1d@db/x", "https://api.example/?key=abcdefgh", "literal-key"}
    assert program == secret


def test_a_setting_with_a_variable_that_is_not_set_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    server = McpServer(command="x", env={"A": "${NOT_SET}", "B": "literal-key"})
    assert list(server_secrets("a", server)) == ["literal-key"]
