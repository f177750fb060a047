"""What a workflow's header and conversation show."""

from __future__ import annotations

import pytest

from aeon_widgets.run_header import WorkflowFacts, cost_bar
from aeon_widgets.workflow_panes import ConversationItem, WorkflowConversation, _TalkLine


@pytest.mark.parametrize(
    ("spent", "bar"),
    [
        (0.0, "░░░┊░░░░│"),
        (1.0, "██░┊░░░░│"),
        (2.6, "████░░░░│"),
        (5.0, "████████│"),
        (9.0, "████████│"),
    ],
)
def test_the_gauge_shows_warning_and_ceiling(spent: float, bar: str) -> None:
    assert cost_bar(WorkflowFacts(cost_usd=spent, warning_usd=2.0, ceiling_usd=5.0), 8) == bar


def test_without_a_ceiling_there_is_no_gauge() -> None:
    assert cost_bar(WorkflowFacts(cost_usd=1.0), 8) == ""


def test_a_hidden_conversation_shows_no_lines_of_other_agents() -> None:
    conversation = WorkflowConversation()
    conversation._lines = [_TalkLine(3, "muted", "an earlier agent's fourth item")]
    assert conversation.item is None
    conversation.start([ConversationItem("💬", "muted", "the only item")], follow=False)
    assert conversation.text == ""
