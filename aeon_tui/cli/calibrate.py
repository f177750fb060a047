"""`aeon-tui calibrate`: how well the judge agrees with labelled outcomes, or with the labels of your own runs."""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon_core.errors import AeonError, ModelUnavailableError, UsageError
from aeon_core.judge.agreement import (
    Agreement,
    JudgedLabel,
    LabelledOutcome,
    LabelledRuns,
    agreement_by_group,
    agreement_of,
    measure,
    read_labels,
    shipped_labels,
    spread,
)
from aeon_core.paths import expanded
from aeon_core.units import count
from aeon_tui.cli import options
from aeon_tui.cli.output import OutputStream, stderr, stdout, warnings_on
from aeon_tui.sessions.judge_model import JudgeModel

BELOW = 5
INTERRUPTED = 1
_EVERY = 20
"""Outcomes between reports of progress."""
_IN_A_ROW = 3
"""Consecutive failed calls, each after all its attempts, after which calibration stops."""
_SIMULATED = "the simulated model judges its own texts by a simple rule, so this does not measure a real judge"
_NOTHING = "no result in {} has both a label and a judge's verdict yet; add a label with `aeon-tui label RUN good|bad`"
_MEASURED_ONLY = ("model", "base_url", "judge_model", "judge_votes", "limit", "budget")


@dataclass
class _Measured:
    """What to print: the comparisons so far, and their cost."""

    source: str
    by: str
    """The field by which the comparisons are grouped."""
    comparisons: list[JudgedLabel] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    cost: str = ""
    failure: AeonError | None = None
    """Why there are no more."""
    interrupted: bool = False


def execute(args: Namespace) -> int:
    """Print the agreement; return 5 if it is below `--least`, 1 if it was interrupted, else 0.

    Raises UsageError; also ModelUnavailableError and CostCeilingReached, after printing what was judged by then.
    """
    least = _share(args.least)
    measured = _history(args) if args.history else _judged(args)
    found = agreement_of(measured.comparisons)
    out = stdout()
    if args.json:
        out.json(_as_json(measured, found))
    elif measured.comparisons:
        _print(out, measured, found)
    if measured.more.get("simulated") or any(each.group.startswith("simulated:") for each in measured.comparisons):
        stderr().line(("note: ", "yellow"), _SIMULATED)
    if measured.failure is not None:
        raise measured.failure
    if measured.interrupted:
        stderr().line("interrupted; showing the verdicts so far")
        return INTERRUPTED
    if measured.comparisons and all(each.judged is None for each in measured.comparisons):
        raise AeonError("the judge gave no usable verdict; see its replies with --json, or try another --model")
    if args.history and not measured.comparisons:
        stderr().line(_NOTHING.format(repr(measured.source)))
    return BELOW if least is not None and (found.agreement is None or found.agreement < least) else 0


def _history(args: Namespace) -> _Measured:
    given = next((name for name in _MEASURED_ONLY if getattr(args, name) is not None), None)
    if given is not None:
        raise UsageError(f"--history calls no model; drop --{given.replace('_', '-')}")
    if args.labels is not None:
        raise UsageError(f"--history uses your own labels; drop {args.labels!r}")
    runs_dir = options.runs_dir(args)
    return _Measured(str(runs_dir), "model", LabelledRuns(runs_dir).comparisons())


