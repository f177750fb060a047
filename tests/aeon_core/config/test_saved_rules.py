"""Rules that are saved in a configuration file: they apply at once, and consent to nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.config import editing
from aeon_core.config.editing import remove_rule, save_rule, saved_rules
from aeon_core.config.loading import assess_project, load_config
from aeon_core.config.trust import grant_trust
from aeon_core.errors import UsageError

RULE = "Bash(git status *)"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def write(root: Path, text: str) -> Path:
    file = root / ".aeon" / "config.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def applied(root: Path) -> tuple[str, ...]:
    return load_config(start=root).config.policy.allow


def test_a_rule_for_always_is_saved_for_the_user(root: Path, tmp_path: Path) -> None:
    file = save_rule(RULE, "always", root)
    assert file == tmp_path / "config" / "aeon" / "config.yml"
    assert applied(root) == applied(tmp_path) == (RULE,)
    [saved] = saved_rules(root)
    assert (saved.answer, saved.rule, saved.scope) == ("allow", RULE, "always")
    remove_rule(saved, root)
    assert applied(root) == ()
    assert saved_rules(root) == []


def test_a_rule_for_the_project_applies_there_and_keeps_the_file(root: Path, tmp_path: Path) -> None:
    file = write(root, "# ours\nttl: 7  # short\npolicy:\n  deny: [Read(*.env)]  # never\n")
    save_rule(RULE, "project", root)
    text = file.read_text()
    assert all(comment in text for comment in ("# ours", "# short", "# never"))
    assert applied(root) == (RULE,)
    assert applied(tmp_path) == ()
    assert assess_project(root).state == "trusted"
    assert [(each.answer, each.scope) for each in saved_rules(root)] == [("allow", "project"), ("deny", "project")]
    remove_rule(saved_rules(root)[0], root)
    assert file.read_text() == "# ours\nttl: 7  # short\npolicy:\n  deny: [Read(*.env)]  # never\n"


def test_a_rule_for_the_project_is_not_saved_through_a_link_to_the_users_own_file(root: Path, tmp_path: Path) -> None:
    own = tmp_path / "config" / "aeon" / "config.yml"
    own.parent.mkdir(parents=True)
    own.write_text("theme: aeon-light\n")
    (root / ".aeon").mkdir()
    (root / ".aeon/config.yml").symlink_to(own)
    with pytest.raises(UsageError, match="is a link out of the project and was not changed; replace it by a file"):
        save_rule(RULE, "project", root)
    assert own.read_text() == "theme: aeon-light\n"


def test_the_first_rule_for_a_project_keeps_its_runs_out_of_git(root: Path) -> None:
    save_rule(RULE, "project", root)
    ignored = root / ".aeon" / ".gitignore"
    assert "/runs/" in ignored.read_text().splitlines()
    ignored.unlink()
    save_rule("Edit(src/**)", "project", root)
    assert not ignored.exists(), "a file that somebody deleted stays so"


def test_a_project_that_is_not_trusted_gets_no_rule_and_no_trust(root: Path) -> None:
    file = write(root, "tools: [shell]\n")
    with pytest.raises(UsageError, match="not trusted"):
        save_rule(RULE, "project", root)
    assert file.read_text() == "tools: [shell]\n"
    assert assess_project(root).state == "untrusted"


def test_saving_a_rule_renews_trust_in_the_file(root: Path) -> None:
    file = write(root, "tools: [shell]\n")
    grant_trust(assess_project(root))
    save_rule(RULE, "project", root)
    assert assess_project(root).state == "trusted"
    assert applied(root) == (RULE,)
    file.write_text(file.read_text() + "base_url: http://elsewhere/v1\n")
    assert assess_project(root).state == "changed"
    with pytest.raises(UsageError, match="not trusted"):
        save_rule("Bash(ls *)", "project", root)


@pytest.mark.parametrize(("more", "other"), [("Bash", ""), (RULE, "tools: [shell]")])
def test_a_change_by_someone_else_meanwhile_is_not_consented_to(
    root: Path, monkeypatch: pytest.MonkeyPatch, more: str, other: str
) -> None:
    def and_more(_file: Path, _edit: object) -> None:
        write(root, f"policy:\n  allow: ['{RULE}', '{more}']\n{other}\n")

    monkeypatch.setattr(editing, "edit_file", and_more)
    with pytest.raises(UsageError, match="changed in the meantime"):
        save_rule(RULE, "project", root)
    assert assess_project(root).state == "untrusted"


def test_a_save_error_is_one_line(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a policy rule"):
        save_rule("Bash( x", "always", root)
    (tmp_path / "config").write_text("a file")
    with pytest.raises(UsageError) as caught:
        save_rule(RULE, "always", root)
    assert "\n" not in caught.value.message
    assert list(root.iterdir()) == []
