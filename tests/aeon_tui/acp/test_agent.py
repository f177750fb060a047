"""`aeon-tui acp` as an editor sees it: driven by the protocol's own client, as a process or in this one."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aeon_core import RunConfig, ToolRegistry, tool
from aeon_core.runs.factory import build_tools
from aeon_tui.cli.acp import _runs
from aeon_tui.cli.main import main
from aeon_tui.cli.parser import build_parser
from aeon_tui.sessions.served_runs import ServedRuns
from aeon_tui.sources.base import read_journal
from tests.aeon_core.kernel.test_passes import model
from tests.aeon_tui.cli.conftest import Cli, environment, process
from tests.fakes import steps
from tests.npm import install
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import acp
    from acp import schema

pytestmark = pytest.mark.usefixtures("default_signals", "programs_on_path")
MODEL = ("--model", "simulated:default")


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    """Import the SDK before the first test: every worker imports this file, and few of them run its tests."""
    global acp, schema
    pytest.importorskip("acp")
    import acp
    from acp import schema


class Editor:
    """A client that keeps what it is sent and answers questions with the option of a name."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[tuple[str, list[str]]] = []
        self.answers: list[str] = []
        self.chosen: str | None = None
        """The id of the option to answer with, offered or not."""
        self.on_question: Callable[[], Any] | None = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append({"session": session_id, **update.model_dump(by_alias=True, exclude_none=True)})

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> schema.RequestPermissionResponse:
        title = self.calls()[tool_call.tool_call_id]["title"]
        self.asked.append((title, [option.name for option in options]))
        if self.chosen is not None:
            return schema.RequestPermissionResponse(
                outcome=schema.AllowedOutcome(outcome="selected", option_id=self.chosen)
            )
        if not self.answers:
            if self.on_question is not None:
                await self.on_question()
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        name = self.answers.pop(0)
        chosen = next(option.option_id for option in options if option.name == name)
        return schema.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.of(kind))

    def plan(self) -> list[tuple[str, str]]:
        return [(entry["content"], entry["status"]) for entry in self.of("plan")[-1]["entries"]]

    def calls(self) -> dict[str, dict[str, Any]]:
        """Return each tool call as it is after all updates."""
        found: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update["sessionUpdate"].startswith("tool_call"):
                found.setdefault(update["toolCallId"], {}).update(update)
        return found


@asynccontextmanager
async def process_agent(folder: Path, *options: str) -> AsyncIterator[tuple[Any, Editor]]:
    """Start the agent with a folder of runs of its own; when the editor hangs up, it ends with exit code 0."""
    (folder / ".aeon").mkdir(exist_ok=True)
    editor = Editor()
    command = ("-m", "aeon_tui", "acp", *options, "--runs-dir", str(folder / "runs"))
    started = acp.spawn_agent_process(editor, sys.executable, *command, env=environment())
    async with asyncio.timeout(PATIENCE), started as (connection, process):
        found = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert found.agent_info.name == "aeon"
        assert found.agent_capabilities.load_session
        yield connection, editor
        process.stdin.close()
        assert await process.wait() == 0
        assert await process.stderr.read() == b""


class Wire:
    """One end of a connection within this process."""

    def __init__(self) -> None:
        self._received: asyncio.Queue[str] = asyncio.Queue()
        self.other = self

    async def send(self, message: dict[str, Any]) -> None:
        self.other._received.put_nowait(json.dumps(message, default=str))

    async def receive(self) -> dict[str, Any] | None:
        message: dict[str, Any] | None = json.loads(await self._received.get())
        return message

    async def close(self) -> None:
        self.other._received.put_nowait("null")


