"""The labelled outcomes that ship, as runs to be assessed, and judges that are scripted by their labels."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from aeon_core.convergence import ConvergenceAssessment, ConvergenceEngine
from aeon_core.judge.judgement import FLAGS
from aeon_core.llm.base import LLMRequest
from aeon_core.plan.models import Plan
from tests.fakes import ScriptedModel, lines_of, section

LABELLED = files("aeon_core") / "judge" / "labelled"


@dataclass(frozen=True)
class Outcome:
    """A run, and whether a person would accept what came of it."""

    name: str
    language: str
    good: bool
    flags: frozenset[str]
    """The consistency flags that a bad one must not have."""
    run: dict[str, Any]
    """What `assess` takes."""

    @property
    def ran(self) -> bool:
        """Whether every step ran to its end."""
        return not self.run["failures"] and all(step.status == "complete" for step in self.run["plan"].walk())

    def judged(self, verdict: Callable[[LLMRequest, Outcome], dict[str, Any]]) -> ConvergenceAssessment:
        """Return the engine's assessment with a judge that replies with this verdict."""
        return ConvergenceEngine(judge=ScriptedModel(judge=lambda request: verdict(request, self))).assess(**self.run)


@cache
def outcomes() -> list[Outcome]:
    """Return every labelled outcome, in the order of the files."""
    paths = sorted((LABELLED / "outcomes").iterdir(), key=lambda path: path.name)
    return [_outcome(json.loads(line)) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


@cache
def plans() -> list[dict[str, Any]]:
    """Return every labelled plan."""
    return [json.loads(line) for line in (LABELLED / "plans.jsonl").read_text(encoding="utf-8").splitlines()]


def _outcome(line: dict[str, Any]) -> Outcome:
    run = {key: line[key] for key in ("goal", "requirements", "results", "failures", "answer", "memory")}
    run["plan"] = Plan.model_validate(line["plan"])
    return Outcome(line["id"], line["language"], line["label"] == "good", frozenset(line["flags"]), run)


def accepts(request: LLMRequest, outcome: Outcome) -> dict[str, Any]:
    """The judge that finds nothing wrong."""
    return _verdict(request, outcome)


def rejects(request: LLMRequest, outcome: Outcome) -> dict[str, Any]:
    """The judge that finds no requirement met."""
    return _verdict(request, outcome, met="no")


def perfect(request: LLMRequest, outcome: Outcome) -> dict[str, Any]:
    """The judge that says what the label says."""
    return accepts(request, outcome) if outcome.good else rejects(request, outcome)


def literal(request: LLMRequest, outcome: Outcome) -> dict[str, Any]:
    """The judge that finds contradictions between artifacts and nothing else."""
    return _verdict(request, outcome, broken=outcome.flags)


def _verdict(
    request: LLMRequest, outcome: Outcome, met: str = "yes", broken: frozenset[str] = frozenset()
) -> dict[str, Any]:
    quote = outcome.run["answer"][:60]
    count, suspicions = (len(lines_of(section(request, name))) for name in ("requirements", "suspicions"))
    return {
        "requirements": [{"n": n, "evidence": quote, "met": met} for n in range(1, count + 1)],
        "coherent": {"evidence": quote, "ok": True},
        "consistent": {flag: {"evidence": quote, "ok": flag not in broken} for flag in FLAGS},
        "suspicions": [{"n": n, "evidence": quote, "stands": False} for n in range(1, suspicions + 1)],
        "issues": [],
    }
