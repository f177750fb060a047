"""What changed between two looks at a project: in git and out of it, whatever is in the project."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.tools.files import apply_diff
from system2 import snapshots
from system2.changes import (
    LOST,
    MAX_DIFF,
    ChangeTracker,
    FileChange,
    changed_files,
    compare,
    flag_of,
    list_changes,
    protected_state,
)
from system2.snapshots import MAX_CONTENT, MAX_DIGESTED, ContentFile, GitFiles, Snapshot, SnapshotStore
from tests.system2.kit import Bench

Change = Callable[[Path], object]


def git(root: Path, *words: str) -> str:
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A project with a few files, committed where it is in git."""
    root = tmp_path / "project"
    root.mkdir()
    for path, text in {"a.py": "one\ntwo\nthree\n", "b.txt": "kept\n", ".gitignore": "build/\n*.log\n"}.items():
        (root / path).write_text(text)
    (root / "image.png").write_bytes(b"\x89PNG\0\0")
    if request.param == "git":
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-qm", "first")
    return root


def changed(root: Path, change: Change, folder: Path | None = None) -> list[FileChange]:
    """What a change makes of a project, as the next process would find it, too."""
    store = SnapshotStore(root, folder or root.parent / "kept")
    before = store.take()
    name = store.save(before)
    again = SnapshotStore(root, folder or root.parent / "kept")
    known = again.load(name)
    assert known == before
    change(root)
    return compare(known, again.take(known), again.content)


def summary(changes: list[FileChange]) -> list[tuple[str, ...]]:
    return [tuple(filter(None, (change.status, change.path, change.was, change.note))) for change in changes]


def edits(root: Path) -> None:
    (root / "a.py").write_text("one\n2\nthree\n")
    (root / "new").mkdir()
    (root / "new" / "file.md").write_text("# New\n")
    (root / "b.txt").unlink()


def test_git_hook_variables_do_not_select_another_repository(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    git(outside, "init", "-q")
    before = GitFiles(project).list()
    for name, place in {"GIT_DIR": ".git", "GIT_WORK_TREE": "", "GIT_INDEX_FILE": ".git/index"}.items():
        monkeypatch.setenv(name, str(outside / place))
    assert GitFiles(project).list() == before


def test_a_tracked_file_counts_even_if_ignored(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    git(root, "init", "-q")
    (root / "local.cfg").write_text("a\n")
    git(root, "add", ".")
    (root / ".gitignore").write_text("*.cfg\n")
    changes = changed(root, lambda root: [(root / f"{name}.cfg").write_text("b\n") for name in ("local", "new")], home)
    assert summary(changes) == [("changed", "local.cfg")]


def test_a_file_that_the_own_log_is_redirected_to_is_no_work(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with capfd.disabled(), (project / "err").open("wb") as log:
        before = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            store = SnapshotStore(project)
            first = store.take()
            os.write(2, b"more\n")
            assert compare(first, store.take(first), store.content) == []
        finally:
            os.dup2(before, 2)
            os.close(before)


def test_excluded_files_do_not_count(tmp_path: Path) -> None:
    root, home = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    git(root, "init", "-q")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "exclude").write_text("scratch\n")
    changes = changed(root, lambda root: [(root / name).write_text("b\n") for name in ("scratch", "work")], home)
    assert summary(changes) == [("created", "work")]


def test_a_file_is_changed_created_or_deleted_and_shown_as_a_unified_diff(project: Path) -> None:
    changes = changed(project, edits)
    assert summary(changes) == [("changed", "a.py"), ("deleted", "b.txt"), ("created", "new/file.md")]
    assert changes[0].diff == "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert changes[1].diff == "--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-kept"
    assert changes[2].diff == "--- /dev/null\n+++ b/new/file.md\n@@ -0,0 +1 @@\n+# New"
    assert [(change.added, change.removed) for change in changes] == [(1, 1), (0, 1), (1, 0)]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda root: (root / "a.py").rename(root / "c.py"), [("renamed", "c.py", "a.py")]),
        (lambda root: (root / "image.png").write_bytes(b"\0other"), [("changed", "image.png", "binary")]),
        (lambda root: (root / "big").write_bytes(b"x" * (MAX_CONTENT + 1)), [("created", "big", "larger than 1 MB")]),
        (lambda root: (root / "link").symlink_to("/etc/passwd"), [("created", "link", "symbolic link to /etc/passwd")]),
        (lambda root: truncated(root / "vast"), [("created", "vast", "larger than 100 MB: compared by size and time")]),
        (lambda root: (root / "a.py").chmod(0o755), [("changed", "a.py", "executable now")]),
        (lambda root: (root / "empty").touch(), [("created", "empty", "empty")]),
        (lambda root: (root / "a.py").touch(), []),
        (lambda root: os.mkfifo(root / "pipe"), []),
        (lambda root: (root / "debug.log").write_text("ignored"), []),
        (lambda root: ((root / "build").mkdir(), (root / "build/x").touch()), []),
        (lambda root: ((root / "__pycache__").mkdir(), (root / "__pycache__/x.pyc").touch()), []),
    ],
    ids=["rename", "binary", "huge", "link", "vast", "mode", "empty", "touch", "pipe", "ignored", "build", "cache"],
)
def test_changes_other_than_plain_edits(change: Change, found: list[tuple[str, ...]], project: Path) -> None:
    changes = changed(project, change)
    assert summary(changes) == found
    assert not any(each.diff for each in changes)


