"""Plans broken in the ways models break them, each with the plan it was: the oracle of a perfect repair model."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

LABELLED = files("aeon_core") / "judge" / "labelled" / "plans.jsonl"
OTHERS: list[dict[str, Any]] = [
    {"goal": "Préparer la réunion de mardi", "steps": [
        {"id": "ordre", "description": "Lire l'ordre du jour dans reunion/ordre.md", "tool": "read_file",
         "arguments": {"path": "reunion/ordre.md"}},
        {"id": "points", "description": "Relever les trois points les plus urgents", "agent": "llm",
         "depends_on": ["ordre"]},
        {"id": "envoi", "description": "Envoyer les points à « equipe@example.fr »", "tool": "send_email",
         "arguments": {"to": "equipe@example.fr", "subject": "Points", "body": "Voir pièce jointe"},
         "depends_on": ["points"]}]},
    {"goal": "サーバーの負荷を調べて報告する", "steps": [
        {"id": "1", "description": "負荷の統計を計算する", "tool": "statistics",
         "arguments": {"column": "load", "measure": "median"}},
        {"id": "2", "description": "結果を報告書にまとめる", "agent": "llm", "depends_on": ["1"]}]},
    {"goal": "Redimensionar las fotos y publicarlas", "steps": [
        {"id": "a1", "description": "Redimensionar fotos/playa.png a 800 por 600", "tool": "resize_image",
         "arguments": {"path": "fotos/playa.png", "width": 800, "height": 600}},
        {"id": "a2", "description": "Listar la carpeta fotos", "tool": "list_directory",
         "arguments": {"path": "fotos"}, "depends_on": ["a1"]},
        {"id": "a3", "description": "Explicar qué fotos quedan listas", "agent": "llm", "depends_on": ["a1", "a2"]}]},
    {"goal": "تلخيص التقرير السنوي", "steps": [
        {"id": "s1", "description": "قراءة الملف report.txt", "tool": "read_file", "arguments": {"path": "report.txt"}},
        {"id": "s2", "description": "كتابة ملخص من خمس جمل", "agent": "llm", "depends_on": ["s1"]}]},
]  # fmt: skip

Plan = dict[str, Any]
Change = Callable[[Plan, random.Random], Any]


@dataclass(frozen=True)
class Broken:
    """A reply, and the plan that was meant."""

    kind: str
    text: str
    intact: Plan


def clean_plans() -> list[Plan]:
    labelled = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    return [entry["plan"] for entry in labelled if not entry["labels"]] + OTHERS


def broken_plans(count: int, seed: int = 15) -> Iterator[Broken]:
    """Yield so many broken plans, each kind about as often as any other."""
    chance = random.Random(seed)
    plans, kinds = clean_plans(), [*STRUCTURE.items(), *((name, change) for name, change in TEXT.items())]
    made = 0
    while made < count:
        for kind, change in kinds:
            intact = chance.choice(plans)
            broken = change(copy.deepcopy(intact), chance)
            if broken is None or broken == intact:
                continue
            text = broken if isinstance(broken, str) else json.dumps(broken, ensure_ascii=chance.random() < 0.3)
            yield Broken(kind, text, intact)
            made += 1
            if made == count:
                return


def _id_key(step: dict[str, Any]) -> str:
    return "id" if "id" in step else "step_id"


def _any_step(change: Callable[[dict[str, Any], random.Random], Any]) -> Change:
    def changed(plan: Plan, chance: random.Random) -> Any:
        steps = list(range(len(plan["steps"])))
        chance.shuffle(steps)
        for place in steps:
            made = change(plan["steps"][place], chance)
            if made is not None:
                plan["steps"][place] = made
                return plan
        return None

    return changed


def _every_step(change: Callable[[dict[str, Any], random.Random], Any]) -> Change:
    def changed(plan: Plan, chance: random.Random) -> Any:
        made = [change(step, chance) for step in plan["steps"]]
        if not any(made):
            return None
        plan["steps"] = [new or step for new, step in zip(made, plan["steps"], strict=True)]
        return plan

    return changed


def _renamed(old: str, *names: str) -> Callable[[dict[str, Any], random.Random], Any]:
    def change(step: dict[str, Any], chance: random.Random) -> Any:
        if old not in step:
            return None
        name = chance.choice(names)
        return {name if key == old else key: value for key, value in step.items()}

    return change


def _set(name: str, make: Callable[[Any], Any], only: Callable[[dict[str, Any]], bool] = lambda _: True) -> Any:
    def change(step: dict[str, Any], _: random.Random) -> Any:
        key = _id_key(step) if name == "id" else name
        return {**step, key: make(step[key])} if key in step and only(step) else None

    return change


def _without(name: str) -> Any:
    def change(step: dict[str, Any], _: random.Random) -> Any:
        key = _id_key(step) if name == "id" else name
        return {one: value for one, value in step.items() if one != key} if key in step else None

    return change


def _reasons(step: dict[str, Any]) -> bool:
    return step.get("agent") == "llm"


def _called(step: dict[str, Any], _: random.Random) -> Any:
    if "tool" not in step or "arguments" not in step:
        return None
    rest = {key: value for key, value in step.items() if key not in ("tool", "arguments")}
    return {**rest, "tool": {"name": step["tool"], "arguments": step["arguments"]}}


def _spread(step: dict[str, Any], _: random.Random) -> Any:
    if not step.get("arguments") or set(step["arguments"]) & set(step):
        return None
    return {key: value for key, value in step.items() if key != "arguments"} | step["arguments"]


def _same_ids(plan: Plan, _: random.Random) -> Any:
    steps = plan["steps"]
    if len(steps) < 2:
        return None
    steps[1][_id_key(steps[1])] = steps[0][_id_key(steps[0])]
    return plan


def _keyed(plan: Plan, _: random.Random) -> Any:
    plan["steps"] = {step.pop(_id_key(step)): step for step in plan["steps"]}
    return plan


def _numbers(plan: Plan, _: random.Random) -> Any:
    ids = [step[_id_key(step)] for step in plan["steps"]]
    if not all(name.isdigit() for name in ids):
        return None
    for step in plan["steps"]:
        step[_id_key(step)] = int(step[_id_key(step)])
        if "depends_on" in step:
            step["depends_on"] = [int(name) for name in step["depends_on"]]
    return plan


def _by_number(plan: Plan, _: random.Random) -> Any:
    ids = [step[_id_key(step)] for step in plan["steps"]]
    if ids != [f"s{n}" for n in range(1, len(ids) + 1)] or not any(step.get("depends_on") for step in plan["steps"]):
        return None
    for step in plan["steps"]:
        if "depends_on" in step:
            step["depends_on"] = [int(name[1:]) for name in step["depends_on"]]
    return plan


def _cut(share: float) -> Change:
    def changed(plan: Plan, chance: random.Random) -> Any:
        text = json.dumps(plan, ensure_ascii=False)
        return text[: int(len(text) * share) - chance.randrange(5)]

    return changed


def _at(sign: str, replacement: str, *, least: int = 1) -> Change:
    """Replace one sign that is JSON's own, no part of a text."""

    def changed(plan: Plan, chance: random.Random) -> Any:
        text = json.dumps(plan, ensure_ascii=False)
        places = [place for place in _signs(text) if text.startswith(sign, place)]
        if len(places) < least:
            return None
        place = chance.choice(places)
        return text[:place] + replacement + text[place + len(sign) :]

    return changed


