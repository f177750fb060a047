"""`python -m system2` as a person or a script meets it: exit codes, one line an error, streams, logs."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import SchemaError

from aeon_core.approvals import ApprovalRequest
from system2.__main__ import main
from system2.terminal import Terminal
from tests.aeon_core.llm.conftest import server
from tests.aeon_core.llm.server import Reply, Server
from tests.sampling import sample
from tests.system2.workflows import TASK, transcript
from tests.waiting import PATIENCE

__all__ = ["server"]
pytestmark = pytest.mark.usefixtures("default_signals", "programs_on_path")

SIMULATED = ("--model", "simulated:default")


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def system2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command, called in this process, without a terminal and in a folder that is also the home."""

    def run(*args: str, cwd: Path, text: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(cwd)
        monkeypatch.setenv("HOME", str(cwd))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = main(list(args))
        done = capsys.readouterr()
        return subprocess.CompletedProcess(args, code, done.out, done.err)

    return run


def process(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AEON_"))}
    return subprocess.run(
        [sys.executable, "-m", "system2", *args],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        env={**environ, "HOME": str(cwd), "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SchemaError("Error building:\n  KeyboardInterrupt: ")])
def test_ctrl_c_while_the_command_starts_is_one_line(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> None:
        raise error

    monkeypatch.setattr("system2.command.execute", interrupted)
    assert main(["t"]) == 1
    assert capsys.readouterr().err == "system2: interrupted\n"


@pytest.mark.exhaustive
def test_a_whole_workflow_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    done = process(*SIMULATED, "--auto-approve", TASK, cwd=below)
    assert (done.returncode, done.stdout) == (0, "")
    assert "[GATE] Gate 5 (summary) -> APPROVED at " in done.stderr
    assert "=== Workflow Summary ===" in done.stderr
    # The root is where .git is.
    assert (tmp_path / "spec" / "tasks.md").exists()
    assert not (below / "spec").exists()
    assert (tmp_path / ".system2" / "runs" / ".gitignore").read_text() == "*\n"
    files = list((tmp_path / ".system2" / "runs").glob("*.jsonl"))
    assert len(files) == 1
    assert files[0].stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        ((), 2, 'system2: no task given, and no terminal to ask on; run system2 "the task"'),
        (("task",), 2, "system2: there is no terminal to decide the gates on"),
        (("--auto-approve", " "), 2, "system2: the task is empty"),
        (
            ("--auto-approve", "task"),
            3,
            "system2: no AWS region for Amazon Bedrock: set AWS_REGION, such as us-east-1; or choose another model ",
        ),
        (
            ("--auto-approve", "--model", "bedrock:m", "task"),
            3,
            "system2: no AWS region for Amazon Bedrock: set AWS_REGION, such as us-east-1\n",
        ),
        (("--auto-approve", "--model", "nope", "task"), 2, "system2: the model 'nope' has no provider"),
        (("--auto-approve", "--model", "simulated:nope", "task"), 3, "system2: no simulated model 'nope'"),
        (("--project-root", "/no/folder", "task"), 2, "system2: the project root '/no/folder' is not a folder"),
        (
            ("--project-root", "~nobody-here/x", "task"),
            2,
            "system2: --project-root: the home folder in '~nobody-here/x'",
        ),
        (("--runs-dir", "~nobody-here/x", "task"), 2, "system2: --runs-dir: the home folder in '~nobody-here/x'"),
        (("--log-file", "~nobody-here/x", "--auto-approve", *SIMULATED, "task"), 2, "system2: the log file: the home "),
        (("--resume", "~nobody-here/x", "--auto-approve", *SIMULATED), 2, "system2: the journal: the home folder in "),
        (("--resume", "last", "--auto-approve", *SIMULATED), 2, "system2: no workflow of"),
        (("--resume", "nosuch"), 2, "system2: no run 'nosuch' in "),
        *(((option, "", "task"), 2, f"system2: {option} is empty; give it a") for option in ("--model", "--log-file")),
        (("--wait", "soon", "task"), 2, "system2: --wait must be a number of seconds, 0 or more; got 'soon'\n"),
        (("--wait", "-1", "task"), 2, "system2: --wait must be a number of seconds, 0 or more; got '-1'\n"),
        (("--log-format", "xml"), 2, "system2: argument --log-format"),
        (("--nope",), 2, "system2: unknown option '--nope'; see `system2 --help`"),
        (("--modle", "x"), 2, "system2: unknown option '--modle'; did you mean '--model'?"),
        (("--init", "task"), 2, "system2: --init only copies the shipped agents; drop the task and --resume\n"),
        (("--init", "--resume", "last"), 2, "system2: --init only copies the shipped agents; drop the task"),
        (("--resume", "last", "task"), 2, "system2: --resume continues the workflow's own task; drop the task\n"),
        (("--resume", "last", "--spec", "continue"), 2, "system2: --spec is for a new workflow; drop it, or "),
        (("two", "words"), 2, "system2: unexpected argument 'words'; quote a task of several words"),
    ],
)
def test_a_usage_error_is_one_line_and_writes_nothing(
    args: tuple[str, ...],
    code: int,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    try:
        ended: Any = main(list(args))
    except SystemExit as end:
        ended = end.code
    done = capsys.readouterr()
    assert (ended, done.out) == (code, "")
    assert done.err.startswith(line), done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_missing_credentials_are_exit_3(system2: Command, tmp_path: Path) -> None:
    (tmp_path / ".system2").mkdir()
    (tmp_path / ".system2" / "config.yml").write_text("providers: {bedrock: {region: eu-west-1}}\n", "utf-8")
    done = system2("--auto-approve", "--trust-project", "task", cwd=tmp_path)
    assert done.returncode == 3
    assert "credentials" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_log_goes_to_a_file_as_json_and_stderr_stays_empty(tmp_path: Path) -> None:
    args = ("--auto-approve", "--log-format", "json", "--log-file", "logs/run.log")
    done = process(*SIMULATED, *args, TASK, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    entries = [json.loads(line) for line in (tmp_path / "logs" / "run.log").read_text("utf-8").splitlines()]
    kinds = {entry["type"] for entry in entries}
    assert {"tool_exec", "gate_decision"} <= kinds
    tool = next(entry for entry in entries if entry["type"] == "tool_exec")
    assert tool.keys() >= {"ts", "level", "tool", "args", "success", "duration_ms"}


@pytest.mark.parametrize(("file", "option"), [(".system2/config.yml", ()), ("own.yml", ("--config", "own.yml"))])
def test_the_settings_choose_the_logs_format_and_file(
    file: str, option: tuple[str, ...], system2: Command, tmp_path: Path
) -> None:
    (tmp_path / ".system2").mkdir()
    settings = "{log_format: json, log_destination: .system2/run.log, transcript_dir: .system2/own}"
    (tmp_path / file).write_text(f"providers: {{bedrock: {{orchestrator: {settings}}}}}\n")
    done = system2(*SIMULATED, "--auto-approve", *option, TASK, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    entries = [json.loads(line) for line in (tmp_path / ".system2/run.log").read_text("utf-8").splitlines()]
    assert "gate_decision" in {entry["type"] for entry in entries}
    assert len(list((tmp_path / ".system2/own").glob("*.jsonl"))) == 1


@pytest.mark.exhaustive
def test_a_log_in_json_on_stderr_ends_in_json(
    system2: Command, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    server.script(Reply({"error": "wrong key"}, status=401))
    model = ("--model", "openai:x", "--base-url", server.url)
    done = system2(*model, "--auto-approve", "--log-format", "json", TASK, cwd=tmp_path)
    assert done.returncode == 3
    why, how = [json.loads(line) for line in done.stderr.splitlines()][-2:]
    assert (why["level"], why["type"]) == ("ERROR", "error")
    assert how["text"].startswith("continue with: system2 --resume ")
    server.script(Reply({"error": "wrong key"}, status=401))
    done = system2(*model, "--auto-approve", "--log-format", "json", "--log-file", "log", TASK, cwd=tmp_path)
    why, how = done.stderr.splitlines()[-2:]
    assert how.startswith("continue with: ")
    assert f"system2: {json.loads((tmp_path / 'log').read_text('utf-8').splitlines()[-1])['text']}" == why


def test_a_workflow_that_waits_shows_the_gate_unless_its_log_is_json(system2: Command, tmp_path: Path) -> None:
    waiting = (*SIMULATED, "--wait", "0.01", "--spec", "replace", TASK)
    shown = system2(*waiting, cwd=tmp_path).stderr
    assert shown.index("--- spec/scope.md") < shown.index("=== Gate 0 (scope) ===") < shown.index("waiting 0.01 s")
    lines = system2(*waiting, "--log-format", "json", cwd=tmp_path).stderr.splitlines()
    assert any("waiting 0.01 s" in json.loads(line)["text"] for line in lines if '"info"' in line)


def test_a_byte_order_mark_on_standard_input_is_dropped(system2: Command, tmp_path: Path) -> None:
    args = ("--auto-approve", "--runs-dir", "runs", "-")
    assert system2(*SIMULATED, *args, cwd=tmp_path, text=f"\ufeff{TASK}\n").returncode == 0
    (journal,) = (tmp_path / "runs").glob("*.jsonl")
    assert json.loads(journal.read_text("utf-8").splitlines()[0])["task"] == TASK


def test_the_log_records_why_a_workflow_could_not_start(
    system2: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    args = ("--model", "openai:x", "--auto-approve", "--log-format", "json")
    done = system2(*args, TASK, cwd=tmp_path)
    assert done.returncode == 3
    why = json.loads(done.stderr)["text"]
    assert why.startswith("no key for 'openai:x'")
    done = system2(*args, "--log-file", "log", TASK, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, f"system2: {why}\n")
    assert json.loads((tmp_path / "log").read_text("utf-8"))["text"] == why


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_file_on_a_full_disk_is_reported_once_and_the_work_continues(system2: Command, tmp_path: Path) -> None:
    done = system2(*SIMULATED, "--auto-approve", "--log-file", "/dev/full", TASK, cwd=tmp_path)
    said = (
        "WARNING: cannot write the log file '/dev/full': No space left on device; the work continues, but is not logged"
    )
    assert (done.returncode, done.stderr) == (0, f"{said}\n")


def test_a_log_file_that_cannot_be_written_is_reported_before_any_call(system2: Command, tmp_path: Path) -> None:
    done = system2(*SIMULATED, "--auto-approve", "--log-file", "/proc/nope/log", TASK, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("system2: cannot write the log file '/proc/nope/log'")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.exhaustive
def test_a_transcript_folder_that_cannot_be_written_warns_and_the_work_continues(
    system2: Command, tmp_path: Path
) -> None:
    (tmp_path / ".system2").write_text("a file", "utf-8")
    done = system2(*SIMULATED, "--auto-approve", TASK, cwd=tmp_path)
    assert done.returncode == 0
    assert "WARNING: cannot write the transcript" in done.stderr
    assert "Transcript:      none: it could not be written" in done.stderr
    assert (tmp_path / "spec" / "tasks.md").exists()


@pytest.mark.exhaustive
def test_bash_is_refused_without_a_terminal_and_run_with_unsafe_bash(system2: Command, tmp_path: Path) -> None:
    refused = system2(*SIMULATED, "--auto-approve", TASK, cwd=tmp_path)
    assert "ERROR: the call of 'Bash' was not approved" in refused.stderr
    allowed = system2(*SIMULATED, "--auto-approve", "--unsafe-bash", "--spec", "replace", TASK, cwd=tmp_path)
    assert '[TOOL] Bash command="python3 tests/test_build_a_rest_api_2.py" -> success' in allowed.stderr


@pytest.mark.exhaustive
def test_init_copies_what_the_project_lacks(system2: Command, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "mine.md").write_text("---\nname: executor\ndescription: mine\ntools: Read\n---\nDo it.\n", "utf-8")
    done = system2("--init", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.count("written: ") == 12
    assert "not changed: executor, the project already has it in 'mine.md'" in done.stderr
    assert len(list(folder.iterdir())) == 13


@pytest.mark.exhaustive
def test_a_termination_aborts_the_workflow_and_prints_how_to_continue(tmp_path: Path) -> None:
    # A model that never answers: a port that takes the connection and says nothing.
    import socket

    with socket.create_server(("127.0.0.1", 0)) as quiet:
        url = f"http://127.0.0.1:{quiet.getsockname()[1]}/v1"
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "system2",
                *f"--auto-approve --wait 60 --model openai:x --base-url {url}".split(),
                TASK,
            ],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = quiet.accept()
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=PATIENCE)
        connection.close()
    assert process.returncode == 1
    assert "system2: interrupted" in stderr
    (path,) = (tmp_path / ".system2" / "runs").glob("*.jsonl")
    run_id = transcript(path)[0]["run"]
    options = f"--model openai:x --base-url {url} --wait 60 --auto-approve"
    assert f"continue with: system2 --resume {run_id} {options}\n" in stderr
    assert transcript(path)[-1]["status"] == "aborted"


def test_help_names_every_option_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    options = {word.strip("[],") for word in shown.split() if word.startswith(("--", "[--"))}
    assert options == {
        *("--unsafe-bash", "--auto-approve", "--config", "--project-root", "--log-format", "--log-file", "--verbose"),
        *("--model", "--base-url", "--init", "--trust-project", "--resume", "--runs-dir", "--wait", "--spec", "--help"),
    }
    assert "4 cost ceiling reached" in " ".join(shown.split())


@pytest.mark.parametrize("argument", ["--help", "--nonsense"])
def test_help_and_a_wrong_option_load_neither_the_workflow_nor_pydantic(argument: str) -> None:
    code = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from system2.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, check=False)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "system2.__main__" in loaded, done.stderr
    assert not loaded & {"system2.command", "system2.orchestrator", "pydantic"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", sample(["", "1"]))
def test_help_that_a_full_disk_cannot_take_is_an_error_in_one_line(
    unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    help_command = [sys.executable, "-m", "system2", "--help"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(help_command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "system2: cannot write the output: No space left on device\n")


@pytest.mark.parametrize(
    ("argument", "code"), [("--model=nope", 2), *sample([("--nonsense", 2), ("--help", 0)], rows=True)]
)
def test_a_reader_that_has_gone_changes_no_exit_code(argument: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "system2", "--auto-approve", argument, "task"]
    done = subprocess.run(command, stdout=writer, stderr=writer, timeout=60, check=False)
    os.close(writer)
    assert done.returncode == code


def at_terminal(*typed: str) -> tuple[Terminal, io.StringIO]:
    shown = io.StringIO()
    return Terminal(io.StringIO("".join(f"{line}\n" for line in typed)), shown), shown


def asked(point: Any, **subject: Any) -> ApprovalRequest:
    return ApprovalRequest(point=point, pass_number=0, subject=subject, digest="d")


@pytest.mark.parametrize(
    ("typed", "decision", "feedback"),
    [
        (["a"], "approve", None),
        (["yes"], "approve", None),
        (["a but later", "", "q", "x", "X"], "abort", None),
        (["r not this", "w name the owner"], "reject", "name the owner"),
        (["w", "name the owner"], "reject", "name the owner"),
        (["w", "", "r", "a"], "approve", None),
        ([], "abort", "the input ended without an answer"),
    ],
)
def test_a_gate_accepts_words_and_requires_a_reason_to_reject(
    typed: list[str], decision: str, feedback: str | None
) -> None:
    terminal, shown = at_terminal(*typed)
    scope = "# Scope\n\x1b[2Jhidden\n"
    said = terminal(asked("gate", gate=0, artifact="spec/scope.md", content=scope, summary="it is done"))
    assert (said.decision, said.feedback) == (decision, feedback)
    text = shown.getvalue()
    assert "=== Gate 0 (scope) ===" in text
    assert "# Scope" in text
    assert "\x1b" not in text
    assert text.endswith("] \n") is (typed == [])  # what follows the end of the input has its own line


def test_many_long_lines_do_not_flood_the_terminal() -> None:
    terminal, shown = at_terminal("refuse")
    diff = "\n".join(f"+{'x' * 5_000}" for _ in range(1_000))
    terminal(asked("tool", tool_name="Edit", arguments={"file_path": "a.js"}, reason="", preview={"diff": diff}))
    assert len(shown.getvalue()) < 410_000
    assert " more lines: see `" in shown.getvalue()


def test_one_long_line_does_not_flood_the_terminal() -> None:
    terminal, shown = at_terminal("refuse", "a")
    diff = f"+{'x' * 2_000_000}\n+the end"
    subject = {"tool_name": "Edit", "arguments": {"file_path": "a.js"}, "reason": "", "preview": {"diff": diff}}
    assert terminal(asked("tool", **subject)).decision == "reject"
    assert "x… and 1,990,003 more characters: see `" in shown.getvalue()
    assert "+the end" in shown.getvalue()
    terminal(asked("gate", gate=0, artifact="spec/scope.md", content="y" * 2_000_000, summary="it is done"))
    assert len(shown.getvalue()) < 25_000
    terminal, shown = at_terminal("a")
    terminal(asked("gate", gate=0, artifact="spec/scope.md", content="y" * 10_001, summary="it is done"))
    assert "y… and 1 more character: see `" in shown.getvalue()


@pytest.mark.parametrize(
    ("typed", "blocklisted", "said"),
    [
        (["a"], False, ("approve", None)),
        (["no"], False, ("reject", None)),
        (["w not here"], False, ("reject", "not here")),
        ([""], False, ("reject", None)),
        ([], False, ("reject", None)),
        (["a"], True, ("reject", None)),
        (["run"], True, ("approve", None)),
    ],
)
def test_a_command_runs_only_on_a_plain_yes(typed: list[str], blocklisted: bool, said: tuple[str, str | None]) -> None:
    terminal, shown = at_terminal(*typed)
    command = {"command": "rm -r build\nls\u3000a"}
    decision = terminal(
        asked("tool", tool_name="Bash", arguments=command, blocklisted=blocklisted, reason="it is listed")
    )
    assert (decision.decision, decision.feedback) == said
    assert "rm -r build\nls\\u3000a" in shown.getvalue()


def test_a_choice_can_be_abbreviated_and_empty_input_is_the_safe_one() -> None:
    subject = {"kind": "agent_halted", "text": "it stopped", "choices": ["abort", "retry", "skip"], "safe": "abort"}
    for typed, choice in (["r", "re"], "retry"), (["x", "s", "skip"], "skip"), ([""], None), ([], None):
        terminal, shown = at_terminal(*typed)
        said = terminal(asked("question", **subject, details=["half done"]))
        assert said.answers == ({"it stopped": choice} if choice is not None else None)
        assert "half done" in shown.getvalue()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["w keep the title"], ("reject", "keep the title")),
        (["w", "keep the title", "and the date", ""], ("reject", "keep the title\nand the date")),
        (["no", ""], ("reject", None)),
        (["later", "allow"], ("approve", None)),
        (["refuse"], ("reject", None)),
        (["re"], ("reject", None)),
        ([""], ("reject", None)),
    ],
)
def test_a_change_is_refused_with_a_reason_if_one_is_typed(typed: list[str], said: tuple[str, str | None]) -> None:
    terminal, shown = at_terminal(*typed)
    change = {"file_path": "README.md", "content": "# Ours\n"}
    decision = terminal(asked("tool", tool_name="Write", arguments=change, reason="the settings ask"))
    assert (decision.decision, decision.feedback) == said
    assert "refuse, allow, w REASON? [refuse] " in shown.getvalue()


def test_details_that_are_too_long_for_a_terminal_are_cut_and_the_app_is_named() -> None:
    said = "\n".join(["I look at the next file."] * 2_500)
    subject = {"kind": "agent_halted", "text": "it stopped", "choices": ["abort", "retry"], "safe": "abort"}
    terminal, shown = at_terminal("")
    terminal(asked("question", **subject, details=["half done", said]))
    text = shown.getvalue()
    assert text.count("next file") == 1_999
    assert "--- and 501 more lines: see `" in text


def test_a_file_that_cannot_be_read_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "agents")

    monkeypatch.setattr("system2.command.project_root", denied)
    assert main([*SIMULATED, "--auto-approve", TASK]) == 1
    assert capsys.readouterr().err == "system2: 'agents': Permission denied\n"


def test_a_working_directory_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for root in ((), ("--project-root", str(tmp_path))):
        assert main([*SIMULATED, "--auto-approve", *root, TASK]) == 2
        assert capsys.readouterr().err == "system2: the working directory was deleted; change to one that exists\n"
