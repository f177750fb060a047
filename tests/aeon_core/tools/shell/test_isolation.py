from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon_core.config.trust import _is_safe_for_git
from aeon_core.paths import program_outside
from aeon_core.tools.shell import isolation as module
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation, Limits, Rung, bubblewrap, fault_of, probe
from aeon_core.tools.shell.settings import ShellSettings

OPEN = Isolation("none", network=True)
RUNGS: tuple[Rung, ...] = ("bubblewrap", "landlock")


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path_factory.mktemp("home")
    for name in (".ssh", ".config/aeon", "project/.aeon", "project/.git/hooks"):
        (place / name).mkdir(parents=True)
    (place / ".ssh" / "id").write_text("private")
    (place / ".netrc").write_text("private")
    (place / "notes").write_text("kept")
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture(params=RUNGS)
def tool(request: pytest.FixtureRequest, home: Path) -> BashTool:
    isolation = Isolation(request.param, network=False)
    if fault := fault_of(isolation, home):
        pytest.skip(f"{request.param} does not hold on this machine: {fault}")
    return BashTool(home / "project", isolation=isolation)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def said(tool: BashTool, command: str) -> str:
    return str(tool.invoke(command, timeout=120)["stdout"]).strip()


def test_a_command_reads_and_writes_in_the_project(tool: BashTool, home: Path) -> None:
    assert said(tool, "mkdir -p a/b && echo text > a/b/c && mv a/b/c d && cat d && pwd") == f"text\n{home}/project"
    assert (home / "project" / "d").read_text() == "text\n"


def test_a_command_writes_nowhere_else(tool: BashTool, home: Path) -> None:
    command = "echo x > ../new; echo x > ../notes; rm -f ../notes; mv ../notes .; truncate -s 0 ../notes; ln ../notes ."
    tool.invoke(command)
    assert (home / "notes").read_text() == "kept"
    assert sorted(place.name for place in home.iterdir()) == [".config", ".netrc", ".ssh", "notes", "project"]


def test_a_link_does_not_lead_outside(tool: BashTool, home: Path) -> None:
    tool.invoke("ln -s ../notes link; echo x > link; ln -s ~/.ssh keys")
    assert (home / "notes").read_text() == "kept"
    assert said(tool, "cat keys/id") == ""


def test_keys_cannot_be_read(tool: BashTool) -> None:
    assert said(tool, "cat ~/.ssh/id ~/.netrc; cp -r ~/.ssh copied; cat copied/id; cp ~/.netrc .; cat .netrc") == ""


def test_temporary_files_last_from_call_to_call(tool: BashTool) -> None:
    assert said(tool, 'echo kept > "$TMPDIR/file"; cat "$TMPDIR/file"') == "kept"
    assert said(tool, 'cat "$TMPDIR/file"') == "kept"


def test_a_command_has_no_network(tool: BashTool, port: int) -> None:
    assert said(tool, f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo reached || echo refused") == "refused"


@pytest.mark.parametrize("rung", RUNGS)
def test_a_setting_opens_the_network(home: Path, port: int, rung: Rung) -> None:
    isolation = Isolation(rung, network=True)
    if fault := fault_of(isolation, home):
        pytest.skip(f"{rung} does not hold on this machine: {fault}")
    tool = BashTool(home / "project", ShellSettings(network=True), isolation)
    assert said(tool, f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo reached") == "reached"


def test_the_environment_of_other_processes_is_out_of_reach(tool: BashTool) -> None:
    name = f"MARK_{os.getpid()}_API_KEY"
    script = f"for p in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $p; done 2>/dev/null | grep -c ^{name}="
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={name: "secret"})
    try:
        assert said(tool, f"cat /proc/{other.pid}/environ; {script}") == "0"
        assert said(BashTool(tool._root, isolation=OPEN), script) == "1"
    finally:
        other.communicate(b"\n")


def test_processes_outside_cannot_be_signalled(tool: BashTool) -> None:
    if tool.isolation.name == "landlock" and tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12):
        pytest.skip("Landlock holds back signals from Linux 6.12 on")
    assert said(tool, f"kill -0 {os.getpid()} 2>/dev/null && echo seen || echo unseen") == "unseen"


