"""Bringing a value into the form that a JSON Schema asks for, with what it says already."""

from __future__ import annotations

import difflib
import json
import re
from typing import Any

import json_repair

from aeon_core.errors import ValidationError
from aeon_core.json_safe import MAX_DEPTH, json_safe, parse_json
from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    SYNONYMS,
    Operation,
    is_number,
    parse_arithmetic,
    show_number,
    tokens,
)
from aeon_core.llm.simulated.prompt import Prompt
from aeon_core.llm.simulated.texts import file_names, parse_text_task
from aeon_core.llm.simulated.tools import (
    Described,
    calculation_arguments,
    file_tool,
    fits,
    kind_of,
    known_ids,
    likely_tool,
    properties,
    text_tool,
    words_of,
)
from aeon_core.tools.schema import Schema

_MAX_DEPTH = 20
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def coerced(value: Any, schema: dict[str, Any]) -> Any:
    """Return the value in the form of the schema where that loses nothing, parts that do not fit unchanged."""
    return _coerced(value, schema, schema, 0)


def _coerced(value: Any, schema: Any, root: dict[str, Any], depth: int) -> Any:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return value
    schema = _resolved(schema, root)
    if _fits(value, schema):
        return value
    for branch in (*_branches(schema, "anyOf"), *_branches(schema, "oneOf")):
        tried = _coerced(value, branch, root, depth + 1)
        if _fits(tried, _resolved(branch, root)):
            return tried
    kind = kind_of(schema)
    if isinstance(value, list) and len(value) == 1 and kind != "array":
        return _coerced(value[0], schema, root, depth + 1)
    if isinstance(schema.get("enum"), list):
        return _choice(value, schema["enum"])
    if kind == "object" or "properties" in schema:
        return _object(value, schema, root, depth)
    if kind == "array":
        items = value if isinstance(value, list) else [value]
        return [_coerced(item, schema.get("items"), root, depth + 1) for item in items]
    return _scalar(value, kind)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    try:
        return not Schema(schema).errors(value)
    except ValidationError:
        return False


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return schema
    target: Any = root
    for part in reference[2:].split("/"):
        target = target.get(part) if isinstance(target, dict) else None
    return {**target, "$defs": root.get("$defs", {})} if isinstance(target, dict) else schema


def _branches(schema: dict[str, Any], key: str) -> list[dict[str, Any]]:
    listed = schema.get(key)
    return [branch for branch in listed if isinstance(branch, dict)] if isinstance(listed, list) else []


def _choice(value: Any, choices: list[Any]) -> Any:
    if not isinstance(value, str):
        return value
    said = value.strip().lower()
    names = {choice.lower(): choice for choice in choices if isinstance(choice, str)}
    for synonyms in SYNONYMS.values():
        if said in synonyms:
            names = {**{one: names[name] for name in synonyms if name in names for one in synonyms}, **names}
    near = difflib.get_close_matches(said, names, n=1)
    return names[near[0]] if near else value


def _scalar(value: Any, kind: str) -> Any:
    if kind in ("number", "integer"):
        number = _number(value)
        if number is None:
            return value
        return int(number) if kind == "integer" and float(number).is_integer() else number
    if kind == "boolean" and isinstance(value, (str, int)):
        return _TRUTHS.get(str(value).strip().lower(), value)
    if kind == "string" and is_number(value):
        return show_number(value)
    return value


def _number(value: Any) -> float | None:
    if is_number(value):
        return int(value) if isinstance(value, int) else float(value)
    if not isinstance(value, str) or len(value) > 100:
        return None
    found = tokens(value)
    negative = len(found) == 2 and found[0].text == "-"
    if len(found) != 1 + negative or (number := found[-1].number) is None:
        return None
    return -number if negative else number


def _object(value: Any, schema: dict[str, Any], root: dict[str, Any], depth: int) -> Any:
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return value
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    renamed = _renamed(value, known)
    if schema.get("additionalProperties") is False:
        renamed = {key: item for key, item in renamed.items() if key in known}
    return {key: _coerced(item, known.get(key), root, depth + 1) for key, item in renamed.items()}


