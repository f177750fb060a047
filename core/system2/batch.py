"""One workflow of a batch, in any process (contract: `batch`)."""

from __future__ import annotations

import logging
import sys
from typing import Any

from aeon_core.config.schema import find_project_root
from aeon_core.entities import RunResult
from aeon_core.errors import JournalError
from aeon_core.journal.reader import tail
from aeon_core.journal.summary import last_state
from aeon_core.runs.batch.tasks import AUTO_APPROVE
from aeon_core.runs.batch.worker import Job, has_begun, run_job, stopped_by
from system2.logs import Log
from system2.orchestrator import Orchestrator
from system2.policies import AutoApproveGates

logger: logging.Logger = logging.getLogger("aeon")


def work(job: Job) -> dict[str, Any]:
    """Run or continue one workflow and return its summary; errors become part of it."""
    return run_job(job, _performed)


def _performed(job: Job) -> RunResult:
    path, config = job.journal, job.config

    def say(line: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(f"workflow {path.stem}: {line}\n")

    orchestrator = Orchestrator(
        config.project_root or find_project_root(),
        gate_policy=AutoApproveGates() if job.task.workflow == AUTO_APPROVE else None,
        model=config.models[0] if config.models else None,
        base_url=config.base_url,
        log=Log(logger.info),
        trust="apply" if job.trusts_project else "require",
        runs_dir=path.parent,
        shares_rate=True,
    )
    if config.wait:
        orchestrator.wait_for_decisions(config.wait, say)
    with stopped_by(job.stop, orchestrator.abort):
        if has_begun(path):
            orchestrator.resume(path)
        else:
            orchestrator.run(job.task.task, run_id=path.stem)
    if orchestrator.journal is None:
        raise JournalError(f"the journal {str(path)!r} could not be written; see the workflow's transcript")
    return RunResult.model_validate(last_state(tail(path))["result"])