def _signs(text: str) -> list[int]:
    places, quoted, place = [], False, 0
    while place < len(text):
        if text[place] == "\\":
            place += 1
        elif text[place] == '"':
            quoted = not quoted
            places.append(place)
        elif not quoted:
            places.append(place)
        place += 1
    return places


def _inner_quotes(plan: Plan, chance: random.Random) -> Any:
    step = chance.choice(plan["steps"])
    words = step["description"].split(" ")
    if len(words) < 3 or '"' in step["description"] or "\\" in json.dumps(step["description"], ensure_ascii=False):
        return None
    word = words[1]
    text = json.dumps(plan, ensure_ascii=False)
    # The quotes are part of what was meant.
    return text.replace(f" {word} ", f' "{word}" ') if text.count(f" {word} ") == 1 else None


STRUCTURE: dict[str, Change] = {
    "goal missing": lambda plan, _: {"steps": plan["steps"]},
    "goal null": lambda plan, _: {**plan, "goal": None},
    "goal empty": lambda plan, _: {**plan, "goal": " "},
    "goal renamed": lambda plan, chance: {chance.choice(["objective", "Goal", "plan_goal"]): plan["goal"],
                                          "steps": plan["steps"]},
    "goal in a list": lambda plan, _: {**plan, "goal": [plan["goal"]]},
    "goal an object": lambda plan, _: {**plan, "goal": {"text": plan["goal"]}},
    "steps renamed": lambda plan, chance: {"goal": plan["goal"],
                                           chance.choice(["plan", "tasks", "Steps", "actions"]): plan["steps"]},
    "steps by id": _keyed,
    "steps in a list": lambda plan, _: {**plan, "steps": [plan["steps"]]},
    "steps as text": lambda plan, _: {**plan, "steps": json.dumps(plan["steps"], ensure_ascii=False)},
    "steps alone": lambda plan, _: plan["steps"],
    "wrapped": lambda plan, chance: {chance.choice(["plan", "result", "output", "data"]): plan},
    "wrapped with more": lambda plan, _: {"type": "plan", "version": 1, "plan": plan, "comment": "as asked"},
    "list of one": lambda plan, _: [plan],
    "text": lambda plan, _: json.dumps(json.dumps(plan)),
    "one id missing": _any_step(_without("id")),
    "every id missing": _every_step(_without("id")),
    "ids as numbers": _numbers,
    "ids twice": _same_ids,
    "id null": _any_step(_set("id", lambda _: None)),
    "id renamed": _every_step(lambda step, chance: _renamed(_id_key(step), "stepId", "step", "number")(step, chance)),
    "description missing": _any_step(_without("description")),
    "description null": _any_step(_set("description", lambda _: None)),
    "description empty": _any_step(_set("description", lambda _: "")),
    "description renamed": _every_step(_renamed("description", "action", "task", "desc", "instruction", "details")),
    "description misspelt": _any_step(_renamed("description", "descripton", "Description", "descriptions")),
    "description in a list": _any_step(_set("description", lambda text: [text])),
    "tool renamed": _every_step(_renamed("tool", "tool_name", "toolName", "function")),
    "tool misspelt": _any_step(_renamed("tool", "tol", "tools", "Tool")),
    "tool in a list": _any_step(_set("tool", lambda tool: [tool])),
    "tool as a call": _any_step(_called),
    "every tool as a call": _every_step(_called),
    "tool as an object": _any_step(_set("tool", lambda tool: {"name": tool})),
    "no tool in a word": _any_step(lambda step, chance: {**step, "tool": chance.choice(["", "none", "N/A", "llm"]),
                                                         "x": 1} if _reasons(step) else None),
    "agent in capitals": _any_step(_set("agent", lambda _: "LLM")),
    "another word for the agent": _any_step(_set("agent", lambda _: "assistant")),
    "agent beside the tool": _any_step(lambda step, _: {**step, "agent": "executor"} if "tool" in step else None),
    "agent true": _any_step(_set("agent", lambda _: True)),
    "arguments as text": _any_step(_set("arguments", lambda given: json.dumps(given, ensure_ascii=False))),
    "arguments renamed": _every_step(_renamed("arguments", "args", "parameters", "params", "input", "tool_input")),
    "arguments misspelt": _any_step(_renamed("arguments", "argumets", "Arguments", "argument")),
    "arguments spread": _any_step(_spread),
    "arguments in a list": _any_step(_set("arguments", lambda given: [given])),
    "arguments as pairs": _any_step(_set("arguments", lambda given: [
        {"name": key, "value": value} for key, value in given.items()])),
    "arguments as values": _any_step(_set("arguments", lambda given: list(given.values()))),
    "arguments as a call": _any_step(_set("arguments", lambda given: ", ".join(
        f"{key}={value!r}" for key, value in given.items()))),
    "needs as text": _any_step(_set("depends_on", lambda ids: ", ".join(ids), lambda step: bool(step["depends_on"]))),
    "needs as objects": _any_step(_set("depends_on", lambda ids: [{"id": name} for name in ids])),
    "needs by number": _by_number,
    "needs renamed": _every_step(_renamed("depends_on", "dependencies", "dependsOn", "depends", "requires")),
    "status": _every_step(lambda step, chance: {**step, "status": chance.choice(["todo", "PENDING", "not started"])}),
    "status complete": _any_step(lambda step, _: {**step, "status": "complete"}),
    "errors": _any_step(lambda step, _: {**step, "errors": "none"}),
    "unknown keys": _every_step(lambda step, _: {**step, "priority": 1, "estimated_time": "5m"}),
    "unknown key": lambda plan, _: {**plan, "notes": "be careful", "version": "1.0"},
    "rationale": _every_step(lambda step, _: {**step, "rationale": "it is needed", "expected_output": "text"}),
    "step null": lambda plan, _: {**plan, "steps": [None, *plan["steps"][1:]]},
    "step empty": lambda plan, _: {**plan, "steps": [*plan["steps"][:-1], {}]},
    "steps as sentences": lambda plan, _: {**plan, "steps": [step["description"] for step in plan["steps"]]},
    "unknown parent": _any_step(lambda step, _: {**step, "parent": "root"} if "id" in step else None),
}  # fmt: skip
TEXT: dict[str, Change] = {
    "cut at a third": _cut(0.33),
    "cut at the half": _cut(0.5),
    "cut at nine tenths": _cut(0.9),
    "cut before its end": lambda plan, _: json.dumps(plan, ensure_ascii=False)[:-1],
    "cut before its list ends": lambda plan, _: json.dumps(plan, ensure_ascii=False)[:-2],
    "cut in its last step": lambda plan, _: json.dumps(plan, ensure_ascii=False)[:-3],
    "quote missing": _at('"', ""),
    "comma missing": _at(",", "", least=2),
    "colon missing": _at(":", ""),
    "brace missing": _at("}", "", least=2),
    "opening brace missing": _at("{", "", least=2),
    "bracket missing": _at("]", ""),
    "opening bracket missing": _at("[", ""),
    "brace too many": _at("}", "}}"),
    "bracket too many": _at("]", "]]"),
    "wrong bracket": _at("]", "}"),
    "single quotes": lambda plan, _: repr(plan),
    "unquoted keys": lambda plan, _: _unquoted(plan),
    "colon for comma": _at(",", ":", least=2),
    "inner quotes": _inner_quotes,
}


