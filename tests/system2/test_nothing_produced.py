"""With `--auto-approve` no gate is approved whose work was not produced (REQ-005): never exit 0, one line why."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMRequest, LLMResponse
from system2.documents import digests, state_of
from system2.policies import AutoApproveGatePolicy
from tests.system2.kit import Answers, Confirms, done, said, uses
from tests.system2.test_main import SIMULATED, process
from tests.system2.workflows import REJECT, TASK, Case, SaidAtGates, Watched, agents_of

Reply = Callable[[LLMRequest], LLMResponse | None]
TEXT_ALONE = "spec-coordinator wrote only text, and used no tool"
CONTEXT, EXECUTES, REVIEWS = "## Outputs\n\n- spec/context.md", "Carry out all tasks of", "spec/code-review.md\n"


def of(part: str, *replies: LLMResponse | None) -> Reply:
    """The replies to those whose contract has this part, one after the other, the last one for ever."""
    left = list(replies)

    def reply(request: LLMRequest) -> LLMResponse | None:
        if part not in str(request.messages[0]["content"]):
            return None
        return left.pop(0) if len(left) > 1 else left[0]

    return reply


def auto(root: Path, reply: Reply | None = None) -> Case:
    replaces = Answers({"existing_spec": "replace"})
    model = Watched(reply=reply)
    return Case(
        root, model, gate_policy=AutoApproveGatePolicy(), bash_policy=Confirms(answer=False), question_policy=replaces
    )


def refused(case: Case, gate: str, why: str) -> None:
    result = case.orchestrator.run(TASK)
    assert (result.status, result.exit_code) == ("aborted", 1)
    assert result.error == f"aborted at gate {gate}: not approved: {why}"
    assert "\n" not in result.error
    assert [decision.decision.value for decision in result.gate_decisions][-1] == "abort"


def test_a_workflow_that_produced_everything_is_approved(tmp_path: Path) -> None:
    result = auto(tmp_path).orchestrator.run(TASK)
    assert (result.status, result.exit_code, len(result.gate_decisions)) == ("completed", 0, 6)


@pytest.mark.parametrize(
    "reply",
    [said("I'm sorry, but I can't help with that."), said(""), said("Written: spec/context.md."), done("all written")],
    ids=["refusal", "empty", "claim", "signal"],
)
def test_a_document_that_no_agent_wrote(reply: LLMResponse, tmp_path: Path) -> None:
    case = auto(tmp_path, of(CONTEXT, reply))
    refused(case, "1 (context)", f"{TEXT_ALONE}; spec/context.md was not written")
    assert agents_of(case.lines) == ["repo-governor", "spec-coordinator"]


@pytest.mark.parametrize("content", ["", " \n\t\n"])
def test_a_document_that_is_empty(content: str, tmp_path: Path) -> None:
    write = uses(("Write", {"file_path": "spec/context.md", "content": content}))
    refused(auto(tmp_path, of(CONTEXT, write, done())), "1 (context)", "spec/context.md is empty")


def test_an_earlier_document_that_was_not_touched(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "context.md").write_text("# Of another task\n")
    why = f"{TEXT_ALONE}; spec/context.md was not written: it is from before this workflow"
    refused(auto(tmp_path, of(CONTEXT, done())), "1 (context)", why)


def test_an_earlier_document_that_was_rewritten_unchanged(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "context.md").write_text("# The same\n")
    same = uses(("Write", {"file_path": "spec/context.md", "content": "# The same\n"}))
    read = uses(("Read", {"file_path": "spec/context.md"}))
    assert auto(tmp_path, of(CONTEXT, read, same, done())).orchestrator.run(TASK).exit_code == 0


def test_a_document_outside_the_project(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside.md"
    (root / "spec").mkdir(parents=True)
    outside.write_text("# Mine\n")
    (root / "spec" / "context.md").symlink_to(outside)
    why = f"{TEXT_ALONE}; spec/context.md is reached through a symbolic link; it must be a file in the project"
    refused(case := auto(root, of(CONTEXT, done())), "1 (context)", why)
    assert case.orchestrator.journal is not None
    recorded = case.orchestrator.journal.read_text()
    assert '"content":"(not in the project)"' in recorded
    assert "# Mine" not in recorded


def test_blockers_reported_before_the_document(tmp_path: Path) -> None:
    write = uses(("Write", {"file_path": "spec/context.md", "content": "# Half\n"}))
    case = auto(tmp_path, of(CONTEXT, write, done("half", status="blockers", blockers=["nobody knows the owner"])))
    refused(case, "1 (context)", "spec-coordinator reports a blocker: nobody knows the owner")


@pytest.mark.parametrize("reply", [said("I cannot do that."), done("done")], ids=["prose", "signal"])
def test_an_executor_that_changed_nothing(reply: LLMResponse, tmp_path: Path) -> None:
    why = "executor wrote only text, and used no tool; the executor changed no file in the project"
    refused(auto(tmp_path, of(EXECUTES, reply)), "5 (summary)", why)


def test_an_executor_that_names_files_it_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("old = 1\n")
    write = uses(("Write", {"file_path": "src/app.py", "content": "app = 1\n"}))
    claims = done(files_changed=["src/app.py", "./src/", "old.py", "src/none.py", "/etc/passwd"])
    why = "; ".join(
        f"the executor says it changed {path!r}, but did not" for path in ("old.py", "src/none.py", "/etc/passwd")
    )
    refused(auto(tmp_path, of(EXECUTES, write, claims)), "5 (summary)", why)


def test_what_stands_around_a_path_is_not_part_of_it(tmp_path: Path) -> None:
    write = uses(*(("Write", {"file_path": path, "content": "app = 1\n"}) for path in ("src/app.py", "`odd`")))
    marked = ["`src/app.py`", " src/app.py", f"`{tmp_path}/src/app.py` ", "`odd`"]
    claims = done(files_changed=[*marked, "src/app.py (new)", "src/app.py:12", "src/app.pyc"])
    why = "the executor says it changed 'src/app.pyc', but did not"
    refused(auto(tmp_path, of(EXECUTES, write, claims)), "5 (summary)", why)


def test_files_written_by_a_command_count_for_the_executor(tmp_path: Path) -> None:
    command = uses(("Bash", {"command": "mkdir -p src && echo 'app = 1' > src/app.py && rm old.py"}))
    (tmp_path / "old.py").write_text("old = 1\n")
    claims = done(files_changed=["src/app.py", "old.py"])
    case = auto(tmp_path, of(EXECUTES, command, claims))
    case.bash.answer = True
    result = case.orchestrator.run(TASK)
    assert (result.exit_code, result.error) == (0, None)


def test_a_check_with_an_open_blocker(tmp_path: Path) -> None:
    case = auto(tmp_path, of(REVIEWS, done("still wrong", status="blockers", blockers=["it divides by zero"])))
    result = case.orchestrator.run(TASK)
    assert (result.status, result.exit_code) == ("aborted", 1)
    assert "not approved: code-reviewer reports a blocker: it divides by zero" in (result.error or "")


def test_a_check_whose_log_has_a_blocker_though_it_signals_success(tmp_path: Path) -> None:
    write = uses(
        ("Write", {"file_path": "spec/code-review.md", "content": "# Review\n"}),
        ("Edit", {"file_path": "spec/post-execution-log.md", "old_string": "# ", "new_string": "# The "}),
    )
    entry = uses(
        ("Bash", {"command": "printf '\\n## code-reviewer\\n- Result: blockers\\n' >> spec/post-execution-log.md"})
    )
    case = auto(tmp_path, of(REVIEWS, write, entry, done("fine")))
    case.bash.answer = True
    refused(case, "5 (summary)", "spec/post-execution-log.md on code-reviewer: blockers")


@pytest.mark.parametrize("reply", [said("Looks good to me."), done("looks good")], ids=["prose", "signal"])
def test_a_check_without_a_report(reply: LLMResponse, tmp_path: Path) -> None:
    case = auto(tmp_path, of(REVIEWS, reply))
    why = "code-reviewer wrote only text, and used no tool; code-reviewer: spec/code-review.md was not written"
    refused(case, "5 (summary)", why)


def test_both_gates_show_it_and_approval_still_exits_1(tmp_path: Path) -> None:
    case = Case(tmp_path, Watched(reply=of(CONTEXT, done("all written"))))
    result = case.orchestrator.run(TASK)
    why = f"{TEXT_ALONE}; spec/context.md was not written"
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.error == f"approved, but left open: {why}"
    asked = case.gates.asked[1][2].splitlines()
    assert asked[:2] == why.split("; ")
    assert asked[-1] == "all written"
    assert "- spec/context.md was not written" in case.gates.asked[-1][2]


def test_an_approved_open_problem_is_asked_about_again_on_resume(tmp_path: Path) -> None:
    case = Case(tmp_path, Watched(reply=of(EXECUTES, done("nothing to do"))))
    first = case.orchestrator.run(TASK)
    assert (first.exit_code, first.transcript_path is not None) == (1, True)
    assert "the executor changed no file in the project" in (first.error or "")
    again = Case(tmp_path, gate_policy=SaidAtGates({5: [(REJECT, "do the work")]}))
    assert first.transcript_path is not None
    result = again.orchestrator.resume(first.transcript_path)
    assert ([gate for gate, *_ in again.gates.asked], result.exit_code) == ([5, 5], 0)


@pytest.mark.exhaustive
def test_a_project_that_becomes_unwritable_is_exit_1_and_can_be_resumed(tmp_path: Path) -> None:
    # A file in the place of the folder: that holds for root as well.
    (tmp_path / "spec").write_text("no folder")
    done = process(*SIMULATED, "--auto-approve", TASK, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    why = "system2: aborted at gate 0 (scope): not approved: spec/scope.md cannot be read: Not a directory"
    assert [line for line in done.stderr.splitlines() if line.startswith("system2: ")] == [why]
    (tmp_path / "spec").unlink()
    again = process(*SIMULATED, "--auto-approve", "--resume", "last", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "spec" / "scope.md").exists()


def test_a_project_that_cannot_be_written_to_is_refused_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by chmod: root may write everywhere.
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) != (tmp_path, os.W_OK) and access(path, mode))
    case = Case(tmp_path)
    with pytest.raises(UsageError, match="cannot be written to; make it writable"):
        case.orchestrator.run(TASK)
    assert (case.model.requests, list(tmp_path.iterdir())) == ([], [])


def test_something_else_in_place_of_a_document_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert state_of(tmp_path, "folder")["problem"] == "folder is not a regular file"
    assert state_of(tmp_path, "pipe")["problem"] == "pipe is not a regular file"
    assert digests(tmp_path, ["folder", "pipe", "none"]) == {}


def test_a_document_too_large_to_be_one_is_reported_instead_of_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x")
    os.truncate(tmp_path / "large", 50_000_001)
    assert state_of(tmp_path, "large") == {
        "problem": "large cannot be read: it is larger than 50,000,000 bytes",
        "digest": None,
    }
    assert digests(tmp_path, ["large"]) == {}
