"""What a command under bubblewrap changes of what other programs act upon: nothing, and nothing is left behind."""

# ruff: noqa: E501  # one attack a line
from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from aeon_core.tools.protected_paths import change_reason, find_protected, find_repositories, placeholders
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Rung
from tests.aeon_core.tools.shell.rungs import RUNGS, said, tool_in, words
from tests.sampling import sample

FILES = words(
    """
    .aeon/config.yml .system2/config.yml .claude/settings.json .mcp.json .venv/bin/python .envrc
    .vscode/tasks.json .pre-commit-config.yaml .git/config .git/hooks/pre-commit .git/info/attributes
    """
)


def git(folder: Path, *words: str) -> str:
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    done = subprocess.run(["git", "-C", str(folder), *words], env=environ, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ann\n\temail = ann@example.org\n[credential]\n\thelper = store\n"
        '[url "https://SECRET@host/"]\n\tinsteadOf = https://host/\n[alias]\n\tx = !cat ~/.netrc\n'
    )
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def project(home: Path) -> Path:
    root = home / "project"
    root.mkdir()
    git(root, "init", "-q")
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if not (root / name).exists():
            (root / name).write_text("kept\n")
    return root


@pytest.fixture
def tool(project: Path) -> BashTool:
    return tool_in("bubblewrap", project)


def tree(root: Path) -> dict[str, str]:
    """Return content, mode and time of what is protected, and the names around it, without copies that were made."""
    files = [root / name for name in FILES]
    found = {str(path): f"{path.read_text()} {path.stat().st_mode} {path.stat().st_mtime_ns}" for path in files}
    folders = {path.parent for path in files} - {root, root / ".git"}
    return found | {
        str(folder): " ".join(sorted({path.name for path in folder.iterdir()} - {"taken", "d"})) for folder in folders
    }


WAYS = [
    "echo x > {}",
    "echo x >> ./{}",
    "echo x | tee {}",
    "cp /etc/hostname {}",
    "rm -f {}",
    "mv {} taken",
    "mv $(dirname {}) taken",
    "ln -sf /etc/passwd {}",
    "ln {} other; echo x > other; rm -f other",
    "ln -s {} other; echo x > other; rm -f other",
    "sed -i s/kept/x/ {}",
    "truncate -s 0 {}",
    "dd of={} < /dev/null",
    "chmod 777 {}",
    "touch -d 2000-01-01 {}",
    "install /dev/null {}",
    "python3 -c \"open('{}','w').write('x')\"",
    "cd $(dirname {}) && echo x > $(basename {})",
    'echo x > "$PWD/{}"',
    "echo x > /proc/self/cwd/{}",
    "echo x > ../project/{}",
    "exec 3<>{}; echo x >&3",
    "mount --bind /tmp $(dirname {}); echo x > {}",
    "[ $(dirname {}) = . ] || rm -r $(dirname {})",
    "mkdir d && mv d/../{} d/; rmdir d",
    "git config --file {} core.x y",
    "git update-index --add {}; git checkout-index -f --prefix=x/ -a; rm -rf x",
]


@pytest.mark.parametrize("way", sample(WAYS, 5))
def test_protected_files_cannot_be_changed(tool: BashTool, project: Path, way: str) -> None:
    before = tree(project)
    # `safety_mode` is not what is tested here.
    permissive = tool._settings.model_copy(update={"safety_mode": "permissive"})
    tool = BashTool(project, permissive, tool.isolation)
    tool.invoke("; ".join(f"( {way.format(*[name] * way.count('{}'))} )" for name in FILES), timeout=60)
    assert tree(project) == before


