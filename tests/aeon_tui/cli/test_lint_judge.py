"""`lint --judge`: the model's issues beside the rules', its cost, and what happens where it fails (contract: lint)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import LLMError
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ModelChain
from tests.aeon_core.llm.server import Reply, Server
from tests.aeon_tui.cli.conftest import Cli
from tests.fakes import ScriptedModel

ADD = {"operation": "add", "a": 5, "b": 10}
SOUND = {
    "goal": "Add 5 and 10",
    "steps": [{"step_id": "s1", "description": "Add 5 and 10", "tool": "calculator", "arguments": ADD}],
}
UNKNOWN = {"goal": "Add 5 and 10", "steps": [{"step_id": "s1", "description": "Add 5 and 10", "tool": "adder"}]}
KEY = "sk-" + "x" * 30


def issue(kind: str = "relevance", severity: str = "high", step_id: str | None = "s1") -> dict[str, Any]:
    return {
        "issue_id": "j1",
        "type": kind,
        "severity": severity,
        "description": "the sum is not asked for",
        "location": {"artifact": "plan", "step_id": step_id},
        "proposed_repair": "ask for it",
    }


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr("aeon_tui.sessions.judge_model.time.sleep", lambda _seconds: None)
    started = Server()
    yield started
    started.stop()


@pytest.fixture
def judged_by(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(model: LLMAdapter) -> None:
        monkeypatch.setattr("aeon_tui.cli.lint.connect_model", lambda _config: model)

    return use


def written(plan: dict[str, Any]) -> str:
    Path("plan.json").write_text(json.dumps(plan), encoding="utf-8")
    return "plan.json"


def chat(text: str, **usage: int) -> Reply:
    message = {"role": "assistant", "content": text}
    return Reply(
        {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "local",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": 40, "total_tokens": 940} | usage,
        }
    )


def through(server: Server, *more: str) -> tuple[str, ...]:
    return ("lint", written(SOUND), "--judge", "--model", "openai:local", "--base-url", f"{server.url}/v1", *more)


def test_the_models_issues_are_added_and_its_tokens_reported_on_stderr(cli: Cli, server: Server) -> None:
    server.script(chat(json.dumps({"issues": [issue()]})))
    done = cli(*through(server))
    assert done.code == 1
    assert done.out.startswith("high   relevance  s1: the sum is not asked for\n       → ask for it\n")
    assert done.err == "judged by openai:local · 900 tokens in, 40 out · price unknown\n"
    [asked] = server.bodies
    assert asked["messages"][0]["content"].startswith("Aeon review\n")


def test_json_stays_one_document(cli: Cli, server: Server) -> None:
    server.script(chat(json.dumps({"issues": [issue(severity="low")]})))
    done = cli(*through(server, "--json"))
    report = json.loads(done.out)
    assert done.code == 0
    assert [found["description"] for found in report["issues"]] == ["the sum is not asked for"]
    assert (report["overall_severity"], report["issue_summary"]["relevance"]) == ("low", 1)
    assert done.err.startswith("judged by openai:local")


def test_the_cost_of_a_priced_model_is_reported(cli: Cli, server: Server) -> None:
    Path("prices.yml").write_text("prices: {local: {input: 10, output: 100}}", encoding="utf-8")
    server.script(chat('{"issues": []}'))
    assert cli(*through(server, "--config", "prices.yml")).err.endswith("900 tokens in, 40 out · $0.0130\n")


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ([Reply({"error": {"message": "overloaded"}}, status=529)] * 3, "no model reviewed the plan: openai:local: "),
        ([chat("no issues from me")], "no model reviewed the plan: the review cannot be read: "),
    ],
    ids=["fails", "prose"],
)
def test_a_failing_judge_causes_a_warning_and_lint_continues(
    cli: Cli, server: Server, replies: list[Reply], said: str
) -> None:
    server.script(*replies)
    done = cli(*through(server))
    assert (done.code, done.out) == (0, "plan.json: no issues\n")
    assert f"warning: {said}" in done.err
    assert len(server.requests) == len(replies)


def test_retryable_calls_are_retried(cli: Cli, server: Server) -> None:
    server.script(Reply({"error": {"message": "busy"}}, status=429), chat('{"issues": []}'))
    done = cli(*through(server))
    assert done.code == 0
    assert "warning: attempt 1 failed: " in done.err
    assert "; retrying in 1 s\n" in done.err


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_model_that_cannot_be_used_is_exit_3_and_one_line(cli: Cli, server: Server, status: int) -> None:
    server.script(Reply({"error": {"message": "no"}}, status=status))
    done = cli(*through(server, "--json"))
    assert (done.code, done.out) == (3, "")
    assert [line for line in done.err.splitlines() if line.startswith("aeon-tui: ")] == done.err.splitlines()[-1:]


@pytest.mark.parametrize(
    ("options", "said"),
    [((), "no model is configured"), (("--model", "openai:gpt-9"), "set OPENAI_API_KEY")],
    ids=["none", "no-key"],
)
def test_without_a_usable_model_it_is_exit_3_and_one_line(cli: Cli, options: tuple[str, ...], said: str) -> None:
    done = cli("lint", written(SOUND), "--judge", *options)
    assert (done.code, done.out, done.err.count("\n")) == (3, "", 1)
    assert said in done.err


def test_without_judge_no_model_is_called(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_MODEL", "openai:gpt-9")
    done = cli("lint", written(SOUND))
    assert (done.code, done.err) == (0, "")


def test_the_simulated_model_judges_and_is_labelled(cli: Cli) -> None:
    done = cli("lint", written(SOUND), "--judge", "--model", "simulated:default")
    assert done.code == 0
    assert done.err.startswith("judged by simulated:default (simulated) · ")
    assert done.err.endswith(" out · $0.00\n")


def test_issues_of_the_model_follow_those_of_exact_checks(cli: Cli, judged_by: Any) -> None:
    judged_by(ScriptedModel(review={"issues": [issue("relevance", "medium"), issue("consistency", step_id="s9")]}))
    found = json.loads(cli("lint", written(UNKNOWN), "--judge", "--json").out)["issues"]
    assert [entry["type"] for entry in found] == ["hallucination", "relevance", "consistency"]
    assert [entry["issue_id"] for entry in found] == ["issue-1", "issue-2", "issue-3"]
    assert [entry["location"]["step_id"] for entry in found] == ["s1", "s1", None]


def test_a_custom_judge_prompt_is_used(cli: Cli, judged_by: Any) -> None:
    Path("prompts").mkdir()
    Path("prompts/review.md").write_text("Be strict.", encoding="utf-8")
    Path("own.yml").write_text("prompts_dir: prompts", encoding="utf-8")
    model = ScriptedModel(review={"issues": []})
    judged_by(model)
    assert cli("lint", written(SOUND), "--judge", "--config", "own.yml").code == 0
    assert model.requests[0].system == "Aeon review\n\nBe strict.\n"


def test_no_call_is_made_that_might_cost_more_than_the_budget(cli: Cli, server: Server) -> None:
    Path("prices.yml").write_text("prices: {local: {input: 10, output: 100}}", encoding="utf-8")
    done = cli(*through(server, "--config", "prices.yml", "--budget", "0.0001"))
    assert (done.code, done.out, server.requests) == (4, "", [])
    assert "raise it with --budget" in done.err
    assert cli(*through(server, "--budget", "1")).code == 2


class Broken(LLMAdapter):
    """A model that says what it was paid for and fails."""

    model = "scripted:first"

    def complete(self, request: LLMRequest) -> LLMResponse:
        raise LLMError(f"refused, {KEY}", usage={"input_tokens": 7, "output_tokens": 1})


def test_the_next_model_of_a_chain_judges_and_no_key_is_shown(cli: Cli, judged_by: Any) -> None:
    judged_by(ModelChain([Broken(), ScriptedModel(review={"issues": []})]))
    done = cli("lint", written(SOUND), "--judge")
    assert done.code == 0
    assert "scripted:first failed: refused, " in done.err
    assert "falling back to scripted:test" in done.err
    assert "judged by scripted:test · 7 tokens in, 1 out" in done.err
    assert KEY not in done.err
