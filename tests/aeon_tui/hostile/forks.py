"""Runs commands, each in a process of its own: forked from one that has loaded what a command loads anyway.

A job is one line of JSON on standard input, its outcome one line on standard output. A command has `seconds` to end in.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

LOADED = (
    "aeon_core.config.trust",
    "aeon_core.journal.view.last_states",
    "aeon_core.llm.simulated",
    "aeon_core.runs.batch",
    "aeon_core.runs.replay",
    "aeon_core.runs.resume",
    "aeon_core.runs.setup",
    "aeon_core.tools.files",
    "aeon_core.tools.shell.bash",
    "aeon_core.tools.shell.isolation",
    "aeon_tui.cli.parser",
    "aeon_tui.cli.run",
    "aeon_tui.cli.watch",
    "aeon_tui.reports.export",
    "aeon_tui.sessions.approval_edits",
    "aeon_tui.sources.workflow",
    "aeon_widgets.run_question",
    "aeon_widgets.workflow_panes",
    "system2.__main__",
    "system2.command",
    "system2.orchestrator",
    "system2.terminal",
    "yaml",
)


def main() -> None:
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(outcome(json.loads(line))), flush=True)


def outcome(job: dict[str, Any]) -> dict[str, Any]:
    """Return how a command ended: its code, None where it had to be killed, and what it said."""
    pid = os.fork()
    if pid == 0:
        child(job)
    deadline = time.monotonic() + job["seconds"]
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return {"code": os.waitstatus_to_exitcode(status), **said(job)}
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return {"code": None, **said(job)}
        time.sleep(0.005)


def said(job: dict[str, Any]) -> dict[str, str]:
    """Return what a command has printed."""
    texts = {}
    for name in ("out", "err"):
        with Path(job[name]).open(errors="replace") as file:
            texts[name] = file.read()
    return texts


def child(job: dict[str, Any]) -> None:
    """Be the command."""
    os.setsid()
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    sys.stdin = Path(os.devnull).open()  # noqa: SIM115  # as long as the process lives
    code = 99
    try:
        program = importlib.import_module(job["module"])
        code = program.main(job["arguments"])
        if found := {"", ".", job["cwd"]} & set(sys.path):
            raise RuntimeError(f"modules are searched in the folder {found}")
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
