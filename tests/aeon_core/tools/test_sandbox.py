from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.files import WriteTool
from aeon_core.tools.sandbox import FolderEntry, Sandbox, SandboxError
from aeon_core.tools.search import GrepTool
from aeon_core.tools.text_files import ReadTool
from tests.sampling import examples


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    (root / "src/deep").mkdir(parents=True)
    (root / "src/main.py").write_text("main")
    (root / "src/deep/x").write_text("x")
    (root / "README.md").write_text("readme")
    (root / "inside").symlink_to("src")
    (root / "link.py").symlink_to(root / "src/main.py")
    (root / "src/abs").symlink_to(root / "src/deep")
    (root / "src/up").symlink_to("../README.md")
    (root / "dangling").symlink_to("new/file")
    return root


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("README.md", "README.md"),
        ("./src//./main.py", "src/main.py"),
        ("src/../README.md", "README.md"),
        ("missing/../README.md", "README.md"),
        ("inside/main.py", "src/main.py"),
        ("inside/../README.md", "README.md"),
        ("inside/up", "README.md"),
        ("link.py", "src/main.py"),
        ("src/abs/x", "src/deep/x"),
        ("dangling", "new/file"),
        ("new/a/b", "new/a/b"),
        ("~/x", "~/x"),
        (".", "."),
        ("src/", "src"),
        ("src/..", "."),
        ("missing/..", "."),
    ],
)
def test_a_path_is_resolved(root: Path, path: str, where: str) -> None:
    assert Sandbox(root).relative(path) == PurePosixPath(where)
    assert Sandbox(root).relative(f"{root}/{path}") == PurePosixPath(where)


def test_relative_paths_start_at_the_root_whatever_the_working_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root / "src")
    assert Sandbox(root).read_bytes("README.md", 100) == b"readme"
    assert Sandbox(Path("deep")).read_bytes("x", 100) == b"x"


def test_a_root_named_through_a_link_takes_absolute_paths_in_both_spellings(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    sandbox = Sandbox(tmp_path / "alias")
    assert sandbox.root == root.resolve()
    assert sandbox.relative(f"{tmp_path}/alias/src/x") == sandbox.relative(f"{root}/src/x") == PurePosixPath("src/x")


def test_where_case_is_ignored_a_path_is_listed_by_another_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAIN.PY", "Main.py"):
        os.link(root / "src/main.py", root / "src" / name)
    os.link(root / "src/main.py", root / "src/mAIN.PY")
    sandbox = Sandbox(root)
    assert str(sandbox.listed("src/MAIN.PY")) == "src/MAIN.PY"
    assert str(sandbox.listed("readme.MD")) == "readme.MD"
    monkeypatch.setattr(os, "listdir", lambda _: ["other", "main.py"])
    for name in ("MAIN.PY", "Main.py", "main.py"):
        assert str(sandbox.listed(f"src/{name}")) == "src/main.py"
        verdict = Policy(PolicyRules(deny=("Read(src/main.py)",))).verdict(
            ReadTool(sandbox), {"file_path": f"src/{name}"}
        )
        assert verdict.answer == "deny"
        with pytest.raises(ToolError, match="there is nothing at"):
            GrepTool(sandbox, hidden={"src/main.py"}.__contains__).invoke(pattern="main", path=f"src/{name}")


def test_a_short_name_of_a_protected_file_is_asked_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".envrc").write_text("x")
    for name in ("ENVRC~1", "envrc~1"):
        os.link(root / ".envrc", root / name)
    monkeypatch.setattr(os, "listdir", lambda _: ["README.md", ".envrc"])
    verdict = WriteTool(Sandbox(root)).verdict({"file_path": "ENVRC~1", "content": "y"})
    assert verdict is not None
    assert (verdict.answer, verdict.reason.split(":")[0]) == ("ask", "'.envrc' is run by direnv")


def test_the_root_of_the_file_system_may_be_the_root(root: Path) -> None:
    sandbox = Sandbox(Path("/"))
    assert sandbox.read_bytes(str(root / "inside/main.py"), 100) == b"main"
    assert sandbox.relative("/../etc") == PurePosixPath("etc")


def test_an_open_file_is_read_as_bytes(root: Path) -> None:
    with Sandbox(root).open_read("inside/main.py") as stream:
        assert stream.read() == b"main"