def test_missing_protected_files_cannot_be_created(home: Path) -> None:
    root = home / "new"
    root.mkdir()
    tool = tool_in("bubblewrap", root)
    names = [
        ".aeon",
        ".system2",
        ".claude",
        ".mcp.json",
        ".venv",
        ".envrc",
        ".vscode",
        ".pre-commit-config.yaml",
        ".git",
    ]
    for name in names:
        tool.invoke(f"echo x > {name}; mkdir {name}; echo x > {name}/x; rmdir {name}; mv {name} y; ln -s /tmp {name}")
    result = tool.invoke("git init .")
    assert result["exit_code"] != 0
    assert result["notices"] == [
        "commands cannot change '.git': a person makes a repository here, with `git init` in a terminal"
    ]
    assert list(root.iterdir()) == []
    assert said(tool, "touch made && mkdir -p a/b && ls") == "a\nmade"


def test_missing_parts_of_a_repository_cannot_be_created(tool: BashTool, project: Path) -> None:
    shutil.rmtree(project / ".git/hooks")
    shutil.rmtree(project / ".git/info")
    before = sorted((project / ".git").iterdir())
    tool.invoke("mkdir .git/hooks; echo x > .git/hooks/pre-commit; mkdir .git/info; echo ../x > .git/commondir")
    assert sorted((project / ".git").iterdir()) == before


def test_cargo_and_others_with_libgit2_find_the_repository(tool: BashTool, project: Path) -> None:
    # libgit2 opens no repository whose `commondir` is a dot alone.
    assert said(tool, "cat .git/commondir; echo; git rev-parse --git-common-dir") == f"./\n{project}/.git"


@pytest.mark.parametrize("condition", ["gitdir:{}/", "hasconfig:remote.*.url:git@work.example:*/**"])
def test_git_knows_the_committer_of_this_repository(tool: BashTool, project: Path, home: Path, condition: str) -> None:
    git(project, "remote", "add", "origin", "git@work.example:a/b.git")
    git(project, "config", "user.name", "Local")
    with (home / ".gitconfig").open("a") as settings:
        settings.write(f'[includeIf "{condition.format(project)}"]\n\tpath = work\n')
    (home / "work").write_text("[user]\n\temail = ann@work.example\n")
    made = said(tool, "echo a > a; git add a; git commit -qm one; git log --format='%an %ae'; cat $GIT_CONFIG_GLOBAL")
    assert made.startswith("Local ann@work.example\n")
    assert "Local" not in made.partition("\n")[2]


def test_git_knows_the_committer_although_the_repository_is_broken(tool: BashTool, project: Path) -> None:
    (project / ".git/config").write_text("[broken")
    assert said(tool, "cd /tmp; git config user.name") == "Ann"


@pytest.mark.parametrize("rung", RUNGS)
def test_a_part_of_a_repository_as_the_project_gives_advice(project: Path, rung: str) -> None:
    (project / "part").mkdir()
    tool = tool_in(rung, project / "part")
    failing = "git status", f"echo {project}/.git/index.lock: Read-only file system; exit 1"
    advice = (
        f"the project is only a part of the git repository '{project}', which commands cannot use: a person can start"
    )
    for command in failing:
        (notice,) = tool.invoke(command)["notices"]
        assert notice.startswith(advice)
    assert "part of the git repository" not in str(tool_in(rung, project).invoke("git -C /usr status").get("notices"))


def test_git_works_and_knows_the_committer(tool: BashTool, project: Path) -> None:
    text = said(
        tool,
        "set -e; echo a > a; git add a; git commit -qm one; git branch other; git checkout -q other; echo b >> a;"
        "git commit -qam two; git stash list; echo c >> a; git stash -q; git stash pop -q; git checkout -q a; git tag v1;"
        "git rebase -q HEAD~1; git merge -q HEAD; git gc -q; git worktree add -q wt HEAD 2>&1; git -C wt status --short;"
        "git worktree remove wt; git log --format='%an %s'; git status --short; git rev-parse --git-common-dir",
    )
    assert text.split("\n")[:2] == ["Ann two", "Ann one"]
    assert git(project, "log", "--format=%s", "-1").strip() == "two"
    assert "SECRET" not in said(tool, "git config --list; git x; cat $GIT_CONFIG_GLOBAL")
    assert sorted(set(said(tool, "git status --short --ignored").split("\n"))) == sorted(
        {
            "?? .aeon/",
            "?? .claude/",
            "?? .envrc",
            "?? .mcp.json",
            "?? .pre-commit-config.yaml",
            "?? .system2/",
            "?? .venv/",
            "?? .vscode/",
        }
    )


