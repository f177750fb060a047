from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path
from typing import cast

import pytest

from aeon_core.config.keys import CONFIG_KEYS, CommandOption, ConfigKey
from aeon_core.errors import UsageError
from aeon_core.llm import PROVIDERS
from aeon_tui.cli.parser import _COMMANDS, build_parser
from tests.aeon_core.journal.build import started, whole_run, write
from tests.aeon_tui.cli.conftest import Cli, environment, process
from tests.sampling import sample

COMMANDS = [*_COMMANDS]


def test_help_lists_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    listed = {line.split()[0] for line in done.out.splitlines() if line.startswith("    ") and line.strip()}
    assert listed == {"COMMAND", *COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_its_own_help(cli: Cli, command: str) -> None:
    done = cli(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: aeon-tui {command}")
    assert "--runs-dir" in done.out


def test_each_commands_help_describes_that_command(cli: Cli) -> None:
    demo, fork = cli("demo", "--help").out, " ".join(cli("fork", "--help").out.split())
    assert "model to use instead of the simulated one" in demo
    assert "AEON_MODEL" not in demo
    assert "model to use (default: AEON_MODEL, then the config)" in " ".join(cli("run", "--help").out.split())
    assert "--pass N required for a run" in fork
    assert "A run needs --pass, a workflow --gate." in fork


@pytest.mark.parametrize(
    ("command", "default"),
    [("run", "none; in the app: pass,tool"), ("batch", "none"), ("acp", "pass,tool"), ("mcp-serve", "tool")],
)
def test_the_help_of_approve_has_the_default_of_the_command(cli: Cli, command: str, default: str) -> None:
    assert f"or none (default: {default})" in " ".join(cli(command, "--help").out.split())


@pytest.mark.parametrize("command", ["fork", "resume"])
def test_inherited_options_show_no_default(cli: Cli, command: str) -> None:
    text = " ".join(cli(command, "--help").out.split())
    assert "--model PROVIDER:NAME model to use --base-url" in text
    assert "AEON_MODEL" not in text
    assert "(default: 50)" not in text


def test_the_help_of_fork_has_no_default_of_a_setting_that_it_inherits(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = CommandOption("maximum cost (default: 12 dollars)", "USD")
    monkeypatch.setitem(cast("dict[str, ConfigKey]", CONFIG_KEYS), "budget", ConfigKey("Limit.", "USD", option))
    assert "maximum cost (default: 12 dollars)" in " ".join(cli("run", "--help").out.split())
    text = " ".join(cli("fork", "--help").out.split())
    assert "--budget USD maximum cost --" in text


@pytest.mark.parametrize(("columns", "widest"), [(80, 78), (300, 100), (0, 100)])
def test_the_help_fits_the_terminal(tmp_path: Path, columns: int, widest: int) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    command = [sys.executable, "-m", "aeon_tui", "decide", "--help"]
    with os.fdopen(theirs, "w") as terminal:
        subprocess.run(command, stdout=terminal, env=environment(NO_COLOR="1"), cwd=tmp_path, check=True)
        terminal.flush()
        text = os.read(ours, 100_000).decode()
    os.close(ours)
    lines = [len(line) for line in text.splitlines()]
    assert widest - 10 < max(lines) <= widest


def test_the_version_is_printed(cli: Cli) -> None:
    done = cli("--version")
    assert (done.code, done.out.split()[0], done.err) == (0, "aeon-tui", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rnu",), "unknown command 'rnu'; did you mean 'run'?"),
        (("label", "last"), "the following arguments are required: good|bad"),
        (("run", "--headles", "x"), "unknown option '--headles'; did you mean '--headless'?"),
        (("run", "--head", "x"), "unknown option '--head'"),
        (("run", "--max-tokens=9", "x"), "it is a setting: use `aeon-tui config set max_tokens VALUE`; see"),
        (("run", "--prices", "9", "x"), "unknown option '--prices'; see"),
        (("--nonsense",), "unknown option '--nonsense'"),
        (("--model", "simulated:default"), "unknown option '--model'"),
        (("--model", "simulated:default", "run", "x"), "write '--model' after the command: aeon-tui run --model …"),
        (("--project-root", "x", "--model", "x", "run"), "write '--model' after the command: aeon-tui run --model …"),
        (("--config", "show", "--ttl=3", "run"), "write '--ttl' after the command: aeon-tui run --ttl …"),
        (("--runs-dir=x", "-q", "show"), "write '-q' after the command: aeon-tui show -q …"),
        (("--runs-dir", "x", "rnu"), "unknown command 'rnu'; did you mean 'run'?"),
        (("run", "--headless", "add", "5"), "unexpected argument '5'; quote a task of several words"),
        (("doctor", "now"), "aeon-tui: unexpected argument 'now'; see `aeon-tui doctor --help`\n"),
        (("run", "--headless", "--ttl"), "argument --ttl: expected one argument"),
        (("show",), "the following arguments are required: RUN"),
        (("lint", "x", "--fail-on", "hi"), "--fail-on must be one of low, medium, high; got 'hi'"),
        (("run", "--headless", "--ttl", "-1", "x"), "--ttl must be a whole number of cycles, 0 or more; got '-1'"),
        (("run", "--headless", "--budget", "-1", "x"), "--budget must be an amount in US dollars, 0 or more; got '-1'"),
        (("run", "--headless", "--ttl", "many", "x"), "--ttl must be a whole number of cycles, 0 or more; got 'many'"),
        (("label", "last", "maybe"), "the verdict must be one of good, bad; got 'maybe';"),
        (("fix the bug",), "to run a task: aeon-tui run 'fix the bug';"),
        (("hello",), "unknown command 'hello'; to run a task: aeon-tui run 'hello …';"),
        (("runs", "--limit", "0"), "--limit must be a whole number, 1 or more; got '0'"),
        (
            ("run", "--headless", "--approve", "plan,none", "x"),
            "--approve must be one or more of plan, pass and tool, or none; got 'plan, none'",
        ),
        (
            ("run", "--headless", "--approve", "plann", "x"),
            "--approve must be one or more of plan, pass and tool, or none; got 'plann'; did you mean 'plan'?\n",
        ),
        (("run", "--headless", "--model", "nope:x", "x"), f"{', '.join(PROVIDERS)}\n"),
        (
            ("run", "--headless", "--modle", "x"),
            "unknown option '--modle'; did you mean '--model'? See `aeon-tui run --help`\n",
        ),
        (("run", "--headless", "--config", "none.yml", "x"), "cannot read the config file 'none.yml'"),
        (("run", "--headless", "--tools", "mcp", "x"), "tools 'mcp': no server is configured; add one under"),
        (("run", "--headless"), "no task given"),
        (("run",), "no task given"),
        (("run", "--headless", " "), "the task is empty"),
        (("run", "--headless", "-"), "the task is empty"),
        ((), "the app needs a terminal"),
        (("run", "--headless", "--runs-dir", "/dev/null/x", "x"), "'/dev/null' is not a folder"),
        (("runs", "--config", "~nobody-here/c.yml"), "the option --config: the home folder in '~nobody-here/c.yml' is"),
        (("show", "~nobody-here/a.jsonl"), "the journal: the home folder in '~nobody-here/a.jsonl' is unknown"),
        (("watch", "--headless", "~nobody-here/a.jsonl"), "the journal: the home folder in '~nobody-here/a.jsonl' is"),
        (("serve", "--config", "~nobody-here/c.yml"), "the option --config: the home folder in"),
        (
            ("init", "--project-root", "~nobody-here/x"),
            "--project-root: the home folder in '~nobody-here/x' is unknown",
        ),
        (("run", "--headless", "--plan", "~nobody-here/x"), "--plan: the home folder in '~nobody-here/x' is unknown"),
        (("run", "--headless", "--plan", ""), "aeon-tui: --plan: expected a path, got an empty one\n"),
        (("runs", "--config", ""), "the option --config: expected a path, got an empty one\n"),
        (("lint", ""), "the plan: expected a path, got an empty one\n"),
        (("batch", ""), "the tasks: expected a path, got an empty one\n"),
        (("batch", "~nobody-here/x"), "the tasks: the home folder in '~nobody-here/x' is unknown"),
        (("mcp-serve", "--tools", "nosuch"), "tools 'nosuch': expected files, shell, mcp or module:attribute"),
        (("mcp-serve", "--tools", "nosuch:tool"), "tools 'nosuch:tool': no module 'nosuch' in "),
        (("mcp-serve", "--criteria", "nosuch.yml"), "nosuch.yml': No such file or directory"),
        (("acp", "--tools", "nosuch"), "tools 'nosuch': expected files, shell, mcp or module:attribute"),
        (("acp", "--requirements", "nosuch.txt"), "nosuch.txt': No such file or directory"),
        (("acp", "--runs-dir", "/dev/null"), "cannot store runs in '/dev/null': '/dev/null' is not a folder"),
        (("mcp-serve", "--model", "nope:x"), "'nope:x' has an unknown provider; the known ones are anthropic, openai"),
        (("acp", "--judge-model", "opnai:x"), "'opnai:x' has an unknown provider; did you mean 'openai'?"),
        (("tools", "--project-root", "/no/folder"), "the project root '/no/folder' is not a folder"),
        (("tools", "--project-root", "x" * 300), "x' is not a folder; choose an existing one with --project-root"),
        (("config", "path", "--project-root", "x" * 300), "x' is not a folder; choose an existing one"),
        (("run", "--headless", "--runs-dir", "x" * 300, "x"), "x': its path is too long; choose another folder with"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr_and_exit_2(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("aeon-tui: ")
    assert message in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", ["delete", "lint"])
def test_an_option_may_come_between_several_runs_or_plans(cli: Cli, command: str) -> None:
    args = build_parser(command).parse_args([command, "a", "--runs-dir", "x", "b", "--debug", "c"])
    assert (args.runs if command == "delete" else args.plan_files) == ["a", "b", "c"]


def test_foreign_text_in_an_error_is_escaped(cli: Cli) -> None:
    done = cli("show", "\x1b[31m\nx\u202e")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\u202e" not in done.err
    assert done.err.count("\n") == 1


def test_no_model_is_exit_3_with_the_ways_to_set_one(cli: Cli) -> None:
    done = cli("run", "--headless", "add 5 and 10")
    assert (done.code, done.out) == (3, "")
    for way in ("--model", "AEON_MODEL", "config file", "simulated:default"):
        assert way in done.err


def test_a_traceback_is_shown_only_with_debug(cli: Cli) -> None:
    assert "Traceback" not in cli("show", "none").err
    assert "Traceback" in cli("show", "none", "--debug").err


IMPORTED = """
import sys
from aeon_tui.cli.main import main
for arguments in eval(sys.argv[1]):
    assert main(arguments) == 0, arguments
print(*sys.modules, file=sys.stderr)
"""


def imported(*commands: list[str]) -> set[str]:
    """Return the modules of a process after it has executed these commands."""
    code = [sys.executable, "-c", IMPORTED, repr(commands)]
    done = subprocess.run(code, capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines()[-1].split())


COLLECTED = """
import gc
from aeon_tui.cli.main import main
main(["--version"])
begun = gc.get_stats()[0]["collections"]
from aeon_tui.screens.run import screen
print(gc.get_stats()[0]["collections"] - begun)
"""


def test_loading_a_screen_triggers_no_garbage_collection() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, env=environment())
    assert int(done.stdout.splitlines()[-1]) == 0, done.stderr


def test_a_known_command_builds_only_its_own_parser() -> None:
    assert build_parser("runs").parse_args(["runs"]).module == "runs"
    with pytest.raises(UsageError, match="unknown command 'show'"):
        build_parser("runs").parse_args(["show", "last"])
    assert build_parser("--debug").parse_args(["--debug", "show", "last"]).module == "show"


WATCHING = """
import sys
from aeon_tui import app
from aeon_tui.cli import watch
from aeon_tui.screens.run import screen
from aeon_tui.sources import journal
print(*sys.modules)
"""


def test_rarely_needed_modules_are_not_loaded_before_a_run_is_shown() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHING], capture_output=True, text=True, env=environment())
    loaded = set(done.stdout.split())
    assert "aeon_tui.screens.run.screen" in loaded, done.stderr
    assert not loaded & {"_hashlib", "importlib.abc", "pydantic", "pygments", "markdown_it", "yaml"}
    assert not loaded & {"aeon_core.config.editing", "aeon_core.yaml_file", "aeon_core.journal.view.last_states"}


def test_help_imports_neither_sdks_nor_textual_nor_pydantic() -> None:
    loaded = imported(["--help"])
    assert "argparse" in loaded
    assert not loaded & {"textual", "rich", "openai", "anthropic", "pydantic", "yaml", "aeon_core", "json", "typing"}


def test_runs_imports_neither_sdks_nor_textual() -> None:
    loaded = imported(["runs"])
    assert "aeon_core" in loaded
    assert not loaded & {"textual", "rich", "openai", "anthropic", "httpx", "jsonschema_rs", "tenacity"}


def test_show_loads_no_screen(tmp_path: Path) -> None:
    show = ["show", str(write(tmp_path, *whole_run()))]
    loaded = imported(show, [*show, "--export", "md"])
    assert "aeon_widgets" in loaded
    assert not loaded & {"textual", "rich", "asyncio"}


def test_a_command_without_a_run_loads_no_record_types() -> None:
    Path("plan.json").write_text('{"goal": "g", "steps": [{"step_id": "s1", "description": "d", "agent": "llm"}]}')
    loaded = imported(["tools"], ["lint", "plan.json"])
    assert "aeon_core.runs.factory" in loaded
    assert "aeon_core.journal.records" not in loaded


def test_closed_standard_streams_are_not_an_error() -> None:
    for redirection in (">&-", "2>&-", "<&- >&- 2>&-"):
        command = f'"{sys.executable}" -m aeon_tui tools {redirection}'
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
        assert done.returncode == 0
        assert done.stderr == ""


def test_a_batch_with_closed_standard_streams_runs_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "task": "calculate 2 times 3"}\n')
    batch = f'batch "{tmp_path}/tasks.jsonl" --model simulated:default --runs-dir "{tmp_path}/runs"'
    command = f'"{sys.executable}" -m aeon_tui {batch} <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", command], env=environment(), check=False).returncode == 0


def test_a_closed_pipe_is_not_an_error() -> None:
    command = f'"{sys.executable}" -m aeon_tui schema RunResult | true; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.parametrize("buffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_version_output_to_a_closed_pipe_is_not_an_error(buffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": writer, "stderr": subprocess.PIPE, "capture_output": False}
    done = process("--version", env=environment(PYTHONUNBUFFERED=buffered), **streams)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_working_directory_that_was_deleted_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    script = f'rmdir "$PWD" && "{sys.executable}" -m aeon_tui runs'
    options = {"cwd": tmp_path / "gone", "env": environment(), "capture_output": True, "text": True, "check": False}
    done = subprocess.run(["sh", "-c", script], **options)
    said = "aeon-tui: the working directory was deleted; change to one that exists\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for command in (("doctor",), ("workflow", "--auto-approve", "x", "--project-root", "/")):
        again = cli(*command)
        assert (again.code, again.out, again.err) == (2, "", said)


@pytest.mark.parametrize("by_name", [False, True], ids=["itself", "a-folder-above"])
def test_a_working_directory_without_search_permission_is_named(
    by_name: bool, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, access = Path.cwd(), os.access
    refused = here if by_name else "."
    monkeypatch.setattr(os, "access", lambda path, mode: path != refused and access(path, mode))
    done = cli("runs")
    said = f"aeon-tui: you have no permission to use the working directory {str(here)!r}; change to another one\n"
    assert (done.code, done.err) == (2, said)


@pytest.mark.parametrize("arguments", [("schema", "RunResult"), ("--version",), ("run", "--help")])
def test_a_full_disk_is_an_error_in_one_line(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    with Path("/dev/full").open("w") as full:
        done = process(*arguments, stdout=full, stderr=subprocess.PIPE, capture_output=False)
    assert done.returncode == 1
    assert done.stderr == "aeon-tui: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("arguments", sample([("run", "add 5 and 10"), ("batch", "tasks.jsonl")]))
def test_a_full_disk_for_progress_does_not_stop_a_run(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text('{"id": "a", "task": "add 5 and 10"}\n')
    options = ("--headless", "--json", "--model", "simulated:default", "--runs-dir", "runs")
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": subprocess.PIPE, "stderr": full, "capture_output": False}
        done = process(*arguments, *options, cwd=tmp_path, **streams)
    assert done.returncode == 0
    assert "The sum of 5 and 10 is 15." in done.stdout


def test_a_closed_descriptor_is_filled_before_a_journal_could_take_its_place() -> None:
    script = "import os; from aeon_tui.cli.main import main; main(['--version']); os.write(2, b'to nobody')"
    command = f'"{sys.executable}" -c "{script}" 2>&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "aeon-tui")


def test_output_for_a_narrow_encoding_is_escaped(tmp_path: Path) -> None:
    write(tmp_path / "runs", started(task="grüße"))
    done = process("runs", "--runs-dir", str(tmp_path / "runs"), env=environment(PYTHONIOENCODING="ascii"))
    assert (done.returncode, done.stderr) == (0, "")
    assert r"gr\xfc\xdfe" in done.stdout
