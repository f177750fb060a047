"""Resumes: a run continues where its journal ends; nothing is done twice (Decision 2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from aeon_core.approvals import REVIEWED, Approver
from aeon_core.config.journal_trust import foreign_rules
from aeon_core.config.schema import RunConfig, recorded_config
from aeon_core.effects.model_calls import check_budget, model_infos
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.effects.secret_recovery import RunSecrets
from aeon_core.entities import RunResult
from aeon_core.errors import ReplayMismatchError, RunAborted, UsageError
from aeon_core.journal.reader import STATE_TYPES
from aeon_core.journal.records import RunResumed
from aeon_core.journal.recovery import reopen, sound_records
from aeon_core.journal.summary import last_state
from aeon_core.journal.writer import JournalWriter, LineListener, as_dicts, fan_out
from aeon_core.json_safe import clean_text
from aeon_core.kernel.progress import Checkpoint
from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.catalogue import price_date
from aeon_core.memory import Memory
from aeon_core.policy import PolicyRules
from aeon_core.redaction import SecretVault, environment_secrets
from aeon_core.runs.factory import as_model, as_registry, consented, is_model_name
from aeon_core.runs.orchestrator import Orchestrator, PreparedRun
from aeon_core.runs.replay import (
    ComparedLines,
    given_plan_of,
    journal_of,
    note_memory,
    recorded_criteria,
    recorded_start,
)
from aeon_core.runs.setup import RunStart, run_vault
from aeon_core.suggest import check_type
from aeon_core.tools.base import Tools
from aeon_core.tools.registry import ToolRegistry

OPTIONS = ("ttl", "budget", "approve", "model", "judge_model", "policy", "on_unknown", "durability")
"""The options that a resume may override, the last three only for that process. The model is the given adapter, whose
name is recorded for the next resume. The rules of `policy`, which ask or deny, are added to the run's.
"""


def finished_result(path: Path) -> RunResult | None:
    """Return the result of a run that has ended for good, with the journal's path, which may have been moved since;
    None if there is something to continue.

    Raises UsageError if the file is not a journal, or damaged.
    """
    last: dict[str, Any] = {}
    for record in sound_records(path):
        last = record if record["type"] in STATE_TYPES else last
    if last.get("type") != "run_finished" or last.get("resumes_at") is not None:
        return None
    result = {**last["result"], "journal": clean_text(str(path))}
    return RunResult.model_validate(SecretVault(environment_secrets()).reveal(result), extra="ignore")


class Resumption(PreparedRun):
    """A run that continues, with its journal open and locked. Call `run` once, `close` at the end, `abort` from any
    thread.

    Unless they are given, the model and the tools are those that the journal names. `checked` says that the caller has
    called `check_journal`, `trusts_project` that the user trusts all that it holds. Raises UsageError if it cannot be
    continued, there is no consent for what it names, another process writes it, or an option cannot be overridden.
    """

    def __init__(
        self,
        path: Path,
        llm: LLMAdapter | str | Sequence[str] | None = None,
        tools: Tools | None = None,
        memory: Memory | None = None,
        options: Mapping[str, Any] | None = None,
        approver: Approver | None = None,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        *,
        on_line: LineListener | None = None,
        on_delta: Callable[[str, str | None, str], None] | None = None,
        checked: bool = False,
        trusts_project: bool = False,
    ) -> None:
        options = checked_options(options)
        self._lines: list[dict[str, Any]] = []
        self._journal = reopen(path, fan_out([on_line, as_dicts(on_record)]), self._lines.append)
        try:
            started = self._lines[0]
            config = recorded_config(started)
            if not (checked or trusts_project):
                config = consented(started, config, llm, tools, rules=foreign_rules(self._lines, config.root))
            connects, loads = llm is None or is_model_name(llm), tools is None
            llm, _ = as_model(llm, config)
            rules = config.policy.joined(options.get("policy", PolicyRules()))
            tools = as_registry(tools, config.model_copy(update={"policy": rules}))
            self.made: list[LLMAdapter | ToolRegistry] = [*([llm] if connects else []), *([tools] if loads else [])]
            """The model and the tools, unless the caller passed them."""
            resumed = _resumed(self._lines, self._journal, llm, config, options)
            recorded = ComparedLines(line for line in self._lines if line["seq"] < resumed.continues_at)
            recorded.trusted = trusts_project
            orchestrator = Orchestrator(
                llm,
                tools,
                memory,
                config,
                approver,
                self._journal,
                on_record,
                recorded=recorded,
                on_delta=on_delta,
                criteria=recorded_criteria(started),
                resumed=resumed,
                start=_start_after_last_pass(recorded) or recorded_start(started),
                secrets=RunSecrets(run_vault(llm, tools, config), lambda: self._lines),
            )
            super().__init__(orchestrator, started["task"], given_plan_of(self._lines))
        except BaseException:
            self._journal.close()
            raise

    def run(self) -> RunResult:
        """Run to the end. Raises ReplayMismatchError, and writes nothing, if this version behaves differently."""
        try:
            return super().run()
        except ReplayMismatchError as error:
            why = "the run cannot be resumed: Aeon or its tools have changed since it was recorded"
            raise ReplayMismatchError(f"{why}; fork it instead ({error})") from error

    def close(self) -> None:
        """Release the journal if it was not run, and what the run holds open, as `Orchestrator.close` does."""
        self._journal.close()
        super().close()


def resume(
    run: Path | str,
    llm: LLMAdapter | str | Sequence[str] | None = None,
    tools: Tools | None = None,
    memory: Memory | None = None,
    options: Mapping[str, Any] | None = None,
    approver: Approver | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    *,
    on_line: LineListener | None = None,
    on_delta: Callable[[str, str | None, str], None] | None = None,
    trusts_project: bool = False,
) -> RunResult:
    """Continue a run that was interrupted, aborted, or ended by its TTL, its budget or a model that failed.

    `run` is a run id, a unique prefix of one, a path to a journal, or `last`. What the journal holds after its last
    pass is replayed without a model or a tool; then the run is live. The arguments are those of an Orchestrator; model
    and tools are by default those that the journal names. `options` are overrides: `ttl`, `budget`, `approve`, `model`,
    `judge_model`, `on_unknown`, `durability`, and a `policy` whose rules ask or deny, in addition to the run's. The
    outcome of an unsafe tool call that started but did not end is unknown: the tool's own `reconcile` finds out, or
    `on_unknown` decides. For a finished run, its result is returned again. Listeners get only new records. What
    somebody else allowed, such as a call still to be made, is used only with `trusts_project`. Raises AeonError before
    the run continues: UsageError if it cannot, ReplayMismatchError if this version behaves differently.
    """
    check_type(trusts_project, bool, "trusts_project")
    path, options = journal_of(run), checked_options(options)
    if (result := finished_result(path)) is not None:
        return result
    more: dict[str, Any] = {"on_line": on_line, "on_delta": on_delta, "trusts_project": trusts_project}
    resumed = Resumption(path, llm, tools, memory, options, approver, on_record, **more)
    try:
        return resumed.run()
    finally:
        for each in resumed.made:
            each.close()


def checked_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the overrides as a dict. Raises UsageError if one cannot be overridden or is not valid."""
    check_type(options or {}, Mapping, "options")
    given = dict(options or {})
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        raise UsageError(f"{unknown[0]!r} cannot change when a run is resumed; fork the run instead")
    checked = RunConfig(**given)
    if checked.policy.allow:
        raise UsageError("rules that allow calls cannot be added when a run is resumed; fork the run instead")
    return {name: getattr(checked, name) for name in given}