def test_a_worktree_of_a_repository_elsewhere_can_be_committed_to(home: Path) -> None:
    main = home / "main"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    git(main, "worktree", "add", "-q", str(home / "tree"))
    tool = tool_in("bubblewrap", home / "tree")
    result = tool.invoke("echo a > a && git add a && git commit -qm two")
    assert result["exit_code"] == 0, result
    assert git(main, "log", "--format=%s", "-1", "tree").strip() == "two"
    tool.invoke(
        f"echo x > {main}/.git/hooks/pre-commit; git config core.hooksPath /tmp; echo x > .git; echo x > {main}/new"
    )
    assert not (main / ".git/hooks/pre-commit").exists()
    assert "hooksPath" not in (main / ".git/config").read_text()
    assert (home / "tree/.git").read_text().startswith("gitdir: ")
    assert not (main / "new").exists()


def test_git_forgets_no_worktree_that_a_command_cannot_see(home: Path, project: Path) -> None:
    tree, settings = home / "tree", project / ".git/worktrees/tree"
    git(project, "commit", "-q", "--allow-empty", "-m", "one")
    git(project, "worktree", "add", "-q", str(tree))
    tool = tool_in("bubblewrap", project)
    assert tool.invoke("git worktree prune && git gc -q && git worktree add -q wt HEAD && ls wt")["exit_code"] == 0
    assert tool.invoke("git worktree remove wt && git worktree prune")["exit_code"] == 0
    said(tool, f"rm {settings}/locked; echo x > {settings}/commondir; git worktree unlock {tree}")
    assert git(tree, "log", "--format=%s").strip() == "one"
    assert not (settings / "locked").exists()


def test_git_works_where_a_worktree_may_have_settings_and_they_cannot_be_made(home: Path) -> None:
    main, tree = home / "main", home / "tree"
    main.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    git(main, "config", "extensions.worktreeConfig", "true")
    git(main, "worktree", "add", "-q", str(tree))
    for root, settings in ((main, main / ".git"), (tree, main / ".git/worktrees/tree")):
        tool = tool_in("bubblewrap", root)
        assert said(tool, "echo a > a && git add a && git commit -qm two && git log --format=%s") == "two\none"
        assert tool.invoke("git config --worktree core.fsmonitor x")["exit_code"] != 0
        said(tool, f"echo x > {settings}/config.worktree; mv {settings}/config.worktree {settings}/y")
        assert not (settings / "config.worktree").exists()


def test_an_unreciprocated_git_pointer_opens_nothing(home: Path) -> None:
    victim, root = home / "victim", home / "root"
    for folder in (victim, root):
        folder.mkdir()
    git(victim, "init", "-q")
    (root / ".git").write_text(f"gitdir: {victim}/.git\n")
    said(tool_in("bubblewrap", root), f"echo x > {victim}/.git/HEAD; echo x > {victim}/.git/refs/x")
    assert (victim / ".git/HEAD").read_text().startswith("ref: ")
    assert not (victim / ".git/refs/x").exists()
    assert find_protected(root).git_folders == ()


