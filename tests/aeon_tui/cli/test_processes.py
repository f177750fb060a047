"""The command as a process, on the simulated model: the whole of Aeon, from the arguments to the journal."""

from __future__ import annotations

import json
import os
import pty
import resource
import shlex
import signal
import subprocess
import sys
import threading
from argparse import Namespace
from pathlib import Path

import pytest
from pydantic_core import SchemaError

from aeon_tui.cli.main import main
from tests.aeon_tui.cli.conftest import Cli, environment, process
from tests.sampling import sample
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("default_signals")

RUNS = Path(".aeon/runs")
TASK = "calculate the sum of 5 and 10"

SLOW = """
import os, select
from aeon_core import tool

@tool(effect="pure")
def wait(pipe: str) -> str:
    "Waits until something is written to the pipe."
    ended = os.open(pipe + ".out", os.O_RDONLY | os.O_NONBLOCK)
    with open(pipe + ".in", "w") as started:
        started.write("started")
    # Python sees a signal that comes just before a call that blocks only after that call.
    while not select.select([ended], [], [], 0.1)[0]:
        pass
    return os.read(ended, 100).decode()
"""


def test_the_demo_shows_a_repair_two_passes_and_its_answer_on_one_screen(cli: Cli) -> None:
    done = cli("demo", "--headless")
    assert done.code == 0
    told = done.err.splitlines()
    assert len(told) + len(done.out.splitlines()) < 40
    assert "Answer (simulated model)\nA REST API for invoices\nResources: " in done.out
    assert "simulated:missing-tool (simulated)" in done.err
    story = [
        "── pass 1 ──",
        "warning: validation found 1 issue · high · hallucination · s1: ",
        "change s1, accepted: ",
        "s1 complete · reasoning → ",
        "pass 1 not converged: the goal is not covered · completeness 0.",
        "replace s5, accepted: ",
        "── pass 2 ──",
        "s5.1 complete · reasoning → ",
        "pass 2 converged: complete, coherent, consistent · ",
        "run converged · 2 passes · completeness 1.00, coherence 1.00 · journal ",
    ]
    places = [next(place for place, line in enumerate(told) if line.startswith(text)) for text in story]
    assert places == sorted(places)
    assert "\x1b" not in done.out + done.err


@pytest.mark.exhaustive
def test_the_demo_ends_with_commands_that_work_without_a_key(cli: Cli) -> None:
    told = " ".join(cli("demo", "--headless").err.splitlines()[-2:])
    commands = [shlex.split(command) for command in told.split("`")[1::2]]
    assert len(commands) == 2
    for command in commands:
        of_the_program = command[3:] if command[:3] == ["python", "-m", "aeon_tui"] else command[1:]
        assert cli(*of_the_program).code == 0


@pytest.mark.exhaustive
def test_a_run_is_listed_and_shown_by_another_process(cli: Cli) -> None:
    run = process("run", "--headless", "--json", "--model", "simulated:default", TASK)
    result = json.loads(run.stdout)
    assert (run.returncode, result["status"], result["simulated"]) == (0, "converged", True)
    assert result["steps"][0]["output"] == {"result": 15}
    assert "15" in result["answer"]
    assert [run["status"] for run in json.loads(cli("runs", "--json").out)] == ["converged"]
    history = json.loads(cli("show", "last", "--json").out)
    assert history["final_result"] == result
    assert history["passes"][0]["execution_results"]["answer"] == result["answer"]
    assert '{"result": 15}' in cli("show", result["run_id"]).out


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "code", "told"),
    sample(
        [
            ("malformed", 0, "warning: json repair (local, 1/2) succeeded"),
            ("broken", 0, "warning: json repair (llm, 1/2) succeeded"),
            ("unrepairable", 1, "aeon-tui: the plan could not be repaired in 2 attempts"),
            ("no-such-tool", 0, "warning: s1 complete · fallback reasoning"),
            ("bad-arguments", 0, "warning: s1 · tool call repair (local, 1/2) succeeded"),
            ("refused-key", 3, "aeon-tui: "),
            ("hostile", 0, r"\x1b[31mred\x1b[0m"),
            ("nonsense", 3, "aeon-tui: "),
        ],
        3,
        rows=True,
    ),
)
def test_each_misbehaviour_has_its_exit_code_and_is_reported(cli: Cli, model: str, code: int, told: str) -> None:
    done = cli("run", "--headless", "--json", "--model", f"simulated:{model}", TASK)
    assert done.code == code
    assert told in done.err
    assert "Traceback" not in done.err
    assert (done.out == "") == (model == "nonsense")