def test_a_new_kind_or_mode_hides_no_content(project: Path) -> None:
    (project / "a link").symlink_to("b.txt")

    def change(root: Path) -> None:
        (root / "a link").unlink()
        (root / "a link").write_text("rm -rf build\n")
        (root / "b.txt").unlink()
        (root / "b.txt").symlink_to("a.py")
        (root / "a.py").write_text("two\n")
        (root / "new").write_text("")
        for name in ("a link", "a.py", "new"):
            (root / name).chmod(0o755)

    assert list_changes(changes := changed(project, change)).splitlines() == [
        "  changed  a link  +1 −1  no longer a symbolic link, executable now",
        "  changed  a.py  +0 −2  executable now",
        "  changed  b.txt  +1 −1  symbolic link to a.py",
        "  created  new  empty, executable",
    ]
    assert "+rm -rf build" in changes[0].diff
    assert "-kept" in changes[2].diff


def test_a_file_name_with_a_line_break_is_one_entry(project: Path) -> None:
    (change,) = changed(project, lambda root: (root / "a\n  deleted  b.py\r\x1b[2K").write_text("x\n"))
    listed = list_changes([change])
    assert listed == r"  created  a\n  deleted  b.py\r\x1b[2K  +1 −0"
    assert change.diff.split("\n")[1] == r"+++ b/a\n  deleted  b.py\r\x1b[2K"


def test_a_link_to_a_name_with_a_line_break_is_one_entry(project: Path) -> None:
    (change,) = changed(project, lambda root: (root / "link").symlink_to("b\n  deleted  c"))
    assert list_changes([change]) == r"  created  link  symbolic link to b\n  deleted  c"


def test_the_list_counts_the_lines_that_a_long_diff_leaves_out(project: Path) -> None:
    (change,) = changed(project, lambda root: (root / "new").write_text("x\n" * 5000))
    assert (change.added, change.removed) == (5000, 0)
    assert len(change.diff.split("\n")) == MAX_DIFF + 1
    assert change.diff.endswith("[the diff is cut after 2000 lines]")


def truncated(file: Path) -> None:
    file.touch()
    os.truncate(file, MAX_DIGESTED + 1)


def test_a_file_that_becomes_ignored_is_still_shown(project: Path) -> None:
    def hides(root: Path) -> None:
        (root / ".gitignore").write_text("*\n")
        (root / "a.py").write_text("changed\n")

    assert summary(changed(project, hides)) == [("changed", ".gitignore"), ("changed", "a.py")]


