from __future__ import annotations

import errno
import os
import sys
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools import protected_paths
from aeon_core.tools.files import file_tools
from aeon_core.tools.protected_paths import change_reason, find_protected, find_repositories

ASKED = [
    ".aeon/config.yml",
    ".aeon/prompts/judge.txt",
    ".system2/config.yml",
    ".claude/settings.json",
    ".mcp.json",
    ".venv/bin/activate",
    ".venv/lib/python3/site-packages/x.pth",
    ".envrc",
    ".vscode/tasks.json",
    ".pre-commit-config.yaml",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    "./.git/../.git/hooks/x",
    "src/../.git/config",
    ".GIT/hooks/x",
    ".Git/Config",
    ".VSCode/tasks.json",
    ".ENVRC",
    ".Venv/bin/python",
    ".gi\u200bt/config",
    ".\u200cgit/hooks/x",
    "\uff0egit/config",
    "sub/.git/config",
    "a/b/.vscode/launch.json",
    "a/.envrc",
    "a/.aeon/config.yml",
    "link/hooks/x",
    "deep/link/config",
    "new/../.envrc",
    "{root}/.git/config",
    "{root}//.git///config",
    "hooks/pre-commit",
    "repo.git/config",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in (".git/hooks", "src", "deep", "hooks", "repo.git"):
        (root / name).mkdir(parents=True)
    (root / ".git/config").write_text("[core]\n\thooksPath = hooks\n")
    (root / "link").symlink_to(".git")
    (root / "deep/link").symlink_to("../.git")
    return root


@pytest.mark.parametrize("path", ASKED)
@pytest.mark.parametrize("name", ["Write", "Edit"])
def test_files_run_later_are_always_asked_about(root: Path, name: str, path: str) -> None:
    if path.startswith("repo.git"):
        (root / ".git/config").unlink()
        (root / ".git/hooks").rmdir()
        (root / ".git").rmdir()
        (root / ".git").write_text("gitdir: repo.git\n")
        (root / "repo.git/config").write_text(f"[core]\n\tworktree = {root}\n")
    tool = next(tool for tool in file_tools(root) if tool.name == name)
    call = {"file_path": path.format(root=root), "content": "x", "old_string": "x", "new_string": "y"}
    for rules in (PolicyRules(allow=("*",)), PolicyRules(allow=(name, f"{name}(*)", f"{name}({path})"))):
        assert Policy(rules).verdict(tool, call).answer == "ask"


@pytest.mark.parametrize(
    "path", ["src/main.py", ".github/workflows/x.yml", ".gitignore", ".env", "venv.py", "aeon/x", ".editorconfig"]
)
def test_other_files_are_written_by_the_rules(root: Path, path: str) -> None:
    tool = next(tool for tool in file_tools(root) if tool.name == "Write")
    assert Policy(PolicyRules(allow=("*",))).verdict(tool, {"file_path": path, "content": "x"}).answer == "allow"


def test_protected_files_are_read_by_the_rules(root: Path) -> None:
    tool = next(tool for tool in file_tools(root) if tool.name == "Read")
    assert Policy().verdict(tool, {"file_path": ".git/config"}).answer == "allow"


def test_the_reason_names_the_program_that_uses_the_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert change_reason(root, PurePosixPath(".envrc")) == "is run by direnv"
    assert change_reason(root, PurePosixPath("hooks/x")) == "is run by git, as core.hooksPath says"
    assert change_reason(root, PurePosixPath("Hooks/x")) == "is run by git, as core.hooksPath says"
    monkeypatch.setattr(sys, "prefix", str(root / "env"))
    assert change_reason(root, PurePosixPath("env/bin/x")) == "belongs to the Python that runs Aeon"


def test_hooks_that_a_worktrees_own_settings_name_are_protected(root: Path) -> None:
    (root / "own").mkdir()
    (root / ".git/config.worktree").write_text("[core]\n\thooksPath = own\n")
    assert change_reason(root, PurePosixPath("own/x")) == "is run by git, as core.hooksPath says"
    assert root / "own" in find_protected(root).existing


def test_hooks_that_the_users_settings_name_are_protected(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/.config/git").mkdir(parents=True)
    (tmp_path / "home/.config/git/config").write_text("[core]\n\thooksPath = first\n")
    (tmp_path / "home/.gitconfig").write_text("[core]\n\thooksPath = .githooks\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (root / ".git/config").write_text("")
    assert change_reason(root, PurePosixPath(".githooks/x")) == "is run by git, as core.hooksPath says"
    assert change_reason(root, PurePosixPath("first/x")) is None
    assert root / ".githooks" in find_protected(root).missing
    (root / ".git/config").write_text("[core]\n\thooksPath = own\n")
    assert change_reason(root, PurePosixPath(".githooks/x")) is None


@pytest.mark.parametrize("hooks", [".", "_"])
def test_hooks_in_the_root_do_not_protect_all_files(root: Path, hooks: str) -> None:
    (root / ".git/config").write_text(f"[core]\n\thooksPath = {hooks}\n")
    assert change_reason(root, PurePosixPath("src/main.py")) is None


@pytest.mark.parametrize("hooks", [".", "_"])
def test_hooks_in_the_root_are_protected_by_their_names(root: Path, hooks: str) -> None:
    (root / ".git/config").write_text(f"[core]\n\thooksPath = {hooks}\n")
    (root / "pre-commit").touch()
    for name in ("pre-commit", "commit-msg", *(["_/pre-push"] if hooks == "_" else [])):
        assert change_reason(root, PurePosixPath(name)) == "is run by git, as core.hooksPath says"
    found = find_protected(root)
    assert root / "pre-commit" in found.existing
    assert root / "commit-msg" not in found.missing
    assert root / "commit-msg" in found.watched


def test_files_that_git_settings_include_are_protected(root: Path) -> None:
    (root / ".git/config").write_text(
        '[include]\n\tpath = ../.gitconfig\n[includeIf "onbranch:x"]\n\tpath = "../conf/x"\n'
    )
    (root / ".gitconfig").touch()
    found = find_protected(root)
    assert root / ".gitconfig" in found.existing
    steps = (root / ".git/rebase-merge/git-rebase-todo", root / ".git/rebase-merge/strategy")
    assert found.watched == (*steps, root / "conf/x")
    for name in (".gitconfig", "conf/x", "Conf/X"):
        assert change_reason(root, PurePosixPath(name)) == "configures what git runs"


def test_other_repositories_are_found_but_not_in_dependencies(root: Path) -> None:
    for name in ("vendor/lib", "node_modules/x", "a/b/c/d/e"):
        (root / name / ".git").mkdir(parents=True)
    assert find_repositories(root) == [root / "a/b/c/d/e/.git", root / "vendor/lib/.git"]


def test_repositories_are_searched_in_a_limited_number_of_folders(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("far/a/b/c", "near"):
        (root / name / ".git").mkdir(parents=True)
    monkeypatch.setattr(protected_paths, "_MAX_FOLDERS", 4)
    assert find_repositories(root) == [root / "near/.git"]


def test_a_pointer_or_link_outside_protects_and_opens_nothing(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / ".vscode").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(root / ".envrc")
    (root / ".git/config").write_text("[core]\n\thooksPath = ../hooks\n")
    found = find_protected(root)
    assert found.git_folders == ()
    assert all(path.is_relative_to(root) for path in (*found.existing, *found.missing))


@pytest.mark.parametrize("locked", ["vendor/x/.git", "vendor/x", ".git"])
def test_a_repository_that_may_not_be_entered_is_protected_as_a_whole(
    locked: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "vendor/x/.git").mkdir(parents=True)
    unlocked = {name: getattr(os, name) for name in ("stat", "lstat")}

    def status(name: str, path: Any, *words: Any, **options: Any) -> os.stat_result:
        if not isinstance(path, int) and root / locked in Path(os.fsdecode(path)).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        found: os.stat_result = unlocked[name](path, *words, **options)
        return found

    for name in unlocked:
        monkeypatch.setattr(os, name, partial(status, name))
    monkeypatch.setattr(os, "access", lambda path, _: path != root / locked)
    found = find_protected(root, find_repositories(root))
    assert (root / locked in found.existing) is locked.endswith(".git")
