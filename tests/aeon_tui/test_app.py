from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import Selection

from aeon_core.config.schema import RunConfig
from aeon_core.journal.reader import read_records
from aeon_core.journal.view.reducer import fold
from aeon_tui import app as app_module
from aeon_tui.app import AeonApp, run_app
from aeon_tui.platform.terminal import NO_TERMINAL, sized
from aeon_tui.screens.dialogs import QuitDialog
from aeon_tui.screens.keys import KeyColumns
from aeon_tui.screens.run.screen import RunScreen
from aeon_tui.sessions.run_jobs import NewRunJob
from aeon_tui.sessions.runner import Runner
from aeon_widgets.keys import TOO_SOON
from aeon_widgets.outcome import Outcome
from aeon_widgets.run_header import RunHeader
from aeon_widgets.step_pane import StepText
from tests.aeon_tui.fakes import ScriptedKernel, build_scripted
from tests.aeon_tui.recordings import live_run
from tests.waiting import PATIENCE, until, wait_until

START = NewRunJob("add 5 and 10", RunConfig(model="simulated:default"))


class Live:
    """The app with a run that stays in a model call."""

    def __init__(self) -> None:
        self.kernels: list[ScriptedKernel] = []
        self.runner = Runner(START, Path("runs/r1.jsonl"), build_scripted(live_run().records, self.kernels.append))
        self.app = AeonApp(Path("runs"), self.runner)

    @property
    def screen(self) -> RunScreen:
        assert isinstance(self.app.screen, RunScreen)
        return self.app.screen


@asynccontextmanager
async def running() -> AsyncIterator[tuple[Live, Pilot[None]]]:
    live = Live()
    async with live.app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: live.screen.view.last_seq == len(live_run().records) - 1)
        yield live, pilot
    if live.kernels:
        live.kernels[0].release()


async def test_a_started_run_is_followed_live_to_its_answer() -> None:
    async with running() as (live, pilot):
        assert live.screen.status == "running"
        live.kernels[0].release()
        await until(pilot, lambda: live.screen.view.result is not None)
        assert live.screen.status == "completed"
        await until(pilot, lambda: live.screen.query_one(Outcome).text == "15")
        await until(pilot, lambda: live.runner.result is not None)
        await pilot.press("q")
    assert live.runner.exit_code == 0


async def test_an_open_app_collects_garbage_incrementally() -> None:
    kept = gc.get_threshold()
    gc.set_threshold(200_000)
    try:
        async with running():
            assert gc.get_threshold()[0] == 20_000
    finally:
        gc.set_threshold(*kept)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 0.0)


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quitting_during_a_run_asks_first(key: str) -> None:
    async with running() as (live, pilot):
        await pilot.press(key)
        assert isinstance(live.app.screen, QuitDialog)
        assert not live.runner.aborting
        await pilot.press("escape")
        assert live.app.screen is live.screen
        await pilot.press(key, "enter")
        assert live.app.screen is live.screen, "the answer that is lit is to stay"
        assert not live.runner.aborting


@pytest.mark.parametrize("key", ["ctrl+q", "ctrl+c", "f9"])
@pytest.mark.parametrize("opens", ["question_mark", "x", "ctrl+p"])
async def test_a_key_that_quits_does_so_in_dialogs_too(key: str, opens: str) -> None:
    async with running() as (live, pilot):
        live.app.set_keymap({"app.quit_anywhere": "f9"} if key == "f9" else {})
        await pilot.press(opens)
        dialog = live.app.screen
        await pilot.press("ctrl+z")
        assert [note.message for note in live.app._notifications] == [NO_TERMINAL], "nor is the app suspended"
        await pilot.press("q")
        assert live.app.screen is dialog, "there, this key is a letter, or nothing"
        await pilot.press(key)
        assert isinstance(live.app.screen, QuitDialog)
        await pilot.press("escape")
        assert live.app.screen is dialog
        await pilot.press(key, key)
        await until(pilot, lambda: not live.app.is_running)
    assert live.kernels[0].aborted


async def test_a_key_that_repeats_does_not_quit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_widgets.keys.SILENCE_SECONDS", 3_600.0)
    async with running() as (live, pilot):
        await pilot.press("q", "q", "y", "q")
        assert not live.runner.aborting
        assert [note.message for note in live.app._notifications] == [TOO_SOON]


async def test_a_signal_quits_without_asking() -> None:
    async with running() as (live, pilot):
        live.app.quit_soon()
        await until(pilot, lambda: not live.app.is_running)
    assert live.kernels[0].aborted


@pytest.mark.parametrize("key", ["q", "ctrl+q", "ctrl+c"])
async def test_quitting_in_a_model_call_aborts_the_run_and_waits_for_its_end(key: str) -> None:
    async with running() as (live, pilot):
        await pilot.press(key, key)
        await until(pilot, lambda: not live.app.is_running)
    assert live.kernels[0].aborted
    assert live.runner.result is not None
    assert live.runner.result.status == "aborted"
    assert live.runner.exit_code == 1


