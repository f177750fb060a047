"""A workflow continued from its journal, killed at any record (Decision 2; contract: `--resume`)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import aeon_core
from aeon_core.config.journal_trust import remember, seal
from aeon_core.errors import ReplayMismatchError, UsageError
from aeon_core.journal.listing import list_runs
from aeon_core.journal.reader import read_records
from aeon_core.journal.writer import JournalWriter
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.runs.fork import Fork
from system2.agents import SHIPPED
from system2.connect import given_model
from system2.constants import DEFAULT_MODEL
from system2.orchestrator import Orchestrator
from system2.policies import GateDecisionType, Question
from system2.settings import WorkflowSettings
from system2.trust import started_by
from system2.workflow import replay
from system2.workflow_journal import find_workflow, fork
from tests.sampling import sample
from tests.system2.kit import Answers, Confirms, done, uses
from tests.system2.workflows import (
    ABORT,
    APPROVE,
    REJECT,
    TASK,
    Case,
    SaidAtGates,
    Watched,
    agents_of,
    files_of,
    transcript,
)

SHARES = 8
"""Tests that the records are shared out to: they run side by side."""
EXECUTOR = [
    uses(
        ("Write", {"file_path": "src/app.py", "content": "x = 1\n"}),
        ("Bash", {"command": "echo one >> log.txt"}),
        ("Edit", {"file_path": "src/app.py", "old_string": "x = 1", "new_string": "x = 2"}),
        ("Bash", {"command": "echo two >> log.txt"}),
    ),
    done("all done", files_changed=["src/app.py"]),
]


def changes_files(request: LLMRequest) -> LLMResponse | None:
    """An executor that edits, and runs commands whose second run would show."""
    if "Carry out all tasks of" not in request.messages[0]["content"]:
        return None
    return EXECUTOR[sum(message["role"] == "assistant" for message in request.messages)]


def case_in(root: Path, **options: Any) -> Case:
    root.mkdir(exist_ok=True)
    model = Watched("default", changes_files)
    return Case(root, model, bash_policy=Confirms(), runs_dir=root / ".aeon" / "runs", **options)


def work_in(root: Path) -> dict[str, bytes]:
    """The project's files but for the workflow's own."""
    return {path: content for path, content in files_of(root).items() if not path.startswith((".system2", ".aeon"))}


class Killed(BaseException):
    """What a kill is: nothing more is written."""


@contextmanager
def killed_behind(records: int) -> Iterator[None]:
    left, write = [records], JournalWriter._line

    def line(self: JournalWriter, tag: str, short: bytes, full: bytes) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return write(self, tag, short, full)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JournalWriter, "_line", line)
        with pytest.raises(Killed):
            yield


@dataclass
class Looks:
    """A person who looks whether a call has had its effect before they have it repeated."""

    root: Path
    asked: list[Question] = field(default_factory=list)

    def choose(self, question: Question) -> str:
        self.asked.append(question)
        if question.kind != "unknown_call":
            return question.safe
        log = self.root / "log.txt"
        done = [*(log.read_text().split() if log.exists() else []), (self.root / "src/app.py").read_text()[:5]]
        effect = next(word for word in ("one", "two", "Edit") if word in question.text)
        return "leave" if {"Edit": "x = 2"}.get(effect, effect) in done else "repeat"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after a whole workflow; its journal is in `.aeon/runs`."""
    root = tmp_path_factory.mktemp("whole")
    assert case_in(root).orchestrator.run(TASK).exit_code == 0
    return root


def journal_in(root: Path) -> Path:
    return max((root / ".aeon" / "runs").glob("*.jsonl"))


def _at_the_executor(root: Path) -> int:
    records = list(read_records(journal_in(root), texts=False))
    return next(each["seq"] for each in records if each["type"] == "tool" and each["step_id"] == "executor")


def killed_and_resumed(records: int, whole: Path, root: Path) -> None:
    """Kill a workflow after so many records; resumed, it ends as the whole one, and runs no command twice."""
    case = case_in(root, trust="ignore")
    with killed_behind(records):
        case.orchestrator.run(TASK)
    resumed(whole, root)


