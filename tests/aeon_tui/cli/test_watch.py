"""`aeon-tui watch`: ended runs of this process, and runs of other processes that continue, die and are resumed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from aeon_core.journal.listing import Awaited
from aeon_core.journal.view.reducer import fold
from aeon_tui.app import AeonApp
from aeon_tui.cli.followed_run import FollowedRun
from aeon_tui.cli.output import stderr
from aeon_tui.cli.run_output import ProgressPrinter
from aeon_tui.screens.run.screen import RunScreen
from tests.aeon_tui.cli.conftest import Cli, environment
from tests.aeon_tui.cli.test_processes import slow_run
from tests.aeon_tui.recordings import RUN_ID, Recording, finished_run
from tests.aeon_tui.sources.test_followed import Writer, resumed, told
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("default_signals")

SIMULATED = "simulated:default (simulated)"
RUNS = Path(".aeon/runs")
SUM = ("run", "--headless", "--model", "simulated:default", "calculate 5 + 10")
DIED = "aeon-tui: the run's process has ended; continue it with `aeon-tui resume {run}`"


def the_journal() -> Path:
    (path,) = RUNS.glob("*.jsonl")
    return path


def test_a_run_that_has_ended_is_shown_as_it_was(cli: Cli) -> None:
    ran = cli(*SUM)
    watched = cli("watch", "--headless")
    assert (watched.code, watched.out) == (0, ran.out)
    assert watched.err.splitlines()[:-1] == ran.err.splitlines()[:-1]
    assert watched.err.splitlines()[-1].startswith("run converged · 1 pass · ")


def test_watch_exits_like_the_run_and_json_is_alone_on_stdout(cli: Cli) -> None:
    ran = cli(*SUM[:2], "--json", "--ttl", "2", *SUM[2:])
    watched = cli("watch", "last", "--headless", "--json")
    assert (ran.code, watched.code) == (5, 5)
    assert json.loads(watched.out) == json.loads(ran.out)


def test_a_dead_run_is_exit_1_with_the_command_to_continue(cli: Cli) -> None:
    cli(*SUM)
    path = the_journal()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:8]) + lines[8][:20])
    watched = cli("watch", path.stem[:12], "--headless", "--json")
    assert (watched.code, watched.out) == (1, "")
    assert watched.err.splitlines()[-1] == DIED.format(run=path.stem)


def test_superseded_lines_are_not_shown(cli: Cli) -> None:
    assert cli(*SUM[:2], "--ttl", "2", *SUM[2:]).code == 5
    assert "expired" in cli("watch", "--headless").err
    assert cli("resume", "last", "--headless", "--ttl", "40").code == 0
    watched = cli("watch", "--headless")
    assert watched.code == 0
    assert "expired" not in watched.err


def test_damage_is_reported(cli: Cli) -> None:
    cli(*SUM)
    path = the_journal()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"broken\n", *lines[3:]]))
    watched = cli("watch", str(path), "--headless")
    assert watched.code == 0
    assert "warning: the journal is damaged: line 4: broken" in watched.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["x.jsonl", "--headless"], "'x.jsonl' is not a journal: its lines are not Aeon records"),
        ([".", "--headless", "--runs-dir", "x.jsonl"], "the runs directory"),
        (["./", "--headless"], "it is a folder"),
        (["nul\0/", "--headless"], "contains a NUL character"),
        (["r", "--headless", "--runs-dir", "two"], "'r' matches 2 runs (r1, r2); use a longer prefix"),
    ],
)
def test_an_unwatchable_run_is_one_line_and_exit_2(cli: Cli, arguments: list[str], said: str) -> None:
    Path("x.jsonl").write_text("hello\n")
    Path("two").mkdir()
    for name in ("r1", "r2"):
        (Path("two") / f"{name}.jsonl").write_text("")
    done = cli("watch", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_the_app_opens_on_the_run_that_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[AeonApp] = []

    def run_app(runs_dir: Path, *, prepare: Any) -> int:
        opened.append(AeonApp(runs_dir))
        prepare(opened[0])
        return 0

    monkeypatch.setattr("aeon_tui.cli.output.has_screen", lambda: True)
    monkeypatch.setattr("aeon_tui.app.run_app", run_app)
    cli(*SUM)
    assert cli("watch", "last").code == 0
    screen = opened[0].first_screen
    assert isinstance(screen, RunScreen)
    screen._source.close()
    Path("x.jsonl").write_text("hello\n")
    assert cli("watch", "x.jsonl").code == 2
    assert len(opened) == 1


def test_reported_lines_are_not_repeated_after_a_resume_supersedes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = finished_run().records
    writer = Writer(tmp_path / f"{RUN_ID}.jsonl")
    writer.begin()
    writer.write(*records)
    followed = FollowedRun(writer.path, stderr(), lambda _: ProgressPrinter(stderr()))
    followed.read_on()
    assert capsys.readouterr().err.startswith(f"run {RUN_ID} · ")
    writer.write(more := resumed(records[-1], continues_at=6))
    followed.read_on()
    assert capsys.readouterr().err.splitlines() == ["the run was resumed"]
    assert followed.progress.view == fold([*records[:6], more])
    writer.die()
    other = Recording(task="another").records
    writer.path.unlink()
    writer.begin()
    writer.write(*other)
    followed.read_on()
    told = capsys.readouterr().err.splitlines()
    assert told[:2] == ["this journal was replaced by another run's", f"run {RUN_ID} · {SIMULATED}"]
    writer.die()
    followed.follower.close()


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "aeon_tui", *arguments],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


def line_with(text: str, stream: IO[str] | None) -> str:
    assert stream is not None
    found = next((line for line in stream if text in line), None)
    assert found is not None, f"{text!r} was not told"
    return found


def kill(run: subprocess.Popen[str]) -> None:
    run.send_signal(signal.SIGKILL)
    run.communicate(timeout=PATIENCE)


@pytest.mark.exhaustive
def test_a_run_is_followed_from_before_it_exists_until_its_process_is_killed(tmp_path: Path) -> None:
    with started("watch", "--headless", "--json") as watch:
        line_with("waiting for a run in", watch.stderr)
        run, _ = slow_run(tmp_path)
        line_with("s1 running", watch.stderr)
        assert watch.poll() is None
        kill(run)
        out, err = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, out) == (1, "")
    assert err.splitlines()[-1] == DIED.format(run=the_journal().stem)


def test_watching_ends_with_the_runs_result(tmp_path: Path) -> None:
    run, pipe = slow_run(tmp_path)
    with started("watch", "--headless", "--json") as watch:
        line_with("s1 running", watch.stderr)
        pipe.write_text("done")
        ran, _ = run.communicate(timeout=PATIENCE)
        out, _ = watch.communicate(timeout=PATIENCE)
    assert (run.returncode, watch.returncode) == (0, 0)
    assert json.loads(out) == json.loads(ran)


def test_ctrl_c_ends_the_waiting_in_one_line(tmp_path: Path) -> None:
    with started("watch", "--headless", "none") as watch:
        line_with("waiting for the run 'none'", watch.stderr)
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=PATIENCE)
    assert (watch.returncode, out, err) == (1, "", "aeon-tui: interrupted\n")


@pytest.mark.exhaustive
async def test_a_killed_run_is_watched_across_its_resume(tmp_path: Path) -> None:
    run, pipe = slow_run(tmp_path)
    app = AeonApp(RUNS)
    app.open_on_watched(Awaited(None, RUNS))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        assert isinstance(screen, RunScreen)
        await until(pilot, lambda: screen.status == "running")
        kill(run)
        await until(pilot, lambda: screen.status == "interrupted")
        died = "the run's process has ended; press R to resume it"
        await until(pilot, lambda: told(screen) == [died], lambda: str(told(screen)))
        with started("resume", "last", "--headless", "--tools", "slow:wait") as resumed:
            await until(pilot, lambda: screen.status == "running")
            assert await asyncio.to_thread(Path(f"{tmp_path / 'pipe'}.in").read_text) == "started"
            pipe.write_text("done")
            await until(pilot, lambda: screen.status == "converged")
            resumed.communicate(timeout=PATIENCE)
        assert screen.view.steps["s1"].output == {"result": "done"}
