"""The tool-use loop: from a contract to a completion, and on after a rejection (REQ-050…053, REQ-083)."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon_core.errors import RunAborted
from aeon_core.llm.base import LLMRequest, LLMResponse
from system2.contracts import CompletionSignal
from tests.system2.kit import CONTRACT, Bench, Scripted, check_order, done, said, uses


def test_an_agent_reads_writes_and_signals_completion(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("a service for invoices\n")
    bench = Bench(
        tmp_path,
        uses(("Read", {"file_path": "README.md"}), text="Let me look."),
        uses(("Write", {"file_path": "spec/context.md", "content": "# Context\n"})),
        done("wrote the context", files_changed=["spec/context.md"]),
    )

    result = bench.session().run(CONTRACT)

    assert result.completion == CompletionSignal("success", ["spec/context.md"], "wrote the context")
    assert result.halted is None
    assert result.files_changed == ("spec/context.md",)
    assert (tmp_path / "spec/context.md").read_text() == "# Context\n"
    assert (result.cost.api_calls, result.cost.tool_turns) == (3, 2)
    assert (result.cost.input_tokens, result.cost.output_tokens) == (3000, 300)


def test_every_call_includes_the_agents_whole_history(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("eleven\n")
    bench = Bench(tmp_path, uses(("Read", {"file_path": "a.txt"}, "r1"), text="Look."), done())
    session = bench.session(prompt="You are careful.")
    session.run(CONTRACT)

    first, second = bench.requests
    assert first.system == "You are careful."
    assert first.messages == [{"role": "user", "content": CONTRACT.to_message()}]
    assert second.messages[0] == first.messages[0]
    assert second.messages[1] == {
        "role": "assistant",
        "content": "Look.",
        "tool_calls": [{"id": "r1", "name": "Read", "arguments": {"file_path": "a.txt"}}],
    }
    assert second.messages[2] == {"role": "tool", "content": "     1\televen", "tool_call_id": "r1"}
    check_order(session.history)


def test_all_tool_uses_of_a_reply_are_answered_in_one_turn(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"text of {name}\n")
    bench = Bench(
        tmp_path,
        uses(("Read", {"file_path": "a"}), ("Read", {"file_path": "none"}), ("Read", {"file_path": "b"})),
        done(),
    )
    session = bench.session()
    session.run(CONTRACT)

    results = [block["toolResult"] for block in session.history[2]["content"]]
    assert [result["toolUseId"] for result in results] == ["use_1", "use_2", "use_3"]
    assert [result["status"] for result in results] == ["success", "error", "success"]
    assert "text of b" in results[2]["content"][0]["text"]
    assert session.history[2]["role"] == "user"


def test_a_failed_tool_use_is_returned_to_the_agent_as_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("retries = 2\n")
    wrong = {"file_path": "a.py", "old_string": "retries = 1", "new_string": "retries = 3"}
    bench = Bench(tmp_path, uses(("Edit", wrong)), uses(("Edit", wrong | {"old_string": "retries = 2"})), done())

    result = bench.session().run(CONTRACT)

    error = bench.requests[1].messages[-1]
    assert error["is_error"] is True
    assert "old_string is not in 'a.py'" in error["content"]
    assert "retries = 2" in error["content"]
    assert (tmp_path / "a.py").read_text() == "retries = 3\n"
    assert result.files_changed == ("a.py",)


def test_text_alone_is_an_implicit_completion(tmp_path: Path) -> None:
    result = Bench(tmp_path, said("I found nothing to do.")).session().run(CONTRACT)
    assert result.completion == CompletionSignal("success", [], "I found nothing to do.")


def test_a_signal_inside_the_final_text_is_accepted(tmp_path: Path) -> None:
    text = 'Done.\n```json\n{"status": "blockers", "summary": "no access", "blockers": ["key is missing"]}\n```'
    result = Bench(tmp_path, said(text)).session().run(CONTRACT)
    assert result.completion == CompletionSignal("blockers", [], "no access", ["key is missing"])


def test_a_refusal_of_the_model_is_a_failure(tmp_path: Path) -> None:
    result = Bench(tmp_path, said("I cannot help with that.", "refusal")).session().run(CONTRACT)
    assert result.completion == CompletionSignal("failure", [], "I cannot help with that.")


def test_an_instruction_in_text_is_never_executed(tmp_path: Path) -> None:
    text = 'toolUse: {"name": "Write", "input": {"file_path": "x", "content": "y"}}\n```bash\ntouch made\n```'
    Bench(tmp_path, said(text)).session().run(CONTRACT)
    assert [path.name for path in tmp_path.iterdir()] == [".system2"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"status": "fine", "files_changed": [], "summary": "s"}, "status: expected one of"),
        ({"status": "success", "summary": "s"}, "files_changed: missing"),
        ({"status": "success", "files_changed": [], "summary": 1}, "summary: expected string"),
    ],
)
def test_an_invalid_signal_is_answered_with_an_error(tmp_path: Path, given: dict[str, object], why: str) -> None:
    bench = Bench(tmp_path, uses(("signal_completion", given)), done("second"))
    result = bench.session().run(CONTRACT)
    assert why in bench.requests[1].messages[-1]["content"]
    assert result.completion is not None
    assert result.completion.summary == "second"


def test_a_completion_next_to_a_failed_tool_use_is_not_accepted(tmp_path: Path) -> None:
    signal = {"status": "success", "files_changed": ["spec/context.md"], "summary": "wrote it"}
    bench = Bench(
        tmp_path,
        uses(("Write", {"file_path": "../outside", "content": "x"}), ("signal_completion", signal)),
        done("could not write"),
    )
    result = bench.session().run(CONTRACT)
    assert "not taken: Write failed" in bench.requests[1].messages[-1]["content"]
    assert result.completion is not None
    assert result.completion.summary == "could not write"


def test_tool_uses_next_to_a_completion_run_first(tmp_path: Path) -> None:
    signal = {"status": "success", "files_changed": ["a"], "summary": "wrote it"}
    bench = Bench(tmp_path, uses(("signal_completion", signal), ("Write", {"file_path": "a", "content": "x"})))
    result = bench.session().run(CONTRACT)
    assert (tmp_path / "a").read_text() == "x"
    assert result.completion == CompletionSignal("success", ["a"], "wrote it")


def test_after_a_rejection_the_conversation_continues_and_the_signal_has_its_result(tmp_path: Path) -> None:
    bench = Bench(tmp_path, done("first"), done("second"))
    session = bench.session()
    session.run(CONTRACT)
    again = session.run(CONTRACT, "say who the users are")

    first, second = bench.requests
    assert second.messages[:1] == first.messages
    assert [message["role"] for message in second.messages] == ["user", "assistant", "tool", "user"]
    assert second.messages[2]["content"] == "Completion acknowledged."
    assert "say who the users are" in second.messages[3]["content"]
    assert again.completion is not None
    assert again.completion.summary == "second"
    assert again.cost.api_calls == 1
    assert session.rounds == 2
    check_order(session.history)


def test_an_agent_has_only_its_tools_and_completion(tmp_path: Path) -> None:
    bench = Bench(tmp_path, uses(("Write", {"file_path": "a", "content": "x"})), done())
    bench.session("Read", "Grep").run(CONTRACT)
    assert [tool["name"] for tool in bench.requests[0].tools] == ["Read", "Grep", "signal_completion"]
    assert "may not call 'Write'; it has Read, Grep" in bench.requests[1].messages[-1]["content"]
    assert not (tmp_path / "a").exists()


def test_agents_cannot_start_other_agents(tmp_path: Path) -> None:
    bench = Bench(tmp_path, uses(("Task", {"agent": "executor"})), done())
    bench.session("Read", "Task", "Agent(executor)").run(CONTRACT)
    assert [tool["name"] for tool in bench.requests[0].tools] == ["Read", "signal_completion"]
    assert bench.requests[1].messages[-1]["content"].startswith("there is no tool 'Task'")
    assert any("agents cannot start other agents" in line for line in bench.logged)


def test_replies_are_not_streamed(tmp_path: Path) -> None:
    bench = Bench(tmp_path, done())
    bench.session().run(CONTRACT)
    assert bench.requests[0].on_delta is None


def test_a_stopped_workflow_ends_before_the_next_tool_use(tmp_path: Path) -> None:
    def reply(_: LLMRequest) -> LLMResponse:
        bench.context.effects.abort()
        return uses(("Write", {"file_path": "a", "content": "x"}))

    bench = Bench(tmp_path, model=Scripted(reply))
    with pytest.raises(RunAborted):
        bench.session().run(CONTRACT)
    assert not (tmp_path / "a").exists()