def _unquoted(plan: Plan) -> str:
    text = json.dumps(plan, ensure_ascii=False)
    for key in ("goal", "steps", "id", "step_id", "description", "tool", "agent", "arguments", "depends_on"):
        text = text.replace(f'"{key}": ', f"{key}: ")
    return text


@dataclass(frozen=True)
class BrokenCall:
    """The arguments of a call as a model gives them, and as they were meant."""

    kind: str
    tool: str
    given: Any
    intact: dict[str, Any]


def clean_calls() -> list[tuple[str, dict[str, Any]]]:
    calls = [
        (step["tool"], step["arguments"])
        for plan in clean_plans()
        for step in plan["steps"]
        if "tool" in step and step.get("arguments")
    ]
    seen: dict[str, tuple[str, dict[str, Any]]] = {}
    for tool, arguments in calls:
        seen.setdefault(json.dumps([tool, arguments]), (tool, arguments))
    return list(seen.values())


def broken_calls() -> Iterator[BrokenCall]:
    """Yield every clean call in every way of breaking it."""
    for tool, intact in clean_calls():
        for kind, change in CALLS.items():
            for name in intact:
                given = change(copy.deepcopy(intact), name)
                if given is not None and given != intact:
                    yield BrokenCall(kind, tool, given, intact)


