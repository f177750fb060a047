"""`aeon-tui delete`: delete runs, and the files next to their journals that belong to them alone."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from aeon_core.errors import AeonError, UsageError
from aeon_core.journal.deletion import refuse_live, remove_run, size_of
from aeon_core.journal.listing import is_path
from aeon_core.journal.summary import summarise
from aeon_core.journal.values import brief
from aeon_core.stdio import can_answer
from aeon_tui.cli import options
from aeon_tui.cli.output import stderr
from aeon_tui.sources.run_index import find_journal
from aeon_widgets.text import count, size

TASK_CELLS = 60


def execute(args: Namespace) -> int:
    """Ask, and delete the runs; return 0, or 1 where the answer was no or a run could not be deleted.

    Everything is looked up before anything is deleted. Raises UsageError where a run does not exist, is live or is
    named ambiguously, or nobody can be asked.
    """
    directory = options.runs_dir(args)
    journals = list(dict.fromkeys(_journal(run, directory, sure=args.yes) for run in args.runs))
    for journal in journals:
        refuse_live(journal)
    err = stderr()
    if not args.yes:
        if not can_answer():
            raise UsageError("there is no terminal to ask on; add --yes to delete without confirmation")
        for journal in journals:
            summary = summarise(journal)
            task = f"  {brief(summary.task[:400], TASK_CELLS)}" if summary is not None else ""
            err.line((journal.stem, "bold"), f"  {size(size_of(journal))}{task}")
        err.line(f"Delete {count(len(journals), 'run')}? This cannot be undone. [y/N]")
        if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
            err.line("nothing was deleted")
            return 1
    code = 0
    for journal in journals:
        try:
            remove_run(journal)
        except AeonError as error:
            code = 1
            err.line(f"aeon-tui: {error.message}")
        else:
            err.line(("deleted ", "green"), journal.stem)
    return code


def _journal(run: str, directory: Path, *, sure: bool) -> Path:
    """Return the journal of a run; without a question only one that is named in full."""
    journal = find_journal(run, directory).absolute()
    if sure and not is_path(run) and run not in (journal.stem, "last"):
        raise UsageError(f"with --yes, name the run in full: {journal.stem}")
    return journal