def resumed(whole: Path, root: Path) -> None:
    before = len(list(read_records(journal_in(root))))
    person = Looks(root)
    result = case_in(root, question_policy=person, trust="ignore").orchestrator.resume(journal_in(root))
    assert (result.status, result.error, work_in(root)) == ("completed", None, work_in(whole))
    assert len([each for each in person.asked if each.kind == "unknown_call"]) <= 1
    assert replay(journal_in(root)).difference is None
    entries = transcript(result.transcript_path)
    assert [entry["seq"] for entry in entries] == list(range(len(entries)))
    assert len({entry["record"] for entry in entries if entry["type"] == "agent_start"}) >= 10
    assert before < len(list(read_records(journal_in(root))))


@pytest.mark.parametrize("place", sample([-6, 16, 37, 59], 2))
def test_a_killed_workflow_ends_the_same_and_repeats_no_command(place: int, whole: Path, tmp_path: Path) -> None:
    killed_and_resumed(_at_the_executor(whole) + place, whole, tmp_path / "project")


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(SHARES))
def test_a_workflow_killed_after_any_record_ends_the_same(first: int, whole: Path, tmp_path: Path) -> None:
    """One workflow is copied before each record, which is what a kill would leave there."""
    root, copies = tmp_path / "project", tmp_path / "copies"
    case, written, write = case_in(root), [0], JournalWriter._line

    def line(self: JournalWriter, tag: str, short: bytes, full: bytes) -> int:
        if written[0] > first and (written[0] - first) % SHARES == 1:
            shutil.copytree(root, copies / str(written[0]), symlinks=True)
        written[0] += 1
        return write(self, tag, short, full)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JournalWriter, "_line", line)
        assert case.orchestrator.run(TASK).exit_code == 0
    assert sorted(int(each.name) for each in copies.iterdir()) == list(range(1 + first, written[0], SHARES))
    for copy in copies.iterdir():
        shutil.rmtree(root)
        copy.rename(root)
        try:
            resumed(whole, root)
        except BaseException as error:
            error.add_note(f"killed after {copy.name} of {written[0]} records")
            raise


@pytest.fixture
def from_another(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the work of another user before the executor's first command, and without its journal."""
    shutil.copytree(whole, root := tmp_path / "project")
    (root / "log.txt").unlink()
    journal_in(root).unlink()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-of-another"))
    return root


def until_the_command(whole: Path, root: Path, *, decided: dict[str, Any]) -> Path:
    """Write the journal up to the decision about that command; return its path."""
    lines = journal_in(whole).read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"point":"tool","state":"decided"' in line)
    path = root / ".aeon" / "runs" / journal_in(whole).name
    path.write_bytes(b"".join(lines[:place]) + json.dumps(json.loads(lines[place]) | decided).encode() + b"\n")
    return path


def test_a_command_that_somebody_else_approved_is_not_run(whole: Path, from_another: Path) -> None:
    path = until_the_command(whole, from_another, decided={})
    refused = r"asks to call 'Bash' with \{\"command\": \"echo one >> log.txt\"\}, .* for a workflow trust=\"apply\"$"
    with pytest.raises(UsageError, match=refused):
        case_in(from_another, trust="ignore").orchestrator.resume(path)
    assert not (from_another / "log.txt").exists()
    assert replay(path).difference is None
    case_in(from_another, trust="apply").orchestrator.resume(path)
    assert (from_another / "log.txt").read_text().split() == ["one", "two"]


def test_an_approved_command_that_a_rule_denies_by_now_is_not_run(whole: Path, from_another: Path) -> None:
    path = until_the_command(whole, from_another, decided={})
    (from_another / ".aeon" / "config.yml").write_text("policy:\n  deny: ['Bash(echo one*)']\n")
    case_in(from_another, trust="apply").orchestrator.resume(path)
    assert (from_another / "log.txt").read_text().split() == ["two"]
    assert "the call of 'Bash' is denied: the rule deny: Bash(echo one*)" in path.read_text()
    assert replay(path).difference is None


def test_rules_that_somebody_else_allowed_are_not_used_in_a_workflow(whole: Path, from_another: Path) -> None:
    path = until_the_command(whole, from_another, decided={"allow": {"rule": "Bash", "scope": "run"}})
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r'without asking: Bash, which comes .* trust="apply"$'):
        case_in(from_another, trust="ignore").orchestrator.resume(path)
    assert path.read_bytes() == before
    assert not (from_another / "log.txt").exists()


