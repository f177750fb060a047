"""Replies that models break in ways that leave one possible value, and replies that leave several.

The ways are those that users report of real models: fences and prose around the JSON, special tokens behind it, Python
and JavaScript literals, quotes and escapes, brackets too many, wrappers, double encoding, tags of tool calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

TEXTS = [
    {
        "goal": "Compare the two rates and note the larger one",
        "steps": [
            {"id": "s1", "description": "Add 5 and 10", "tool": "calculator",
             "arguments": {"operation": "add", "a": 5, "b": 10}},
            {"id": "s2", "description": "Say which of the two is larger, [s1] or 12", "agent": "llm",
             "depends_on": ["s1"]},
        ],
    },
    {
        "goal": "Den Bericht prüfen und ablegen",
        "steps": [
            {"id": "lesen", "description": "berichte/märz.md lesen", "tool": "read_file",
             "arguments": {"path": "berichte/märz.md"}},
            {"id": "prüfen", "description": "Zahlen gegen {Tabelle 2} prüfen: 3,5 % und 1.200 €", "agent": "llm",
             "depends_on": ["lesen"]},
            {"id": "ablegen", "description": "In archiv/2026 ablegen; nichts löschen", "tool": "write_file",
             "arguments": {"path": "archiv/2026/märz.md", "content": "geprüft: ja\nWert: -3.5"},
             "depends_on": ["lesen", "prüfen"]},
        ],
    },
    {
        "goal": "会議の要約を作成する",
        "steps": [
            {"id": "1", "description": "議事録を検索する", "tool": "search",
             "arguments": {"query": "会議 2026-03-01", "limit": 3}},
            {"id": "2", "description": "三行で要約する", "agent": "llm", "depends_on": ["1"]},
        ],
    },
]  # fmt: skip
CALLS = [
    {"tool_name": "calculator", "arguments": {"operation": "add", "a": 5, "b": 10}},
    {"tool_name": "write_file", "arguments": {"path": "notes/été.txt", "content": "Bonjour: ça va?\n- oui, 3 fois"}},
    {"tool_name": "search", "arguments": {"query": "{name} [draft] https://example.org/a#b", "limit": 2}},
]

Break = Callable[[str], str]


def _compact(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def _pretty(text: str) -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, indent=2)


def _unquoted_keys(text: str) -> str:
    return re.sub(r'"([A-Za-z_]+)":', r"\1:", text)


def _single_quotes(text: str) -> str:
    return repr(json.loads(text))


def _smart(text: str) -> str:
    return re.sub(r'"((?:[^"\\]|\\.)*)"', "“\\1”", text)


def _first(pattern: str, replacement: str) -> Break:
    return lambda text: re.sub(pattern, replacement, text, count=1)


def _last(sign: str, replacement: str) -> Break:
    def broken(text: str) -> str:
        head, _, tail = text.rpartition(sign)
        return head + replacement + tail

    return broken


BREAKS: dict[str, Break] = {
    "fence": lambda text: f"```json\n{text}\n```",
    "fence without a language": lambda text: f"```\n{text}\n```",
    "fence that is not closed": lambda text: f"```json\n{text}",
    "prose and fence": lambda text: f"Sure! Here is the JSON you asked for:\n\n```json\n{text}\n```\nHope this helps!",
    "prose before": lambda text: f"Here it is: {text}",
    "prose after": lambda text: f"{text}\n\nNote: the steps run in order.",
    "prose with braces": lambda text: f"I fill in {{task}} and {{name, date}} first, then: {text}",
    "prose with brackets": lambda text: f"Using [calculator, search] as listed [1]:\n{text}\nSources: [2], [3]",
    "prose with an empty object": lambda text: f"An empty object {{}} would not do, so: {text}",
    "prose with an empty list": lambda text: f"No open questions []. {text}",
    "prose with code": lambda text: f"Like `f(x) {{ return [x] }}`, but as data:\n{text}",
    "prose with a list of numbers": lambda text: f"Of the options [1, 2] I chose [2].\n{text}",
    "thinking": lambda text: f"<think>First {{a}}, then [b].</think>\n{text}",
    "thinking without its start": lambda text: f"so I take the first.\n</think>\n\n{text}",
    "heading": lambda text: f"## Plan\n\n{text}\n",
    "special token": lambda text: f"{text}<|endoftext|>",
    "call token": lambda text: f"{text}<|call|>",
    "end of turn": lambda text: f"{text}</s>",
    "byte order mark": lambda text: f"\ufeff{text}",
    "trailing comma": _last("}", ",}"),
    "trailing comma in a list": lambda text: _pretty(text).replace("\n}", ",\n}"),
    "comma after the end": lambda text: f"{text},",
    "semicolon after the end": lambda text: f"{text};",
    "assignment": lambda text: f"plan = {text}",
    "const": lambda text: f"const result = {text};",
    "comment": _first(r"\{", "{ // as asked\n"),
    "block comment": _first(r":", ": /* as asked */ "),
    "hash comment": lambda text: _pretty(text).replace(",\n", ",  # next\n", 1),
    "missing comma": lambda text: _pretty(text).replace(",\n", "\n", 1),
    "missing commas": lambda text: _pretty(text).replace(",\n", "\n"),
    "missing comma on a line": _first(r", (?=\")", " "),
    "two commas": _first(r", (?=\")", ",, "),
    "leading comma": _first(r"\{", "{,"),
    "Python": _single_quotes,
    "unquoted keys": _unquoted_keys,
    "smart quotes": _smart,
    "smart quotes around keys": lambda text: re.sub(r'"([A-Za-z_]+)":', r"“\1”:", text),
    "backticks": lambda text: re.sub(r'"([A-Za-z_]+)":', r"`\1`:", text),
    "one key without its quote": _first(r'"([A-Za-z_]+)":', r'\1":'),
    "one key without its last quote": _first(r'"([A-Za-z_]+)":', r'"\1:'),
    "arrows": lambda text: re.sub(r'"([A-Za-z_]+)": ', r'"\1" => ', text),
    "equal signs": lambda text: re.sub(r'"([A-Za-z_]+)": ', r"\1 = ", text),
    "missing colon": _first(r'"([A-Za-z_]+)": ', r'"\1" '),
    "colon twice": _first(r'"([A-Za-z_]+)": ', r'"\1":: '),
    "line break in a string": lambda text: text.replace("\\n", "\n"),
    "tab indentation": lambda text: json.dumps(json.loads(text), ensure_ascii=False, indent="\t") + "\t",
    "brace too many": lambda text: f"{text}}}",
    "brackets too many": lambda text: f"{text}]}}",
    "last brace missing": lambda text: text.rstrip().removesuffix("}"),
    "list around it": lambda text: f"[{text}]",
    "two lists around it": lambda text: f"[[{text}]]",
    "encoded twice": lambda text: json.dumps(text),
    "encoded twice without quotes": lambda text: json.dumps(text)[1:-1],
    "encoded three times": lambda text: json.dumps(json.dumps(text)),
    "encoded twice in a fence": lambda text: f"```json\n{json.dumps(text, ensure_ascii=False)}\n```",
    "compact": lambda text: _compact(text) + "```",
    "pretty in prose": lambda text: f"Result:\n{_pretty(text)}\nDone.",
    "escaped slashes": lambda text: text.replace("/", r"\/") + " ",
    "escaped apostrophe": _first(r'"(goal|tool_name)"', r'"\1" '),
    "upper-case literals": _last("}", ', "note": NULL}'),
    "undefined": _last("}", ', "note": undefined}'),
    "html": lambda text: text.replace('"', "&quot;"),
    "xml tag": lambda text: f"<json>{text}</json>",
    "output tag": lambda text: f"<output>\n{text}\n</output>",
    "answer prefix": lambda text: f"json\n{text}",
    "final answer": lambda text: f"Final Answer: {text}",
    "no-break spaces": lambda text: text.replace(": ", ":\u00a0", 2),
    "zero-width space": lambda text: f"\u200b{text}\u200b",
    "same value twice": lambda text: f"{text}\n\n{text}",
    "same value in two fences": lambda text: f"```json\n{text}\n```\nOr shorter:\n```json\n{_compact(text)}\n```",
}
PLAN_BREAKS: dict[str, Break] = {
    "wrapped as plan": lambda text: f'{{"plan": {text}}}',
    "wrapped as result": lambda text: f'{{"result": {text}}}',
    "wrapped twice": lambda text: f'{{"response": {{"plan": {text}}}}}',
    "wrapped text": lambda text: json.dumps({"plan": text}),
    "status beside it": lambda text: f'{{"status": "ok", "plan": {text}}}',
    "as a tool call": lambda text: f'{{"name": "aeon_plan", "arguments": {text}}}',
    "as a tool call with text": lambda text: json.dumps({"name": "create_plan", "arguments": text}),
    "Hermes tags": lambda text: f'<tool_call>\n{{"name": "plan", "arguments": {text}}}\n</tool_call>',
    "inner quotes": lambda text: text.replace("two rates", 'two "rates"').replace("Bericht", 'Bericht "Q1"'),
}
CALL_BREAKS: dict[str, Break] = {
    "name": lambda text: text.replace('"tool_name"', '"name"'),
    "name and parameters": lambda text: text.replace('"tool_name"', '"name"').replace('"arguments"', '"parameters"'),
    "tool and args": lambda text: text.replace('"tool_name"', '"tool"').replace('"arguments"', '"args"'),
    "tool and input": lambda text: text.replace('"tool_name"', '"tool"').replace('"arguments"', '"input"'),
    "action and action_input": lambda text: text.replace('"tool_name"', '"action"').replace(
        '"arguments"', '"action_input"'),
    "function": lambda text: f'{{"type": "function", "function": {text.replace("tool_name", "name")}}}',
    "list of calls": lambda text: f'{{"tool_calls": [{text.replace("tool_name", "name")}]}}',
    "id beside it": lambda text: f'{{"id": "call_1", "type": "function", {text[1:]}',
    "arguments as text": lambda text: _call_with_text(text),
    "arguments alone": lambda text: json.dumps(json.loads(text)["arguments"], ensure_ascii=False),
    "Hermes tags": lambda text: f'<tool_call>\n{text.replace("tool_name", "name")}\n</tool_call>',
    "Hermes tags in Python": lambda text: f"<tool_call>{_single_quotes(text.replace('tool_name', 'name'))}</tool_call>",
    "closing tag alone": lambda text: f'{text.replace("tool_name", "name")}\n</tool_call>',
    "function tag": lambda text: "<function={tool_name}>{0}</function>".format(
        json.dumps(json.loads(text)["arguments"], ensure_ascii=False), **json.loads(text)),
    "Mistral": lambda text: f'[TOOL_CALLS] [{text.replace("tool_name", "name")}]',
    "channel": lambda text: f"<|channel|>commentary to=functions<|message|>{text}<|call|>",
    "prose and call": lambda text: f"I'll call the tool {{now}}.\n<tool_call>{text}</tool_call>\nDone.",
}  # fmt: skip


def _call_with_text(text: str) -> str:
    call = json.loads(text)
    return json.dumps({**call, "arguments": json.dumps(call["arguments"], ensure_ascii=False)}, ensure_ascii=False)


def malformed_plans() -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, reply and the plan it says, as it was before it was broken."""
    return _made("plan", TEXTS, {**BREAKS, **PLAN_BREAKS})


def malformed_calls() -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, reply and the call it says."""
    return _made("call", CALLS, {**BREAKS, **CALL_BREAKS})


def _made(kind: str, values: list[dict[str, Any]], breaks: dict[str, Break]) -> list[tuple[str, str, dict[str, Any]]]:
    made = []
    for name, broken in breaks.items():
        for number, value in enumerate(values):
            text = json.dumps(value, ensure_ascii=False)
            reply = broken(text)
            if reply != text:
                said = _quoted(value) if name == "inner quotes" else value
                made.append((f"{kind} {number}: {name}", reply, said))
    return made


def _quoted(value: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(value, ensure_ascii=False)
    said: dict[str, Any] = json.loads(text.replace("two rates", r"two \"rates\"").replace("Bericht", r"Bericht \"Q1\""))
    return said
