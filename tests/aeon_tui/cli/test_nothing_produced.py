"""A result that was not produced is never exit 0: replies of a server through the real SDK (contract: exit codes)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aeon_core.kernel.test_passes import PROFILE
from tests.aeon_core.llm.server import Reply, Request, Server
from tests.aeon_tui.cli.conftest import Cli
from tests.sampling import sample

SORRY = "I'm sorry, but I can't help with that."
FILE = {"step_id": "s1", "description": "write the notes", "tool": "Write"}
THOUGHT = {"step_id": "s1", "description": "think of a name", "agent": "llm"}
CHECK = {"evidence": "Heron", "ok": True}
GOOD = {
    "requirements": [{"n": 1, "evidence": "The name is Heron", "met": "yes"}],
    "coherent": CHECK,
    "consistent": dict.fromkeys(("plan", "step", "answer", "memory"), CHECK),
    "suspicions": [],
    "issues": [],
}
NOTES = {"file_path": "notes.md", "content": "hello"}


def chat(content: str | None, finish: str = "stop", **message: Any) -> Reply:
    said = {"role": "assistant", "content": content, **message}
    usage = {"prompt_tokens": 5, "completion_tokens": 5}
    return Reply({"choices": [{"index": 0, "message": said, "finish_reason": finish}], "usage": usage})


class ByPurpose(Server):
    """Answers each purpose as told, whatever the order; without a script as a sound model would."""

    def __init__(self) -> None:
        super().__init__()
        self.by_purpose: dict[str, Reply] = {}
        self.purposes: list[str] = []
        self.plan([THOUGHT, {**THOUGHT, "step_id": "s2", "description": "think it over"}])
        self.says(profile=json.dumps(PROFILE), reason="Heron", answer="The name is Heron.")
        self.says(judge=json.dumps(GOOD), refine='{"actions": [], "follow_up_questions": []}')

    def says(self, **replies: str | Reply) -> None:
        self.by_purpose |= {name: chat(said) if isinstance(said, str) else said for name, said in replies.items()}

    def plan(self, steps: list[dict[str, Any]]) -> None:
        self.says(plan=json.dumps({"goal": "a name", "steps": steps}))

    def next_reply(self, request: Request) -> Reply:
        said = re.match(r"Aeon (\w+)", request.body["messages"][0]["content"])
        self.purposes.append(said[1] if said else "?")
        return self.by_purpose[self.purposes[-1]]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ByPurpose]:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    started = ByPurpose()
    yield started
    started.stop()


def run(cli: Cli, server: ByPurpose, *options: str) -> Any:
    return cli("run", "--headless", "--json", "--model", "openai:x", "--base-url", f"{server.url}/v1", *options, "go")


def test_a_produced_result_is_exit_0(cli: Cli, server: ByPurpose) -> None:
    for options in ((), ("--single-pass",)):
        done = run(cli, server, *options)
        assert (done.code, json.loads(done.out)["answer"]) == (0, "The name is Heron.")


EMPTY = [
    pytest.param(chat(""), id="empty"),
    pytest.param(chat(None), id="null"),
    pytest.param(chat(" \n\t"), id="blank"),
    pytest.param(chat("\u200b\ufeff"), id="unseen"),
    pytest.param(chat("<think>what could it be</think>"), id="thinking"),
    pytest.param(chat(None, refusal=SORRY), id="refusal"),
    pytest.param(chat("The name is", "content_filter"), id="filtered"),
]


@pytest.mark.parametrize("options", [(), ("--single-pass",)], ids=["passes", "single-pass"])
@pytest.mark.parametrize("purpose", ["reason", "answer"])
@pytest.mark.parametrize("reply", sample(EMPTY, 2))
def test_an_empty_step_or_answer(
    cli: Cli, server: ByPurpose, reply: Reply, purpose: str, options: tuple[str, ...]
) -> None:
    server.says(**{purpose: reply})
    done = run(cli, server, *options)
    result = json.loads(done.out)
    assert (done.code, result["status"], result["converged"]) == (5, "not_converged", False)
    assert "aeon-tui: " in done.err
    assert done.err.count("Traceback") == 0
    if purpose == "answer":
        assert result["answer"] is None
    else:
        assert result["steps"][0]["status"] == "failed"
        assert result["steps"][0]["errors"]


@pytest.mark.parametrize("reply", [chat(SORRY), chat(""), chat(None, refusal=SORRY)], ids=["prose", "empty", "refusal"])
@pytest.mark.parametrize("options", [(), ("--single-pass",)], ids=["passes", "single-pass"])
def test_a_tool_that_was_never_called(cli: Cli, server: ByPurpose, reply: Reply, options: tuple[str, ...]) -> None:
    server.plan([FILE])
    server.says(tool_call=reply, repair=reply)
    done = run(cli, server, "--tools", "files", *options)
    assert (done.code, json.loads(done.out)["steps"][0]["status"]) == (5, "failed")
    assert not Path("notes.md").exists()


@pytest.mark.parametrize("reply", [chat(SORRY), chat(""), chat(None, refusal=SORRY)], ids=["prose", "empty", "refusal"])
@pytest.mark.parametrize("options", [(), ("--single-pass",)], ids=["passes", "single-pass"])
def test_no_plan(cli: Cli, server: ByPurpose, reply: Reply, options: tuple[str, ...]) -> None:
    server.says(plan=reply, repair=reply)
    done = run(cli, server, *options)
    assert (done.code, json.loads(done.out)["status"]) == (1, "failed")


@pytest.mark.parametrize(
    "judge",
    [
        '{"issues": [{"type": "relevance", "severity": "high", "description": "it refuses"}]}',
        '{"requirements": [{"n": 1, "evidence": "I can\'t help", "met": "no"}], "issues": []}',
        SORRY,
        "",
    ],
    ids=["issue", "requirement", "prose", "empty"],
)
def test_a_refusal_in_prose_that_the_judge_rejects(cli: Cli, server: ByPurpose, judge: str) -> None:
    server.says(reason=SORRY, answer=SORRY, judge=judge, repair=SORRY)
    done = run(cli, server)
    assert (done.code, json.loads(done.out)["status"]) == (5, "not_converged")


@pytest.mark.exhaustive
def test_the_reason_a_result_was_not_judged_is_one_line(cli: Cli, server: ByPurpose) -> None:
    server.says(judge=Reply({"error": {"message": "no judges today"}}, status=400))
    done = cli("run", "--headless", "--model", "openai:x", "--base-url", f"{server.url}/v1", "go")
    assert done.code == 5
    assert "aeon-tui: not converged after 1 pass: the result was not judged: " in done.err
    assert "warning: not judged: the judge gave no usable verdict: " in done.err
    assert done.err.count("; the answer is available: check it yourself and accept it when asked, or ") == 1
    assert "The name is Heron." in done.out


@pytest.mark.parametrize("options", [(), ("--single-pass",)], ids=["passes", "single-pass"])
def test_a_project_that_cannot_be_written(cli: Cli, server: ByPurpose, options: tuple[str, ...]) -> None:
    # A file is in the folder's place: that holds for root as well.
    Path("docs").write_text("no folder")
    server.plan([{**FILE, "arguments": {**NOTES, "file_path": "docs/notes.md"}}])
    Path("own.yml").write_text("policy: {allow: [Write]}\n")
    done = run(cli, server, "--tools", "files", "--config", "own.yml", *options)
    step = json.loads(done.out)["steps"][0]
    assert (done.code, step["status"]) == (5, "failed")
    assert "docs" in step["errors"][0]
