"""The adapter for simulated models, and how each except `default` misbehaves (contract: Models)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from aeon_core.errors import LLMError, ModelUnavailableError, ValidationError
from aeon_core.json_safe import clean_text
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ToolCallDict
from aeon_core.llm.simulated.prompt import Arguments, MissingResultError, Prompt, call_arguments, read_prompt, repair
from aeon_core.llm.simulated.script import answer, judgement, make_plan, profile, reason, refinement
from aeon_core.suggest import close
from aeon_core.tools.registry import is_number

SIMULATED_MODELS: dict[str, str] = {
    "default": "calculates, and follows a script for every other task",
    "malformed": "writes its plan in a code fence with a trailing comma: repaired locally",
    "broken": "leaves its plan unclosed, then repairs it when asked",
    "unrepairable": "leaves its plan unclosed, and its repairs too: the run fails",
    "missing-tool": "plans with a tool that is not registered, then names a suitable one when asked",
    "no-such-tool": "plans with a tool that is not registered and insists on it: fallback reasoning",
    "bad-arguments": "gives tool arguments of the wrong type, then corrects them when asked",
    "flaky": "fails the first attempt of every call with a 503: retried",
    "down": "fails every call with a 503",
    "refused-key": "fails every call with a 401, as for a refused key",
    "rambling": "writes prose around its JSON: repaired locally",
    "stubborn": "replaces rejected steps with the same ones: after three times they are left to a person",
    "unrefinable": "leaves its refinements unclosed, and their repairs too: the plan stays, the second ends the run",
    "muddled": "judges in prose instead of JSON: the result is not judged",
    "careless": "gets the last figure of its answer wrong: the judge finds the contradiction",
    "hostile": "puts markup, escape sequences, NUL and a lone surrogate into its texts, and is otherwise correct",
}
"""Each NAME in `connect("simulated:NAME")`, and what that model does."""

HOSTILE = " [bold]not bold[/] [/] [@click=app.quit]quit[/] \x1b[31mred\x1b[0m \x00 \ud800"
_SHOWN = ("goal", "description", "raw_inference", "reason", "follow_up_questions")
_MISSING_TOOL = "assistant_tool"
_LAST_FIGURE = re.compile(r"(?<![\w.-])\d{1,9}(?!\w)(?=\D*$)", re.ASCII)


def written_plan(name: str, plan: dict[str, Any], listed: list[str]) -> str:
    """Return a plan as the model of that name writes it. `listed` are the names of the tools that it may use."""
    if name in ("missing-tool", "no-such-tool"):
        _misname_tools(plan["steps"], listed)
    elif name == "bad-arguments":
        for step in plan["steps"]:
            step["arguments"] = spoiled(step["arguments"]) if step["arguments"] else step["arguments"]
    return written_object(name, plan, "plan")


def written_refinement(name: str, refinement: dict[str, Any], listed: list[str]) -> str:
    """Return a refinement as the model of that name writes it. `listed` are the names of the tools that it may use."""
    for each in refinement["actions"]:
        steps = each["changes"]["steps"]
        if name == "no-such-tool":
            _misname_tools(steps, listed)
        for step in steps:
            arguments = step.pop("arguments")
            step["arguments_json"] = None if arguments is None else json.dumps(arguments, ensure_ascii=False)
    return written_object("unrepairable" if name == "unrefinable" else name, refinement, "refinement")


def written_object(name: str, value: dict[str, Any], what: str) -> str:
    """Return an object as the model of that name writes it, with prose that calls it `what`."""
    if name == "hostile":
        value = _hostile(value)
    # Escaped, since a lone surrogate could not be sent otherwise.
    text = json.dumps(value, ensure_ascii=name == "hostile", indent=2 if name == "malformed" else None)
    if name == "malformed":
        return f"```json\n{text[:-2].rstrip()},\n}}\n```"
    if name in ("broken", "unrepairable"):
        return text.removesuffix("}").removesuffix("]")
    return _with_prose(text, what) if name == "rambling" else text


def _hostile(value: Any, key: str = "") -> Any:
    """Return a value with hostile text added to the strings that are shown to a person."""
    if isinstance(value, dict):
        return {name: _hostile(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_hostile(item, key) for item in value]
    return value + HOSTILE if isinstance(value, str) and key in _SHOWN else value


def spoiled(arguments: Arguments) -> Arguments:
    """Return arguments with wrong types: numbers as strings, everything else in a list."""
    return {key: repr(value) if is_number(value) else [value] for key, value in arguments.items()}


def _with_prose(text: str, what: str) -> str:
    return f"Certainly! Here is the {what} you asked for:\n\n{text}\n\nLet me know whether this helps."


def _misname_tools(steps: list[dict[str, Any]], listed: list[str]) -> None:
    using = [step for step in steps if step["tool"]] or steps[:1]
    for step in using:
        name = _MISSING_TOOL
        while name in listed:
            name += "_2"
        step["tool"], step["agent"] = name, None


_PIECES = 4
_CHARACTERS_PER_TOKEN = 4


class SimulatedModel(LLMAdapter):
    """A rule-based model: the same request always gets the same reply, without network, clock or randomness.

    `name` is one of SIMULATED_MODELS; each except `default` misbehaves as described there. Raises
    ModelUnavailableError for an unknown name.
    """

    simulated = True

    def __init__(self, name: str = "default") -> None:
        if name not in SIMULATED_MODELS:
            near = close(name, SIMULATED_MODELS, 0.6)
            hint = f"did you mean {near!r}? Known are" if near else "expected one of"
            raise ModelUnavailableError(f"unknown simulated model {name[:60]!r}; {hint} {', '.join(SIMULATED_MODELS)}")
        self.name = name
        self.model: str = f"simulated:{name}"
        self._hostile = HOSTILE if name == "hostile" else ""
        self._failed_once: set[bytes] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the reply to a request. Raises LLMError if this model is meant to fail."""
        self._fail(request)
        prompt = read_prompt(request)
        if self.name == "hostile" and prompt.step:
            prompt.step["description"] = prompt.description.partition(HOSTILE[:10])[0]
        if request.purpose == "tool_call":
            text, calls = self._call(prompt)
        else:
            text, calls = self._text(request, prompt), []
        return simulated_reply(self.model, request, text, calls)

    def _fail(self, request: LLMRequest) -> None:
        if self.name == "refused-key":
            raise LLMError("simulated: the key was refused (401); check the provider's key", status_code=401)
        if self.name == "down":
            raise LLMError("simulated: the model is overloaded (503)", retryable=True, status_code=503)
        if self.name == "flaky":
            call = hashlib.sha256(clean_text(f"{request.purpose}\n{request.prompt}").encode()).digest()
            if call not in self._failed_once:
                self._failed_once.add(call)
                raise LLMError("simulated: the model is overloaded for a moment (503)", retryable=True, status_code=503)
            self._failed_once.remove(call)

    def _text(self, request: LLMRequest, prompt: Prompt) -> str:
        if request.purpose == "plan":
            plan = make_plan(prompt.text("task"), prompt.tools)
            return written_plan(self.name, plan, [tool["name"] for tool in prompt.tools])
        if request.purpose == "repair":
            original = self.name in ("unrepairable", "unrefinable", "no-such-tool")
            text = prompt.text("original") if original else repair(prompt)
            return _with_prose(text, "corrected JSON") if self.name == "rambling" else text
        if request.purpose in ("reason", "fallback"):
            return reason(prompt, fallback=request.purpose == "fallback") + self._hostile
        if request.purpose == "answer":
            text = answer(prompt) + self._hostile
            return _LAST_FIGURE.sub(lambda figure: str(int(figure[0]) + 1), text) if self.name == "careless" else text
        if request.purpose == "profile":
            return written_object(self.name, profile(prompt), "profile")
        if request.purpose == "judge":
            if self.name == "muddled":
                return "It looks right to me, though one might ask whether it is complete."
            # Unreadable reports are not repaired.
            name = self.name if self.name in ("hostile", "rambling") else "default"
            return written_object(name, judgement(prompt), "report")
        if request.purpose == "review":
            return json.dumps({"issues": []})
        if request.purpose == "refine":
            made = refinement(prompt, insists=self.name == "stubborn")
            return written_refinement(self.name, made, [tool["name"] for tool in prompt.tools])
        raise LLMError(f"the simulated model does not answer {request.purpose!r} requests")

    def _call(self, prompt: Prompt) -> tuple[str, list[ToolCallDict]]:
        name = prompt.step.get("tool")
        tool = next((tool for tool in prompt.tools if tool["name"] == name), None)
        if tool is None:
            return f"The step names the tool {str(name)[:100]!r}, which is not listed.", []
        try:
            arguments = call_arguments(prompt, tool)
        except (MissingResultError, ArithmeticError, ValidationError) as error:
            return str(error), []
        if self.name == "bad-arguments":
            arguments = spoiled(arguments)
        step_id = prompt.step.get("step_id", "step")
        return "", [{"id": f"call_{step_id}", "name": tool["name"], "arguments": arguments}]


def simulated_reply(model: str, request: LLMRequest, text: str, calls: list[ToolCallDict]) -> LLMResponse:
    """Return a reply after streaming it in pieces; its tokens are estimated from the number of characters."""
    if request.on_delta is not None:
        size = -(-len(text) // _PIECES) or 1
        for start in range(0, len(text), size):
            request.on_delta(text[start : start + size])
    if request.on_call is not None:
        for call in calls:
            request.on_call(call["name"], "")
            request.on_call(call["name"], json.dumps(call["arguments"]))
    return LLMResponse(
        text=text,
        tool_calls=calls,
        usage={"input_tokens": _size(request), "output_tokens": _tokens(text) + _tokens(json.dumps(calls))},
        stop_reason="tool_use" if calls else "end",
        model=model,
    )


def _size(request: LLMRequest) -> int:
    """Return an estimate of the request's tokens from its length."""
    tools = json.dumps(request.tools, default=str) if request.tools else ""
    return _tokens(request.system) + sum(_tokens(message["content"]) for message in request.messages) + _tokens(tools)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
