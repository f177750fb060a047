"""What a workflow's header and conversation show."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from aeon_themes import fallback_variables
from aeon_widgets.run_header import WorkflowFacts, WorkflowHeader, cost_bar
from aeon_widgets.workflow_panes import ConversationItem, WorkflowConversation, _TalkLine
from tests.waiting import until


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


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (46, "SIMULATED      $0.00 ░░░┊░░░░│ of $5.00  00:41"),
        (38, "SIMULATED        $0.00 of $5.00  00:41"),
        (18, "SIMULATED"),
    ],
)
def test_a_narrow_header_drops_the_gauge_before_it_drops_that_the_model_is_simulated(width: int, line: str) -> None:
    header = WorkflowHeader()
    facts = WorkflowFacts(simulated=True, warning_usd=2.0, ceiling_usd=5.0, seconds=41.0)
    header.set_reactive(WorkflowHeader.facts, facts)
    assert header._second_line(width).plain.rstrip() == line


def test_a_hidden_conversation_shows_no_lines_of_other_agents() -> None:
    conversation = WorkflowConversation()
    conversation._lines = [_TalkLine(3, "muted", "an earlier agent's fourth item")]
    assert conversation.item is None
    conversation.start([ConversationItem("💬", "muted", "the only item")], follow=False)
    assert conversation.text == ""


async def test_a_conversation_that_changed_while_it_was_hidden_can_be_shown_again() -> None:
    class Shown(App[None]):
        def get_theme_variable_defaults(self) -> dict[str, str]:
            return fallback_variables(self.current_theme)

        def compose(self) -> ComposeResult:
            yield WorkflowConversation()

    app = Shown()
    async with app.run_test() as pilot:
        conversation = app.query_one(WorkflowConversation)
        conversation.start([ConversationItem("»", "text", "an earlier item")] * 9, follow=True)
        conversation.display = False
        await pilot.pause()
        conversation.start([ConversationItem("»", "text", "the only item")], follow=True)
        conversation.display = True
        await until(pilot, lambda: "the only item" in conversation.text)
