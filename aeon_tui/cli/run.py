"""`aeon-tui run` and `aeon-tui demo`: a task, live in the app or headless.

`resume` and `fork` run their jobs in the same way.
"""

from __future__ import annotations

import contextlib
import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.approval_inbox import RemoteApprover
from aeon_core.config.keys import KEYS
from aeon_core.config.schema import RunConfig, runs_directory
from aeon_core.errors import UsageError
from aeon_core.escape import escape_controls
from aeon_core.paths import expanded, program, run_argument, writable
from aeon_core.plan.files import load_plan_file
from aeon_core.plan.models import Plan
from aeon_core.policy import Policy, PolicyRules
from aeon_core.process import can_answer, forwarded_signals, is_terminal, one_more_ignored, standard_input
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, diagnostics, in_app, stderr
from aeon_tui.cli.run_output import ProgressPrinter, print_result
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.run_jobs import DEMO_MODEL, DEMO_TASK, GUIDE, NewRunJob, RunJob, isolation_warning
from aeon_tui.sessions.run_options import approval_points

if TYPE_CHECKING:
    from aeon_core.tools.registry import ToolRegistry
    from aeon_tui.cli.approval_prompt import TerminalApprover


DEMO_GUIDE = (
    "A guided run on a simulated model, without a key or network. Its plan names a tool that does not exist: watch",
    "validation find that and the planner fix it. The first pass falls short, so the plan is refined for a second.",
    f"Task: {DEMO_TASK}",
)
DEMO_NEXT = (
    "See every prompt and repair: `{command} show {run}`",
    "Run a task of your own, still without a key: `{command} run -m simulated:default 'add 5 and 10'`",
)
ABORTING = b"aeon-tui: aborting; press Ctrl-C again to stop at once\n"
NO_TASK = "no task given; put it in quotes after `run`, or use '-' to read it from standard input"


def execute(args: Namespace) -> int:
    """Run a task and return the exit code of its result. Raises UsageError, ModelUnavailableError before a run."""
    demo, live = args.command == "demo", in_app(args)
    if not demo and args.task is None and args.plan is None and not is_terminal(sys.stdin):
        raise UsageError(NO_TASK)
    if live:
        options.ask_for_trust(args)
    model, args.model = args.model, DEMO_MODEL if demo and args.model is None else args.model
    loaded = options.load(args)
    args.model = model  # for the app's settings and its next runs
    config = loaded.config.model_copy(update={"approve": approval_points(loaded, in_app=live)})
    plan = load_plan_file(expanded(args.plan, "--plan")) if args.plan is not None else None
    task = _task(args, plan)
    directory = writable(runs_directory(config))
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
            stderr().line(line.format(command=program(), run="last" if named == journal.stem else named))
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
        task = standard_input().rstrip("\r\n")
    if not task.strip():
        raise UsageError("the task is empty; describe it")
    return str(task)


def progress_of(args: Namespace, *, guided: bool = False) -> ProgressPrinter:
    """Return the printer of a command's progress on stderr, with the detail of `--quiet` and `--verbose`."""
    return ProgressPrinter(OutputStream(None) if args.quiet else stderr(), guided=guided, verbose=args.verbose)


def given_options(args: Namespace, config: RunConfig) -> dict[str, Any]:
    """Return the options of the command line by key, as parsed by the configuration."""
    given = {key: getattr(config, key) for key in KEYS if getattr(args, key, None) is not None}
    if args.allow is not None:
        given["policy"] = PolicyRules(allow=args.allow)
    return given


def approver_of(wait: float, journal: Path, progress: ProgressPrinter) -> TerminalApprover | RemoteApprover | None:
    """Return the approver of a headless run: the person at the terminal, or else, for `wait` seconds, at another one.

    None if there is neither.
    """
    if can_answer():
        from aeon_tui.cli.approval_prompt import TerminalApprover

        return TerminalApprover(stderr(), lambda: progress.view, journal)
    if not wait:
        return None
    from aeon_tui.cli.approval_prompt import print_question, question_of

    err = stderr()
    return RemoteApprover(
        journal,
        wait,
        lambda line: err.line((line, "bold yellow")),
        lambda request: print_question(err, question_of(request, progress.view), journal),
    )


def warn_of_approvals(
    config: RunConfig, tools: ToolRegistry, plan: Plan | None, approver: TerminalApprover | RemoteApprover | None
) -> None:
    """Warn on stderr, before a run costs anything, about tools that need an approval that nobody can give.

    With a given plan, only the tools that it names count, otherwise all tools of the run.
    """
    if approver is not None and "tool" in config.approve:
        return
    policy = Policy(config.policy)
    used = None if plan is None else {step.tool for step in plan.walk()}
    names = [tool.name for tool in tools if policy.needs_a_person(tool) and (used is None or tool.name in used)]
    if names:
        how = "--approve tool" if can_answer() else "--approve tool with --wait SECONDS"
        line = (
            f"! no one can approve calls of {escape_controls(', '.join(names))} in this run; use --allow TOOL or {how}"
        )
        stderr().line((line, "yellow"))


def run_live(args: Namespace, job: RunJob, directory: Path) -> int:
    """Run the job in the app, and return its exit code."""
    from aeon_tui.app import run_app

    return run_app(directory, job, lambda: options.load(args), options.without_trust(args))


def run_headless(args: Namespace, job: RunJob, journal: Path, progress: ProgressPrinter) -> int:
    """Run the job to its end, print its progress and result, and return its exit code."""
    with contextlib.ExitStack() as ending:
        with diagnostics(args.debug), capture_stdio():
            if warning := isolation_warning(job.config):
                stderr().line((f"! {warning}", "yellow"))
            approver = approver_of(job.config.wait, journal, progress)
            if isinstance(job, NewRunJob) and job.tools is not None:
                warn_of_approvals(job.config, job.tools, job.plan, approver)
            kernel = job.build(journal, lambda line: progress(json.loads(line)), None, approver)

            def abort() -> None:
                if isinstance(approver, RemoteApprover):
                    approver.abort()
                kernel.abort()

            ending.enter_context(one_more_ignored())
            stops = forwarded_signals(abort, ABORTING)
            with one_more_ignored(), contextlib.closing(kernel), stops, progress.reporting_waits():
                result = kernel.run()
        return print_result(args, result, progress, f"journal {result.journal}")
