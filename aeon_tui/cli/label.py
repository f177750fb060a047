"""`aeon-tui label`: a person's own verdict on the result of a run, kept in its journal."""

from __future__ import annotations

from argparse import Namespace

from aeon_core.journal.labels import label_run
from aeon_core.json_safe import clean_text
from aeon_tui.cli import options
from aeon_tui.cli.output import stderr
from aeon_tui.sources.run_index import find_journal


def execute(args: Namespace) -> int:
    """Label the run and return 0. Raises UsageError where there is no such run, or no result of it to label."""
    path = find_journal(args.run, options.runs_dir(args))
    record = label_run(path, args.verdict, clean_text(args.why or "").strip() or None)
    stderr().line(f"labelled {args.verdict}: {path.stem}, pass {record['pass']}")
    return 0