@asynccontextmanager
async def agent(folder: Path, *options: str) -> AsyncIterator[tuple[Any, Editor]]:
    """Serve an editor from this process: as the command does, but for standard input and output."""
    from aeon_tui.acp import AeonAgent

    (folder / ".aeon").mkdir(exist_ok=True)
    args = build_parser("acp").parse_args(["acp", *options, "--runs-dir", str(folder / "runs")])
    editor, here, there = Editor(), Wire(), Wire()
    here.other, there.other = there, here
    served = AeonAgent(lambda cwd: _runs(args, cwd), "1")
    async with asyncio.timeout(PATIENCE):
        serving = asyncio.create_task(served.serve(there))
        connection = acp.connect_to_agent(editor, here)
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield connection, editor
        await here.close()
        await serving
        await served.close()
        await connection.close()


@pytest.mark.exhaustive
async def test_a_prompt_starts_a_run_that_the_editor_shows_controls_and_reloads(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    async with process_agent(tmp_path, *MODEL, "--tools", "files") as (connection, editor):
        session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert [mode.id for mode in session.modes.available_modes] == ["passes", "single", "plan"]
        editor.answers = ["Write it", "Accept the result"]
        done = await connection.prompt(
            session_id=session.session_id, prompt=[acp.text_block("write 'two' to notes.txt")]
        )
        assert done.stop_reason == "end_turn"
        assert editor.asked == [
            ("Write notes.txt", ["Write it", "Always allow Write(notes.txt)", "Refuse it", "End here, not finished"]),
            (
                "Finished: the requirement is met",
                ["Accept the result", "Tell it what to fix", "Run this pass again", "End here, not finished"],
            ),
        ]
        assert (tmp_path / "notes.txt").read_text() == "two"
        statuses = [update["entries"][0]["status"] for update in editor.of("plan")]
        assert statuses == ["pending", "in_progress", "completed"]
        call = next(call for call in editor.calls().values() if call["title"] == "Write notes.txt")
        assert (call["kind"], call["status"]) == ("edit", "completed")
        file = str(tmp_path / "notes.txt")
        assert call["content"][0] == {"type": "diff", "path": file, "oldText": "one\ntwo", "newText": "two"}
        assert call["locations"] == [{"path": file}]
        assert call["rawOutput"]["bytes"] == 3
        answer = [update["content"]["text"] for update in editor.of("agent_message_chunk")]
        assert len(answer) > 2, "the answer streams"
        assert "".join(answer[:-1]) == "- file path: notes.txt\n- bytes: 3\n- lines: 1\n- created: false"
        see = f"`aeon-tui show {tmp_path}/runs/{session.session_id}.jsonl`"
        assert answer[-1] == f"\n\n---\nrun converged · 1 pass · simulated model · {see}"
        assert not editor.of("user_message_chunk")

        shown, editor.answers = editor.text(), ["Accept the result"]
        prompt = [acp.text_block("read "), acp.resource_link_block("notes.txt", f"file://{file}")]
        await connection.prompt(session_id=session.session_id, prompt=prompt)
        assert any(call["kind"] == "read" for call in editor.calls().values())
        shown = editor.text()
    async with agent(tmp_path, *MODEL) as (connection, editor):
        listed = (await connection.list_sessions(cwd=str(tmp_path))).sessions
        assert {each.session_id for each in listed} == {session.session_id, f"{session.session_id}-2"}
        await connection.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
        assert editor.text() == shown
        assert editor.text("user_message_chunk") == f"write 'two' to notes.txtread {file}"
        assert editor.plan()[0][1] == "completed"


async def test_modes_words_and_refusals(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL, "--tools", "files") as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        with pytest.raises(acp.RequestError, match="unknown mode 'fast'; choose from passes, single, plan"):
            await connection.set_session_mode(session_id=session, mode_id="fast")

        await connection.set_session_mode(session_id=session, mode_id="plan")
        editor.answers = ["Tell it what to change"]
        done = await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        assert done.stop_reason == "end_turn"
        assert editor.asked[0][0].startswith("Run this plan? ")
        assert editor.text().endswith("What should change? The run is waiting for your next message.")
        waiting = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.answers = ["Tell it what to fix"]
        await connection.prompt(session_id=waiting, prompt=[acp.text_block("add 5 and 10")])
        await connection.load_session(cwd=str(tmp_path), session_id=waiting, mcp_servers=[])
        assert journal(tmp_path, waiting)[-1]["result"]["status"] == "aborted", "a session has one run"
        editor.answers = ["Run this plan", "Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("multiply them, please")])
        records = journal(tmp_path, session)
        told = [record.get("feedback") for record in records if record.get("state") == "decided"]
        assert told == ["multiply them, please", None, None]

        await connection.set_session_mode(session_id=session, mode_id="single")
        editor.asked.clear()
        editor.answers = ["Refuse it"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("write 'hi' to new.txt")])
        assert [title for title, _ in editor.asked] == ["Write new.txt"]
        assert not (tmp_path / "new.txt").exists()
        assert editor.plan() == [("Write 'hi' to new.txt (failed)", "completed")]
        assert next(call for call in editor.calls().values() if call["title"] == "Write new.txt")["status"] == "failed"
        started = journal(tmp_path, f"{session}-2")[0]
        assert started["config"]["single_pass"]
        assert started["task"] == "write 'hi' to new.txt"
        assert started["memory"] == {
            "earlier-prompt-1": {"asked": "add 5 and 10", "answered": "The sum of 5 and 10 is 15."}
        }
        records = read_journal(tmp_path / "runs" / f"{session}-2.jsonl", [])
        planning = next(record["request"] for record in records if record.get("purpose") == "plan")
        assert "The sum of 5 and 10 is 15." in str(planning)

        editor.answers = ["Always allow Write(new.txt)"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("write 'hi' to new.txt")])
        assert (tmp_path / "new.txt").read_text() == "hi"
        allowed = next(record["allow"] for record in journal(tmp_path, f"{session}-3") if record.get("allow"))
        assert allowed == {"rule": "Write(new.txt)", "scope": "run"}
        editor.asked.clear()
        await connection.prompt(session_id=session, prompt=[acp.text_block("write 'ho' to new.txt")])
        assert (editor.asked, (tmp_path / "new.txt").read_text()) == ([], "ho")


