"""`aeon-tui watch`: follow a run or workflow of another process, in the app or headless, even before it starts."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_core.journal.follow import Follower
from aeon_core.journal.listing import Awaited
from aeon_core.journal.reader import head
from aeon_core.journal.summary import is_being_written
from aeon_tui.cli import options
from aeon_tui.cli.output import in_app
from aeon_tui.sources.run_index import is_workflow, newest_transcript, transcript_of

if TYPE_CHECKING:
    from aeon_tui.app import AeonApp


def execute(args: Namespace) -> int:
    """Follow a run; headless, return the exit code of its result, or 1 if its process has died.

    Raises UsageError if the name is a prefix of several runs, or the file is not a journal.
    """
    loaded = options.load_light(args)
    directory = options.runs_dir_of(loaded)
    awaited = Awaited(args.run, directory)
    path = awaited.find() or transcript_of(args.run)
    if args.run == "last" or (args.run is None and (path is None or not is_being_written(path))):
        path = newest_transcript(after=path) or path
    if not in_app(args):
        from aeon_tui.cli.followed_run import follow_headless

        return follow_headless(args, awaited, path)
    if path is not None:
        _check(path)
    from aeon_tui.app import run_app

    def prepare(app: AeonApp) -> None:
        app.apply_settings(loaded.app)
        if path is not None and is_workflow(path):
            app.open_on_transcript(path)
        else:
            app.open_on_watched(awaited)

    return run_app(directory, prepare=prepare)


def _check(path: Path) -> None:
    """Raise UsageError if the file is not a journal, before the app opens."""
    if path.exists() and head(path) is None:
        with contextlib.closing(Follower(path)) as follower:
            next(follower.read(), None)