def test_rules_sealed_with_a_key_inside_the_project_are_not_used_in_a_workflow(
    whole: Path, from_another: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(from_another / "state"))
    ruled = {"allow": {"rule": "Bash", "scope": "run"}}
    path = until_the_command(whole, from_another, decided=ruled)
    asked, decided = list(read_records(path))[-2:]
    sealed = {**ruled, "seal": seal(decided["run"], asked["seq"], decided)}
    until_the_command(whole, from_another, decided=sealed)
    with pytest.raises(UsageError, match=r"without asking: Bash, .*redaction\.key' lies in the project; set XDG_"):
        case_in(from_another, trust="ignore").orchestrator.resume(path)
    assert not (from_another / "log.txt").exists()


def test_a_call_is_not_repeated_for_its_secret_because_the_journal_allows_it(whole: Path, from_another: Path) -> None:
    lines = [json.loads(line) for line in journal_in(whole).read_bytes().splitlines()]
    place = next(each["seq"] for each in lines if each.get("tool_name") == "Write" and "result" in each)
    lines[0]["config"]["policy"] = {"allow": ["Write"]}
    del lines[place]["result"]
    lines[place]["error"] = {"error_type": "ToolError", "message": "lost [redacted:aaaaaaaaaaaa]"}
    path = from_another / ".aeon" / "runs" / journal_in(whole).name
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines[: place + 1]))
    result = case_in(from_another, trust="ignore").orchestrator.resume(path)
    assert "the policy does not allow repeating that call" in str(result.error)
    assert not any(each.get("repeats") for each in read_records(path))


def test_recorded_work_calls_no_model_and_no_tool(whole: Path) -> None:
    before = work_in(whole)
    found = replay(journal_in(whole))
    assert (found.difference, found.result and found.result.status) == (None, "completed")
    assert work_in(whole) == before


def test_a_workflow_that_this_version_cannot_resume_can_be_forked(tmp_path: Path) -> None:
    case_in(tmp_path).orchestrator.run(TASK)
    path = journal_in(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"state":"answered"' in line)
    lines[place] = lines[place].replace(b'"success":true', b'"success":false')
    path.write_bytes(before := b"".join(lines[: place + 1]))
    why = r"cannot be resumed: Aeon has changed since it was recorded; fork it at a gate instead \(record \d+ differs: "
    with pytest.raises(ReplayMismatchError, match=why):
        case_in(tmp_path).orchestrator.resume(path)
    assert path.read_bytes() == before


def test_a_replay_finds_the_first_difference(whole: Path, tmp_path: Path) -> None:
    lines = journal_in(whole).read_bytes().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if b'"state":"answered"' in line)
    changed = tmp_path / journal_in(whole).name
    changed.write_bytes(b"".join([*lines[:place], lines[place].replace(b'"success":true', b'"success":false')]))
    difference = replay(changed).difference
    assert difference is not None
    assert (difference.seq, "success" in difference.where) == (place, True)