async def test_cancel_ends_a_waiting_run_and_one_with_a_silent_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        async with agent(tmp_path, "--tools", "files") as (connection, editor):
            session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            with pytest.raises(acp.RequestError, match="no model is configured; set one with --model"):
                await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        async with agent(tmp_path, "--model", "openai:m", "--base-url", url) as (connection, editor):
            session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            prompting = asyncio.create_task(
                connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
            )
            while not editor.of("agent_thought_chunk"):
                await asyncio.sleep(0.01)
            with pytest.raises(acp.RequestError, match="a prompt is in progress in this session"):
                await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
            await connection.cancel(session_id=session)
            assert (await prompting).stop_reason == "cancelled"
            assert journal(tmp_path, session)[-1]["result"]["status"] == "aborted"
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.on_question = lambda: connection.cancel(session_id=session)
        done = await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        assert done.stop_reason == "cancelled"
        assert journal(tmp_path, session)[-1]["result"]["status"] == "aborted"


async def test_cancel_ends_a_command_in_progress_and_the_editor_sees_it_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {"tool": "Bash", "arguments": {"command": "touch begun; sleep 600; touch late"}}
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: model(plan=steps(call)))
    async with agent(tmp_path, *MODEL, "--tools", "shell") as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.answers = ["Run it"]
        prompting = asyncio.create_task(connection.prompt(session_id=session, prompt=[acp.text_block("wait")]))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        await connection.cancel(session_id=session)
        assert (await prompting).stop_reason == "cancelled"
        (shown,) = editor.calls().values()
        assert shown["status"] == "failed"
        assert "the command was stopped" in shown["content"][0]["content"]["text"]
        assert journal(tmp_path, session)[-1]["result"]["status"] == "aborted"
    assert not (tmp_path / "late").exists()


