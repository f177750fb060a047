"""`aeon-tui resume`: continue a run where its journal ends, live in the app or headless."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon_core.journal.reader import read_records
from aeon_core.journal.view import reducer
from aeon_core.runs.resume import finished_result
from aeon_tui.cli import options
from aeon_tui.cli.output import in_app, stderr
from aeon_tui.cli.run import given_options, progress_of, run_headless, run_live
from aeon_tui.cli.run_output import print_result
from aeon_tui.platform.stdio_capture import capture_stdio
from aeon_tui.sessions.run_jobs import EndedRun, ResumeJob, check_overrides, checked_model, ended_for_good, resume_job
from aeon_tui.sources.run_index import find_journal, is_workflow

if TYPE_CHECKING:
    from aeon_core.config.loading import LoadedConfig


def execute(args: Namespace) -> int:
    """Continue a run and return the exit code of its result; the result of a finished run is printed again.

    Raises UsageError if there is no such run or it cannot be continued, ModelUnavailableError without its model.
    """
    path = find_journal(args.run, options.runs_dir(args))
    if is_workflow(path):
        from aeon_tui.cli import workflow

        return workflow.resume(args, path)
    if in_app(args):
        options.ask_for_trust(args)
    return _in_app(args, path) if in_app(args) else _headless(args, path)


def _headless(args: Namespace, path: Path) -> int:
    progress = progress_of(args)
    _overrides(args, path, options.load(args))
    for record in read_records(path):
        reducer.apply(progress.view, record)
    if (result := finished_result(path)) is None:
        return run_headless(args, _work(args, path), path, progress)
    _report_ended(EndedRun(result.status, result.exit_code))
    return print_result(args, result, progress, f"journal {result.journal}")


def _in_app(args: Namespace, path: Path) -> int:
    from aeon_core.journal.recovery import make_sure_nobody_writes
    from aeon_tui.app import AeonApp, run_app
    from aeon_tui.screens.run.screen import RunScreen
    from aeon_tui.sources.journal import source_of

    directory = options.runs_dir(args)
    _overrides(args, path, options.load(args))
    ended = ended_for_good(path)
    if ended is None:
        make_sure_nobody_writes(path)
        return run_live(args, _work(args, path, live=True), directory)

    def show(app: AeonApp) -> None:
        app.first_screen = RunScreen(source_of(path, directory))
        app.first_notice = f"{ended}; fork it instead"

    code = run_app(directory, None, lambda: options.load(args), show)
    _report_ended(ended)
    return code or ended.exit_code


def _work(args: Namespace, path: Path, *, live: bool = False) -> ResumeJob:
    loaded = options.load(args)
    job = resume_job(path, loaded, _overrides(args, path, loaded), in_app=live)
    with capture_stdio():
        job.prepare()
    return job


def _overrides(args: Namespace, path: Path, loaded: LoadedConfig) -> dict[str, Any]:
    for model in filter(None, (args.model, args.judge_model)):
        checked_model(model)
    given = given_options(args, loaded.config)
    return check_overrides(path, given if args.plan is None else {**given, "plan": args.plan})


def _report_ended(ended: EndedRun) -> None:
    stderr().line(f"aeon-tui: {ended}")
