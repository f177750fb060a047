"""Workflows as processes that are killed, stopped and started twice (REQ-125; contract: `--resume`)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from system2.workflow import replay
from system2.workflow_journal import journal_of
from tests.sampling import sample
from tests.system2.test_main import SIMULATED, process
from tests.system2.workflows import last_transcript, transcript
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.usefixtures("default_signals")

KILLED = """
import os, signal, sys
from system2 import AutoApproveGatePolicy, Orchestrator

left = int(sys.argv[1])

def listener(line):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

policy = AutoApproveGatePolicy()
Orchestrator(".", None, policy, model="simulated:blockers", listener=listener).run("count the invoices")
"""
SLOW_BASH = """
import sys
from pathlib import Path
from aeon_core.llm.base import LLMResponse
from system2 import __main__
from system2.simulated import SimulatedAgents

def complete(self, request):
    if not any(tool["name"] == "Bash" for tool in request.tools):
        return simulated(self, request)
    call = {"id": "u", "name": "Bash", "arguments": {"command": f"touch began; sleep 300; touch {Path.cwd()}/late"}}
    return LLMResponse(tool_calls=[call], text="", usage=None, stop_reason="tool_use")

simulated, SimulatedAgents.complete = SimulatedAgents.complete, complete
sys.exit(__main__.main(["--model", "simulated:default", "--auto-approve", "--unsafe-bash", "count the invoices"]))
"""

THRICE = """
import signal, sys
from system2 import __main__, command
from system2.orchestrator import _Opened
from system2.simulated import SimulatedAgents

number = signal.Signals(int(sys.argv[1]))

def complete(self, request):
    signal.raise_signal(number)

def close(self):
    original(self)
    signal.raise_signal(number)

def report(*arguments):
    signal.raise_signal(number)
    return reported(*arguments)

reported, command._report_stop = command._report_stop, report
SimulatedAgents.complete = complete
original, _Opened.close = _Opened.close, close
sys.exit(__main__.main(["--model", "simulated:default", "--auto-approve", "count the invoices"]))
"""


def python(code: str, *args: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def runs(root: Path) -> Path:
    return root / ".system2" / "runs"


@pytest.mark.exhaustive
@pytest.mark.parametrize("records", sample([1, 2, 23, 44, 67, 90, 111, 133, 155, 170], 1))
def test_a_workflow_killed_after_any_record_continues_to_the_end(records: int, tmp_path: Path) -> None:
    killed = python(KILLED, str(records), cwd=tmp_path)
    killed.communicate(timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL
    before = last_transcript(tmp_path).read_bytes()
    assert before.count(b"\n") == records
    done = process("--model", "simulated:blockers", "--auto-approve", "--resume", "last", cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    path = last_transcript(tmp_path)
    assert path.read_bytes().startswith(before)
    lines = transcript(path)
    assert [json.loads(line)["seq"] for line in path.read_bytes().splitlines()] == list(
        range(path.read_bytes().count(b"\n"))
    )
    assert [line["gate"] for line in lines if line["type"] == "gate_decision"] == [0, 1, 2, 3, 4, 5]
    assert replay(journal_of(path, Path(os.environ["XDG_STATE_HOME"]) / "aeon" / "runs")).difference is None
    assert lines[-1]["status"] == "completed"


@pytest.mark.exhaustive
def test_the_second_of_two_processes_leaves_a_transcript_alone(tmp_path: Path) -> None:
    waiting = python(
        KILLED.replace("AutoApproveGatePolicy()", "lambda *_: __import__('time').sleep(600)"), "-1", cwd=tmp_path
    )
    try:
        wait_until(lambda: any(b"gate_asked" in path.read_bytes() for path in runs(tmp_path).glob("*.jsonl")))
        path = last_transcript(tmp_path)
        before = path.read_bytes()
        second = process(*SIMULATED, "--auto-approve", "--resume", "last", cwd=tmp_path)
        assert second.returncode == 2
        assert len(second.stderr.splitlines()) == 1
        assert path.read_bytes() == before
    finally:
        waiting.kill()
        waiting.communicate()


@pytest.fixture
def silent() -> Iterator[tuple[str, threading.Event]]:
    """A server that takes connections and never answers."""
    server, asked, taken = socket.create_server(("127.0.0.1", 0)), threading.Event(), []

    def take() -> None:
        while True:
            try:
                taken.append(server.accept()[0])
            except OSError:
                return
            asked.set()

    thread = threading.Thread(target=take)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}", asked
    with contextlib.suppress(OSError):  # on Linux, closing alone would not wake the thread
        server.shutdown(socket.SHUT_RDWR)
    thread.join()
    server.close()
    for connection in taken:
        connection.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", sample([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 1))
def test_a_signal_during_a_models_call_ends_the_workflow_at_once(
    number: signal.Signals, silent: tuple[str, threading.Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = silent
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    args = ["--model", "openai:any", "--base-url", url, "--auto-approve", "count the invoices"]
    code = f"import sys; from system2.__main__ import main; sys.exit(main({args!r}))"
    process = python(code, cwd=tmp_path)
    assert asked.wait(PATIENCE)
    process.send_signal(number)
    _, shown = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    last = transcript(last_transcript(tmp_path))[-1]
    assert (last["status"], last["error"]) == ("aborted", "interrupted")
    assert f"continue with: system2 --resume {last['run']}" in shown


@pytest.mark.parametrize("number", sample([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]))
def test_a_signal_during_a_command_ends_the_command_too(number: signal.Signals, tmp_path: Path) -> None:
    process = python(SLOW_BASH, cwd=tmp_path)
    wait_until((tmp_path / "began").exists)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert transcript(last_transcript(tmp_path))[-1]["status"] == "aborted"
    assert not any(f"touch {tmp_path}/late" in command for command in commands())


@pytest.mark.parametrize("number", sample([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], 1))
def test_two_more_signals_while_the_first_one_ends_the_workflow_still_print_how_to_continue(
    number: signal.Signals, tmp_path: Path
) -> None:
    process = python(THRICE, str(int(number)), cwd=tmp_path)
    _, shown = process.communicate(timeout=PATIENCE)
    run = transcript(last_transcript(tmp_path))[-1]["run"]
    assert process.returncode == 1
    assert f"system2: interrupted\ncontinue with: system2 --resume {run} " in shown


def commands() -> Iterator[str]:
    """The command lines of what runs on this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
