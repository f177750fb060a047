"""`aeon-tui resume`: a run goes on where its journal ends."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from aeon_core.assemble import assembled_tools, connected_model
from aeon_core.config import RunConfig
from aeon_core.entities import RunResult
from aeon_core.journal.history import find_run
from aeon_core.journal.listening import as_dicts
from aeon_core.journal.reader import read_records
from aeon_core.replaying import recorded_config
from aeon_core.resuming import OPTIONS, Resumption, finished_result
from aeon_tui.cli import _settings
from aeon_tui.cli._ask import TerminalApprover
from aeon_tui.cli._diagnostics import diagnostics
from aeon_tui.cli._output import is_terminal, stderr
from aeon_tui.cli._printed import print_result
from aeon_tui.cli._progress import Progress
from aeon_tui.cli._signals import passed_on
from aeon_tui.prints import prints_on_stderr


def execute(args: Namespace) -> int:
    """Go on with a run and return the exit code of its result; of one that has ended for good, its result's.

    Raises UsageError where there is no such run or it cannot be gone on with, ModelUnavailableError without its model.
    """
    path = find_run(args.run, _settings.runs_dir(args))
    progress = Progress(stderr())
    for record in read_records(path):
        progress.view.apply(record)
    result = finished_result(path)
    if result is None:
        result = _go_on(args, path, progress)
    else:
        stderr().line(f"aeon-tui: the run has ended as {result.status}; there is nothing to go on with")
    return print_result(result, progress.view, f"journal {result.journal}", as_json=args.json)


def _go_on(args: Namespace, path: Path, progress: Progress) -> RunResult:
    loaded = _settings.load(args)
    recorded = recorded_config(next(read_records(path)))
    config = _live(args, recorded, loaded.config)
    options = {name: getattr(loaded.config, name) for name in OPTIONS if getattr(args, name) is not None}
    asks = "tool" in loaded.config.approve or config.on_unknown == "ask"
    with prints_on_stderr():
        registry = assembled_tools(config)
    llm = connected_model(config)
    try:
        llm.check()
        approver = TerminalApprover(stderr()) if asks and is_terminal(sys.stdin) and is_terminal(sys.stderr) else None
        going_on = Resumption(path, llm, registry, options=options, approver=approver, on_line=as_dicts(progress))
        with diagnostics(args.debug), passed_on(going_on.abort), prints_on_stderr():
            return going_on.run()
    finally:
        registry.close()
        llm.close()


def _live(args: Namespace, recorded: RunConfig, today: RunConfig) -> RunConfig:
    """Return the options to go on with: the run's own, but for what is said anew and what was never written down."""
    said = {name: getattr(today, name) for name in ("model", "base_url", "tools") if getattr(args, name)}
    secret = {name: getattr(today, name) for name in ("mcp_servers", "bedrock", "prices")}
    said |= {name: getattr(today, name) for name in OPTIONS if getattr(args, name) is not None}
    return recorded.model_copy(update={**secret, **said})
