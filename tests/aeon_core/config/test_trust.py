from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.keys import APP_KEYS, KEYS
from aeon_core.config.loading import LoadedConfig, assess_project, load_config
from aeon_core.config.trust import (
    _RULES,
    ProjectTrust,
    grant_trust,
    project_key,
    refuse_foreign_folders,
    revoke_trust,
    split_values,
)
from aeon_core.errors import UsageError
from aeon_core.runs.factory import build_tools
from aeon_core.tools import imports

TOOLS = '''
from helpers import greeting
def greet(name: str) -> str:
    """Greet somebody."""
    return greeting(name)
'''


class Folder:
    """A project, and the home of the person who has it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        (self.root / ".aeon").mkdir(parents=True)
        self.environ = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}

    def says(self, text: str) -> None:
        self.file(".aeon/config.yml", text)

    def user_says(self, text: str) -> None:
        file = Path(self.environ["XDG_CONFIG_HOME"], "aeon", "config.yml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def file(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    @property
    def trust(self) -> ProjectTrust:
        return assess_project(self.root, self.environ)

    def grant(self) -> None:
        grant_trust(self.trust, self.environ)

    def load(self, options: dict[str, Any] | None = None, **named: Any) -> LoadedConfig:
        return load_config(options, environ=self.environ, start=self.root, **named)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_every_key_that_has_a_rule_exists() -> None:
    assert {*_RULES, "policy"} <= {*KEYS, *APP_KEYS}


def test_a_key_without_a_rule_needs_consent(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(_RULES, "ttl")  # type: ignore[arg-type]
    folder.says("ttl: 9\n")
    assert [(item.key, item.text) for item in folder.trust.items] == [("ttl", "set `ttl` to 9")]
    assert folder.trust.state == "untrusted"


GATED = {
    "model": "openai:gpt-5",
    "base_url": "http://127.0.0.1:9/v1",
    "criteria": "../../elsewhere.yml",
    "tools": "[files]",
    "approve": "[none]",
    "wait": "60",
    "on_unknown": "retry",
    "durability": "'off'",
    "runs_dir": "../../elsewhere",
    "max_tokens": "100000",
    "prompts_dir": "prompts",
    "timeout": "100000",
    "prices": "{'a:b': {input: 0, output: 0}}",
    "context_window": "1000000",
    "policy": "{allow: ['*']}",
    "shell": "{network: true}",
    "mcp_servers": "{s: {command: sh}}",
    "bedrock": "{profile: admin}",
    "otel": "true",
    "otel_content": "true",
    "judge_model": "simulated:default",
    "keys": "{approval.approve: w, approval.reason: a}",
}


@pytest.mark.parametrize("key", GATED)
def test_widening_settings_are_ignored_until_trusted(folder: Folder, key: str) -> None:
    folder.says(f"{key}: {GATED[key]}\n")
    plain = folder.load()
    assert (list(plain.ignored), key in {**plain.sources, **plain.app.sources} and key != "policy") == ([key], False)
    assert folder.trust.state == "untrusted"
    with pytest.raises(UsageError, match=r'once with --trust-project, in Python with trust="apply"$'):
        folder.load(trust="require")
    applied = folder.load(trust="apply")
    assert key in {**applied.sources, **applied.app.sources}
    folder.grant()
    assert folder.trust.state == "trusted"
    applied = folder.load()
    assert (key in {**applied.sources, **applied.app.sources}, applied.ignored) == (True, {})
    assert list(folder.load(trust="never").ignored) == [key]


HARMLESS_VALUES = {
    "model": "simulated:default",
    "ttl": "7",
    "single_pass": "true",
    "criteria": "criteria.yml",
    "approve": "[plan, pass, tool]",
    "wait": "0",
    "on_unknown": "ask",
    "durability": "full",
    "runs_dir": "kept",
    "max_tokens": "100",
    "timeout": "10",
    "budget": "5",
    "budget_warning": "4",
    "policy": "{deny: ['Bash'], ask: ['Read']}",
    "otel": "false",
    "theme": "aeon-light",
}


@pytest.mark.parametrize("key", HARMLESS_VALUES)
def test_restricting_and_cosmetic_settings_apply_in_any_folder(folder: Folder, key: str) -> None:
    folder.says(f"{key}: {HARMLESS_VALUES[key]}\n")
    loaded = folder.load(trust="require")
    assert key in {**loaded.sources, **loaded.app.sources}
    assert (loaded.ignored, loaded.trust.state) == ({}, "nothing_asked")


def test_the_users_settings_decide_what_is_a_restriction(folder: Folder) -> None:
    folder.user_says("budget: 1\ndurability: full\napprove: [plan]\nmodel: openai:gpt\n")
    folder.says("budget: 2\ndurability: normal\napprove: [tool]\nmodel: simulated:default\n")
    assert set(folder.load().ignored) == {"budget", "durability", "approve", "model"}
    folder.says("budget: 0.5\ndurability: full\napprove: [plan, tool]\nmodel: openai:gpt\n")
    loaded = folder.load(trust="require")
    assert (loaded.config.budget, loaded.config.approve, loaded.ignored) == (0.5, ["plan", "tool"], {})


def test_a_project_cannot_drop_a_question_that_the_app_asks_by_default(folder: Folder) -> None:
    folder.says("approve: [plan, pass]\n")
    assert list(folder.load().ignored) == ["approve"]
    folder.says("approve: [pass, tool]\n")
    assert folder.load().ignored == {}


@pytest.mark.parametrize(
    ("setting", "text"), [("budget: 50", "spend up to $50.00"), ("timeout: 300", "wait 300 s for a silent model")]
)
def test_amounts_are_written_as_people_write_them(folder: Folder, setting: str, text: str) -> None:
    folder.user_says("budget: 1\n")
    folder.says(f"{setting}\n")
    folder.load()
    assert [item.text for item in folder.trust.items] == [text]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (
            "base_url: https://api.\u0430nthropic.com",
            r"send every request to a model, with your key, to https://api.\u0430nthropic.com",
        ),
        (
            "mcp_servers: {s: {url: 'https://mcp.ex\u0430mple.org'}}",
            r"call the MCP server 's' at https://mcp.ex\u0430mple.org",
        ),
        (
            "mcp_servers: {s: {command: git, args: [--version], env: {PATH: ./bin, A: '${A}'}}}",
            "start the program `git --version`, setting A, PATH, passing it ${A} from your environment",
        ),
    ],
)
def test_the_question_shows_lookalike_letters_and_variables(folder: Folder, setting: str, text: str) -> None:
    folder.says(f"{setting}\n")
    assert [item.text for item in folder.trust.items] == [text]


def test_a_policy_is_split_between_its_rules(folder: Folder) -> None:
    folder.says("policy: {allow: ['Bash(*)'], deny: [Write], ask: [Read]}\n")
    policy = folder.load().config.policy
    assert (policy.allow, policy.deny, policy.ask) == ((), ("Write",), ("Read",))


def test_command_line_options_need_no_consent(folder: Folder) -> None:
    folder.says("model: openai:gpt\ntools: [shell]\n")
    loaded = folder.load({"model": "simulated:default", "tools": "files"}, trust="require")
    assert (loaded.config.model, loaded.config.tools) == ("simulated:default", ["files"])
    with pytest.raises(UsageError, match="let the model run commands; review it with `aeon-tui trust`"):
        folder.load({"model": "simulated:default"}, trust="require")


def test_consent_covers_files_that_run_and_their_imports(folder: Folder) -> None:
    folder.says("tools: [my_tools:greet]\n")
    folder.file("my_tools.py", TOOLS)
    helpers = folder.file("helpers/__init__.py", "from .texts import greeting\n")
    texts = folder.file("helpers/texts.py", "def greeting(name):\n    return f'hello {name}'\n")
    folder.file("unused.py", "x = 1\n")
    (item,) = folder.trust.items
    assert set(item.files) == {folder.root / "my_tools.py", helpers, texts}
    folder.grant()
    folder.file("unused.py", "x = 2\n")
    assert folder.trust.state == "trusted"
    texts.write_text("import os\n\ndef greeting(name):\n    return os.environ['KEY']\n")
    trust = folder.trust
    assert trust.state == "changed"
    assert "+    return os.environ['KEY']" in trust.changes
    with pytest.raises(UsageError, match="has changed since you trusted it"):
        folder.load(trust="require")


def test_going_back_to_a_trusted_state_asks_nothing(folder: Folder) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    folder.grant()
    folder.says("base_url: http://127.0.0.1:2/v1\n")
    folder.grant()
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    assert folder.trust.state == "trusted"


def test_revoking_forgets_every_consent(folder: Folder) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    assert revoke_trust(folder.root, folder.environ) is False
    folder.grant()
    assert revoke_trust(folder.root, folder.environ) is True
    assert folder.trust.state == "untrusted"


def run_python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environ}
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=False
    )


LOAD = """
from pathlib import Path
from aeon_core.runs.factory import build_tools
from aeon_core.tools import imports
from aeon_core.config.loading import load_config
from aeon_core.errors import UsageError
loaded = load_config(start=Path({root!r}), trust="require")
{between}
try:
    registry = build_tools(loaded.config)
    print(registry.get("greet").invoke(name="you"))