def current_rules(recorded: RunConfig, today: PolicyRules) -> dict[str, PolicyRules]:
    """Return the option `policy` of a resume: today's rules that ask or deny, and that the run lacks; {} for none."""
    rules = today.restrictions(recorded.policy)
    return {"policy": rules} if rules != PolicyRules() else {}


def _start_after_last_pass(recorded: ReplayCursor) -> RunStart | None:
    """Return the run's state after its last pass, and skip the lines up to there; None if no pass has ended."""
    if (last := recorded.last_pass) is None:
        return None
    checkpoint = Checkpoint.after_pass(last)
    memory = dict(recorded.first["memory"])
    for line in recorded.skip_to(last):
        if line["type"] == "memory":
            note_memory(memory, line)
    return RunStart(checkpoint, memory, last_pass=last)


def _resumed(
    lines: list[dict[str, Any]], journal: JournalWriter, llm: LLMAdapter, config: RunConfig, options: dict[str, Any]
) -> RunResumed:
    changed = RunConfig(**{**config.model_dump(exclude_none=True), **options})
    known = model_infos(llm, changed)
    check_budget(changed, known)
    models = [each.described() for each in known]
    before = [line.get("models") for line in lines if line["type"] in ("run_started", "run_resumed")]
    last_models = [[lines[0]], *filter(None, before)][-1]
    same = [each["model"] for each in models] == [each.get("model") for each in last_models]
    # An earlier attempt to resume may have ended after repairing the journal.
    last = last_state(reversed(lines))
    ended = last["resumes_at"] if last["type"] == "run_finished" else _unfinished_abort(lines)
    continues_at = ended if ended is not None else journal.seq
    return RunResumed(
        options={name: getattr(changed, name) for name in options},
        continues_at=continues_at,
        models=None if same else models,
        prices=None if same else price_date(),
        answers=_given_answers(lines, continues_at) or None,
    )


def _unfinished_abort(lines: list[dict[str, Any]]) -> int | None:
    """Return the seq at which an abort began to write its last records, if the process ended before all were written.

    Without that abort, the run writes others there.
    """
    states = [line for line in lines if line["type"] in STATE_TYPES]
    last = states[-1]
    if last["type"] != "cycle" or RunAborted.__name__ not in [error.get("error_type") for error in last["errors"]]:
        return None
    first = states[-2] if states[-2]["type"] == "ttl" else last
    return int(first["seq"])


def _given_answers(lines: list[dict[str, Any]], continues_at: int) -> dict[str, str]:
    """Return the answers to open questions that no decision has used: those that came with an abort."""
    given: dict[str, str] = {}
    for line in lines:
        if line["type"] == "run_resumed":
            given = dict(line.get("answers") or {})
        elif line["type"] == "approval" and line["state"] == "decided" and line["point"] in REVIEWED:
            revoked = line["decision"] == "abort" or line["seq"] >= continues_at
            given = {**given, **(line.get("answers") or {})} if revoked else {}
    return given
