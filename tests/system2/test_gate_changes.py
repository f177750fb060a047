"""What each gate shows of the files that changed: whatever tool did it, after a rejection, and after a resume."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from aeon_core.llm.base import LLMRequest, LLMResponse
from system2.changes import FileChange
from system2.context import RanCommand, own_files
from system2.orchestrator import Orchestrator
from system2.policies import AutoApproveGatePolicy
from system2.settings import WorkflowSettings
from system2.toolbox import RUNS_TESTS, list_tests
from tests.sampling import sample
from tests.system2.kit import CONTRACT, Answers, Bench, Confirms, done, uses
from tests.system2.test_changes import git
from tests.system2.test_main import SIMULATED, at_terminal
from tests.system2.test_nothing_produced import CONTEXT, of
from tests.system2.workflows import ABORT, REJECT, TASK, Case, SaidAtGates, Watched

WRITES = ("Write", {"file_path": "spec/context.md", "content": "# Context\n"})


class Review(NamedTuple):
    """What one gate shows."""

    gate: int
    summary: str
    changes: list[FileChange]


class Reviews(SaidAtGates):
    """Keeps what each gate shows."""

    def __init__(self, *said: Any) -> None:
        super().__init__(*said)
        self.reviews: list[Review] = []
        self.on_entry = self._review

    def _review(self, entry: dict[str, Any]) -> None:
        if entry["type"] == "gate_asked":
            changes = [FileChange(**change) for change in entry.get("changes", ())]
            self.reviews.append(Review(entry["gate"], entry["summary"], changes))

    def changes(self, number: int) -> list[tuple[str, str, bool]]:
        """Path, status and whether it is flagged, of the gate that was shown so many-th."""
        return [(change.path, change.status, bool(change.flag)) for change in self.reviews[number].changes]


def with_bash(root: Path) -> Path:
    """Give the project a spec coordinator that runs commands."""
    own = root / ".claude" / "agents" / "spec-coordinator.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: spec-coordinator\ndescription: d\ntools: Read, Write, Bash\n---\nWrite it.\n")
    return root


def committed(root: Path) -> Path:
    (root / "README.md").write_text("# Mine\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


@pytest.fixture(params=["git", "no git"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "README.md").write_text("# Mine\n")
    return committed(tmp_path) if request.param == "git" else tmp_path


@pytest.mark.exhaustive
def test_every_gate_shows_what_changed_since_the_one_before(project: Path) -> None:
    gates = Reviews()
    assert Case(project, gate_policy=gates).orchestrator.run(TASK).exit_code == 0
    assert [gates.changes(number) for number in range(5)] == [
        [(f"spec/{name}.md", "created", False)] for name in ("scope", "context", "requirements", "design", "tasks")
    ]
    assert [path for path, *_ in gates.changes(5)] == [
        "src/build_a_rest_api.py",
        "tests/test_build_a_rest_api.py",
        "spec/code-review.md",
        "spec/post-execution-log.md",
        "spec/release-notes.md",
        "spec/security-review.md",
        "spec/test-report.md",
    ]
    for review in gates.reviews:
        for change in review.changes:
            text = (project / change.path).read_text()
            assert change.diff.split("\n")[3:] == [f"+{line}" for line in text.split("\n")[:-1]]
    assert "  created  src/build_a_rest_api.py  +8 −0" in gates.reviews[5].summary
    assert not list((project / ".system2" / "runs").glob("*.files"))


@pytest.mark.exhaustive
def test_a_gate_that_asks_again_shows_what_the_rejection_changed(project: Path) -> None:
    gates = Reviews({1: [(REJECT, "name the owner")], 5: [(REJECT, "write it down")]})
    Case(project, gate_policy=gates).orchestrator.run(TASK)
    (again,) = gates.reviews[2].changes
    assert (again.path, again.status, again.removed) == ("spec/context.md", "changed", 0)
    assert "+Feedback on the previous version: name the owner" in again.diff.split("\n")
    assert ("src/build_a_rest_api.md", "created", False) in gates.changes(7)
    assert "src/build_a_rest_api.py" not in [path for path, *_ in gates.changes(7)]
    in_all = gates.reviews[7].summary.partition("Changed since the tasks were approved:\n")[2]
    assert "  created  src/build_a_rest_api.py" in in_all


@pytest.mark.exhaustive
def test_what_a_command_changes_outside_the_document_is_flagged_at_the_gate(project: Path) -> None:
    command = uses(WRITES, ("Bash", {"command": "echo more >> README.md; echo x > stderr"}))
    gates = Reviews()
    reply = of(CONTEXT, command, done())
    case = Case(with_bash(project), Watched(reply=reply), gate_policy=gates, bash_policy=Confirms())
    assert case.orchestrator.run(TASK).exit_code == 0
    assert gates.changes(1) == [
        ("README.md", "changed", True),
        ("stderr", "created", True),
        ("spec/context.md", "created", False),
    ]
    assert gates.reviews[1].changes[0].diff.endswith(" # Mine\n+more")
    assert "⚠ changed  README.md  +1 −0  spec-coordinator changed it, outside its document" in gates.reviews[1].summary
    (note,) = case.kinds("note")
    assert note["paths"] == ["README.md", "stderr"]


@pytest.mark.parametrize("answer", ["refuse", "allow"])
def test_before_the_executor_agents_write_only_their_document(answer: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Mine\n")
    edit = ("Edit", {"file_path": "README.md", "old_string": "Mine", "new_string": "Ours"})
    questions = Answers({"file_change": answer})
    case = Case(tmp_path, Watched(reply=of(CONTEXT, uses(WRITES, edit), done())), question_policy=questions)
    assert case.orchestrator.run(TASK).exit_code == 0
    (question,) = questions.asked
    assert (question.text, question.safe) == ("Edit would change 'README.md'", "refuse")
    assert question.details == (
        "it is outside the agent's document, spec/context.md",
        "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Mine\n+# Ours",
    )
    assert (tmp_path / "README.md").read_text() == ("# Mine\n" if answer == "refuse" else "# Ours\n")


def test_the_governor_writes_the_projects_instructions_without_a_question(tmp_path: Path) -> None:
    scope = ("Write", {"file_path": "spec/scope.md", "content": "# Scope\n"})
    reply = of(
        "## Outputs\n\n- spec/scope.md", uses(scope, ("Write", {"file_path": "CLAUDE.md", "content": "x\n"})), done()
    )
    gates = Reviews()
    case = Case(tmp_path, Watched(reply=reply), gate_policy=gates)
    assert case.orchestrator.run(TASK).exit_code == 0
    assert gates.changes(0) == [("CLAUDE.md", "created", False), ("spec/scope.md", "created", False)]
    assert case.questions.asked == []


def test_the_setting_ask_shows_each_change_before_it_is_made(tmp_path: Path) -> None:
    (tmp_path / ".system2").mkdir()
    (tmp_path / ".system2" / "config.yml").write_text("providers: {bedrock: {orchestrator: {file_changes: ask}}}\n")
    questions = Answers({"file_change": "allow"})
    case = Case(tmp_path, question_policy=questions, trust="ignore")
    assert case.orchestrator.run(TASK).exit_code == 0
    writes = [line for line in case.kinds("tool_exec") if line["tool"] in ("Write", "Edit")]
    assert len(questions.asked) == len(writes) > 5
    assert questions.asked[0].details[-1].startswith("--- a/spec/scope.md\n+++ b/spec/scope.md\n@@ -0,0 +1,")


@pytest.mark.exhaustive
@pytest.mark.parametrize("gate", sample([0, 5, 1], 2))
def test_a_resume_shows_what_changed_since_the_last_gate_before_it(gate: int, project: Path) -> None:
    first = Reviews({gate: [(ABORT, None)]})
    stopped = Case(project, gate_policy=first).orchestrator.run(TASK)
    assert stopped.transcript_path is not None
    gates = Reviews()
    assert Case(project, gate_policy=gates).orchestrator.resume(stopped.transcript_path).exit_code == 0
    assert gates.reviews[0].changes == first.reviews[-1].changes
    assert [review.gate for review in gates.reviews] == list(range(gate, 6))


def test_a_check_that_repairs_what_it_should_report_is_flagged(tmp_path: Path) -> None:
    def reply(request: LLMRequest) -> LLMResponse | None:
        if (
            "Review the change for ways to abuse it" in str(request.messages[0]["content"])
            and len(request.messages) == 1
        ):
            return uses(("Bash", {"command": "echo '# mine' >> src/build_a_rest_api.py; echo >> spec/design.md"}))
        return None

    gates = Reviews()
    case = Case(tmp_path, Watched(reply=reply), gate_policy=gates, bash_policy=Confirms())
    case.orchestrator.run(TASK)
    flags = {change.path: change.flag for change in gates.reviews[-1].changes if change.flag}
    assert flags == dict.fromkeys(
        ("src/build_a_rest_api.py", "spec/design.md"), "security-sentinel changed it, outside its document"
    )


def test_the_last_gate_lists_the_tests_with_their_exit_codes(tmp_path: Path) -> None:
    gates = Reviews({5: [(ABORT, None)]})
    stopped = Case(tmp_path, gate_policy=gates, bash_policy=Confirms()).orchestrator.run(TASK)
    shown = "  exit 0  executor: python3 tests/test_build_a_rest_api.py"
    assert shown in gates.reviews[-1].summary.splitlines()
    assert stopped.transcript_path is not None
    again = Reviews()
    Case(tmp_path, gate_policy=again).orchestrator.resume(stopped.transcript_path)
    assert shown in again.reviews[-1].summary.splitlines()


@pytest.mark.parametrize(
    ("options", "path", "own"),
    [
        ({}, ".system2/runs/a.jsonl", True),
        ({}, ".system2/config.yml", False),
        ({}, "stderr", False),
        ({"log_destination": "logs/a.log"}, "logs/a.log", True),
        ({"transcript_dir": "{root}/logs"}, "logs/a.jsonl", True),
        ({"transcript_dir": "."}, "a.jsonl", True),
        ({"transcript_dir": "src"}, "src/a.py", False),
        ({"transcript_dir": "src"}, "src/data/a.jsonl", False),
        ({"runs_dir": "src"}, "src/a.py", False),
        ({"runs_dir": "src"}, "src/data/a.jsonl", False),
        ({"runs_dir": "src"}, "src/a.jsonl", True),
        ({"runs_dir": "."}, "a.files", True),
        ({"runs_dir": "."}, "a.inbox", True),
        ({"runs_dir": "{root}"}, "a.torn-1", True),
        ({}, ".aeon/runs/.rate-openai", True),
    ],
)
def test_only_the_workflows_own_records_are_left_out(
    options: dict[str, str], path: str, own: bool, tmp_path: Path
) -> None:
    given = {name: value.format(root=tmp_path) for name, value in options.items()}
    runs_dir = tmp_path / given.pop("runs_dir", ".aeon/runs")
    assert own_files(tmp_path, WorkflowSettings(**given), runs_dir)(path) is own


def test_journals_in_a_folder_that_is_reached_through_a_link_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept")
    hidden = own_files(tmp_path, WorkflowSettings(), tmp_path / "link")
    assert [path for path in ("kept/a.jsonl", "link/a.jsonl", "kept/a.py") if hidden(path)] == [
        "kept/a.jsonl",
        "link/a.jsonl",
    ]


def test_a_command_that_runs_tests_is_distinguished_from_others() -> None:
    for command in ("pytest -q", "npm run test", "cd x && go test ./...", "python -m unittest", "make check"):
        assert RUNS_TESTS.search(command)
    for command in ("./gradlew test", "./mvnw -q test", "cargo nextest run", "meson test -C build", "php artisan test"):
        assert RUNS_TESTS.search(command)
    for command in ("ls tests", "cat test_a.py", "npm install", "git status", "gradlew build"):
        assert RUNS_TESTS.search(command) is None
    assert list_tests([RanCommand("a", "pytest", 1)]).splitlines()[1] == "⚠ exit 1  a: pytest"


def test_an_exit_code_that_is_not_that_of_the_tests_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("raise SystemExit(1)\n")
    runs = ("cd . ; {}", "{} 2>&1 | tail -3", "{} || true")
    uses_of = (("Bash", {"command": run.format("python3 test_a.py")}) for run in runs)
    bench = Bench(tmp_path, uses(*uses_of), done(), bash=Confirms())
    bench.session("Bash").run(CONTRACT)
    assert list_tests(bench.context.test_runs).splitlines()[1:] == [
        "⚠ exit 1  spec-coordinator: cd . ; python3 test_a.py",
        "⚠ exit 0 of 'tail', not of the tests  spec-coordinator: python3 test_a.py 2>&1 | tail -3",
        "⚠ exit 0 of 'true', not of the tests  spec-coordinator: python3 test_a.py || true",
    ]


def test_a_policy_with_only_decide_gets_diffs_in_the_summary(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.orchestrator.run(TASK)
    assert "+++ b/src/build_a_rest_api.py\n" in case.gates.asked[-1][2]
    (asked,) = [line for line in case.kinds("gate_asked") if line["gate"] == 5]
    assert "+++ b/" not in asked["summary"]
    assert asked["changes"][0]["path"] == "src/build_a_rest_api.py"
    assert asked["changes"][0]["diff"].startswith("--- /dev/null\n+++ b/src/build_a_rest_api.py\n")


def test_an_automatic_gate_logs_its_changes_without_content(tmp_path: Path) -> None:
    case = Case(tmp_path, gate_policy=AutoApproveGatePolicy())
    case.orchestrator.run(TASK)
    shown = next(line for line in case.logged if line.startswith("[GATE] Gate 5 (summary)\n"))
    assert "  created  src/build_a_rest_api.py  +8 −0" in shown
    assert "Cost so far: $0.00" in shown
    assert "TASK =" not in shown


def test_a_gate_at_the_terminal_shows_the_diffs_and_a_new_document_once(tmp_path: Path) -> None:
    person, shown = at_terminal("a", "a", "X")
    command = uses(WRITES, ("Bash", {"command": "echo x > out.txt"}))
    model = Watched(reply=of(CONTEXT, command, done()))
    orchestrator = Orchestrator(
        with_bash(tmp_path), bash_policy=Confirms(), approver=person, model=model, trust="apply"
    )
    assert orchestrator.run(TASK).error == "aborted at gate 2 (requirements)"
    text = shown.getvalue()
    assert text.count("# Context") == 1
    assert "--- /dev/null\n+++ b/out.txt\n@@ -0,0 +1 @@\n+x\n\n=== Gate 1 (context) ===\n" in text


@pytest.mark.exhaustive
def test_an_open_blocker_makes_the_command_exit_1(tmp_path: Path) -> None:
    code = f"""
import sys
from system2 import __main__, simulated
NAMES = ["spec/code-review.md"]
simulated.SimulatedAgents._found = lambda _, work: ["it divides by zero"] if work.outputs[:1] == NAMES else []
sys.exit(__main__.main([{", ".join(map(repr, SIMULATED))}, "--auto-approve", "count the invoices"]))
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    why = "aborted at gate 5 (summary): not approved: code-reviewer reports a blocker: it divides by zero"
    assert f"system2: {why}" in ended.stderr
    assert "Missing or left open:\n- code-reviewer reports a blocker: it divides by zero" in ended.stderr
