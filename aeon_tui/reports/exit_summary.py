"""The end of a headless run in one line, and why there is no usable result in another (contract: exit codes)."""

from __future__ import annotations

from collections.abc import Sequence

from aeon_core.entities import RunResult
from aeon_core.journal.values import brief
from aeon_core.journal.view import formatting
from aeon_core.journal.view.model import AssessmentView
from aeon_core.journal.view.reducer import assessment_of
from aeon_core.paths import run_command
from aeon_core.units import count

_LONGEST = 300
"""The most characters shown of a cause."""


def ending(result: RunResult, *, scores: bool = True) -> str:
    """Return status, passes and scores; for a plain loop, and where no pass has ended, only the status."""
    status = f"run {formatting.words(result.status)}"
    if result.convergence is None or not result.passes:
        return status
    counted = f"{status} · {count(result.passes, 'pass')}"
    return f"{counted} · {formatting.scores(_assessed(result))}" if scores else counted


def why_not_usable(result: RunResult) -> str | None:
    """Return why there is no usable result, and what to do; None if there is one."""
    if result.error is not None:
        return " ".join(str(result.error.get("message", result.status)).split())
    if result.status == "ttl_expired":
        return _expired(result)
    if result.status == "not_converged":
        return _not_converged(result) if result.convergence is not None else _not_complete(result)
    return None


def _expired(result: RunResult) -> str:
    metadata = result.ttl_expired_metadata
    left = metadata.incomplete_steps if metadata is not None else []
    if result.plan is None:
        where = "before there was a plan"
    elif left:
        where = f"before {_few(left)} could run"
    elif result.convergence is None:
        where = "before the answer was written"
    elif result.expiration_point == "mid_phase":
        where = f"before the answer of pass {result.passes + 1} was written"
    else:
        where = "before the result converged"
    return f"the TTL of {count(result.ttl.limit, 'cycle')} ran out {where}; raise it with --ttl"


def _not_converged(result: RunResult) -> str:
    return f"not converged after {count(result.passes, 'pass')}: {_cause(result)}{_see(result)}"


def _cause(result: RunResult) -> str:
    """Return the main cause: a failure, then a missing judgement, then an unsatisfied requirement."""
    shown = _assessed(result)
    unmet = sorted((each for each in shown.requirements if each.met != "yes"), key=lambda each: each.met != "no")
    if failure := _failure(result):
        return failure
    if shown.not_judged:
        return f"the result was not judged: {brief(shown.not_judged, _LONGEST)}"
    if unmet:
        how = "does not satisfy" if unmet[0].met == "no" else "only partly satisfies"
        return f"the answer {how} “{brief(unmet[0].text, _LONGEST)}”{_more(unmet, 'requirement')}"
    if shown.detected_issues:
        return f"{brief(shown.detected_issues[0], _LONGEST)}{_more(shown.detected_issues, 'issue')}"
    return next(iter(formatting.scored_reasons(shown)), "no reason was recorded")


def _failure(result: RunResult) -> str:
    """Return why the first failed step failed; empty if none did."""
    failed = [step for step in result.steps if step.status == "failed"]
    if not failed:
        return ""
    why = f": {brief(failed[0].errors[0], _LONGEST)}" if failed[0].errors else ""
    return f"step {failed[0].step_id} failed{why}{_more(failed, 'failed step')}"


def _not_complete(result: RunResult) -> str:
    if failure := _failure(result):
        return failure
    if result.answer is None and all(step.status == "complete" for step in result.steps):
        return f"the model gave no answer: its reply is empty or a refusal{_see(result)}; run it again"
    left = [step.step_id for step in result.steps if step.status != "complete"]
    return f"some steps are not complete: {_few(left) or 'there is none'}"


def details(result: RunResult) -> str:
    """Return the command that shows the run, in backquotes; empty if no journal was kept."""
    return run_command("show", result.journal) if result.journal is not None else ""


def _see(result: RunResult) -> str:
    return f" (details: {details(result)})" if result.journal is not None else ""


def _more(found: Sequence[object], noun: str) -> str:
    return f", and {count(len(found) - 1, f'more {noun}')}" if len(found) > 1 else ""


def _assessed(result: RunResult) -> AssessmentView:
    return assessment_of(result.convergence or {}, pass_number=result.passes)


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
