from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator
from aeon_core.errors import LLMError
from aeon_core.journal.history import open_history
from aeon_core.journal.listing import list_runs
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse
from aeon_tui.cli import run_output
from aeon_tui.cli.output import OutputStream, stdout
from aeon_tui.cli.run_output import ProgressPrinter
from tests.aeon_tui.cli.conftest import Cli, Done
from tests.fakes import ScriptedModel, add, call, steps
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("default_signals")

RUNS = Path(".aeon/runs")
UseModel = Callable[[LLMAdapter], None]
NO_TOOL = {"step_id": "s2", "description": "do part 2", "tool": "calculator"}


def model(plan: Any = None, **scripts: Any) -> ScriptedModel:
    return ScriptedModel(plan=plan or steps(add(5, 10)), answer="The sum is 15.", **scripts)


def test_runs_are_kept_out_of_git_in_a_folder_made_by_hand(cli: Cli, use_model: UseModel) -> None:
    ignored = RUNS.with_name(".gitignore")
    assert not ignored.exists()
    use_model(model())
    assert cli("run", "--headless", "--single-pass", "add").code == 0
    assert "/runs/" in ignored.read_text().splitlines()
    ignored.unlink()
    assert cli("run", "--headless", "--single-pass", "add", "--runs-dir", "other").code == 0
    assert cli("run", "--headless", "--single-pass", "add").code == 0
    assert not ignored.exists(), "a file that somebody deleted stays so"


def test_a_long_wait_is_reported_each_time_it_has_doubled(monkeypatch: pytest.MonkeyPatch) -> None:
    now, text = [100.0], io.StringIO()
    monkeypatch.setattr(run_output, "monotonic", lambda: now[0])
    printer = ProgressPrinter(OutputStream(text))

    def printed(seconds: float) -> str:
        now[0] += seconds
        printer.report_wait()
        return text.getvalue()

    def record(kind: str, state: str, **fields: Any) -> None:
        printer.fold({"type": kind, "state": state, "call_id": "c1", **fields})

    printer.fold({"type": "run_started", "model": "openai:slow"})  # the judge's may be another
    assert not printed(100)
    record("llm", "started", purpose="profile", attempt=1)
    assert not printed(14)
    assert printed(6) == "profile · waiting for the model · 20 s\n"
    for seconds in (15, 4):
        assert printed(seconds).count("\n") == 1
    assert printed(1).splitlines()[1:] == ["profile · waiting for the model · 40 s"]
    record("llm", "finished", purpose="profile", attempt=1)
    record("tool", "started", step_id="s1", tool_name="Bash")
    assert printed(15).splitlines()[2:] == ["s1 · waiting for Bash · 15 s"]
    record("tool", "finished", step_id="s1", tool_name="Bash")
    assert printed(1000).count("\n") == 3