async def test_a_run_is_shown_as_aborting_while_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running() as (live, pilot):
        live.kernels[0].deaf = True
        await pilot.press("q", "y")
        await until(pilot, lambda: live.screen.status == "aborting")
        live.kernels[0].release()
        await until(pilot, lambda: not live.app.is_running)


async def test_quitting_twice_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "ABORT_SECONDS", 3_600.0)
    async with running() as (live, pilot):
        live.kernels[0].deaf = True
        await pilot.press("q", "y")
        assert live.app.is_running
        await pilot.press("q")
        await until(pilot, lambda: not live.app.is_running)


async def test_a_run_that_does_not_end_does_not_block_quitting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_module, "ABORT_SECONDS", 0.05)
    async with running() as (live, pilot):
        live.kernels[0].deaf = True
        await pilot.press("q", "y")
        await until(pilot, lambda: not live.app.is_running)
        assert live.runner.running


async def test_ctrl_c_copies_where_text_is_selected_and_quits_elsewhere() -> None:
    async with running() as (live, pilot):
        header = live.screen.query_one(RunHeader)
        live.screen.selections = {header: Selection(Offset(0, 0), Offset(4, 0))}
        await pilot.press("ctrl+c")
        assert live.app.clipboard == "aeon"
        assert not live.runner.aborting
        live.screen.clear_selection()
        await pilot.press("ctrl+c", "ctrl+c")
        await until(pilot, lambda: not live.app.is_running)
    assert live.runner.result is not None
    assert live.runner.result.status == "aborted"


async def test_the_key_help_explains_ctrl_c() -> None:
    async with running() as (live, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: live.app.screen.query(KeyColumns))
        text = live.app.screen.query_one(KeyColumns).text
        assert [line.split(maxsplit=1) for line in text.splitlines() if "ctrl+c" in line] == [
            ["ctrl+c", "Copy, or quit"]
        ]


async def test_a_reply_is_shown_while_it_streams_in() -> None:
    async with running() as (live, pilot):
        live.kernels[0].on_delta("reason", "s3", "Five and [bold]ten")
        await until(pilot, lambda: "Five and [bold]ten▌" in live.screen.query_one(StepText).text)
        live.kernels[0].on_delta("reason", "s3", " make\x1b fifteen")
        await until(pilot, lambda: "ten make\\x1b fifteen▌" in live.screen.query_one(StepText).text)
        live.runner.stream.clear()
        await until(pilot, lambda: "▌" not in live.screen.query_one(StepText).text)


async def test_startup_objects_are_frozen_from_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    freezes: list[None] = []
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(None))
    async with running():
        assert freezes


def test_run_app_prints_one_line_with_the_run_and_returns_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def build(*arguments: object) -> ScriptedKernel:
        kernel = build_scripted(live_run().records)(*arguments)  # type: ignore[arg-type]
        assert isinstance(kernel, ScriptedKernel)
        return kernel

    def run(self: AeonApp) -> None:
        self.sessions.all[0].start()

    monkeypatch.setattr(NewRunJob, "build", build)
    monkeypatch.setattr(AeonApp, "run", run)
    assert run_app(tmp_path, START) == 1
    printed = capsys.readouterr()
    run_id = printed.err.split()[1]
    how = f"continue with `aeon-tui resume {tmp_path}/{run_id}.jsonl`"
    assert printed.err == f"run {run_id} (simulated): aborted · {how}\n"
    assert printed.out == ""


