"""A project that a workflow has worked in before: its documents are not lost, and one works at a time (REQ-044)."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal import lock as journal_lock
from system2 import workflow_journal
from system2.documents import UNDECIDED
from system2.workflow_journal import lock_project
from tests.system2.kit import Answers, done, uses
from tests.system2.workflows import ABORT, FIRST_FIVE, REJECT, TASK, Case, SaidAtGates, Watched, agents_of, files_of

EARLIER = {f"spec/{name}.md": f"# {name} of before\n" for name in ("scope", "context", "requirements")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "spec").mkdir()
    for path, text in EARLIER.items():
        (tmp_path / path).write_text(text)
    return tmp_path


def texts(project: Path) -> dict[str, str]:
    return {path: (project / path).read_text() for path in EARLIER}


def test_without_an_answer_an_earlier_spec_is_kept(project: Path) -> None:
    case = Case(project)
    result = case.orchestrator.run(TASK)
    assert (result.status, result.error, agents_of(case.lines)) == ("aborted", UNDECIDED, [])
    (question,) = case.questions.asked
    assert (question.kind, question.choices, question.safe) == (
        "existing_spec",
        ("stop", "continue", "replace"),
        "stop",
    )
    assert "spec/scope.md, spec/context.md, spec/requirements.md" in question.text
    assert texts(project) == EARLIER
    again = Case(project)
    again.orchestrator.run("something else")
    assert again.questions.asked[0].details[0] == f"its task: {TASK}"


@pytest.mark.parametrize("said", [False, True])
def test_an_approved_spec_is_continued_after_its_gates(project: Path, said: bool) -> None:
    (project / "spec/tasks.md").write_text("of a design that is gone")
    case = Case(project, question_policy=Answers({} if said else {"existing_spec": "continue"}))
    result = case.orchestrator.run(TASK, spec="continue" if said else None)
    assert result.status == "completed"
    assert agents_of(case.lines)[:3] == [*FIRST_FIVE[3:], "executor"]
    assert [gate for gate, _, _ in case.gates.asked] == [0, 1, 2, 3, 4, 5]
    shown = case.gates.asked[1][2].splitlines()
    assert shown[-1] == "spec/context.md is from an earlier workflow; approve to keep it as it is"
    assert texts(project) == EARLIER
    assert (project / "spec/tasks.md").read_text() != "of a design that is gone"
    missing = "spec/design.md is missing: later documents are rewritten"
    assert [question.details for question in case.questions.asked] == ([] if said else [(missing,)])


def test_a_kept_document_that_is_rejected_goes_to_its_agent_with_contract_and_feedback(project: Path) -> None:
    case = Case(project, gate_policy=SaidAtGates({1: [(REJECT, "name the users")]}))
    assert case.orchestrator.run(TASK, spec="continue").status == "completed"
    first = case.model.requests[0].messages[0]["content"]
    assert "Write down the problem" in first
    assert "name the users" in first
    assert agents_of(case.lines)[0] == "spec-coordinator"


def test_a_misspelt_choice_replaces_nothing(project: Path) -> None:
    choice: Any = "keep"
    with pytest.raises(UsageError, match=r"spec is 'keep'; write 'continue' .* or 'replace'"):
        Case(project).orchestrator.run(TASK, spec=choice)
    assert texts(project) == EARLIER


def test_an_earlier_spec_can_be_replaced(project: Path) -> None:
    case = Case(project)
    assert case.orchestrator.run(TASK, spec="replace").status == "completed"
    assert agents_of(case.lines)[:5] == FIRST_FIVE
    assert not set(texts(project).values()) & set(EARLIER.values())


def test_a_resume_keeps_the_choice_and_does_not_ask_again(project: Path) -> None:
    stopped = Case(project, gate_policy=SaidAtGates({3: [(ABORT, None)]})).orchestrator.run(TASK, spec="continue")
    assert stopped.transcript_path is not None
    case = Case(project)
    assert case.orchestrator.resume(stopped.transcript_path).status == "completed"
    assert case.questions.asked == []
    assert texts(project) == EARLIER
    assert "repo-governor" not in agents_of(case.lines)


def run_alone(project: Path) -> tuple[int, str]:
    """Run the command without a terminal; return its exit code and what it says."""
    command = [sys.executable, "-m", "system2", "--auto-approve", "--model", "simulated:default", "count"]
    ran = subprocess.run(command, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.exhaustive
def test_without_a_terminal_the_command_requires_an_option(project: Path) -> None:
    assert run_alone(project) == (2, f"system2: {UNDECIDED}\n")
    assert set(files_of(project)) == set(EARLIER)


@pytest.mark.exhaustive
def test_documents_of_the_running_workflow_are_not_an_earlier_spec(project: Path, tmp_path: Path) -> None:
    with lock_project(project, tmp_path, print):
        code, said = run_alone(project)
    assert code == 2
    assert said.startswith(f"system2: another workflow is running in {str(project)!r}, by process {os.getpid()} (")


@pytest.mark.exhaustive
def test_a_second_workflow_in_a_project_names_the_running_one(tmp_path: Path) -> None:
    told: list[str] = []

    def reply(request: object) -> None:
        if not told:
            with pytest.raises(UsageError) as error:
                Case(tmp_path).orchestrator.run(TASK)
            told.append(error.value.message)

    case = Case(tmp_path, Watched(reply=reply))
    assert case.orchestrator.run(TASK).status == "completed"
    run = case.lines[0]["run"]
    assert told[0].startswith(f"the workflow {run!r} is running in {str(tmp_path)!r}, by process {os.getpid()} (")
    assert len(list((tmp_path / ".system2/runs").glob("*.jsonl"))) == 1
    again = Case(tmp_path, Watched(reply=lambda request: uses(("Glob", {"pattern": "*"})) if not told else done()))
    with lock_project(tmp_path, tmp_path, told.append), pytest.raises(UsageError, match="another workflow is running"):
        again.orchestrator.run(TASK)


def test_a_project_is_not_locked_by_a_process_that_was_forked_during_an_earlier_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited: list[int] = []

    def lock(fd: int) -> bool:
        inherited.append(os.dup(fd))
        return journal_lock.lock(fd)

    monkeypatch.setattr(workflow_journal, "lock", lock)
    for _ in range(2):
        with lock_project(tmp_path, tmp_path, pytest.fail):
            pass
    assert len(inherited) == 2
    for fd in inherited:
        os.close(fd)


def test_a_workflow_does_not_delay_its_own_commands(tmp_path: Path) -> None:
    with lock_project(tmp_path, tmp_path, print):
        folder = os.open(tmp_path, os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.close(folder)


@pytest.mark.exhaustive
def test_the_lock_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import sys, time
from pathlib import Path
from typing import Any
from system2.workflow_journal import lock_project
with lock_project(Path({str(tmp_path)!r}), Path(), print):
    print("held", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        told: list[str] = []
        with pytest.raises(UsageError, match=f"by process {other.pid}"), lock_project(tmp_path, tmp_path, told.append):
            pytest.fail("it was locked twice")
        other.send_signal(signal.SIGKILL)
        other.wait()
        with lock_project(tmp_path, tmp_path, told.append):
            assert told == []