def test_files_in_a_folder_that_may_not_be_searched_are_not_deleted(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, lstat = project / "closed", os.lstat
    folder.mkdir()
    (folder / "script").write_text("one\n")
    (folder / "script").chmod(0o755)

    # A mode alone does not keep root out.
    def closed(path: Any, **more: Any) -> os.stat_result:
        if os.fspath(path).startswith(f"{folder}/"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return lstat(path, **more)

    found = changed(project, lambda root: monkeypatch.setattr(os, "lstat", closed))
    assert summary(found) == [("changed", "closed/script", "not readable")]


def test_where_case_is_ignored_a_file_is_listed_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("Spec", "sPEC", "spec", "SPEC"):
        (project / folder).mkdir()
        (project / folder / "design.md").write_text("x\n")
    store = SnapshotStore(project)
    assert {"Spec/design.md", "spec/design.md"} <= store.take(also=["spec/design.md"]).files.keys()
    monkeypatch.setattr(os, "listdir", lambda _: ["Spec"])
    first = store.take(also=["spec/design.md"])
    assert [path for path in first.files if path.endswith("design.md")] == ["spec/design.md"]
    assert store.take(first, also=["SPEC/design.md"]).files == first.files


def test_files_in_nested_repositories_are_seen(project: Path) -> None:
    other = project.parent / "other"
    for place in (other, project / "nested"):
        place.mkdir()
        git(place, "init", "-q")
        (place / "inner.py").write_text("inner\n")
        git(place, "add", ".")
        git(place, "commit", "-qm", "inner")
    if (project / ".git").exists():
        git(project, "submodule", "--quiet", "add", str(other), "sub")
    else:
        (project / "sub").mkdir()
        (project / "sub" / "inner.py").write_text("inner\n")

    def change(root: Path) -> None:
        for place in ("nested", "sub"):
            (root / place / "inner.py").write_text("changed\n")

    assert summary(changed(project, change)) == [("changed", "nested/inner.py"), ("changed", "sub/inner.py")]


def test_an_agents_commit_hides_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")

    def commits(root: Path) -> None:
        (root / "a.py").write_text("two\n")
        git(root, "commit", "-qam", "second")
        git(root, "update-index", "--assume-unchanged", "a.py")

    (change,) = changed(tmp_path, commits, tmp_path.parent / "kept")
    assert change.diff.endswith("-one\n+two")


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """A repository whose configuration runs a command wherever git lets it, and the file that the command makes."""
    root, made = tmp_path / "project", tmp_path / "pwned"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.py").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\ntouch {made}\ncat\n")
    command.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "filter.x.clean",
        "filter.x.smudge",
    ):
        git(root, "config", key, str(command))
    for key in ("filter.x.process", "diff.x.textconv", "diff.x.command", "alias.ls-files", "gpg.program"):
        git(root, "config", key, f"!{command}" if key.startswith("alias") else str(command))
    (root / ".gitattributes").write_text("* filter=x diff=x\n")
    hooks = root / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout"):
        (hooks / name).write_bytes(command.read_bytes())
        (hooks / name).chmod(0o755)
    made.unlink(missing_ok=True)
    git(root, "status")
    assert made.exists()
    made.unlink()
    return root, made


def test_a_hostile_repository_runs_nothing_and_is_unchanged(hostile: tuple[Path, Path]) -> None:
    root, made = hostile
    inside = {path: path.read_bytes() for path in (root / ".git").rglob("*") if path.is_file()}
    changes = changed(root, lambda root: (root / "a.py").write_text("two\n"))
    assert summary(changes) == [("changed", "a.py")]
    assert changes[0].diff.endswith("-one\n+two")
    assert not made.exists()
    assert {path: path.read_bytes() for path in (root / ".git").rglob("*") if path.is_file()} == inside