def test_browsing_ends_with_code_0(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(AeonApp, "run", lambda self: None)
    assert run_app(Path("runs")) == 0
    assert capsys.readouterr() == ("", "")


LONG_TOOL = """
import time
from pathlib import Path
from aeon_core import tool

@tool(effect="unsafe")
def nap(seconds: float) -> int:
    \"\"\"Sleep until woken.\"\"\"
    Path("began").touch()
    latest = time.monotonic() + seconds
    while time.monotonic() < latest and not Path("wake").exists():
        time.sleep(0.01)
    Path("done").touch()
    return 1
"""
PLAN = '{"goal": "nap", "steps": [{"step_id": "a", "description": "nap", "tool": "nap", "arguments": {"seconds": %s}}]}'


class Terminal:
    """The program on a terminal of its own, in a tool call that takes some seconds, or until it may continue."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder = folder
        (folder / "napping.py").write_text(LONG_TOOL)
        (folder / "plan.json").write_text(PLAN % seconds)
        (folder / ".aeon").mkdir()
        self.shown = ""
        command = ["run", "--model", "simulated:default", "--tools", "napping:nap", "--plan", "plan.json"]
        self.pid, self.master = pty.fork()
        if self.pid == 0:  # pragma: no cover  # another process
            os.chdir(folder)
            os.environ.update(TERM="xterm-256color", PYTHONPATH=str(Path(__file__).parents[2]))
            os.execv(sys.executable, [sys.executable, "-m", "aeon_tui", *command])
        self.code: int | None = None

    def until(self, reached: Callable[[], bool]) -> None:
        wait_until(lambda: self.read() or reached(), lambda: self.shown[-2_000:])

    def read(self) -> None:
        """Read what has been drawn since."""
        with contextlib.suppress(OSError):
            while select.select([self.master], [], [], 0)[0] and (drawn := os.read(self.master, 65_536)):
                self.shown += drawn.decode("utf-8", "replace")

    def ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def wake(self) -> None:
        """Let the tool end."""
        (self.folder / "wake").touch()

    def began(self) -> bool:
        return (self.folder / "began").exists()

    def done(self) -> bool:
        return (self.folder / "done").exists()

    def status(self) -> str:
        (journal,) = (self.folder / ".aeon" / "runs").glob("*.jsonl")
        return fold(read_records(journal)).status


@contextlib.contextmanager
def terminal(folder: Path, seconds: float) -> Iterator[Terminal]:
    program = Terminal(folder, seconds)
    try:
        yield program
    finally:
        if not program.ended():
            os.kill(program.pid, signal.SIGKILL)
            os.waitpid(program.pid, 0)
        with contextlib.suppress(OSError):
            os.close(program.master)


@pytest.mark.exhaustive
def test_closing_the_terminal_ends_the_process_and_the_run_is_journaled_as_aborted(tmp_path: Path) -> None:
    with terminal(tmp_path, 3) as program:
        program.until(program.began)
        os.close(program.master)
        wait_until(program.ended, "it hangs")
        assert program.done(), "the tool was cut"
        assert (program.code, program.status()) == (129, "aborted")


@pytest.mark.exhaustive
def test_a_tool_that_outlasts_the_app_is_waited_for(tmp_path: Path) -> None:
    with terminal(tmp_path, 3_600) as program:
        program.until(program.began)
        os.write(program.master, b"q\x11")
        program.until(lambda: "waiting for the running tool" in program.shown)
        assert program.shown.index("\x1b[?1049l") < program.shown.index("waiting for"), "not on the app's screen"
        assert not program.done()
        program.wake()
        program.until(program.ended)
        assert program.done()
        assert (program.code, program.status()) == (1, "aborted")


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("how", ["key", "signal"])
def test_the_wait_for_a_tool_can_be_interrupted(tmp_path: Path, how: str) -> None:
    with terminal(tmp_path, 3_600) as program:
        program.until(program.began)
        os.write(program.master, b"q\x11q")
        program.until(lambda: "waiting for the running tool" in program.shown)
        if how == "key":
            os.write(program.master, b"\x03")
        else:
            os.kill(program.pid, signal.SIGTERM)
        program.until(lambda: "its outcome is unknown" in program.shown)
        program.until(program.ended)
        assert program.code == 1


def test_an_app_that_is_stuck_after_a_termination_is_ended(tmp_path: Path) -> None:
    stuck = """
import os, signal, threading
from pathlib import Path
from aeon_tui import app
from aeon_tui.sessions import session
session.ABORT_SECONDS = 0.1
def run(self):
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait()
app.AeonApp.run = run
app.run_app(Path("."))
"""
    root = str(Path(__file__).parents[2])
    ended = subprocess.run([sys.executable, "-c", stuck], cwd=root, timeout=PATIENCE, check=False)
    assert ended.returncode == 128 + signal.SIGTERM


def test_a_termination_quits_the_app_in_order(tmp_path: Path) -> None:
    with terminal(tmp_path, 3_600) as program:
        program.until(program.began)
        os.kill(program.pid, signal.SIGTERM)
        program.until(lambda: "\x1b[?1049l" in program.shown)
        program.wake()
        program.until(program.ended)
        assert (program.code, program.status()) == (1, "aborted")


class OnDescriptor:
    """Stands for a stream on a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.fileno = lambda: descriptor


def test_the_screen_is_as_large_as_its_own_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plain:
        def _get_terminal_size(self) -> tuple[int, int]:
            return 80, 24

    screen, other = pty.openpty()
    try:
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 21, 60, 0, 0))
        driver: Any = sized(cast("Any", Plain))()
        monkeypatch.setattr("sys.__stderr__", OnDescriptor(other))
        assert driver._get_terminal_size() == (60, 21)
        monkeypatch.setattr("sys.__stderr__", None)
        assert driver._get_terminal_size() == (80, 24)
    finally:
        os.close(screen)
        os.close(other)