@pytest.mark.parametrize("rung", RUNGS)
@pytest.mark.parametrize(
    "plant",
    [
        "mv .git taken; ln -s .. .git",
        "mv .git taken; ln -s ../tree/.git .git",
        "mkdir lib; ln -s ../.. lib/.git",
        "mkdir lib; ln -s ../../tree/.git lib/.git",
        "mkdir lib; echo gitdir: .. > lib/.git; echo ../.. > commondir; echo lib/.git > gitdir; touch HEAD",
        "ln -s ../../sub .git/modules",
        "mkdir .git/worktrees; ln -s ../../../other/.git/worktrees/tree .git/worktrees/w",
        "git init -q lib; git -C lib config core.hooksPath lib/link/hooks; ln -s ../../sub lib/link",
    ],
)
def test_no_link_or_file_that_a_command_leaves_opens_what_is_outside(home: Path, plant: str, rung: Rung) -> None:
    root, secret = home / "worktrees/project", home / "worktrees/sub/key"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    (secret.parent / "module").mkdir(parents=True)
    (secret.parent / "module/config").write_text("")
    secret.write_text("private")
    other = home / "worktrees/other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "one")
    git(other, "worktree", "add", "-q", "../tree")
    outside = sorted(str(path) for path in home.rglob("*") if not path.is_relative_to(root))
    look = f"cat {secret}; echo x > {secret.parent}/new; echo x > {home}/new; echo x > {other}/.git/new; echo works"
    tool_in(rung, root).invoke(plant)
    for tool in (tool_in(rung, root), tool_in(rung, root)):
        result = tool.invoke(look, timeout=60)
        assert (result["stdout"], "private" in result["stderr"]) == ("works\n", False)
    found = find_protected(root, find_repositories(root))
    assert [path for path in (*found.existing, *found.missing) if not path.resolve().is_relative_to(root)] == []
    assert found.git_folders == ()
    assert sorted(str(path) for path in home.rglob("*") if not path.is_relative_to(root)) == outside


def test_a_link_to_a_repository_that_points_back_is_used(home: Path, project: Path) -> None:
    store = home / "store"
    (project / ".git").rename(store)
    (project / ".git").symlink_to(store)
    git(project, "config", "user.name", "a")
    git(project, "config", "user.email", "a@example.org")
    assert find_protected(project).git_folders == ()
    commit = "git commit -q --allow-empty -m one"
    (notice,) = tool_in("bubblewrap", project).invoke(commit)["notices"]
    assert notice.endswith("""in a terminal, with `git config core.worktree "$PWD"`""")
    git(project, "config", "core.worktree", str(project))
    assert find_protected(project).git_folders == (store,)
    assert tool_in("bubblewrap", project).invoke(commit)["exit_code"] == 0


@pytest.mark.parametrize("settings", [("--separate-git-dir=repo", "."), ("--bare", "repo")])
def test_a_repository_in_the_project_that_a_git_file_names_is_protected(home: Path, settings: tuple[str, ...]) -> None:
    root = home / "root"
    root.mkdir()
    git(root, "init", "-q", *settings)
    (root / ".git").write_text("gitdir: ./repo\n")
    before = (root / "repo/config").read_text()
    said(
        tool_in("bubblewrap", root),
        "git config core.fsmonitor x; echo x >> repo/config; echo x > repo/hooks/pre-commit; mv repo y",
    )
    assert (root / "repo/config").read_text() == before
    assert not (root / "repo/hooks/pre-commit").exists()
    assert change_reason(root, PurePosixPath("repo/config")) == "configures what git runs"
    assert change_reason(root, PurePosixPath("src/config")) is None


def test_other_repositories_in_the_project_are_protected(tool: BashTool, project: Path) -> None:
    inner = project / "vendor/lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    commit = "cd vendor/lib && echo a > a && git add a && git commit -qm x && git log --format=%s"
    assert said(tool, commit) == "x"
    said(tool, "echo x > vendor/lib/.git/hooks/pre-commit; git -C vendor/lib config core.fsmonitor x; mv vendor taken")
    said(
        tool, "mv vendor/lib taken; mv vendor/lib/.git taken; mkdir -p vendor/lib/.git; echo x > vendor/lib/.git/config"
    )
    assert not (inner / ".git/hooks/pre-commit").exists()
    assert (inner / ".git/config").read_text().startswith("[core]")
    assert "fsmonitor" not in (inner / ".git/config").read_text()


