"""One pass of a run: the view as it was when that pass ended, with only what belongs to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aeon_core.journal.view.model import RunView


class PassFold:
    """Folds the records of a run up to the end of one pass; `found` holds the numbers of all passes there are."""

    def __init__(self, number: int) -> None:
        self.found: set[int] = set()
        self._number = number
        self._view = RunView()
        self._first_seq: int | None = None
        self._started = ""
        self._cycles_before = 0
        self._touched: set[Any] = set()
        self._ended = False

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one record in, as far as it is not of a later pass."""
        number = _pass_of(record)
        if number is not None:
            self.found.add(number)
            self._ended = self._ended or number > self._number
        if self._ended:
            return
        self._view.apply(record)
        if number == self._number:
            if self._first_seq is None:
                self._first_seq, self._started = self._view.last_seq, self._view.last_ts
                self._cycles_before = self._view.cycles
            if record.get("type") == "step":
                self._touched.add(record.get("step_id"))
            self._ended = record.get("type") == "pass"

    def view(self, whole: RunView) -> RunView:
        """Return the pass's view. Status is the whole run's; its result belongs to the last pass.

        Steps are those that ran in it and those still pending; `usage` and `cost_usd` are its own calls'.
        """
        view = self._view
        view.status = whole.status
        if self._number == max(self.found, default=0):
            view.result = whole.result
            view.follow_up_questions, view.manual_interventions = whole.follow_up_questions, whole.manual_interventions
        view.started = self._started or view.started
        view.cycles -= self._cycles_before
        view.log = [line for line in view.log if self._first_seq is not None and line.seq >= self._first_seq]
        view.log_count = len(view.log)
        view.repairs = [repair for repair in view.repairs if repair.pass_number == self._number]
        view.calls = {
            key: [call for call in calls if call.pass_number == self._number] for key, calls in view.calls.items()
        }
        calls = [call for attempts in view.calls.values() for call in attempts]
        view.usage = {
            name: sum((call.usage or {}).get(name, 0) for call in calls) for name in ("input_tokens", "output_tokens")
        }
        costs = [call.cost_usd for call in calls if call.cost_usd is not None]
        view.cost_usd = sum(costs) if costs else None
        view.steps = {
            step_id: step
            for step_id, step in view.steps.items()
            if step_id in self._touched or step.status == "pending"
        }
        for step in view.steps.values():
            step.repairs = [repair for repair in step.repairs if repair.pass_number == self._number]
        view.labels = [each for each in whole.labels if each.pass_number == self._number]
        self._keep_own_findings()
        return view

    def _keep_own_findings(self) -> None:
        """Leave the reports, assessments and refinements of the pass, and the profile that it went by."""
        view, number = self._view, self._number
        view.reports = [each for each in view.reports if each.pass_number == number]
        view.assessments = [each for each in view.assessments if each.pass_number == number]
        view.refinements = [each for each in view.refinements if each.pass_number == number]
        view.advisories = [each for each in view.advisories if each.pass_number == number]
        known = [each for each in view.profiles if each.pass_number <= number]
        view.profiles = [each for each in known if each.pass_number == number] or known[-1:]


def _pass_of(record: Mapping[str, Any]) -> int | None:
    """Return the pass in which a record was written, None where it does not say.

    A profile may be written before the pass that it is for has begun.
    """
    kind = record.get("type")
    number = record.get("pass_number") if kind == "pass" else record.get("pass") if kind != "profile" else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number > 0 else None