def test_a_file_larger_than_the_limit_is_not_read(root: Path) -> None:
    assert Sandbox(root).read_bytes("README.md", 6) == b"readme"
    with pytest.raises(ToolError, match=r"'README.md' is too large: it has more than 5 bytes"):
        Sandbox(root).read_bytes("README.md", 5)


def test_a_write_creates_the_file_and_its_folders(root: Path) -> None:
    assert Sandbox(root).write_bytes("a/b/c.txt", b"new") is True
    assert Sandbox(root).write_bytes("a/b/c.txt", b"again") is False
    assert (root / "a/b/c.txt").read_bytes() == b"again"
    assert [path.name for path in (root / "a/b").iterdir()] == ["c.txt"]


def test_a_new_file_has_the_mode_of_any_new_file(root: Path) -> None:
    (root / "plain").touch()
    Sandbox(root).write_bytes("written", b"")
    assert (root / "written").stat().st_mode == (root / "plain").stat().st_mode


def test_an_existing_file_keeps_its_mode(root: Path) -> None:
    (root / "README.md").chmod(0o640)
    Sandbox(root).write_bytes("README.md", b"new")
    assert stat.S_IMODE((root / "README.md").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("link", "target"), [("link.py", "src/main.py"), ("dangling", "new/file"), ("src/up", "README.md")]
)
def test_a_write_through_a_link_inside_writes_its_target(root: Path, link: str, target: str) -> None:
    Sandbox(root).write_bytes(link, b"written")
    assert (root / target).read_bytes() == b"written"
    assert (root / link).is_symlink()


def test_a_hard_link_to_a_file_outside_is_read_and_its_other_name_keeps_its_content(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("outside")
    os.link(tmp_path / "outside", root / "hard")
    assert Sandbox(root).read_bytes("hard", 100) == b"outside"
    Sandbox(root).write_bytes("hard", b"changed")
    assert (tmp_path / "outside").read_text() == "outside"


def test_a_write_that_fails_leaves_the_file_and_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(root)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match=r"cannot use 'README.md': No space left on device"):
        Sandbox(root).write_bytes("README.md", b"new")
    assert files(root) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_replaced(root: Path) -> None:
    (root / "README.md").chmod(0o444)
    with pytest.raises(ToolError, match="Permission denied"):
        Sandbox(root).write_bytes("README.md", b"new")


def test_a_walk_lists_everything_in_order_and_follows_no_link(root: Path) -> None:
    os.mkfifo(root / "src/fifo")
    (root / "src-b").mkdir()
    assert [entry.path for entry in Sandbox(root).walk()] == [
        "README.md", "dangling", "inside", "link.py", "src", "src/abs", "src/deep", "src/deep/x", "src/fifo",
        "src/main.py", "src/up", "src-b",
    ]  # fmt: skip
    found = {entry.path: entry for entry in Sandbox(root).walk("inside")}
    assert found == {
        "src/abs": FolderEntry("src/abs", is_dir=False, is_file=False, is_symlink=True),
        "src/deep": FolderEntry("src/deep", is_dir=True, is_file=False, is_symlink=False),
        "src/deep/x": FolderEntry("src/deep/x", is_dir=False, is_file=True, is_symlink=False),
        "src/fifo": FolderEntry("src/fifo", is_dir=False, is_file=False, is_symlink=False),
        "src/main.py": FolderEntry("src/main.py", is_dir=False, is_file=True, is_symlink=False),
        "src/up": FolderEntry("src/up", is_dir=False, is_file=False, is_symlink=True),
    }


def test_a_walk_from_a_file_gives_the_file(root: Path) -> None:
    assert list(Sandbox(root).walk("link.py")) == [
        FolderEntry("src/main.py", is_dir=False, is_file=True, is_symlink=False)
    ]


def test_a_walk_from_a_path_with_dot_dot_starts_at_its_target(root: Path) -> None:
    assert list(Sandbox(root).walk("src/missing/..")) == list(Sandbox(root).walk("src"))
    with pytest.raises(ToolError, match="there is no 'missing' in the project"):
        Sandbox(root).walk("missing")


def test_a_walk_enters_only_the_folders_it_is_to_enter(root: Path) -> None:
    found = [entry.path for entry in Sandbox(root).walk("src", enter=lambda entry: entry.path != "src/deep")]
    assert found == ["src/abs", "src/deep", "src/main.py", "src/up"]


