"""A run is gone on with in the app: its history first, then live, and what is unknown is asked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, Orchestrator, RunConfig, ToolRegistry, tool
from aeon_core.approval_inbox import inbox_of
from aeon_core.approvals import NOBODY
from aeon_core.config.journal_trust import seal
from aeon_core.config.loading import LoadedConfig
from aeon_core.convergence import load_criteria
from aeon_core.errors import UsageError
from aeon_core.journal.history import final_result
from aeon_core.journal.reader import read_records
from aeon_core.journal.records import ApprovalPoint
from aeon_core.journal.recovery import reopen
from aeon_core.journal.view.reducer import fold
from aeon_core.plan.files import load_plan_file
from aeon_core.policy import PolicyRules
from aeon_core.runs.replay import replay
from aeon_tui.sessions.fork_job import fork_job
from aeon_tui.sessions.run_jobs import (
    EndedRun,
    check_overrides,
    ended_for_good,
    resume_job,
    retained_records,
)
from aeon_tui.sessions.runner import Runner
from aeon_tui.sources.base import RecordSource
from tests.aeon_core.questions import Asking
from tests.fakes import ScriptedModel, add, steps
from tests.sampling import sample
from tests.waiting import PATIENCE, wait_until

TODAY = LoadedConfig(RunConfig(model="simulated:default"))
TASK = "pay the bill"


class Paying:
    """A run whose tool does something in the world, and whose process dies in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, approval: bool = False) -> None:
        self.paid: list[float] = []
        self.path = folder / "r.jsonl"
        self.plan = steps({"agent": "llm"}, {"tool": "pay", "arguments": {"amount": 12.5}})
        self.model = ScriptedModel(plan=self.plan, reason="looked at it", answer="paid")
        monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: self.model)
        self.registry = ToolRegistry()

        @tool(effect="unsafe", needs_approval=approval)
        def pay(amount: float) -> str:
            """Pays."""
            self.paid.append(amount)
            return "paid"

        self.registry.register(pay)
        config = RunConfig(single_pass=True, durability="off")
        approver = lambda _: ApprovalDecision(decision="approve")  # noqa: E731
        Orchestrator(self.model, tools=self.registry, config=config, approver=approver, journal=self.path).run(TASK)
        self.paid.clear()

    def cut(self, holds: Callable[[str], bool]) -> None:
        """Leave the lines up to the one for which that holds."""
        lines = self.path.read_text().splitlines(keepends=True)
        count = next(number for number, line in enumerate(lines, 1) if holds(line))
        self.path.write_text("".join(lines[:count]))

    def go_on(self, said: dict[str, Any] | None = None, today: LoadedConfig = TODAY) -> Runner:
        job = resume_job(self.path, today, said or {}, in_app=True)
        job.tools = self.registry
        runner = Runner(job, job.journal_in(Path("elsewhere")))
        runner.start()
        return runner


def in_the_call(line: str) -> bool:
    return '"type":"tool"' in line and '"state":"started"' in line


def approved(line: str) -> bool:
    return '"type":"approval"' in line and '"state":"decided"' in line


def question(runner: Runner) -> Any:
    wait_until(lambda: runner.broker.waiting is not None or not runner.running)
    assert runner.running, runner.outcome()
    return runner.broker.waiting


def shown(source: RecordSource) -> list[dict[str, Any]]:
    """Return the records that the screen gets."""
    records: list[dict[str, Any]] = []

    def ended() -> bool:
        records.extend(source.take(0.05))
        return source.ended

    wait_until(ended)
    return records


def test_a_call_that_somebody_else_approved_is_made_only_if_the_user_trusts_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Paying(tmp_path, monkeypatch, approval=True)
    run.cut(approved)
    before = run.path.read_bytes()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state-of-another"))
    runner = run.go_on()
    wait_until(lambda: not runner.running)
    assert "the journal of 'r' asks to call 'pay' with {\"amount\": 12.5}" in runner.outcome()
    assert (run.paid, run.path.read_bytes()) == ([], before)
    runner = run.go_on(today=LoadedConfig(TODAY.config, mode="apply"))
    wait_until(lambda: not runner.running)
    assert (run.paid, runner.result and runner.result.status) == ([12.5], "completed")


def test_a_rule_sealed_with_a_key_inside_the_project_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Paying(tmp_path, monkeypatch, approval=True)
    run.cut(approved)
    *before, asked, decided = read_records(run.path)
    ruled = {**decided, "allow": {"rule": "pay", "scope": "run"}}
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "project" / "state"))
    ruled["seal"] = seal("r", asked["seq"], ruled)
    run.path.write_text("".join(f"{json.dumps(each)}\n" for each in (*before, asked, ruled)))
    today = LoadedConfig(TODAY.config.model_copy(update={"project_root": tmp_path / "project"}))
    with pytest.raises(UsageError, match="without asking: pay, which comes neither"):
        resume_job(run.path, today, {}, in_app=True)
    assert run.paid == []


