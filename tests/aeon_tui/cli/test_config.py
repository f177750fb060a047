from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from aeon_core.config.loading import read_config_file
from aeon_core.errors import UsageError
from aeon_tui.cli.config import setting_path
from tests.aeon_tui.cli.conftest import Cli

PROJECT = Path(".aeon/config.yml")


def own_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"], "aeon", "config.yml")


def test_a_setting_is_changed_in_one_file_and_its_comments_stay(cli: Cli) -> None:
    PROJECT.write_text("# ours\nttl: 9  # few\nshell:\n  network: false  # never\n")
    done = cli("config", "set", "ttl", "20", "--project")
    assert (done.code, done.out, done.err) == (0, "", f"ttl = 20 in {PROJECT.absolute()}\n")
    cli("config", "set", "shell.timeout", "30", "--project")
    assert PROJECT.read_text() == "# ours\nttl: 20  # few\nshell:\n  timeout: 30\n  network: false  # never\n"
    cli("config", "set", "ttl", "--unset", "--project")
    assert "ttl" not in PROJECT.read_text()
    assert not own_file().exists()
    assert cli("config", "set", "theme", "aeon-light").code == 0
    assert own_file().read_text() == "theme: aeon-light\n"


def test_a_projects_setting_is_not_written_through_a_link_out_of_the_project(
    cli: Cli, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "config.yml"
    outside.write_text("ttl: 9\n")
    PROJECT.unlink(missing_ok=True)
    PROJECT.symlink_to(outside)
    done = cli("config", "set", "ttl", "20", "--project")
    assert (done.code, outside.read_text()) == (2, "ttl: 9\n")
    assert "is a link out of the project" in done.err


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("tools", "files,shell", {"tools": ["files", "shell"]}),
        ("tools", '["files", "shell"]', {"tools": ["files", "shell"]}),
        ("tools", "[]", {"tools": []}),
        ("model", "simulated:default", {"model": "simulated:default"}),
        ("model", "openai:a, openai:b", {"model": ["openai:a", "openai:b"]}),
        ("model", '["openai:a", "openai:b"]', {"model": ["openai:a", "openai:b"]}),
        ("single_pass", "true", {"single_pass": True}),
        ("policy.allow", "Bash(git *),Read", {"policy": {"allow": ["Bash(git *)", "Read"]}}),
        ("policy.deny", "[Write]", {"policy": {"deny": ["Write"]}}),
        ("prices.gpt-4.1", "{input: 1, output: 2}", {"prices": {"gpt-4.1": {"input": 1, "output": 2}}}),
        ("bedrock.profile", "123", {"bedrock": {"profile": "123"}}),
        ("mcp_servers.gh.command", "npx", {"mcp_servers": {"gh": {"command": "npx"}}}),
        ("keys.run.zoom", "Z", {"keys": {"run.zoom": "Z"}}),
    ],
)
def test_text_is_converted_to_the_settings_type(cli: Cli, name: str, value: str, held: object) -> None:
    assert cli("config", "set", name, value).code == 0
    expected = read_config_file(own_file(), json.dumps(held))
    assert read_config_file(own_file()) == expected


