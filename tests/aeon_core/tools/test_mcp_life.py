"""How MCP servers start, end, fail and come back, and that nothing of them stays (REQ-023)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.errors import ToolError, UsageError
from aeon_core.installation import MissingExtraError
from aeon_core.tools.mcp.servers import McpTools, why_unusable
from aeon_core.tools.mcp.settings import McpServer
from aeon_core.tools.mcp.stdio_transport import ErrorOutput, ServerProgram, StdioTransport
from aeon_core.tools.mcp.tool import Words
from aeon_core.tools.registry import default_registry
from tests.aeon_core.tools.mcp_help import (
    assert_nothing_is_left,
    connected,
    is_alive,
    pids,
    plain,
    program,
    stdio,
)
from tests.fakes import ScriptedModel, add, steps
from tests.waiting import wait_until

ENDED = "it ended before it listed its tools; fix its 'command', 'args' or 'env'"
SECRET = "sk-" + "ant-" + "x" * 30


def refusal(root: Path, **servers: Any) -> str:
    """Return why the servers cannot be used."""
    with pytest.raises(UsageError) as caught:
        McpTools(servers, project_root=root).connect()
    assert_nothing_is_left()
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2
    return caught.value.message


def test_a_program_gets_its_own_variables_and_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "not to be seen")
    monkeypatch.setenv("XDG_CACHE_HOME", "/the/cache")
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setenv("MINE", "a value of mine")
    (tmp_path / "sub").mkdir()
    server = plain(env={"TOKEN": "x ${MINE}", "PLAIN": "1"}, cwd="sub")
    with connected(tmp_path, test=server) as tools:
        found = tools["mcp__test__surroundings"].invoke()
    assert found["TOKEN"] == "x a value of mine"
    assert found["PLAIN"] == "1"
    assert found["XDG_CACHE_HOME"] == "/the/cache"
    assert not {"SOME_API_KEY", "TMPDIR"} & set(found)


@pytest.mark.exhaustive
def test_two_servers_may_have_tools_of_the_same_name(tmp_path: Path) -> None:
    trusting = plain(trust_annotations=True, tools=["a??", "f*"])
    with connected(tmp_path, one=plain(tools=["add"]), two=trusting) as tools:
        assert list(tools) == ["mcp__one__add", "mcp__two__add", "mcp__two__fail"]
        assert [tool.effect for tool in tools.values()] == ["unsafe", "pure", "idempotent"]
        assert [tool.needs_approval for tool in tools.values()] == [True, False, True]
        assert tools["mcp__one__add"].invoke(a=1, b=1) == tools["mcp__two__add"].invoke(a=0, b=2) == {"sum": 2}


def test_a_server_that_dies_fails_its_call_and_is_named_with_its_last_words(tmp_path: Path) -> None:
    with connected(tmp_path, test=plain()) as tools:
        with pytest.raises(ToolError) as caught:
            tools["mcp__test__die"].invoke()
        assert caught.value.message == (
            "MCP server 'test' ended during 'die'; whether it took effect is unknown (its last words: dying, as told)"
        )


@pytest.mark.exhaustive
def test_a_server_killed_between_calls_is_started_again_and_one_killed_during_a_call_is_not_called_again(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "notes"
    with connected(tmp_path, test=stdio(env={"TEST_NOTES": str(notes)})) as tools:
        [first] = pids(notes)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not is_alive(first))
        with contextlib.suppress(ToolError):
            # On a busy machine its end may be noticed only by this call, which fails then.
            tools["mcp__test__add"].invoke(a=1, b=1)
        assert tools["mcp__test__add"].invoke(a=1, b=2) == {"sum": 3}
        [_, second] = pids(notes)

        def kill() -> None:
            wait_until(lambda: "began slow" in notes.read_text())
            os.kill(second, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        with pytest.raises(ToolError, match="'test' ended during 'slow'; whether it took effect is unknown"):
            tools["mcp__test__slow"].invoke()
        thread.join()
        assert notes.read_text().count("began slow") == 1
        assert len(pids(notes)) == 2


@pytest.mark.exhaustive
def test_a_server_that_cannot_be_started_again_fails_every_call_with_the_reason(tmp_path: Path) -> None:
    server = tmp_path / "server"
    server.write_text("#!/bin/sh\nexec " + " ".join([sys.executable, *plain()["args"]]) + "\n")
    server.chmod(0o700)
    with connected(tmp_path, test={"command": "./server"}) as tools:
        server.unlink()
        with pytest.raises(ToolError):
            tools["mcp__test__die"].invoke()
        for _ in range(2):
            with pytest.raises(ToolError, match="'test' has ended and cannot be restarted: its command"):
                tools["mcp__test__add"].invoke(a=1, b=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            {"command": "no-such-program"},
            "its command 'no-such-program' was not found; install it or fix 'command'",
        ),
        ({"command": "/"}, "its command '/' cannot be started: Permission denied; fix 'command'"),
        ({"command": "true", "cwd": "nowhere"}, "its 'cwd' '{root}/nowhere' is not a folder; fix it"),
        ({"command": "true"}, ENDED),
        (
            program(
                f"import sys; sys.exit('no way\\n\\x1b[1m {SECRET} and my-own-secret')", env={"K": "my-own-secret"}
            ),
            f"{ENDED}; its last words: \\x1b[1m [redacted] and [redacted]",
        ),
        (
            program("print('Ready.', flush=True); input(); input(); input()", start_timeout=0.7),
            (
                "it did not list its tools within 0.7 s; see 'start_timeout'; it writes something that is not MCP: "
                "'Ready.'"
            ),
        ),
        (
            program(
                '[print(\'{"jsonrpc":"2.0","id":%d,"result":{"x":1}}\' % i, flush=True) for i in (1, 2) if input()]'
            ),
            "it does not speak MCP as expected: ",
        ),
    ],
    ids=["missing", "folder", "cwd", "ends", "words", "silent", "nonsense"],
)
def test_a_program_that_is_not_a_server_is_refused_in_one_line(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    message = refusal(tmp_path, bad=settings)
    assert message.startswith(f"cannot use the MCP server 'bad': {reason.replace('{root}', str(tmp_path))}")


@pytest.mark.exhaustive
def test_one_server_that_fails_leaves_none_running(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    # It ends without a word as soon as the other has started.
    late = program(f"import os, time\nwhile not os.path.exists({str(notes)!r}): time.sleep(0.02)", start_timeout=60)
    assert refusal(tmp_path, good=plain(env={"TEST_NOTES": str(notes)}), late=late).startswith(
        "cannot use the MCP server 'late'"
    )
    assert not any(map(is_alive, pids(notes)))


def test_a_variable_that_is_not_set_is_named_before_anything_runs(tmp_path: Path) -> None:
    message = refusal(tmp_path, test=plain(env={"TOKEN": "${NO_SUCH_VARIABLE}"}))
    assert "'test'" in message
    assert "'NO_SUCH_VARIABLE'" in message


def test_without_the_package_the_line_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aeon-tui\[mcp\]'"):
        McpTools({"test": plain()}, project_root=tmp_path).connect()


@pytest.mark.parametrize("servers", [{}, {"off": {"command": "true", "enabled": False}}])
def test_without_an_enabled_server_the_line_says_where_to_name_one(tmp_path: Path, servers: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no server is configured; add one under 'mcp_servers'"):
        McpTools(servers, project_root=tmp_path)


@pytest.mark.exhaustive
def test_non_mcp_output_is_ignored_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aeon")
    with connected(tmp_path, test=plain("garbage", tools=["add"])) as tools:
        assert tools["mcp__test__add"].invoke(a=1, b=1) == {"sum": 2}
    said = [record.getMessage() for record in caplog.records if record.name == "aeon" and "not MCP" in record.message]
    assert said == ["MCP server 'test' wrote something that is not MCP, ignored: 'Welcome! this is no JSON'"]


@pytest.mark.exhaustive
def test_server_output_does_not_reach_the_screen(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from aeon_core.tools.mcp.servers import McpTools, why_unusable
from aeon_core.tools.mcp.settings import McpServer
tools = {{tool.name: tool for tool in McpTools({{"test": {plain("garbage")!r}}}, project_root=Path("/")).connect()}}
try:
    tools["mcp__test__die"].invoke()
except Exception:
    print(tools["mcp__test__say"].invoke(text="done"))
"""
    # It does not close its servers either: they end with the interpreter.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "{'text': '<done>'}\n"
    assert [line for line in done.stderr.splitlines() if not line.startswith("MCP server 'test'")] == []
    assert_nothing_is_left()


