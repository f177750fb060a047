from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.journal_trust import (
    check_journal,
    check_rules,
    foreign_rules,
    is_sealed,
    remember_run,
    remembers_run,
    seal,
    unconfirmed,
)
from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.paths import default_runs_directory
from aeon_core.policy import PolicyRules
from aeon_core.redaction import user_key_file

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def homeless(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a home folder, as in a container that runs under any user id."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return project


def started(project: Path, **config: Any) -> dict[str, Any]:
    made = RunConfig(project_root=project, **config).model_dump(mode="json")
    return {"type": "run_started", "run": "r1", "ts": "2026-11-20T09:30:00.123456Z", "task": "count", "config": made}


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"model": "openai:gpt"}, "another model"),
        ({"base_url": URL}, "with your key, to http://127"),
        ({"tools": ["files"]}, "read, search and change"),
        ({"tools": ["mine:f"]}, "for the tools mine:f"),
        ({"shell": {"network": True}}, "how commands are run"),
        ({"prompts_dir": "/elsewhere"}, "replace the prompts"),
        ({"on_unknown": "retry"}, "repeat an unsafe tool call"),
        ({"otel": True}, "OpenTelemetry"),
        ({"max_tokens": 100_000}, "100000 tokens"),
    ],
)
def test_settings_found_only_in_the_journal_are_refused(project: Path, named: dict[str, Any], words: str) -> None:
    config = RunConfig(project_root=project, **named)
    today = RunConfig(project_root=project)
    first = started(project, **named)
    with pytest.raises(UsageError, match=words):
        check_journal(first, config, today)
    assert check_journal(first, config, today, trusts_project=True) == config
    assert check_journal(first, config, today, overrides=named) == config
    assert check_journal(first, config, config) == config


def test_rules_found_only_in_the_journal_are_refused_even_if_the_user_adds_one(project: Path) -> None:
    recorded = started(project, policy={"allow": ["Bash(*)"]})
    today = RunConfig(project_root=project, policy={"allow": ["Read"]})
    config = RunConfig(project_root=project, policy={"allow": ["Bash(*)", "Read"]})
    for said in ({}, {"policy": today.policy}):
        with pytest.raises(UsageError, match=r"without asking: Bash\(\*\), which"):
            check_journal(recorded, config, today, overrides=said)
    assert check_journal(recorded, config, today, trusts_project=True) == config
    assert check_journal(recorded, config, config) == config
    remember_run(recorded)
    assert check_journal(recorded, config, today, overrides={"policy": today.policy}) == config, "the user's own run"