def test_the_sandbox_cannot_be_escaped(tool: BashTool, home: Path) -> None:
    tool.invoke("unshare -Urm sh -c 'mount -o remount,rw /; umount ~/.ssh; cat ~/.ssh/id > leaked; echo x > ../notes'")
    tool.invoke("mount -o remount,rw / ; umount ~/.ssh; cat ~/.ssh/id > leaked2; echo x > ../notes")
    assert (home / "notes").read_text() == "kept"
    assert "private" not in "".join(path.read_text() for path in (home / "project").glob("leaked*"))


@pytest.mark.parametrize("tool", ["bubblewrap"], indirect=True)
def test_bubblewrap_protects_what_configures_aeon_and_git(tool: BashTool, home: Path) -> None:
    tool.invoke("touch .aeon/config.yml .git/hooks/pre-commit; mv .git other; mv .aeon other2; touch .git/index")
    project = home / "project"
    assert [str(path.relative_to(project)) for path in sorted(project.rglob("*"))] == [
        ".aeon",
        ".git",
        ".git/hooks",
        ".git/index",
    ]


@pytest.mark.parametrize("tool", ["bubblewrap"], indirect=True)
def test_bubblewrap_lets_a_long_output_be_read_again(tool: BashTool, tmp_path: Path) -> None:
    tool = BashTool(tool._root, ShellSettings(output_dir=tmp_path / "outputs"), tool.isolation)
    whole = tool.invoke("seq 1 50000")["output_file"]
    assert said(tool, f"tail -n 1 {whole}; echo x >> {whole} || echo protected") == "50000\nprotected"


@pytest.mark.parametrize("name", ["", "runs", "runs/outputs"])
def test_a_link_in_the_place_of_long_outputs_opens_nothing(tool: BashTool, home: Path, name: str) -> None:
    link = home / "project/.system2" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(home / ".ssh", link.parent))
    for inside in ("runs", "runs/outputs"):
        (home / ".ssh" / inside).mkdir(parents=True, exist_ok=True)
        (home / ".ssh" / inside / "id").write_text("private")
    settings = ShellSettings(output_dir=home / "project/.system2/runs/outputs")
    tool = BashTool(home / "project", settings, tool.isolation)
    read = f"cat {home}/.ssh/id {home}/.ssh/runs/id {home}/.ssh/runs/outputs/id"
    assert (said(tool, read), said(tool, read)) == ("", "")
    whole = Path(tool.invoke("seq 1 50000")["output_file"])
    assert (whole.is_relative_to(home), said(tool, f"tail -n 1 {whole}"), said(tool, read)) == (False, "50000", "")


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize("root", ["", ".config/aeon"], ids=["around", "within"])
def test_a_project_around_or_inside_hidden_paths_works(home: Path, rung: Rung, root: str) -> None:
    isolation = Isolation(rung, network=False)
    if fault := fault_of(isolation, home):
        pytest.skip(f"{rung} does not hold on this machine: {fault}")
    (home / root / "file").write_text("text")
    tool = BashTool(home / root, isolation=isolation)
    assert said(tool, "cat file; cat ~/.ssh/id; echo done > made") == "text"
    assert (home / root / "made").read_text() == "done\n"


def test_the_probe_picks_the_first_working_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fault_of", lambda it, root: None if it.name == "landlock" else "no luck")
    monkeypatch.setattr(module.sys, "platform", "linux")
    found = probe(tmp_path, ShellSettings())
    assert found == Isolation("landlock", False, "bubblewrap: no luck")


def test_without_isolation_the_reasons_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "fault_of", lambda it, root: "no luck")
    monkeypatch.setattr(module.sys, "platform", "linux")
    found = probe(tmp_path, ShellSettings())
    assert (found.name, found.network) == ("none", True)
    assert found.describe() == (
        "no isolation (bubblewrap: no luck; landlock: no luck): "
        "commands can do everything you can, so each one needs approval"
    )


