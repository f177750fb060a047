"""What is fixed in code, whatever a project's documents say (REQ-040, AD-5)."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Gate:
    """A quality gate: what is decided on, and whose work it is (REQ-042)."""

    number: int
    title: str
    agent: str | None
    """The agent that wrote the artifact; None for the last gate, which covers the work of all."""
    artifact: str
    """The file that is decided on, relative to the project root."""


GATES = (
    Gate(0, "scope", "repo-governor", "spec/scope.md"),
    Gate(1, "context", "spec-coordinator", "spec/context.md"),
    Gate(2, "requirements", "requirements-engineer", "spec/requirements.md"),
    Gate(3, "design", "design-architect", "spec/design.md"),
    Gate(4, "tasks", "task-planner", "spec/tasks.md"),
    Gate(5, "summary", None, "spec/post-execution-log.md"),
)
"""The quality gates by number."""
GATE_OF_AGENT = {gate.agent: gate for gate in GATES if gate.agent is not None}
"""The gate that follows an agent's work."""
LAST_GATE = GATES[-1]
ARTIFACTS = tuple(gate.artifact for gate in GATE_OF_AGENT.values())
"""The documents that are approved one after the other."""

COMPLETION_TOOL = "signal_completion"
"""Every agent has it; no file needs to name it (REQ-014)."""
DEFAULT_MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
"""On Bedrock."""
DEFAULT_TRANSCRIPT_DIR = ".system2/runs"

TASK_GATE = 4
"""Once it is approved, the executor works."""
TASK_FILE = GATES[TASK_GATE].artifact
LOG_FILE = LAST_GATE.artifact
POST_EXECUTION = ("test-engineer", "security-sentinel", "eval-engineer", "docs-release", "code-reviewer")
"""Who checks the executor's work, in this order; the blockers that they report go back to it (REQ-045)."""
MAX_CYCLES = 3
"""How often the executor may repair what one agent reports."""