def test_a_run_that_waits_for_a_model_says_so(cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch) -> None:
    reported, report = threading.Event(), ProgressPrinter.report_wait

    def report_wait(self: ProgressPrinter) -> None:
        report(self)
        if self._next_wait > run_output.WAIT_SECONDS:
            reported.set()

    class Slow(ScriptedModel):
        def complete(self, request: LLMRequest) -> LLMResponse:
            assert reported.wait(PATIENCE)
            return super().complete(request)

    monkeypatch.setattr(run_output, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(ProgressPrinter, "report_wait", report_wait)
    use_model(Slow(plan=steps(add(5, 10)), answer="The sum is 15."))
    done = cli("run", "--headless", "--single-pass", "add")
    assert done.code == 0
    assert "plan · waiting for the model · 0 s" in done.err.splitlines()


def test_outputs_and_answer_go_to_stdout_and_progress_to_stderr(cli: Cli, use_model: UseModel) -> None:
    use_model(model())
    done = cli("run", "--headless", "--single-pass", "calculate the sum of 5 and 10")
    assert done.code == 0
    assert done.out == ('s1 complete · tool calculator · do part 1\n    {"result": 15}\n\nAnswer\nThe sum is 15.\n')
    assert done.err.splitlines() == [
        f"run {list_runs(RUNS.absolute())[0].run_id} · scripted:test",
        "plan generated · 1 step · a goal",
        "  s1  do part 1  [tool calculator]",
        "s1 running · do part 1",
        's1 complete · tool calculator → {"result": 15}',
        f"run completed · journal {list_runs(RUNS.absolute())[0].path}",
    ]
    assert "\x1b" not in done.out + done.err


def test_quiet_prints_only_the_answer_and_verbose_adds_cycles_and_calls(cli: Cli, use_model: UseModel) -> None:
    simulated = cli("run", "-q", "-m", "simulated:default", "add 5 and 10")
    assert simulated == Done(0, "The sum of 5 and 10 is 15.\n", "Answer (simulated model)\n")
    use_model(model())
    command = ("run", "--single-pass", "calculate the sum of 5 and 10")
    quiet, loud = cli(*command, "-q"), cli(*command, "-v")
    assert quiet == Done(0, "The sum is 15.\n", "")
    expired = cli(*command, "-q", "--ttl", "1")
    assert (expired.code, expired.out) == (5, "")
    assert expired.err.startswith("aeon-tui: the TTL of 1 cycle ran out")
    assert json.loads(cli(*command, "-q", "--json").out)["answer"] == "The sum is 15."
    for line in ("TTL 49 of 50 cycles left · ", "plan · asking the model", "s1 · calculator → "):
        assert line in loud.err
    assert "not allowed with argument" in cli(*command, "-q", "-v").err


def test_a_terminal_shows_each_step_and_each_score_once(
    cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_tui.cli.run_output.is_terminal", lambda _: True)
    assert cli("run", "-m", "simulated:default", "add 5 and 10").err.count("completeness") == 1
    use_model(model())
    done = cli("run", "--headless", "--single-pass", "calculate the sum of 5 and 10")
    assert (done.out, done.err.count("s1 complete")) == ("\nAnswer\nThe sum is 15.\n", 1)


def test_a_repair_and_a_fallback_are_reported_on_stderr_and_in_the_result(cli: Cli, use_model: UseModel) -> None:
    use_model(
        model(
            steps({"agent": "llm"}, {"tool": "calc"}, {"tool": "scale"}),
            repair=[NO_TOOL, "no", "no"],
            reason="thought about it",
            tool_call=call("calculator", operation="add", a=1, b=2),
            fallback="weighed by hand",
        )
    )
    done = cli("run", "--headless", "--single-pass", "do three things")
    assert done.code == 0
    warnings = [line for line in done.err.splitlines() if line.startswith("warning: ")]
    assert warnings[:2] == [
        "warning: s2 · Tool 'calc' not found in registry · to be repaired",
        "warning: s3 · Tool 'scale' not found in registry · to be repaired",
    ]
    assert any(line.startswith("warning: s2 · plan repair (llm, 1/2) succeeded") for line in warnings)
    assert "warning: s2 repaired · tool calculator · do part 2" in warnings
    assert any(line.startswith("warning: s3 · plan repair (llm, 2/2) refused") for line in warnings)
    assert "warning: s3 not repaired · reasoning · do part 3" in warnings
    assert sum(line.endswith("to be repaired") for line in warnings) == 2
    assert "warning: s3 complete · fallback reasoning → weighed by hand" in warnings
    assert done.err.count("  s1  do part 1") == 1
    assert "s1 complete · reasoning · do part 1\n    thought about it\n" in done.out
    assert "    repaired (plan repair, llm, attempt 1 of 2)" in done.out
    assert '    {"result": 3}\n' in done.out
    assert "s3 complete · fallback reasoning · do part 3\n" in done.out
    assert "    weighed by hand\n" in done.out


def test_json_is_one_run_result_alone_on_stdout(cli: Cli, use_model: UseModel) -> None:
    use_model(model())
    done = cli("run", "--headless", "--single-pass", "--json", "calculate the sum of 5 and 10")
    result = json.loads(done.out)
    assert (result["status"], result["answer"], result["steps"][0]["output"]) == (
        "completed",
        "The sum is 15.",
        {"result": 15},
    )
    assert "result_type" not in result
    assert open_history(result["journal"]).final_result is not None
    assert "s1 complete" in done.err


def test_tool_output_does_not_get_into_the_json(cli: Cli, use_model: UseModel) -> None:
    Path("noisy.py").write_text(
        "from aeon_core import tool\n"
        "@tool(effect='pure')\n"
        "def shout(text: str) -> str:\n"
        "    'Says it loudly.'\n"
        "    print('printed by the tool')\n"
        "    return text.upper()\n"
    )
    use_model(model(steps({"tool": "shout", "arguments": {"text": "hi"}})))
    done = cli("run", "--headless", "--single-pass", "--json", "--tools", "noisy:shout", "shout hi")
    assert json.loads(done.out)["steps"][0]["output"] == {"result": "HI"}
    assert "printed by the tool" in done.err


def test_a_failed_step_is_exit_5_and_named(cli: Cli, use_model: UseModel) -> None:
    divide = {"tool": "calculator", "arguments": {"operation": "divide", "a": 7, "b": 0}}
    use_model(model(steps(divide, add(1, 2))))
    done = cli("run", "--headless", "--single-pass", "divide 7 by 0")
    assert done.code == 5
    assert "error: s1 failed · " in done.err
    assert "aeon-tui: step s1 failed: calculator: division by zero" in done.err
    assert "s1 failed · tool calculator · do part 1\n    error: " in done.out
    assert '    {"result": 3}\n' in done.out


def test_a_spent_ttl_is_exit_5_and_names_what_did_not_run(cli: Cli, use_model: UseModel) -> None:
    use_model(model(steps({"agent": "llm"}, {"agent": "llm"}), reason="thought"))
    done = cli("run", "--headless", "--single-pass", "--json", "--ttl", "2", "think twice")
    result = json.loads(done.out)
    assert done.code == 5
    assert (result["status"], result["result_type"]) == ("ttl_expired", "ttl_expired")
    assert "aeon-tui: the TTL of 2 cycles ran out before s2 could run; raise it with --ttl" in done.err


@pytest.mark.parametrize(("status", "code"), [(None, 1), (401, 3), (403, 3), (404, 3)])
def test_a_model_that_fails_ends_the_run_with_its_exit_code_and_one_line(
    cli: Cli, use_model: UseModel, status: int | None, code: int
) -> None:
    use_model(model(LLMError("the key was refused; set KEY", status_code=status)))
    done = cli("run", "--headless", "--single-pass", "--json", "anything")
    result = json.loads(done.out)
    assert (done.code, result["status"], result["error"]["message"]) == (code, "failed", "the key was refused; set KEY")
    told = f"aeon-tui: the key was refused; set KEY (to continue: `aeon-tui resume {result['run_id']}`)\n"
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_run_over_its_budget_names_the_command_that_continues_it(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    Path("my prices.yml").write_text("prices: {m: {input: 100, output: 100}}\n")
    prices = ("--headless", "--config", "my prices.yml")
    done = cli("run", "x", "--json", *prices, "--model", "openai:m", "--budget", "0.01")
    result = json.loads(done.out)
    more = "--budget N --config 'my prices.yml'"
    assert (done.code, result["status"]) == (4, "cost_ceiling")
    assert f"raise it with --budget (to continue: `aeon-tui resume {result['run_id']} {more}`)\n" in done.err
    assert cli("resume", "last", *prices, "--budget", "0.02", "--trust-project").code == 4


@pytest.mark.parametrize("command", ["watch", "resume"])
def test_a_failed_run_in_another_folder_is_continued_by_its_path(
    cli: Cli, use_model: UseModel, tmp_path: Path, command: str
) -> None:
    use_model(model(LLMError("the key was refused")))
    failed = json.loads(cli("run", "--headless", "--single-pass", "--json", "anything").out)
    elsewhere = Path(failed["journal"]).rename(tmp_path / "my run.jsonl")
    use_model(model(LLMError("the key was refused")))
    done = cli(command, "--headless", str(elsewhere))
    assert f"the key was refused (to continue: `aeon-tui resume '{elsewhere}'`)\n" in done.err


def test_a_plan_file_is_run_unchanged_and_provides_the_task(cli: Cli, use_model: UseModel) -> None:
    plan = {**steps(add(20, 1)), "goal": "twenty and one"}
    Path("plan.json").write_text(json.dumps(plan))
    use_model(ScriptedModel(answer="21"))
    done = cli("run", "--headless", "--single-pass", "--plan", "plan.json")
    assert (done.code, done.out.splitlines()[1]) == (0, '    {"result": 21}')
    assert "plan given · 1 step · twenty and one" in done.err
    assert list_runs(RUNS.absolute())[0].task == "twenty and one"


@pytest.mark.parametrize("content", ["{goal: [", '{"goal": "g"}', '{"goal": "g", "steps": [], "x": 1}', "", "[1]"])
def test_an_invalid_plan_file_is_exit_2_before_any_run(cli: Cli, use_model: UseModel, content: str) -> None:
    Path("plan.json").write_text(content)
    use_model(ScriptedModel())
    done = cli("run", "--headless", "--single-pass", "--json", "--plan", "plan.json", "x")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "plan.json" in done.err
    assert not RUNS.exists()


def test_the_task_may_come_from_standard_input_unaltered(cli: Cli, use_model: UseModel) -> None:
    scripted = model()
    use_model(scripted)
    assert cli("run", "--headless", "--single-pass", "-", stdin="  add 5\nand 10 grüße\n").code == 0
    assert "<task>\n  add 5\nand 10 grüße\n</task>" in scripted.asked("plan")[0].prompt


def test_invalid_utf8_is_replaced_in_the_task(cli: Cli, use_model: UseModel) -> None:
    use_model(model())
    assert cli("run", "--headless", "--single-pass", "-", stdin=b"\xef\xbb\xbfadd \xff\xfe 5").code == 0
    assert list_runs(RUNS.absolute())[0].task == "add \ufffd\ufffd 5", "without the byte order mark"


def test_invalid_utf8_is_replaced_in_a_typed_task(
    cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_model(model())
    monkeypatch.setattr("aeon_tui.cli.run.is_terminal", lambda _stream: True)
    assert cli("run", "--headless", "--single-pass", stdin=b"add \xff 5\n").code == 0
    assert list_runs(RUNS.absolute())[0].task == "add \ufffd 5"


def test_hostile_replies_and_results_reach_no_terminal_unescaped(cli: Cli, use_model: UseModel) -> None:
    hostile = "\x1b[2J[bold]x[/] [@click=app.quit]\x00\u202e"
    plan = steps({"agent": "llm", "description": f"say {hostile}"}, {"tool": "echo", "arguments": {"text": hostile}})
    use_model(ScriptedModel(plan=plan, reason=hostile * 3, answer=hostile + "y" * 100_000))
    done = cli("run", "--headless", "--single-pass", f"task {hostile}")
    assert done.code == 0
    assert not {"\x1b", "\x00", "\u202e"} & set(done.out + done.err)
    assert r"\x1b[2J[bold]x[/] [@click=app.quit]" in done.out


def test_the_run_is_stored_where_the_option_says(cli: Cli, use_model: UseModel, tmp_path: Path) -> None:
    use_model(model())
    assert cli("run", "--headless", "--single-pass", "--runs-dir", "kept/here", "x").code == 0
    assert [run.status for run in list_runs(tmp_path / "kept" / "here")] == ["completed"]
    assert not RUNS.exists()


class Waiting(LLMAdapter):
    """A model that never answers; `asked` is set when it is called."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked.set()
        self.released.wait(PATIENCE)
        return LLMResponse(text="too late")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_aborts_the_run_in_a_model_call_and_journals_it(
    cli: Cli, use_model: UseModel, number: signal.Signals
) -> None:
    waiting = Waiting()
    use_model(waiting)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    def interrupt() -> None:
        waiting.asked.wait(PATIENCE)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        done = cli("run", "--headless", "--single-pass", "--json", "x")
    finally:
        waiting.released.set()
        thread.join()
    assert (done.code, json.loads(done.out)["status"]) == (1, "aborted")
    assert [run.status for run in list_runs(RUNS.absolute())] == ["aborted"]
    assert "aborted" in done.err
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_ctrl_c_after_the_run_has_ended_leaves_its_result_on_stdout(
    cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed() -> OutputStream:
        signal.raise_signal(signal.SIGINT)
        return stdout()

    use_model(model())
    monkeypatch.setattr(Orchestrator, "close", lambda _: signal.raise_signal(signal.SIGINT))
    monkeypatch.setattr(run_output, "stdout", pressed)
    done = cli("run", "--headless", "--single-pass", "--json", "x")
    assert (done.code, json.loads(done.out)["status"]) == (0, "completed")


def test_a_ctrl_c_between_the_end_of_a_run_and_its_printing_leaves_its_result(
    cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextlib.contextmanager
    def pressed(_: bool) -> Iterator[None]:
        yield
        signal.raise_signal(signal.SIGINT)

    use_model(model())
    monkeypatch.setattr("aeon_tui.cli.run.diagnostics", pressed)
    done = cli("run", "--headless", "--single-pass", "--json", "x")
    assert (done.code, json.loads(done.out)["status"]) == (0, "completed")


def test_a_lost_reader_of_stderr_does_not_stop_the_run(
    cli: Cli, use_model: UseModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_model(model())
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as gone, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", gone)
        done = cli("run", "--headless", "--single-pass", "--json", "x")
    assert (done.code, json.loads(done.out)["status"]) == (0, "completed")


def test_the_demo_ends_with_a_command_that_shows_its_run(cli: Cli, tmp_path: Path) -> None:
    show, run = cli("demo", "--headless").err.splitlines()[-2:]
    assert "show last`" in show
    assert "run -m simulated:default 'add 5 and 10'`" in run
    last = cli("demo", "--headless", "--runs-dir", str(tmp_path / "my runs")).err.splitlines()[-2]
    (journal,) = (tmp_path / "my runs").glob("*.jsonl")
    assert f"show '{journal}'`" in last


def test_the_demo_runs_a_given_plan(cli: Cli) -> None:
    Path("plan.json").write_text(json.dumps({**steps(add(20, 1)), "goal": "twenty and one"}))
    done = cli("demo", "--headless", "--json", "--single-pass", "--plan", "plan.json")
    result = json.loads(done.out)
    assert (done.code, result["steps"][0]["output"], result["model"]) == (0, {"result": 21}, "simulated:missing-tool")
    assert done.err.startswith("Task: twenty and one\n")
    assert list_runs(RUNS.absolute())[0].task == "twenty and one"


@pytest.mark.parametrize(
    ("options", "warned"),
    [
        (["--tools", "shell"], True),
        (["--tools", "shell", "--wait", "1"], True),
        (["--tools", "shell", "--approve", "tool", "--wait", "1"], False),
        (["--tools", "shell", "--allow", "Bash(git status)"], False),
        ([], False),
    ],
    ids=["nobody", "wait-alone", "another-terminal", "rule", "no-such-tool"],
)
def test_tools_that_nobody_can_approve_are_named_before_the_first_cycle(
    cli: Cli, options: list[str], warned: bool
) -> None:
    done = cli("run", "--headless", "--model", "simulated:default", *options, "add 2 and 3")
    warning = "! no one can approve calls of Bash in this run; use --allow TOOL or --approve tool with --wait SECONDS"
    assert (warning in done.err) is warned
    if warned:
        assert done.err.index(warning) < done.err.index("plan generated")


def test_warnings_cover_only_tools_that_the_plan_names(cli: Cli, tmp_path: Path) -> None:
    plan = {"goal": "add", "steps": [{"step_id": "s1", "description": "add", "tool": "calculator"}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = cli("run", "--headless", "--model", "simulated:default", "--tools", "shell", "--plan", "plan.json")
    assert "no one can approve" not in done.err
