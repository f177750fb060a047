"""The history of what a run's view keeps only the latest of: plans, step statuses, TTL, cost, passes, approvals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon_core.journal.values import dict_of, id_of, int_of, number_of, str_of


@dataclass
class ApprovalChange:
    """One question to a person, and the decision; `decided` is the decision's record, None while it is open."""

    seq: int
    pass_number: int
    point: str
    step_id: str | None
    subject: dict[str, Any]
    asked: str
    decided: dict[str, Any] | None = None


@dataclass
class PassSpan:
    """The first and the last record of a pass, and the record each of its phases begins with."""

    number: int
    first: int
    last: int
    phases: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class RunChanges:
    """Each list is in the order of the journal; every entry begins with, or has, the seq of its record."""

    plans: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    statuses: list[tuple[int, str, str]] = field(default_factory=list)
    """seq, step_id, status."""
    totals: list[tuple[int, int, int, float | None]] = field(default_factory=list)
    """seq, cycles left, cycles allocated, cost in USD."""
    passes: dict[int, PassSpan] = field(default_factory=dict)
    approvals: list[ApprovalChange] = field(default_factory=list)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Fold one record in, read leniently."""
        kind, seq = record.get("type"), int_of(record.get("seq"))
        number = int_of(record.get("pass"))
        if number > 0 and kind not in ("profile", "label"):
            self.passes.setdefault(number, PassSpan(number, seq, seq)).last = seq
        if kind == "run_started":
            plan = dict_of((dict_of(record.get("start")) or {}).get("plan"))
            self.plans += [(seq, plan)] if plan is not None else []
        elif kind == "plan":
            self.plans.append((seq, dict_of(record.get("plan")) or {}))
        elif kind == "step":
            self.statuses.append((seq, str_of(record.get("step_id")), str_of(record.get("status"))))
        elif kind == "ttl":
            cost = number_of(record.get("cost_usd"))
            self.totals.append((seq, int_of(record.get("remaining")), int_of(record.get("allocated")), cost))
        elif kind == "phase" and record.get("state") == "started" and number in self.passes:
            self.passes[number].phases.append((seq, str_of(record.get("phase"))))
        elif kind == "approval":
            self._approval(record, seq, number)

    def _approval(self, record: Mapping[str, Any], seq: int, number: int) -> None:
        if record.get("state") != "decided" or not self.approvals or self.approvals[-1].decided is not None:
            subject, stamp = dict_of(record.get("subject")) or {}, str_of(record.get("ts"))
            point, step_id = str_of(record.get("point")), id_of(record.get("step_id"))
            self.approvals.append(ApprovalChange(seq, number, point, step_id, subject, stamp))
        if record.get("state") == "decided":
            self.approvals[-1].decided = dict(record)

    def plan_at(self, seq: int) -> dict[str, Any]:
        """Return the plan after the record `seq`, with the statuses that steps had got; {} before there is one."""
        found = [(at, plan) for at, plan in self.plans if at <= seq]
        if not found:
            return {}
        at, plan = found[-1]
        statuses = {step_id: status for when, step_id, status in self.statuses if at < when <= seq}
        return with_statuses(plan, statuses)


def with_statuses(plan: dict[str, Any], statuses: Mapping[str, str]) -> dict[str, Any]:
    """Return a copy of a plan with other statuses of steps, by step_id."""

    def changed(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        subplan = dict_of(node.get("subplan"))
        copied = {**node, "status": statuses.get(str_of(node.get("step_id")), node.get("status"))}
        if subplan is not None and isinstance(subplan.get("substeps"), list):
            copied["subplan"] = {**subplan, "substeps": [changed(each) for each in subplan["substeps"]]}
        return copied

    steps = plan.get("steps")
    return {**plan, "steps": [changed(each) for each in steps]} if isinstance(steps, list) else plan