def test_a_repository_made_by_a_command_is_reported_once(tool: BashTool, project: Path) -> None:
    plant = "git init -q sub && git -C sub config core.fsmonitor 'touch pwned' && echo x > sub/x"
    assert tool.invoke(plant)["notices"] == [
        "the command made 'sub/.git', a git repository whose settings git obeys: check them before you use git"
    ]
    assert "notices" not in tool.invoke("echo again")
    assert tool.invoke("mkdir other && cp -r sub/.git other/.GIT")["notices"] == [
        "the command made 'other/.GIT', a git repository whose settings git obeys: check them before you use git"
    ]


def test_a_planted_step_of_a_rebase_is_reported_if_it_runs_something(tool: BashTool) -> None:
    steps = ".git/rebase-merge/git-rebase-todo"
    ended = tool.invoke(f"mkdir .git/rebase-merge && echo 'pick 1234567' > {steps}")
    assert (ended["exit_code"], ended.get("notices")) == (0, None)
    assert tool.invoke(f"printf ' exec touch pwned\\n' >> {steps}")["notices"] == [
        f"the command changed '{steps}', which configures what git runs: check it before it is used"
    ]
    assert "notices" not in tool.invoke("rm -r .git/rebase-merge")


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(
            "(printf '#é'; head -c 70000 /dev/zero | tr '\\0' x; printf '\\nx ./a\\n') > $steps", id="at the end"
        ),
        pytest.param("echo > later; ln -sf ../../later $steps", id="where a link leads"),
        pytest.param("cp -p $steps t; echo 'x  ./a' > $steps; touch -r t $steps", id="as new"),
    ],
)
def test_no_planted_step_of_a_rebase_hides(tool: BashTool, plant: str) -> None:
    tool.invoke("mkdir .git/rebase-merge && echo '#  ./a' > .git/rebase-merge/git-rebase-todo")
    ended = tool.invoke(f"steps=.git/rebase-merge/git-rebase-todo; {plant}")
    assert ended["exit_code"] == 0, ended
    assert "which configures what git runs" in "".join(ended.get("notices", []))


def test_of_many_repositories_made_by_a_command_the_first_are_named(tool: BashTool) -> None:
    notices = tool.invoke("for n in 1 2 3 4 5 6 7; do git init -q sub$n; done")["notices"]
    assert [notice.split("'")[1] for notice in notices[:-1]] == [f"sub{number}/.git" for number in range(1, 6)]
    assert notices[-1] == "the command made 2 more git folders: check their settings, too"


def test_a_hook_made_in_a_root_that_core_hooks_path_names_is_reported(home: Path) -> None:
    root = home / "hooks"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "core.hooksPath", ".")
    tool = tool_in("bubblewrap", root)
    assert tool.invoke("echo x > pre-commit")["notices"] == [
        "the command changed 'pre-commit', which is run by git, as core.hooksPath says: check it before it is used"
    ]
    assert tool.invoke("git add . && git ls-files")["stdout"] == "pre-commit\n"


def test_a_link_that_leads_to_settings_and_is_replaced_is_reported(home: Path) -> None:
    root = home / "links"
    (root / "rules").mkdir(parents=True)
    (root / ".claude").symlink_to("rules")
    (root / ".envrc").symlink_to("../outside")
    assert tool_in("bubblewrap", root).invoke("ln -sfn /tmp .claude; rm .envrc")["notices"] == [
        f"the command changed {name!r}, which {why}: check it before it is used"
        for name, why in ((".claude", "configures agents"), (".envrc", "is run by direnv"))
    ]


def test_included_git_settings_are_protected(home: Path) -> None:
    root = home / "includes"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "include.path", "../.gitconfig")
    tool = tool_in("bubblewrap", root)
    assert tool.invoke("git ls-files; git config --file .gitconfig core.fsmonitor 'touch pwned'")["notices"] == [
        "the command changed '.gitconfig', which configures what git runs: check it before it is used"
    ]
    (root / ".gitconfig").write_text("kept")
    said(tool, "echo x > .gitconfig; rm .gitconfig; mv .gitconfig x")
    assert (root / ".gitconfig").read_text() == "kept"


