"""`aeon-tui replay`: replay a run or workflow from its journal; --check reports whether it still does the same."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from aeon_core.errors import UsageError
from aeon_core.journal.listing import find_run, is_path
from aeon_core.journal.view.formatting import words
from aeon_core.journal.writer import LineListener, as_dicts
from aeon_core.runs.replay import Replay, replay
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, diagnostics, in_app, stderr, stdout
from aeon_tui.cli.run import progress_of
from aeon_tui.cli.run_output import NO_RESULT, print_result
from aeon_tui.sources.replay import make_sure_it_is_over, speed_of
from aeon_tui.sources.run_index import find_journal, is_workflow

DIFFERS = 1


def execute(args: Namespace) -> int:
    """Replay a recorded run, without model, tool and network, and return its exit code.

    With --check: 0 if the kernel does what was recorded, 1 if it does not. Raises UsageError if there is no such run,
    or its journal cannot be replayed.
    """
    speed, path = _speed(args.speed), _path(args)
    if not args.check and in_app(args):
        return _in_app(args, path, speed)
    progress = progress_of(args)
    with diagnostics(args.debug):
        done = _replay(path, None if args.check else as_dicts(progress))
    if args.check:
        return _check(stdout(), done)
    if done.result is None:
        return _without_result(done)
    return print_result(args, done.result, progress, f"replayed from {path}")


def _replay(path: Path, on_line: LineListener | None) -> Replay:
    """Replay a run, whose records `on_line` gets, or a workflow."""
    if not is_workflow(path):
        return replay(path, on_line)
    from system2.workflow import replay as replay_workflow

    return replay_workflow(path)


def _in_app(args: Namespace, path: Path, speed: float) -> int:
    from aeon_tui.app import AeonApp, run_app
    from aeon_tui.screens.replay import replay_screen

    make_sure_it_is_over(path)

    def show(app: AeonApp) -> None:
        app.first_screen = replay_screen(path, speed)

    return run_app(path.parent, None, lambda: options.load(args), show)


def _speed(given: str | None) -> float:
    if given is None:
        return 1.0
    if (speed := speed_of(given)) is None:
        raise UsageError(f"--speed must be a number above 0, or 'max'; got {given!r}")
    return speed


def _path(args: Namespace) -> Path:
    """Return the run's journal. A path needs no configuration, so a check works in any folder."""
    if is_path(args.run):
        return find_run(Path(args.run))
    return find_journal(args.run, options.runs_dir(args))


def _check(out: OutputStream, done: Replay) -> int:
    if done.difference is not None:
        _print_difference(out, done)
        return DIFFERS
    how = "the run has not ended" if done.result is None else f"the run ended as {words(done.result.status)}"
    out.line(f"{_count(done)} identical; {how}")
    return 0


def _without_result(done: Replay) -> int:
    err = stderr()
    if done.difference is not None:
        _print_difference(err, done)
        return DIFFERS
    err.line(f"aeon-tui: the run {done.run_id!r} has not ended, so it has no result; {_count(done)} identical")
    return NO_RESULT


def _print_difference(out: OutputStream, done: Replay) -> None:
    found = done.difference
    assert found is not None
    out.line((f"record {found.seq} differs", "bold red"), f" · {found.where}")
    out.line(("  recorded  ", "dim"), found.recorded)
    out.line(("  now       ", "dim"), found.now)
    out.line(f"{_count(done)} identical up to there")


def _count(done: Replay) -> str:
    return f"{done.records} {'record is' if done.records == 1 else 'records are'}"