def test_a_walk_holds_no_descriptor_between_entries(root: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    walk = Sandbox(root).walk()
    next(walk)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_name_that_is_not_utf8_can_be_walked_and_read(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/\xff")).write_text("odd")
    name = next(entry.path for entry in Sandbox(root).walk() if not entry.path.isascii())
    assert Sandbox(root).read_bytes(name, 10) == b"odd"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing.py", "there is no 'nothing.py' in the project; look for it with Glob"),
        ("dangling", "there is no 'dangling' in the project"),
        ("src", "'src' names a folder, expected a file"),
        ("README.md/x", "'README.md/x' goes through a file as if it were a folder"),
        ("README.md/..", "'README.md/..' goes through a file"),
        ("README.md/x/..", "'README.md/x/..' goes through a file"),
        ("README.md/", "'README.md/' goes through a file"),
    ],
)
def test_a_path_that_is_not_a_file_is_refused_with_the_reason(root: Path, path: str, message: str) -> None:
    with pytest.raises(ToolError, match=message):
        Sandbox(root).open_read(path)


def test_a_root_that_is_not_a_folder_is_refused(root: Path) -> None:
    with pytest.raises(SandboxError, match=r"missing'.*use an existing folder"):
        Sandbox(root / "missing")
    with pytest.raises(SandboxError, match=r"README.md' is not a folder"):
        Sandbox(root / "README.md")


NAMES = st.sampled_from(["a", "b", "c", "l", "..", ".", ""])
PATHS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=7).map("/".join),
    st.lists(NAMES, max_size=5).map(lambda names: "/".join(["{root}", *names])),
    st.lists(NAMES, max_size=4).map(lambda names: "/".join(["{root}/../out", *names])),
)
TREES = st.lists(
    st.tuples(st.lists(st.sampled_from("abcl"), min_size=1, max_size=4), st.sampled_from(["file", "dir"]) | PATHS),
    max_size=12,
)


def grow(root: Path, tree: list[tuple[list[str], str]]) -> None:
    """Make what can be made of the tree: whatever is neither file nor folder is a link to that path."""
    for names, kind in tree:
        path = root.joinpath(*names)
        try:
            if path.parent.resolve().is_relative_to(root):
                path.parent.mkdir(parents=True, exist_ok=True)
                if kind == "dir":
                    path.mkdir()
                elif kind == "file":
                    path.touch(exist_ok=False)
                else:
                    path.symlink_to(kind.replace("{root}", str(root)) or ".")
        except (OSError, RuntimeError):
            continue


@given(TREES, PATHS)
@settings(max_examples=examples(100))
def test_nothing_outside_is_read_created_or_changed_in_any_tree(tree: list[tuple[list[str], str]], path: str) -> None:
    top = Path(tempfile.mkdtemp()).resolve()
    try:
        root, out = top / "root", top / "out"
        root.mkdir()
        (out / "a").mkdir(parents=True)
        (out / "b").write_text("secret")
        grow(root, tree)
        path = path.replace("{root}", str(root)) or "."
        before = files(out), sorted(out.rglob("*"))
        sandbox = Sandbox(root)
        attempt(sandbox, root, path)
        for entry in sandbox.walk():
            assert (root / entry.path).parent.resolve().is_relative_to(root)
            assert (root / entry.path).parent.resolve() == (root / entry.path).parent
        assert (files(out), sorted(out.rglob("*"))) == before
        assert sorted(item.name for item in top.iterdir()) == ["out", "root"]
    finally:
        shutil.rmtree(top)


def attempt(sandbox: Sandbox, root: Path, path: str) -> None:
    try:
        where = root / sandbox.relative(path)
    except ToolError:
        with pytest.raises(ToolError):
            sandbox.write_bytes(path, b"written")
        return
    assert where.parent.resolve() / where.name == where or where == root
    try:
        sandbox.write_bytes(path, b"written")
    except ToolError:
        return
    assert where.read_bytes() == b"written"
    assert not where.is_symlink()
    assert where.resolve().is_relative_to(root)
    with sandbox.open_read(str(where.relative_to(root))) as stream:
        assert stream.read() == b"written"
        assert os.path.samestat(os.fstat(stream.fileno()), where.lstat())