def _replaced(arguments: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    return {key: value if key == name else item for key, item in arguments.items()}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


CALLS: dict[str, Callable[[dict[str, Any], str], Any]] = {
    "missing": lambda given, name: {key: item for key, item in given.items() if key != name},
    "all but one missing": lambda given, name: {name: given[name]},
    "null": lambda given, name: _replaced(given, name, None),
    "nothing": lambda given, name: {},
    "as text": lambda given, name: _replaced(given, name, json.dumps(given[name]))
    if isinstance(given[name], (int, float, list)) else None,
    "in a list": lambda given, name: _replaced(given, name, [given[name]])
    if not isinstance(given[name], list) else None,
    "in an object": lambda given, name: _replaced(given, name, {"value": given[name]}),
    "capitals": lambda given, name: _replaced(given, name, given[name].upper())
    if given[name] in ("add", "subtract", "mean", "median", "line", "bar", "ascending") else None,
    "renamed": lambda given, name: {key.upper() if key == name else key: item for key, item in given.items()},
    "camel case": lambda given, name: {_camel(key): item for key, item in given.items()},
    "abbreviated": lambda given, name: {key[:4] if key == name else key: item for key, item in given.items()},
    "another name": lambda given, name: {f"the_{key}" if key == name else key: item for key, item in given.items()},
    "unknown key": lambda given, name: {**given, "verbose_output": True},
    "wrapped": lambda given, name: {"arguments": given},
    "whole text": lambda given, name: json.dumps(given),
    "cut text": lambda given, name: json.dumps(given)[:-2] if len(given) > 1 else None,
    "text with a quote missing": lambda given, name: json.dumps(given).replace(f'"{name}"', f'{name}"', 1),
}  # fmt: skip
