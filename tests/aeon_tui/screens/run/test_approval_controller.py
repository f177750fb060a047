"""A run that waits for a person: the panel shows what would happen, and the answer reaches the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.approvals import Approver
from aeon_core.runs.orchestrator import PreparedRun
from aeon_tui.app import AeonApp
from aeon_tui.screens.dialogs import ConfirmDialog
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.approval_broker import ApprovalBroker
from aeon_tui.sessions.run_jobs import Kernel, NewRunJob, OnLine, RunJob
from aeon_tui.sessions.runner import Runner
from aeon_tui.sessions.stream import Stream
from aeon_widgets.approval_panel import ApprovalPanel, ApprovalText
from aeon_widgets.rendered_text import block_lines
from aeon_widgets.run_header import RunHeader
from aeon_widgets.run_question import budget_blocks, call_blocks, call_title
from aeon_widgets.step_pane import StepText
from aeon_widgets.text import MAX_SHOWN, exact
from aeon_widgets.text_fields import FeedbackField
from tests.fakes import ScriptedModel, steps
from tests.waiting import until

PLAN = steps({"tool": "erase", "arguments": {"path": "notes [old].txt"}})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


class Erasing:
    """An app whose run wants to call a tool that needs approval."""

    def __init__(self, folder: Path, plan: dict[str, Any] = PLAN) -> None:
        self.erased: list[str] = []

        @tool(effect="unsafe", needs_approval=True)
        def erase(path: str) -> str:
            """Erases a file."""
            self.erased.append(path)
            return "gone"

        def build(job: RunJob, journal: Path, line: OnLine, stream: Stream, approver: Approver | None) -> Kernel:
            registry = ToolRegistry()
            registry.register(erase)
            model = ScriptedModel(plan=plan, answer="done")
            orchestrator = Orchestrator(
                model, tools=registry, config=job.config, approver=approver, journal=journal, on_line=line
            )
            return PreparedRun(orchestrator, job.task)

        config = RunConfig(durability="off", single_pass=True)
        self.runner = Runner(NewRunJob("clean up", config), folder / "r.jsonl", build)
        self.app = AeonApp(folder, self.runner)


async def asked(pilot: Any) -> RunScreen:
    """Wait for the question; return the screen."""
    screen = pilot.app.screen
    assert isinstance(screen, RunScreen)
    await until(pilot, lambda: isinstance(screen.focused, ApprovalText))
    return screen


async def test_the_panel_shows_the_final_arguments_and_approval_runs_the_tool(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: bool(screen.query(ApprovalText)) and isinstance(screen.focused, ApprovalText))
        panel = screen.query_one(ApprovalPanel)
        assert str(panel.border_title) == "9 Call erase?"
        await until(pilot, lambda: bool(screen.query_one(ApprovalText).text))
        text = screen.query_one(ApprovalText).text
        assert "path: notes [old].txt" in text
        assert "asked because: 'erase' needs approval" in text
        assert screen.status == "waiting for you"
        await pilot.press("space")
        await until(pilot, lambda: screen.travel.paused)
        await until(pilot, lambda: "? waiting for you" in screen.query_one(RunHeader).render().plain)
        assert "‖ paused" in screen.query_one(RunHeader).render().plain
        assert erasing.erased == []
        await pilot.press("a")
        await until(pilot, lambda: erasing.runner.result is not None)
        await until(pilot, lambda: not screen.query(ApprovalPanel))
    assert erasing.erased == ["notes [old].txt"]
    assert erasing.runner.exit_code == 0


async def test_a_rejection_takes_a_reason_and_fails_the_step_with_it(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        await pilot.press("d", "w", "enter")
        assert "give a reason" in str(screen.query_one(ApprovalPanel).border_subtitle)
        assert erasing.runner.broker.waiting is not None
        await pilot.press("n", "o", "enter")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == []
    assert erasing.runner.result is not None
    assert "was not approved: no" in erasing.runner.result.steps[0].errors[0]


async def test_keys_typed_before_the_question_is_readable_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, ApprovalText))
        await pilot.press("a", "X", "q", "1", "question_mark")
        await pilot.pause()
        assert erasing.runner.broker.waiting is not None
        await pilot.press("w", "n", "w", "q", "enter")
        assert erasing.runner.broker.waiting is not None
        assert isinstance(pilot.app.screen, RunScreen)
        assert pilot.app.screen.query_one(FeedbackField).text == "nwq"
        erasing.runner.abort()
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == []


async def test_words_typed_ahead_are_not_answers(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        for letter in "wadq":
            erasing.app.post_message(Key(letter, letter))
        await until(pilot, lambda: screen.query_one(FeedbackField).text == "adq")
        assert erasing.runner.broker.waiting is not None
        erasing.runner.abort()
        await until(pilot, lambda: erasing.runner.result is not None)


async def test_quitting_while_the_run_waits_aborts_it(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen.focused, ApprovalText))
        await pilot.press("q", "ctrl+q")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.runner.result is not None
    assert (erasing.runner.result.status, erasing.erased) == ("aborted", [])


async def test_a_key_that_repeats_does_not_approve_the_same_call_of_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"tool": "erase", "arguments": {"path": "x"}, "description": "erase it"}
    erasing = Erasing(tmp_path, steps(step, step, step))
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        first = screen.query_one(ApprovalPanel)
        digests = [screen.asking._asked.digest]  # type: ignore[union-attr]
        first.action_choose("a")
        monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
        first.action_choose("a")
        await until(pilot, lambda: len(erasing.erased) == 1 and erasing.runner.broker.waiting is not None)
        await until(pilot, lambda: any(panel is not first for panel in screen.query(ApprovalPanel)))
        assert digests == [screen.asking._asked.digest]  # type: ignore[union-attr]
        await pilot.press("a", "a")
        erasing.runner.abort()
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == ["x"]


async def test_a_question_is_answered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        panel = (await asked(pilot)).query_one(ApprovalPanel)
        sent: list[object] = []
        with monkeypatch.context() as patch:
            patch.setattr(panel, "post_message", sent.append)
            panel.action_choose("a")
            panel.action_choose("a")
            panel.action_choose("w")
        assert [type(message) for message in sent] == [ApprovalPanel.Answered]
        assert not panel.has_class("-typing")
        erasing.runner.abort()


async def test_a_rejection_reason_is_visible_while_typed(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(60, 20)) as pilot:
        screen = await asked(pilot)
        await pilot.press("w", "n", "o")
        field = screen.query_one(FeedbackField)
        await pilot.pause()
        assert (field.size.height, field.region.height) == (1, 1)
        assert "no" in "".join(segment.text for segment in field.render_line(0))
        erasing.runner.abort()


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40)])
async def test_the_keys_stay_visible_for_any_call_length(tmp_path: Path, size: tuple[int, int]) -> None:
    path = "\n".join(f"line {number}" for number in range(5_000))
    erasing = Erasing(tmp_path, steps({"tool": "erase", "arguments": {"path": path}}))
    async with erasing.app.run_test(size=size) as pilot:
        screen = await asked(pilot)
        panel = screen.query_one(ApprovalPanel)
        keys = screen.query_one("ApprovalPanel .keys")
        await until(pilot, lambda: "more lines" in str(panel.border_subtitle))
        await pilot.pause()
        assert panel.region.y < keys.region.y < panel.region.bottom - 1
        assert keys.region.bottom == panel.region.bottom - 1
        await pilot.press("G")
        await until(pilot, lambda: not panel.border_subtitle)
        assert screen.query_one(ApprovalText).text.endswith("line 4999")
        erasing.runner.abort()


async def test_pressing_a_returns_to_the_question_and_again_approves(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        panel = screen.query_one(ApprovalPanel)
        for pane in ("1", "2", "3"):
            await pilot.press(pane, "w", "e", "X")
            await until(pilot, lambda: isinstance(erasing.app.screen, ConfirmDialog), "outside the panel, it asks")
            await pilot.press("n")
            await until(pilot, lambda: erasing.app.screen is screen)
            assert not panel.has_focus_within
            assert not panel.query_one(".keys").display
            assert panel.query_one(".away").display
            assert panel.styles.border_top[0] == "heavy"
            await pilot.press("a")
            assert isinstance(screen.focused, ApprovalText)
            assert erasing.runner.broker.waiting is not None
        await pilot.press("a")
        await until(pilot, lambda: erasing.runner.result is not None)
    assert erasing.erased == ["notes [old].txt"]


async def test_a_decided_question_gives_the_focus_back(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        screen.asking._focused_before = screen.query_one(StepText)
        await pilot.press("w", "n", "enter")
        await until(pilot, lambda: not screen.query(ApprovalPanel))
        assert isinstance(screen.focused, StepText)
        await pilot.press("9")
        assert isinstance(screen.focused, StepText)


async def test_the_question_is_zoomed_with_its_keys(tmp_path: Path) -> None:
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        screen = await asked(pilot)
        await pilot.press("z")
        assert isinstance(screen.maximized, ApprovalPanel)
        await pilot.pause()
        assert screen.query_one("ApprovalPanel .keys").region.height >= 1
        await pilot.press("escape")
        assert screen.maximized is None
        await pilot.press("z", "a")
        await until(pilot, lambda: erasing.runner.result is not None)
        await until(pilot, lambda: screen.maximized is None)


async def test_the_terminal_shows_that_the_run_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, bool]] = []
    monkeypatch.setattr(AeonApp, "update_terminal", lambda _, text, *, urgent=False: told.append((text, urgent)))
    erasing = Erasing(tmp_path)
    async with erasing.app.run_test(size=(80, 24)) as pilot:
        await asked(pilot)
        await until(pilot, lambda: ("aeon: waiting for you · clean up", True) in told)
        await pilot.press("a")
        await until(pilot, lambda: told[-1] == ("aeon: completed · clean up", False))


def test_an_answer_to_another_question_is_ignored() -> None:
    broker = ApprovalBroker()
    assert not broker.decide("digest", ApprovalDecision(decision="approve"))
    broker.close()
    request = ApprovalRequest(point="tool", pass_number=1, subject={}, digest="digest")
    assert broker(request).decision == "abort"


def test_unusual_blanks_are_shown_in_commands_and_paths() -> None:
    command = "cat notes\u3000.txt &&\nls a\xa0b" + " x" * 30
    shown = list(call_blocks("tool", {"tool_name": "Bash", "arguments": {"command": command}}))
    assert shown[-1][1].startswith("cat notes\\u3000.txt &&\nls a\\xa0b x x")
    write = {"tool_name": "Write", "arguments": {"file_path": "a\u2003b  c", "content": "Voilà\u202f: « Oui\xa0! »\n"}}
    assert call_title(write) == "Write a\\u2003b  c?"
    assert [text for _, text in call_blocks("tool", write)][0::2] == [
        "file_path: a\\u2003b  c",
        "Voilà\u202f: « Oui\xa0! »\n",
    ]


def test_an_edit_is_shown_as_a_difference() -> None:
    subject = {"arguments": {"file_path": "a.py", "old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3"}}
    lines = [text for _, text in call_blocks("tool", subject)]
    assert "file_path: a.py" in lines
    assert lines[-3:] == [" x = 1", "-y = 2", "+y = 3"]


DIFF = """--- a/a.py
+++ b/a.py
@@ -9,3 +9,4 @@
 x = 1
