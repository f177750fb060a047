"""Whole workflows over the real boto3, against a server on loopback that speaks Converse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.llm.catalogue import price_of
from system2.constants import DEFAULT_MODEL, GATES
from system2.cost import CostRecord
from tests.aeon_core.llm.converse_server import converse, no_credentials, refused, said, set_credentials
from tests.aeon_core.llm.server import Reply
from tests.sampling import sample
from tests.system2.converse_agents import AgentServer, PromptCache, broken, failing, throttled
from tests.system2.kit import CONTRACT, Answers, check_order
from tests.system2.test_settings import PUBLIC
from tests.system2.workflows import ABORT, ALL, REJECT, TASK, Case, SaidAtGates


@pytest.fixture
def server() -> Iterator[AgentServer]:
    made = AgentServer()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    return root


def case_on(server: AgentServer, project: Path, **options: Any) -> Case:
    case = Case(project, options.pop("model_name", "bedrock:" + DEFAULT_MODEL), base_url=server.url, **options)
    case.model = None  # type: ignore[assignment]  # the server has the requests
    return case


def test_a_whole_workflow_makes_only_converse_calls(server: AgentServer, project: Path) -> None:
    case = case_on(server, project)
    result = case.orchestrator.run(TASK)
    assert (result.status, result.error, result.agents_invoked) == ("completed", None, ALL)
    assert {request.path for request in server.requests} == {f"/model/{DEFAULT_MODEL.replace(':', '%3A')}/converse"}
    assert len(server.requests) == result.total_cost.api_calls == len(case.kinds("api_request"))
    assert result.total_cost.cost_usd > 0
    for request in server.requests:
        check_order(request.body["messages"])
        assert request.body["inferenceConfig"]["maxTokens"] == 8192
        names = [tool["toolSpec"]["name"] for tool in request.body["toolConfig"]["tools"]]
        assert names[-1] == "signal_completion"
    for gate in GATES:
        assert (project / gate.artifact).exists()


def test_an_agent_that_calls_a_tool_without_a_name_gets_the_names_of_its_tools(
    server: AgentServer, project: Path
) -> None:
    use = {"toolUse": {"toolUseId": "a", "name": "", "input": {"path": "spec"}}}
    server.interfere = failing(converse(use, stop="tool_use"), at=2)
    case = case_on(server, project)
    result = case.orchestrator.run(TASK)
    assert (result.status, result.error) == ("completed", None)
    call, answer = (turn["content"][0] for turn in server.requests[2].body["messages"][-2:])
    assert call["toolUse"]["name"] == "tool"
    assert answer["toolResult"]["content"][0]["text"].startswith("there is no tool ''; you have Read, ")


@pytest.mark.exhaustive
@pytest.mark.parametrize("gate", sample(range(6), 2))
def test_the_conversation_stays_valid_after_rejections(gate: int, server: AgentServer, project: Path) -> None:
    case = case_on(server, project, gate_policy=SaidAtGates({gate: [(REJECT, "name the owner")]}))
    assert case.orchestrator.run(TASK).exit_code == 0
    again = [each.body for each in server.requests if "name the owner" in str(each.body["messages"][-1])]
    assert len(again) == 1
    check_order(again[0]["messages"])
    assert "toolResult" in again[0]["messages"][-1]["content"][0]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("fault", "retries"), [(throttled, 3), (broken, 2)])
def test_a_transient_fault_costs_exactly_its_retries(
    fault: Any, retries: int, server: AgentServer, project: Path
) -> None:
    waits: list[float] = []
    plain = case_on(server, project).orchestrator.run(TASK).total_cost.api_calls
    server.requests.clear()
    server.interfere = failing(*[fault()] * retries, at=3)
    other = project.parent / "other"
    other.mkdir()
    case = case_on(server, other, sleep=waits.append)
    assert case.orchestrator.run(TASK).exit_code == 0
    assert len(server.requests) == plain + retries
    assert waits == sorted(waits)
    assert len(waits) == retries
    assert all(0 < wait <= 30 for wait in waits)


@pytest.mark.parametrize(("fault", "requests"), [(throttled, 4), (broken, 3)])
def test_a_persistent_fault_is_asked_about_and_ends_it_unanswered(
    fault: Any, requests: int, server: AgentServer, project: Path
) -> None:
    server.interfere = lambda number, body: fault()
    questions = Answers()
    case = case_on(server, project, question_policy=questions)
    result = case.orchestrator.run(TASK)
    assert (result.status, result.exit_code) == ("failed", 1)
    assert len(server.requests) == requests
    assert [question.kind for question in questions.asked] == ["api_error"]


def test_a_persistent_fault_can_be_retried(server: AgentServer, project: Path) -> None:
    server.interfere = failing(*[broken()] * 3)
    case = case_on(server, project, question_policy=Answers({"api_error": "retry"}))
    assert case.orchestrator.run(TASK).exit_code == 0


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("UnrecognizedClientException", 403),
        ("ExpiredTokenException", 403),
        ("AccessDeniedException", 403),
    ],
)
def test_refused_credentials_are_exit_3_after_one_request(
    code: str, status: int, server: AgentServer, project: Path
) -> None:
    server.interfere = lambda number, body: refused(code, "The security token is invalid", status)
    result = case_on(server, project).orchestrator.run(TASK)
    assert (result.status, result.exit_code, len(server.requests)) == ("failed", 3, 1)


def too_long() -> Reply:
    return refused("ValidationException", "Input is too long for requested model.", 400)


def test_a_conversation_that_is_too_long_is_summarized_on_request(server: AgentServer, project: Path) -> None:
    state = {"refused": False}

    def interfere(number: int, body: dict[str, Any]) -> Reply | None:
        if "toolConfig" not in body:
            return said("spec/context.md is not written yet")
        if number == 5 and not state["refused"]:
            state["refused"] = True
            return too_long()
        return None

    server.interfere = interfere
    questions = Answers({"context_overflow": "summarize"})
    case = case_on(server, project, question_policy=questions)
    assert case.orchestrator.run(TASK).exit_code == 0
    assert [question.kind for question in questions.asked] == ["context_overflow"]
    marked = [each.body for each in server.requests if "[CONTEXT SUMMARIZED]" in str(each.body["messages"][0])]
    assert marked
    for body in marked:
        check_order(body["messages"])
        assert "## Objective" in str(body["messages"][0])


def test_a_conversation_that_is_too_long_ends_an_unattended_agent(server: AgentServer, project: Path) -> None:
    server.interfere = lambda number, body: too_long() if number >= 5 else None
    questions = Answers()
    result = case_on(server, project, question_policy=questions).orchestrator.run(TASK)
    assert (result.status, result.exit_code) == ("aborted", 1)
    assert [question.kind for question in questions.asked] == ["context_overflow", "agent_halted"]


def test_the_published_configuration_works_with_keys_of_the_environment(server: AgentServer, project: Path) -> None:
    (project / ".system2").mkdir()
    (project / ".system2/config.yml").write_text(PUBLIC)
    case = case_on(server, project, model_name=None)
    result = case.orchestrator.run(TASK)
    assert (result.status, result.error) == ("completed", None)
    calls = {
        start["agent"]: next(each for each in server.requests if start["system"] == each.body["system"][0]["text"])
        for start in case.kinds("agent_start")
    }
    sonnet, haiku = (f"us.anthropic.claude-3-5-{name}" for name in ("sonnet-20241022-v2:0", "haiku-20241022-v1:0"))
    used = {
        name: (call.path.split("/")[2].replace("%3A", ":"), call.body["inferenceConfig"])
        for name, call in calls.items()
    }
    assert used["executor"] == (sonnet, {"maxTokens": 4096, "temperature": 0.7})
    assert used["design-architect"] == (sonnet, {"maxTokens": 4096, "temperature": 0.3})
    assert used["spec-coordinator"] == (haiku, {"maxTokens": 4096, "temperature": 0.5})
    models = {start["agent"]: start["model"] for start in case.kinds("agent_start")}
    assert (models["executor"], models["spec-coordinator"]) == (f"bedrock:{sonnet}", f"bedrock:{haiku}")
    spent = {end["agent"]: end["cost"] for end in case.kinds("agent_complete")}["spec-coordinator"]
    price = price_of(f"bedrock:{haiku}")
    assert price is not None
    assert spent["cost_usd"] == pytest.approx(
        (spent["input_tokens"] * price.input + spent["output_tokens"] * price.output) / 1e6
    )


def test_overrides_apply_when_a_resume_names_the_configured_model(server: AgentServer, project: Path) -> None:
    (project / ".system2").mkdir()
    (project / ".system2/config.yml").write_text(PUBLIC)
    case = case_on(server, project, model_name="bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0")
    assert "haiku" in case.orchestrator.invoke_agent("spec-coordinator", CONTRACT).cost.model_id
    assert "haiku" in server.requests[0].path
    assert server.requests[0].body["inferenceConfig"]["temperature"] == 0.5


def test_a_model_given_as_an_option_runs_all_agents(server: AgentServer, project: Path) -> None:
    (project / ".system2").mkdir()
    (project / ".system2/config.yml").write_text(PUBLIC)
    assert case_on(server, project, gate_policy=SaidAtGates({2: [(ABORT, None)]})).orchestrator.run(TASK).exit_code == 1
    assert {request.path for request in server.requests} == {f"/model/{DEFAULT_MODEL.replace(':', '%3A')}/converse"}


def reads_of_a_small_file(server: AgentServer, project: Path, reads: int) -> CostRecord:
    """Return what an agent costs that reads a file of two lines so often."""
    (project / "small.txt").write_text("one\ntwo\n")
    cache = PromptCache()

    def interfere(number: int, body: dict[str, Any]) -> Reply:
        use = {"name": "Read", "toolUseId": f"u{number}", "input": {"file_path": "small.txt"}}
        block = {"toolUse": use} if number <= reads else {"text": "read"}
        return converse(block, stop="tool_use" if number <= reads else "end_turn", usage=cache.usage(body))

    server.interfere = interfere
    return case_on(server, project).orchestrator.invoke_agent("executor", CONTRACT).cost


def test_repeated_input_is_read_from_and_billed_at_the_cache_rate(
    server: AgentServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = reads_of_a_small_file(server, project, 20)
    assert cached.cache_read_tokens > 0.85 * cached.input_tokens
    monkeypatch.setattr("aeon_core.llm.bedrock.takes_cache_points", lambda name: False)
    server.requests.clear()
    plain = reads_of_a_small_file(server, project, 20)
    assert (plain.cache_read_tokens, plain.cache_write_tokens) == (0, 0)
    assert cached.input_tokens == pytest.approx(plain.input_tokens, rel=0.01)
    assert cached.cost_usd < 0.5 * plain.cost_usd


@pytest.mark.exhaustive
def test_a_workflow_that_was_stopped_continues_over_converse(server: AgentServer, project: Path) -> None:
    stopped = case_on(server, project, gate_policy=SaidAtGates({2: [(ABORT, None)]})).orchestrator.run(TASK)
    assert stopped.transcript_path is not None
    server.requests.clear()
    result = case_on(server, project).orchestrator.resume(stopped.transcript_path)
    assert result.exit_code == 0
    assert "Design a solution" in server.requests[0].body["messages"][0]["content"][0]["text"]