def test_a_workflow_without_snapshots_replays_and_takes_them_on_resume(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "agents" / "design-architect.md"
    file.parent.mkdir(parents=True)
    shutil.copy(SHIPPED / file.name, file)
    gates = SaidAtGates(on_ask=lambda gate: file.unlink() if gate == 2 else None)
    failed = Case(tmp_path, gate_policy=gates).orchestrator.run(TASK)
    assert failed.journal is not None
    assert (failed.status, failed.exit_code) == ("failed", 1)
    assert "cannot read the agent file" in str(failed.error)
    found = replay(failed.journal)
    assert found.difference is None
    assert found.result is not None
    assert (found.result.error or {})["message"] == failed.error
    shutil.copy(SHIPPED / file.name, file)
    assert Case(tmp_path).orchestrator.resume(failed.journal).exit_code == 0
    assert replay(failed.journal).difference is None


@pytest.mark.parametrize("kind", sample(["gate", "agent", "observation", "tool", "llm"], 3))
def test_a_workflow_that_was_interrupted_anywhere_replays_and_resumes(tmp_path: Path, kind: str) -> None:
    def interrupt(line: bytes) -> None:
        record = json.loads(line)
        if record["type"] == kind and record["seq"] > 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        case_in(tmp_path, on_line=interrupt).orchestrator.run(TASK)
    found = replay(journal_in(tmp_path))
    assert (found.difference, found.result and found.result.status) == (None, "aborted")
    assert case_in(tmp_path).orchestrator.resume(journal_in(tmp_path)).exit_code == 0
    assert replay(journal_in(tmp_path)).difference is None


def test_finished_work_is_not_asked_about_again(tmp_path: Path) -> None:
    stopped = Case(tmp_path, gate_policy=SaidAtGates({3: [(ABORT, None)]})).orchestrator.run(TASK)
    assert stopped.transcript_path is not None
    second = Case(tmp_path)
    result = second.orchestrator.resume(Path(stopped.transcript_path).stem)
    assert result.exit_code == 0
    assert [gate for gate, *_ in second.gates.asked] == [3, 4, 5]
    assert agents_of(second.lines)[0] == "task-planner"
    assert (result.transcript_path, result.journal) == (stopped.transcript_path, stopped.journal)
    answered = [each for each in transcript(result.transcript_path) if each["type"] == "api_response"]
    assert result.total_cost.api_calls == len(answered)


def test_a_rejection_after_a_resume_has_the_history_from_before_it(tmp_path: Path) -> None:
    stopped = Case(tmp_path, gate_policy=SaidAtGates({2: [(ABORT, None)]})).orchestrator.run(TASK)
    assert stopped.journal is not None
    model = Watched()
    case = Case(tmp_path, model, gate_policy=SaidAtGates({2: [(REJECT, "say how fast")]}))
    assert case.orchestrator.resume(Path(stopped.journal).stem).exit_code == 0
    first = model.requests[0]
    assert [message["role"] for message in first.messages][:2] == ["user", "assistant"]
    assert "spec/requirements.md" in first.messages[0]["content"]
    assert "say how fast" in first.messages[-1]["content"]
    assert case.kinds("agent_start")[0]["round"] == 2


@pytest.mark.parametrize(
    ("model", "settings", "own"),
    [
        ("simulated:default", {}, "simulated:default"),
        ("bedrock:other", {}, "bedrock:other"),
        # The settings named it: those of today do, so that a wrong name in them can be corrected.
        ("bedrock:wrong", {"model": "wrong"}, None),
        (f"bedrock:{DEFAULT_MODEL}", {}, None),
    ],
)
def test_a_workflow_keeps_its_given_model_unless_settings_named_it(
    tmp_path: Path, model: str, settings: dict[str, str], own: str | None
) -> None:
    first = {"model": model, "workflow": {"settings": settings}}
    assert given_model(first, WorkflowSettings(model="right"), tmp_path) == own


def test_a_model_that_only_a_journal_names_is_not_used_without_the_user(tmp_path: Path) -> None:
    (root := tmp_path / "project").mkdir()
    first = {"run": "r", "model": "openai:gpt", "workflow": {"settings": {}, "project_root": str(root)}}
    with pytest.raises(UsageError, match="confirm with --model"):
        given_model(first, WorkflowSettings(), root)
    remember(root, started_by(first))
    assert given_model(first, WorkflowSettings(), root) == "openai:gpt"


def test_a_command_that_may_have_run_is_not_repeated_without_a_person(tmp_path: Path, whole: Path) -> None:
    root = tmp_path / "project"
    started = next(
        each["seq"]
        for each in read_records(journal_in(whole))
        if each["type"] == "tool" and each["state"] == "finished" and each["tool_name"] == "Bash"
    )
    with killed_behind(started):
        case_in(root).orchestrator.run(TASK)
    assert (root / "log.txt").read_text() == "one\n"
    nobody = Answers()
    case_in(root, question_policy=nobody).orchestrator.resume(journal_in(root))
    assert [question.kind for question in nobody.asked].count("unknown_call") == 1
    assert (root / "log.txt").read_text() == "one\ntwo\n"
    answered = [each for each in read_records(journal_in(root)) if each.get("state") == "answered"]
    (unknown,) = [each["result"] for each in answered if "whether 'Bash' took effect is unknown" in each["result"]]
    assert unknown.endswith("; check what it has changed, and call it again only if it did not take effect")


@pytest.mark.parametrize(("written", "kind"), [(0, "file_change"), (1, "unknown_call")])
def test_a_change_that_was_cut_off_is_asked_about_if_the_settings_ask_by_now(
    written: int, kind: str, tmp_path: Path, whole: Path
) -> None:
    """It was cut off before or after the record of its start."""
    root = tmp_path / "project"
    with killed_behind(_at_the_executor(whole) + written):
        case_in(root).orchestrator.run(TASK)
    asks = "providers: {bedrock: {orchestrator: {file_changes: ask}}}"
    (root / ".system2" / "config.yml").write_text(asks)
    (root / "src/app.py").unlink(missing_ok=True)
    shutil.copytree(root, alone := tmp_path / "alone")
    person = Answers({"file_change": "allow", "unknown_call": "repeat"})
    case_in(root, question_policy=person, trust="ignore").orchestrator.resume(journal_in(root))
    assert [person.asked[0].kind, person.asked[0].details[-1].split("\n")[-1]] == [kind, "+x = 1"]
    assert (root / "src/app.py").read_text() == "x = 2\n"

    case = case_in(alone)
    Orchestrator(alone, gate_policy=case.gates, model=case.model, trust="apply").resume(journal_in(alone))
    assert not (alone / "src/app.py").exists()
    answered = [each["result"] for each in read_records(journal_in(alone)) if each.get("state") == "answered"]
    refusal = next(each for each in answered if "file as it is" in each or "not repeated" in each)
    assert "the settings ask about every change" in refusal
    assert replay(journal_in(alone)).difference is None


def test_a_fork_asks_its_gate_again_and_leaves_the_other_workflow_alone(tmp_path: Path) -> None:
    first = Case(tmp_path).orchestrator.run(TASK)
    assert first.journal is not None
    before = first.journal.read_bytes()
    # The executor of the fork has the same files to write.
    shutil.rmtree(tmp_path / "src")
    shutil.rmtree(tmp_path / "tests")
    child = fork(first.journal, 3, first.journal.parent)
    case = Case(tmp_path, gate_policy=SaidAtGates({3: [(REJECT, "use one table")]}))
    result = case.orchestrator.resume(child)
    assert (result.exit_code, result.journal) == (0, child)
    assert [gate for gate, *_ in case.gates.asked] == [3, 3, 4, 5]
    assert agents_of(case.lines)[0] == "design-architect"
    assert first.journal.read_bytes() == before
    assert replay(child).difference is None
    parent = next(read_records(child))["parent"]
    assert (parent["run_id"], parent["gate"]) == (first.journal.stem, 3)
    newest, older = list_runs(child.parent)
    assert (newest.path, older.path) == (str(child), str(first.journal)), "a fork is newer than what it is a fork of"
    assert newest.started == parent["ts"] > older.started
    assert result.transcript_path not in (None, first.transcript_path)
    decided = [said.decision for said in result.gate_decisions if said.gate_number < 3]
    assert decided == [GateDecisionType.APPROVE] * 3
    with pytest.raises(UsageError, match=r"gate 7 was not decided in .*; decided: gate 0, 1, 2, 3, 4, 5"):
        fork(first.journal, 7, first.journal.parent)


def test_a_fork_does_not_inherit_the_rules_that_a_person_allowed(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, root := tmp_path / "project")
    path = journal_in(root)
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    asked, first = [each for each in records if each.get("point") == "tool"][:2]
    first["allow"] = {"rule": "Bash(echo *)", "scope": "run"}
    first["seal"] = seal(first["run"], asked["seq"], first)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records))
    child = fork(path, 5, path.parent)
    assert not any(each.get("allow") for each in read_records(child))
    assert case_in(root, trust="ignore").orchestrator.resume(child).exit_code == 0
    assert replay(child).difference is None


