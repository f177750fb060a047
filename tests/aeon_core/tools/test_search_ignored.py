"""What `.gitignore` files leave out, Grep and Glob leave out; git itself is asked what that is."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import GlobTool, GrepTool
from tests.sampling import examples

FILES = [
    "a.py",
    "b.txt",
    "build/a.py",
    "build/x/b.txt",
    "d/a.py",
    "d/build/y",
    "d/x/a.py",
    ".env",
    "{a}.txt",
    "#c",
    " e",
    "!f",
]


def tree(root: Path, ignores: dict[str, str]) -> None:
    for name, content in {**dict.fromkeys(FILES, "x\n"), **ignores}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, newline="")


def found(root: Path, path: str = ".", include_ignored: bool = False) -> list[str]:
    files = GlobTool(Sandbox(root)).invoke(pattern="**", path=path, include_ignored=include_ignored)["files"]
    return [file for file in files if not file.endswith(".gitignore")]


def test_ignored_files_are_left_out_of_both(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "build/\n*.txt\n", "d/.gitignore": "!/build\nx\n"})
    assert found(tmp_path) == [" e", "!f", "#c", ".env", "a.py", "d/a.py", "d/build/y"]
    assert GrepTool(Sandbox(tmp_path)).invoke(pattern="^x$", glob="!.gitignore")["files"] == found(tmp_path)
    assert found(tmp_path, include_ignored=True) == sorted(FILES)


def test_an_explicit_path_is_not_ignored(tmp_path: Path) -> None:
    tree(tmp_path, {".gitignore": "build\n*.txt\n", "build/.gitignore": "x\n"})
    assert found(tmp_path, "build") == ["build/a.py"]
    assert found(tmp_path, "build/x") == ["build/x/b.txt"]
    assert found(tmp_path, "b.txt") == ["b.txt"]
    assert found(tmp_path, "d") == ["d/a.py", "d/x/a.py"]


def test_an_ignore_file_that_leads_outside_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "ignore").write_text("*\n")
    (tmp_path / "project").mkdir()
    tree(tmp_path / "project", {})
    (tmp_path / "project" / ".gitignore").symlink_to("../ignore")
    assert len(found(tmp_path / "project")) == len(FILES)


NAMES = [
    "a.py",
    "*.py",
    "*",
    "a*",
    "build",
    "x",
    "**",
    "?.txt",
    "[ab].*",
    "[!a].*",
    "{a}.txt",
    "{a,b}.txt",
    r"\#c",
    "#c",
    "d",
    ".env",
]
RULES = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "", "!", "/", "!/", "\\!"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join),
    st.sampled_from(["", "", "/"]),
    st.sampled_from(["", "", "  ", "\\ "]),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
).filter(lambda rule: not rule.rstrip().endswith("**/"))  # pathspec takes `x/**/` for `x/`
IGNORE_FILES = st.lists(RULES, max_size=4).map("".join)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=examples(120))
@given(IGNORE_FILES, IGNORE_FILES)
@example("build/\n!build/a.py\n", "")
@example("*\n!d/\n!*.py\n", "a.py\n")
@example("/a.py\nd/x\n", "!x\n")
@example(" e\n", "a[\n")
def test_ignored_files_are_those_git_ignores(top: str, lower: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tree(root, {".gitignore": top, "d/.gitignore": lower})
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", "init", "-q", "--template="], cwd=root, env=environment, check=True)
        command = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True).stdout
        files = [name for name in listed.split("\0") if name and not name.endswith(".gitignore")]
        assert found(root) == sorted(files)
