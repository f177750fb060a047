from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.shell.isolation import Isolation, Limits
from aeon_core.tools.shell.process import CommandEnding, CommandJob, CommandOutput, run, shell_words
from tests.waiting import PATIENCE, wait_until

BASH = shutil.which("bash") or "bash"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the launcher needs Linux")

# Ends by itself within seconds should the cleanup fail: 2 ** 6 processes, each in a session of its own.
TREE = """
import os, time
for _ in range(6):
    os.fork()
    os.setsid() if os.getpgrp() != os.getpid() else None
open(f"tree/{os.getpid()}", "w").close()
time.sleep(20)
"""

ASKING = """
import os, shutil
from pathlib import Path
from aeon_core.tools.shell.isolation import Isolation
from aeon_core.tools.shell.isolation import Limits
from aeon_core.tools.shell.process import CommandOutput
from aeon_core.tools.shell.process import CommandJob, run, shell_words
here = Path.cwd()
words = shell_words(shutil.which("bash"), "setsid sleep 600 & echo $$ $! > new; mv new pids; wait")
limits = Limits(here, here, network=True)
command = lambda status, _: Isolation("none", True).command(words, limits, status)
run(CommandJob(command, True, here, os.environ, 600), CommandOutput(Path.cwd))
"""


def job(tmp_path: Path, command: str, timeout: float = PATIENCE, supervised: bool = False) -> CommandJob:
    words = shell_words(BASH, command)
    limits = Limits(tmp_path, tmp_path, network=True)
    isolation = Isolation("none", network=True)
    build = (lambda status, _: isolation.command(words, limits, status)) if supervised else (lambda *_: words)
    return CommandJob(build, supervised, tmp_path, {"PATH": os.environ["PATH"]}, timeout)


@pytest.fixture
def output(tmp_path: Path) -> CommandOutput:
    return CommandOutput(lambda: tmp_path)


@pytest.fixture(params=[False, pytest.param(True, marks=ON_LINUX)], ids=["direct", "launcher"])
def supervised(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_both_streams_and_the_code_are_given(tmp_path: Path, output: CommandOutput, supervised: bool) -> None:
    ended = run(job(tmp_path, "pwd; echo oops >&2; exit 7", supervised=supervised), output)
    assert ended == CommandEnding(7, "itself")
    assert (output.text("stdout"), output.text("stderr")) == (f"{tmp_path}\n", "oops\n")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("number", "code"), [("KILL", 137), ("SEGV", 139), ("TERM", 143)])
def test_a_signal_is_reported_as_bash_does(
    tmp_path: Path, output: CommandOutput, supervised: bool, number: str, code: int
) -> None:
    assert run(job(tmp_path, f"kill -{number} $$", supervised=supervised), output) == CommandEnding(code, "itself")


def test_a_command_has_no_input(tmp_path: Path, output: CommandOutput, supervised: bool) -> None:
    assert run(job(tmp_path, "read -r line; echo $?; cat", supervised=supervised), output) == CommandEnding(0, "itself")
    assert output.text("stdout") == "1\n"


def test_a_background_process_with_the_pipe_does_not_block_the_call(
    tmp_path: Path, output: CommandOutput, supervised: bool
) -> None:
    assert run(job(tmp_path, "sleep 600 & echo $!", supervised=supervised), output).by == "itself"
    wait_until(lambda: not alive(int(output.text("stdout"))))


@pytest.mark.exhaustive
def test_a_time_out_ends_the_group(tmp_path: Path, output: CommandOutput, supervised: bool) -> None:
    command = "trap '' TERM INT; sleep 600 & echo $!; sleep 600; touch late"
    assert run(job(tmp_path, command, 1.5, supervised), output) == CommandEnding(124, "timeout")
    wait_until(lambda: not alive(int(output.text("stdout"))))
    assert not (tmp_path / "late").exists()


def test_a_command_that_closed_its_streams_is_awaited(tmp_path: Path, output: CommandOutput, supervised: bool) -> None:
    command = "exec >&- 2>&-; sleep 0.3; echo done > late"
    assert run(job(tmp_path, command, supervised=supervised), output) == CommandEnding(0, "itself")
    assert (tmp_path / "late").read_text() == "done\n"


@ON_LINUX
def test_processes_in_new_sessions_are_ended_too(tmp_path: Path, output: CommandOutput) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree.py").write_text(TREE)
    command = f"{sys.executable} -I -S tree.py & until [ $(ls tree | wc -l) = 64 ]; do sleep 0.05; done"
    assert run(job(tmp_path, command, supervised=True), output) == CommandEnding(0, "itself")
    pids = [int(place.name) for place in (tmp_path / "tree").iterdir()]
    assert len(pids) == 64
    assert [pid for pid in pids if alive(pid)] == []


@pytest.mark.exhaustive
@ON_LINUX
@pytest.mark.parametrize(("number", "by"), [("KILL", "itself"), ("STOP", "timeout")])
def test_a_command_that_attacks_its_launcher_does_not_block_the_call(
    tmp_path: Path, output: CommandOutput, number: str, by: str
) -> None:
    ended = run(job(tmp_path, f"echo $$; kill -{number} $PPID; sleep 600; touch late", 2, supervised=True), output)
    assert ended.by == by
    wait_until(lambda: not alive(int(output.text("stdout"))))
    assert not (tmp_path / "late").exists()