@pytest.mark.parametrize(
    "settings",
    [
        {"core.worktree": "OUTSIDE"},
        {"core.bare": "true"},
        {"include.path": "OUTSIDE/config"},
        {"extensions.worktreeConfig": "true"},
        {"core.attributesFile": "OUTSIDE/attributes", "filter.x.process": "COMMAND"},
        {"core.alternateRefsCommand": "COMMAND"},
        {"pager.ls-files": "COMMAND"},
        {"submodule.recurse": "true"},
        {"trace2.normalTarget": "MADE", "trace2.eventTarget": "MADE", "trace2.perfTarget": "MADE"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_no_setting_of_a_repository_runs_a_program_or_lists_another_folder(
    settings: dict[str, str], hostile: tuple[Path, Path]
) -> None:
    root, made = hostile
    (root / "new").write_text("new\n")
    before = GitFiles(root).list()
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "attributes").write_text("* filter=x\n")
    for config in (outside / "config", root / ".git" / "config.worktree"):
        git(root, "config", "--file", str(config), "core.worktree", str(outside))
    places = {"OUTSIDE": str(outside), "COMMAND": str(root.parent / "command"), "MADE": str(made)}
    for key, value in settings.items():
        for name, place in places.items():
            value = value.replace(name, place)
        git(root, "config", "--file", ".git/config", key, value)
    assert before == (["a.py", ".gitattributes", "new"], [])
    assert GitFiles(root).list() == before
    assert not made.exists()


def test_a_partial_clone_does_not_make_git_fetch(hostile: tuple[Path, Path]) -> None:
    root, made = hostile
    (root / "folder").mkdir()
    (root / "folder" / "inner").write_text("inner\n")
    git(root, "-c", "core.hooksPath=/dev/null", "add", ".")
    git(root, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "second")
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index")
    for objects in (root / ".git" / "objects").glob("??"):
        shutil.rmtree(objects)
    (root.parent / "command").write_text(f"#!/bin/sh\ntouch {made}\nexit 1\n")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "core.fsmonitor": "false",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(root),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(root.parent / "command"),
    }.items():
        git(root, "config", key, value)
    made.unlink(missing_ok=True)
    # Some versions crash when their fetch fails.
    subprocess.run(["git", "ls-files"], cwd=root, check=False, capture_output=True)
    assert made.exists()
    made.unlink()
    GitFiles(root).list()
    assert not made.exists()


def test_a_folder_that_became_a_link_out_of_the_project_shows_nothing_from_there(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (root / "folder", outside):
        folder.mkdir(parents=True)
        (folder / "key").write_text(f"in {folder.parent.name}\n")
    git(root, "init", "-q")
    git(root, "add", ".")

    def replace(_: Path) -> None:
        shutil.rmtree(root / "folder")
        (root / "folder").symlink_to(outside)

    found = {change.path: change.status for change in changed(root, replace)}
    assert found == {"folder/key": "deleted", "folder": "created"}


def test_an_index_that_names_files_outside_the_project_shows_none_of_them(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for folder in (root, tmp_path / "up"):
        folder.mkdir()
        (folder / "key").write_text("key\n")
    git(root, "init", "-q")
    blob = git(root, "hash-object", "-w", "key").strip()
    git(root, "update-index", "--add", "--cacheinfo", f"100644,{blob},xx/up/key")
    index = root / ".git" / "index"
    content = index.read_bytes()[:-20].replace(b"xx/up/key", b"../up/key")
    index.write_bytes(content + hashlib.sha1(content).digest())
    assert "../up/key" in (GitFiles(root).list() or [[]])[0]
    assert set(SnapshotStore(root).take().files) == {"key"}


def test_the_users_own_ignore_patterns_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home" / "git").mkdir(parents=True)
    (tmp_path / "home" / "git" / "ignore").write_text("*.swp\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    for name in ("a.py", "a.swp"):
        (root / name).touch()
    assert GitFiles(root).list() == (["a.py"], [])


def test_snapshots_are_readable_only_by_the_user(tmp_path: Path) -> None:
    root, kept = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    (root / "new").write_text("new\n")
    store = SnapshotStore(root, kept)
    snapshot = store.take()
    assert ContentFile(kept).load(snapshot.files["new"].digest) == b"new\n"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("broken", ["index", "pointer", "program"])
def test_without_a_working_git_the_project_is_walked(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken == "pointer":
        (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    else:
        git(tmp_path, "init", "-q")
    if broken == "index":
        (tmp_path / ".git" / "index").write_text("no index")
    if broken == "program":
        # A git that the project brings is none.
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").write_text("#!/bin/sh\ntouch pwned\n")
        (tmp_path / "bin" / "git").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    if broken != "pointer":
        assert GitFiles(tmp_path).list() is None
    changes = changed(tmp_path, lambda root: (root / "a").write_text("a\n"), tmp_path.parent / "kept")
    assert summary(changes) == [("created", "a")]
    assert not (tmp_path / "pwned").exists()


def test_a_git_that_blocks_is_asked_only_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".git" / "config").unlink()
    os.mkfifo(tmp_path / ".git" / "config")
    monkeypatch.setattr(snapshots, "_GIT_SECONDS", 0.1)
    files, calls, run = GitFiles(tmp_path), list[object](), subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *words, **more: calls.append(words) or run(*words, **more))
    assert [files.list(), files.list(), len(calls)] == [None, None, 1]


def test_a_root_that_a_repository_above_ignores_is_walked(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("*\n")
    root = tmp_path / "project"
    root.mkdir()
    assert summary(changed(root, lambda root: (root / "a").write_text("a\n"))) == [("created", "a")]


def test_damaged_or_missing_snapshots_are_reported(tmp_path: Path) -> None:
    root, kept = tmp_path / "project", tmp_path / "kept"
    root.mkdir()
    (root / "a").write_text("a\n")
    store = SnapshotStore(root, kept)
    before = store.take()
    name = store.save(before)
    kept.write_bytes(kept.read_bytes()[:41] + b"forged" + kept.read_bytes()[47:])
    (root / "a").write_text("b\n")
    (change,) = compare(before, store.take(before), store.content)
    assert (change.note, change.diff) == ("what was in it before is not known", "")
    assert (store.load(name), store.load("nothing")) == (before, None)


def test_a_half_written_snapshot_is_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = ContentFile(kept)
    names = [first.keep(b"one" * 100), first.keep(b"two" * 100)]
    kept.write_bytes(kept.read_bytes()[:-3])
    second = ContentFile(kept)
    assert second.load(names[1]) is None
    names.append(second.keep(b"three"))
    third = ContentFile(kept)
    assert [third.load(name) for name in names] == [b"one" * 100, None, b"three"]


def test_an_unwritable_folder_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    changes = changed_in_memory(tmp_path)
    assert changes[0].diff.endswith("-one\n+two")


def changed_in_memory(root: Path) -> list[FileChange]:
    (root / "a").write_text("one\n")
    store = SnapshotStore(root, root / "file" / "below")
    before = store.take()
    (root / "a").write_text("two\n")
    return compare(before, store.take(before), store.content)


def test_exceeding_the_file_limit_is_reported_and_nothing_else_looks_created_or_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_FILES", 3)
    for name in "bcdef":
        (tmp_path / name).write_text(name)
    store = SnapshotStore(tmp_path)
    before = store.take()
    assert before.notes == ("the project has 5 files; only 3 are compared",)
    before = replace(before, taken_ns=max(path.stat().st_ctime_ns for path in tmp_path.iterdir()) + 1)
    (tmp_path / "a").write_text("a")
    while (tmp_path / "a").stat().st_ctime_ns < before.taken_ns:
        (tmp_path / "a").write_text("a")
    after = store.take(before)
    assert summary(compare(before, after, store.content)) == [("created", "a")]
    assert after.notes == ("the project has 6 files; only 4 are compared",)


LINES = st.lists(st.text(alphabet="ab\r ", max_size=3), max_size=12).map(lambda lines: "".join(f"{x}\n" for x in lines))


@settings(max_examples=50)
@given(LINES.filter(bool), LINES.filter(bool))
def test_a_diff_turns_the_old_text_into_the_new_one(old: str, new: str) -> None:
    texts = {"old": old.encode(), "new": new.encode()}
    states = {name: snapshots.FileState("text", name, len(text), executable=False) for name, text in texts.items()}
    before, after = (Snapshot({"f": states[name]}) for name in ("old", "new"))
    (change,) = compare(before, after, lambda state: texts[state.digest])
    if old != new:
        assert apply_diff(texts["old"], change.diff, "f", "f")[0] == texts["new"]


def test_a_list_names_flagged_files_first() -> None:
    changes = [
        FileChange("a.py", "changed", "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b", 1, 1),
        FileChange("b.py", "renamed", was="c.py", flag="it was approved before"),
    ]
    assert list_changes(changes) == ("⚠ renamed  b.py (was c.py)  it was approved before\n  changed  a.py  +1 −1")
    assert list_changes([]) == "No file changed."


@pytest.mark.parametrize(
    ("path", "agents", "flagged"),
    [
        ("spec/scope.md", ["repo-governor"], False),
        ("CLAUDE.md", ["repo-governor"], False),
        ("sub/CLAUDE.md", ["repo-governor"], True),
        ("CLAUDE.md", ["executor"], True),
        ("src/a.py", ["spec-coordinator"], True),
        ("src/a.py", ["executor"], False),
        ("src/a.py", ["executor", "code-reviewer"], True),
        ("spec/code-review.md", ["code-reviewer"], False),
        ("spec/post-execution-log.md", ["security-sentinel"], False),
        ("spec/design.md", ["executor"], True),
        ("spec/design.md", [], True),
        ("tests/test_a.py", ["test-engineer"], False),
        (".git/hooks/pre-commit", [], True),
    ],
)
def test_files_that_an_agent_should_not_change_are_flagged(path: str, agents: list[str], flagged: bool) -> None:
    assert bool(flag_of(path, agents)) is flagged


def test_changes_made_while_a_gate_waits_are_not_the_agents(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, hidden=lambda path: path.startswith(".system2"))
    tracker = ChangeTracker(Bench(tmp_path).context.effects, store, [])
    tracker.begin()
    (tmp_path / "by-agent").write_text("a\n")
    assert tracker.note("spec-coordinator") == ["by-agent"]
    assert [change.flag for change in tracker.since_gate("spec-coordinator")] == [
        "spec-coordinator changed it, outside its document"
    ]
    (tmp_path / "by-person").write_text("p\n")
    tracker.note_decision(executes=True)
    (tmp_path / "src.py").write_text("x\n")
    assert tracker.note("executor") == []
    assert [change.path for change in tracker.since_gate(None)] == ["src.py"]


@pytest.mark.parametrize(
    "place",
    [".git/rebase-merge/strategy", ".git/info/attributes", "a/b/c/d/e/f/.git/hooks/pre-commit", ".vscode/tasks.json"],
)
def test_what_git_or_an_editor_runs_is_flagged_even_if_it_is_ignored(place: str, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(".vscode\n.system2\na\n")
    tracker = ChangeTracker(Bench(tmp_path).context.effects, SnapshotStore(tmp_path), [])
    tracker.begin()
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("touch pwned\n")
    assert tracker.note("executor") == [place]


@pytest.mark.parametrize(
    ("place", "inside"),
    [
        (".git/hooks", [".git/hooks/x"]),
        ("a/.git/hooks", ["a/.git/hooks/x"]),
        (".vscode", [".vscode/x"]),
        (".claude/commands", []),
        (".venv", []),
    ],
)
def test_a_link_out_of_the_project_that_others_follow_is_noticed(place: str, inside: list[str], tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "project"
    for folder in (outside, root / ".git", root / ".claude", root / "a/.git"):
        folder.mkdir(parents=True)
        (folder / "config").touch()
    before, tracker = protected_state(root), ChangeTracker(Bench(root).context.effects, SnapshotStore(root), [])
    tracker.begin()
    (root / place).symlink_to(outside)
    assert place in changed_files(before, protected_state(root))
    assert tracker.note("executor") == [place]
    linked = protected_state(root)
    (outside / "x").touch()
    assert changed_files(linked, protected_state(root)) == inside


def test_a_steering_folder_that_may_not_be_searched_stops_no_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = tmp_path / ".claude/x"
    refused.parent.mkdir()
    refused.touch()
    real = os.stat

    def stat(path: Any, *args: Any, **options: Any) -> os.stat_result:
        if os.fspath(path) == str(refused):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert list(protected_state(tmp_path)) == [".claude/x"]


def test_git_settings_that_name_an_impossible_path_stop_no_workflow(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    before = protected_state(tmp_path)
    git(tmp_path, "config", "include.path", "a" * 5000)
    assert changed_files(before, protected_state(tmp_path)) == [".git/config"]


def test_a_steering_file_that_is_rewritten_with_its_old_size_and_time_is_noticed(tmp_path: Path) -> None:
    rules = tmp_path / "CLAUDE.md"
    rules.write_text("Ask first.")
    before, times = protected_state(tmp_path), rules.stat()
    rules.write_text("Ask never.")
    os.utime(rules, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert changed_files(before, protected_state(tmp_path)) == ["CLAUDE.md"]


def test_missing_snapshots_are_reported_without_flagging_files(tmp_path: Path) -> None:
    kept = tmp_path / ".system2" / "x.files"
    kept.parent.mkdir()
    store = SnapshotStore(tmp_path, kept, hidden=lambda path: path.startswith(".system2"))
    tracker = ChangeTracker(Bench(tmp_path).context.effects, store, [])
    tracker.begin()
    (tmp_path / "a").write_text("a\n")
    kept.unlink()
    again = ChangeTracker(
        Bench(tmp_path).context.effects,
        SnapshotStore(tmp_path, kept, hidden=lambda path: path.startswith(".system2")),
        [],
    )
    again._now, again._at_gate = tracker._now, tracker._at_gate
    assert again.since_gate("spec-coordinator") == []
    assert again.notes == [LOST]
