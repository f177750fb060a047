"""Who decides, and the orchestrator in the hands of a program: answers late, wrong or none (REQ-071…073)."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import system2
from aeon_core.approvals import ApprovalDecision, ApprovalRequest
from aeon_core.errors import AeonError, UsageError
from system2.orchestrator import Orchestrator
from system2.policies import AutoApproveGatePolicy, GateDecision, PolicyApprover, Question, choice_of, question_of
from tests.system2.kit import CONTRACT, Answers, done, uses
from tests.system2.workflows import ABORT, APPROVE, TASK, Case, Dear, SaidAtGates, Watched, dear_project, files_of


class Fails:
    """Raises whatever it is asked."""

    def decide(self, *_: object) -> Any:
        raise RuntimeError("no connection to the approver")

    confirm = choose = decide


def test_policies_may_be_functions(tmp_path: Path) -> None:
    asked: list[int] = []

    def decide(gate: int, artifact_path: str, summary: str) -> GateDecision:
        asked.append(gate)
        return GateDecision(gate, APPROVE if gate < 2 else ABORT)

    orchestrator = Orchestrator(
        tmp_path, None, decide, lambda command, is_blocklisted: False, model="simulated:default"
    )
    assert orchestrator.run(TASK).status == "aborted"
    assert asked == [0, 1, 2]


def test_the_policy_that_approves_every_gate_has_the_specifications_name_and_an_earlier_one() -> None:
    assert system2.AutoApproveGates is system2.AutoApproveGatePolicy is AutoApproveGatePolicy


@pytest.mark.parametrize("policy", ["yes", 1, object(), AutoApproveGatePolicy])
def test_an_invalid_policy_is_refused_at_once(policy: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the gate policy must be a function or have a method 'decide'"):
        Orchestrator(tmp_path, gate_policy=policy)


def test_an_async_policy_and_an_approver_that_is_no_function_are_refused_at_once(tmp_path: Path) -> None:
    async def decide(gate: int, artifact_path: str, summary: str) -> GateDecision:
        return GateDecision(gate, APPROVE)

    given: Any
    for given in (decide, SimpleNamespace(decide=decide)):
        with pytest.raises(UsageError, match="the gate policy is async, expected a plain function"):
            Orchestrator(tmp_path, gate_policy=given)
    given = 5
    with pytest.raises(UsageError, match="the approver must be a function"):
        Orchestrator(tmp_path, approver=given)


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"listener": 5}, "the listener must be a function"),
        ({"on_delta": "print"}, "the on_delta must be a function"),
        ({"sleep": asyncio.sleep}, "the sleep is async, expected a plain function"),
        ({"trust": "aply"}, "trust is 'aply'; did you mean 'apply'"),
        ({"unsafe_bash": "no"}, "unsafe_bash is of type str, expected a bool"),
        ({"config_path": 5}, "the config file: expected a path, got 5"),
        ({"shares_rate": "no"}, "shares_rate is of type str, expected a bool"),
        ({"model": ["simulated:default"]}, "the model is of type list, expected a str or LLMAdapter"),
        ({"base_url": 5}, "base_url is 5; write an address such as"),
        ({"log": 5}, "log is of type int, expected a Log"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused_at_once(option: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        Orchestrator(tmp_path, **option)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("x", print), "seconds is of type str, expected an int or float"),
        ((1, 5), "the say must be a function"),
        ((1, print, 5), "the show must be a function"),
    ],
)
def test_what_a_wait_for_decisions_cannot_use_is_refused_at_once(arguments: Any, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        Orchestrator(tmp_path).wait_for_decisions(*arguments)


def test_what_is_resumed_or_invoked_must_be_named_in_words(tmp_path: Path) -> None:
    orchestrator: Any = Case(tmp_path).orchestrator
    with pytest.raises(UsageError, match="the run is 5; write a run id, a path to a journal, or 'last'"):
        orchestrator.resume(5)
    with pytest.raises(UsageError, match="the agent is of type int, expected a str"):
        orchestrator.invoke_agent(5, CONTRACT)


def test_a_policy_that_fails_is_named_and_nothing_continues(tmp_path: Path) -> None:
    result = Case(tmp_path, gate_policy=Fails()).orchestrator.run(TASK)
    assert (result.exit_code, result.agents_invoked) == (1, ["repo-governor"])
    assert result.error == "the gate policy failed: RuntimeError: no connection to the approver"


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ({"gate_policy": lambda *_: "approve"}, "the gate policy returned str, expected a GateDecision"),
        (
            {"gate_policy": lambda gate, *_: GateDecision(gate, cast("Any", "approve"))},
            "the gate policy decided 'approve', expected a GateDecisionType such as GateDecisionType.APPROVE",
        ),
        ({"approver": lambda _: "approve"}, "the approver returned str, expected an ApprovalDecision"),
    ],
)
def test_an_answer_of_the_wrong_type_ends_the_workflow_and_is_named(
    option: dict[str, Any], why: str, tmp_path: Path
) -> None:
    result = Orchestrator(tmp_path, model="simulated:default", **option).run(TASK)
    assert why in (result.error or "")


def test_a_bash_policy_that_fails_runs_no_command(tmp_path: Path) -> None:
    model = Watched(reply=lambda request: uses(("Bash", {"command": "touch made"})))
    with pytest.raises(AeonError, match="the Bash policy failed: RuntimeError: no connection to the approver"):
        Case(tmp_path, model, bash_policy=Fails()).orchestrator.invoke_agent("executor", CONTRACT)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("answer", [None, 1, "yes", "run", object()])
def test_a_command_runs_only_if_the_policy_returns_true(answer: Any, tmp_path: Path) -> None:
    replies = iter([uses(("Bash", {"command": "touch made"})), done()])
    case = Case(tmp_path, Watched(reply=lambda request: next(replies, None)), bash_policy=lambda *_: answer)
    case.orchestrator.invoke_agent("executor", CONTRACT)
    assert not (tmp_path / "made").exists()


def test_an_approval_that_comes_after_an_abort_approves_nothing(tmp_path: Path) -> None:
    gates = SaidAtGates()
    case = Case(tmp_path, gate_policy=gates)
    gates.on_ask = lambda gate: case.orchestrator.abort() if gate == 5 else None
    result = case.orchestrator.run(TASK)
    assert (result.status, result.error) == ("aborted", "aborted at gate 5 (summary)")
    approved = [line["gate"] for line in case.kinds("gate_decision") if line["decision"] == "approve"]
    assert approved == [0, 1, 2, 3, 4]


def test_an_early_abort_ends_only_that_workflow_before_any_call(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.orchestrator.abort()
    assert (case.orchestrator.run(TASK).status, case.model.requests) == ("aborted", [])
    assert case.orchestrator.run(TASK).status == "completed"


def test_an_orchestrator_can_be_reused(tmp_path: Path) -> None:
    case = Case(tmp_path)
    first, second = case.orchestrator.run(TASK), case.orchestrator.run("count the stars", spec="replace")
    assert first.transcript_path != second.transcript_path
    assert second.total_cost.api_calls < first.total_cost.api_calls * 2
    assert [decision.gate_number for decision in second.gate_decisions] == [0, 1, 2, 3, 4, 5]


def test_a_second_workflow_at_the_same_time_is_refused(tmp_path: Path) -> None:
    gates, refused = SaidAtGates(), []
    case = Case(tmp_path, gate_policy=gates)

    def again(gate: int) -> None:
        with pytest.raises(UsageError, match="is busy") as error:
            case.orchestrator.run(TASK)
        refused.append(error)

    gates.on_ask = again
    assert case.orchestrator.run(TASK).status == "completed"
    assert len(refused) == 6


def test_the_status_is_a_snapshot(tmp_path: Path) -> None:
    gates, seen = SaidAtGates(), []
    case = Case(tmp_path, gate_policy=gates)

    def look(gate: int) -> None:
        thread = threading.Thread(target=lambda: seen.append(case.orchestrator.get_status()))
        thread.start()
        thread.join()

    gates.on_ask = look
    case.orchestrator.run(TASK)
    assert [status.gate for status in seen] == [0, 1, 2, 3, 4, 5]
    assert [len(status.gate_decisions) for status in seen] == [0, 1, 2, 3, 4, 5]
    assert seen[0].agents["executor"] == "waiting"


def test_a_single_agent_can_ask_and_reports_its_files(tmp_path: Path) -> None:
    questions = Answers({"agent_halted": "skip"})
    case = Case(tmp_path, Watched(reply=lambda request: done("no", status="failure")), question_policy=questions)
    result = case.orchestrator.invoke_agent("executor", CONTRACT)
    assert result.completion is not None
    assert (result.completion.status, case.completed) == ("failure", ["executor"])
    assert case.orchestrator.get_status().state == "completed"


@pytest.mark.parametrize("task", [None, 3, b"bytes"])
def test_a_task_that_is_not_a_string_is_refused(task: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the task must be text"):
        Case(tmp_path).orchestrator.run(task)
    assert files_of(tmp_path) == {}


def test_a_ceiling_that_was_declined_is_asked_about_again_on_resume(tmp_path: Path) -> None:
    first = Case(dear_project(tmp_path), Dear(reply=lambda request: uses(("Glob", {"pattern": "*"})))).orchestrator.run(
        TASK
    )
    assert first.exit_code == 4
    assert first.transcript_path is not None
    again = Case(tmp_path, Dear())
    assert (again.orchestrator.resume(first.transcript_path).exit_code, again.model.requests) == (4, [])
    lifted = Case(tmp_path, Dear(), question_policy=Answers({"cost_ceiling": "continue"}))
    assert lifted.orchestrator.resume(first.transcript_path).exit_code == 0


def test_policy_rules_apply_to_agents_as_to_runs(tmp_path: Path) -> None:
    (tmp_path / ".aeon").mkdir()
    rules = {"allow": ["Bash(echo *)"], "ask": ["Write(asked.txt)"], "deny": ["Bash(* secret*)", "Write(no.txt)"]}
    (tmp_path / ".aeon" / "config.yml").write_text(json.dumps({"policy": rules}))
    calls = [
        *(("Bash", {"command": command}) for command in ("echo one", "echo secret", "touch made")),
        *(("Write", {"file_path": path, "content": "x"}) for path in ("asked.txt", "no.txt", "free.txt")),
    ]
    replies = [uses(*calls), done("all done")]
    case = Case(tmp_path, Watched(reply=lambda request: replies.pop(0)))
    case.orchestrator.invoke_agent("executor", CONTRACT)
    succeeded = [each["success"] for each in case.kinds("tool_exec")]
    assert succeeded[: len(calls)] == [True, False, False, False, False, True]
    assert case.bash.asked == [("touch made", False)]
    assert [question.kind for question in case.questions.asked] == ["file_change"]


def test_a_workflow_without_a_journal_aborts_at_its_first_gate(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    orchestrator = Orchestrator(tmp_path, model=Watched(), runs_dir=tmp_path / "file" / "runs")
    orchestrator.wait_for_decisions(1, lambda line: None)
    result = orchestrator.run(TASK)
    assert (result.status, result.agents_invoked) == ("aborted", ["repo-governor"])
    assert result.error == "aborted at gate 0 (scope): nobody decided in time"


@pytest.mark.parametrize("answer", [None, "approve"])
def test_a_failing_approver_ends_the_workflow_at_its_gate(answer: Any, tmp_path: Path) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Any:
        asked.append(request.point)
        if len(asked) > 2:
            return ApprovalDecision(decision="abort")
        if answer is None:
            raise KeyError("decision")
        return answer

    result = Orchestrator(tmp_path, approver=approver, model="simulated:default").run(TASK)
    assert (result.status, result.agents_invoked, asked) == ("aborted", ["repo-governor"], ["gate"])
    assert (result.error or "").startswith("aborted at gate 0 (scope): the approver ")


def test_a_call_that_nobody_decided_is_not_attributed_to_a_person() -> None:
    subject = {"tool_name": "Bash", "arguments": {"command": "make"}}
    request = ApprovalRequest(point="unknown", pass_number=1, step_id="executor", subject=subject, digest="d")
    decision = PolicyApprover(AutoApproveGatePolicy(), None, None)(request)
    assert (decision.decision, decision.feedback) == ("reject", "there was no one to ask")


@pytest.mark.parametrize(("held", "words"), [(0.0, "$1.10;"), (0.04, "$1.10, and $0.04 more may have been spent;")])
def test_the_ceiling_question_includes_calls_of_unknown_cost(held: float, words: str) -> None:
    subject = {"spent_usd": 1.1, "held_usd": held, "reserved_usd": 0.31, "limit_usd": 1.2, "proposed_usd": 2.4}
    question = question_of("budget", subject, "executor")
    assert question.text.startswith(f"the workflow has cost {words} the next call may cost up to $0.31")
    assert (question.choices, question.safe) == (("stop", "continue"), "stop")


def test_a_question_about_a_new_file_shows_its_content() -> None:
    reason = "it is outside the agent's document"
    subject = {"tool_name": "Write", "arguments": {"file_path": "a.md", "content": "one\n"}, "reason": reason}
    question = question_of("tool", subject, "executor")
    assert (question.kind, question.text) == ("file_change", "Write would change 'a.md'")
    assert question.details[0] == reason
    assert question.details[1].splitlines()[-1] == "+one"


def test_a_question_about_a_link_names_the_file_behind_it() -> None:
    diff = "--- a/src/auth.py\n+++ b/src/auth.py\n@@ -1 +1 @@\n-a\n+b"
    subject = {"tool_name": "Edit", "arguments": {"file_path": "notes.md"}, "preview": {"diff": diff}}
    assert question_of("tool", subject, "executor").text == "Edit would change 'notes.md', which leads to 'src/auth.py'"


@pytest.mark.parametrize(
    ("decision", "choice"),
    [
        ({"decision": "approve"}, "run"),
        ({"decision": "edit"}, "run"),
        ({"decision": "reject"}, "refuse"),
        ({"decision": "abort"}, "refuse"),
        ({"decision": "approve", "answers": {"make": "refuse"}}, "refuse"),
        ({"decision": "reject", "answers": {"make": "perhaps"}}, "refuse"),
    ],
)
def test_only_an_approval_makes_the_unsafe_choice(decision: dict[str, Any], choice: str) -> None:
    assert choice_of(Question("bash", "executor", "make", ("refuse", "run"), "refuse"), decision) == choice


def test_a_question_shows_all_that_is_written_where_no_diff_does() -> None:
    arguments = {"file_path": "hook", "content": "\n" * 6_000 + "the end"}
    new = question_of("tool", {"tool_name": "Write", "arguments": arguments, "reason": "why"}, "executor")
    assert "the end" not in new.details[1]  # the diff is cut
    assert new.details[2] == f"content:\n{arguments['content']}"
    subject = {"tool_name": "Write", "arguments": {"file_path": "a.png", "content": "x"}, "preview": {"warning": "all"}}
    replaced = question_of("tool", subject, "executor")
    assert replaced.details[0] == "all"
    assert replaced.details[1].endswith("+x\n\\ No newline at end of file")
