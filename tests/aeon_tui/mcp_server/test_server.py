"""`aeon-tui mcp-serve` as its clients see it: the protocol's own client over both transports, and one from npm."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from aeon_core.errors import AeonError
from aeon_tui.cli.main import main
from aeon_tui.cli.mcp_serve import _served
from aeon_tui.cli.parser import build_parser
from aeon_tui.platform.stdio_server import serve_until_hung_up
from aeon_tui.sessions.approval_broker import pending_question
from tests.aeon_tui.cli.conftest import Cli, environment, process
from tests.npm import install
from tests.sampling import sample
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    import mcp
    import mcp_types

    from aeon_tui.mcp_server import AeonServer

pytestmark = pytest.mark.usefixtures("default_signals")
MODEL = ("--model", "simulated:default", "--tools", "files")


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    """Import the SDK before the first test: every worker imports this file, and few of them run its tests."""
    global mcp, mcp_types, AeonServer
    pytest.importorskip("mcp")
    import mcp
    import mcp_types

    from aeon_tui.mcp_server import AeonServer


class Person:
    """Answers forms with the choice of a name, and reads what calls report."""

    def __init__(self, *answers: str, reason: str = "") -> None:
        self.answers = list(answers)
        self.reason = reason
        self.forms: list[str] = []
        self.heard: list[str] = []

    async def fill(self, _context: Any, form: Any) -> mcp_types.ElicitResult:
        self.forms.append(form.message)
        if not self.answers:
            return mcp_types.ElicitResult(action="decline")
        choice = self.answers.pop(0)
        assert choice in form.requested_schema["properties"]["answer"]["enum"]
        return mcp_types.ElicitResult(action="accept", content={"answer": choice, "reason": self.reason})

    async def hear(self, _progress: float, _total: float | None, message: str | None) -> None:
        self.heard.append(message or "")


@asynccontextmanager
async def process_client(folder: Path, *options: str, mode: str, person: Person) -> AsyncIterator[mcp.Client]:
    """Start the server as a process, and connect to it, with a person there to be asked."""
    (folder / ".aeon").mkdir(exist_ok=True)
    command = ["-m", "aeon_tui", "mcp-serve", *options, "--runs-dir", str(folder / "runs")]
    # By default its log goes to what was stderr when the SDK was imported, maybe the capture of another test.
    server = mcp.stdio_client(
        mcp.StdioServerParameters(command=sys.executable, args=command, cwd=folder, env=environment()), sys.__stderr__
    )
    async with asyncio.timeout(PATIENCE), mcp.Client(server, mode=mode, elicitation_callback=person.fill) as client:
        yield client


@asynccontextmanager
async def connected(
    folder: Path, *options: str, mode: str = "auto", person: Person | None = None
) -> AsyncIterator[mcp.Client]:
    """Serve from this process, and connect to it: with a person there if the client can ask one."""
    (folder / ".aeon").mkdir(exist_ok=True)
    callback = person.fill if person is not None else None
    with contextlib.chdir(folder):
        args = build_parser("mcp-serve").parse_args(["mcp-serve", *options, "--runs-dir", str(folder / "runs")])
        runs, *given = _served(args)
        server = AeonServer(runs, *given, "1")
        async with asyncio.timeout(PATIENCE):
            async with mcp.Client(server, mode=mode, elicitation_callback=callback) as client:
                yield client
            await runs.close()


async def call(client: mcp.Client, tool: str, person: Person | None = None, **arguments: Any) -> Any:
    """Return what a tool gives; fail with what it says is wrong."""
    done = await client.call_tool(tool, arguments, progress_callback=person.hear if person is not None else None)
    assert not done.is_error, done.content
    found = done.structured_content
    return found["result"] if set(found) == {"result"} else found


async def refused(client: mcp.Client, tool: str, **arguments: Any) -> str:
    done = await client.call_tool(tool, arguments)
    assert done.is_error
    return str(done.content[0].text)


def journal(folder: Path, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs" / f"{run}.jsonl").read_text().splitlines()]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("mode", "version"), sample([("auto", "2026-07-28"), ("legacy", "2025-11-25")], rows=True))
async def test_a_run_asks_the_person_at_the_client(tmp_path: Path, mode: str, version: str) -> None:
    person = Person("Write it", "Refuse it, and say why", reason="not this file")
    async with process_client(tmp_path, *MODEL, mode=mode, person=person) as client:
        assert client.protocol_version == version
        done = await call(client, "run", person, task="write 'hey' to out.txt")
        assert (done["status"], (tmp_path / "out.txt").read_text()) == ("converged", "hey")
        assert person.forms[0].startswith(f"Run {done['run_id']}: Write out.txt?\n")
        assert "content: hey" in person.forms[0]
        assert {"pass 1: planning", "s1: Write 'hey' to out.txt"} <= set(person.heard)
        decided = [record for record in journal(tmp_path, done["run_id"]) if record.get("state") == "decided"]
        assert [record["decision"] for record in decided] == ["approve"]

        refusal = await call(client, "run", person, task="write 'ho' to out.txt", single_pass=True, ttl=9)
        assert (refusal["status"], refusal["ttl"]["limit"]) == ("not_converged", 9)
        assert "not this file" in refusal["steps"][0]["errors"][0]
        assert (tmp_path / "out.txt").read_text() == "hey"

        dismissed = await call(client, "run", person, task="write 'ho' to out.txt")
        assert (dismissed["status"], (tmp_path / "out.txt").read_text()) == ("aborted", "hey")


async def test_no_tool_can_answer_a_question(tmp_path: Path) -> None:
    person = Person()
    async with connected(tmp_path, *MODEL) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"run", "lint", "show", "runs", "decide", "replay_check", "calibrate"}
        assert not [name for name, tool in tools.items() if "\n " in (tool.description or "\n ")]
        assert set(tools["decide"].input_schema["properties"]) == {"run"}
        assert set(tools["run"].input_schema["properties"]) == {"task", "plan", "ttl", "single_pass"}
        running = asyncio.create_task(call(client, "run", person, task="write 'hey' to out.txt"))
        while not (person.heard and person.heard[-1].startswith("waiting: ")):
            await asyncio.sleep(0.01)
        run = (await call(client, "runs", status="running"))[0]
        assert run["waits_for"] == "tool"
        asked = await call(client, "decide", run=run["run_id"])
        assert asked["waits_for"].startswith("Write out.txt?")
        assert f"/{run['run_id']}.jsonl DECISION` (approve, reject, abort)" in asked["how"]
        assert not (tmp_path / "out.txt").exists()
        decided = await asyncio.to_thread(
            process, "decide", run["run_id"], "approve", "--runs-dir", str(tmp_path / "runs")
        )
        assert decided.returncode == 0, decided.stderr
        assert (await running)["status"] == "converged"


@pytest.mark.exhaustive
async def test_a_run_that_nobody_decides_about_ends_after_the_time_to_wait(tmp_path: Path) -> None:
    async with connected(tmp_path, *MODEL, "--wait", "1") as client:
        done = await call(client, "run", task="write 'hey' to out.txt")
        assert (done["status"], (tmp_path / "out.txt").exists()) == ("aborted", False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", sample(["auto", "legacy"]))
async def test_decide_asks_about_a_run_of_another_process(tmp_path: Path, mode: str) -> None:
    command = ("run", "--headless", *MODEL, "--approve", "tool", "--wait", "100", "--runs-dir", str(tmp_path / "runs"))
    person = Person("Write it")
    async with connected(tmp_path, mode=mode, person=person) as client:
        other = asyncio.create_task(
            asyncio.to_thread(process, *command, "write 'hey' to out.txt", "--project-root", str(tmp_path))
        )
        while not (runs := await call(client, "runs")) or not pending_question(Path(runs[0]["path"])):
            await asyncio.sleep(0.05)
        assert runs[0]["waits_for"] == "tool"
        assert await call(client, "decide", run="last") == {"decision": "approve", "taken": True, "problem": None}
        assert (await other).returncode == 0
        assert (tmp_path / "out.txt").read_text() == "hey"
        assert "is not waiting for a decision" in await refused(client, "decide", run="last")


async def test_past_runs_are_read_checked_and_measured(tmp_path: Path) -> None:
    person = Person()
    async with connected(tmp_path, *MODEL) as client:
        plan = {"goal": "add", "steps": [{"step_id": "s1", "description": "add", "tool": "calculator"}]}
        plan["steps"][0]["arguments"] = {"operation": "add", "a": 5, "b": 10}  # type: ignore[index]
        assert (await call(client, "lint", plan=plan))["issues"] == []
        plan["steps"][0]["tool"] = "abacus"  # type: ignore[index]
        assert (await call(client, "lint", plan=plan))["issues"][0]["type"] == "hallucination"
        plan["steps"][0]["tool"] = "calculator"  # type: ignore[index]
        run = (await call(client, "run", task="add 5 and 10", plan=plan))["run_id"]

        shown = await call(client, "show", run="last")
        assert (shown["execution_id"], shown["final_result"]["status"]) == (run, "converged")
        assert "plan_state" not in shown["passes"][0]
        assert (await call(client, "show", run=run, pass_number=1))["plan_state"]["goal"] == "add"
        assert "no pass 7" in await refused(client, "show", run=run, pass_number=7)
        for nothing in ("", "/etc/passwd", "../x", "nope"):
            assert "there is no run" in await refused(client, "show", run=nothing)
        checked = await call(client, "replay_check", run=run)
        assert checked.pop("records") > 10
        assert checked == {"identical": True, "status": "converged", "difference": None}
        listed = (await client.list_resources()).resources
        assert [(str(each.uri), each.title) for each in listed] == [(f"aeon://runs/{run}", "add 5 and 10")]
        text = (await client.read_resource(f"aeon://runs/{run}")).contents[0].text  # type: ignore[union-attr]
        assert text == (tmp_path / "runs" / f"{run}.jsonl").read_text()
        with pytest.raises(mcp.MCPError, match="there is no run 'none'") as refusal:
            await client.read_resource("aeon://runs/none")
        assert refusal.value.code == mcp_types.INVALID_PARAMS
        measured = await call(client, "calibrate", person, limit=3)
        assert (measured["results"], measured["model"]) == (3, "simulated:default")
        assert any(line.startswith("judged 3 of 3") for line in person.heard)
        assert (await call(client, "calibrate", history=True))["results"] == 0


async def test_a_cancelled_call_ends_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        for mode in ("auto", "legacy"):
            person = Person()
            async with connected(tmp_path, "--model", "openai:m", "--base-url", url, mode=mode) as client:
                running = asyncio.create_task(call(client, "run", person, task="add 5 and 10"))
                while not person.heard:
                    await asyncio.sleep(0.01)
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running
                while (await call(client, "runs"))[0]["status"] == "running":
                    await asyncio.sleep(0.01)
                assert (await call(client, "runs"))[0]["status"] == "aborted"


async def test_an_argument_that_a_tool_does_not_have_is_refused(tmp_path: Path) -> None:
    async with connected(tmp_path, *MODEL) as client:
        said = await refused(client, "run", task="add 2 and 3", budget=0.1)
        assert said == "run has no argument 'budget'; the known ones are task, plan, ttl, single_pass"
        assert await call(client, "runs") == []


async def test_an_argument_of_a_wrong_type_is_named_in_one_line(tmp_path: Path) -> None:
    async with connected(tmp_path, *MODEL) as client:
        said = await refused(client, "runs", limit="many")
        assert (
            said
            == "wrong argument of runs: limit: Input should be a valid integer, unable to parse string as an integer"
        )
        assert await refused(client, "lint") == "wrong argument of lint: plan: Field required"
        said = await refused(client, "runs", status="done")
        assert said.startswith("wrong argument of runs: status: Input should be 'converged', 'accepted', ")


@pytest.mark.exhaustive
def test_an_invalid_message_is_answered_with_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aeon_tui", "mcp-serve", *MODEL, "--runs-dir", str(tmp_path)]
    server = subprocess.Popen(
        command, text=True, env=environment(), cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    lines = ("nonsense", "{}", "[1, 2]", '{"jsonrpc": "2.0", "id": 6, "method": "initialize", "params": []}')
    lines += ('{"jsonrpc": "2.0", "id": 7, "method": "half a pair: \\ud83d"}',)
    server.stdin.write("\n".join([*lines, '{"jsonrpc": "2.0", "id": 8, "method": "ping"}', ""]))
    server.stdin.flush()
    replies = [json.loads(server.stdout.readline()) for _ in range(6)]
    server.communicate(timeout=PATIENCE)
    assert [reply["id"] for reply in replies] == [None, None, None, 6, 7, 8]
    assert [reply["error"]["code"] for reply in replies[:5]] == [-32700, -32600, -32600, -32600, -32601]
    assert server.returncode == 0


@pytest.mark.exhaustive
def test_a_client_that_no_longer_reads_ends_the_server_without_an_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aeon_tui", "mcp-serve", *MODEL, "--runs-dir", str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    server = subprocess.Popen(command, text=True, env=environment(), cwd=tmp_path, **pipes)  # type: ignore[call-overload]
    server.stdout.close()
    server.stdout = None
    _, err = server.communicate("nonsense\n", timeout=PATIENCE)
    assert (server.returncode, err) == (0, "")


async def test_a_call_without_a_model_is_an_error(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        assert "no model is configured; set one with --model" in await refused(client, "run", task="add 5 and 10")
        assert await call(client, "runs") == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [
        sys.executable,
        "-m",
        "aeon_tui",
        "mcp-serve",
        "--http",
        "0",
        *MODEL,
        "--runs-dir",
        str(tmp_path / "runs"),
    ]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment())
    try:
        assert server.stderr is not None
        yield server, server.stderr.readline().split()[4]
    finally:
        server.kill()
        server.communicate()


@pytest.mark.exhaustive
async def test_on_loopback_runs_ask_and_other_sites_are_refused(
    tmp_path: Path, served: tuple[subprocess.Popen[str], str]
) -> None:
    server, url = served
    person = Person("Write it", "Write it")
    for mode in ("auto", "legacy"):
        async with asyncio.timeout(PATIENCE), mcp.Client(url, mode=mode, elicitation_callback=person.fill) as client:
            done = await call(client, "run", person, task=f"write '{mode}' to {tmp_path}/out.txt")
            assert done["status"] in ("converged", "not_converged")
    assert len(person.heard) > 4
    for headers, code in (({"Host": "elsewhere.example"}, 421), ({"Origin": "http://elsewhere.example"}, 403)):
        request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", **headers})
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(request, timeout=PATIENCE)
        with refusal.value:
            assert refusal.value.code == code
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=PATIENCE) == ("", "")
    assert server.returncode == 0


@pytest.mark.exhaustive
def test_the_inspector_from_npm_calls_the_tools(tmp_path: Path) -> None:
    inspector = install("@modelcontextprotocol/inspector", tmp_path) / ".bin" / "mcp-inspector"
    server = [sys.executable, "-m", "aeon_tui", "mcp-serve", *MODEL, "--runs-dir", str(tmp_path / "runs")]

    def inspect(*arguments: str) -> Any:
        command = [str(inspector), "--cli", *server, *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=2 * PATIENCE, env=environment(), check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    # It lists the tools before it calls one.
    call = ("--method", "tools/call", "--tool-name", "run", "--tool-arg", "task=add 5 and 10")
    done = inspect(*call)["structuredContent"]
    assert (done["status"], done["answer"]) == ("converged", "The sum of 5 and 10 is 15.")
    assert inspect("--method", "resources/list")["resources"][0]["uri"] == f"aeon://runs/{done['run_id']}"


REQUESTS: list[dict[str, Any]] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/call", "params": {"name": "runs", "arguments": {}}},
]


def piped(folder: Path, **streams: Any) -> subprocess.CompletedProcess[str]:
    """Send the requests to a server and hang up at once."""
    return subprocess.run(
        [sys.executable, "-m", "aeon_tui", "mcp-serve", *MODEL, "--runs-dir", str(folder)],
        input="".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in REQUESTS),
        text=True,
        env=environment(),
        cwd=folder,
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
        **streams,
    )


def test_requests_of_a_client_that_hangs_up_at_once_are_answered(tmp_path: Path) -> None:
    done = piped(tmp_path, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_replies_that_cannot_be_written_are_one_line_and_exit_1(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = piped(tmp_path, stdout=full)
    assert (done.returncode, done.stderr) == (1, "aeon-tui: cannot write the output: No space left on device\n")


def test_a_reply_after_one_that_could_not_be_written_does_not_hide_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def full_disk() -> AsyncIterator[Any]:
        (feed, received), (sent, written) = (anyio.create_memory_object_stream[Any]() for _ in range(2))
        feed.close()
        with received, sent, written:
            yield received, sent
        raise ExceptionGroup("", [OSError(errno.ENOSPC, "No space left on device"), anyio.BrokenResourceError()])

    monkeypatch.setattr("aeon_tui.mcp_server.stdio_server", full_disk)
    args = build_parser("mcp-serve").parse_args(["mcp-serve", *MODEL, "--runs-dir", str(tmp_path)])
    runs, *given = _served(args)
    with pytest.raises(AeonError, match=r"^cannot write the output: No space left on device$"):
        asyncio.run(serve_until_hung_up(AeonServer(runs, *given, "1").run_stdio_async, runs.close))


@pytest.mark.exhaustive
def test_a_client_that_hangs_up_or_terminates_the_server_ends_its_runs(tmp_path: Path) -> None:
    for number in (None, signal.SIGTERM, signal.SIGHUP):
        command = [sys.executable, "-m", "aeon_tui", "mcp-serve", *MODEL, "--runs-dir", str(tmp_path / str(number))]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        server = subprocess.Popen(command, text=True, env=environment(), cwd=tmp_path, **pipes)  # type: ignore[call-overload]
        task = {"name": "run", "arguments": {"task": "write 'hey' to out.txt"}, "_meta": {"progressToken": 1}}
        for message in (*REQUESTS[:2], {"id": 2, "method": "tools/call", "params": task}):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            server.stdin.flush()
        while "waiting: Write out.txt?" not in server.stdout.readline():
            pass
        if number is not None:
            server.send_signal(number)
            assert server.wait(PATIENCE) == -number
        _, err = server.communicate(timeout=PATIENCE)
        assert (server.returncode, err) == (-(number or 0), "")
        [run] = (tmp_path / str(number)).glob("*.jsonl")
        assert json.loads(run.read_text().splitlines()[-1])["result"]["status"] == "aborted"


def test_without_the_package_one_line_says_how_to_install_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("mcp.", "aeon_tui.mcp_server"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = cli("mcp-serve")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("aeon-tui: `aeon-tui mcp-serve` needs ")
    assert "aeon-tui[mcp]" in done.err


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_stream_that_is_closed_from_the_start_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stream: str
) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["mcp-serve", *MODEL]) == 2
    monkeypatch.undo()
    why = "standard input or output is closed; mcp-serve talks to an MCP client over both"
    assert capsys.readouterr().err == f"aeon-tui: {why}\n"


def test_a_port_that_cannot_be_used_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = cli("mcp-serve", "--http", str(taken.getsockname()[1]))
    assert (done.code, done.out) == (2, "")
    assert "choose another with --http" in done.err
    for port in ("many", "0000001234567"):
        assert cli("mcp-serve", "--http", port).err == f"aeon-tui: --http takes a port from 0 to 65535; got {port!r}\n"