def test_a_folder_that_only_the_journal_names_is_refused(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    config = RunConfig(project_root=tmp_path / "other")
    with pytest.raises(UsageError, match="work in the folder"):
        check_journal(started(tmp_path / "other"), config, RunConfig(project_root=project))


def test_restrictions_and_simulated_models_come_from_the_journal(project: Path) -> None:
    config = RunConfig(project_root=project, model="simulated:default", ttl=9, budget=1, policy={"deny": ["Bash"]})
    today = RunConfig(project_root=project, model="openai:gpt")
    assert check_journal(started(project), config, today) == config


def test_a_run_that_this_user_started_continues_without_a_question(project: Path) -> None:
    first = started(project, model="openai:gpt", base_url=URL)
    remembers_run()(json.dumps(first).encode())
    config = RunConfig(**first["config"])
    today = RunConfig(project_root=project)
    assert check_journal(first, config, today) == config
    for change in ({"run": "r2"}, {"task": "send all"}, {"ts": "2026-11-20T09:30:00.123457Z"}):
        with pytest.raises(UsageError):
            check_journal({**first, **change}, config, today)
    with pytest.raises(UsageError, match="other"):
        check_journal(first, config.model_copy(update={"base_url": "http://other/v1"}), today)


@pytest.mark.parametrize("said", [{"model": "openai:gpt"}, {"base_url": URL}, {"on_unknown": "retry"}])
def test_a_run_that_this_user_started_continues_with_the_users_overrides(project: Path, said: dict[str, Any]) -> None:
    (project / "mine.py").write_text("f = 1\n")
    first = started(project, tools=["mine:f"])
    today = RunConfig(project_root=project)
    config = RunConfig(**{**first["config"], **said})
    with pytest.raises(UsageError, match=r"run the project's mine\.py"):
        check_journal(first, config, today, said)
    remember_run(first)
    assert check_journal(first, config, today, said).tools == ["mine:f"]
    with pytest.raises(UsageError):
        check_journal(first, config, today)


def test_a_changed_module_of_the_run_needs_consent(project: Path) -> None:
    (project / "mine.py").write_text("f = 1\n")
    first = started(project, tools=["mine:f"])
    remember_run(first)
    config = RunConfig(**first["config"])
    checked = check_journal(first, config, RunConfig(project_root=project))
    assert list(checked.verified) == [str(project / "mine.py")]
    (project / "mine.py").write_text("f = 2\n")
    with pytest.raises(UsageError, match=r"run the project's mine\.py"):
        check_journal(first, config, RunConfig(project_root=project))


def test_a_failure_to_remember_a_run_does_not_stop_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    first = started(project, model="openai:gpt")
    remember_run(first)
    with pytest.raises(UsageError):
        check_journal(first, RunConfig(**first["config"]), RunConfig(project_root=project))


def test_a_journaled_rule_applies_if_this_user_allowed_it(project: Path) -> None:
    first, config = started(project), RunConfig(project_root=project)
    decided = {"type": "approval", "run": "r1", "state": "decided", "decision": "approve"}
    decided["allow"] = {"rule": "Bash(ls *)", "scope": "run"}
    passed = {"type": "pass", "standing": {"allowed": ["Bash(ls *)", "remove"]}}
    asked = {"type": "approval", "run": "r1", "state": "asked", "seq": 3}
    rules = foreign_rules([first, decided, passed], project)
    assert rules == ["Bash(ls *)", "remove"]
    with pytest.raises(UsageError, match=r"without asking: Bash\(ls \*\), remove"):
        check_journal(first, config, config, rules=rules)
    own = {**decided, "seal": seal("r1", 3, decided)}
    assert check_journal(first, config, config, rules=foreign_rules([first, asked, own], project)) == config
    with pytest.raises(UsageError, match="without asking: remove"):
        check_journal(first, config, config, rules=foreign_rules([first, asked, own, passed], project))
    with pytest.raises(UsageError, match="Bash"):
        check_journal(
            {**first, "run": "r2"}, config, config, rules=foreign_rules([first, asked, {**own, "run": "r2"}], project)
        )
    with pytest.raises(UsageError, match="Bash"):
        check_journal(first, config, config, rules=foreign_rules([first, {**asked, "seq": 4}, own], project))
    with pytest.raises(UsageError, match="Bash"):
        check_journal(first, config, config, rules=foreign_rules([{**first, "start": passed["standing"]}], project))
    assert check_journal(first, config, config, rules=rules, trusts_project=True) == config
    today = RunConfig(project_root=project, policy={"allow": ["remove", "Bash(ls *)"]})
    assert check_journal(first, config, today, rules=rules) == config


DECIDED = {"type": "approval", "run": "r1", "state": "decided", "decision": "approve", "digest": "0"}


def sealed() -> dict[str, Any]:
    return {**DECIDED, "seal": seal("r1", 3, DECIDED)}


def test_a_key_inside_the_project_proves_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_sealed("r1", 3, sealed(), project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    assert not is_sealed("r1", 3, sealed(), project)
    assert is_sealed("r1", 3, sealed(), project.parent / "elsewhere")
    (project.parent / "link").symlink_to(project / "state", target_is_directory=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "link"))
    assert not is_sealed("r1", 3, sealed(), project)


def test_a_key_that_others_may_know_proves_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decided = sealed()
    for mode in (0o640, 0o604):
        user_key_file().chmod(mode)
        assert not is_sealed("r1", 3, decided, project)
    user_key_file().chmod(0o400)
    assert is_sealed("r1", 3, decided, project)
    owner = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert not is_sealed("r1", 3, decided, project)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", str(owner))
    assert is_sealed("r1", 3, decided, project), "root under sudo acts for the calling user"


def test_a_refusal_names_a_key_that_proves_nothing_and_its_remedy(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, config = started(project), RunConfig(project_root=project)

    def refusals() -> set[str]:
        found = {unconfirmed("r1", "deploy", {}, project).message}
        for check in (
            lambda: check_journal(first, config, config, rules=["deploy"]),
            lambda: check_rules(first, ["deploy"], PolicyRules(), project),
        ):
            with pytest.raises(UsageError) as refused:
                check()
            found.add(refused.value.message)
        return {message.partition("since your key file")[2].partition(")")[0] for message in found}

    sealed()
    assert refusals() == {""}
    key = user_key_file()
    key.chmod(0o640)
    assert refusals() == {f" {str(key)!r} is open to other users; close it with chmod 600"}
    with pytest.raises(UsageError) as refused:
        check_journal(first, config.model_copy(update={"otel": True}), config)
    assert "key file" not in refused.value.message, "no decision would allow that"
    owner = os.geteuid()
    with monkeypatch.context() as another:
        another.setattr("os.geteuid", lambda: owner + 1)
        assert refusals() == {f" {str(key)!r} belongs to another user; change its owner with chown"}
    monkeypatch.setenv("XDG_STATE_HOME", str(project / "state"))
    sealed()
    inside = str(project / "state" / "aeon" / "redaction.key")
    assert refusals() == {f" {inside!r} lies in the project; set XDG_STATE_HOME to a folder outside it"}


def test_a_key_that_cannot_be_stored_proves_decisions_to_its_process_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "file"))
    decided = sealed()
    assert is_sealed("r1", 3, decided, project)
    monkeypatch.setenv("XDG_STATE_HOME", str(project.parent / "file" / "in-another-process"))
    assert not is_sealed("r1", 3, decided, project)


def test_without_a_home_folder_nothing_is_remembered_but_this_process_can_go_on(
    homeless: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert is_sealed("r1", 3, sealed(), homeless)
    remember_run(first := started(homeless, model="openai:gpt"))
    assert "cannot record that this run is yours: your home folder is unknown; set HOME or" in caplog.text
    with pytest.raises(UsageError, match="asks to use another model"):
        check_journal(first, RunConfig(**first["config"]), RunConfig(project_root=homeless))
    with pytest.raises(UsageError, match="your home folder is unknown; set HOME or XDG_STATE_HOME to a full path"):
        default_runs_directory(homeless)
