"""The quality of repairs, measured with models that are perfect, or that put other values in."""

from __future__ import annotations

import copy
import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aeon_core import PlanStep, Supervisor
from aeon_core.errors import AeonError
from aeon_core.llm.base import LLMRequest, LLMResponse
from aeon_core.plan.parsing import dump_plan, parse_plan
from tests.aeon_core.supervisor.broken import Plan, broken_calls, broken_plans
from tests.aeon_core.supervisor.malformed import malformed_calls, malformed_plans
from tests.aeon_core.validation.labelled.tools import registry
from tests.fakes import ScriptedModel, call

TOOLS = registry()
ASKED = LLMRequest(purpose="tool_call", system="", messages=[{"role": "user", "content": "x"}])


@dataclass
class Score:
    """Shares of cases, and the cases that went wrong."""

    count: int = 0
    good: int = 0
    requests: int = 0
    wrong: list[Any] = field(default_factory=list)

    @property
    def correct(self) -> float:
        return self.good / self.count

    @property
    def calls(self) -> float:
        return self.requests / self.count

    def add(self, good: bool, requests: int, case: Any) -> None:
        self.count, self.good, self.requests = self.count + 1, self.good + good, self.requests + requests
        if not good:
            self.wrong.append(case)


def score_plans(count: int, seed: int) -> Score:
    """Repair broken plans with a model that answers with the plan as it was."""
    score = Score()
    for broken in broken_plans(count, seed):
        model = ScriptedModel(repair=broken.intact, plan=broken.intact)
        try:
            plan = dump_plan(Supervisor(model, registry=TOOLS).read_plan(LLMResponse(text=broken.text), task="a task"))
        except AeonError as error:
            score.add(False, len(model.requests), (broken.kind, error.message, broken.text))
        else:
            meant = dump_plan(parse_plan(broken.intact))
            same = plan == meant or (broken.kind == "inner quotes" and _unquoted(plan) == _unquoted(meant))
            score.add(same, len(model.requests), (broken.kind, plan, broken.text))
    return score


def _unquoted(plan: Any) -> str:
    return json.dumps(plan, ensure_ascii=False).replace('\\"', "")


def score_calls() -> dict[str, Score]:
    """Repair broken calls with a model that answers with the call as it was."""
    scores: dict[str, Score] = defaultdict(Score)
    for broken in broken_calls():
        if TOOLS.input_schema(broken.tool).errors(broken.intact):
            continue
        model = ScriptedModel(
            repair={"tool_name": broken.tool, "arguments": broken.intact}, tool_call=call(broken.tool, **broken.intact)
        )
        step = PlanStep(step_id="s1", description="do it", tool=broken.tool)
        reply = LLMResponse(text="", tool_calls=[{"name": broken.tool, "arguments": broken.given}])
        try:
            made: Any = Supervisor(model, registry=TOOLS).read_tool_call(reply, step, request=ASKED)
        except AeonError as error:
            made = error.message
        scores[broken.kind].add(made == broken.intact, len(model.requests), (broken.given, made))
    return dict(scores)


def score_inventions(count: int, seed: int = 7) -> tuple[int, list[Any]]:
    """Repair broken plans with a model that changes one value; return how many, and those that it got away with."""
    chance, tried, found = random.Random(seed), 0, []
    for broken in broken_plans(count, seed):
        # What a reply that was cut off did not say yet, or a step that is not there, nobody can compare.
        if broken.kind.startswith(("cut", "step null", "step empty", "steps as sentences")):
            continue
        was, repair = _other(broken.intact, chance)
        model = ScriptedModel(repair=repair)
        try:
            plan = dump_plan(Supervisor(model, registry=TOOLS).read_plan(LLMResponse(text=broken.text), request=ASKED))
        except AssertionError:
            continue  # It was asked for the plan again, not for a repair.
        except AeonError:
            tried += 1
            continue
        if model.requests:
            tried += 1
            there = was in broken.text or json.dumps(was)[1:-1] in broken.text
            if plan != dump_plan(parse_plan(broken.intact)) and there:
                found.append((broken.kind, broken.text, repair))
    return tried, found


def _other(intact: Plan, chance: random.Random) -> tuple[str, Plan]:
    """Return a text of the plan, and the plan with another in its place."""
    plan = copy.deepcopy(intact)
    steps, step = plan["steps"], chance.choice(plan["steps"])
    key = "id" if "id" in step else "step_id"
    texts = [name for name, value in (step.get("arguments") or {}).items() if isinstance(value, str) and value]
    changes: dict[str, tuple[str, Callable[[], Any]]] = {
        "goal": (plan["goal"], lambda: plan.update(goal="Delete all backups")),
        "description": (step["description"], lambda: step.update(description="Delete all files in /var")),
        "shorter": (step["description"], lambda: step.update(description=step["description"].partition(" ")[2] or "x")),
        "id": (step[key], lambda: step.update({key: "zz9"})),
        "added": (step["description"], lambda: steps.insert(0, {key: "n", "description": "Go", "tool": "delete_file"})),
    }
    if texts:
        changes["argument"] = (step["arguments"][texts[0]], lambda: step["arguments"].update({texts[0]: "/etc/passwd"}))
    if "tool" in step:
        other = "Bash" if step["tool"] != "Bash" else "restart_service"
        changes["tool"] = (step["tool"], lambda: step.update(tool=other, arguments=None))
    if len(steps) > 1:
        changes["dropped"] = (step["description"], lambda: steps.remove(step))
        changes["moved"] = (step["description"], lambda: steps.insert(0, steps.pop()))
    was, change = changes[chance.choice(list(changes))]
    change()
    return was, plan


def report() -> None:
    """Print how good repairs are."""
    malformed = [*malformed_plans(), *malformed_calls()]
    print(f"malformed replies with one possible value: {len(malformed)}, in tests/aeon_core/supervisor/test_reading.py")
    plans = score_plans(504, 15)
    print(f"broken plans: {plans.correct:.1%} of {plans.count} as they were meant, {plans.calls:.2f} calls each")
    for kind, score in score_calls().items():
        print(f"calls, {kind}: {score.correct:.1%} of {score.count}, {score.calls:.2f} calls each")
    tried, invented = score_inventions(3000)
    print(f"repairs with another value in place of one that was there: {tried} tried, {len(invented)} taken")
