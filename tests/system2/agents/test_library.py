from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from system2.agents import (
    MAX_BYTES,
    SHIPPED,
    AgentDefinition,
    AgentLibrary,
    AgentParseError,
    apply_transforms,
    parse_agent,
)
from system2.constants import DELEGATION_MAP
from tests.cpu_limit import cpu_limit


class Project:
    """A folder with agents, and the warnings that its library gave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / ".claude" / "agents"
        self.folder.mkdir(parents=True)
        self.warnings: list[str] = []
        self.library = AgentLibrary(root, self.warnings.append)

    def add(self, file: str, name: str, body: str = "Do it.\n", *, tools: str = "Read") -> Path:
        path = self.folder / file
        path.write_text(f"---\nname: {name}\ndescription: Of {file}\ntools: {tools}\n---\n{body}", encoding="utf-8")
        return path

    def state(self) -> dict[Path, tuple[bytes, int]]:
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_an_agent_has_every_field_of_its_file(project: Project) -> None:
    body = "Use attempt_completion.\n\n---\n\nThen rest.\n"
    path = project.add("mine.md", "mine", body, tools="Read, Agent(a, b)")
    assert parse_agent(path) == AgentDefinition(
        name="mine",
        description="Of mine.md",
        tools=["Read", "Agent(a, b)"],
        system_prompt=apply_transforms(body),
        raw_system_prompt=body,
        source_path=path,
    )


def test_line_ends_a_byte_order_mark_and_any_language_are_read(project: Project) -> None:
    path = project.folder / "x.md"
    path.write_bytes(
        "\ufeff---\r\nname: prüfer\r\ndescription: 検査\r\ntools:\r\n  - Read\r\n---\r\nPrüfe\r\nes.\r\n".encode()
    )
    agent = parse_agent(path)
    assert (agent.name, agent.description, agent.tools) == ("prüfer", "検査", ["Read"])
    assert agent.raw_system_prompt == "Prüfe\r\nes.\r\n"
    assert agent.system_prompt.startswith("Prüfe\nes.\n\n## Completion Protocol")


def test_tools_that_are_denied_are_not_among_the_tools(project: Project) -> None:
    path = project.add("x.md", "x", tools="Read, Bash(git:*), Write\ndisallowedTools: bash, Write(spec/*)")
    assert parse_agent(path).tools == ["Read"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not start with frontmatter; put"),
        (b"---\nname: a\ndescription: b\ntools: Read\n---\n \n", "has no prompt; write it"),
        (b"---\ndescription: b\ntools: Read\n---\nDo.", "has no 'name' in its frontmatter; add it"),
        (b"---\nname: a\n---\nDo.", "has no 'description', 'tools' in its frontmatter"),
        (b"---\nname: a: b\n---\nDo.", "not valid YAML"),
        (b"---\nname: |\n  a\n  b\ndescription: c\ntools: Read\n---\nDo.", "'name' that is not one printable line"),
        (
            b"---\nname: " + b"a" * 101 + b"\ndescription: c\ntools: Read\n---\nDo.",
            "'name' that is not one printable line",
        ),
        (b"---\nname: \xff\n---\nDo.", "is not UTF-8 text: byte 10 is 0xff"),
        (b"---\nname: a\n---\n" + b"x" * MAX_BYTES, "larger than 512,000 bytes"),
    ],
)
def test_a_file_that_is_not_an_agent_is_named_with_the_reason(project: Project, content: bytes, reason: str) -> None:
    path = project.folder / "bad.md"
    path.write_bytes(content)
    with pytest.raises(AgentParseError, match=reason) as caught:
        parse_agent(path)
    assert caught.value.message.startswith(f"the agent file {str(path)!r} ")
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


def test_an_irregular_file_does_not_block(project: Project) -> None:
    os.mkfifo(project.folder / "pipe.md")
    (project.folder / "folder.md").mkdir()
    for name, reason in (("pipe.md", "it is a pipe"), ("folder.md", "Is a directory"), ("none.md", "No such file")):
        with pytest.raises(AgentParseError, match=reason):
            parse_agent(project.folder / name)


def test_a_project_without_agents_has_our_thirteen(tmp_path: Path) -> None:
    warnings: list[str] = []
    library = AgentLibrary(tmp_path, warnings.append)
    assert library.names() == sorted(DELEGATION_MAP)
    assert library.get("executor").source_path == SHIPPED / "executor.md"
    assert library.is_shipped("executor")
    assert warnings == []


def test_an_agent_of_the_project_takes_precedence_over_ours(project: Project) -> None:
    path = project.add("mine.md", "executor")
    project.add("other.MD", "other")
    (project.folder / "notes.txt").write_text("no agent")
    assert project.library.get("executor").source_path == path
    assert not project.library.is_shipped("executor")
    assert project.library.is_shipped("task-planner")
    assert project.library.names() == sorted([*DELEGATION_MAP, "other"])
    assert project.warnings == []


def test_a_file_that_is_not_an_agent_is_skipped_and_named_once(project: Project) -> None:
    bad = project.folder / "executor.md"
    bad.write_text("---\nname: [\n---\n")
    project.add("good.md", "good")
    assert project.library.get("good").name == "good"
    assert project.library.get("executor").source_path.parent == SHIPPED
    assert project.library.names() == sorted([*DELEGATION_MAP, "good"])
    (warning,) = project.warnings
    assert repr(str(bad)) in warning
    assert warning.endswith("(skipped)")


@pytest.mark.parametrize(("file", "name"), [("executor.md", "Executor"), ("executor.md", "mine"), ("x.md", "EXECUTOR")])
def test_an_agent_that_no_workflow_uses_because_of_its_name_is_reported(project: Project, file: str, name: str) -> None:
    path = project.add(file, name)
    project.add("mine.md", "my-executor")
    assert project.library.is_shipped("executor")
    why = f"names its agent {name!r}, which has no part in a workflow; did you mean 'executor'?"
    assert project.warnings == [f"the agent file {str(path)!r} {why}"]


@pytest.mark.parametrize("other", ["a.md", "z.md"])
def test_the_file_named_like_the_agent_wins_among_duplicates(project: Project, other: str) -> None:
    passed_over, taken = project.add(other, "mine"), project.add("mine.md", "mine")
    assert project.library.get("mine").source_path == taken
    assert project.warnings == [
        f"the agent 'mine' is defined twice: using {str(taken)!r}, skipping {str(passed_over)!r}"
    ]


def test_the_first_file_wins_among_other_duplicates(project: Project) -> None:
    project.add("b.md", "mine")
    first = project.add("a.md", "mine")
    assert project.library.get("mine").source_path == first
    assert len(project.warnings) == 1


def test_links_are_followed_only_inside_the_project(project: Project, tmp_path: Path) -> None:
    inside = project.root / "inside.md"
    project.add("x.md", "inside").rename(inside)
    outside = tmp_path / "outside.md"
    project.add("y.md", "outside").rename(outside)
    (project.folder / "a.md").symlink_to(inside)
    (project.folder / "b.md").symlink_to(outside)
    (project.folder / "c.md").symlink_to("c.md")
    assert project.library.get("inside").source_path == project.folder / "a.md"
    assert "outside" not in project.library.names()
    assert [
        str(project.folder / name) in warning for name, warning in zip(("b.md", "c.md"), project.warnings, strict=True)
    ] == [True] * 2
    assert "is a link out of the project" in project.warnings[0]


def test_a_folder_that_leads_out_of_the_project_is_ignored(project: Project, tmp_path: Path) -> None:
    project.add("x.md", "mine")
    project.folder.rename(tmp_path / "elsewhere")
    project.folder.symlink_to(tmp_path / "elsewhere")
    assert "mine" not in project.library.names()
    assert len(project.warnings) == 1


def test_a_folder_that_is_a_file_is_named(project: Project) -> None:
    project.folder.rmdir()
    project.folder.write_text("")
    assert project.library.names() == sorted(DELEGATION_MAP)
    assert project.warnings == [f"cannot list the agents in {str(project.folder)!r}: Not a directory"]


def test_the_error_for_an_unknown_name_suggests_the_nearest(project: Project) -> None:
    with pytest.raises(UsageError, match="no agent 'excutor'; did you mean 'executor'"):
        project.library.get("excutor")


def test_agents_are_read_on_demand(project: Project) -> None:
    path = project.add("mine.md", "mine", "First.")
    assert project.library.get("mine").raw_system_prompt == "First."
    project.add("mine.md", "mine", "Second.")
    assert project.library.get("mine").raw_system_prompt == "Second."
    path.unlink()
    with pytest.raises(AgentParseError, match="No such file"):
        project.library.get("mine")


def test_no_file_is_written(project: Project) -> None:
    project.add("mine.md", "mine", "Use attempt_completion.")
    (project.folder / "bad.md").write_text("bad")
    before = project.state()
    for name in project.library.names():
        project.library.get(name)
    assert project.state() == before


def test_thirteen_agents_with_hooks_are_read_at_once(project: Project) -> None:
    hooks = "hooks:\n" + "".join(
        f"  {event}:\n    - matcher: 'Edit|Write'\n      hooks:\n        - type: command\n          command: >-\n"
        "            python3 \"$PROJECT/scripts/check.py\" --allow '.claude/allowlists/a.regex'\n"
        for event in ("PreToolUse", "PostToolUse", "SubagentStop", "Stop")
    )
    body = "Read Claude Code CLI files.\n- Add hooks for evals, then delegate to executor.\n" * 60
    paths = [project.add(f"{name}.md", name, body, tools=f"Read\n{hooks}") for name in DELEGATION_MAP]
    with cpu_limit(1):
        agents = [parse_agent(path) for path in paths]
    assert [agent.name for agent in agents] == list(DELEGATION_MAP)
