"""`aeon-tui run` and `aeon-tui demo`: a task, live in the app or headless."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.config.schema import RunConfig, runs_directory
from aeon_core.errors import UsageError
from aeon_core.runs.factory import build_tools
from aeon_core.stdio import is_terminal
from aeon_tui.cli import options
from aeon_tui.cli.headless import progress_of, run_headless, run_live
from aeon_tui.cli.output import in_app, stderr
from aeon_tui.cli.run_output import print_result
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.run_jobs import DEMO_MODEL, DEMO_TASK, GUIDE, NewRunJob, new_journal
from aeon_tui.sessions.run_options import approval_points, usable_model

if TYPE_CHECKING:
    from aeon_core.plan.models import Plan
    from aeon_core.tools.registry import ToolRegistry

DEMO_GUIDE = (
    "A guided run on a simulated model, without a key or network. Its plan names a tool that does not exist: watch",
    "validation find that and the planner fix it. The first pass falls short, so the plan is refined for a second.",
    f"Task: {DEMO_TASK}",
)
DEMO_NEXT = (
    "See every prompt and repair: `{command} show last`. Run a task of your own, still without a key: "
    "`{command} run --headless --model simulated:default 'add 5 and 10'`"
)
NO_TASK = "no task given; put it in quotes after `run`, or use '-' to read it from standard input"


def execute(args: Namespace) -> int:
    """Run a task and return the exit code of its result. Raises UsageError, ModelUnavailableError before a run."""
    _check(args)
    if in_app(args):
        options.ask_for_trust(args)
    demo = args.command == "demo"
    if demo and args.model is None:
        args.model = DEMO_MODEL
    loaded = options.load(args)
    config = loaded.config.model_copy(update={"approve": approval_points(loaded, in_app=in_app(args))})
    plan = _plan(args.plan)
    task = _demo_task(plan) if demo else _task(args.task, plan)
    with capture_stdio():
        registry = build_tools(config)
    try:
        return _run(args, config, task, plan, registry)
    finally:
        registry.close()


def _run(args: Namespace, config: RunConfig, task: str, plan: Plan | None, registry: ToolRegistry) -> int:
    demo = args.command == "demo"
    directory = options.writable(runs_directory(config))
    usable_model(config).close()
    if in_app(args):
        paced = demo and config.model == DEMO_MODEL
        guide = GUIDE if paced and plan is None else ""
        return run_live(args, NewRunJob(task, config, plan, paced=paced, guide=guide, tools=registry), directory)
    if demo and not args.quiet:
        for line in DEMO_GUIDE if plan is None and config.model == DEMO_MODEL else (f"Task: {task}",):
            stderr().line((line, "bold"))
    return _headless(args, NewRunJob(task, config, plan, tools=registry), new_journal(directory))


def _check(args: Namespace) -> None:
    given = args.command == "demo" or args.task is not None or args.plan is not None
    if not given and not is_terminal(sys.stdin):
        raise UsageError(NO_TASK)


def _plan(path: str | None) -> Plan | None:
    if path is None:
        return None
    from aeon_core.plan.parsing import load_plan_file

    return load_plan_file(Path(path))


def _demo_task(plan: Plan | None) -> str:
    return DEMO_TASK if plan is None else plan.goal


def _task(given: str | None, plan: Plan | None) -> str:
    """Return the task: the argument, standard input for `-`, else the plan's goal, else what a person types."""
    if given == "-":
        task = _standard_input().rstrip("\r\n")
    elif given is not None:
        task = given
    elif plan is not None:
        task = plan.goal
    else:
        task = _asked()
    if not task.strip():
        raise UsageError("the task is empty; describe it")
    return task


def _asked() -> str:
    if sys.stderr is not None:
        sys.stderr.write("Task: ")
        sys.stderr.flush()
    return sys.stdin.readline().rstrip("\r\n")


def _standard_input() -> str:
    if sys.stdin is None or sys.stdin.closed:
        return ""
    binary = getattr(sys.stdin, "buffer", None)
    return binary.read().decode("utf-8", "replace") if binary is not None else sys.stdin.read()


def _headless(args: Namespace, job: NewRunJob, journal: Path) -> int:
    guided = args.command == "demo"
    progress = progress_of(args, guided=guided)
    result = run_headless(args, job, journal, progress)
    code = print_result(args, result, progress, f"journal {result.journal}")
    if guided and not args.json and not args.quiet:
        stderr().line(DEMO_NEXT.format(command=_own_command()))
    return code


def _own_command() -> str:
    """Return what to type for this program: its name, or its location if it is not on PATH, as in a checkout."""
    if shutil.which("aeon-tui"):
        return "aeon-tui"
    return min(os.path.relpath(sys.argv[0]), str(Path(sys.argv[0]).absolute()), key=len)
