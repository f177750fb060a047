"""`aeon-tui batch`: many tasks, each as its own run, over processes or a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from aeon_core.config.schema import RunConfig, runs_directory
from aeon_core.errors import AeonError, ModelUnavailableError, UsageError, reason_of
from aeon_core.journal.values import brief
from aeon_core.journal.view.formatting import words
from aeon_core.paths import expanded, writable
from aeon_core.plan.files import load_plan_file
from aeon_core.process import forwarded_signals, one_more_ignored
from aeon_core.regular_file import open_regular
from aeon_core.runs.batch import Batch, Pool, ProcessPool, Work, dask_pool, exit_code
from aeon_core.runs.batch_tasks import AUTO_APPROVE, MAX_LINE, BatchTask, check_journals, read_tasks
from aeon_core.runs.factory import NO_MODEL, build_tools, connect_model
from aeon_core.units import count, money
from aeon_tui.cli import options
from aeon_tui.cli.output import STATUS_STYLES, OutputStream, stderr, stdout
from aeon_tui.platform.stdio_capture import capture_stdio

if TYPE_CHECKING:
    from aeon_core.config.trust import TrustMode

ID_CELLS = 40
REASON_CELLS = 160
NOTHING = "–"

Result = dict[str, Any]


class BatchReport:
    """Prints the progress of a batch of `total` tasks, and its table."""

    def __init__(self, out: OutputStream, total: int) -> None:
        self._out = out
        self._total = total
        self._before = 0
        self._known = 0

    def result(self, result: Result) -> None:
        """Print one task's result; results known before the start share one line."""
        self._known += 1
        if result["ended"] == "before":
            self._before += 1
            return
        self._announce()
        parts = [_passes(result), _cost(result), _time(result)]
        status = result["status"]
        self._out.line(
            (f"[{self._known}/{self._total}] ", "dim"),
            (_id(result), "bold"),
            " · ",
            (words(status), STATUS_STYLES.get(status, "")),
            *(f" · {part}" for part in parts if part != NOTHING),
            f" · {brief(str(_reason(result)), REASON_CELLS)}" if _reason(result) else "",
        )

    def table(self, results: Sequence[Result]) -> None:
        """Print id, status, passes, cost and time of every task, and the totals."""
        self._announce()
        rows = [(_id(each), words(each["status"]), _passes(each), _cost(each), _time(each)) for each in results]
        heads = ("id", "status", "passes", "cost", "time")
        widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
        self._out.line((_aligned(heads, widths), "bold"))
        for row, each in zip(rows, results, strict=True):
            self._out.line((_aligned(row, widths), STATUS_STYLES.get(each["status"], "")))
        self._out.line(_totals(results))

    def _announce(self) -> None:
        if self._before:
            self._out.line((f"{self._before} of {count(self._total, 'task')} had already ended", "dim"))
            self._before = 0


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
    return "  ".join([*left, *right])


def _totals(results: Sequence[Result]) -> str:
    counts = Counter(words(each["status"]) for each in results)
    costs = [each["cost_usd"] for each in results if each["cost_usd"] is not None]
    unpriced = sum(1 for each in results if each["ended"] is not None and each["cost_usd"] is None)
    parts = [
        f"{count(len(results), 'task')}: {', '.join(f'{number} {status}' for status, number in counts.most_common())}",
        money(sum(costs)) + (f", {unpriced} without a known price" if unpriced else ""),
        f"{sum(each['seconds'] or 0.0 for each in results):.1f} s of runs",
    ]
    if any(each["status"] == "aborted" for each in results):
        parts.append("run the command again to continue the aborted ones")
    return " · ".join(parts)


def _id(result: Result) -> str:
    return brief(result["id"], ID_CELLS)


def _reason(result: Result) -> Any:
    return (result["error"] or {}).get("message")


def _passes(result: Result) -> str:
    return NOTHING if result["ended"] is None or not result["passes"] else count(result["passes"], "pass")


def _cost(result: Result) -> str:
    return NOTHING if result["cost_usd"] is None else money(result["cost_usd"])


def _time(result: Result) -> str:
    return NOTHING if result["seconds"] is None else f"{result['seconds']:.1f} s"


STOPPING = b"aeon-tui: aborting what is running; press Ctrl-C again to kill it\n"
MAX_JOBS = 1000


