"""What a workflow's widgets draw: documents as Markdown, and cost against its two marks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_widgets.markdown_text import markdown_blocks
from aeon_widgets.workflow_header import WorkflowFacts, gauge


def test_headings_lists_code_and_quotes_are_told_apart() -> None:
    text = "# A\n### B\n- one\n  * two\n> said\n---\n```py\n# no heading\n- no list\n```\nplain **bold** [l](x)"
    assert list(markdown_blocks(text)) == [
        ("bold accent", "# A"),
        ("bold", "### B"),
        ("", "• one"),
        ("", "  • two"),
        ("muted", "> said"),
        ("muted", "---"),
        ("muted", "```py"),
        ("accent", "  # no heading"),
        ("accent", "  - no list"),
        ("muted", "```"),
        ("", "plain **bold** [l](x)"),
    ]


def test_a_table_has_its_columns_under_each_other() -> None:
    assert list(markdown_blocks("| a | long name |\n|---|:-:|\n| 漢字 | b |\nend")) == [
        ("bold", "a    │ long name"),
        ("muted", "─────┼──────────"),
        ("", "漢字 │ b"),
        ("", "end"),
    ]


@given(st.text(alphabet="ab|`#-* \n>~", max_size=200))
def test_no_word_is_lost(text: str) -> None:
    shown = "\n".join(line for _, line in markdown_blocks(text))
    assert [each for each in shown if each in "ab"] == [each for each in text if each in "ab"]


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
def test_the_gauge_has_both_marks(spent: float, bar: str) -> None:
    assert gauge(WorkflowFacts(cost_usd=spent, warning_usd=2.0, ceiling_usd=5.0), 8) == bar


def test_without_a_ceiling_there_is_no_gauge() -> None:
    assert gauge(WorkflowFacts(cost_usd=1.0), 8) == ""