@pytest.mark.exhaustive
def test_closing_cuts_the_call_under_way_and_may_be_repeated(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    mcp = McpTools({"test": stdio(env={"TEST_NOTES": str(notes)})}, project_root=tmp_path)
    tools = {tool.name: tool for tool in mcp.connect()}

    def close() -> None:
        wait_until(lambda: "began slow" in notes.read_text())
        mcp.close()

    threads = [threading.Thread(target=close) for _ in range(2)]
    for thread in threads:
        thread.start()
    with pytest.raises(ToolError, match="MCP server 'test' was closed"):
        tools["mcp__test__slow"].invoke()
    for thread in threads:
        thread.join()
    mcp.close()
    assert_nothing_is_left()
    with pytest.raises(ToolError, match="MCP server 'test' was closed; start a new run"):
        tools["mcp__test__add"].invoke(a=1, b=1)


def test_servers_that_are_closed_before_they_are_started_leave_nothing(tmp_path: Path) -> None:
    mcp = McpTools({"test": plain()}, project_root=tmp_path)
    mcp.close()
    with pytest.raises(UsageError, match="closed while they were started"):
        mcp.connect()
    assert_nothing_is_left()


@pytest.mark.exhaustive
def test_tools_keep_their_servers_as_long_as_they_are_held(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    server = plain(env={"TEST_NOTES": str(notes)}, tools=["add"])
    tools = McpTools({"test": server}, project_root=tmp_path).connect()
    gc.collect()
    assert tools[0].invoke(a=1, b=1) == {"sum": 2}
    del tools
    gc.collect()
    wait_until(lambda: not is_alive(pids(notes)[0]))
    assert_nothing_is_left()


@pytest.mark.exhaustive
def test_a_run_whose_server_dies_fails_the_step_and_ends_in_a_result(tmp_path: Path) -> None:
    with connected(tmp_path, test=plain(trust_annotations=True)) as tools:
        registry = default_registry()
        for tool in tools.values():
            registry.register(tool)
        given = {"a": 1, "b": 2}
        model = ScriptedModel(
            plan=steps(
                {"tool": "mcp__test__die", "arguments": {}}, {"tool": "mcp__test__add", "arguments": given}, add(3, 4)
            ),
            answer="done",
        )
        config = RunConfig(single_pass=True, durability="off")
        result = Orchestrator(model, tools=registry, config=config, journal=False).run("a task")
    assert [step.status for step in result.steps] == ["failed", "complete", "complete"]
    assert "MCP server 'test' ended during 'die'" in str(result.steps[0].errors)
    assert result.steps[1].output == {"sum": 3}
    assert result.answer == "done"
    assert result.status == "not_converged"


TASKS_ONLY = """
import json, sys

def tool(name, support):
    return {"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}}

ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "s", "version": "1"},
    },
    "tools/list": {"tools": [tool("long", "required"), tool("either", "optional")]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    known = message["method"] in ANSWERS
    told = {"result": ANSWERS[message["method"]]} if known else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **told}), flush=True)
"""


def test_a_tool_that_runs_only_as_a_task_is_not_offered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="aeon"), connected(tmp_path, s=program(TASKS_ONLY)) as tools:
        assert list(tools) == ["mcp__s__either"]
    assert "MCP server 's': left out 'long', which runs only as a task (taskSupport: required)" in caplog.messages


def test_an_answer_that_cannot_be_read_is_named_when_the_call_times_out(tmp_path: Path) -> None:
    noise = "for line in sys.stdin:\n    if 'tools/call' in line:\n        print('oops', flush=True)\n        continue"
    server = program(TASKS_ONLY.replace("for line in sys.stdin:", noise), timeout=0.5)
    with (
        connected(tmp_path, s=server) as tools,
        pytest.raises(ToolError, match="see 'timeout'; it writes something that is not MCP: 'oops'"),
    ):
        tools["mcp__s__either"].invoke()


def test_a_malformed_tool_is_left_out_by_name_and_the_others_are_offered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = TASKS_ONLY.replace('"tools": [', '"tools": [{"name": "bad", "inputSchema": 5}, 7, ')
    with caplog.at_level(logging.WARNING, logger="aeon"), connected(tmp_path, s=program(code)) as tools:
        assert list(tools) == ["mcp__s__either"]
    left_out = [message for message in caplog.messages if "malformed" in message]
    assert [message.partition(": left out the malformed tool ")[2].partition(":")[0] for message in left_out] == [
        "'bad'",
        "'7'",
    ]
    assert "inputSchema: Input should be a valid dictionary" in left_out[0]


def answering(reply: str, **settings: Any) -> dict[str, Any]:
    """Settings of a server that runs a piece of Python, with `message` and `give(text)`, at each `tools/call`."""
    told = f"""
import os, subprocess

def give(text):
    result = {{"content": [{{"type": "text", "text": text}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)

def reply():
{textwrap.indent(textwrap.dedent(reply), "    ")}

for line in sys.stdin:
    if "tools/call" in line:
        message = json.loads(line)
        reply()
        continue
"""
    return program(TASKS_ONLY.replace("for line in sys.stdin:\n", told), **settings)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            'print(\'{"jsonrpc":"2.0","id":%d,"result":{oops}}\' % message[\'id\'], flush=True)',
            "Invalid JSON: key must be a string",
        ),
        (
            'print(\'{"jsonrpc":"2.0","result":{oops},"id":%d}\' % message[\'id\'], flush=True)',
            "Invalid JSON: key must be a string",
        ),
        ("print(json.dumps({'id': message['id'], 'result': {}}), flush=True)", "jsonrpc: Field required"),
        ("give('x' * 17_000_000)", "longer than 16 MB"),
    ],
    ids=["id first", "id last", "no version", "long"],
)
def test_a_malformed_answer_fails_its_call_and_the_server_is_kept(reply: str, why: str, tmp_path: Path) -> None:
    first = f"if not os.path.exists('done'):\n    open('done', 'w')\n    {reply}\nelse:\n    give('fine')"
    with connected(tmp_path, s=answering(first, timeout=600)) as tools:
        with pytest.raises(ToolError) as caught:
            tools["mcp__s__either"].invoke()
        assert caught.value.message.startswith(
            "MCP server 's' answered 'either' with an error: its answer is malformed: "
        )
        assert why in caught.value.message
        assert tools["mcp__s__either"].invoke() == {"text": "fine"}