def execute(args: Namespace) -> int:
    """Run the missing tasks and return 0, or the highest exit code of a run.

    Raises UsageError or ModelUnavailableError before anything starts, for a bad line, option or configuration.
    """
    jobs = options.whole_number(args.jobs, "--jobs", MAX_JOBS)
    config = options.load(args).config
    plan = load_plan_file(expanded(args.plan, "--plan")) if args.plan is not None else None
    where, tasks = _tasks(args, config)
    directory = writable(runs_directory(config))
    check_journals(tasks, directory, where)
    if plan is not None and (line := next((task.line for task in tasks if task.workflow), None)) is not None:
        raise UsageError(
            f"{where}, line {line}: a workflow takes no plan; leave out --plan, or move the line to its own file"
        )
    _check(tasks, where, here=args.scheduler is None, trusts_project=args.trust_project)
    report = BatchReport(stderr(), len(tasks))
    pool: Pool = ProcessPool(jobs or _cores()) if args.scheduler is None else dask_pool(args.scheduler, jobs)
    workflows: Work | None = None
    if any(task.workflow for task in tasks):
        from system2.orchestrator import work

        workflows = work
    batch = Batch(
        tasks,
        pool,
        directory,
        retry_failed=args.retry_failed,
        trusts_project=args.trust_project,
        workflows=workflows,
        plan=plan,
        on_result=report.result,
    )
    with one_more_ignored():
        with forwarded_signals(batch.stop, STOPPING):
            results = batch.run()
        if args.json:
            stdout().json(results)
        report.table(results)
    return exit_code(results)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tasks(args: Namespace, config: RunConfig) -> tuple[str, list[BatchTask]]:
    """Return the name of the tasks' source, and the tasks. Raises UsageError."""
    if args.name is not None and not args.name.strip():
        raise UsageError("--name is empty; give a prefix for the run ids")
    if args.tasks == "-":
        source = getattr(sys.stdin, "buffer", None)
        where = "standard input"
        return where, read_tasks(
            task_lines(source) if source else (), name=args.name or "stdin", config=config, where=where
        )
    where = f"the file {args.tasks!r}"
    path = expanded(args.tasks, "the tasks")
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            name = args.name or path.stem
            return where, read_tasks(
                task_lines(file), name=name, config=config, where=where, folder=path.absolute().parent
            )
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {where}: {reason_of(error)}") from None


def task_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long, only as much as shows it."""
    return iter(partial(file.readline, MAX_LINE + 1), b"")


def _check(tasks: Sequence[BatchTask], where: str, *, here: bool, trusts_project: bool) -> None:
    """Raise AeonError if a task's model, tools or criteria cannot be used; each is checked once.

    For a cluster's workers, only the presence of a model name can be checked here.
    """
    seen: set[str] = set()
    for task in tasks:
        root = task.config.project_root
        try:
            if here and root is not None and not root.is_dir():
                raise UsageError(f"the project root {str(root)!r} is not a folder; choose an existing one")
            if task.workflow:
                _check_workflow(task, seen, trusts_project=trusts_project)
            else:
                _check_run(task.config, seen, here=here)
        except AeonError as error:
            error.message = f"{where}, line {task.line}: {error.message}"
            raise


def _check_run(config: RunConfig, seen: set[str], *, here: bool) -> None:
    if config.model is None:
        raise ModelUnavailableError(NO_MODEL)
    if (asked := [point for point in ("plan", "pass") if point in config.approve]) and not config.wait:
        raise UsageError(f"no one can approve a {asked[0]} in a batch; remove it from --approve or add --wait SECONDS")
    model = f"model {config.models} {config.judge_model} {config.base_url} {config.bedrock!r} {config.prices!r}"
    checks = {
        f"{model} {config.budget is None}": _check_model,
        f"tools {config.tools} {config.project_root} {config.policy!r}": _check_tools,
        f"files {config.criteria} {config.requirements}": options.check_files,
    }
    for what, check in checks.items() if here else ():
        # Of several lines with the same values, one is enough.
        if what not in seen:
            seen.add(what)
            check(config)


def _check_workflow(task: BatchTask, seen: set[str], *, trusts_project: bool) -> None:
    from aeon_tui.sessions.workflow_session import WorkflowJob

    config, root = task.config, task.config.root
    if task.workflow != AUTO_APPROVE and not config.wait:
        how = f"add --wait SECONDS, or set 'workflow' to {AUTO_APPROVE!r}"
        raise UsageError(f"no one can decide at the gates in a batch; {how}")
    if (project := f"project {root.resolve()}") in seen:
        raise UsageError(f"another line has a workflow in {str(root)!r} already; give each its own project_root")
    seen.add(project)
    model = config.models[0] if config.models else None
    trust: TrustMode = "apply" if trusts_project else "require"
    WorkflowJob(root, model=model, base_url=config.base_url, trust=trust).prepare()


def _check_model(config: RunConfig) -> None:
    with contextlib.closing(connect_model(config)) as model:
        model.check()


def _check_tools(config: RunConfig) -> None:
    with capture_stdio():
        build_tools(config).close()
