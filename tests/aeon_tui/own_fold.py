"""What a journal says, folded independently: from the contract's records, without any of the product's code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SEVERITIES = ["high", "medium", "low"]


def records_of(path: Path) -> list[Record]:
    """Return the records that count: long texts in their places, what a resume took back left out."""
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    texts = {line["sha256"]: line["text"] for line in lines if line["type"] == "text"}
    back = [range(line["continues_at"], line["seq"]) for line in lines if line["type"] == "run_resumed"]
    return [_whole(line, texts) for line in lines if not any(line["seq"] in each for each in back)]


def _whole(value: Any, texts: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_whole(each, texts) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$text"}:
        return texts[value["$text"]]
    if value.keys() == {"$text", "literal"} and value["$text"] is None:
        return {key: _whole(each, texts) for key, each in value["literal"].items()}
    return {key: _whole(each, texts) for key, each in value.items()}


@dataclass
class Step:
    """A step of the plan, and what became of it."""

    status: str = "pending"
    description: str = ""
    replaces: str | None = None
    output: dict[str, Any] | None = None
    errors: list[str] = field(default_factory=list)
    repaired: bool = False
    repairs: int = 0
    prompts: list[str] = field(default_factory=list)
    arguments: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Pass:
    """The phases of a pass with whether they have ended, and its last assessment."""

    phases: list[tuple[str, bool]] = field(default_factory=list)
    assessment: Record | None = None


class OwnFold:
    """A run so far."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.started: Record = {}
        self.model = ""
        self.steps: dict[str, Step] = {}
        self.passes: dict[int, Pass] = {}
        self.issues: list[Record] = []
        self.repairs: list[Record] = []
        self.refinements: list[Record] = []
        self.ttl: Record = {}
        self.calls = 0
        self.loose: set[tuple[str, int]] = set()
        self.result: Record | None = None
        self._answered: set[str] = set()
        for record in records:
            self.apply(record)

    def apply(self, record: Record) -> None:
        handler = getattr(self, f"_{record['type']}", None)
        if handler is not None:
            handler(record)

    @property
    def done(self) -> tuple[int, int]:
        """Steps that are complete, of those that are wanted."""
        wanted = [step for step in self.steps.values() if step.status != "invalid"]
        return sum(step.status == "complete" for step in wanted), len(wanted)

    def refined(self, step_id: str) -> int:
        """How often the fragment that is this step now was refined; 0 for a replaced one."""
        if any(step.replaces == step_id for step in self.steps.values()):
            return 0
        targets = [each["action"]["target"] for each in self.refinements if each["accepted"]]
        return sum(self._origin(target) == self._origin(step_id) for target in targets)

    def _origin(self, step_id: str) -> str:
        step = self.steps.get(step_id)
        return self._origin(step.replaces) if step is not None and step.replaces else step_id

    def open_issues(self, step_id: str) -> list[Record]:
        """The last report's issues of a step, the worst first; none where it was refined since."""
        there = [each for each in self.issues if each["location"].get("step_id") == step_id]
        return [] if step_id in self._answered else there

    def _run_started(self, record: Record) -> None:
        self.started, self.model = record, record["model"]
        begun = record.get("start") or {}
        if plan := begun.get("plan"):
            self._plan({"plan": plan, "cause": "given"})
            for each in begun["results"]["steps"]:
                step = self.steps[each["step_id"]]
                step.output, step.errors = each.get("output"), each.get("errors") or []
        if begun.get("ttl"):
            self.ttl = {**begun["ttl"], "usage": {}, "cost_usd": None}
        if begun.get("assessment"):
            self.passes[begun["pass_number"]] = Pass([], begun["assessment"])

    def _run_resumed(self, record: Record) -> None:
        self.result = None
        if record.get("models"):
            self.model = record["models"][0]["model"]

    def _phase(self, record: Record) -> None:
        phases = self.passes.setdefault(record["pass"], Pass()).phases
        if record["state"] == "started":
            phases.append((record["phase"], False))
        else:
            phases[-1] = (record["phase"], True)

    def _plan(self, record: Record) -> None:
        before, self.steps = self.steps, {}
        for node in _nodes(record["plan"]["steps"]):
            step = self.steps[node["step_id"]] = before.get(node["step_id"], Step())
            step.description, step.replaces = node["description"], node.get("replaces")
            step.status = node.get("status", "pending")
            if record["cause"] == "repaired" and record.get("step_id") == node["step_id"]:
                step.repaired = not node.get("errors")

    def _step(self, record: Record) -> None:
        step = self.steps[record["step_id"]]
        step.status = record["status"]
        step.output = record.get("output", step.output)
        step.errors = record.get("errors", step.errors)

    def _llm(self, record: Record) -> None:
        if record["state"] != "started":
            return
        self.calls += 1
        step_id = record.get("step_id")
        if step_id in self.steps:
            self.steps[step_id].prompts.append(record["request"]["messages"][-1]["content"])
        elif step_id is None and record["purpose"] != "repair":
            self.loose.add((record["purpose"], record["pass"]))

    def _tool(self, record: Record) -> None:
        if record["state"] == "started":
            self.steps[record["step_id"]].arguments.append(record["arguments"])

    def _supervisor(self, record: Record) -> None:
        self.repairs.append(record)
        if record.get("step_id") in self.steps:
            self.steps[record["step_id"]].repairs += 1

    def _ttl(self, record: Record) -> None:
        self.ttl = record

    def _validation(self, record: Record) -> None:
        self.issues = sorted(record["issues"], key=lambda issue: SEVERITIES.index(issue["severity"]))
        self._answered = set()

    def _refinement(self, record: Record) -> None:
        self.refinements.append(record)
        if record["accepted"]:
            replaced = record.get("replaced") or {}
            steps = [*(record.get("before") or []), *(record.get("after") or [])]
            self._answered |= {record["action"]["target"], *replaced, *replaced.values()}
            self._answered |= {step["step_id"] for step in steps}

    def _convergence(self, record: Record) -> None:
        self.passes.setdefault(record["pass"], Pass()).assessment = record

    def _notice(self, record: Record) -> None:
        if record["kind"] == "model_fallback":
            self.model = record["data"]["model"]

    def _run_finished(self, record: Record) -> None:
        self.result = record["result"]


def _nodes(steps: Iterable[Record]) -> Iterator[Record]:
    for step in steps:
        yield step
        yield from _nodes((step.get("subplan") or {}).get("substeps") or [])