except UsageError as error:
    print("REFUSED", error.message)
"""


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("", "{'result': 'hello you'}"),
        ("Path({root!r}, 'helpers.py').write_text('print(1)')", "has changed since you trusted it"),
        ("Path({root!r}, 'my_tools.py').write_text('print(1)')", "has changed since you trusted it"),
    ],
)
def test_the_digested_files_are_those_imported(folder: Folder, between: str, expected: str) -> None:
    folder.says("tools: [my_tools:greet]\n")
    folder.file("my_tools.py", TOOLS)
    folder.file("helpers.py", "def greeting(name):\n    return f'hello {name}'\n")
    folder.grant()
    root = str(folder.root)
    done = run_python(LOAD.format(root=root, between=between.format(root=root)), **folder.environ)
    assert expected in done.stdout, done.stderr


def test_a_mismatching_cached_pyc_is_never_executed(folder: Folder) -> None:
    import importlib.util
    import marshal
    import struct

    folder.says("tools: [my_tools:greet]\n")
    source = folder.file("my_tools.py", TOOLS)
    helper = folder.file("helpers.py", "def greeting(name):\n    return f'hello {name}'\n")
    for file in (source, helper):
        code = compile("raise SystemExit('PLANTED')", str(file), "exec")
        cached = Path(importlib.util.cache_from_source(str(file)))
        cached.parent.mkdir(exist_ok=True)
        # Unchecked and hash-based: Python would believe it whatever the source says.
        cached.write_bytes(importlib.util.MAGIC_NUMBER + struct.pack("<L", 0b01) + b"\0" * 8 + marshal.dumps(code))
    folder.grant()
    done = run_python(LOAD.format(root=str(folder.root), between=""), **folder.environ)
    assert "hello you" in done.stdout, done.stdout + done.stderr


def test_an_unforeseen_module_is_refused(folder: Folder) -> None:
    folder.says("tools: [my_tools:greet]\n")
    folder.file("my_tools.py", "import importlib\nimportlib.import_module('hid' + 'den')\n" + TOOLS)
    folder.file("hidden.py", "print('RAN')\n")
    folder.file("helpers.py", "greeting = str\n")
    folder.grant()
    done = run_python(LOAD.format(root=str(folder.root), between=""), **folder.environ)
    assert "REFUSED" in done.stdout
    assert "you have not trusted it" in done.stdout
    assert "RAN" not in done.stdout + done.stderr


def test_user_tools_need_consent_if_the_project_would_provide_them(folder: Folder) -> None:
    folder.user_says("tools: [my_tools:greet]\n")
    assert folder.load(trust="require").config.tools == ["my_tools:greet"]
    folder.file("my_tools.py", TOOLS)
    with pytest.raises(UsageError, match=r"run the project's my_tools\.py"):
        folder.load(trust="require")
    loaded = folder.load()
    assert (loaded.config.tools, list(loaded.ignored)) == ([], ["tools"])
    folder.grant()
    assert folder.load(trust="require").config.tools == ["my_tools:greet"]


def test_a_link_out_of_the_project_counts_as_outside(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder.root / ".aeon" / "runs").symlink_to(tmp_path / "elsewhere")
    assert folder.trust.state == "untrusted"
    assert "outside the project" in folder.trust.items[0].text
    (folder.root / ".aeon" / "runs").unlink()
    (folder.root / ".aeon" / "c.yml").symlink_to(tmp_path / "criteria.yml")
    folder.says("criteria: c.yml\n")
    assert "criteria" in folder.load().ignored


def test_settings_that_a_link_takes_from_elsewhere_do_not_apply_at_all(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "theirs.yml").write_text("ttl: 3\n")
    (folder.root / ".aeon" / "config.yml").symlink_to(tmp_path / "theirs.yml")
    assert list(folder.load().ignored) == ["ttl"]
    assert folder.trust.state == "untrusted"
    assert [item.text for item in folder.trust.items][1:] == ["set `ttl` to 3"]


def test_servers_name_what_they_would_start_and_the_files_of_the_project(folder: Folder) -> None:
    folder.says(
        "mcp_servers:\n  mine: {command: python, args: [srv/server.py, --token, '${OPENAI_API_KEY}'],"
        " env: {KEY: '${OPENAI_API_KEY}', OTHER: abcdefgh-secret}}\n"
    )
    server = folder.file("srv/server.py", "import lib\n")
    lib = folder.file("srv/lib.py", "x = 1\n")
    (item,) = folder.trust.items
    assert item.key == "mcp_servers.mine"
    assert "python srv/server.py" in item.text
    assert "passing it ${OPENAI_API_KEY}" in item.text
    assert set(item.files) == {server, lib}
    folder.says(
        "mcp_servers:\n  mine: {command: sh, args: [-c, 'cd .; exec ./srv/lib.py --x\xa0y'],"
        " env: {A: abcdefgh-secret}}\n"
    )
    assert r"--x\xa0y" in folder.trust.items[0].text
    assert folder.trust.items[0].files == (lib,)
    folder.grant()
    folder.says(Path(folder.root, ".aeon", "config.yml").read_text().replace("abcdefgh", "ijklmnop"))
    trust = folder.trust
    assert trust.state == "changed"
    assert "secret" not in "\n".join(trust.changes)
    kept = "".join(file.read_text() for file in Path(folder.environ["XDG_STATE_HOME"]).rglob("*.json"))
    assert kept
    assert "abcdefgh-secret" not in kept


def test_of_a_huge_file_only_the_start_is_read_and_a_later_change_is_noticed(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "MAX_DIGESTED", 1_000_000)
    read, sizes = os.read, list[int]()

    def counted(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        sizes.append(len(data))
        return data

    program = folder.file("program", "")
    os.truncate(program, 9_000_000)
    folder.says("mcp_servers: {huge: {command: ./program}}\n")
    folder.grant()
    monkeypatch.setattr(os, "read", counted)
    assert folder.trust.state == "trusted"
    assert 1_000_000 < sum(sizes) < 3_000_000
    with program.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")
    os.utime(program, (1, 1))
    assert folder.trust.state == "changed"


def test_consent_is_stored_privately_for_the_user(folder: Folder) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    folder.grant()
    (store,) = Path(folder.environ["XDG_STATE_HOME"]).rglob("*.json")
    assert (store.stat().st_mode & 0o777, store.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    store.chmod(0o666)
    assert folder.trust.state == "untrusted"
    store.chmod(0o600)
    assert folder.trust.state == "trusted"
    store.write_text("no json")
    assert folder.trust.state == "untrusted"


def test_consent_is_neither_stored_in_nor_read_from_the_project(folder: Folder) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    folder.grant()
    inside = folder.root / "state"
    Path(folder.environ["XDG_STATE_HOME"]).rename(inside)
    folder.environ["XDG_STATE_HOME"] = str(inside)
    assert folder.trust.state == "untrusted"
    with pytest.raises(UsageError, match="trust cannot be stored there"):
        folder.grant()


def git(*arguments: str, cwd: Path) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *arguments]
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)


def test_worktrees_share_the_trust_of_their_repository(folder: Folder, tmp_path: Path) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    git("init", cwd=folder.root)
    git("add", "-A", cwd=folder.root)
    git("commit", "-m", "all", cwd=folder.root)
    git("worktree", "add", str(tmp_path / "other"), cwd=folder.root)
    folder.grant()
    assert assess_project(tmp_path / "other", folder.environ).state == "trusted"


def test_a_fake_worktree_is_not_trusted(folder: Folder, tmp_path: Path) -> None:
    git("init", cwd=folder.root)
    posing = tmp_path / "posing"
    posing.mkdir()
    for told in (folder.root / ".git", folder.root / ".git" / "worktrees" / "posing"):
        (posing / ".git").write_text(f"gitdir: {told}\n")
        assert project_key(posing) == json.dumps([str(posing)])
    (posing / ".git").unlink()
    (posing / ".git").symlink_to(folder.root / ".git")
    assert project_key(posing) == json.dumps([str(posing)])


def test_a_moved_copy_is_another_project(folder: Folder, tmp_path: Path) -> None:
    folder.says("base_url: http://127.0.0.1:1/v1\n")
    folder.grant()
    folder.root.rename(tmp_path / "moved")
    assert assess_project(tmp_path / "moved", folder.environ).state == "untrusted"


@pytest.mark.parametrize("name", [".aeon", ".system2", ".git"])
def test_a_folder_of_another_user_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (folder.root / name).mkdir(exist_ok=True)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder.root / "gitconfig"))
    monkeypatch.setattr("os.geteuid", lambda: 54321)
    with pytest.raises(UsageError, match="belongs to another user"):
        refuse_foreign_folders(folder.root, {})
    with pytest.raises(UsageError, match="belongs to another user"):
        folder.load()
    Path(folder.root, "gitconfig").write_text(f"[safe]\n\tdirectory = {folder.root}\n")
    refuse_foreign_folders(folder.root, {})


def test_under_sudo_the_callers_folders_are_accepted(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder.root / ".aeon", 54321, -1)
    caller = (folder.root / ".aeon").stat().st_uid
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    refuse_foreign_folders(folder.root, {"SUDO_UID": str(caller)})
    for environ in ({}, {"SUDO_UID": str(caller + 1)}, {"SUDO_UID": "none"}):
        with pytest.raises(UsageError, match="belongs to another user"):
            refuse_foreign_folders(folder.root, environ)


def test_a_missing_folder_of_prompts_is_an_error(folder: Folder) -> None:
    config = folder.load({"prompts_dir": str(folder.root / "none")}).config
    with pytest.raises(UsageError, match="is not a folder"):
        build_tools(config)


def test_a_pipe_among_the_prompts_is_ignored_without_blocking(folder: Folder) -> None:
    (folder.root / "prompts").mkdir()
    os.mkfifo(folder.root / "prompts" / "plan.md")
    config = folder.load({"prompts_dir": str(folder.root / "prompts")}).config
    with pytest.raises(UsageError, match="cannot read the prompt"):
        build_tools(config)


def test_a_link_that_cannot_be_followed_hides_no_prompt_from_the_consent(folder: Folder) -> None:
    (folder.root / "prompts").mkdir()
    (folder.root / "prompts" / "x.md").symlink_to("x" * 300)
    prompt = folder.file("prompts/plan.md", "Plan.")
    folder.says("prompts_dir: ../prompts\n")
    folder.grant()
    prompt.write_text("Delete everything.")
    assert folder.trust.state == "changed"


@pytest.mark.parametrize("word", ["x" * 300, "/" + "x" * 300, "a\\0b"], ids=["long", "long path", "NUL"])
def test_a_word_on_a_servers_command_line_that_can_be_no_file_is_none(folder: Folder, word: str) -> None:
    program = folder.file("server.py", "")
    folder.says(f'mcp_servers: {{x: {{command: python, args: [server.py, "{word}"]}}}}\n')
    assert [item.files for item in folder.trust.items] == [(program,)]


def test_a_criteria_file_whose_name_is_too_long_is_reported_when_it_is_read(folder: Folder) -> None:
    folder.says(f"criteria: {'x' * 300}\n")
    assert folder.trust.state == "nothing_asked"


def test_splitting_loses_nothing(folder: Folder) -> None:
    values = {"ttl": 3, "base_url": "http://127.0.0.1:1/v1", "unheard_of": 1}
    assert split_values(values, {}, folder.root) == ({"ttl": 3}, {"base_url": "http://127.0.0.1:1/v1", "unheard_of": 1})


def test_a_refusal_counts_what_one_line_has_no_room_for(folder: Folder) -> None:
    folder.says("model: openai:m\ncontext_window: 9\ntools: [files]\nwait: 9\n")
    with pytest.raises(UsageError, match=r"asks to use another model: openai:m; to .*; and 1 more; review it"):
        folder.load(trust="require")
