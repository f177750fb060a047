"""The changed files of a gate, in its panel and in its row of the pipeline."""

from __future__ import annotations

from aeon_tui.reports.workflow_report import gate_items
from aeon_tui.screens.workflow.approval_controller import panel_question
from aeon_tui.sources.workflow import WorkflowState
from aeon_widgets.text import block
from system2.changes import FileChange
from tests.aeon_tui.workflows import GATE, at_a_gate, request

DIFF = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Mine\n+# Ours"
README = FileChange("README.md", "changed", DIFF, 1, 1, flag="spec-coordinator changed it, outside its document")
CONTEXT = FileChange("spec/context.md", "created", "--- /dev/null\n+++ b/spec/context.md\n@@ -0,0 +1 @@\n+# New", 1, 0)
SHOWN = [("muted", "@@ -1 +1 @@"), ("failed", "-# Mine"), ("complete", "+# Ours")]


def test_a_panel_shows_the_diffs_before_the_artifact_and_a_new_artifact_once() -> None:
    changes = [README.as_dict(), CONTEXT.as_dict()]
    told = {"summary": "⚠ changed  README.md\nspec-coordinator is done.", "changes": changes}
    blocks = list(panel_question(GATE.model_copy(update={"subject": {**GATE.subject, **told}})).body)
    assert blocks[:2] == [("high", "⚠ changed  README.md"), ("bold", "spec-coordinator is done.")]
    start = blocks.index(("muted", "── changed README.md ──"))
    assert blocks[start + 1 : start + 4] == SHOWN
    assert start < blocks.index(("muted", "── spec/context.md ──"))
    assert ("complete", "+# New") not in blocks


def test_a_question_about_a_file_shows_its_diff_in_colours() -> None:
    told = {"arguments": {"file_path": "README.md"}, "reason": "not its document", "preview": {"diff": DIFF}}
    blocks = panel_question(request("tool", "x", tool_name="Edit", **told)).body
    assert blocks[0] == ("", "Edit would change 'README.md'")
    assert list(blocks[1:5]) == [("muted", "not its document"), *SHOWN]


def test_a_question_shows_a_very_long_command_or_content_to_its_end() -> None:
    long = "true;\n" * 40_000 + "rm -r src"
    command = panel_question(request("tool", "x", tool_name="Bash", arguments={"command": long}, reason="")).body
    written = {"file_path": "hook", "content": long}
    content = panel_question(request("tool", "x", tool_name="Write", arguments=written, reason="")).body
    assert [block(text)[-9:] for style, text in command if style == "code bash"][-1] == "rm -r src"
    assert [block(text)[-9:] for _, text in content if "rm -r src" in text] == ["rm -r src"]


def test_a_gate_row_unfolds_to_its_changed_files() -> None:
    written = at_a_gate()
    written.records[-1]["changes"] = [README.as_dict(), CONTEXT.as_dict()]
    state = WorkflowState()
    for record in written.records:
        state.apply(record)
    items = gate_items(state, 1)
    assert [(item.icon, item.head) for item in items[1:3]] == [
        ("⚠", "changed  README.md  +1 −1  spec-coordinator changed it, outside its document"),
        ("✎", "created  spec/context.md  +1 −0"),
    ]
    assert list(items[1].body) == SHOWN
