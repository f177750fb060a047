"""Going on with a workflow from its transcript, cut off anywhere (REQ-125; contract: `--resume`)."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from system2.change_tracker import ChangeTracker
from system2.lookup import find_transcript
from tests.system2.workflows import ABORT, REJECT, TASK, Case, SaidAtGates, Watched, agents_of, files_of, transcript


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after a whole workflow with a rejection and a blocker; its transcript is the last file.

    What is kept for a resume is there as it would be after a kill.
    """
    root = tmp_path_factory.mktemp("whole")
    gates = SaidAtGates({1: [(REJECT, "name the owner")]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChangeTracker, "finish", lambda _: None)
        assert Case(root, Watched("blockers"), gate_policy=gates).orchestrator.run(TASK).exit_code == 0
    return root


def lines_of(root: Path) -> tuple[str, list[bytes]]:
    path = find_transcript("last", root / ".system2" / "runs")
    return path.name, path.read_bytes().splitlines(keepends=True)


def test_cut_off_at_any_line_it_goes_on_to_the_same_end(whole: Path, tmp_path: Path) -> None:
    name, lines = lines_of(whole)
    assert len(lines) > 150
    for cut in range(1, len(lines), 7):
        root = tmp_path / str(cut)
        (root / ".system2" / "runs").mkdir(parents=True)
        executed = b'"agent":"executor"' in b"".join(lines[:cut])
        for path, content in files_of(whole).items():
            if not path.endswith(".jsonl") and (executed or not path.startswith(("src/", "tests/"))):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(content)
        journal = root / ".system2" / "runs" / name
        torn = lines[cut][: len(lines[cut]) // 2] if cut % 2 else b""
        journal.write_bytes(b"".join(lines[:cut]) + torn)
        known = [line for line in transcript(journal)[: cut + 1] if line["type"] == "gate_decision"]
        approved = {line["gate"] for line in known if line["decision"] == "approve"}
        case = Case(root, Watched("blockers"))
        result = case.orchestrator.resume(journal)
        assert (result.status, result.error) == ("completed", None), cut
        assert not approved & {gate for gate, *_ in case.gates.asked}, cut
        decided = [decision.gate_number for decision in result.gate_decisions if decision.decision.value == "approve"]
        assert decided == [0, 1, 2, 3, 4, 5], cut
        assert agents_of(case.lines)[:1] != ["repo-governor"] or 0 not in approved, cut
        shutil.rmtree(root)


def test_nothing_that_is_done_is_asked_again(tmp_path: Path) -> None:
    first = Case(tmp_path, gate_policy=SaidAtGates({3: [(ABORT, None)]}))
    stopped = first.orchestrator.run(TASK)
    assert stopped.transcript_path is not None
    second = Case(tmp_path)
    result = second.orchestrator.resume(stopped.transcript_path)
    assert result.exit_code == 0
    assert [gate for gate, *_ in second.gates.asked] == [3, 4, 5]
    assert agents_of(second.lines)[0] == "task-planner"
    assert result.transcript_path == stopped.transcript_path
    assert result.total_cost.api_calls == len(
        [each for each in transcript(result.transcript_path) if each["type"] == "api_response"]
    )


def test_a_rejection_after_a_resume_has_the_history_from_before_it(tmp_path: Path) -> None:
    stopped = Case(tmp_path, gate_policy=SaidAtGates({2: [(ABORT, None)]})).orchestrator.run(TASK)
    assert stopped.transcript_path is not None
    model = Watched()
    case = Case(tmp_path, model, gate_policy=SaidAtGates({2: [(REJECT, "say how fast")]}))
    assert case.orchestrator.resume(stopped.transcript_path).exit_code == 0
    first = model.requests[0]
    assert [message["role"] for message in first.messages][:2] == ["user", "assistant"]
    assert "spec/requirements.md" in first.messages[0]["content"]
    assert "say how fast" in first.messages[-1]["content"]
    assert case.kinds("agent_start")[0]["round"] == 2


def test_work_that_was_cut_off_is_begun_anew_and_its_files_still_count_as_changed(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    class Kills:
        def confirm(self, command: str, is_blocklisted: bool) -> bool:
            raise Killed

    case = Case(tmp_path, bash_policy=Kills())
    with pytest.raises(Killed):
        case.orchestrator.run(TASK)
    journal = find_transcript("last", tmp_path / ".system2" / "runs")
    # What a kill leaves: no end.
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"type":"workflow_end"' not in line))
    again = Case(tmp_path)
    result = again.orchestrator.resume(journal)
    assert result.exit_code == 0
    start = again.kinds("agent_start")[0]
    assert start["agent"] == "executor"
    assert any("cut off" in line for line in start["contract"]["inputs"])
    assert "test-engineer" in result.agents_invoked


def test_a_complete_workflow_is_not_gone_on_with(whole: Path) -> None:
    journal = find_transcript("last", whole / ".system2" / "runs")
    before = journal.read_bytes()
    with pytest.raises(UsageError, match="is complete; start a new one"):
        Case(whole).orchestrator.resume(journal)
    assert journal.read_bytes() == before


def test_a_file_that_is_no_transcript_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("hello\n", "utf-8")
    with pytest.raises(UsageError):
        Case(tmp_path).orchestrator.resume(path)
    assert path.read_text("utf-8") == "hello\n"


@pytest.mark.exhaustive
def test_a_damaged_entry_is_a_line_that_says_so_or_makes_no_difference(whole: Path, tmp_path: Path) -> None:
    _, lines = lines_of(whole)
    first: dict[str, int] = {}
    for number, line in enumerate(lines):
        first.setdefault(json.loads(line)["type"], number)
    for number in first.values():
        entry = json.loads(lines[number])
        for key in list(entry)[5:]:
            for damaged in ({**entry, key: [{}]}, {name: value for name, value in entry.items() if name != key}):
                changed = [*lines[:number], f"{json.dumps(damaged)}\n".encode(), *lines[number + 1 : -1]]
                said = resumed(Path(tempfile.mkdtemp(dir=tmp_path)), b"".join(changed))
                assert "internal error" not in said, (entry["type"], key)
                assert "\n" not in said


def resumed(root: Path, content: bytes) -> str:
    """What is said of a workflow that is gone on with."""
    journal = root / "run.jsonl"
    journal.write_bytes(content)
    try:
        return Case(root, Watched("blockers")).orchestrator.resume(journal).error or ""
    except UsageError as error:
        return error.message


def test_a_transcript_is_found_by_id_by_its_beginning_and_as_the_last(tmp_path: Path) -> None:
    for name in ("20260101-000000", "20260102-000000", "20260102-000000-2"):
        (tmp_path / f"{name}.jsonl").touch()
    assert find_transcript("20260101", tmp_path).stem == "20260101-000000"
    assert find_transcript("20260102-000000", tmp_path).stem == "20260102-000000"
    assert find_transcript("last", tmp_path).stem == "20260102-000000-2"
    assert find_transcript("./x.jsonl", tmp_path) == Path("x.jsonl")
    with pytest.raises(UsageError, match="could be any of 20260102-000000, 20260102-000000-2"):
        find_transcript("20260102", tmp_path)
    with pytest.raises(UsageError, match="there are 20260101-000000"):
        find_transcript("2027", tmp_path)
    with pytest.raises(UsageError, match="no transcript in"):
        find_transcript("last", tmp_path / "none")
