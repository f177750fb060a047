"""`aeon-tui show`: what one run did."""

from __future__ import annotations

from argparse import Namespace

from aeon_core.journal.history import ExecutionHistory, open_run
from aeon_core.journal.log_text import brief, message
from aeon_core.journal.view import RunView
from aeon_tui.cli import _settings
from aeon_tui.cli._output import STATUS_STYLES, Output, Part, stderr, stdout
from aeon_tui.cli._steps import print_answer, print_steps

DAMAGE_SHOWN = 20


def execute(args: Namespace) -> int:
    """Print a run's execution history and return 0. Raises UsageError where there is no such run."""
    view, history = open_run(args.run, _settings.runs_dir(args))
    out = stdout()
    if args.json:
        out.json(history.model_dump(mode="json"))
    else:
        _print_head(out, view, history)
        print_steps(out, view)
        _print_repairs(out, view)
        print_answer(out, view)
        if view.result is not None and view.result.error is not None:
            out.line()
            out.line(("error: ", "bold red"), message(view.result.error))
    _report_damage(view)
    return 0


def _print_head(out: Output, view: RunView, history: ExecutionHistory) -> None:
    statistics = history.overall_statistics
    rows: list[tuple[str, Part]] = [
        ("run", view.run_id),
        ("task", brief(view.task, 1_000)),
        ("status", (view.status.replace("_", " "), STATUS_STYLES.get(view.status, ""))),
        ("model", f"{view.model}{' (simulated)' if view.simulated else ''}"),
        ("started", f"{view.started[:19].replace('T', ' ')} UTC, {statistics.total_time:.1f} s"),
        ("passes", f"{statistics.total_passes}, {statistics.total_cycles} cycles, {statistics.total_repairs} repairs"),
        ("ttl", f"{view.ttl_remaining} of {view.ttl_allocated} cycles left"),
        ("tokens", f"{view.usage.get('input_tokens', 0)} in, {view.usage.get('output_tokens', 0)} out{_cost(view)}"),
    ]
    for label, value in rows:
        out.line((f"{label:<8} ", "dim"), value)
    out.line()
    if view.goal:
        out.line(("Plan: ", "bold"), view.goal)


def _cost(view: RunView) -> str:
    return "" if view.cost_usd is None else f", ${view.cost_usd:.4f}"


def _print_repairs(out: Output, view: RunView) -> None:
    """Print the repairs that belong to no step: those of the plan itself."""
    for repair in view.repairs:
        if repair.step_id is None:
            how = f"{repair.action_type.replace('_', ' ')}, {repair.method}, attempt {repair.attempt_number} of 2"
            result = "repaired" if repair.error is None else f"not repaired: {message(repair.error)}"
            out.line((f"the plan was {result} ({how})", "yellow"))


def _report_damage(view: RunView) -> None:
    err = stderr()
    for text in view.damage[:DAMAGE_SHOWN]:
        err.line(("damaged: ", "yellow"), text)
    if len(view.damage) > DAMAGE_SHOWN:
        err.line(("damaged: ", "yellow"), f"{len(view.damage) - DAMAGE_SHOWN} more places")
