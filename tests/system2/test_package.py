"""What the package fixes in code, and what importing it brings with it (REQ-040, contract: Names)."""

from __future__ import annotations

import pytest

from system2.constants import DELEGATION_MAP
from tests.test_architecture import SCREEN, SDKS, loaded_by


def test_work_is_delegated_in_the_order_of_the_specification() -> None:
    before = [
        "repo-governor",
        "spec-coordinator",
        "requirements-engineer",
        "design-architect",
        "task-planner",
        "executor",
    ]
    after = ["test-engineer", "security-sentinel", "eval-engineer", "docs-release", "code-reviewer"]
    assert list(DELEGATION_MAP) == [*before, *after, "postmortem-scribe", "mcp-toolsmith"]


@pytest.mark.parametrize("code", ["import system2", "import system2.agents, system2.prompt_injection"])
def test_the_package_imports_neither_a_screen_nor_an_sdk(code: str) -> None:
    assert not loaded_by(code) & (SCREEN | SDKS | {"pydantic"})
