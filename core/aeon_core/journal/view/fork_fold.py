"""Folding where a fork starts: what its parent had come to by then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aeon_core.journal.values import dict_of, dicts_of, id_of, int_of, str_of, strs_of
from aeon_core.journal.view.adaptive_fold import assessment_of, profile_of
from aeon_core.journal.view.parts import StepView
from aeon_core.journal.view.plan_nodes import describe, nodes

if TYPE_CHECKING:
    from aeon_core.journal.view.model import RunView

Record = Mapping[str, Any]


def start(view: RunView, record: Record) -> None:
    """Fold in the parent that a `run_started` record names, and the state that the fork begins with."""
    parent = dict_of(record.get("parent"))
    if parent is None:
        return
    view.parent, view.parent_pass = str_of(parent.get("run_id")), int_of(parent.get("pass"))
    view.add_line("info", "fork", f"a fork of {view.parent}, from pass {view.parent_pass} on")
    if (begun := dict_of(record.get("start"))) is not None:
        _steps(view, begun)
        _standing(view, begun)


def _steps(view: RunView, begun: Record) -> None:
    plan = dict_of(begun.get("plan")) or {}
    view.goal = str_of(plan.get("goal"))
    for node, depth, parent in nodes(plan):
        step = view.steps[node["step_id"]] = StepView(step_id=node["step_id"], description="")
        describe(step, node, depth, parent)
    for result in dicts_of((dict_of(begun.get("results")) or {}).get("steps")):
        known = view.steps.get(id_of(result.get("step_id")) or "")
        if known is not None:
            known.output, known.errors = dict_of(result.get("output")), strs_of(result.get("errors"))


def _standing(view: RunView, begun: Record) -> None:
    number = view.passes = int_of(begun.get("pass_number"))
    view.cycles = int_of(begun.get("cycles"))
    ttl = dict_of(begun.get("ttl")) or {}
    view.ttl_limit, view.ttl_allocated = int_of(ttl.get("limit")), int_of(ttl.get("allocated"))
    view.ttl_spent, view.ttl_remaining = int_of(ttl.get("spent")), int_of(ttl.get("remaining"))
    if (profile := dict_of(begun.get("task_profile"))) is not None:
        depth = dict_of(begun.get("adaptive_depth")) or {}
        told = {**profile, "adaptive_depth": depth, "adjustment_reason": depth.get("adjustment_reason")}
        told["requirements"] = begun.get("requirements")
        view.profiles.append(profile_of(told, pass_number=number, seq=view.last_seq))
    if (assessment := dict_of(begun.get("assessment"))) is not None:
        view.assessments.append(assessment_of(assessment, pass_number=number, seq=view.last_seq))
