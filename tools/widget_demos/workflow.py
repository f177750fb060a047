"""What the demos of a workflow's widgets show: a moment at a gate."""

from __future__ import annotations

from aeon_widgets.workflow_artifact import WorkflowArtifact
from aeon_widgets.workflow_conversation import ConversationItem, WorkflowConversation
from aeon_widgets.workflow_header import WorkflowFacts, WorkflowHeader
from aeon_widgets.workflow_pipeline import PipelineRow, WorkflowPipeline

SCOPE = """# Scope

| path | what it holds |
|---|---|
| src/ | nothing yet |
| README.md | three sentences |

- an API for invoices
- no user interface
"""
ROWS = [
    PipelineRow("repo-governor", "✔", "complete", "complete", "repo-governor", time="01:12", detail="two files found"),
    PipelineRow("gate 0", "?", "medium", "waits", "gate 0 scope", is_gate=True, detail="spec/scope.md"),
    PipelineRow("spec-coordinator", "○", "pending", "waiting", "spec-coordinator"),
    PipelineRow("eval-engineer", "⊘", "muted", "skipped", "eval-engineer", detail="no prompt was changed"),
]
ITEMS = [
    ConversationItem("◇", "accent", "contract: survey the repository", (("", "## Objective\nSurvey the repository."),)),
    ConversationItem("»", "text", "repo-governor says · 812 tokens", (("", "I look at what is there first."),), True),
    ConversationItem("✔", "complete", "Glob pattern=**/* · 4 ms", (("muted", "result"), ("", "README.md"))),
    ConversationItem("✖", "failed", "Read file_path=../notes · 0 ms", (("", "it is not in the project"),)),
]
FACTS = WorkflowFacts(
    task="design a REST API for invoices",
    status="waiting for you",
    model="bedrock:us.anthropic.claude-sonnet-4",
    doing="gate 0: scope",
    cost_usd=2.31,
    warning_usd=2.0,
    ceiling_usd=5.0,
    tokens=81_204,
    seconds=72,
)


def show_pipeline(widget: WorkflowPipeline, moment: object) -> None:
    """Show the agents and gates."""
    del moment
    widget.update_rows(ROWS, "gate 0")


def show_talk(widget: WorkflowConversation, moment: object) -> None:
    """Show a conversation."""
    del moment
    widget.update_items(ITEMS)


def show_head(widget: WorkflowHeader, moment: object) -> None:
    """Show task, status and cost."""
    del moment
    widget.update_facts(FACTS)


def show_artifact(widget: WorkflowArtifact, moment: object) -> None:
    """Show a document."""
    del moment
    widget.show_file("spec/scope.md", SCOPE)
