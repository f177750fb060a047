from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from system2.agents import (
    AGENTS_FOLDER,
    COMPLETION_INSTRUCTION,
    SHIPPED,
    AgentLibrary,
    allow,
    copy_shipped,
    parse_agent,
)
from system2.constants import DELEGATION_MAP
from system2.prompt_injection import scan_for_injection

ARTIFACTS = {
    "repo-governor": "spec/scope.md",
    "spec-coordinator": "spec/context.md",
    "requirements-engineer": "spec/requirements.md",
    "design-architect": "spec/design.md",
    "task-planner": "spec/tasks.md",
    "test-engineer": "spec/test-report.md",
    "security-sentinel": "spec/security-review.md",
    "eval-engineer": "spec/evals.md",
    "docs-release": "spec/release-notes.md",
    "code-reviewer": "spec/code-review.md",
    "postmortem-scribe": "spec/postmortem.md",
    "mcp-toolsmith": "spec/mcp-tools.md",
}
PLANNING = ("repo-governor", "spec-coordinator", "requirements-engineer", "design-architect", "task-planner")
POST_EXECUTION = ("test-engineer", "security-sentinel", "eval-engineer", "docs-release", "code-reviewer")


def test_there_is_one_file_for_each_agent_of_the_delegation_map() -> None:
    assert len(DELEGATION_MAP) == 13
    assert {path.name for path in SHIPPED.iterdir()} == {f"{name}.md" for name in DELEGATION_MAP}


@pytest.mark.parametrize("name", DELEGATION_MAP)
def test_our_agents_are_well_formed(name: str) -> None:
    agent = parse_agent(SHIPPED / f"{name}.md")
    assert agent.name == name
    assert len(agent.description) < 200
    assert agent.raw_system_prompt.startswith(f"You are the {name}.".replace("the docs-release", "docs-release"))
    assert 1_500 < len(agent.raw_system_prompt) < 6_000
    # Nothing in them is of another program, so that the rules leave them alone.
    assert agent.system_prompt == f"{agent.raw_system_prompt.rstrip()}\n{COMPLETION_INSTRUCTION}"
    assert scan_for_injection(agent.system_prompt) == []


@pytest.mark.parametrize("name", DELEGATION_MAP)
def test_our_agents_have_the_tools_that_their_work_needs(name: str) -> None:
    allowance = allow(parse_agent(SHIPPED / f"{name}.md").tools)
    everything = ("Read", "Write", "Edit", "Grep", "Glob", "Bash")
    assert allowance.names == (everything[:-1] if name in PLANNING else everything)
    assert allowance.warnings == ()


@pytest.mark.parametrize(("name", "artifact"), ARTIFACTS.items())
def test_our_agents_name_what_they_write(name: str, artifact: str) -> None:
    prompt = parse_agent(SHIPPED / f"{name}.md").raw_system_prompt
    assert f"`{artifact}`" in prompt
    assert ("spec/post-execution-log.md" in prompt) == (name in POST_EXECUTION)
    assert (f"      ## {name}\n" in prompt) == (name in POST_EXECUTION)


@pytest.mark.parametrize("name", DELEGATION_MAP)
def test_our_agents_know_their_limits(name: str) -> None:
    prompt = " ".join(parse_agent(SHIPPED / f"{name}.md").raw_system_prompt.split())
    for part in (
        "## Limits",
        "## When you are done",
        "start no other agent",
        "data" if name != "repo-governor" else "never an instruction",
    ):
        assert part in prompt
    assert "blockers" in prompt.lower()


def copied(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / AGENTS_FOLDER).iterdir()}


def test_our_agents_are_copied_into_a_project_that_has_none(tmp_path: Path) -> None:
    written, left = copy_shipped(tmp_path, pytest.fail)
    assert [path.name for path in written] == [f"{name}.md" for name in DELEGATION_MAP]
    assert left == {}
    assert copied(tmp_path) == {path.name: path.read_bytes() for path in SHIPPED.iterdir()}
    library = AgentLibrary(tmp_path, pytest.fail)
    assert not any(library.is_shipped(name) for name in DELEGATION_MAP)


def test_a_second_copy_leaves_everything_alone(tmp_path: Path) -> None:
    copy_shipped(tmp_path, pytest.fail)
    (tmp_path / AGENTS_FOLDER / "executor.md").write_text(
        "---\nname: executor\ndescription: Mine.\ntools: Read\n---\nMine."
    )
    before = copied(tmp_path)
    written, left = copy_shipped(tmp_path, pytest.fail)
    assert written == []
    assert left == {name: f"the project already has it in '{name}.md'" for name in DELEGATION_MAP}
    assert copied(tmp_path) == before


def test_existing_project_files_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / AGENTS_FOLDER
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\nname: executor\ndescription: Mine.\ntools: Read\n---\nMine.")
    (folder / "task-planner.md").write_text("no agent")
    (folder / "code-reviewer.md").symlink_to("nowhere")
    warnings: list[str] = []
    written, left = copy_shipped(tmp_path, warnings.append)
    assert left == {
        "executor": "the project already has it in 'mine.md'",
        "task-planner": "there is already a file 'task-planner.md'",
        "code-reviewer": "there is already a file 'code-reviewer.md'",
    }
    assert len(written) == 10
    assert (folder / "task-planner.md").read_text() == "no agent"
    assert not (folder / "nowhere").exists()
    assert not (folder / "executor.md").exists()
    assert len(warnings) == 2


def test_a_folder_that_leads_out_of_the_project_is_refused(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (project / ".claude").symlink_to(outside)
    with pytest.raises(UsageError, match=r"cannot copy agents there: .*outside"):
        copy_shipped(project, lambda _: None)
    assert list(outside.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".claude").write_text("a file")
    with pytest.raises(UsageError, match=r"\.claude"):
        copy_shipped(tmp_path, lambda _: None)
    with pytest.raises(UsageError, match="No such file or directory; use an existing folder"):
        copy_shipped(tmp_path / "none", lambda _: None)


def test_a_full_disk_leaves_no_partial_agent_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"repo-governor\.md' cannot be written: No space left on device"):
        copy_shipped(tmp_path, pytest.fail)
    assert list((tmp_path / AGENTS_FOLDER).iterdir()) == []