@pytest.mark.parametrize("path", ["~nobody-of-that-name/x", "a" * 5000, "a\0b"])
@pytest.mark.parametrize("setting", ["core.hooksPath", "include.path"])
def test_git_settings_that_name_an_impossible_path_stop_no_command(home: Path, setting: str, path: str) -> None:
    root = home / "unknown"
    root.mkdir()
    git(root, "init", "-q")
    section, key = setting.split(".")
    with (root / ".git/config").open("a") as settings:
        settings.write(f"[{section}]\n\t{key} = {path}\n")
    assert said(tool_in("bubblewrap", root), "echo works") == "works"
    assert change_reason(root, PurePosixPath("x")) is None


def test_git_settings_on_the_line_of_their_section_are_protected(home: Path) -> None:
    root = home / "inline"
    root.mkdir()
    git(root, "init", "-q")
    for name in ("hooks", "settings"):
        (root / name).mkdir()
    with (root / ".git/config").open("a") as settings:
        settings.write("[core] hooksPath = hooks\n[include] path = ../settings\n")
    assert {root / "hooks", root / "settings"} <= {*find_protected(root).existing}


def test_submodules_and_configured_hooks_are_protected(home: Path, project: Path) -> None:
    origin = home / "origin"
    origin.mkdir()
    git(origin, "init", "-q")
    git(origin, "commit", "-q", "--allow-empty", "-m", "one")
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(origin), "sub")
    git(project, "config", "core.hooksPath", ".husky/_")
    (project / ".husky/_").mkdir(parents=True)
    (project / ".husky/pre-commit").write_text("kept")
    tool = tool_in("bubblewrap", project)
    said(
        tool,
        "echo x > .husky/_/pre-commit; echo x > .husky/pre-commit; mv .husky other; echo 'gitdir: /tmp' > sub/.git;"
        "git -C sub config core.fsmonitor x; echo x > .git/modules/sub/hooks/x; mv .git/modules/sub .git/modules/x; mv sub x",
    )
    assert (project / ".husky/pre-commit").read_text() == "kept"
    assert list((project / ".husky/_").iterdir()) == []
    assert "fsmonitor" not in (project / ".git/modules/sub/config").read_text()
    assert not (project / ".git/modules/sub/hooks/x").exists()
    assert (project / "sub/.git").read_text().startswith("gitdir: ../.git/modules/sub")
    assert said(tool, "cd sub && echo a > a && git add a && git commit -qm x && git log --format=%s -1") == "x"


def test_installing_into_the_environment_gives_advice(home: Path) -> None:
    root = home / "python"
    root.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root / ".venv")], check=True)
    result = tool_in("bubblewrap", root).invoke('.venv/bin/python -c \'open(".venv/lib/x", "w")\'')
    hint = "a person installs packages, in a terminal; or make another with `python -m venv $TMPDIR/venv`"
    assert result["notices"] == [f"commands cannot change '.venv': {hint}"]