@pytest.mark.parametrize(
    ("platform", "root", "why"),
    [
        ("darwin", ".", "it needs Linux, but this is darwin"),
        ("linux", "/", "the project root is the whole file system"),
    ],
)
def test_some_platforms_have_no_isolation(monkeypatch: pytest.MonkeyPatch, platform: str, root: str, why: str) -> None:
    monkeypatch.setattr(module.sys, "platform", platform)
    module._probed.cache_clear()
    assert probe(Path(root), ShellSettings()) == Isolation("none", True, why)
    module._probed.cache_clear()


def test_a_probe_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "fault_of", lambda it, root: asked.append(it.name))
    assert probe(tmp_path, ShellSettings()) is probe(tmp_path, ShellSettings(safety_mode="permissive"))
    assert len(asked) == (1 if sys.platform == "linux" else 0)


def test_an_isolation_that_does_not_isolate_is_detected(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    assert fault_of(OPEN, tmp_path) == "it reads what is hidden"


def test_a_missing_program_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert fault_of(Isolation("bubblewrap", False), tmp_path) == "bwrap is not installed"
    assert fault_of(Isolation("landlock", False), tmp_path) == "bash is not installed"


def test_deeper_paths_are_mounted_later(tmp_path: Path) -> None:
    root = tmp_path / "hidden" / "root"
    (root / "key").mkdir(parents=True)
    limits = Limits(root, tmp_path, False, hidden=(root / "key", tmp_path / "hidden"))
    line = bubblewrap("bwrap", limits, 9)
    places = [str(tmp_path / "hidden"), str(root), str(root / "key")]
    assert [word for word in line[line.index("/var/tmp") :] if word in places][:4] == [
        places[0],
        places[1],
        places[1],
        places[2],
    ]
    assert ("--unshare-net" in line, "--unshare-net" in bubblewrap("bwrap", Limits(root, tmp_path, True), 9)) == (
        True,
        False,
    )


def test_kernel_settings_are_unchanged(tool: BashTool) -> None:
    # Opened and not written to, so that nothing changes where this fails.
    command = "(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo open || echo closed"
    assert said(tool, command) == "closed"


@pytest.mark.parametrize("tool", ["bubblewrap"], indirect=True)
def test_the_python_that_runs_aeon_is_unchanged(tool: BashTool, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "project/venv/bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(home / "project/venv"))
    tool.invoke("echo x > venv/bin/python; mv venv other")
    assert list((home / "project/venv").rglob("*")) == [home / "project/venv/bin"]


@pytest.mark.parametrize("tool", ["bubblewrap"], indirect=True)
def test_a_program_in_the_project_is_never_run_without_isolation(
    tool: BashTool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, linked = home / "project", home / "linked"
    (project / "bin").mkdir()
    linked.mkdir()
    for name in ("bwrap", "git"):
        own = project / "bin" / name
        own.write_text(f'#!/bin/sh\ntouch "{home}/escaped"\n')
        own.chmod(0o755)
        (linked / name).symlink_to(own)
    monkeypatch.setenv("PATH", f"{project}/bin:{linked}:{os.environ['PATH']}")
    assert said(BashTool(project, tool._settings, tool.isolation), "echo done") == "done"
    assert not _is_safe_for_git(project)
    assert not (home / "escaped").exists()
    assert program_outside(home / "other", "git") == str(project / "bin/git")


@pytest.mark.parametrize("tool", ["bubblewrap"], indirect=True)
def test_a_link_among_the_temporary_files_leads_no_mount_outside(tool: BashTool, home: Path) -> None:
    top = Path(*home.parts[:3])
    if not top.is_relative_to("/tmp") or top == Path("/tmp"):
        pytest.skip("the project is not among the temporary files")
    (home / "victim").mkdir()
    tool.invoke(f"mv {top} /tmp/other; ln -s ../../oldroot{home}/victim {top}")
    assert said(tool, "echo works") == "works"
    assert list((home / "victim").iterdir()) == []
