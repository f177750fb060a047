"""What `resume`, `fork` and `run` share: the display of a run, overridden options, and the approver without the app."""

from __future__ import annotations

import contextlib
import json
import os
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.approval_inbox import RemoteApprover
from aeon_core.config.keys import KEYS
from aeon_core.config.schema import RunConfig
from aeon_core.escape import escape_controls
from aeon_core.policy import Policy, PolicyRules
from aeon_core.process import can_answer, ending_signals, handled
from aeon_tui.cli import options
from aeon_tui.cli.output import Output, diagnostics, stderr
from aeon_tui.cli.run_output import Progress, print_result
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.run_jobs import NewRunJob, RunJob, isolation_warning

if TYPE_CHECKING:
    from aeon_core.plan.models import Plan
    from aeon_core.tools.registry import ToolRegistry
    from aeon_tui.cli.approval_prompt import TerminalApprover

ABORTING = b"aeon-tui: aborting; press Ctrl-C again to stop at once\n"


@contextlib.contextmanager
def forwarded_signals(wish: Callable[[], None], said: bytes = ABORTING) -> Iterator[None]:
    """Call `wish` at the first Ctrl-C, termination or hang-up, and report it; the next raises KeyboardInterrupt."""
    asked = False

    def pass_on(*_: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        with contextlib.suppress(OSError):
            os.write(2, said)
        wish()

    with handled(pass_on, *ending_signals()):
        yield


def progress_of(args: Namespace, *, guided: bool = False) -> Progress:
    """Return the printer of a command's progress on stderr, with the detail of `--quiet` and `--verbose`."""
    return Progress(Output(None) if args.quiet else stderr(), guided=guided, verbose=args.verbose)


def given_options(args: Namespace, config: RunConfig) -> dict[str, Any]:
    """Return the options of the command line by key, as parsed by the configuration."""
    said = {key: getattr(config, key) for key in KEYS if getattr(args, key, None) is not None}
    if args.allow is not None:
        said["policy"] = PolicyRules(allow=args.allow)
    return said


def approver_of(wait: float, journal: Path, progress: Progress) -> TerminalApprover | RemoteApprover | None:
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


def warn_of_isolation(config: RunConfig) -> None:
    """Warn on stderr, at the start of a run, about incomplete isolation of commands."""
    if warning := isolation_warning(config):
        stderr().line((f"! {warning}", "yellow"))


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


def run_headless(args: Namespace, job: RunJob, journal: Path, progress: Progress) -> int:
    """Run the job to its end, print its progress and result, and return its exit code."""
    with diagnostics(args.debug), capture_stdio():
        warn_of_isolation(job.config)
        approver = approver_of(job.config.wait, journal, progress)
        if isinstance(job, NewRunJob) and job.tools is not None:
            warn_of_approvals(job.config, job.tools, job.plan, approver)
        kernel = job.build(journal, lambda line: progress(json.loads(line)), None, approver)

        def abort() -> None:
            if isinstance(approver, RemoteApprover):
                approver.abort()
            kernel.abort()

        with contextlib.closing(kernel), forwarded_signals(abort):
            result = kernel.run()
    return print_result(args, result, progress, f"journal {result.journal}")
