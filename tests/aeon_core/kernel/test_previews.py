"""A person sees what a call would change in a file before they decide, and decides about what they have seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry
from aeon_core.journal.reader import read_records
from aeon_core.tools import files
from aeon_core.tools.files import file_tools
from aeon_core.tools.text_files import ReadTool
from tests.aeon_core.kernel.test_passes import model
from tests.fakes import steps
from tests.replays import replays_the_same

TEXT = "".join(f"line {number}\n" for number in range(1, 21))
EDIT = {"tool": "Edit", "arguments": {"file_path": "notes.md", "old_string": "line 9\n", "new_string": "line nine\n"}}


class Person:
    """Approves every call, after doing something to the files."""

    def __init__(self, *meanwhile: Callable[[], object]) -> None:
        self.previews: list[Any] = []
        self._meanwhile = list(meanwhile)

    def __call__(self, request: ApprovalRequest) -> ApprovalDecision:
        self.previews.append(request.subject.get("preview"))
        if self._meanwhile:
            self._meanwhile.pop(0)()
        return ApprovalDecision(decision="approve")


def run(folder: Path, person: Person, step: dict[str, Any] = EDIT) -> RunResult:
    registry = ToolRegistry()
    for each in file_tools(folder):
        registry.register(each)
    config = RunConfig(single_pass=True, durability="off", approve=["tool"])
    llm = model(answer="done", plan=steps(step))
    return Orchestrator(llm, registry, config=config, approver=person, journal=folder / "r.jsonl").run("edit")


def test_an_edit_is_shown_as_the_diff_of_the_file_with_its_line_numbers(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text(TEXT)
    person = Person()
    assert run(tmp_path, person).status == "completed"
    (shown,) = person.previews
    assert shown["diff"].split("\n")[2:] == [
        "@@ -6,7 +6,7 @@",
        *(f" line {number}" for number in (6, 7, 8)),
        "-line 9",
        "+line nine",
        *(f" line {number}" for number in (10, 11, 12)),
    ]
    asked = next(each for each in read_records(tmp_path / "r.jsonl") if each["type"] == "approval")
    assert asked["subject"]["preview"] == shown


def test_a_file_changed_during_a_decision_is_shown_again(tmp_path: Path) -> None:
    notes = tmp_path / "notes.md"
    notes.write_text(TEXT)
    person = Person(lambda: notes.write_text(f"new\n{TEXT}"))
    assert run(tmp_path, person).status == "completed"
    assert [each["diff"].split("\n")[2] for each in person.previews] == ["@@ -6,7 +6,7 @@", "@@ -7,7 +7,7 @@"]
    assert notes.read_text() == f"new\n{TEXT}".replace("line 9", "line nine")
    notes.unlink()
    replays_the_same(list(read_records(tmp_path / "r.jsonl")))


@pytest.mark.parametrize(
    ("text", "step", "problem"),
    [
        (None, EDIT, "notes.md"),
        ("other\n", EDIT, "old_string is not in 'notes.md'"),
        ("\0", EDIT, "binary"),
    ],
    ids=["missing", "no match", "binary"],
)
def test_a_call_that_would_fail_is_marked(tmp_path: Path, text: str | None, step: dict[str, Any], problem: str) -> None:
    if text is not None:
        (tmp_path / "notes.md").write_text(text)
    person = Person()
    run(tmp_path, person, step)
    assert problem in person.previews[0]["problem"]


@pytest.mark.parametrize(
    ("content", "why"),
    [("a\0", "it is no UTF-8 text"), ("a" * 21, "it is larger than 20 bytes")],
    ids=["binary", "large"],
)
def test_a_file_that_is_replaced_without_a_diff_is_no_call_that_would_fail(
    tmp_path: Path, content: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 20)
    (tmp_path / "logo.png").write_text(content)
    person = Person()
    run(tmp_path, person, {"tool": "Write", "arguments": {"file_path": "logo.png", "content": "x"}})
    assert (tmp_path / "logo.png").read_text() == "x"
    assert person.previews == [{"warning": f"all of 'logo.png' will be replaced, without a diff: {why}"}]


def test_a_replaced_file_shows_a_diff_and_a_new_file_none(tmp_path: Path) -> None:
    write = {"tool": "Write", "arguments": {"file_path": "notes.md", "content": "a\nc\n"}}
    (tmp_path / "notes.md").write_text("a\nb\n")
    replaced, new = Person(), Person()
    run(tmp_path, replaced, write)
    assert replaced.previews[0]["diff"].split("\n")[2:] == ["@@ -1,2 +1,2 @@", " a", "-b", "+c"]
    folder = tmp_path / "other"
    folder.mkdir()
    run(folder, new, write)
    assert new.previews == [None]


def test_a_new_file_behind_a_link_is_shown_by_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "notes.md").symlink_to("setup\n@@ -1 +1 @@\n+harmless")
    person = Person()
    run(tmp_path, person, {"tool": "Write", "arguments": {"file_path": "notes.md", "content": "c\n"}})
    name = r"setup\n@@ -1 +1 @@\n+harmless"
    assert person.previews == [{"diff": f"--- a/{name}\n+++ b/{name}\n@@ -0,0 +1 @@\n+c"}]


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "Write", "arguments": {"file_path": "docs/commit-msg", "content": "x"}},
        {"tool": "Read", "arguments": {"file_path": "docs/description"}},
    ],
)
def test_a_call_whose_path_changed_before_approval_is_not_made(
    tmp_path: Path, step: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".git/hooks").mkdir(parents=True)
    (tmp_path / ".git/hooks/description").write_text("secret")
    monkeypatch.setattr(ReadTool, "needs_approval", True)

    def swap() -> None:
        (tmp_path / "docs").rmdir()
        (tmp_path / "docs").symlink_to(".git/hooks")

    run(tmp_path, Person(swap), step)
    assert not (tmp_path / ".git/hooks/commit-msg").exists()
    records = list(read_records(tmp_path / "r.jsonl"))
    (called,) = [each for each in records if each["type"] == "tool" and each["state"] == "finished"]
    assert "would no longer do what it was allowed to" in called["error"]["message"]
    replays_the_same(records)
