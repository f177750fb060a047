"""The simulated agents: deterministic, labelled, and no more than they say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aeon_core.llm.base import LLMRequest
from system2.constants import DELEGATION_MAP
from system2.contracts import contract_for
from system2.simulated import SimulatedAgents, Work, read_work
from tests.sampling import examples
from tests.system2.kit import Confirms
from tests.system2.workflows import TASK, Case, transcript

TOOLS = [{"name": name, "input_schema": {}} for name in ("Read", "Write", "Edit", "Glob", "Bash", "signal_completion")]


def asked(agent: str, task: str = TASK) -> LLMRequest:
    message = contract_for(agent, task).to_message()
    return LLMRequest("tool_call", "You are an agent.", [{"role": "user", "content": message}], tools=TOOLS)


@pytest.mark.parametrize("agent", DELEGATION_MAP)
def test_the_same_conversation_gets_the_same_reply(agent: str) -> None:
    first, second = SimulatedAgents(), SimulatedAgents()
    assert first.complete(asked(agent)) == second.complete(asked(agent))


def test_everything_it_writes_is_labelled_simulated(tmp_path: Path) -> None:
    result = Case(tmp_path).orchestrator.run(TASK)
    records = transcript(result.transcript_path)
    assert records[0]["simulated"] is True
    assert result.total_cost.model_id == "simulated:default"
    for path in [*tmp_path.glob("spec/*.md"), *tmp_path.glob("src/*.py")]:
        if path.name != "post-execution-log.md":
            assert "simulated model" in path.read_text("utf-8"), path


def test_the_module_that_it_writes_passes_its_test(tmp_path: Path) -> None:
    Case(tmp_path).orchestrator.run("say 'hello' in \"two\" ways\nand more")
    (test,) = tmp_path.glob("tests/test_*.py")
    runpy.run_path(str(test), run_name="__main__")


def test_a_second_workflow_with_the_same_task_writes_another_module(tmp_path: Path) -> None:
    assert Case(tmp_path).orchestrator.run(TASK).status == "completed"
    again = Case(tmp_path, bash_policy=Confirms(answer=True)).orchestrator.run(TASK, spec="replace")
    assert (again.status, again.error) == ("completed", None)
    assert sorted(path.name for path in tmp_path.glob("src/*.py")) == [
        "build_a_rest_api.py",
        "build_a_rest_api_2.py",
    ]
    (run,) = (entry for entry in transcript(again.transcript_path) if entry.get("tool") == "Bash")
    assert run["input"] == {"command": "python3 tests/test_build_a_rest_api_2.py"}


@given(st.text(max_size=200))
@settings(max_examples=examples(50))
def test_any_task_gives_documents_and_code_that_can_be_read(task: str) -> None:
    work = read_work(asked("executor", task).messages)
    assert work is not None
    assert work.slug.isidentifier()
    calls = list(SimulatedAgents()._work(work))
    assert [call["name"] for call in calls] == ["Write", "Write"]
    for call in calls:
        assert isinstance(call["arguments"], dict)
        compile(call["arguments"]["content"], call["arguments"]["file_path"], "exec")
    assert work.document("spec/scope.md").startswith("# Scope\n")


def test_a_contract_survives_a_round_trip() -> None:
    work = read_work(asked("test-engineer").messages)
    assert work == Work(
        TASK, ["spec/test-report.md"], is_execution=False, blockers=False, check=1, feedback=None, done=[]
    )


def test_a_call_without_a_contract_gets_a_summary() -> None:
    request = LLMRequest("reason", "", [{"role": "user", "content": "Summarize the following conversation"}])
    reply = SimulatedAgents().complete(request)
    assert reply.tool_calls == []
    assert reply.text.startswith("Summary: ")