def slow_run(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a run whose only step waits; return it when the tool has begun, and the pipe that would end it."""
    (folder / "slow.py").write_text(SLOW)
    pipe = folder / "pipe"
    os.mkfifo(f"{pipe}.in")
    os.mkfifo(f"{pipe}.out")
    step = {"step_id": "s1", "description": "wait", "tool": "wait", "arguments": {"pipe": str(pipe)}}
    (folder / "plan.json").write_text(json.dumps({"goal": "wait", "steps": [step]}))
    command = [sys.executable, "-m", "aeon_tui", "run", "--headless", "--json", "--model", "simulated:default"]
    started = subprocess.Popen(
        [*command, "--tools", "slow:wait", "--plan", "plan.json"],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    Path(f"{pipe}.in").read_text()
    return started, Path(f"{pipe}.out")


def statuses(cli: Cli) -> list[str]:
    return [run["status"] for run in json.loads(cli("runs", "--json").out)]


def test_a_run_is_running_while_its_process_lives_and_interrupted_when_it_was_killed(cli: Cli, tmp_path: Path) -> None:
    run, _ = slow_run(tmp_path)
    try:
        assert statuses(cli) == ["running"]
    finally:
        run.kill()
        run.communicate()
    assert statuses(cli) == ["interrupted"]
    shown = cli("show", "last")
    assert (shown.code, shown.err) == (0, "")
    assert "status   interrupted" in shown.out
    assert "s1 stopped · tool wait · wait" in shown.out


def test_ctrl_c_lets_a_tool_end_and_the_second_one_does_not(cli: Cli, tmp_path: Path) -> None:
    run, pipe = slow_run(tmp_path)
    assert run.stderr is not None
    run.send_signal(signal.SIGINT)
    while "aborting" not in (line := run.stderr.readline()):
        assert line, "it ended without a word"
    pipe.write_text("done")
    out, _ = run.communicate(timeout=PATIENCE)
    assert (run.returncode, json.loads(out)["status"]) == (1, "aborted")
    assert json.loads(out)["steps"][0]["output"] == {"result": "done"}
    assert statuses(cli) == ["aborted"]


@pytest.mark.parametrize("number", sample([signal.SIGHUP, signal.SIGINT, signal.SIGTERM], 1))
def test_a_second_signal_stops_at_once(tmp_path: Path, number: signal.Signals) -> None:
    run, _ = slow_run(tmp_path)
    assert run.stderr is not None
    run.send_signal(number)
    while "aborting" not in (line := run.stderr.readline()):
        assert line, "it ended without a word"
    run.send_signal(number)
    out, _ = run.communicate(timeout=PATIENCE)
    assert (run.returncode, json.loads(out)["status"]) == (1, "aborted")


def test_progress_on_a_terminal_is_coloured_and_a_piped_result_is_not() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", buffering=0) as screen:
        done = process(
            *("run", "--headless", "--model", "simulated:missing-tool", TASK),
            stderr=theirs,
            stdout=subprocess.PIPE,
            capture_output=False,
            env=environment(TERM="xterm-256color"),
        )
        os.close(theirs)
        shown = screen.read(100_000)
    assert done.returncode == 0
    assert b"\x1b[33mwarning: \x1b[0m" in shown
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SchemaError("Error building:\n  KeyboardInterrupt: ")])
def test_a_ctrl_c_during_an_import_and_another_while_it_is_reported_print_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def execute(_: Namespace) -> int:
        raise error

    def pressed(text: str) -> str:
        signal.raise_signal(signal.SIGINT)
        return text

    monkeypatch.setattr("aeon_tui.cli.runs.execute", execute)
    monkeypatch.setattr("aeon_core.redaction.redact_text", pressed)
    before = signal.getsignal(signal.SIGINT)
    assert main(["runs"]) == 1
    assert capsys.readouterr().err == "aeon-tui: interrupted\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_without_file_descriptors_says_how_to_get_more(tmp_path: Path) -> None:
    tasks = [json.dumps({"id": str(number), "task": TASK}) for number in range(8)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(tasks))
    done = process(
        *("batch", "tasks.jsonl", "--model", "simulated:default", "--jobs", "8"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)),
    )
    told = "aeon-tui: the limit of open files is reached; raise what `ulimit -n` prints, or lower --jobs\n"
    assert (done.returncode, done.stderr) == (1, told)


@pytest.mark.parametrize(
    ("module", "arguments", "code"),
    [
        ("aeon_tui.cli.main", ["schema"], 0),
        ("system2.__main__", ["--wait", "soon", "task"], 2),
        ("system2.__main__", ["--help"], 0),
    ],
)
@pytest.mark.parametrize("when", ["while it waits for threads", "while it removes its modules"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_ctrl_c_or_a_termination_while_python_exits_leaves_the_exit_code(
    module: str, arguments: list[str], code: int, when: str, number: signal.Signals
) -> None:
    script = f"""
import signal, sys, threading
from {module} import main

class Late:
    def __del__(self, press=signal.raise_signal, number={int(number)}):
        press(number)

if {when == "while it waits for threads"}:
    threading._register_atexit(signal.raise_signal, {int(number)})
else:
    sys.late = Late()
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", script, *arguments], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr.partition(";")[0]) == (
        code,
        "system2: --wait must be a number of seconds, 0 or more" if code else "",
    )