@pytest.mark.exhaustive
@ON_LINUX
def test_the_command_ends_when_its_caller_dies(tmp_path: Path) -> None:
    asking = subprocess.Popen(
        [sys.executable, "-c", ASKING], cwd=tmp_path, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        wait_until(lambda: (tmp_path / "pids").exists())
    finally:
        asking.kill()
        asking.wait()
    shell, background = map(int, (tmp_path / "pids").read_text().split())
    wait_until(lambda: not alive(shell) and not alive(background))


def test_an_interruption_ends_the_command_and_is_passed_on(
    tmp_path: Path, output: CommandOutput, supervised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(stream: str, chunk: bytes) -> None:
        monkeypatch.undo()
        output.add("stdout", chunk)
        raise KeyboardInterrupt

    monkeypatch.setattr(output, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(job(tmp_path, "echo $$; sleep 600", supervised=supervised), output)
    wait_until(lambda: not alive(int(output.text("stdout"))))


def test_a_command_can_be_cancelled_from_another_thread(
    tmp_path: Path, output: CommandOutput, supervised: bool
) -> None:
    cancelled = threading.Event()

    def cancel() -> None:
        wait_until(lambda: "\n" in output.text("stdout"))
        cancelled.set()

    threading.Thread(target=cancel).start()
    assert run(job(tmp_path, "echo $$; sleep 600", supervised=supervised), output, cancelled) == CommandEnding(
        137, "cancel"
    )
    wait_until(lambda: not alive(int(output.text("stdout"))))


def test_a_flood_is_ended_at_the_bound_and_kept_in_a_private_file(tmp_path: Path, supervised: bool) -> None:
    output = CommandOutput(lambda: tmp_path, shown=1000, whole=100_000)
    assert run(job(tmp_path, "yes", supervised=supervised), output) == CommandEnding(137, "output")
    assert output.path is not None
    assert output.path.stat().st_size == 100_001
    assert stat.S_IMODE(output.path.stat().st_mode) == 0o600
    assert len(output.text("stdout")) < 1300


def test_the_number_of_processes_is_bounded(tmp_path: Path, output: CommandOutput) -> None:
    run(job(tmp_path, "ulimit -u; ulimit -c"), output)
    processes, core = output.text("stdout").split()
    assert 2048 <= int(processes) < 100_000
    assert core == "0"


def test_the_command_has_no_other_descriptors(tmp_path: Path, output: CommandOutput) -> None:
    run(job(tmp_path, "ls /proc/self/fd | wc -l", supervised=True), output)
    assert output.text("stdout") == "4\n"  # three, and the one that lists


@pytest.mark.parametrize(
    ("command", "message"),
    [("echo \0", "the command cannot be run: .*NUL"), ("x" * 3_000_000, "the command cannot be run: Argument list")],
    ids=["nul", "long"],
)
def test_a_command_that_cannot_start_is_an_error(
    tmp_path: Path, output: CommandOutput, command: str, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        run(job(tmp_path, command), output)


@ON_LINUX
def test_a_program_that_is_missing_behind_the_launcher_is_an_error(tmp_path: Path, output: CommandOutput) -> None:
    limits = Limits(tmp_path, tmp_path, network=True)
    isolation = Isolation("none", network=True)
    missing = CommandJob(
        lambda status, seccomp: isolation.command(["/no/such"], limits, status, seccomp), True, tmp_path, {}, 30
    )
    with pytest.raises(ToolError, match="the command was not run because its isolation failed: FileNotFoundError"):
        run(missing, output)


@given(st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(max_size=30)), max_size=20))
def test_text_is_kept_whole_or_as_both_ends(tmp_path_factory: pytest.TempPathFactory, writes: list) -> None:  # type: ignore[type-arg]
    folder = tmp_path_factory.mktemp("output")
    output = CommandOutput(lambda: folder, shown=40)
    chunks = [(stream, text.encode("utf-8", "replace")) for stream, text in writes]
    for stream, chunk in chunks:
        output.add(stream, chunk)
    output.close()
    for stream in ("stdout", "stderr"):
        whole = b"".join(chunk for name, chunk in chunks if name == stream)
        shown = output.text(stream)
        if len(whole) <= 40:
            assert shown.encode() == whole
        else:
            head, marker, tail = shown.partition("\n[TRUNCATED] ")
            assert whole.startswith(head.encode())
            assert marker
            assert whole.endswith(tail.partition("\n")[2].encode())
    if output.truncated:
        assert output.path is not None
        assert output.path.read_bytes() == b"".join(chunk for _, chunk in chunks)


def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    output = CommandOutput(lambda: tmp_path / "missing", shown=10)
    output.add("stdout", b"x" * 100)
    output.close()
    assert output.path is None
    assert output.problem == "could not save the whole output: No such file or directory"
    assert "[TRUNCATED] 90 bytes left out\n" in output.text("stdout")


def test_output_that_cannot_be_saved_whole_leaves_no_part_of_it(tmp_path: Path) -> None:
    output = CommandOutput(lambda: tmp_path, shown=10)
    output.add("stdout", b"x" * 5000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        output.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (output.problem, output.path) == ("could not save the whole output: File too large", None)
    assert list(tmp_path.iterdir()) == []
