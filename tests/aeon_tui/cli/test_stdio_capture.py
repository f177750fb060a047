"""What tools and their modules print, by whatever means, never gets among a command's result."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aeon_tui.platform.stdio_capture import capture_stdio
from tests.aeon_tui.cli.conftest import environment, process
from tests.waiting import PATIENCE

NOISY = """
import ctypes, os, sys
from aeon_core import tool

def noise(where):
    print(f"<{where} print>")
    if sys.__stdout__ is not None:
        sys.__stdout__.write(f"<{where} stream>")
    os.write(1, f"<{where} write>".encode())
    os.system(f"echo '<{where} child>'")
    ctypes.CDLL(None).printf(f"<{where} libc>".encode())

noise("import")

@tool(effect="pure")
def shout(text: str) -> str:
    "Says it loudly."
    noise("call")
    return text.upper()
"""
WAYS = ("print", "stream", "write", "child", "libc")
PLAN = {"goal": "g", "steps": [{"step_id": "s1", "description": "d", "tool": "shout", "arguments": {"text": "hi"}}]}
OPTIONS = ("--single-pass", "--model", "simulated:default", "--tools", "noisy:shout", "--plan", "plan.json")
RUN = ("run", "--headless", "--json", *OPTIONS)


@pytest.fixture(autouse=True)
def _files(_own_folder: None) -> None:
    Path("noisy.py").write_text(NOISY)
    Path("plan.json").write_text(json.dumps(PLAN))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "arguments",
    [RUN, ("tools", "--json", "--tools", "noisy:shout"), ("lint", "plan.json", "--json", "--tools", "noisy:shout")],
)
def test_json_is_alone_on_stdout(arguments: tuple[str, ...]) -> None:
    done = process(*arguments)
    assert done.returncode == 0
    json.loads(done.stdout)
    places = ("import", "call") if arguments is RUN else ("import",)
    for place in places:
        for way in WAYS:
            assert done.stderr.count(f"<{place} {way}>") == 1


@pytest.mark.parametrize("redirection", ["2>/dev/null", "2>&-"])
def test_stdout_holds_only_results(redirection: str) -> None:
    command = f'"{sys.executable}" -m aeon_tui {" ".join(RUN)} {redirection}'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "completed"


@pytest.mark.exhaustive
def test_closed_or_shared_streams_are_not_an_error() -> None:
    for redirection in (">&-", "2>&1", ">&- 2>&-"):
        command = f'"{sys.executable}" -m aeon_tui {" ".join(RUN)} {redirection}'
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
        assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (0, False)


def test_descriptors_are_restored_even_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with capture_stdio():
            os.write(1, b"within ")
            print("print")
            raise ZeroDivisionError

    free = os.dup(1)
    os.close(free)
    with pytest.raises(ZeroDivisionError):
        work()
    os.write(1, b"after")
    assert capfd.readouterr() == ("after", "within print\n")
    again = os.dup(1)
    os.close(again)
    assert again == free


def on_a_terminal(*arguments: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, quit the app when it shows the run's end; return code and screen."""
    ours, theirs = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="100", LINES="30", PATH=os.environ["PATH"])
    run = subprocess.Popen(
        [sys.executable, "-m", "aeon_tui", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    shown = b""
    pressed = False
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
        if not pressed and re.search(rb"completed", shown):
            os.write(ours, b"q")
            pressed = True
    os.close(ours)
    return run.wait(PATIENCE), shown.decode(errors="replace")


@pytest.mark.exhaustive
def test_tool_output_does_not_draw_over_the_app() -> None:
    live = [argument for argument in RUN if argument not in ("--headless", "--json")]
    code, shown = on_a_terminal(*live)
    assert code == 0
    assert "<import child>" in shown.partition("\x1b[?1049h")[0]
    for way in WAYS:
        assert f"<call {way}>" not in shown
    assert re.search(r"run \S+ \(simulated\): completed", shown.rpartition("\x1b[?1049l")[2])