@pytest.mark.parametrize("module", ["aeon_tui.cli.main", "system2.__main__"])
@pytest.mark.parametrize(
    ("imported", "statement"),
    [
        ("argparse", 'type("Owner", (), {"named": Named()})'),
        # As when a dataclass is made; it must not end the process of `python -m` with the signal.
        ("aeon_core.paths", 'exec("signal.raise_signal(signal.SIGINT)")'),
        # An extension such as msgspec's, if it imported this first, would drop the interrupt and crash later.
        ("datetime", "signal.raise_signal(signal.SIGINT)"),
    ],
)
def test_a_ctrl_c_during_the_first_imports_ends_the_command(
    module: str, imported: str, statement: str, tmp_path: Path
) -> None:
    script = f"""
import signal, sys
from {module} import main

class Named:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "{imported}":
            sys.meta_path.remove(self)
            {statement}

sys.meta_path.insert(0, Interrupted())
sys.exit(main())
"""
    (tmp_path / "started.py").write_text(script)
    words = [sys.executable, "-m", "started", "schema"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    program = "system2" if module.startswith("system2") else "aeon-tui"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{program}: interrupted\n")


def test_a_ctrl_c_before_the_result_is_printed_is_no_success() -> None:
    script = """
import io, signal, sys
from aeon_tui.cli.main import main

class Slow(io.TextIOWrapper):
    printed = False

    def write(self, text):
        self.printed = True
        return super().write(text)

    def flush(self):
        if self.printed:
            signal.raise_signal(signal.SIGINT)
        super().flush()

sys.stdout = Slow(sys.stdout.detach())
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", script, "schema"], env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_an_error_of_a_command_that_a_thread_calls_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    caller = threading.Thread(target=lambda: codes.append(main(["show", "last", "--runs-dir", "none"])))
    caller.start()
    caller.join()
    assert codes == [2]
    assert capsys.readouterr().err.count("\n") == 1
