"""An agent at work over the real boto3 and a loopback server that speaks Converse (REQ-060…064, REQ-090…093)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.bedrock import BedrockModel
from aeon_core.llm.connect import connect
from tests.aeon_core.llm.converse_server import (
    ACCESS_KEY,
    SECRET_KEY,
    SESSION_TOKEN,
    converse,
    refused,
    set_credentials,
)
from tests.aeon_core.llm.server import Reply, Server
from tests.system2.kit import CONTRACT, Answers, Bench, check_order
from tests.waiting import PATIENCE

MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
DONE = {"status": "success", "files_changed": ["spec/context.md"], "summary": "done"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    set_credentials(monkeypatch)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    running = Server()
    yield running
    running.stop()


def tool_use(name: str, use_id: str, **given: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": use_id, "name": name, "input": given}}


def bench_on(server: Server, root: Path, *replies: Reply, **options: Any) -> Bench:
    server.script(*replies)
    return Bench(root, model=connect(f"bedrock:{MODEL}", base_url=server.url, timeout=PATIENCE), **options)


def test_a_whole_delegation_speaks_converse(server: Server, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("invoices\n")
    bench = bench_on(
        server,
        tmp_path,
        converse(
            {"text": "I look."},
            tool_use("Read", "t1", file_path="README.md"),
            tool_use("Read", "t2", file_path="no"),
            stop="tool_use",
        ),
        converse(tool_use("Write", "t3", file_path="spec/context.md", content="# Context\n"), stop="tool_use"),
        converse(tool_use("signal_completion", "t4", **DONE), stop="tool_use"),
        converse(tool_use("signal_completion", "t5", **DONE), stop="tool_use"),
    )
    session = bench.session("Read", "Write", prompt="You are the coordinator.")
    assert session.run(CONTRACT).files_changed == ("spec/context.md",)
    session.run(CONTRACT, "name the users")
    bench.close()

    first, second, _, again = server.bodies
    assert all("invoke" not in request.path and request.path.endswith("/converse") for request in server.requests)
    assert first["system"][0] == {"text": "You are the coordinator."}
    assert first["messages"][0]["content"] == [{"text": CONTRACT.to_message()}, {"cachePoint": {"type": "default"}}]
    assert first["inferenceConfig"]["maxTokens"] == 8192
    specs = [tool["toolSpec"] for tool in first["toolConfig"]["tools"]]
    assert [spec["name"] for spec in specs] == ["Read", "Write", "signal_completion"]
    assert specs[0]["inputSchema"]["json"]["required"] == ["file_path"]
    results = [block["toolResult"] for block in second["messages"][-1]["content"] if "toolResult" in block]
    assert [(result["toolUseId"], result.get("status", "success")) for result in results] == [
        ("t1", "success"),
        ("t2", "error"),
    ]
    assert "invoices" in results[0]["content"][0]["text"]
    check_order(again["messages"])
    assert "name the users" in json.dumps(again["messages"][-1])
    assert "Completion acknowledged." in json.dumps(again["messages"][-1])


@pytest.mark.parametrize(
    ("refusal", "requests", "waits"),
    [
        (refused("ThrottlingException", "slow down", 429), 4, [1, 2, 4]),
        (refused("ServiceUnavailableException", "later", 503), 3, [1, 2]),
        (refused("InternalServerException", "oops", 500), 3, [1, 2]),
    ],
)
def test_the_number_of_requests_is_exact(
    server: Server, tmp_path: Path, refusal: Reply, requests: int, waits: list[float]
) -> None:
    bench = bench_on(server, tmp_path, *[refusal] * 9)
    with pytest.raises(LLMError) as error:
        bench.session().run(CONTRACT)
    assert (len(server.requests), bench.waits, error.value.exit_code) == (requests, waits, 1)
    assert len(bench.records("api_request")) == requests
    bench.close()


@pytest.mark.parametrize("code", ["UnrecognizedClientException", "ExpiredTokenException", "AccessDeniedException"])
def test_refused_credentials_are_one_request_and_exit_3(server: Server, tmp_path: Path, code: str) -> None:
    answers = Answers()
    bench = bench_on(server, tmp_path, refused(code, "no", 403), questions=answers)
    with pytest.raises(LLMError, match=r"refused|rejected") as error:
        bench.session().run(CONTRACT)
    assert (len(server.requests), error.value.exit_code, answers.asked) == (1, 3, [])
    bench.close()


def test_a_request_that_is_too_long_is_not_a_service_failure(server: Server, tmp_path: Path) -> None:
    too_long = refused("ValidationException", "Input is too long for requested model.")
    bench = bench_on(server, tmp_path, too_long)
    assert bench.session().run(CONTRACT).halted == "context_overflow"
    assert len(server.requests) == 1
    bench.close()


def test_credentials_are_neither_in_the_transcript_nor_in_the_log(server: Server, tmp_path: Path) -> None:
    bench = bench_on(server, tmp_path, refused("UnrecognizedClientException", f"bad token {SESSION_TOKEN}", 403))
    with pytest.raises(LLMError) as error:
        bench.session().run(CONTRACT)
    assert bench.transcript.path is not None
    told = [bench.transcript.path.read_text(), *bench.logged, error.value.message]
    assert not any(secret in text for text in told for secret in (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN))
    bench.close()


def test_a_conversation_continues_after_an_empty_or_thinking_only_reply(server: Server, tmp_path: Path) -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "I should write it now.", "signature": "s"}}}
    use = tool_use("Glob", "t1", pattern="*")
    signal = tool_use("signal_completion", "t2", **DONE)
    bench = bench_on(
        server,
        tmp_path,
        converse(thought),
        converse(use, stop="tool_use"),
        converse(),
        converse(signal, stop="tool_use"),
    )
    session = bench.session()
    assert session.run(CONTRACT).completion is not None
    assert len(server.requests) == 4
    check_order(session.history)
    bench.close()


def test_nothing_but_the_endpoint_is_called(server: Server, tmp_path: Path) -> None:
    # The test setup raises for any other address.
    bench = bench_on(server, tmp_path, converse({"text": "nothing to do"}))
    assert isinstance(bench.model, BedrockModel)
    bench.session().run(CONTRACT)
    assert len(server.requests) == 1
    bench.close()