async def test_a_call_that_does_not_end_at_a_cancel_is_shown_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ends, call = threading.Event(), threading.Event(), {"tool": "wait", "arguments": {}}

    @tool(effect="pure")
    def wait() -> None:
        """Wait."""
        begun.set()
        ends.wait(PATIENCE)

    monkeypatch.setattr("aeon_tui.acp.ENDING_SECONDS", 0.0)
    monkeypatch.setattr("aeon_core.runs.factory.build_tools", lambda _: ToolRegistry([wait]))
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: model(plan=steps(call)))
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        prompting = asyncio.create_task(connection.prompt(session_id=session, prompt=[acp.text_block("wait")]))
        await asyncio.to_thread(begun.wait, PATIENCE)
        await connection.cancel(session_id=session)
        assert (await prompting).stop_reason == "cancelled"
        (shown,) = editor.calls().values()
        assert (shown["status"], shown["content"][0]["content"]["text"]) == (
            "failed",
            "The call has not ended yet; the run's journal will hold its outcome.",
        )
        ends.set()


async def test_a_session_without_a_prompt_is_loaded_by_another_process(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
    async with agent(tmp_path, *MODEL) as (connection, editor):
        await connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert editor.text() == "Nothing has been run in this conversation."
        editor.answers = ["Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        assert journal(tmp_path, session)[-1]["result"]["status"] == "converged"
        for unknown in ("nosuch", "../runs/x", f"{session}-2"):
            with pytest.raises(acp.RequestError, match="there is no session"):
                await connection.load_session(cwd=str(tmp_path), session_id=unknown, mcp_servers=[])


async def test_a_prompt_right_after_a_cancelled_question_starts_the_next_run(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.answers = ["Tell it what to fix", "Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        await connection.cancel(session_id=session)
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 6 and 10")])
        statuses = [journal(tmp_path, run)[-1]["result"]["status"] for run in (session, f"{session}-2")]
        assert statuses == ["aborted", "converged"]


async def test_a_loaded_session_runs_as_configured(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL, "--single-pass") as (connection, _editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        loaded = await connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert loaded.modes.current_mode_id == "single"
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 6 and 10")])
        assert journal(tmp_path, f"{session}-2")[0]["config"]["single_pass"]


async def test_only_the_runs_of_a_folder_are_its_sessions(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL, "--single-pass") as (connection, _editor):
        started = {}
        for folder in (tmp_path / "a", tmp_path / "b"):
            folder.mkdir()
            started[folder] = (await connection.new_session(cwd=str(folder), mcp_servers=[])).session_id
            await connection.prompt(session_id=started[folder], prompt=[acp.text_block("add 5 and 10")])
        (tmp_path / "link").symlink_to("b")
        for folder, ids in {"a": ["a"], "b": ["b"], "link": ["b"], ".": []}.items():
            listed = (await connection.list_sessions(cwd=str(tmp_path / folder))).sessions
            assert [each.session_id for each in listed] == [started[tmp_path / each] for each in ids]


@pytest.mark.exhaustive
async def test_a_decision_in_a_terminal_closes_the_editors_question(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL, "--tools", "files", "--approve", "tool") as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id

        async def decide_elsewhere() -> None:
            command = ("decide", session, "approve", "--runs-dir", str(tmp_path / "runs"))
            assert (await asyncio.to_thread(process, *command)).returncode == 0
            await asyncio.Event().wait()  # the editor's own question stays open

        editor.on_question = decide_elsewhere
        done = await connection.prompt(session_id=session, prompt=[acp.text_block("write 'hi' to new.txt")])
        assert (done.stop_reason, (tmp_path / "new.txt").read_text()) == ("end_turn", "hi")
        assert next(iter(editor.calls().values()))["status"] == "completed"


async def test_feedback_on_a_question_decided_elsewhere_gets_a_reply(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await connection.set_session_mode(session_id=session, mode_id="plan")
        editor.answers = ["Tell it what to change"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        command = ("decide", session, "approve", "--runs-dir", str(tmp_path / "runs"))
        assert (await asyncio.to_thread(process, *command)).returncode == 0
        editor.answers = ["Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("multiply them, please")])
        assert editor.text().count("Decided elsewhere: your message was not used.") == 1
        assert journal(tmp_path, session)[-1]["result"]["status"] == "converged"


async def test_an_answer_that_was_not_offered_ends_the_run(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL, "--tools", "files") as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.chosen = "sudo"
        await connection.prompt(session_id=session, prompt=[acp.text_block("write 'hi' to new.txt")])
        assert "the client answered 'sudo'" in editor.text()
        assert (journal(tmp_path, session)[-1]["result"]["status"], (tmp_path / "new.txt").exists()) == (
            "aborted",
            False,
        )


async def test_the_question_of_a_killed_process_is_not_pending_in_a_loaded_session(tmp_path: Path) -> None:
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.answers = ["Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        lines = (tmp_path / "runs" / f"{session}.jsonl").read_text().splitlines(keepends=True)
        asked = next(n for n, line in enumerate(lines) if json.loads(line).get("state") == "asked")
        (tmp_path / "runs" / "cut.jsonl").write_text("".join(lines[: asked + 1]).replace(session, "cut"))
        editor.updates.clear()
        await connection.load_session(cwd=str(tmp_path), session_id="cut", mcp_servers=[])
        question = list(editor.calls().values())[-1]
        assert question["status"] == "failed"
        note = question["content"][0]["content"]["text"]
        assert note.startswith("The run's process has ended; continue it with `aeon-tui resume ")


@pytest.mark.exhaustive
async def test_an_editor_that_hangs_up_ends_its_runs(tmp_path: Path) -> None:
    hung_up = asyncio.Event()

    async def wait() -> None:
        hung_up.set()
        await asyncio.Event().wait()

    async with process_agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        editor.on_question = wait
        prompting = asyncio.create_task(connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")]))
        await hung_up.wait()
    prompting.cancel()
    assert journal(tmp_path, session)[-1]["result"]["status"] == "aborted"


@pytest.mark.exhaustive
async def test_the_editors_mcp_servers_are_tools_of_the_run(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server import MCPServer\nserver = MCPServer('shouts')\n"
        "@server.tool()\ndef shout(text: str) -> str:\n    return text.upper()\nserver.run()\n"
    )
    offered = schema.McpServerStdio(
        name="my shouts", command=sys.executable, args=[str(server)], env=[schema.EnvVariable(name="A", value="b")]
    )
    async with agent(tmp_path, *MODEL) as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[offered])).session_id
        editor.answers = ["Accept the result"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        assert [tool["name"] for tool in journal(tmp_path, session)[0]["tools"]][2:] == ["mcp__my-shouts__shout"]


async def test_a_server_of_the_editor_that_cannot_be_used_is_left_out_and_named(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    broken = [
        schema.McpServerStdio(name=name, command=str(tmp_path / name), args=[], env=[]) for name in ("one", "two")
    ]
    async with agent(tmp_path, *MODEL, "--single-pass") as (connection, editor):
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=broken)).session_id
        done = await connection.prompt(session_id=session, prompt=[acp.text_block("add 5 and 10")])
        notices, _, answer = editor.text().partition("The sum of 5 and 10 is 15.")
        assert (done.stop_reason, bool(answer)) == ("end_turn", True)
        for name in ("one", "two"):
            assert f"without an MCP server of the editor: cannot use the MCP server '{name}': its command '" in notices
        assert [tool["name"] for tool in journal(tmp_path, session)[0]["tools"]] == ["echo", "calculator"]
        await connection.prompt(session_id=session, prompt=[acp.text_block("add 6 and 10")])
        assert editor.text().count("MCP server of the editor") == 2


async def test_tools_that_are_loaded_after_their_prompt_was_cancelled_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, may_load, closed = threading.Event(), threading.Event(), threading.Event()

    def load(config: RunConfig) -> ToolRegistry:
        loading.set()
        may_load.wait(PATIENCE)
        registry = build_tools(config)
        registry.closes_with(closed.set)
        return registry

    monkeypatch.setattr("aeon_core.runs.factory.build_tools", load)
    runs = ServedRuns(RunConfig(model="simulated:default"), tmp_path)
    starting = asyncio.create_task(runs.start("add 5 and 10"))
    assert await asyncio.to_thread(loading.wait, PATIENCE)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    may_load.set()
    assert await asyncio.to_thread(closed.wait, PATIENCE)
    assert not runs.live


async def test_a_list_of_runs_does_not_wait_for_a_run_that_loads_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, may_load = threading.Event(), threading.Event()

    def load(config: RunConfig) -> ToolRegistry:
        loading.set()
        may_load.wait(PATIENCE)
        return build_tools(config)

    monkeypatch.setattr("aeon_core.runs.factory.build_tools", load)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    runs = ServedRuns(RunConfig(model="simulated:default"), tmp_path)
    starting = asyncio.create_task(runs.start("add 5 and 10"))
    try:
        while not loading.is_set():
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE / 2):
            assert await runs.past() == []
    finally:
        may_load.set()
        await starting
        await runs.close()


@pytest.mark.exhaustive
def test_an_editor_with_the_library_from_npm_runs_a_task(tmp_path: Path) -> None:
    install("@agentclientprotocol/sdk@2", tmp_path)
    editor = shutil.copy(Path(__file__).with_name("editor.mjs"), tmp_path)
    (tmp_path / "project" / ".aeon").mkdir(parents=True)
    agent = (sys.executable, "-m", "aeon_tui", "acp", *MODEL, "--tools", "files", "--runs-dir", str(tmp_path / "runs"))
    done = subprocess.run(
        ["node", str(editor), str(tmp_path / "project"), *agent],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    assert (seen["modes"], seen["stopReason"]) == (["passes", "single", "plan"], "end_turn")
    assert [names[0] for names in seen["asked"]] == ["Run this plan", "Write it", "Accept the result"]
    assert [each["status"] for each in seen["updates"] if each.get("kind") == "edit"] == ["pending"]
    assert {"plan", "tool_call_update", "agent_message_chunk"} <= {each["sessionUpdate"] for each in seen["updates"]}
    assert (tmp_path / "project" / "hi.txt").read_text() == "hi"


@pytest.mark.exhaustive
def test_tools_of_a_sessions_project_are_not_loaded_at_startup(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aeon_tui", "acp", "--model", "simulated:default", "--tools", "nosuch:tool"]
    done = subprocess.run(command, input="", text=True, capture_output=True, env=environment(), cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.exhaustive
def test_an_invalid_message_is_answered_with_an_error(tmp_path: Path) -> None:
    def request(number: int, method: str, **params: Any) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    lines = [
        "nonsense",
        "[1, 2]",
        "{}",
        '{"jsonrpc": "2.0", "id": {}, "method": "initialize"}',
        '{"jsonrpc": "2.0", "method": "session/cancel", "params": []}',
        '{"jsonrpc": "2.0", "id": 6, "method": 5}',
        '{"jsonrpc": "2.0", "id": 0, "error": "refused"}',
        request(1, "session/fly"),
        request(2, "session/new", cwd=5),
        request(3, "session/new", cwd="here", mcpServers=[]),
        request(4, "session/prompt", sessionId="none", prompt=[]),
        request(5, "session/load", sessionId="../x", cwd=str(tmp_path), mcpServers=[]),
    ]
    agent = subprocess.Popen(
        [sys.executable, "-m", "aeon_tui", "acp", "--runs-dir", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert agent.stdin is not None
    assert agent.stdout is not None
    agent.stdin.write("\n".join([*lines, ""]))
    agent.stdin.flush()
    replies = [json.loads(agent.stdout.readline()) for _ in range(11)]
    out, err = agent.communicate(timeout=PATIENCE)
    assert (agent.returncode, out, err) == (0, "", "")
    codes = {reply["id"]: reply["error"]["code"] for reply in replies if reply["id"] is not None}
    assert codes == {1: -32601, 2: -32602, 3: -32602, 4: -32002, 5: -32002, 6: -32600}
    assert [reply["error"]["code"] for reply in replies if reply["id"] is None] == [-32700, *[-32600] * 4]
    assert "'here'; expected the absolute path of a folder" in json.dumps(replies)


def test_without_the_package_one_line_says_how_to_install_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("acp.", "aeon_tui.acp"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "acp", None)
    done = cli("acp")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("aeon-tui: `aeon-tui acp` needs ")
    assert "aeon-tui[acp]" in done.err


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_stream_that_is_closed_from_the_start_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["acp", *MODEL]) == 2
    monkeypatch.undo()
    why = "standard input or output is closed; acp talks to an editor over both"
    assert capsys.readouterr().err == f"aeon-tui: {why}\n"


def journal(folder: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs" / f"{run}.jsonl").read_text().splitlines()]


def test_servers_of_an_editor_with_similar_names_are_all_used() -> None:
    from aeon_tui.acp import _servers

    names = ["my server", "my-server", "my_server", "!", "x" * 40]
    offered = [
        schema.McpServerStdio(name=name, command=f"command-{n}", args=[], env=[]) for n, name in enumerate(names)
    ]
    servers = _servers(offered)
    assert list(servers) == ["my-server", "my-server-2", "my-server-3", "server", "x" * 28]
    assert [server["command"] for server in servers.values()] == [f"command-{n}" for n in range(len(names))]
    assert set(RunConfig(mcp_servers=servers).mcp_servers) == set(servers)


def test_files_in_a_prompt_are_named_by_their_paths() -> None:
    from aeon_tui.acp import text_of

    linked = [acp.resource_link_block(name="n", uri=uri) for uri in ("file:///d/my%20n%C3%B6te.md", "https://a/b%20c")]
    attached = acp.resource_block(acp.embedded_text_resource("file:///d/100%25.txt", "text"))
    assert text_of([*linked, attached]) == "/d/my nöte.mdhttps://a/b%20c/d/100%.txt\n\nContent of /d/100%.txt:\ntext"


def test_a_binary_file_in_a_prompt_is_refused_by_its_name() -> None:
    from aeon_tui.acp import text_of

    attached = acp.resource_block(acp.embedded_blob_resource("file:///d/a%20b.pdf", "aGk="))
    with pytest.raises(acp.RequestError, match=r"^a prompt cannot hold '/d/a b\.pdf', which is not text; "):
        text_of([acp.text_block("sum up "), attached])


@pytest.mark.parametrize("tail", ["; rm -rf src", "\n````\n<!-- rm -rf src -->"], ids=["long", "markup"])
def test_all_of_a_command_that_its_title_does_not_show_is_in_the_call(tail: str) -> None:
    from aeon_tui.acp import Updates

    command = f"echo {'x' * 200}{tail}"
    subject = {"tool_name": "Bash", "arguments": {"command": command}, "reason": "why"}
    asked = {"run": "r", "seq": 1, "type": "approval", "point": "tool", "state": "asked", "pass": 1, "subject": subject}
    (call,) = Updates(Path("/project"))._approval(asked)
    assert call.title.endswith("x…")
    fence = "`````" if "`" in tail else "```"
    assert [each.content.text for each in call.content] == [f"{fence}sh\n{command}\n{fence}", "why"]


def test_a_diff_that_is_cut_says_so_in_the_editor() -> None:
    from aeon_tui.acp import Updates

    note = "… [changes after line 5000 are not shown]"
    preview = {"diff": f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n{note}"}
    subject = {"tool_name": "Edit", "arguments": {"file_path": "a.py"}, "reason": "why", "preview": preview}
    asked = {"run": "r", "seq": 1, "type": "approval", "point": "tool", "state": "asked", "pass": 1, "subject": subject}
    (call,) = Updates(Path("/project"))._approval(asked)
    assert [each.content.text for each in call.content[1:]] == [note, "why"]