KILLED = """
import os, sys
from pathlib import Path
from aeon_core.tools.protected_paths import find_protected, placeholders
root = Path(sys.argv[1])
with placeholders(root, find_protected(root).missing):
    os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("settings", [(), ("init", "-q"), ("config", "core.hooksPath", "hooks/own")])
def test_stand_ins_of_a_killed_process_are_removed_with_the_next(settings: tuple[str, ...], tmp_path: Path) -> None:
    if settings:
        git(tmp_path, "init", "-q")
        git(tmp_path, *settings)
    before, protected = sorted(tmp_path.rglob("*")), find_protected(tmp_path)
    missing = protected.missing
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False).returncode == -9
    assert (tmp_path / ".envrc").is_dir()
    again = find_protected(tmp_path)
    assert (again.missing, again.existing) == (missing, protected.existing)
    with placeholders(tmp_path, missing) as made:
        assert made == missing
    assert sorted(tmp_path.rglob("*")) == before


def test_stand_ins_of_overlapping_commands_are_removed_with_the_last(tmp_path: Path) -> None:
    first = placeholders(tmp_path, find_protected(tmp_path).missing)
    first.__enter__()
    with placeholders(tmp_path, find_protected(tmp_path).missing):
        first.__exit__(None, None, None)
        assert (tmp_path / ".envrc").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_was_forked_during_a_command_does_not_delay_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited: list[int] = []
    flock = fcntl.flock

    def lock(descriptor: int, how: int) -> None:
        if how & fcntl.LOCK_SH:
            inherited.append(os.dup(descriptor))
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", lock)
    for _ in range(2):
        with placeholders(tmp_path, (tmp_path / ".envrc",)):
            pass
        assert list(tmp_path.iterdir()) == []
    assert len(inherited) == 2  # no attempt was repeated
    for descriptor in inherited:
        os.close(descriptor)


def test_a_stand_in_that_another_command_removes_meanwhile_is_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = find_protected(tmp_path).missing
    for path in missing:
        path.mkdir()
        path.chmod(0o1755)

    def removed(path: Path) -> bool:
        if path in missing and path.exists():
            path.rmdir()
        return False

    monkeypatch.setattr("aeon_core.tools.protected_paths.is_placeholder", removed)
    assert find_protected(tmp_path).missing == missing


def test_stand_ins_of_a_command_that_fails_are_removed(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), placeholders(tmp_path, find_protected(tmp_path).missing):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_an_empty_project_with_the_mark_is_no_stand_in(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    missing = find_protected(tmp_path).missing
    assert {path.parent for path in missing} == {tmp_path}
    with placeholders(tmp_path, missing):
        pass
    assert tmp_path.is_dir()


@pytest.mark.parametrize("refuses", [False, True])
def test_a_file_system_without_modes_keeps_no_stand_ins(
    refuses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_mode(_: Path, mode: int) -> None:
        if refuses and mode & 0o1000:
            raise PermissionError

    git(tmp_path, "init", "-q")
    before, missing = sorted(tmp_path.rglob("*")), find_protected(tmp_path).missing
    monkeypatch.setattr(Path, "chmod", no_mode)
    with placeholders(tmp_path, missing) as made:
        assert made == ()
        assert sorted(tmp_path.rglob("*")) == before


def test_what_no_stand_in_protects_is_reported(tool: BashTool, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(project / ".vscode")
    monkeypatch.setattr(Path, "chmod", lambda *_: None)
    assert tool.invoke("mkdir .vscode && echo x > .vscode/tasks.json")["notices"] == [
        "the command changed '.vscode', which configures what the editor runs: check it before it is used",
    ]


def test_a_change_by_a_name_in_the_other_case_is_reported(tool: BashTool, project: Path) -> None:
    os.link(project / ".git/config", project / ".git/CONFIG")
    assert tool.invoke("echo '# x' >> .git/CONFIG")["notices"] == [
        "the command changed '.git/config', which configures what git runs: check it before it is used"
    ]


def test_a_marked_file_with_other_content_is_no_stand_in(tmp_path: Path) -> None:
    (tmp_path / ".envrc").write_text("x\n")
    (tmp_path / ".envrc").chmod(0o1644)
    assert find_protected(tmp_path).existing == (tmp_path / ".envrc",)


def test_a_used_placeholder_is_kept(tmp_path: Path) -> None:
    with placeholders(tmp_path, (tmp_path / ".vscode", tmp_path / "own")) as made:
        (tmp_path / ".vscode/tasks.json").write_text("{}")
    assert made == (tmp_path / ".vscode", tmp_path / "own")
    assert [path.name for path in tmp_path.iterdir()] == [".vscode"]


def test_stand_ins_stay_while_another_command_runs(tmp_path: Path) -> None:
    missing = (tmp_path / ".envrc",)
    with placeholders(tmp_path, missing):
        with placeholders(tmp_path, missing) as made:
            assert made == missing
        assert (tmp_path / ".envrc").exists()
    assert not (tmp_path / ".envrc").exists()