def test_a_call_that_the_user_approved_is_made_without_another_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Paying(tmp_path, monkeypatch, approval=True)
    run.cut(approved)
    runner = run.go_on()
    wait_until(lambda: not runner.running)
    assert (run.paid, runner.result and runner.result.status) == ([12.5], "completed")


def test_a_call_that_a_rule_denies_by_now_is_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch, approval=True)
    run.cut(approved)
    today = LoadedConfig(RunConfig(policy=PolicyRules(allow=["Read"], ask=["Bash"], deny=["pay", "Read(*.env)"])))
    runner = run.go_on(today=today)
    wait_until(lambda: not runner.running)
    assert runner.result is not None
    assert (run.paid, runner.result.status) == ([], "not_converged")
    assert "the rule deny: pay" in str(runner.result.steps[1].errors)
    policy = resume_job(run.path, today, {}, in_app=True).config.policy
    assert policy == PolicyRules(ask=["Bash"], deny=["pay", "Read(*.env)"]), "the tools, such as Grep, heed it too"


def test_the_rules_of_the_runs_own_project_apply_wherever_it_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, project = Paying(tmp_path, monkeypatch, approval=True), tmp_path / "project"
    run.cut(approved)
    started, rest = run.path.read_text().split("\n", 1)
    record = json.loads(started)
    record["config"]["project_root"] = str(project)
    run.path.write_text(f"{json.dumps(record)}\n{rest}")
    (project / ".aeon").mkdir(parents=True)
    (project / ".aeon/config.yml").write_text("policy: {allow: [Read], ask: [Bash], deny: [pay]}\n")
    today = LoadedConfig(RunConfig(project_root=tmp_path, policy=PolicyRules(deny=["Edit"])), mode="apply")
    job = resume_job(run.path, today, {}, in_app=True)
    assert job.options["policy"] == PolicyRules(ask=["Bash"], deny=["Edit", "pay"])
    runner = run.go_on(today=today)
    wait_until(lambda: not runner.running)
    assert run.paid == []
    policy = fork_job(run.path, 1, today, {}, in_app=True).config.policy
    assert policy == PolicyRules(ask=["Bash"], deny=["Edit", "pay"])
    shutil.rmtree(project)
    assert resume_job(run.path, today, {}, in_app=True).config.policy.deny == ("Edit",), "its folder is gone"


@pytest.mark.parametrize(("answer", "paid"), [("approve", [12.5]), ("reject", [])])
def test_a_call_whose_outcome_is_unknown_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any, paid: list[float]
) -> None:
    run = Paying(tmp_path, monkeypatch)
    run.cut(in_the_call)
    runner = run.go_on()
    asked = question(runner)
    assert (asked.point, asked.subject["tool_name"], asked.subject["arguments"]) == ("unknown", "pay", {"amount": 12.5})
    assert runner.broker.decide(asked.digest, ApprovalDecision(decision=answer))
    assert runner.wait(PATIENCE)
    assert run.paid == paid
    assert replay(run.path).difference is None


def test_the_screen_gets_recorded_lines_before_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch)
    run.cut(in_the_call)
    before = list(read_records(run.path))
    runner = run.go_on({"on_unknown": "retry"})
    records = shown(runner.source)
    assert records[: len(before)] == before
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert final_result(fold(records)) == runner.result
    assert runner.result is not None
    assert (runner.exit_code, run.paid) == (0, [12.5])
    assert runner.outcome() == f"run r: completed · see `aeon-tui show {runner.journal}`"


def test_an_abort_leaves_a_run_that_can_be_continued_and_its_ending_is_not_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Paying(tmp_path, monkeypatch)
    run.cut(in_the_call)
    runner = run.go_on()
    question(runner)
    runner.abort()
    assert runner.wait(PATIENCE)
    assert runner.result is not None
    assert (runner.result.status, runner.exit_code, run.paid) == ("aborted", 1, [])
    assert ended_for_good(run.path) is None
    held = list(retained_records(run.path, []))
    assert "run_finished" not in [record["type"] for record in held]
    again = run.go_on({"on_unknown": "fail"})
    records = shown(again.source)
    assert [record["type"] for record in records].count("run_finished") == 1
    assert fold(records).status == "not_converged"
    assert run.paid == []


