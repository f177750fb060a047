"""The supervisor: replies become valid plans, tool calls and steps, or a structured error (core FR-027 to FR-033)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from aeon_core.errors import ValidationError
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMAdapter, LLMRequest, LLMResponse
from aeon_core.plain import clean_text, plain
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import dump_plan, parse_plan
from aeon_core.plan.wire import WIRE_SCHEMA, step_schema, tool_call_schema
from aeon_core.prompts import build_request
from aeon_core.prompts.sections import step_section, to_line, tools_section
from aeon_core.reasoning import without_thinking
from aeon_core.supervisor.actions import ActionType, Fault, Listener, Repairs, now
from aeon_core.supervisor.calls import call_in
from aeon_core.supervisor.evidence import Evidence
from aeon_core.supervisor.guard import call_refusal, new_arguments_refusal, step_refusal
from aeon_core.supervisor.lenient import lenient, lenient_arguments, steps_in
from aeon_core.supervisor.plan_guard import plan_refusal
from aeon_core.supervisor.replies import as_object, invalid, read_call, read_json, read_step
from aeon_core.tools.base import Tool
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.structural import validate_step_tool, validate_tool_call

T = TypeVar("T")


class Supervisor:
    """Repairs what a model got wrong, with the same model and a shorter prompt (core FR-028; Decision 6).

    A reply is validated strictly, then repaired locally without loss, then by the model, twice at most. Every attempt
    is given to `on_action` with its method, `local` or `llm`. A repair that adds tools, steps or meaning, or changes
    ids or the goal, is refused. `registry` is the default for methods that are not handed one.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        registry: ToolRegistry | None = None,
        on_action: Listener | None = None,
        clock: Callable[[], str] = now,
        prompts_dir: Path | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        self._registry = registry
        self._repairs = Repairs(llm, on_action, clock)
        self._prompts_dir = prompts_dir
        self._max_tokens = max_tokens

    def read_plan(self, response: LLMResponse, registry: ToolRegistry | None = None, *, task: str = "") -> Plan:
        """Return the plan of a reply to `task`, repaired where need be (core FR-010, FR-031).

        Unknown tools stay: they are repaired step by step. Raises SupervisorError, and LLMError of the adapter.
        """
        tools = self._tools(registry)
        text = without_thinking(clean_text(response.text))
        value: Any = None
        action_type: ActionType = "json_repair"
        original = {"text": text}
        try:
            value, local = read_json(text)
            plan = parse_plan(value)
        except ValidationError as error:
            problems = error.context["problems"]
            action_type = "plan_repair"
            original = original if local else as_object(value)
        except ValueError as error:
            problems = [str(error)]
        else:
            if local:
                self._repairs.local("json_repair", {"text": text}, dump_plan(plan))
            return plan
        fault = Fault("the plan", action_type, original, text, problems)
        _check_ending(response, fault)
        certain = action_type == "plan_repair"
        oracle = value if certain else lenient(text)

        def accept(repaired: Any) -> tuple[Plan, dict[str, Any]]:
            plan = parse_plan(repaired)
            if steps_in(oracle) is None:
                # Prose gives no arguments that could be checked: each step's own cycle supplies them.
                for step in plan.walk():
                    step.arguments = None
            _refuse(plan_refusal(oracle, text, plan, tools, certain=certain, task=task))
            return plan, dump_plan(plan)

        return self._repairs.by_model(fault, self._request(fault, tools, WIRE_SCHEMA, task=task), accept)

    def read_tool_call(
        self,
        response: LLMResponse,
        step: PlanStep,
        registry: ToolRegistry | None = None,
        *,
        goal: str = "",
        context: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the valid arguments of the call a reply makes of the step's tool (core FR-025, FR-030).

        The call comes as native tool use (of several, exactly one must be of the step's tool) or as text in the form
        {"tool_name", "arguments"}. `context` are the sections on results and memory that a repair may draw from.
        Raises SupervisorError, and LLMError of the adapter.
        """
        tools = self._tools(registry)
        tool = _tool_of(step)
        call = call_in(response, tool)
        if not call.problems:
            call.problems = validate_tool_call(tool, call.arguments, tools).errors
        if call.arguments is not None and not call.problems:
            if call.local:
                self._repairs.local("json_repair", call.original, {"tool_name": tool, "arguments": call.arguments})
            return call.arguments
        action_type: ActionType = "json_repair" if call.unparseable else "tool_call_repair"
        fault = Fault("the tool call", action_type, call.original, call.text, call.problems, _place(step))
        _check_ending(response, fault)
        arguments = lenient_arguments(call.text, tool) if call.unparseable else call.arguments
        return self._repair_call(fault, arguments, step, tools, goal, context)

    def read_object(
        self,
        response: LLMResponse,
        what: str,
        read: Callable[[Any], T],
        *,
        schema: dict[str, Any],
        task: str,
        registry: ToolRegistry | None = None,
    ) -> T:
        """Return what `read` makes of the JSON of a reply, repaired where need be (adaptive FR-004).

        `what` names it in messages; `read` raises ValidationError, with `problems`, for what has not the form. Raises
        SupervisorError, and LLMError of the adapter.
        """
        text = without_thinking(clean_text(response.text))
        original: dict[str, Any] = {"text": text}
        action_type: ActionType = "json_repair"
        try:
            value, local = read_json(text)
            result = read(value)
        except ValidationError as error:
            problems, original = error.context["problems"], as_object(value)
            action_type = "plan_repair"
        except ValueError as error:
            problems = [str(error)]
        else:
            if local:
                self._repairs.local("json_repair", original, as_object(value))
            return result
        fault = Fault(what, action_type, original, text, problems)
        _check_ending(response, fault)
        request = self._request(fault, self._tools(registry), schema, task=task)
        return self._repairs.by_model(fault, request, lambda value: (read(value), as_object(plain(value))))

    def repair_arguments(
        self,
        step: PlanStep,
        arguments: dict[str, Any],
        problems: Sequence[str],
        registry: ToolRegistry | None = None,
        goal: str = "",
        *,
        context: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return valid arguments in place of a step's declared ones that do not fit (core FR-025, FR-030).

        `context` as for `read_tool_call`. Raises SupervisorError, and LLMError of the adapter.
        """
        original = {"tool_name": _tool_of(step), "arguments": plain(arguments)}
        text = to_line(original)
        fault = Fault("the tool call", "tool_call_repair", original, text, list(problems), _place(step))
        return self._repair_call(fault, original["arguments"], step, self._tools(registry), goal, context)

    def repair_missing_tool_step(
        self, step: PlanStep, tools: Sequence[Tool], plan_goal: str, *, registry: ToolRegistry | None = None
    ) -> PlanStep:
        """Return a new step that names one of `tools`, with the status of `step` and no errors (Decision 12).

        Only tool, agent and arguments that do not fit may differ; new arguments that the step's texts do not name are
        left out, for the step's own cycle to supply. Raises SupervisorError where neither attempt gives such a step
        (core FR-059 to FR-061, FR-065, FR-066), and LLMError of the adapter.
        """
        known = registry if registry is not None else self._registry
        known = known if known is not None else _registry_of(tools)
        names = [tool.name for tool in tools]
        errors = step.errors or validate_step_tool(step.model_copy(), known).errors
        original = step.model_dump(mode="json", exclude_none=True)
        fault = Fault("the step", "plan_repair", original, to_line(original), list(errors), _place(step))
        if not names:
            raise fault.unrecoverable(0, ["no tool is registered that the step could use", *fault.problems])

        def accept(value: Any) -> tuple[PlanStep, dict[str, Any]]:
            repaired = read_step(value, step)
            new = step.arguments is None and repaired.tool in names
            if new and new_arguments_refusal(repaired, known, goal=plan_goal):
                repaired = repaired.model_copy(update={"arguments": None})
            _refuse(step_refusal(step, repaired, names, known, goal=plan_goal))
            return repaired, repaired.model_dump(mode="json", exclude_none=True)

        schema = step_schema(step, names)
        # Null is how a model says that none of them fits.
        schema["properties"]["tool"]["enum"].append(None)
        request = self._request(fault, known, schema, step=step, goal=plan_goal, names=names)
        return self._repairs.by_model(fault, request, accept)

    def _repair_call(
        self,
        fault: Fault,
        arguments: dict[str, Any] | None,
        step: PlanStep,
        tools: ToolRegistry,
        goal: str,
        context: Mapping[str, str] | None,
    ) -> dict[str, Any]:
        tool = _tool_of(step)
        known = dict(context or {})
        evidence = Evidence(step.description, goal, fault.text, known.values())

        def accept(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            repaired = read_call(_in_call_form(value, tool), tool)
            if errors := validate_tool_call(tool, repaired, tools).errors:
                raise invalid([f"arguments: {error}" for error in errors])
            _refuse(call_refusal(arguments, repaired, tool, tools, evidence))
            return repaired, {"tool_name": tool, "arguments": repaired}

        schema = tool_call_schema(tool, tools.input_schema(tool).schema)
        request = self._request(fault, tools, schema, step=step, goal=goal, context=known)
        return self._repairs.by_model(fault, request, accept)

    def _request(
        self,
        fault: Fault,
        tools: ToolRegistry,
        schema: dict[str, Any],
        *,
        step: PlanStep | None = None,
        task: str = "",
        goal: str = "",
        context: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> Callable[[list[str]], LLMRequest]:
        """Return what makes the request of an attempt from the problems: the complete tool list, schema, original."""
        described = [tool for tool in tools.export_tools_for_llm() if names is None or tool["name"] in names]
        sections = {
            "task": task,
            "goal": goal,
            "tools": tools_section(described),
            "step": step_section(step) if step is not None else "",
            **(context or {}),
            "errors": "",
            "schema": to_line(schema),
            "original": fault.text,
        }

        def request(problems: list[str]) -> LLMRequest:
            return build_request(
                "repair",
                {**sections, "errors": "\n".join(problems)},
                schema=schema,
                max_tokens=self._max_tokens,
                folder=self._prompts_dir,
            )

        return request

    def _tools(self, registry: ToolRegistry | None) -> ToolRegistry:
        tools = registry if registry is not None else self._registry
        return tools if tools is not None else ToolRegistry()


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise invalid([reason])


def _tool_of(step: PlanStep) -> str:
    if step.tool is None:
        raise ValidationError(f"step {step.step_id!r} names no tool, so it has no tool call to read")
    return step.tool


def _place(step: PlanStep) -> dict[str, Any]:
    return {"step_id": step.step_id, "tool_name": step.tool}


def _registry_of(tools: Sequence[Tool]) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in tools:
        registry.register(tool)
    return registry


def _check_ending(response: LLMResponse, fault: Fault) -> None:
    """Note that a reply was cut off; a refusal is nothing to repair. Raises SupervisorError."""
    if response.stop_reason == "refusal":
        raise fault.unrecoverable(0, [f"the model refused: {response.text[:200].strip() or 'without a reason'}"])
    if response.stop_reason == "max_tokens":
        fault.problems.append("the reply was cut off at max_tokens, so its end is not known")


def _in_call_form(value: Any, tool: str) -> Any:
    # A model asked to repair arguments may well answer with the arguments alone.
    if isinstance(value, dict) and not {"tool_name", "arguments"} & set(value):
        return {"tool_name": tool, "arguments": value}
    return value
