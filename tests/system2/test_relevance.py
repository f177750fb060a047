"""Which agents a workflow does without, and why (REQ-045, REQ-047)."""

from __future__ import annotations

import pytest

from system2.constants import DELEGATION_MAP
from system2.delegation import skip_reason

CHECKS = ("test-engineer", "security-sentinel", "eval-engineer", "docs-release", "code-reviewer")


def needed(*changed: str, task: str = "build it", scope: str = "") -> list[str]:
    return [name for name in DELEGATION_MAP if skip_reason(name, task, scope, changed) is None]


def test_agents_up_to_the_executor_tests_and_review_always_run() -> None:
    assert needed() == [*DELEGATION_MAP[:6], "test-engineer", "code-reviewer"]


@pytest.mark.parametrize(
    ("changed", "checks"),
    [
        (["src/main.py"], ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"]),
        (["README.md"], ["test-engineer", "docs-release", "code-reviewer"]),
        (["requirements.txt"], ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"]),
        (["Dockerfile"], ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"]),
        (["app/prompts/plan.md"], ["test-engineer", "eval-engineer", "docs-release", "code-reviewer"]),
        (["logo.png"], ["test-engineer", "code-reviewer"]),
        (["spec/tasks.md"], ["test-engineer", "code-reviewer"]),
        *(
            ([path], ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"])
            for path in ("contracts/Token.sol", "src/solve.jl", "bin/start", "Jenkinsfile", "CMakeLists.txt", "a\n.bat")
        ),
        (["docs/a\nb.md"], ["test-engineer", "docs-release", "code-reviewer"]),
        (["LOGO.PNG"], ["test-engineer", "code-reviewer"]),
        (["data/prices.csv"], ["test-engineer", "code-reviewer"]),
        (["docs/.env.example"], ["test-engineer", "security-sentinel", "docs-release", "code-reviewer"]),
    ],
)
def test_changed_files_decide_which_checks_run(changed: list[str], checks: list[str]) -> None:
    assert [name for name in needed(*changed) if name in CHECKS] == checks


def test_an_agent_that_is_not_needed_has_a_reason_for_a_person() -> None:
    changes = ["a.png", "b.png", "c.png", "d.png"]
    assert skip_reason("security-sentinel", "t", "", changes) == (
        "it reviews changes of code, dependencies and configuration; "
        "the executor changed a.png, b.png, c.png and 1 more"
    )
    assert skip_reason("docs-release", "t", "", []) == (
        "it documents changes of behaviour and of documents; the executor changed no files"
    )
    assert skip_reason("mcp-toolsmith", "t", "", changes) == "the task speaks of no MCP tools"


def test_the_task_decides_which_agents_run() -> None:
    assert "mcp-toolsmith" in needed(task="add an MCP server for invoices")
    assert "postmortem-scribe" in needed(task="write up yesterday's outage")


@pytest.mark.parametrize(
    "line", ["- `mcp-toolsmith`: {} — tools", "| mcp-toolsmith | {} | tools |", "mcp-toolsmith **{}**"]
)
def test_the_approved_scope_overrides_the_task(line: str) -> None:
    assert "mcp-toolsmith" in needed(scope=line.format("Yes"))
    assert "mcp-toolsmith" not in needed(scope=line.format("no"), task="build MCP tools")


def test_an_agent_defined_by_the_project_runs() -> None:
    assert skip_reason("our-own", "t", "", []) is None
