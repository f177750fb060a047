from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pydantic import ValidationError

from aeon_core.errors import ToolError, UsageError
from aeon_core.tools.base import CallVerdict
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import Schema
from aeon_core.tools.shell import bash, isolation
from aeon_core.tools.shell.bash import BashTool, remove_all, shell_tools
from aeon_core.tools.shell.isolation import Isolation
from aeon_core.tools.shell.settings import ShellSettings
from tests.waiting import wait_until

OPEN = Isolation("none", network=True, why="a test")
SHUT = Isolation("landlock", network=False)
BLOCKED = {"command": "git push --force"}


@pytest.fixture
def tool(tmp_path: Path) -> BashTool:
    return BashTool(tmp_path, isolation=OPEN)


def test_the_result_holds_both_streams_and_the_code(tool: BashTool) -> None:
    result = tool.invoke("echo out; echo err >&2; exit 3")
    assert result == {
        "stdout": "out\n",
        "stderr": "err\n",
        "exit_code": 3,
        "exit_code_of": "exit 3",
        "timed_out": False,
        "truncated": False,
        "isolation": "none",
    }
    assert Schema(tool.output_schema).errors(result) == []


def test_it_runs_in_the_project_not_in_the_working_directory(
    tool: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    assert tool.invoke("pwd")["stdout"] == f"{tmp_path}\n"


def test_it_registers_as_an_unsafe_tool_that_needs_approval(tmp_path: Path) -> None:
    registry = ToolRegistry()
    for made in shell_tools(tmp_path, isolation=OPEN):
        registry.register(made)
    found = registry.get("Bash")
    assert found is not None
    assert (found.effect, found.needs_approval) == ("unsafe", True)
    assert "no network" in found.description


def test_the_settings_bound_the_time_out(tmp_path: Path) -> None:
    schema = Schema(BashTool(tmp_path, ShellSettings(max_timeout=200), OPEN).input_schema)
    assert schema.errors({"command": "ls", "timeout": 200, "description": "List."}) == []
    assert schema.errors({"command": "ls", "timeout": 201})
    assert schema.errors({"command": ""})
    assert schema.errors({"command": "ls", "cwd": "/"})


def test_a_timeout_is_reported_in_the_result(tool: BashTool) -> None:
    result = tool.invoke("echo begun; sleep 20", timeout=1.5)
    assert (result["stdout"], result["exit_code"], result["timed_out"]) == ("begun\n", 124, True)
    assert result["notices"] == ["the command was stopped after 1.5 seconds; a longer 'timeout' is possible"]


def test_a_long_output_is_cut_and_kept_whole_in_a_private_file(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, ShellSettings(output_dir=tmp_path / "outputs"), OPEN)
    result = tool.invoke("seq 1 50000")
    assert result["truncated"] is True
    assert len(result["stdout"]) < 103_000
    assert result["stdout"].startswith("1\n2\n")
    assert result["stdout"].endswith("\n49999\n50000\n")
    whole = Path(result["output_file"])
    assert f"[TRUNCATED] 186494 bytes left out; the whole output is in {whole}\n" in result["stdout"]
    assert whole.read_text() == "".join(f"{number}\n" for number in range(1, 50001))
    assert (whole.parent, whole.parent.stat().st_mode & 0o777) == (tmp_path / "outputs", 0o700)


def test_secrets_of_the_environment_do_not_reach_the_command(
    tool: BashTool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "x" * 30)
    monkeypatch.setenv("NPM_TOKEN", "abc")
    assert tool.invoke("env | grep -E 'OPENAI|NPM'")["stdout"] == ""
    allowing = BashTool(tmp_path, ShellSettings(env=("NPM_TOKEN",)), OPEN)
    assert allowing.invoke("env | grep -E 'OPENAI|NPM'")["stdout"] == "NPM_TOKEN=abc\n"


def test_start_up_files_are_not_read(tool: BashTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hook").write_text("echo hooked")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "hook"))
    assert tool.invoke("echo only")["stdout"] == "only\n"


def test_strict_mode_refuses_what_the_blocklist_matches(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, isolation=SHUT)
    verdict = tool.verdict(BLOCKED)
    assert verdict is not None
    assert verdict.answer == "deny"
    for part in ("'git push --force' matches", "pattern 'push --force'", "with safety_mode 'permissive' you are asked"):
        assert part in verdict.reason
    with pytest.raises(ToolError) as caught:
        tool.invoke(**BLOCKED)
    assert caught.value.message == verdict.reason


def test_permissive_mode_asks_and_then_runs(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, ShellSettings(safety_mode="permissive"), OPEN)
    verdict = tool.verdict(BLOCKED)
    assert verdict is not None
    assert verdict.answer == "ask"
    assert "push" in verdict.reason
    assert tool.invoke(**BLOCKED)["exit_code"] != 0


def test_a_custom_pattern_is_added(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, ShellSettings(blocklist=("terraform destroy",)), SHUT)
    verdict = tool.verdict({"command": "terraform destroy -auto-approve"})
    assert verdict is not None
    assert (verdict.answer, "terraform destroy" in verdict.reason) == ("deny", True)
    assert tool.verdict(BLOCKED) is not None


def test_a_bad_pattern_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        BashTool(tmp_path, ShellSettings(blocklist=("(",)))


def test_a_harmless_command_in_isolation_is_left_to_the_rules(tmp_path: Path) -> None:
    assert BashTool(tmp_path, isolation=SHUT).verdict({"command": "ls"}) is None


def test_without_isolation_every_command_is_asked_about(tool: BashTool) -> None:
    assert tool.verdict({"command": "ls"}) == CallVerdict(
        "ask", "no isolation is available (a test): every command needs approval"
    )


@pytest.mark.parametrize(
    ("command", "place"),
    [("uv run pytest", ".venv/bin"), ("cd . && poetry run pytest", ".venv/bin"), ("npx jest", "node_modules/.bin")],
)
def test_a_program_in_an_environment_is_asked_about_with_the_way_to_allow_it(
    tool: BashTool, tmp_path: Path, command: str, place: str
) -> None:
    def reason(line: str) -> str:
        verdict = tool.verdict({"command": line})
        assert verdict is not None
        return verdict.reason

    assert reason(command).endswith("is not read: no rule can allow that")
    (tmp_path / place).mkdir(parents=True)
    assert reason(command).endswith(f", but one can allow programs that are run by their path in {place}")
    assert reason("xargs rm").endswith("is not read: no rule can allow that")
    assert "no rule can" not in reason(f"{place}/pytest -q")


def test_rules_see_each_simple_command(tool: BashTool) -> None:
    parts = tool.parts({"command": "git status && ls -l | wc -l", "timeout": 5})
    assert parts == [
        {"command": "git status", "timeout": 5},
        {"command": "ls -l", "timeout": 5},
        {"command": "wc -l", "timeout": 5},
    ]
    assert tool.parts({"command": "$PROGRAM --now"}) is None


def test_a_failure_for_lack_of_network_is_explained(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, isolation=SHUT)
    if isolation.fault_of(SHUT, tmp_path):
        pytest.skip("Landlock does not hold on this machine")
    fails = "echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6"
    go = "echo 'dial tcp: lookup proxy.golang.org on [::1]:53: read udp [::1]:5->[::1]:53: connection refused'; exit 1"
    for command in (fails, fails.replace(">&2", ""), f"({fails}) 2>&1 | tail -3", f"({fails}); echo $?", go):
        result = tool.invoke(command)
        assert result["notices"] == ["commands have no network here; a person can allow it in the shell settings"]
    for command in ("echo FileNotFoundError >&2; exit 6", "echo Could not resolve host | cat", f"({fails}) || true"):
        assert "notices" not in tool.invoke(command)


@pytest.mark.parametrize("network", [True, False])
def test_npm_that_downloads_has_a_cache_it_can_write(
    tmp_path: Path, network: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("npm_config_cache", "/home/own/cache")
    command = 'mkdir -p "$npm_config_cache/tmp" && echo "${npm_config_cache#$TMPDIR}"'
    tool = BashTool(tmp_path, ShellSettings(network=network))
    if tool.isolation.name == "none":
        pytest.skip("no isolation works here")
    assert (tool.invoke(command)["stdout"] == "/cache/npm\n") is network
    named = BashTool(tmp_path, ShellSettings(network=network, env=("npm_config_cache",)))
    assert named.invoke("echo $npm_config_cache")["stdout"] == "/home/own/cache\n"


@pytest.mark.parametrize(("network", "retries"), [(True, ""), (False, "0")])
def test_npm_without_network_fails_at_once(
    tmp_path: Path, network: bool, retries: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("npm_config_fetch_retries", raising=False)
    tool = BashTool(tmp_path, ShellSettings(network=network))
    if tool.isolation.name == "none":
        pytest.skip("no isolation works here")
    assert tool.invoke("echo $npm_config_fetch_retries")["stdout"] == f"{retries}\n"


def test_a_commit_starts_no_housekeeping_that_would_be_ended_with_the_command(tool: BashTool, tmp_path: Path) -> None:
    tool.invoke("git init -q; git config gc.auto 1; git config user.name a; git config user.email a@example.org")
    result = tool.invoke("for n in $(seq 600); do echo $n > $n; done; git add .; git commit -qm x")
    assert (result["exit_code"], result["stderr"]) == (0, "")
    assert "size-pack: 0" in tool.invoke("git count-objects -v")["stdout"]
    assert sorted(path.name for path in (tmp_path / ".git").glob("gc.*")) == []


READ_ONLY = """
import os, pathlib, tempfile
from aeon_core.tools.shell.bash import remove_all
if os.geteuid() == 0:
    os.seteuid(65534)
base = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
other = base.with_name(base.name + "-other")
other.mkdir(mode=0o500)
(base / "mod/deep").mkdir(parents=True)
(base / "mod/deep/file").touch(mode=0o444)
(base / "mod/link").symlink_to(other)
(base / "mod/deep").chmod(0o555)
(base / "mod").chmod(0o000)
remove_all(base)
print(base.exists(), oct(other.stat().st_mode))
other.rmdir()
"""


def test_temporary_files_are_removed_however_deep_they_are(tmp_path: Path) -> None:
    (tmp_path / "base/d/e").mkdir(parents=True)
    (tmp_path / "base/d/file").touch()
    here = os.open(tmp_path / "base", os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("nested", dir_fd=here)
        below = os.open("nested", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_all(tmp_path / "base")
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_are_removed_although_their_folders_are_read_only() -> None:
    done = subprocess.run([sys.executable, "-c", READ_ONLY], capture_output=True, text=True, cwd="/", check=False)
    assert (done.stdout, done.stderr) == ("False 0o40500\n", "")


def test_a_command_that_would_configure_aeon_is_reported(tool: BashTool) -> None:
    told = "the command changed '.aeon', which configures future Aeon runs: check it before it is used"
    assert tool.invoke("mkdir .aeon")["notices"] == [told]
    assert tool.invoke("touch .aeon/config.yml")["notices"] == [told]
    assert "notices" not in tool.invoke("mkdir .aeon/runs; touch .aeon/runs/x; cat .aeon/config.yml")


def test_a_changed_configuration_of_git_is_reported(tool: BashTool, tmp_path: Path) -> None:
    root = tool._root
    (root / ".git").mkdir()
    (root / ".git/config").write_text("")
    assert "notices" not in tool.invoke("cat .git/config; touch .git/index")
    assert "'.git/config'" in tool.invoke("echo x >> .git/config")["notices"][0]
    assert "'.git/commondir'" in tool.invoke("echo ../x > .git/commondir")["notices"][0]


def test_a_project_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the project root '.*gone' is not a folder; create it or choose another"):
        BashTool(tmp_path / "gone", isolation=OPEN).invoke("ls")


def test_closing_ends_a_running_command_and_a_later_one_runs(tool: BashTool, tmp_path: Path) -> None:
    def close() -> None:
        wait_until((tmp_path / "begun").exists)
        tool.close()

    threading.Thread(target=close, daemon=True).start()
    with pytest.raises(ToolError, match="the command was stopped because the tool was closed"):
        tool.invoke("touch begun; sleep 600")
    assert tool.invoke("echo again")["stdout"] == "again\n"


def test_temporary_files_are_removed_with_the_tool(tmp_path: Path) -> None:
    tool = BashTool(tmp_path, isolation=OPEN)
    place = Path(tool.invoke('touch "$TMPDIR/file"; echo -n "$TMPDIR"')["stdout"])
    assert (place / "file").exists()
    del tool
    assert not place.exists()


def test_a_glob_matches_no_name_that_looks_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "--pre=.").mkdir()
    for name in ("--pre=sh", "-rf", "a", ".hidden", "--pre=./b"):
        (tmp_path / name).touch()
    run = BashTool(tmp_path, isolation=OPEN).invoke
    assert run("echo *; echo [!a]*; echo */b; echo ./*\necho $LINENO")["stdout"].split("\n") == [
        "a", "[!a]*", "*/b", "./--pre=. ./--pre=sh ./-rf ./a", "2", "",
    ]  # fmt: skip
    assert run("bash -c 'echo *'; env | grep GLOB")["stdout"] == "--pre=. --pre=sh -rf a\n"


def test_the_isolation_is_tried_out_only_when_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[Path] = []
    monkeypatch.setattr(bash, "probe", lambda root, settings: probed.append(root) or OPEN)
    tool = BashTool(tmp_path)
    assert probed == []
    assert [tool.isolation, tool.isolation] == [OPEN, OPEN]
    assert probed == [tmp_path]


@pytest.mark.parametrize(
    "settings",
    [{"timeout": 0}, {"timeout": 700}, {"safety_mode": "off"}, {"sandbox": True}],
    ids=["zero", "beyond", "mode", "unknown"],
)
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ShellSettings.model_validate(settings)
