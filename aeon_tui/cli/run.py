"""`aeon-tui run` and `aeon-tui demo`: a task, live in the app or headless."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from pathlib import Path

from aeon_core.config.schema import runs_directory
from aeon_core.errors import UsageError
from aeon_core.paths import expanded, run_argument
from aeon_core.plan.files import load_plan_file
from aeon_core.plan.models import Plan
from aeon_core.process import is_terminal
from aeon_tui.cli import options
from aeon_tui.cli.headless import progress_of, run_headless, run_live
from aeon_tui.cli.output import in_app, stderr
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.run_jobs import DEMO_MODEL, DEMO_TASK, GUIDE, NewRunJob
from aeon_tui.sessions.run_options import approval_points

DEMO_GUIDE = (
    "A guided run on a simulated model, without a key or network. Its plan names a tool that does not exist: watch",
    "validation find that and the planner fix it. The first pass falls short, so the plan is refined for a second.",
    f"Task: {DEMO_TASK}",
)
DEMO_NEXT = (
    "See every prompt and repair: `{command} show {run}`",
    "Run a task of your own, still without a key: `{command} run -m simulated:default 'add 5 and 10'`",
)
NO_TASK = "no task given; put it in quotes after `run`, or use '-' to read it from standard input"


def execute(args: Namespace) -> int:
    """Run a task and return the exit code of its result. Raises UsageError, ModelUnavailableError before a run."""
    demo, live = args.command == "demo", in_app(args)
    if not demo and args.task is None and args.plan is None and not is_terminal(sys.stdin):
        raise UsageError(NO_TASK)
    if live:
        options.ask_for_trust(args)
    if demo and args.model is None:
        args.model = DEMO_MODEL
    loaded = options.load(args)
    config = loaded.config.model_copy(update={"approve": approval_points(loaded, in_app=live)})
    plan = load_plan_file(expanded(args.plan, "the plan")) if args.plan is not None else None
    task = _task(args, plan)
    directory = options.writable(runs_directory(config))
    simulated = demo and config.model == DEMO_MODEL
    guided = simulated and plan is None
    job = NewRunJob(task, config, plan, paced=live and simulated, guide=GUIDE if guided else "")
    with capture_stdio():
        job.prepare()
    if live:
        return run_live(args, job, directory)
    if demo and not args.quiet:
        for line in DEMO_GUIDE if guided else (f"Task: {task}",):
            stderr().line((line, "bold"))
    journal = job.journal_in(directory)
    code = run_headless(args, job, journal, progress_of(args, guided=demo))
    if demo and not args.json and not args.quiet:
        named = run_argument(journal)
        for line in DEMO_NEXT:
            stderr().line(line.format(command=_own_command(), run="last" if named == journal.stem else named))
    return code


def _task(args: Namespace, plan: Plan | None) -> str:
    """Return the task: the argument, standard input for `-`, else the plan's goal, else what the person types."""
    if args.command == "demo":
        return DEMO_TASK if plan is None else plan.goal
    task = args.task if args.task is not None or plan is None else plan.goal
    if task is None:
        if sys.stderr is not None:
            sys.stderr.write("Task: ")
            sys.stderr.flush()
        task = sys.stdin.readline().rstrip("\r\n")
    elif args.task == "-":
        task = _standard_input().rstrip("\r\n")
    if not task.strip():
        raise UsageError("the task is empty; describe it")
    return str(task)


def _standard_input() -> str:
    if sys.stdin is None or sys.stdin.closed:
        return ""
    binary = getattr(sys.stdin, "buffer", None)
    return binary.read().decode("utf-8", "replace") if binary is not None else sys.stdin.read()


def _own_command() -> str:
    """Return how to call this program: its name; its module or path if it is not on PATH, as in a checkout."""
    if shutil.which("aeon-tui"):
        return "aeon-tui"
    if Path(sys.argv[0]).name == "__main__.py":
        return "python -m aeon_tui"
    return min(os.path.relpath(sys.argv[0]), str(Path(sys.argv[0]).absolute()), key=len)