def test_a_fork_with_feedback_rejects_its_gate_with_it(tmp_path: Path) -> None:
    first = Case(tmp_path, gate_policy=SaidAtGates({2: [(ABORT, None)]})).orchestrator.run(TASK)
    assert first.journal is not None
    child = fork(first.journal, 1, first.journal.parent, "name the users")
    assert child.with_suffix(".files").stat().st_mode & 0o777 == 0o600
    model = Watched()
    case = Case(tmp_path, model, gate_policy=SaidAtGates({1: [(APPROVE, None), (ABORT, None)]}))
    result = case.orchestrator.resume(child)
    assert "name the users" in model.requests[0].messages[-1]["content"]
    assert agents_of(case.lines)[0] == "spec-coordinator"
    said = [(each.gate_number, each.decision, each.feedback) for each in result.gate_decisions]
    assert said[:3] == [(0, APPROVE, None), (1, REJECT, "name the users"), (1, APPROVE, None)]
    assert replay(child).difference is None
    entries = transcript(result.transcript_path)
    assert [each.get("feedback") for each in entries if each["type"] == "gate_decision"][1] == "name the users"


def test_a_complete_workflow_is_not_continued(whole: Path) -> None:
    journal = journal_in(whole)
    before = journal.read_bytes()
    with pytest.raises(UsageError, match="is complete; start a new one"):
        case_in(whole).orchestrator.resume(journal)
    assert journal.read_bytes() == before


