from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.trust import grant_trust
from aeon_core.errors import UsageError
from system2.agents import AgentLibrary, copy_shipped
from system2.orchestrator import Orchestrator
from system2.settings import WorkflowSettings
from system2.trust import applied_settings, assess_workflow, trusted_agents

AGENT = "---\nname: executor\ndescription: does it\ntools: {tools}\n---\nDo it.\n"
GATED = {
    "cost_ceiling_usd": 100,
    "cost_warning_usd": 100,
    "log_destination": "elsewhere.log",
    "safety_mode": "permissive",
    "bash_network": True,
    "prices": {"x": {"input": 0, "output": 0}},
    "max_tool_turns": 100_000,
    "context_window_tokens": 10_000_000,
    "max_output_tokens": 1_000_000,
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project" / ".system2").mkdir(parents=True)
    return tmp_path / "project"


def says(root: Path, bedrock: dict[str, Any] | None = None, **settings: Any) -> None:
    told = {"providers": {"bedrock": {**(bedrock or {}), "orchestrator": settings}}}
    (root / ".system2" / "config.yml").write_text(json.dumps(told))


def settings_of(root: Path) -> tuple[WorkflowSettings, list[str]]:
    warned: list[str] = []
    return applied_settings(root, None, None, "ignore", warned.append)[0], warned


@pytest.mark.parametrize("key", GATED)
def test_a_setting_that_widens_does_not_apply_until_it_is_trusted(root: Path, key: str) -> None:
    says(root, **{key: GATED[key]})
    settings, warned = settings_of(root)
    assert (settings, len(warned)) == (WorkflowSettings(), 1)
    with pytest.raises(UsageError, match=r'--trust-project, in Python with trust="apply"$'):
        Orchestrator(root, trust="require")
    grant_trust(assess_workflow(root))
    assert getattr(settings_of(root)[0], key) != getattr(WorkflowSettings(), key)
    Orchestrator(root, trust="require")


@pytest.mark.parametrize("bedrock", [{"region": "eu-west-1"}, {"profile": "admin"}, {"model": "other"}])
def test_account_and_model_settings_need_consent(root: Path, bedrock: dict[str, str]) -> None:
    says(root, bedrock)
    assert settings_of(root)[0] == WorkflowSettings()
    assert assess_workflow(root).state == "untrusted"


def test_a_stricter_project_applies_in_any_folder(root: Path) -> None:
    says(root, cost_ceiling_usd=1, bash_blocklist=["rm"], max_tool_turns=5, log_destination=".system2/run.log")
    settings, warned = settings_of(root)
    assert (settings.cost_ceiling_usd, settings.max_tool_turns, warned) == (1, 5, [])
    assert settings.log_destination == ".system2/run.log"
    assert assess_workflow(root).state == "nothing_asked"


@pytest.mark.parametrize("place", ["../outside.log", "/outside.log", "~/.bashrc", "~nobody-there/x", ".system2/link"])
def test_a_project_cannot_move_its_log_elsewhere_without_consent(root: Path, place: str) -> None:
    (root / ".system2" / "link").symlink_to(root.parent / "outside.log")
    says(root, log_destination=place)
    grant_trust(assess_workflow(root))
    settings, warned = settings_of(root)
    assert settings.log_destination == "stderr"
    assert "is outside the project" in warned[-1]


def test_a_project_cannot_move_transcripts_elsewhere_without_consent(root: Path) -> None:
    says(root, transcript_dir="../outside")
    grant_trust(assess_workflow(root))
    assert settings_of(root)[0].transcript_dir == ".system2/runs"


@pytest.mark.parametrize("trust", ["ignore", "require", "apply"])
@pytest.mark.parametrize("link", [".system2/runs", ".system2"])
def test_no_workflow_writes_through_a_link_out_of_the_project(root: Path, link: str, trust: Any) -> None:
    (outside := root.parent / "outside").mkdir()
    if link == ".system2":
        (root / link).rmdir()
    (root / link).symlink_to(outside)
    for config in (None, root.parent / "mine.yml"):
        with pytest.raises(UsageError, match=r"runs' leads out of the project, and a workflow writes there; put"):
            Orchestrator(root, config, trust=trust)
    assert list(outside.iterdir()) == []


def test_an_agent_that_runs_commands_is_ignored_until_trusted(root: Path) -> None:
    file = root / ".claude" / "agents" / "executor.md"
    file.parent.mkdir(parents=True)
    file.write_text(AGENT.format(tools="Read, Bash"))
    trust = assess_workflow(root)
    assert [item.key for item in trust.items] == [".claude/agents/executor.md"]
    warned: list[str] = []
    library = AgentLibrary(root, warned.append, trusted_agents(root, "ignore", trust))
    assert library.is_shipped("executor")
    assert "not trusted" in warned[0]
    grant_trust(trust)
    trusted = AgentLibrary(root, warned.append, trusted_agents(root, "ignore", assess_workflow(root)))
    assert trusted.get("executor").source_path == file
    # What was digested is what is used.
    file.write_text(AGENT.format(tools="Read, Bash") + "And more.\n")
    with pytest.raises(UsageError, match="is not trusted"):
        trusted.get("executor")
    assert assess_workflow(root).state == "changed"


def test_our_agents_and_those_without_commands_need_no_consent(root: Path) -> None:
    copy_shipped(root, lambda _: None)
    (root / ".claude" / "agents" / "reader.md").write_text(AGENT.format(tools="Read").replace("executor", "reader"))
    assert assess_workflow(root).state == "nothing_asked"


def test_a_file_that_the_user_names_applies_as_a_whole(root: Path) -> None:
    says(root, cost_ceiling_usd=100)
    config = root / ".system2" / "config.yml"
    assert Orchestrator(root, config, trust="require").settings.cost_ceiling_usd == 100
