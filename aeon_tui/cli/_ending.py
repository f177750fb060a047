"""How a headless run ended, in one line, and why there is no result to use, in another (contract: exit codes)."""

from __future__ import annotations

from aeon_core.entities import RunResult
from aeon_core.journal import adaptive_text
from aeon_core.journal.adaptive_fold import assessment_of
from aeon_core.journal.adaptive_parts import AssessmentView


def ending(result: RunResult) -> str:
    """Return status, passes and scores; of a plain loop the status alone."""
    status = f"run {result.status.replace('_', ' ')}"
    if result.convergence is None:
        return status
    return f"{status} · {_count(result.passes, 'pass', 'passes')} · {adaptive_text.scores(_assessed(result))}"


def why_not_usable(result: RunResult) -> str | None:
    """Return why there is no result to use, and what to do; None where there is one."""
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
    else:
        where = f"before {_few(left)} could run" if left else "before the result converged"
        if not left and result.convergence is None:
            where = "before the answer was written"
    spent = _count(result.ttl.limit, "cycle", "cycles")
    return f"the TTL of {spent} was spent {where}; a higher --ttl lets a run go on"


def _not_converged(result: RunResult) -> str:
    reasons = "; ".join(adaptive_text.scored_reasons(_assessed(result)))
    passes = _count(result.passes, "pass", "passes")
    return f"not converged after {passes}: {reasons} (`aeon-tui show {result.run_id}` has the issues)"


def _not_complete(result: RunResult) -> str:
    if result.answer is None and all(step.status == "complete" for step in result.steps):
        return (
            f"the model gave no answer: its reply is empty or a refusal (`aeon-tui show {result.run_id}`); run it again"
        )
    failed = [step.step_id for step in result.steps if step.status == "failed"]
    return f"not every step is complete (failed: {_few(failed) or 'none'}); each step shows its errors"


def _assessed(result: RunResult) -> AssessmentView:
    return assessment_of(result.convergence or {}, pass_number=result.passes)


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
