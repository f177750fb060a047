"""What a report on a run says, whatever form it is given: facts, repairs, warnings, answer (contract: show)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aeon_core.journal.history import ExecutionHistory
from aeon_core.journal.listing import Lineage, at_pass
from aeon_core.journal.values import brief
from aeon_core.journal.view.formatting import change, message, words
from aeon_core.journal.view.model import LogLine, RepairView, RunView, StepView
from aeon_core.money import money
from aeon_core.timing import seconds_after
from aeon_tui.reports.pass_sections import (
    Note,
    Section,
    across_passes,
    pass_notes,
    pass_sections,
    person_sections,
    score_trend,
)
from aeon_tui.reports.run_changes import RunChanges
from aeon_widgets.icons import shown_status


def answer_title(simulated: bool) -> str:
    """Return the heading of an answer."""
    return f"Answer{' (simulated model)' if simulated else ''}"


def status_of(step: StepView, view: RunView) -> str:
    """Return the status to show of a step: nothing is running in a run that is not."""
    return shown_status(step.status, live=view.status == "running")


def notes(step: StepView, view: RunView) -> list[tuple[str, str]]:
    """Return level and text of what is to be said about a step: what was wrong, repaired, replaced, or failed."""
    found = [("warning", f"warning: {brief(text)}") for text in step.validator_errors]
    found += [("warning", repair_text(repair)) for repair in step.repairs]
    if step.mode == "fallback":
        found.append(("warning", "fallback: no tool found, so the model reasoned from the description"))
    if step.replaces is not None:
        found.append(("info", f"replaces {step.replaces}"))
    call = step.tool_calls[-1] if step.tool_calls else None
    lost = call is not None and not call.finished and view.status != "running"
    if call is not None and lost and call.effect not in ("pure", "idempotent"):
        found.append(("warning", f"unknown: {call.tool_name} was called, but the journal has no outcome"))
    return found + [("error", f"error: {text}") for text in step.errors]


def repair_text(repair: RepairView) -> str:
    """Return one line about a repair attempt."""
    how = f"{repair.action_type.replace('_', ' ')}, {repair.method}, attempt {repair.attempt_number} of 2"
    if repair.error is not None:
        return f"not repaired ({how}): {message(repair.error)}"
    return f"repaired ({how}): {change(repair)}"


def readable(output: dict[str, Any]) -> str:
    """Return a step's output: a model's text as it is, all else as JSON."""
    if len(output) == 1 and isinstance(output.get("text"), str):
        return str(output["text"])
    return json.dumps(output, ensure_ascii=False)


FORKS_SHOWN = 20
ITS_END = "only the end of a long journal; to read all of it, use --pass N, --export or --json"
_TOLD_ELSEWHERE = frozenset(
    {"supervisor", "run_finished", "validation", "refinement", "advisory", "questions", "manual_intervention"}
)
"""Types of records that a report tells in other places than among the warnings."""


class RunReport:
    """The view and the history of a run, or of one pass of it, put into words. A web page shows its changes, too."""

    def __init__(
        self,
        view: RunView,
        history: ExecutionHistory,
        pass_number: int | None,
        family: Lineage,
        changes: RunChanges | None = None,
    ) -> None:
        self.view = view
        self.changes = changes if changes is not None else RunChanges()
        self._history = history
        self._pass_number = pass_number
        self._family = family

    @property
    def one_pass(self) -> bool:
        """Whether the report is on one pass alone."""
        return self._pass_number is not None

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Labels and values of the header; several values have a line each, under the same label."""
        view, statistics = self.view, self._history.overall_statistics
        passes = f"{statistics.total_passes}, " if self._pass_number is None else f"pass {self._pass_number}, "
        trend = score_trend(view.assessments)
        cost = "" if view.cost_usd is None else f", {money(view.cost_usd)}"
        return [
            ("run", view.run_id),
            ("task", brief(view.task, 1_000)),
            *self._parent(),
            ("status", words(view.status)),
            ("model", f"{view.model}{' (simulated)' if view.simulated else ''}"),
            (
                "started",
                f"{view.started[:19].replace('T', ' ')} UTC, {seconds_after(view.started, view.last_ts):.1f} s",
            ),
            ("passes", f"{passes}{view.cycles} cycles{'' if view.whole_from else f', {len(view.repairs)} repairs'}"),
            *([("scores", trend)] if trend else []),
            *self._labels(),
            ("ttl", f"{view.ttl_remaining} of {view.ttl_allocated} cycles left"),
            ("tokens", f"{view.usage.get('input_tokens', 0)} in, {view.usage.get('output_tokens', 0)} out{cost}"),
            *self._forks(),
            *([("read", ITS_END)] if view.whole_from else []),
        ]

    def _labels(self) -> Iterator[tuple[str, str]]:
        """Yield the verdict of a person on each pass that has one: the last one counts."""
        for number, each in {each.pass_number: each for each in self.view.labels}.items():
            yield "label", f"pass {number} {brief(each.verdict, 10)}{f': {brief(each.why, 1_000)}' if each.why else ''}"

    def _parent(self) -> Iterator[tuple[str, str]]:
        family = self._family
        if family.parent is not None:
            gone = "" if family.parent_is_there else " (its journal is gone)"
            yield "parent", f"forked from {brief(family.parent)}{at_pass(family.forked_at)}{gone}"

    def _forks(self) -> Iterator[tuple[str, str]]:
        forks = self._family.forks
        for fork in forks[:FORKS_SHOWN]:
            yield "forks", f"{fork.run_id}{at_pass(fork.forked_at)}, {words(fork.status)}"
        if len(forks) > FORKS_SHOWN:
            yield "forks", f"… and {len(forks) - FORKS_SHOWN} more; see `aeon-tui runs`"

    @property
    def plan_repairs(self) -> list[str]:
        """The repairs that belong to no step: those of the plan itself."""
        return [repair_text(repair) for repair in self.view.repairs if repair.step_id is None]

    @property
    def repairs(self) -> list[str]:
        """Every repair attempt, with its step."""
        return [f"{repair.step_id or 'the plan'}: {repair_text(repair)}" for repair in self.view.repairs]

    @property
    def warnings(self) -> list[LogLine]:
        """What went wrong or was done in another way than planned, and is no repair attempt."""
        return [line for line in self.view.log if line.level != "info" and line.type not in _TOLD_ELSEWHERE]

    @property
    def passes(self) -> list[Section]:
        """What became of each pass, and what shows only across them; empty where nothing was evaluated."""
        return pass_sections(self.view, self._history, self._pass_number)

    @property
    def pass_notes(self) -> dict[int, list[Note]]:
        """The outcome of each pass by its number, even where nothing was evaluated."""
        return pass_notes(self.view, self._history, self._pass_number)

    @property
    def across_passes(self) -> list[Note]:
        """What shows only across passes."""
        return across_passes(self._history) if self._pass_number is None else []

    @property
    def for_a_person(self) -> list[Section]:
        """What the run leaves to the user in addition to its answer."""
        return person_sections(self.view)

    @property
    def answer(self) -> str | None:
        """The answer of the run; of one pass, what its record holds."""
        if self.view.result is not None:
            return self.view.result.answer
        given = self._history.passes[-1].execution_results.get("answer") if self._history.passes else None
        return given if self._pass_number is not None and isinstance(given, str) else None

    @property
    def error(self) -> dict[str, Any] | None:
        """Why the run has no result to use."""
        return self.view.result.error if self.view.result is not None else None