def test_a_log_line_is_not_an_answer(tmp_path: Path) -> None:
    logs = (
        'print(\'{"id":%d,"level":"info"}\' % message[\'id\'])\n'
        'print(\'{"jsonrpc":"2.0","id":%d,"method":oops}\' % message[\'id\'])\n'
        "print('[\"id\", %d]' % message['id'])\n"
        'print(\'{"jsonrpc":"2.0","id":true,"result":{}}\')\n'
        'print(\'{"jsonrpc":"2.0","id":null,"result":{}}\')\n'
        "give('fine')"
    )
    with connected(tmp_path, s=answering(logs)) as tools:
        assert tools["mcp__s__either"].invoke() == {"text": "fine"}


def test_half_a_surrogate_pair_in_an_answer_is_replaced(tmp_path: Path) -> None:
    with connected(tmp_path, s=answering("give('a' + chr(0xd83d) + 'b')")) as tools:
        assert tools["mcp__s__either"].invoke() == {"text": "a\N{REPLACEMENT CHARACTER}b"}


def test_a_long_answer_is_read(tmp_path: Path) -> None:
    with connected(tmp_path, s=answering("give('x' * 15_000_000)")) as tools:
        assert tools["mcp__s__either"].invoke()["text"].startswith("xxx")


def test_processes_started_by_a_server_end_with_it(tmp_path: Path) -> None:
    starts = "child = subprocess.Popen(['sleep', '1000']); give(str(child.pid))"
    with connected(tmp_path, s=answering(starts)) as tools:
        child = int(tools["mcp__s__either"].invoke()["text"])
        assert is_alive(child)
    wait_until(lambda: not is_alive(child) or is_zombie(child))


