from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.tools.base import Tool
from aeon_core.tools.files import ReadTool, WriteTool
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.shell.bash import BashTool
from system2.agents import TOOL_NAMES, Allowance, allow


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (["Read", "Bash", "Grep"], ("Read", "Grep", "Bash")),
        (["read", "BASH", "glob"], ("Read", "Glob", "Bash")),
        (["MultiEdit", "LS"], ("Edit", "Glob")),
        (["*"], TOOL_NAMES),
        (["All"], TOOL_NAMES),
        (["signal_completion", "attempt_completion", "Read"], ("Read",)),
        (["Bash()", "Read(*)"], ("Read", "Bash")),
        ([], ()),
    ],
)
def test_tool_names_are_mapped_to_ours(tools: list[str], names: tuple[str, ...]) -> None:
    assert allow(tools) == Allowance(names)


@pytest.mark.parametrize(
    ("tool", "warning"),
    [
        (
            "WebFetch",
            "unknown tool 'WebFetch', ignored; the known ones are Read, Write, Edit, Grep, Glob, Bash",
        ),
        ("Reed", "unknown tool 'Reed', ignored; did you mean 'Read'?"),
        (
            "mcp__x__y",
            "unknown tool 'mcp__x__y', ignored; the known ones are Read, Write, Edit, Grep, Glob, Bash",
        ),
        (
            "Agent(a, b)",
            "the tool 'Agent(a, b)' is not available: agents cannot start other agents, only the orchestrator can",
        ),
        ("Task", "the tool 'Task' is not available: agents cannot start other agents, only the orchestrator can"),
        (
            "delegate",
            "the tool 'delegate' is not available: agents cannot start other agents, only the orchestrator can",
        ),
    ],
)
def test_unavailable_tools_cause_a_warning(tool: str, warning: str) -> None:
    assert allow([tool, "Read"]) == Allowance(("Read",), {}, (warning,))


def test_a_warning_is_short_and_fit_for_a_screen() -> None:
    (warning,) = allow(["\x1b[31m" + "x" * 10_000]).warnings
    assert len(warning) < 250
    assert "\x1b" not in warning


@pytest.mark.parametrize(
    ("tools", "limits"),
    [
        (["Bash(git diff:*)"], {"Bash": ("git diff", "git diff *")}),
        (["Bash(git diff:*)", "Bash(git log)", "Bash(git log)"], {"Bash": ("git diff", "git diff *", "git log")}),
        (["Read(src/*)", "Bash"], {"Read": ("src/*",)}),
        (["Bash(git diff)", "Bash"], {}),
        (["Bash(git diff)", "*"], {}),
    ],
)
def test_parentheses_limit_a_tool(tools: list[str], limits: dict[str, tuple[str, ...]]) -> None:
    assert allow(tools).limits == limits


def bash(root: Path, command: str) -> tuple[Tool, dict[str, str]]:
    return BashTool(root), {"command": command}


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("git diff", True),
        ("git diff --stat main", True),
        ("git log", True),
        ("git diff && git log", True),
        ("git log -3", False),
        ("git difftool", False),
        ("git diff; rm -r src", False),
        ("git diff $(rm -r src)", False),
        ("git diff > out.txt", False),
        ("rm -r src", False),
        ("git diff | sh", False),
        ("for", False),
    ],
)
def test_a_limited_command_does_not_allow_others(tmp_path: Path, command: str, allowed: bool) -> None:
    refusal = allow(["Bash(git diff:*)", "Bash(git log)"]).refusal(*bash(tmp_path, command))
    expected = "this agent may call 'Bash' only with command like 'git diff', 'git diff *', 'git log'"
    assert refusal == (None if allowed else expected)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("spec/a.md", True), ("spec/../spec/a.md", True), ("a.md", False), ("spec/../a.md", False), ("/etc/x", False)],
)
def test_a_limited_path_is_resolved(tmp_path: Path, path: str, allowed: bool) -> None:
    (tmp_path / "spec").mkdir()
    tool = WriteTool(Sandbox(tmp_path))
    refusal = allow(["Write(spec/*)"]).refusal(tool, {"file_path": path, "content": ""})
    assert (refusal is None) == allowed


def test_a_tool_that_is_not_listed_is_refused(tmp_path: Path) -> None:
    read = ReadTool(Sandbox(tmp_path))
    assert allow(["Read"]).refusal(read, {"file_path": "a"}) is None
    assert (
        allow(["Grep", "Glob"]).refusal(read, {"file_path": "a"}) == "this agent may not call 'Read'; it has Grep, Glob"
    )
    assert allow([]).refusal(*bash(tmp_path, "ls")) == "this agent may not call 'Bash'; it has no tools"
    assert allow(["Bash(ls)"]).refusal(BashTool(tmp_path), {"command": ""}) is not None