@pytest.mark.parametrize("named", ["/elsewhere/notes.txt", "notes.txt", "..", "a\0b"])
def test_a_journal_does_not_choose_a_file_to_overwrite(whole: Path, from_another: Path, named: str) -> None:
    path = until_the_command(whole, from_another, decided={})
    first, *lines = path.read_text("utf-8").splitlines()
    forged = json.loads(first)
    forged["workflow"]["transcript"] = named
    path.write_text("\n".join([json.dumps(forged), *lines[:3], ""]), "utf-8")
    notes = from_another / ".system2" / "runs" / "notes.txt"
    notes.write_text("mine\n")
    result = case_in(from_another, gate_policy=SaidAtGates({0: [(ABORT, None)]})).orchestrator.resume(path)
    assert notes.read_text() == "mine\n"
    name = "notes" if "notes" in named else path.stem
    assert result.transcript_path == from_another / ".system2" / "runs" / f"{name}.jsonl"


def test_a_file_that_is_not_a_workflow_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text("hello\n", "utf-8")
    with pytest.raises(UsageError):
        Case(tmp_path).orchestrator.resume(path)
    assert path.read_text("utf-8") == "hello\n"
    earlier = {"v": 1, "seq": 0, "ts": "2026-01-01T00:00:00Z", "run": "r", "type": "workflow_start", "task": "t"}
    path.write_text(json.dumps({**earlier, "model": "m", "config": {}}) + "\n")
    with pytest.raises(UsageError, match="has no journal"):
        Case(tmp_path).orchestrator.resume(path)


def test_a_workflow_is_found_by_id_prefix_and_last(whole: Path, tmp_path: Path) -> None:
    runs, transcripts = whole / ".aeon" / "runs", whole / ".system2" / "runs"
    journal = journal_in(whole)
    for name in (journal.stem, journal.stem[:10], str(journal), "last"):
        assert find_workflow(name, whole, runs, transcripts) == journal
    with pytest.raises(UsageError, match="no run '' in"):
        find_workflow("", whole, runs, transcripts)
    with pytest.raises(UsageError, match=r"the journal 'x\.jsonl' does not exist; see `aeon-tui runs`"):
        find_workflow("./x.jsonl", whole, runs, transcripts)
    nowhere = {**json.loads(journal.read_text("utf-8").splitlines()[0]), "workflow": {"project_root": "\0"}}
    (tmp_path / "nowhere.jsonl").write_text(json.dumps(nowhere) + "\n")
    with pytest.raises(UsageError, match="no workflow of"):
        find_workflow("last", tmp_path, tmp_path, transcripts)
    for use in (aeon_core.resume, aeon_core.replay, lambda path: Fork(path, 1)):
        with pytest.raises(UsageError, match="is a workflow, not a run; system2 or the command"):
            use(journal)


def test_an_earlier_versions_transcript_is_not_a_damaged_journal(tmp_path: Path) -> None:
    path = tmp_path / "20261101-120000.jsonl"
    envelope = {"ts": "2026-11-01T12:00:00.000000Z", "run": path.stem}
    lines = [
        {"v": 1, "seq": 0, **envelope, "type": "workflow_start", "task": "count the invoices"},
        {"v": 1, "seq": 1, **envelope, "type": "question", "agent": "executor", "kind": "bash", "state": "asked"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(UsageError, match="has no journal: it can only be shown"):
        replay(path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"models": [{"price": None}]}, "cannot read the models in the journal"),
        (
            {
                "workflow": {
                    "project_root": "/",
                    "transcript": "t",
                    "settings": {},
                    "invoke": {"agent": "executor", "contract": {}},
                }
            },
            "is damaged: its first record does not name an agent and its contract",
        ),
        (
            {"workflow": {"project_root": "/", "transcript": "t", "settings": {}, "invoke": 3}},
            "is damaged: its first record does not name an agent and its contract",
        ),
        ({"workflow": {}}, "is damaged: its first record does not name the project or the transcript"),
        ({"workflow": {"project_root": "/", "transcript": "t", "settings": 3}}, "cannot be used: Input should be"),
    ],
)
def test_a_damaged_first_record_is_reported(whole: Path, tmp_path: Path, damage: dict[str, Any], said: str) -> None:
    first, rest = journal_in(whole).read_text("utf-8").split("\n", 1)
    path = tmp_path / "w.jsonl"
    path.write_text(json.dumps({**json.loads(first), **damage}, separators=(",", ":")) + f"\n{rest}", "utf-8")
    with pytest.raises(UsageError, match=said):
        replay(path)
