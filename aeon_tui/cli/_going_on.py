"""What `resume`, `fork` and `run` have in common: where they are shown, what was said anew, how they run headless."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.config import RunConfig
from aeon_core.config_files import KEYS
from aeon_core.entities import RunResult
from aeon_core.policy import PolicyRules
from aeon_tui.cli._diagnostics import diagnostics
from aeon_tui.cli._output import can_answer, has_screen, stderr
from aeon_tui.cli._progress import Progress
from aeon_tui.cli._signals import passed_on
from aeon_tui.prints import prints_on_stderr

if TYPE_CHECKING:
    from aeon_core.effects.approval import Approver
    from aeon_tui.forked import ForkRun
    from aeon_tui.resumed import ResumeRun


def in_app(args: Namespace) -> bool:
    """Return whether the command opens the app: at a terminal, unless it is told otherwise."""
    return not args.headless and not args.json and has_screen()


def said_anew(args: Namespace, config: RunConfig) -> dict[str, Any]:
    """Return the options that the command line gives, by key, as the configuration has read them."""
    said = {key: getattr(config, key) for key in KEYS if getattr(args, key, None) is not None}
    if args.allow is not None:
        said["policy"] = PolicyRules(allow=args.allow)
    return said


def approver_at_terminal(progress: Progress) -> Approver | None:
    """Return who asks the person at the terminal of a headless run, None where nobody is there."""
    if not can_answer():
        return None
    from aeon_tui.cli._ask import TerminalApprover

    return TerminalApprover(stderr(), lambda: progress.view)


def run_headless(work: ResumeRun | ForkRun, journal: Path, progress: Progress, *, debug: bool) -> RunResult:
    """Do the work to its end, with its progress on stderr, and return how it ended."""
    with diagnostics(debug), prints_on_stderr():
        kernel = work.build(journal, lambda line: progress(json.loads(line)), None, approver_at_terminal(progress))
        try:
            with passed_on(kernel.abort):
                return kernel.run()
        finally:
            kernel.close()