def is_zombie(pid: int) -> bool:
    """Return whether a process has ended that nobody waits for, as in a container without an init."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return state.startswith("Z")


@pytest.mark.exhaustive
def test_a_server_that_dies_is_noticed_while_another_process_holds_its_output(tmp_path: Path) -> None:
    dies = f"subprocess.Popen(['sleep', '{LEFT_SECONDS}'], start_new_session=True); os._exit(3)"
    with (
        connected(tmp_path, s=answering(dies, timeout=600)) as tools,
        pytest.raises(ToolError, match="'s' ended during 'either'; whether it took effect is unknown"),
    ):
        tools["mcp__s__either"].invoke()


LEFT_SECONDS = 30
"""How long the process that a test leaves behind lives: longer than the test."""


@pytest.mark.exhaustive
def test_a_server_that_sends_requests_and_takes_no_answers_is_stopped(tmp_path: Path) -> None:
    floods = 'while True: print(\'{"jsonrpc":"2.0","id":1,"method":"ping"}\', flush=True)'
    with (
        connected(tmp_path, s=answering(floods, timeout=600)) as tools,
        pytest.raises(ToolError, match=r"'s' ended during 'either'.* \(it sent 1,000 requests and took no answers"),
    ):
        tools["mcp__s__either"].invoke()


async def test_a_process_that_exits_before_its_start_returns_ends_the_output(tmp_path: Path) -> None:
    loop, errors = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    transport = StdioTransport(ErrorOutput("s", Words()))

    async def exited_meanwhile(*arguments: Any, **options: Any) -> Any:
        made = await type(loop).subprocess_exec(loop, *arguments, **options)
        await transport._exited.wait()
        return made

    loop.subprocess_exec = exited_meanwhile  # type: ignore[method-assign]
    async with transport.running(ServerProgram("true", [], dict(os.environ), tmp_path)) as streams:
        assert [item async for item in streams] == []
    assert errors == []


@pytest.mark.parametrize(("network", "hint"), [(False, ", or 'network' if it downloads anything"), (True, "")])
def test_a_slow_start_in_the_sandbox_may_be_for_lack_of_network(network: bool, hint: str) -> None:
    server = McpServer(command="npx", sandbox=True, network=network)
    assert why_unusable(server, TimeoutError(), None, Words()) == (
        f"it did not list its tools within 30 s; see 'start_timeout'{hint}"
    )


async def test_lines_that_are_no_messages_leave_room_for_other_work(tmp_path: Path) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    transport = StdioTransport(ErrorOutput("s", Words()))
    program = ServerProgram("sh", ["-c", "yes | head -n 1000"], dict(os.environ), tmp_path)
    async with transport.running(program) as streams:
        await transport._exited.wait()
        before, lines = turns, [item async for item in streams]
    counting.cancel()
    assert len(lines) == 1000
    assert turns - before >= 1000