def test_a_path_is_kept_relative_to_the_project(cli: Cli) -> None:
    assert cli("config", "set", "criteria", "criteria.yml", "--project").code == 0
    assert PROJECT.read_text() == 'criteria: "../criteria.yml"\n'
    cli("config", "set", "criteria", "criteria.yml")
    assert json.loads(own_file().read_text().removeprefix("criteria: ")) == str(Path("criteria.yml").absolute())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "tlt", "3"), "unknown setting 'tlt'; did you mean 'ttl'?"),
        (("get", "tlt"), "unknown setting 'tlt'; did you mean 'ttl'?"),
        (("get", "nope"), "unknown setting 'nope'; `aeon-tui config get` lists them\n"),
        (("get", "shell.timeot"), "unknown setting 'shell.timeot'; did you mean 'shell.timeout'?"),
        (("get", "ttl.x"), "'ttl' has no settings below it"),
        (("set", "ttl", "many"), "'ttl' must be a whole number of cycles, 0 or more; got 'many'"),
        (("set", "shell.timeout", "soon"), "'timeout' is 'soon'"),
        (("set", "prices.m.input", "3"), "'prices'"),
        (("set", "model", "claude"), "'claude' has an unknown provider; the known ones are anthropic"),
        (("set", "model", ""), "'' has an unknown provider; the known ones are anthropic"),
        (("set", "model", "openai:"), "'openai:' has no name; write openai:NAME"),
        (("set", "judge_model", "antropic:x"), "did you mean 'anthropic'?"),
        (("set", "tools", "nonsense"), "tools 'nonsense': expected files, shell, mcp or module:attribute"),
        (("set", "tools", "files, a b:c"), "tools 'a b:c': expected files"),
        (("set", "theme", "aeon-drak"), "unknown theme 'aeon-drak'; did you mean 'aeon-dark'?"),
        (("set", "keys", "{run.zoum: Z}"), "the action 'run.zoum' is unknown; did you mean 'run.zoom'?"),
        (("set", "keys.run.zoum", "Z"), "unknown action 'run.zoum'; did you mean 'run.zoom'?"),
        (("set", "keys.run.zoom", ""), "gives 'run.zoom' the key ''; write it as Z, f5 or ctrl+d"),
        (("set", "ttl"), "set needs NAME and VALUE"),
        (("set", "ttl", "3", "--unset"), "set needs NAME and VALUE"),
        (("get", "ttl", "3"), "get takes no value"),
        (("path", "ttl"), "path takes no name"),
        (("set", "ttl", "3", "--json"), "--json needs get"),
        (("sett", "ttl", "3"), "the action must be one of get, set, path; got 'sett'; did you mean 'set'?"),
    ],
)
def test_an_error_is_one_line_and_changes_nothing(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    done = cli("config", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert not own_file().exists()


def test_options_may_come_between_positional_arguments(cli: Cli) -> None:
    assert cli("config", "set", "--project", "ttl", "5").code == 0
    assert PROJECT.read_text() == "ttl: 5\n"
    assert cli("config", "set", "ttl", "--project", "6").code == 0
    assert PROJECT.read_text() == "ttl: 6\n"
    assert "ttl is no longer set in " in cli("config", "set", "--project", "--unset", "ttl").err
    assert "ttl is not set in " in cli("config", "set", "--project", "--unset", "ttl").err
    assert PROJECT.read_text() == ""
    done = cli("config", "get", "--json", "ttl", "5", "6")
    assert (done.code, "unexpected argument '6'" in done.err) == (2, True)


def test_a_key_can_be_set_next_to_a_wrong_one(cli: Cli) -> None:
    own_file().parent.mkdir(parents=True, exist_ok=True)
    own_file().write_text("keys:\n  run.zoum: Z\n")
    assert cli("config", "set", "keys.run.zoom", "Z").code == 0
    assert own_file().read_text() == "keys:\n  run.zoom: Z\n  run.zoum: Z\n"
    done = cli("config", "set", "keys.run.zoom", "nonsense")
    assert (done.code, "'nonsense' for 'run.zoom' is not a key" in done.err) == (2, True)
    assert cli("config", "set", "keys.run.zoum", "--unset").code == 0
    assert own_file().read_text() == "keys:\n  run.zoom: Z\n"


def test_a_project_without_its_own_folder_does_not_get_one(cli: Cli) -> None:
    Path(".aeon").rmdir()
    Path(".git").mkdir()
    done = cli("config", "set", "ttl", "3", "--project")
    assert (done.code, Path(".aeon").exists()) == (2, False)
    assert "run `aeon-tui init` there first" in done.err


def test_get_prints_the_value_and_its_source(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (cli("config", "get", "ttl").out, cli("config", "get", "ttl").err) == ("50\n", "default\n")
    assert cli("config", "get", "approve").err == "default; in the app: pass, tool\n"
    assert (cli("config", "get", "model").out, cli("config", "get", "model").err) == ("", "not set\n")
    PROJECT.write_text("ttl: 9\n")
    assert cli("config", "get", "ttl").err == f"from the file '{PROJECT.absolute()}'\n"
    monkeypatch.setenv("AEON_TTL", "7")
    shown = json.loads(cli("config", "get", "ttl", "--json").out)
    assert shown == {"name": "ttl", "value": 7, "source": "the environment variable AEON_TTL"}
    assert cli("config", "set", "ttl", "8").err.endswith("; the environment variable AEON_TTL overrides it\n")
    everything = json.loads(cli("config", "get", "--json").out)
    assert shown in everything
    assert "ttl             7  from the environment variable AEON_TTL\n" in cli("config", "get").out


def test_get_names_every_file_that_rules_come_from(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    cli("config", "set", "policy.deny", "Bash")
    cli("config", "set", "policy.allow", "Write", "--project")
    shown = cli("config", "get", "policy.deny")
    assert (shown.out, shown.err.splitlines()[0]) == ('["Bash"]\n', f"from the file '{own_file()}'")
    both = f"the file '{own_file()}' and the file '{PROJECT.absolute()}'"
    cli("trust", "--yes")
    assert cli("config", "get", "policy.allow").err == f"from {both}\n"
    cli("config", "set", "policy.ask", "Edit", "--project")
    assert json.loads(cli("config", "get", "policy", "--json").out)["source"] == both
    assert f"from {both}\n" in cli("doctor").out


def test_a_setting_of_the_project_that_needs_trust_is_written_and_not_trusted(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    done = cli("config", "set", "tools", "shell", "--project")
    assert done.err.endswith("; it applies once you trust this project: `aeon-tui trust`\n")
    shown = cli("config", "get", "tools")
    assert shown.out == "[]\n"
    assert "the project's value of tools is ignored until you trust the project" in shown.err
    assert cli("trust", "--yes").code == 0
    assert cli("config", "get", "tools").out == '["shell"]\n'
    cli("config", "set", "tools", "files", "--project")
    assert cli("config", "get", "tools").out == "[]\n"


def test_keys_of_servers_are_never_printed(cli: Cli) -> None:
    cli("config", "set", "mcp_servers.gh", "{command: npx, env: {TOKEN: hunter2hunter2}}")
    done = cli("config", "set", "mcp_servers.gh.env.TOKEN", "correct-horse-battery")
    shown = cli("config", "get"), cli("config", "get", "mcp_servers", "--json")
    for each in (done, *shown):
        assert each.code == 0
        assert "correct-horse" not in each.out + each.err
    assert "correct-horse" in own_file().read_text()


def test_path_names_the_files(cli: Cli) -> None:
    assert cli("config", "path", "--user").out == f"{own_file()}\n"
    assert cli("config", "path", "--project").out == f"{PROJECT.absolute()}\n"
    assert cli("config", "path").out.count("(does not exist)") == 2


def test_path_names_a_file_that_cannot_exist(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", f"/{'x' * 300}")
    done = cli("config", "path")
    assert (done.code, done.out.count("(does not exist)")) == (0, 2)


def test_a_name_with_dots_leads_to_its_keys() -> None:
    assert setting_path("prices.openai:gpt-4.1.input") == ("prices", "openai:gpt-4.1", "input")
    assert setting_path("mcp_servers.gh.env.A.B") == ("mcp_servers", "gh", "env", "A.B")
    assert setting_path("shell.timeout") == ("shell", "timeout")
    with pytest.raises(UsageError):
        setting_path("bedrock.regoin")


def test_a_change_is_reported_although_another_file_cannot_be_read(cli: Cli, tmp_path: Path) -> None:
    done = cli("config", "set", "ttl", "7", "--config", "none.yml")
    assert done.code == 0
    assert done.err.startswith("ttl = 7 in ")
    assert done.err.endswith("; cannot read the config file 'none.yml': No such file or directory\n")
    assert cli("config", "get", "ttl").out == "7\n"