@pytest.mark.parametrize(
    ("said", "sources", "how"),
    [({}, {}, "ask"), ({}, {"on_unknown": "a file"}, "fail"), ({"on_unknown": "retry"}, {}, "retry")],
)
def test_the_app_asks_about_unknown_calls_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], sources: dict[str, str], how: str
) -> None:
    run = Paying(tmp_path, monkeypatch)
    today = LoadedConfig(TODAY.config, sources)
    assert resume_job(run.path, today, said, in_app=True).options["on_unknown"] == how
    headless = resume_job(run.path, today, said, in_app=False).options
    assert headless == {**said, "approve": ["none"]}


@pytest.mark.parametrize(
    ("in_app", "sources", "asked"),
    [(True, {}, ["pass", "tool"]), (True, {"approve": "a file"}, ["plan"]), (False, {}, ["plan"])],
)
def test_approval_settings_can_be_overridden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_app: bool, sources: dict[str, str], asked: list[str]
) -> None:
    run = Paying(tmp_path, monkeypatch)
    today = LoadedConfig(RunConfig(model="simulated:default", approve=["plan"]), sources)
    assert resume_job(run.path, today, {}, in_app=in_app).options["approve"] == asked


def test_without_tool_approval_only_unknown_calls_are_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Paying(tmp_path, monkeypatch, approval=True)
    run.cut(lambda line: '"step_id":"s1","status":"complete"' in line)
    runner = run.go_on(today=LoadedConfig(TODAY.config, {"approve": "the option --approve"}))
    assert runner.wait(PATIENCE)
    assert runner.result is not None
    assert "was not approved" in str(runner.result.steps[1].errors)
    assert run.paid == []


def test_a_journal_that_is_damaged_is_an_error_and_exit_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch)
    run.cut(in_the_call)
    run.path.write_text(run.path.read_text().replace('"type":"plan"', '"type":plan', 1))
    runner = run.go_on()
    assert runner.wait(PATIENCE)
    assert runner.exit_code == 2
    assert "is damaged" in runner.outcome()


def test_resuming_a_finished_run_reports_how_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch)
    ended = ended_for_good(run.path)
    assert ended is not None
    assert (str(ended), ended.exit_code) == (
        "the run ended as completed; there is nothing left to do",
        0,
    )
    run.cut(in_the_call)
    assert ended_for_good(run.path) is None


def test_an_ending_counts_if_the_resume_wrote_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch)
    ending = run.path.read_text()
    run.path.write_text(f'{ending}{{"v":1,"seq')
    reopen(run.path).close()
    assert [record["type"] for record in read_records(run.path)][-1] == "journal_recovered"
    assert ended_for_good(run.path) is not None


@pytest.mark.parametrize("error", [[None], "x", {"exit_code": "x"}])
def test_an_ending_with_an_odd_error_still_counts(tmp_path: Path, error: Any) -> None:
    path = tmp_path / "r.jsonl"
    Asking(path).end()
    ended = {"v": 1, "seq": 1, "ts": "2026-11-20T09:30:00Z", "run": "r", "type": "run_finished"}
    with path.open("a") as file:
        file.write(json.dumps({**ended, "result": {"status": "failed", "error": error}}) + "\n")
    assert ended_for_good(path) == EndedRun("failed", 1)


def test_an_override_is_anything_that_the_run_did_not_start_with(tmp_path: Path) -> None:
    path = begun_with(tmp_path)
    overrides = {"model": "simulated:x", "ttl": 9, "durability": "off", "tools": ["files"], "runs_dir": tmp_path}
    assert check_overrides(path, overrides) == overrides


def begun_with(tmp_path: Path) -> Path:
    """Record a single pass with criteria, requirements, a rule and a plan, whose files it also writes."""
    (tmp_path / "criteria.yml").write_text("completeness: 0.7\n")
    (tmp_path / "requirements.txt").write_text("It is short.\nIt has a title.\n")
    (tmp_path / "plan.yml").write_text("goal: add\nsteps: [{step_id: '1', description: add, agent: llm}]\n")
    path = tmp_path / "r.jsonl"
    config = RunConfig(single_pass=True, ttl=1, policy=PolicyRules(allow=["Bash(ls)", "Read"]))
    Orchestrator(
        ScriptedModel(reason="x", answer="3"),
        config=config,
        journal=path,
        criteria=load_criteria(tmp_path / "criteria.yml"),
        requirements=["It is short.", "It has a title."],
    ).run("add", plan=load_plan_file(tmp_path / "plan.yml"))
    return path


def test_repeating_the_original_options_overrides_nothing(tmp_path: Path) -> None:
    path = begun_with(tmp_path)
    said = {
        "single_pass": True,
        "judge_votes": 1,
        "criteria": tmp_path / "criteria.yml",
        "requirements": tmp_path / "requirements.txt",
        "plan": str(tmp_path / "plan.yml"),
        "policy": PolicyRules(allow=["Read"]),
    }
    assert check_overrides(path, {**said, "ttl": 9}) == {"ttl": 9}


