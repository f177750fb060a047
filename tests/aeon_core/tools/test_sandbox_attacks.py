"""Paths that want out, and files that change while they are used: none gets anything (REQ-110)."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import Sandbox, SandboxError

SECRET = b"the secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    top = tmp_path.resolve()
    root, out = top / "proj", top / "out"
    (root / "dir/sub").mkdir(parents=True)
    (root / "file").write_text("inside")
    for folder in (out, top / "proj-evil", top / "proj2/proj"):
        folder.mkdir(parents=True)
        (folder / "secret").write_bytes(SECRET)
    links = {
        "out-rel": "../out",
        "out-abs": str(out),
        "secret": "../out/secret",
        "secret-abs": str(out / "secret"),
        "dir/out": "../../out",
        "chain": "chain2",
        "chain2": "dir/out",
        "back": f"../{root.name}/file",
        "top": "/",
        "parent": "..",
        "dir/loop": "loop",
        "ping": "pong/x",
        "pong": "ping/x",
        "self": "self/self",
        "evil": "../proj-evil/secret",
        "evil-abs": f"{root}-evil/secret",
        "sneaky": f"{root}/../out/secret",
        "proc": "/proc/self/root",
        "cwd": "/proc/self/cwd",
        "dangling-out": "../out/new",
        "void": "dir/none/../../../out/secret",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    for number in range(41):
        (root / f"many{number}").symlink_to(f"many{number + 1}")
    (root / "many41").symlink_to("file")
    return root


OUTSIDE = [
    *(
        "..",
        "../",
        "/",
        "//",
        "../out/secret",
        "../proj-evil/secret",
        "../proj/file",
        "./../out/secret",
        ".//..//out/secret",
    ),
    *("dir/../../out/secret", "dir/sub/../../../out/secret", "missing/../../out/secret", "a/b/../../../out/secret"),
    *(
        "/etc/passwd",
        "/../etc/passwd",
        "/proc/self/environ",
        "/dev/null",
        "{top}",
        "{top}/out/secret",
        "//{top}/out/secret",
    ),
    *(
        "{root}/../out/secret",
        "{root}/dir/../../out/secret",
        "{root}-evil/secret",
        "{root}2/secret",
        "{top}/out/../proj/file",
    ),
    *(
        "{top}/./proj/../out/secret",
        "out-rel",
        "out-rel/secret",
        "out-abs/secret",
        "secret",
        "secret-abs",
        "dir/out/secret",
    ),
    *("chain/secret", "chain2", "back", "top/etc/passwd", "parent/out/secret", "parent/proj/file", "evil", "evil-abs"),
    *("sneaky", "proc/etc/passwd", "cwd", "void", "dir/./out/./secret", "dir/sub/../out/secret", "out-rel/../file"),
    *("parent/..", "dangling-out", "dangling-out/x", "out-rel/new/x"),
]
NO_PATHS = [
    *("", "\0", "file\0", "file\0/../../out/secret", "../out/secret\0.txt", "\ud800", "dir/\udbff/x", "many0"),
    *("x" * 256, "é" * 128, "dir/" * 1200 + "file"),
]
LOOPS = ["dir/loop", "dir/loop/x", "ping", "pong", "self", "self/self"]
HARMLESS = [
    *("~", "~root/.ssh/id_rsa", "$HOME/x", "%2e%2e/out/secret", "..%2fout", "..\\out\\secret", "file:///etc/passwd"),
    *("...", ".. /out/secret", "．．/out", "dir/\n../x", "\x1b[31m", "C:\\secret"),
]


def state(top: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(top)): (
            os.lstat(path).st_mode,
            path.read_bytes() if stat.S_ISREG(os.lstat(path).st_mode) else None,
        )
        for folder in (top / "out", top / "proj-evil", top / "proj2", top / "proj")
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def ways(sandbox: Sandbox) -> list[Callable[[str], object]]:
    return [
        sandbox.relative,
        sandbox.open_read,
        lambda path: sandbox.read_bytes(path, 100),
        lambda path: sandbox.write_bytes(path, b"owned"),
        lambda path: list(sandbox.walk(path)),
    ]


@pytest.mark.parametrize("path", OUTSIDE, ids=range(len(OUTSIDE)))
def test_a_path_that_leads_outside_is_refused_in_every_way(root: Path, path: str) -> None:
    path = path.format(root=root, top=root.parent)
    before = state(root.parent)
    for use in ways(Sandbox(root)):
        with pytest.raises(SandboxError, match=r"^Path outside project root: "):
            use(path)
    assert state(root.parent) == before


@pytest.mark.parametrize("path", NO_PATHS + LOOPS, ids=range(len(NO_PATHS + LOOPS)))
def test_impossible_paths_and_endless_links_are_refused_in_every_way(root: Path, path: str) -> None:
    before = state(root.parent)
    for use in ways(Sandbox(root)):
        with pytest.raises(SandboxError, match=r"^path '.*(is empty|NUL|no file name|too long|more than 40 symbolic)"):
            use(path)
    assert state(root.parent) == before


@pytest.mark.parametrize("path", HARMLESS, ids=range(len(HARMLESS)))
def test_nothing_in_a_path_is_expanded_or_decoded(root: Path, path: str) -> None:
    before = state(root.parent)
    assert Sandbox(root).write_bytes(path, b"inside") is True
    after = state(root.parent)
    new = {name for name in after if name not in before}
    assert new
    assert all(name.startswith("proj/") for name in new)
    assert {name: after[name] for name in before} == before


def test_as_many_links_as_the_system_follows_are_followed(root: Path) -> None:
    assert Sandbox(root).read_bytes("many2", 100) == b"inside"


@pytest.fixture
def special(root: Path) -> Iterator[Path]:
    os.mkfifo(root / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    folder = os.open(root, os.O_RDONLY)
    listener.bind(f"/proc/self/fd/{folder}/socket")
    (root / "to-fifo").symlink_to("fifo")
    yield root
    listener.close()
    os.close(folder)


@pytest.mark.parametrize("name", ["fifo", "socket", "to-fifo"])
def test_an_irregular_file_neither_blocks_nor_is_written(special: Path, name: str) -> None:
    mode = (special / name).stat().st_mode
    for use in (Sandbox(special).open_read, lambda path: Sandbox(special).write_bytes(path, b"x")):
        with pytest.raises(ToolError, match=r"it is a (pipe|socket), not a regular file"):
            use(name)
    assert (special / name).stat().st_mode == mode


@pytest.mark.parametrize("name", ["null", "zero", "tty"])
def test_devices_are_neither_opened_nor_replaced(name: str) -> None:
    sandbox = Sandbox(Path("/dev"))
    for use in (sandbox.open_read, lambda path: sandbox.write_bytes(path, b"x")):
        with pytest.raises(ToolError, match="it is a device, not a regular file"):
            use(name)
    assert stat.S_ISCHR(Path("/dev", name).stat().st_mode)


@pytest.mark.parametrize("by", ["link", "folder"])
def test_a_folder_that_replaces_the_root_is_not_used(root: Path, by: str) -> None:
    sandbox = Sandbox(root)
    root.rename(root.parent / "moved")
    if by == "link":
        root.symlink_to(root.parent / "out")
    else:
        (root.parent / "out").rename(root)
    for use in ways(sandbox):
        with pytest.raises(SandboxError, match=r"^project root .* start the run again"):
            use("secret")


def test_a_link_that_replaces_a_parent_of_the_root_is_not_followed(root: Path) -> None:
    (root.parent / "w/proj").mkdir(parents=True)
    sandbox = Sandbox(root.parent / "w/proj")
    (root.parent / "w").rename(root.parent / "moved")
    (root.parent / "w").symlink_to("proj2")
    with pytest.raises(SandboxError, match="was replaced during the run"):
        sandbox.read_bytes("secret", 100)


def swap(root: Path) -> None:
    """What an attacker does between two steps: the folder becomes a link to one outside."""
    if not (root / "dir").is_symlink():
        (root / "dir").rename(root / "dir-was")
        (root / "dir").symlink_to(root.parent / "out")


@pytest.mark.parametrize("call", ["open", "stat", "mkdir", "replace", "scandir", "readlink"])
@pytest.mark.parametrize("count", range(6))
def test_a_folder_swapped_for_a_link_before_any_step_gains_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, count: int
) -> None:
    (root / "dir/secret").write_text("inside")
    outside = {name: value for name, value in state(root.parent).items() if not name.startswith("proj/")}
    real, calls = getattr(os, call), iter(range(100))

    def then(*args: Any, **keywords: Any) -> Any:
        if next(calls) == count:
            swap(root)
        return real(*args, **keywords)

    sandbox = Sandbox(root)
    results: list[object] = []
    for use in (*ways(sandbox), lambda path: sandbox.write_bytes("dir/new/deep", b"owned")):
        calls = iter(range(100))
        with monkeypatch.context() as patch:
            patch.setattr(os, call, then)
            try:
                results.append(use("dir/secret"))
            except ToolError:
                continue
            finally:
                if (root / "dir").is_symlink():
                    (root / "dir").unlink()
                    (root / "dir-was").rename(root / "dir")
    for result in results:
        if hasattr(result, "read"):
            with result as stream:
                assert stream.read() in (b"inside", b"owned")
        assert result != SECRET
    assert {name: value for name, value in state(root.parent).items() if not name.startswith("proj/")} == outside


@pytest.mark.parametrize("target", ["../out/secret", "fifo", None], ids=["link", "link-fifo", "fifo"])
def test_a_file_swapped_after_its_check_is_not_used(
    root: Path, monkeypatch: pytest.MonkeyPatch, target: str | None
) -> None:
    os.mkfifo(root / "fifo")
    real = os.stat

    def then(*args: Any, **keywords: Any) -> os.stat_result:
        status = real(*args, **keywords)
        (root / "file").unlink()
        if target is None:
            os.mkfifo(root / "file")
        else:
            (root / "file").symlink_to(target)
        return status

    sandbox = Sandbox(root)
    for use in (sandbox.open_read, lambda path: sandbox.write_bytes(path, b"owned")):
        (root / "file").unlink()
        (root / "file").write_text("inside")
        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", then)
            with pytest.raises(ToolError, match=r"^cannot use 'file': (Too many levels|it is a pipe|No such device)"):
                use("file")
    assert (root.parent / "out/secret").read_bytes() == SECRET


def force(source: Path, target: Path) -> None:
    """Rename, also where the victim has made a folder of that name meanwhile."""
    for _ in range(1000):
        try:
            source.rename(target)
        except OSError:
            shutil.rmtree(target, ignore_errors=True)
        else:
            return


def test_a_constantly_swapped_folder_never_leads_outside(root: Path) -> None:
    (root / "dir/secret").write_text("inside")
    (root / "link").symlink_to(root.parent / "out")
    (root.parent / "out/only-outside").touch()
    done = threading.Event()

    def flip() -> None:
        while not done.is_set():
            for source, target in (("dir", "was"), ("link", "dir"), ("dir", "link"), ("was", "dir")):
                force(root / source, root / target)

    attacker = threading.Thread(target=flip)
    attacker.start()
    sandbox = Sandbox(root)
    read = set()
    try:
        for number in range(1500):
            try:
                read.add(sandbox.read_bytes("dir/secret", 100))
                sandbox.write_bytes(f"dir/new{number % 5}/x", b"owned")
                read.update(entry.path for entry in sandbox.walk("dir") if "only" in entry.path)
            except ToolError:
                continue
    finally:
        done.set()
        attacker.join()
    assert read <= {b"inside"}
    assert sorted(path.name for path in (root.parent / "out").iterdir()) == ["only-outside", "secret"]
    assert (root.parent / "out/secret").read_bytes() == SECRET


def test_no_descriptor_is_left_open(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in ["file", "dir/sub/x/y", "../out", "many0", "dir", "secret", "top/x", "file/x", "dir/sub/../../file"]:
        for use in ways(Sandbox(root)):
            try:
                result = use(path)
            except ToolError:
                continue
            if hasattr(result, "close"):
                result.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