def _renamed(value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Give keys that are not known the nearest known name that is still free."""
    free = [key for key in known if key not in value]
    renamed: dict[str, Any] = {}
    for key, item in value.items():
        name = key if key in known else nearest(key, free)
        if name in free:
            free.remove(name)
        renamed[name] = item
    return renamed


def nearest(key: str, names: list[str]) -> str:
    """Return the name that a key is a misspelling or a variant of, else the key."""
    plain = {_letters(name): name for name in names}
    letters = _letters(key)
    if letters in plain:
        return plain[letters]
    for name, original in plain.items():
        if min(len(name), len(letters)) >= 2 and (name.startswith(letters) or letters.startswith(name)):
            return original
        if name and letters in (f"{name}value", f"number{name}", f"num{name}", f"{name}1"):
            return original
    near = difflib.get_close_matches(letters, plain, n=1, cutoff=0.7)
    return plain[near[0]] if near else key


def _letters(key: str) -> str:
    return "".join(filter(str.isalnum, key.lower()))[:60]


_MAX_READ = 50_000
_PLAN_KEYS = ["goal", "steps"]
_STEP_KEYS = ["id", "step_id", "parent", "description", "tool", "agent", "arguments", "arguments_json", "depends_on"]
_STEP_KEYS += ["subplan", "replaces"]
_ALIASES = {"desc": "description", "title": "description", "task": "description", "action": "description"}
_ALIASES |= {"args": "arguments", "parameters": "arguments", "params": "arguments", "input": "arguments"}
_ALIASES |= {"tool_name": "tool", "dependencies": "depends_on", "requires": "depends_on", "objective": "goal"}
_BRACKET = re.compile(r"[\[\]{}]")
_NAMED_RESULT = re.compile(r"result of (\w[\w.-]*\w|\w)")
_CALL_NAMES = ("tool_name", "name", "tool", "function")
_CALL_ARGUMENTS = ("arguments", "args", "parameters", "input")


def repair(prompt: Prompt) -> str:
    """Return the corrected JSON, or the original where nothing can be made of it."""
    original = prompt.text("original")
    value = read_leniently(original)
    if value is None:
        return original
    return json.dumps(_repaired(value, prompt), ensure_ascii=False)


def read_leniently(text: str) -> Any:
    """Return the JSON object or array that a text means, or None."""
    try:
        value = parse_json(text)
    except ValueError:
        if len(text) > _MAX_READ or _is_deep(text):
            return None
        try:
            value = json_safe(json_repair.loads(_inside(text)))
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
            return None
    return value if isinstance(value, (dict, list)) and value else None


def _is_deep(text: str) -> bool:
    # On text that nests deeply the lenient reader takes quadratic time, and gives up in the end.
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def _inside(text: str) -> str:
    """Return the text from its first bracket on: prose before it is none of the JSON."""
    places = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    return text[min(places) :] if places else text


def _repaired(value: Any, prompt: Prompt) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        value = inner if isinstance(inner, dict) and ("steps" in inner or "description" in inner) else value
    wanted = (prompt.schema or {}).get("properties")
    wanted = wanted if isinstance(wanted, dict) else {}
    if isinstance(value, list) or "steps" in wanted or "steps" in value:
        return _plan(value, prompt)
    if "tool_name" in wanted or (
        any(key in value for key in ("tool_name", "arguments")) and "description" not in value
    ):
        return _call(value, prompt, wanted)
    if "description" in value and ("step_id" in value or "id" in value):
        return _step(value, prompt)
    if any(nearest(key, _PLAN_KEYS) == "steps" for key in value):
        return _plan(value, prompt)
    if prompt.schema is not None:
        return coerced(value, prompt.schema)
    tool = _tool_named(prompt.step.get("tool"), prompt.tools)
    return value if tool is None else coerced(value, tool["input_schema"])


def _plan(value: Any, prompt: Prompt) -> Any:
    given = {"steps": value} if isinstance(value, list) else _with_known_keys(value, _PLAN_KEYS)
    steps = given.get("steps")
    if isinstance(steps, dict):
        steps = [steps] if "description" in steps else list(steps.values())
    listed = [_plan_step(step) for step in steps] if isinstance(steps, list) else []
    taken = {str(step.get("id", step.get("step_id"))) for step in listed}
    nested = any("step_id" in step for step in listed) and not any("id" in step for step in listed)
    for number, step in enumerate(listed, start=1):
        if "id" not in step and "step_id" not in step:
            free = next(
                name for name in (f"s{number}", *(f"s{number}_{n}" for n in range(len(listed)))) if name not in taken
            )
            taken.add(free)
            step["step_id" if nested else "id"] = free
    goal = given.get("goal") or prompt.text("goal") or next((step.get("description") for step in listed), "")
    return {"goal": goal if isinstance(goal, str) else json.dumps(goal), "steps": listed}


def _plan_step(step: Any) -> dict[str, Any]:
    if not isinstance(step, dict):
        return {"description": step if isinstance(step, str) else json.dumps(step)}
    fields = _with_known_keys(step, _STEP_KEYS)
    for key in ("id", "step_id", "parent", "tool", "description"):
        if isinstance(fields.get(key), (int, float)):
            fields[key] = str(fields[key])
    if isinstance(agent := fields.get("agent"), str):
        fields["agent"] = "llm" if agent.strip().lower() == "llm" else None
    if isinstance(fields.get("depends_on"), (str, int)):
        fields["depends_on"] = [fields["depends_on"]]
    if isinstance(fields.get("depends_on"), list):
        fields["depends_on"] = [str(item) for item in fields["depends_on"] if isinstance(item, (str, int))]
    if isinstance(fields.get("arguments"), str):
        fields["arguments"] = coerced(fields["arguments"], {"type": "object"})
    return fields


def _with_known_keys(value: dict[str, Any], known: list[str]) -> dict[str, Any]:
    """Return the object with its keys' misspellings corrected, and without keys that mean nothing there."""
    found: dict[str, Any] = {key: item for key, item in value.items() if key in known}
    for key, item in value.items():
        if key in known:
            continue
        name = _ALIASES.get(key, key)
        name = name if name in known else nearest(key, [one for one in known if one not in found])
        if name in known and name not in found:
            found[name] = item
    return found


def _call(value: dict[str, Any], prompt: Prompt, wanted: dict[str, Any]) -> dict[str, Any]:
    constant = wanted.get("tool_name", {}).get("const") if isinstance(wanted.get("tool_name"), dict) else None
    named = next((value[key] for key in _CALL_NAMES if isinstance(value.get(key), str)), None)
    arguments = next((value[key] for key in _CALL_ARGUMENTS if key in value), None)
    if arguments is None:
        arguments = {key: item for key, item in value.items() if key != "tool_name"}
    name = constant or named or prompt.step.get("tool")
    tool = _tool_named(name, prompt.tools)
    schema = wanted.get("arguments")
    if not isinstance(schema, dict):
        schema = tool["input_schema"] if tool else {"type": "object"}
    return {"tool_name": tool["name"] if tool else name, "arguments": coerced(arguments, {"type": "object", **schema})}


def _tool_named(name: Any, tools: list[Described]) -> Described | None:
    if not isinstance(name, str):
        return None
    names = {tool["name"]: tool for tool in tools}
    near = difflib.get_close_matches(name[:100], names, n=1, cutoff=0.75)
    return names.get(name) or (names[near[0]] if near else None)


def _step(value: dict[str, Any], prompt: Prompt) -> dict[str, Any]:
    """Return the step with a listed tool that does what it describes, or unchanged."""
    tool = fitting_tool(value, prompt)
    if tool is None or tool["name"] == value.get("tool"):
        return value
    arguments = value.get("arguments")
    kept = {key: item for key, item in value.items() if key not in ("errors", "agent")}
    kept["tool"] = tool["name"]
    if isinstance(arguments, dict) and not fits(tool, arguments):
        kept["arguments"] = coerced(arguments, tool["input_schema"])
    return kept


def fitting_tool(step: dict[str, Any], prompt: Prompt) -> Described | None:
    """Return the listed tool that does what a step describes and can take the arguments it has."""
    description = step.get("description")
    description = description if isinstance(description, str) else ""
    arguments = step.get("arguments")
    able = [tool for tool in prompt.tools if _takes(tool, arguments)]
    ids = [*known_ids(prompt), *_NAMED_RESULT.findall(description[:MAX_CLAUSE])]
    return _by_task(description, able, list(dict.fromkeys(ids))) or _by_name(step.get("tool"), description, able)


def _takes(tool: Described, arguments: Any) -> bool:
    return not isinstance(arguments, dict) or not arguments or fits(tool, coerced(arguments, tool["input_schema"]))


def _by_task(description: str, tools: list[Described], ids: list[str]) -> Described | None:
    task = parse_text_task(description, ids)
    if task is not None:
        found = text_tool(task, tools)
        return found[0] if found else None
    operation = parse_arithmetic(description, ids)
    if operation is not None:
        return _calculating(operation, tools)
    names = file_names(description)
    if names:
        action = "write" if words_of(description[:20]) & {"write", "save", "create", "append"} else "read"
        file = file_tool(action, names[-1], None, tools)
        return file[0] if file else None
    return None


def _calculating(operation: Operation, tools: list[Described]) -> Described | None:
    name = "add" if operation.name == "average" else operation.name
    listed = [(tool, calculation_arguments(tool, name, 1, 1)) for tool in tools]
    doing = sorted((-len(found), place) for place, (_, found) in enumerate(listed) if found is not None)
    return tools[doing[0][1]] if doing and len(operation.operands) == 2 else None


def _by_name(name: Any, description: str, tools: list[Described]) -> Described | None:
    """Return the tool whose name was probably meant, else the one whose words the description uses."""
    if isinstance(name, str) and name.strip():
        meant = _tool_named(name, tools)
        words = words_of(name)
        alike = [tool for tool in tools if words_of(tool["name"]) and words_of(tool["name"]) <= words]
        if meant is not None or alike:
            return meant or alike[0]
    likely = likely_tool(description, tools)
    return likely if likely is not None and properties(likely) else None