@pytest.mark.parametrize(
    ("name", "text", "option"),
    [
        ("criteria", "completeness: 0.8\n", "--criteria"),
        ("requirements", "It is long.\n", "--requirements"),
        ("plan", "goal: add\nsteps: [{step_id: '1', description: other, agent: llm}]\n", "--plan"),
        ("policy", PolicyRules(allow=["Write"]), "--allow"),
        ("judge_votes", 3, "--judge-votes"),
    ],
)
def test_options_fixed_at_the_start_cannot_change(name: str, text: Any, option: str, tmp_path: Path) -> None:
    path = begun_with(tmp_path)
    value = text
    if isinstance(text, str):
        value = tmp_path / f"other.{'txt' if name == 'requirements' else 'yml'}"
        value.write_text(text)
    with pytest.raises(UsageError) as caught:
        check_overrides(path, {"ttl": 9, name: value})
    assert caught.value.message == f"{option} cannot change when a run is resumed; fork the run instead"


def test_defaults_count_as_original_options(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Orchestrator(ScriptedModel(plan=steps(add(1, 2)), answer="3"), journal=path, config=RunConfig(ttl=1)).run("add")
    (tmp_path / "criteria.yml").write_text("{}\n")
    assert check_overrides(path, {"criteria": tmp_path / "criteria.yml"}) == {}
    for name in ("single_pass", "plan", "requirements"):
        (tmp_path / "file.yml").write_text("- x\n")
        with pytest.raises(UsageError):
            check_overrides(path, {name: True if name == "single_pass" else tmp_path / "file.yml"})


def test_a_feed_without_a_kernel_shows_what_the_journal_holds(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    config = RunConfig(single_pass=True, durability="off", ttl=2)
    model = ScriptedModel(plan=steps(add(1, 2), {"agent": "llm"}), reason="x", answer="3")
    assert Orchestrator(model, journal=path, config=config).run("add").status == "ttl_expired"
    source = resume_job(path, TODAY, {}, in_app=False).source(path)
    source.finish()
    last = list(read_records(path))[-1]
    assert shown(source)[-1]["seq"] == last["resumes_at"] - 1


def ended_over(path: Path, point: ApprovalPoint, decision: ApprovalDecision, padding: int) -> None:
    """Write a run that asked, and ended with the decision and a result of some length."""
    asking = Asking(path)
    asking.ask(point)
    asking.decide(decision)
    asking.end()
    ended = {"v": 1, "seq": 3, "ts": "2026-11-20T09:30:00Z", "run": "r", "type": "run_finished"}
    with path.open("a") as file:
        file.write(json.dumps({**ended, "result": {"answer": "x" * padding}, "resumes_at": 1}) + "\n")


@pytest.mark.parametrize(("point", "asked"), [("plan", "plan"), ("pass", "pass"), ("budget", "tool"), ("tool", "tool")])
@pytest.mark.parametrize("padding", sample([None, 10, 100_000], 1))
def test_the_question_that_stopped_a_run_is_asked_again(
    tmp_path: Path, point: ApprovalPoint, asked: str, padding: int | None
) -> None:
    """Whether its process died over the question, or a person aborted it."""
    path = tmp_path / "r.jsonl"
    if padding is None:
        asking = Asking(path)
        asking.ask(point)
        asking.end()
    else:
        ended_over(path, point, ApprovalDecision(decision="abort"), padding)
    assert resume_job(path, TODAY, {}, in_app=False).options["approve"] == [asked]
    assert asked in resume_job(path, TODAY, {}, in_app=True).options["approve"]
    assert resume_job(path, TODAY, {"approve": ["none"]}, in_app=False).options["approve"] == ["none"]


def test_an_unanswerable_question_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    ended_over(path, "plan", ApprovalDecision(decision="reject", feedback=NOBODY), 10)
    assert resume_job(path, TODAY, {}, in_app=False).options["approve"] == ["plan"]


def test_a_leftover_inbox_is_removed_when_the_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Paying(tmp_path, monkeypatch)
    run.cut(in_the_call)
    inbox_of(run.path).touch()
    assert run.go_on({"on_unknown": "fail"}).wait(PATIENCE)
    assert not inbox_of(run.path).exists()


def test_decided_questions_are_not_asked_again(tmp_path: Path) -> None:
    asking = Asking(tmp_path / "r.jsonl")
    asking.ask("plan")
    asking.decide(ApprovalDecision(decision="approve"))
    asking.end()
    assert resume_job(asking.path, TODAY, {}, in_app=False).options["approve"] == ["none"]
