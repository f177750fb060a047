"""The simulated model as an adapter (contract: Models)."""

from __future__ import annotations

import hashlib
import json

from aeon_core.errors import LLMError, ModelUnavailableError, ValidationError
from aeon_core.json_safe import clean_text
from aeon_core.llm.base import LLMAdapter, LLMRequest, LLMResponse, ToolCallDict
from aeon_core.llm.simulated.misbehaviours import (
    HOSTILE,
    SIMULATED_MODELS,
    insisting,
    spoiled,
    written_answer,
    written_object,
    written_plan,
    written_refinement,
    written_repair,
    written_report,
    written_text,
)
from aeon_core.llm.simulated.prompt import MissingResultError, Prompt, read_prompt
from aeon_core.llm.simulated.script import answer, judgement, make_plan, profile, reason, refinement
from aeon_core.llm.simulated.tool_use import call_arguments, repair
from aeon_core.suggest import close

_PIECES = 4
_CHARACTERS_PER_TOKEN = 4


class SimulatedModel(LLMAdapter):
    """A model by rules: the same request gets the same reply, without network, clock or chance.

    `name` is one of SIMULATED_MODELS; each but `default` misbehaves in the way described there. Raises
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
        self._failed_once: set[bytes] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Return the reply to a request. Raises LLMError where the model's behaviour is to fail."""
        self._fail(request)
        prompt = read_prompt(request)
        if self.name == "hostile" and prompt.step:
            prompt.step["description"] = prompt.description.partition(HOSTILE[:10])[0]
        if request.purpose == "tool_call":
            text, calls = self._call(prompt)
        else:
            text, calls = self._text(request, prompt), []
        if request.on_delta is not None:
            size = -(-len(text) // _PIECES) or 1
            for start in range(0, len(text), size):
                request.on_delta(text[start : start + size])
        return LLMResponse(
            text=text,
            tool_calls=calls,
            usage={"input_tokens": _size(request), "output_tokens": _tokens(text) + _tokens(json.dumps(calls))},
            stop_reason="tool_use" if calls else "end",
            model=self.model,
        )

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
            return written_repair(self.name, prompt.text("original"), repair(prompt))
        if request.purpose in ("reason", "fallback"):
            return written_text(self.name, reason(prompt, fallback=request.purpose == "fallback"))
        if request.purpose == "answer":
            return written_answer(self.name, answer(prompt))
        if request.purpose == "profile":
            return written_object(self.name, profile(prompt), "profile")
        if request.purpose == "judge":
            return written_report(self.name, judgement(prompt))
        if request.purpose == "review":
            return json.dumps({"issues": []})
        if request.purpose == "refine":
            made = insisting(prompt) if self.name == "stubborn" else refinement(prompt)
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


def _size(request: LLMRequest) -> int:
    """Return an estimate of the request's tokens from its length."""
    tools = json.dumps(request.tools, default=str) if request.tools else ""
    return _tokens(request.system) + sum(_tokens(message["content"]) for message in request.messages) + _tokens(tools)


def _tokens(text: str) -> int:
    return -(-len(text) // _CHARACTERS_PER_TOKEN)
