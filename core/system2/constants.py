"""What the workflow fixes in code, whatever a project's documents say (REQ-040, AD-5)."""

from __future__ import annotations

DELEGATION_MAP = (
    "repo-governor",
    "spec-coordinator",
    "requirements-engineer",
    "design-architect",
    "task-planner",
    "executor",
    "test-engineer",
    "security-sentinel",
    "eval-engineer",
    "docs-release",
    "code-reviewer",
    "postmortem-scribe",
    "mcp-toolsmith",
)
"""The agents in the order in which work is delegated to them."""
