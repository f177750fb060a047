"""What a command reads of the user's home, by every way of isolation that holds here."""

# ruff: noqa: E501  # one attack a line
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from aeon_core.tools.shell import secret_paths
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.secret_paths import hidden_paths, visible_paths
from tests.aeon_core.tools.shell.rungs import RUNGS, said, tool_in, words
from tests.sampling import sample

SECRETS = words(
    """
    .bashrc .bash_profile .profile .zshrc .zshenv .zprofile .env .envrc .gitconfig .netrc .npmrc .pypirc
    .authinfo .authinfo.gpg .rclone.conf .sops.yaml .git-credentials .my.cnf .pgpass .vault-token .boto .s3cfg
    .bash_history .zsh_history .psql_history .python_history .node_repl_history .wgetrc .curlrc .screenrc
    .tmux.conf .yarnrc.yml .terraformrc .claude.json .netrc.gpg .ssh/id_ed25519 .ssh/config .aws/credentials
    .azure/accessTokens.json .gnupg/secring.gpg .kube/config .docker/config.json .config/gh/hosts.yml
    .config/rclone/rclone.conf .config/sops/age/keys.txt .config/aeon/config.yml .config/op/config
    .config/gcloud/credentials.db .config/git/credentials .config/fish/config.fish .config/pip/pip.conf
    .cursor/mcp.json .claude/settings.json .codex/auth.json .gemini/oauth_creds.json .aider.conf.yml
    .continue/config.json .mozilla/key4.db .local/share/uv/credentials/keys.toml .local/share/atuin/key
    .local/share/keyrings/login.keyring .local/share/fish/fish_history .local/state/aeon/runs/x.jsonl
    .cargo/credentials.toml .cargo/credentials .m2/settings.xml .gem/credentials .gradle/gradle.properties
    .pub-cache/credentials.json .hex/hex.config .nuget/NuGet/NuGet.Config .cache/huggingface/token
    .cache/gh/token .rustup/.netrc .pyenv/.env .nvm/.npmrc .local/bin/.env .password-store/x.gpg .step/secrets
    .sops .oci/config .pulumi/credentials.json Documents/taxes.txt notes.txt
    """
)
SEEN = words(
    """
    .cargo/bin/tool .cargo/registry/index .rustup/toolchains/x .pyenv/versions/x .nvm/versions/x
    .local/bin/tool .local/lib/python3/site-packages/x .local/share/uv/tools/x .local/share/pipx/venvs/x
    .m2/repository/x .go/ignored go/pkg/mod/x .cache/pip/x .cache/uv/x .cache/pre-commit/x
    .sdkman/candidates/x .volta/bin/x .asdf/shims/x .bun/bin/bun .deno/bin/deno .config/git/ignore
    """
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for name in (*SECRETS, *SEEN):
        place = home / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("SECRET " if name in SECRETS else "seen ")
    (home / "project/.git").mkdir(parents=True)
    (home / "other").mkdir()
    (home / "other/.env").write_text("SECRET ")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.mark.exhaustive
@pytest.mark.parametrize("rung", RUNGS)
def test_only_toolchains_in_the_home_folder_are_readable(home: Path, rung: str) -> None:
    tool = tool_in(rung, home / "project")
    for way in (
        f"cat {' '.join(f'~/{name}' for name in SECRETS)} ~/other/.env",
        "grep -rh SECRET ~",
        "tar c ~ | tr -d '\\0'",
    ):
        assert "SECRET" not in tool.invoke(way, timeout=60)["stdout"]
    seen = [name for name in SEEN if name != ".go/ignored"]
    assert tool.invoke(f"cat {' '.join(f'~/{name}' for name in seen)}")["stdout"] == "seen " * len(seen)


@pytest.mark.parametrize("rung", sample(RUNGS))
def test_a_link_in_a_loop_stops_no_command(home: Path, monkeypatch: pytest.MonkeyPatch, rung: str) -> None:
    for loop in (home / ".local/bin/loop", home / "project/.venv", home / ".ssh/loop", home / "keys"):
        loop.symlink_to(loop.name)
    monkeypatch.setenv("PATH", f"{home}/.local/bin:{home}/keys:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", f"{home}/keys")
    assert tool_in(rung, home / "project").invoke("echo works")["stdout"] == "works\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("rung", sample(RUNGS))
@pytest.mark.parametrize(
    "way",
    [
        "cat ~/.ssh/id_ed25519",
        "cat $(echo ~)/.ss?/id*",
        "cat ../.ssh/id_ed25519",
        "cat /proc/self/cwd/../.ssh/id_ed25519",
        "cat /proc/self/root/$HOME/.ssh/id_ed25519",
        "cat /proc/$PPID/root/$HOME/.ssh/id_ed25519",
        "cat /proc/1/root/$HOME/.ssh/id_ed25519",
        "ln -s ~/.ssh x; cat x/id_ed25519",
        "ln ~/.ssh/id_ed25519 x; cat x",
        "cp -r ~/.ssh x; cat x/*",
        "mv ~/.ssh x; cat x/*",
        "cd ~/.ssh && cat id_ed25519",
        "exec 3<~/.ssh/id_ed25519; cat <&3",
        "python3 -c 'import os; print(open(os.path.expanduser(\"~/.ssh/id_ed25519\")).read())'",
        "head -c 99 < $HOME/.ssh/id_ed25519",
        "git hash-object -w ~/.ssh/id_ed25519 && git cat-file -p $(git hash-object ~/.ssh/id_ed25519)",
        "git -c core.pager=cat diff --no-index /dev/null ~/.ssh/id_ed25519",
        "umount ~ ; umount -l ~/.ssh; cat ~/.ssh/id_ed25519",
        "mkdir -p .venv/bin; mkdir venv; echo \"home = $HOME/.ssh/x\" > venv/pyvenv.cfg; cat ~/.ssh/id_ed25519",
        "mkdir -p node_modules/.bin; ln -s ~/.ssh/id_ed25519 node_modules/.bin/x; cat node_modules/.bin/x",
    ],
)  # fmt: skip
def test_keys_are_unreachable(home: Path, rung: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{home}/project/node_modules/.bin:{home}/project/venv/bin:{os.environ['PATH']}")
    tool = tool_in(rung, home / "project")
    assert "SECRET" not in said(tool, way)
    assert "SECRET" not in said(tool, "cat x/* x node_modules/.bin/x ~/.ssh/*")


@pytest.mark.parametrize("rung", RUNGS)
def test_other_homes_and_temporary_files_are_hidden(home: Path, rung: str, tmp_path: Path) -> None:
    (tmp_path / "of-others").write_text("SECRET")
    tool = tool_in(rung, home / "project")
    assert "SECRET" not in said(tool, f"cat {tmp_path}/of-others")
    listed = said(tool, "ls -A ~root /home 2>/dev/null").split()
    assert not {".bashrc", ".profile", ".gitconfig", ".claude", ".npmrc", ".ssh"} & set(listed)
    assert said(tool, "ls -A /run/user 2>/dev/null") == ""
    assert "root:" not in said(tool, "cat /etc/shadow /etc/gshadow")


@pytest.mark.exhaustive
@pytest.mark.parametrize("rung", RUNGS)
def test_a_home_that_is_the_project_keeps_its_keys(home: Path, rung: str) -> None:
    (home / ".github").mkdir()
    (home / ".github/ci.yml").write_text("seen")
    tool = tool_in(rung, home)
    keys = [name for name in SECRETS if name.startswith(".")]
    assert "SECRET" not in said(tool, f"cat {' '.join(keys)}; tar c .??* | tr -d '\\0'; mv .ssh x; cat x/*")
    assert said(tool, "cat .github/ci.yml notes.txt && echo new > made") == "seenSECRET"
    assert said(tool, "cat made") == "new"


@pytest.mark.parametrize("rung", RUNGS)
def test_a_program_below_the_home_runs_with_what_it_needs(
    home: Path, rung: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = home / "work/env"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "bin").mkdir()
    (prefix / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (prefix / "lib/data").write_text("data\n")
    (prefix / "bin/tool").write_text(f"#!/bin/sh\ncat {prefix}/lib/data\n")
    (prefix / "bin/tool").chmod(0o755)
    (home / "apps/v2").mkdir(parents=True)
    (home / "apps/v2/linked").write_text("#!/bin/sh\necho linked\n")
    (home / "apps/v2/linked").chmod(0o755)
    (home / ".local/bin/linked").symlink_to(home / "apps/v2/linked")
    monkeypatch.setenv("PATH", f"{prefix}/bin:{home}/.local/bin:{os.environ['PATH']}")
    assert said(tool_in(rung, home / "project"), "tool; linked") == "data\nlinked"


@pytest.mark.parametrize("rung", RUNGS)
def test_a_program_on_the_path_below_tmp_runs_and_the_rest_of_tmp_is_hidden(
    home: Path, rung: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        for name in ("env/bin", "env/lib"):
            (Path(folder) / name).mkdir(parents=True)
        (Path(folder) / "env/pyvenv.cfg").write_text("home = /usr/bin\n")
        (Path(folder) / "env/lib/data").write_text("data\n")
        (Path(folder) / "secret").write_text("SECRET")
        tool = Path(folder) / "env/bin/tool"
        tool.write_text(f"#!/bin/sh\ncat {folder}/env/lib/data {folder}/secret\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}/env/bin:/tmp:{os.environ['PATH']}")
        bash = tool_in(rung, home / "project")
        assert said(bash, "tool 2>/dev/null; echo x > $TMPDIR/x && cat $TMPDIR/x") == "data\nx"
        shown, _ = visible_paths([], [], os.environ, home / "project")
        assert Path("/tmp") not in shown
        assert Path(folder, "env") in shown


@pytest.mark.parametrize("rung", RUNGS)
def test_a_program_that_needs_a_folder_in_the_home_gets_a_hint(home: Path, rung: str) -> None:
    tool = tool_in(rung, home / "project")
    why = "Read-only file system" if rung == "bubblewrap" else "Permission denied"
    by_cargo = f'echo "failed to create directory $HOME/.cargo/registry/cache"; echo "Caused by:\n{why}"; exit 101'
    for needed in (
        "mkdir -p ~/.tool/cache", "touch ~/.cargo/registry/x", "cat ~/.ssh/id_ed25519 2>&1 | tail -1", by_cargo,
    ):  # fmt: skip
        (notice,) = tool.invoke(needed)["notices"]
        assert "give the program a folder in $TMPDIR" in notice
    for other in (
        "cat ~/project/missing",
        "touch /x",
        "cat ~/.cargo/registry/index; ls missing",
        "cat ~/.ssh/x || true",
        """echo 'File "'$HOME'/.pyenv/lib/context.py", line 68'; echo '[Errno 13] Permission denied'; exit 1""",
    ):
        assert "notices" not in tool.invoke(other)
    assert "notices" not in tool_in(rung, home).invoke("cat ~/missing")
    (notice,) = tool.invoke('echo "error: Couldn\'t load public key $HOME/.ssh/k.pub: No such file"; exit 1')["notices"]
    assert notice.startswith("commits cannot be signed here")


@pytest.mark.parametrize("rung", RUNGS)
def test_a_setting_shows_more(home: Path, rung: str) -> None:
    tool = tool_in(rung, home / "project")
    settings = tool._settings.model_copy(update={"readable": (Path("~/other"),)})
    assert said(BashTool(tool._root, settings, tool.isolation), "cat ~/other/.env ~/notes.txt 2>/dev/null") == "SECRET"


def test_a_home_is_hidden_under_other_mounts_of_its_file_system(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk, mounts = home.parent, home.parent / "mountinfo"
    (disk / "all of it").symlink_to(disk)
    (disk / "elsewhere").symlink_to(home / "other")
    lines = [
        ("8:1", f"{home}", f"{home}"),
        ("8:1", f"{disk}", f"{disk}/all\\040of\\040it"),
        ("8:1", f"{home}/other", f"{disk}/elsewhere"),
        ("8:2", f"{disk}", f"{disk}/another"),
    ]
    mounts.write_text("".join(f"1 0 {device} {top} {where} rw - ext4 x rw\n" for device, top, where in lines))
    monkeypatch.setattr(secret_paths, "_MOUNTS", str(mounts))
    hidden = {path for path in hidden_paths(home / "project", os.environ) if path.is_relative_to(disk)}
    assert hidden == {home, disk / "all of it/home"}


@pytest.mark.parametrize("name", ["HOME", "CARGO_HOME", "XDG_CONFIG_HOME"])
def test_no_variable_opens_the_home(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("PATH", f"{home}:{home}/bin:{home.parent}:{os.environ['PATH']}")
    hidden = hidden_paths(home / "project", os.environ)
    shown, _ = visible_paths([home], hidden, os.environ, home / "project")
    assert not any(home.is_relative_to(path) for path in shown)
    assert any(home.is_relative_to(path) for path in hidden)


AS_NOBODY = """
import json, sys
from pathlib import Path
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation, fault_of
root = Path(sys.argv[1])
found = {}
for rung in ("bubblewrap", "landlock"):
    isolation = Isolation(rung, False)
    fault = fault_of(isolation, root)
    if fault:
        found[rung] = fault
        continue
    result = BashTool(root, isolation=isolation).invoke("echo text > made; cat made ~/.bashrc ~/.cargo/bin/tool; echo x > ~/new")
    found[rung] = result["stdout"]
print(json.dumps(found))
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="it takes root to become nobody")
def test_the_home_is_hidden_for_an_unprivileged_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    base = Path("/var/tmp") / f"aeon-test-{os.getpid()}"
    home = base / "home"
    try:
        for name in (".bashrc", ".cargo/bin/tool", "project/file"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("SECRET" if name == ".bashrc" else "seen")
        for path in (base, *base.rglob("*")):
            os.chown(path, 65534, 65534)
        python = next((name for name in (sys.executable, "/usr/bin/python3") if _runs_as_nobody(name)), None)
        if python is None:
            pytest.skip("nobody can run no Python of ours here")
        done = subprocess.run(
            [*NOBODY, python, "-c", AS_NOBODY, str(home / "project")],
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True, text=True, timeout=120, cwd="/", check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        held = {rung: text for rung, text in found.items() if text == "text\nseen"}
        assert held, found
        assert not any("SECRET" in text for text in found.values())
        assert sorted(path.name for path in home.iterdir()) == [".bashrc", ".cargo", "project"]
    finally:
        shutil.rmtree(base, ignore_errors=True)


NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]


def _runs_as_nobody(python: str) -> bool:
    code = f"import sys; sys.path[:0] = {sys.path!r}; import aeon_core.tools.shell.bash"
    environ = {"PATH": "/usr/bin:/bin", "HOME": "/"}
    return (
        subprocess.run([*NOBODY, python, "-c", code], env=environ, capture_output=True, cwd="/", check=False).returncode
        == 0
    )
