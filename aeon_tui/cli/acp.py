"""`aeon-tui acp`: an agent for the Agent Client Protocol, started and driven by an editor."""

from __future__ import annotations

import asyncio
import logging
import sys
from argparse import Namespace
from pathlib import Path

from aeon_core.config.schema import runs_directory
from aeon_core.errors import UsageError
from aeon_core.installation import missing_extra, versions
from aeon_core.paths import writable
from aeon_core.process import is_terminal
from aeon_tui.cli import options
from aeon_tui.cli.output import diagnostics
from aeon_tui.platform.stdio_capture import reserve_stdio
from aeon_tui.platform.stdio_server import JsonLines, serve_until_hung_up
from aeon_tui.sessions.run_options import approval_points
from aeon_tui.sessions.served_runs import ServedRuns


def execute(args: Namespace) -> int:
    """Serve an editor on standard input and output until it hangs up, and return 0.

    Raises UsageError at a terminal, with a closed standard input or output, and for a configuration that no session
    could use; MissingExtraError.
    """
    try:
        from aeon_tui.acp import AeonAgent
    except ModuleNotFoundError:
        raise missing_extra("`aeon-tui acp`", "acp") from None
    if None in (sys.stdin, sys.stdout):
        raise UsageError("standard input or output is closed; acp talks to an editor over both")
    if is_terminal(sys.stdin):
        raise UsageError("acp talks to an editor, not to a terminal; add this command to the editor's agent settings")
    config = options.load(args).config
    # A module is found in the project of a session.
    anywhere = [spec for spec in config.tools if ":" not in spec]
    options.check_served(config.model_copy(update={"tools": anywhere}), ())
    writable(runs_directory(config))
    # The protocol's library would log tracebacks to stderr.
    logging.basicConfig(handlers=[logging.StreamHandler() if args.debug else logging.NullHandler()])
    with diagnostics(args.debug), reserve_stdio() as (reader, writer):
        agent = AeonAgent(lambda cwd: _runs(args, cwd), versions()["aeon"])

        lines = JsonLines(reader, writer)
        asyncio.run(serve_until_hung_up(lambda: agent.serve(lines), agent.close))
    return 0


def _runs(args: Namespace, cwd: Path) -> tuple[ServedRuns, str]:
    loaded = options.load(Namespace(**{**vars(args), "project_root": args.project_root or str(cwd)}))
    notice = ""
    if loaded.ignored:
        notice = f"Ignoring this untrusted project's {', '.join(loaded.ignored)}; see `aeon-tui trust`."
    config = loaded.config.model_copy(update={"approve": approval_points(loaded, in_app=True)})
    return ServedRuns(config, writable(runs_directory(config))), notice