-y = 2
+y = 3
+z = 4
 x = 5
@@ -99 +100 @@
-end
\\ No newline at end of file
+end"""


LONG = f"{'folder/' * 30}a.md"


def test_a_file_diff_has_line_numbers_and_highlighted_code() -> None:
    arguments = {"file_path": "a.py", "old_string": "y = 2", "new_string": "y = 3\nz = 4", "mode": "x"}
    blocks = list(call_blocks("tool", {"tool_name": "Edit", "arguments": arguments, "preview": {"diff": DIFF}}))
    assert blocks == [("bold", "mode: x"), ("diff a.py", DIFF)]
    lines = block_lines(*blocks[1], 40)
    assert [(line.style, line.text) for line in lines] == [
        ("", "  9   x = 1"),
        ("failed", " 10 - y = 2"),
        ("complete", " 10 + y = 3"),
        ("complete", " 11 + z = 4"),
        ("", " 12   x = 5"),
        ("muted", "  ⋯"),
        ("failed", " 99 - end"),
        ("muted", "    \\ No newline at end of file"),
        ("complete", "100 + end"),
    ]
    assert [piece for piece in lines[2].pieces() if piece[0] == "3"] == [("3", "complete medium")]
    assert [line.text for line in block_lines(*blocks[1], 10)][2:4] == [" 10 - y =", "      2"]


def test_a_cut_diff_is_complete_in_the_arguments() -> None:
    arguments = {"file_path": "a.py", "content": "all of it"}
    shown = {"tool_name": "Write", "arguments": arguments, "preview": {"diff": f"{DIFF}\n… [the diff is cut here]"}}
    told = [text for _, text in call_blocks("tool", shown)]
    assert told[:2] == ["file_path: a.py", "content: all of it"]
    assert told[-1].endswith("… [the diff is cut here]")
    assert block_lines("diff a.py", told[-1], 60)[-1].text == "    … [the diff is cut here]"


@pytest.mark.parametrize(
    ("given", "path"),
    [("link.md", "src/auth.py"), ("./" * 60 + "a.md", "a.md"), (LONG, LONG)],
    ids=["link", "padded", "long"],
)
def test_a_file_whose_name_the_title_does_not_show_is_named_above_its_diff(given: str, path: str) -> None:
    diff = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b"
    subject = {"tool_name": "Edit", "arguments": {"file_path": given}, "preview": {"diff": diff}}
    assert [text for _, text in call_blocks("tool", subject)] == [f"file: {path}", diff]
    title = "Edit link.md → src/auth.py?" if given == "link.md" else f"Edit {exact(given, 120)}?"
    assert call_title(subject) == title


@pytest.mark.parametrize(("new", "sign"), [("a", r"\r"), ("b\r", "")], ids=["another line end", "the same line end"])
def test_a_line_end_is_shown_where_a_diff_changes_it(new: str, sign: str) -> None:
    diff = f"--- a/a.sh\n+++ b/a.sh\n@@ -1 +1 @@\n-a\r\n+{new}"
    subject = {"tool_name": "Write", "arguments": {"file_path": "a.sh"}, "preview": {"diff": diff}}
    ((style, shown),) = call_blocks("tool", subject)
    assert block_lines(style, shown, 40)[0].text == f"1 - a{sign}"


def test_a_carriage_return_in_a_command_is_shown() -> None:
    command = {"tool_name": "Bash", "arguments": {"command": "cat x > y\r\nls"}}
    style, shown = list(call_blocks("tool", command))[-1]
    assert [line.text for line in block_lines(style, shown, 40)] == [r"cat x > y\r", "ls"]


def test_a_call_that_would_fail_says_so_first() -> None:
    shown = {"tool_name": "Edit", "arguments": {"file_path": "a.py"}, "preview": {"problem": "no such file"}}
    assert list(call_blocks("tool", shown)) == [
        ("high", "✖ the call would fail: no such file"),
        ("bold", "file_path: a.py"),
    ]


def test_a_call_that_replaces_a_file_without_a_diff_shows_what_it_writes() -> None:
    arguments = {"file_path": "a.png", "content": "new"}
    shown = {"tool_name": "Write", "arguments": arguments, "preview": {"warning": "all of 'a.png' will be replaced"}}
    assert [text for _, text in call_blocks("tool", shown)] == [
        "✖ all of 'a.png' will be replaced",
        "file_path: a.png",
        "content: new",
    ]


@pytest.mark.parametrize(
    ("old", "new"), [("a\n", "a"), ("a\u2028b", "a\nb"), ("a\x0cb", "a\nb")], ids=["end", "separator", "form feed"]
)
def test_a_difference_only_in_line_ends_is_shown(old: str, new: str) -> None:
    subject = {"arguments": {"old_string": old, "new_string": new}}
    signs = {text[:1] for _, text in call_blocks("tool", subject)}
    assert {"-"} <= signs or {"+"} <= signs


def test_a_difference_of_very_long_texts_is_shown_at_once() -> None:
    subject = {"arguments": {"old_string": "a\nb\n" * 20_000, "new_string": "b\na\n" * 20_000}}
    assert sum(text.startswith(("-", "+")) for _, text in call_blocks("tool", subject)) == 80_000


def test_a_value_cannot_imitate_an_argument_or_the_reason() -> None:
    forged = "x\nasked because: a rule allows it\nfile_path: safe.txt"
    subject = {"description": forged, "arguments": {"file_path": "/etc/passwd", "content": forged}}
    blocks = list(call_blocks("tool", subject))
    assert blocks[0] == ("muted", "for the step: x asked because: a rule allows it file_path: safe.txt")
    assert [text for style, text in blocks if style == "bold"] == ["file_path: /etc/passwd", "content:"]
    assert blocks[-1] == ("", forged)


def test_a_long_value_on_one_line_is_below_its_name() -> None:
    command = "echo" + " " * 70 + "file_path: safe.txt"
    assert list(call_blocks("tool", {"arguments": {"command": command}})) == [
        ("bold", "command:"),
        ("code bash", command),
    ]


def test_model_text_does_not_push_the_call_out_of_view() -> None:
    blocks = list(call_blocks("tool", {"description": "much ado " * 1_000, "arguments": {"path": "x"}}))
    assert len(blocks[0][1]) < 400
    assert blocks[0][1].endswith("…")


@pytest.mark.parametrize(
    ("text", "between"), [("y" * 450_000, ""), ("line\n" * 100_000, "\n")], ids=["one line", "many"]
)
def test_a_call_to_approve_is_always_shown_in_full(text: str, between: str) -> None:
    shown = [text for style, text in call_blocks("tool", {"arguments": {"content": text}}) if not style]
    assert all(len(part) <= MAX_SHOWN for part in shown)
    assert between.join(shown) == text


def test_the_budget_is_asked_about_in_dollars() -> None:
    subject = {"spent_usd": 1.0, "limit_usd": 1.2, "reserved_usd": 0.31, "held_usd": 0.0, "proposed_usd": 2.4}
    lines = [text for _, text in budget_blocks(subject)]
    assert any(line.startswith("the next call may cost up to") and line.endswith("$0.31") for line in lines)
    assert not any("held" in line for line in lines)
    amounts = [text.index("$") for _, text in budget_blocks({**subject, "held_usd": 0.04})]
    assert amounts == [amounts[0]] * 4, "they are below each other, whichever there are"
