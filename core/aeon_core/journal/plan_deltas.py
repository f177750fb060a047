"""Whole plans for the cycles that hold only what changed: `{"since": seq, "steps": {step_id: {field: value}}}`."""

from __future__ import annotations

import copy
from typing import Any


class PlanStates:
    """The plan as the last cycle held it, brought forward by each further cycle."""

    def __init__(self) -> None:
        self._seq: int | None = None
        self._plan: dict[str, Any] = {}
        self._nodes: dict[str, dict[str, Any]] = {}

    def resolve(self, record: dict[str, Any]) -> str | None:
        """Put the whole plan into a `cycle` record's `plan_state`.

        Returns None, or one line that says why it had to stay as it is.
        """
        state = record.get("plan_state")
        if not isinstance(state, dict):
            return "its plan_state is no object"
        if "since" not in state:
            self._take(state)
        elif self._seq is None or state["since"] != self._seq:
            return "its plan_state builds on a cycle that cannot be read"
        else:
            self._change(state.get("steps"))
            record["plan_state"] = copy.deepcopy(self._plan)
        self._seq = record["seq"]
        return None

    def _take(self, plan: dict[str, Any]) -> None:
        self._plan = copy.deepcopy(plan)
        self._nodes = {}
        stack = [self._plan]
        while stack:
            node = stack.pop()
            if isinstance(step_id := node.get("step_id"), str):
                self._nodes[step_id] = node
            subplan = node.get("subplan")
            below = node.get("steps"), subplan.get("substeps") if isinstance(subplan, dict) else None
            stack.extend(step for steps in below if isinstance(steps, list) for step in steps if isinstance(step, dict))

    def _change(self, steps: Any) -> None:
        for step_id, fields in (steps if isinstance(steps, dict) else {}).items():
            node = self._nodes.get(step_id)
            if node is None or not isinstance(fields, dict):
                continue
            for name, value in fields.items():
                if value is None or (name == "errors" and not value):
                    node.pop(name, None)
                else:
                    node[name] = value