def _judged(args: Namespace) -> _Measured:
    """Ask the judge about each outcome in turn. Raises UsageError, ModelUnavailableError."""
    limit = options.whole_number(args.limit, "--limit")
    outcomes = read_labels(expanded(args.labels, "the labels")) if args.labels is not None else shipped_labels()
    outcomes = spread(outcomes, limit) if limit is not None else outcomes
    config = options.load(args).config
    if config.model is None and config.judge_model is not None:
        config = config.model_copy(update={"model": config.judge_model})
    from aeon_core.convergence import ConvergenceEngine
    from aeon_core.runs.factory import connect_model

    llm = connect_model(config)
    measured = _Measured(str(Path(args.labels)) if args.labels is not None else "shipped", "language")
    judge = JudgeModel(llm, config, stderr().warning)
    try:
        llm.check()
        engine = ConvergenceEngine(judge=judge, prompts_dir=config.prompts_dir, votes=config.judge_votes)
        with warnings_on(stderr()):
            for each in _with_progress(outcomes, engine):
                measured.comparisons.append(each)
                if judge.refusal is not None:
                    raise ModelUnavailableError(judge.refusal.message)
                if len(judge.failures) == _IN_A_ROW:
                    raise AeonError(f"the judge failed {_IN_A_ROW} times in a row: {judge.failures[-1].message}")
            if judge.failures and all(each.judged is None for each in measured.comparisons):
                raise AeonError(f"the judge failed: {judge.failures[-1].message}")
    except KeyboardInterrupt:
        measured.interrupted = True
    except AeonError as error:
        if all(each.judged is None for each in measured.comparisons):
            raise
        measured.failure = error
    finally:
        llm.close()
    measured.cost = f"{judge.label} · {count(judge.calls, 'call')} · {judge.spent}"
    measured.more = {
        "model": judge.models.model.model,
        "simulated": judge.models.simulated,
        "judge_votes": config.judge_votes,
        "outcomes": len(outcomes),
        "calls": judge.calls,
        "usage": judge.models.usage,
        "cost_usd": judge.models.cost_usd,
        "interrupted": measured.interrupted,
    }
    return measured


def _with_progress(outcomes: list[LabelledOutcome], engine: Any) -> Iterator[JudgedLabel]:
    """Yield the comparisons, and report progress on stderr."""
    err, done = stderr(), []
    for each in measure(outcomes, engine):
        done.append(each)
        yield each
        if len(done) % _EVERY == 0 or len(done) == len(outcomes):
            err.line(
                (f"judged {len(done)} of {len(outcomes)} · agreement {_shown(agreement_of(done).agreement)}", "dim")
            )


def _print(out: OutputStream, measured: _Measured, found: Agreement) -> None:
    out.line(
        ("agreement ", "bold"),
        (_shown(found.agreement), "bold"),
        f" · {found.agreed} of {found.results} results · kappa {_shown(found.kappa)}",
    )
    out.line(
        f"{count(found.false_accepts, 'bad result')} accepted · {count(found.false_rejects, 'good result')} rejected · "
        f"{found.unusable} without a usable verdict"
    )
    if measured.cost:
        out.line((measured.cost, "dim"))
    out.line()
    groups = agreement_by_group(measured.comparisons)
    width = max(len(measured.by), *map(len, groups))
    out.line((f"{measured.by:<{width}}  agreement  results  accepted  rejected  unusable", "dim"))
    for name, group in groups.items():
        out.line(
            f"{name:<{width}}  {_shown(group.agreement):>9}  {group.results:>7}  {group.false_accepts:>8}  "
            f"{group.false_rejects:>8}  {group.unusable:>8}"
        )
    disagreements = [each for each in measured.comparisons if not each.agrees]
    if disagreements:
        out.line()
    for each in disagreements:
        why = f" ({each.why})" if each.why else ""
        verdict = f"the judge said {each.judged}" if each.judged is not None else "the judge gave no usable verdict"
        out.line((each.id, "bold"), f" · labelled {each.label}{why}, {verdict}")
        if each.quote:
            out.paragraph(f"“{each.quote}”" if each.judged is not None else each.quote, "dim", indent=4)


def _as_json(measured: _Measured, found: Agreement) -> dict[str, Any]:
    groups = agreement_by_group(measured.comparisons)
    return {
        "source": measured.source,
        **measured.more,
        **found.as_dict(),
        f"by_{measured.by}": {name: each.as_dict() for name, each in groups.items()},
        "disagreements": [
            {
                "id": each.id,
                measured.by: each.group,
                "label": each.label,
                "said": each.judged,
                "why": each.why or None,
                "quote": each.quote or None,
            }
            for each in measured.comparisons
            if not each.agrees
        ],
    }


def _shown(share: float | None) -> str:
    """Return a share with two decimals, rounded down so that it never seems to reach a limit."""
    return "–" if share is None else f"{math.floor(share * 100 + 1e-9) / 100:.2f}"


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise UsageError(f"--least must be a number from 0 to 1, such as 0.9; got {text[:40]!r}")
    return share
