"""The supervisor turns replies into valid plans, tool calls and steps, or a structured error (core FR-027 to FR-033).

Each repair attempt is a SupervisorAction (core FR-050, FR-051; Decision 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from aeon_core.entities import SupervisorAction, as_object
from aeon_core.errors import SupervisorError, UsageError, ValidationError, invalid
from aeon_core.json_safe import clean_text, json_safe, parse_json
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMAdapter, LLMRequest, LLMResponse, as_adapter
from aeon_core.loose_json import MAX_REPAIRABLE, Doubt, UnreadableError, breaks_off, keys, read_reply, text_refusal
from aeon_core.plan.forms import canonical, normal_plan, plan_rows, step_row
from aeon_core.plan.models import Plan, PlanStep
from aeon_core.plan.parsing import arguments_by_tool, dump_plan, parse_loosely, shown
from aeon_core.plan.requests import plan_schema, step_schema, tool_call_schema
from aeon_core.prompts import build_request, step_section, to_line, tools_section
from aeon_core.repair_rules import call_refusal, plan_refusal, value_refusal
from aeon_core.suggest import check_type
from aeon_core.suggest import shown as shown_value
from aeon_core.tools.base import Tool, Tools
from aeon_core.tools.calls import Call, CallReader
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.schema import coerced, in_form, is_blank, letters, named, properties, unwrapped
from aeon_core.units import utc_timestamp
from aeon_core.validation.plan_checks import validate_step_tool

ActionType = Literal["json_repair", "tool_call_repair", "plan_repair"]
Method = Literal["local", "llm"]
Listener = Callable[[SupervisorAction, Method], None]
MAX_ATTEMPTS = 2


class NothingFitsError(ValidationError):
    """The model answered that there is no repair, which is final: it is not asked again."""


_CUT = "the reply was cut off at max_tokens, so its end is not known"
_TOO_LONG = "your previous reply was too long; write a much shorter one"
_CHARACTERS = 2
"""A cut reply with more than this many characters for each token of the limit has filled most of it."""


@dataclass(slots=True)
class Fault:
    """What has to be repaired: the original output, and what is wrong with it."""

    subject: str
    """What the output should have been, for messages, such as `the plan`."""
    action_type: ActionType
    original: dict[str, Any]
    text: str
    """The original as text for the model."""
    problems: list[str]
    context: dict[str, Any] = field(default_factory=dict)
    """The step and tool concerned, for the error."""

    @property
    def is_cut(self) -> bool:
        """Whether the model reached the limit of a reply."""
        return _CUT in self.problems

    def unrecoverable(self, attempts: int, problems: list[str]) -> SupervisorError:
        """Return the structured error for a failed repair (core FR-051)."""
        tried = f"in {attempts} attempt{'s' if attempts > 1 else ''}" if attempts else "at all"
        why = "it was cut off; raise max_tokens" if self.is_cut else problems[0]
        return SupervisorError(
            f"{self.subject} could not be repaired {tried}: {why}",
            unrecoverable=True,
            attempts=attempts,
            problems=problems,
            **self.context,
        )


@dataclass(frozen=True, slots=True)
class Repairs:
    """Runs repairs and reports each attempt to a listener."""

    llm: LLMAdapter
    on_action: Listener | None
    clock: Callable[[], str]

    def local(self, action_type: ActionType, original: dict[str, Any], repaired: dict[str, Any]) -> None:
        """Report a successful local repair."""
        self._report("local", action_type, original, 1, repaired_output=repaired)

    def by_model(
        self,
        fault: Fault,
        request: Callable[[list[str]], LLMRequest],
        accept: Callable[[LLMResponse], tuple[T, dict[str, Any]]],
    ) -> T:
        """Return the first result of `accept` for the model's reply; it raises ValidationError to refuse a reply.

        `request` returns an attempt's request, given the problems so far, which for the second attempt include why the
        first failed. Raises SupervisorError after two failures, or a final one; LLMError if the adapter does.
        """
        failed: list[str] = []
        for attempt in range(1, MAX_ATTEMPTS + 1):
            reply = self.llm.complete(request([*fault.problems, *failed]))
            try:
                result, repaired = accept(reply)
            except ValidationError as error:
                problems = error.context["problems"]
                failed = [f"the previous reply was refused: {problem}" for problem in problems]
                described = {"error_type": "ValidationError", "message": problems[0], "problems": problems}
                self._report("llm", fault.action_type, fault.original, attempt, error=described)
                if isinstance(error, NothingFitsError):
                    raise fault.unrecoverable(attempt, problems) from None
            else:
                self._report("llm", fault.action_type, fault.original, attempt, repaired_output=repaired)
                return result
        raise fault.unrecoverable(MAX_ATTEMPTS, problems)

    def _report(
        self, method: Method, action_type: ActionType, original: dict[str, Any], attempt: int, **outcome: Any
    ) -> None:
        if self.on_action is not None:
            action = SupervisorAction(
                action_type=action_type,
                original_output=original,
                attempt_number=attempt,
                timestamp=self.clock(),
                **outcome,
            )
            self.on_action(action, method)


T = TypeVar("T")
_CALL_KEYS = frozenset({"toolname", "name", "tool", "type", "id", "arguments"})
_NO_TOOL_FITS = "the model says that no tool does what the step asks"


class Supervisor:
    """Repairs invalid model output (core FR-028; Decision 6).

    A reply is parsed strictly, then repaired locally without loss. If that fails, the model is asked, twice at most:
    with a shorter prompt if part of the reply can be kept, else with the same request again. Every attempt is
    passed to `on_action` with its method, `local` or `llm`. A repair that changes what exists is refused. `registry`
    is the default for methods that are not given one; `on_substitution` is called for steps for which a repair chose a
    tool that they did not name, with their id and what they named, "" for none. Its methods raise SupervisorError if
    no repair succeeds, and LLMError if the adapter does.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        *,
        registry: Tools | None = None,
        on_action: Listener | None = None,
        on_substitution: Callable[[str, str], None] | None = None,
        clock: Callable[[], str] = utc_timestamp,
        prompts_dir: Path | None = None,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        for name, given in {"on_action": on_action, "on_substitution": on_substitution, "clock": clock}.items():
            if given is not None and not callable(given):
                raise UsageError(f"{name} is {shown_value(given)}, expected a function")
        check_type(prompts_dir, str | Path | None, "prompts_dir")
        check_type(max_tokens, int, "max_tokens")
        self._registry = registry if isinstance(registry, ToolRegistry | None) else ToolRegistry(registry)
        self._repairs = Repairs(as_adapter(llm), on_action, clock)
        self._substituted = on_substitution if on_substitution is not None else lambda _step_id, _named: None
        self._prompts_dir = prompts_dir
        self._max_tokens = max_tokens

    def read_plan(
        self,
        response: LLMResponse,
        registry: ToolRegistry | None = None,
        *,
        task: str = "",
        request: LLMRequest | None = None,
    ) -> Plan:
        """Return the plan in a reply to `task`, repaired if necessary (core FR-010, FR-031).

        If the reply has no plan, `request` (or an equivalent) is sent again. Unknown tools stay; they are repaired
        step by step.
        """
        check_type(response, LLMResponse, "the reply")
        tools = self._tools(registry)
        schema = plan_schema(tool.name for tool in tools)
        if request is None:
            request = build_request("plan", {"task": task, "tools": _described(tools)}, schema=schema)
        again: LLMRequest = request
        reply = _PlanReply(response, tools, self._max_tokens)
        if reply.plan is not None:
            if reply.changed:
                self._repairs.local(reply.action_type, {"text": reply.text}, dump_plan(reply.plan))
            return reply.plan
        fault = reply.fault()
        _check_ending(response, fault, fits=reply.fits)

        def ask(problems: list[str]) -> LLMRequest:
            if not reply.can_be_kept:
                return _with_problems(again, problems)
            return self._request(reply.fault(), problems, tools, schema, task=task)

        def accept(response: LLMResponse) -> tuple[Plan, dict[str, Any]]:
            nonlocal reply
            made = _PlanReply(response, tools, self._max_tokens)
            if made.plan is None:
                if not reply.can_be_kept:
                    reply = made
                raise invalid(made.problems)
            if reply.can_be_kept:
                for step_id, tool in reply.checked(made.plan):
                    self._substituted(step_id, tool)
            return made.plan, dump_plan(made.plan)

        try:
            return self._repairs.by_model(fault, ask, accept)
        except SupervisorError as error:
            raise error if fault.is_cut else reply.explained(error) from None

    def read_tool_call(
        self,
        response: LLMResponse,
        step: PlanStep,
        registry: ToolRegistry | None = None,
        *,
        goal: str = "",
        context: Mapping[str, str] | None = None,
        request: LLMRequest | None = None,
    ) -> dict[str, Any]:
        """Return the valid arguments of a reply's call of the step's tool (core FR-025, FR-030).

        The call may be a native tool call or text. `context` are the sections on results and memory that a repair may
        use; `request` is sent again if the reply has no call or lacks arguments.
        """
        tools, tool = self._tools(registry), _tool_of(step)
        call = CallReader(tool, tools).read(response)
        if not call.problems:
            if call.changed:
                self._repairs.local("json_repair", call.original, {"tool_name": tool, "arguments": call.arguments})
            return dict(call.arguments)
        _check_ending(response, _call_fault(call, step))
        return self._repair_call(call, step, tools, request, goal=goal, context=context)

    def repair_arguments(
        self,
        step: PlanStep,
        arguments: dict[str, Any],
        problems: Sequence[str],
        registry: ToolRegistry | None = None,
        goal: str = "",
        *,
        context: Mapping[str, str] | None = None,
        request: LLMRequest | None = None,
    ) -> dict[str, Any]:
        """Return valid arguments to replace a step's declared ones, which do not fit, as `read_tool_call` does."""
        tools, tool = self._tools(registry), _tool_of(step)
        original = {"tool_name": tool, "arguments": json_safe(arguments)}
        call = Call(original, to_line(original), original["arguments"], problems=list(problems))
        try:
            fitting: dict[str, Any] = CallReader(tool, tools).fitting(call.arguments)
        except ValidationError:
            return self._repair_call(call, step, tools, request, goal=goal, context=context)
        self._repairs.local("tool_call_repair", original, {"tool_name": tool, "arguments": fitting})
        return fitting

    def _repair_call(
        self, call: Call, step: PlanStep, tools: ToolRegistry, again: LLMRequest | None, **sections: Any
    ) -> dict[str, Any]:
        tool, fault = _tool_of(step), _call_fault(call, step)
        reader, schema = CallReader(tool, tools), tools.input_schema(tool)
        wanted = tool_call_schema(tool, schema.schema)
        given = call.arguments
        kept = given if isinstance(given, dict) else {} if is_blank(given) else {"": given}
        lacks = any(is_blank(kept.get(key)) for key in schema.schema.get("required", ()))
        lacks = lacks and kept.keys() <= properties(schema.schema).keys()
        asked = False

        def ask(problems: list[str]) -> LLMRequest:
            nonlocal asked
            first, asked = not asked, True
            own = call.is_empty or len(call.text) > MAX_REPAIRABLE or (first and lacks and call.written is None)
            if own and again is not None:
                return _with_problems(again, problems)
            return self._request(fault, problems, tools, wanted, step=step, **sections)

        def accept(response: LLMResponse) -> tuple[dict[str, Any], dict[str, Any]]:
            made = reader.read(response)
            if made.problems:
                raise invalid(made.problems)
            if call.written is None:
                _refuse(call_refusal(kept, made.arguments, schema))
            elif not call.is_empty:
                cut, around = breaks_off(call.written), _CALL_KEYS - {letters(key) for key in properties(schema.schema)}
                _refuse(text_refusal(call.written, made.arguments, cut=cut, name=letters, ignored=around))
            return made.arguments, {"tool_name": tool, "arguments": made.arguments}

        return self._repairs.by_model(fault, ask, accept)

    def read_object(
        self, response: LLMResponse, what: str, read: Callable[[Any], T], *, request: LLMRequest, task: str
    ) -> T:
        """Return the result of `read` for a reply's JSON, repaired if necessary (adaptive FR-004).

        `what` names it in messages; `read` raises ValidationError, with `problems`, for another form. If the reply has
        nothing that a repair could keep, `request` is sent again.
        """
        tools, text, cut = self._tools(None), clean_text(response.text), partial(_is_cut, response)
        schema = request.schema or {}

        def reading(value: Any, doubt: Doubt) -> tuple[T, Any, bool]:
            if doubt and not (isinstance(value, dict) and value.keys() >= schema.get("properties", {}).keys()):
                raise invalid(["it is not certain that all of it is there"])
            try:
                return read(value), value, False
            except ValidationError:
                bare = unwrapped(value, schema)
            with suppress(ValidationError):
                return read(bare), bare, True
            form = coerced(bare, schema, drop=not doubt)
            return read(form), form, True

        try:
            (result, value, changed), local = read_reply(text, reading, cut=cut)
        except UnreadableError as error:
            broken = error
        else:
            if changed or local:
                self._repairs.local("json_repair" if local else "plan_repair", {"text": text}, as_object(value))
            return result
        fault = _fault(what, broken, text)
        fits = _fits_again(response, self._max_tokens)
        _check_ending(response, fault, fits=fits)
        with suppress(ValueError, ValidationError):
            closed = _closed(broken.text, schema, cut)
            result = read(closed)
            self._repairs.local("json_repair", {"text": text}, closed)
            return result
        has_content = '"' in broken.text if broken.value is None else not is_blank(broken.value)
        is_kept = has_content and len(text) <= MAX_REPAIRABLE and fits

        def ask(problems: list[str]) -> LLMRequest:
            if not is_kept:
                return _with_problems(request, problems)
            return replace(self._request(fault, problems, tools, schema, task=task), most=request.most)

        def accept(reply: LLMResponse) -> tuple[T, dict[str, Any]]:
            (result, value, _), _ = read_reply(clean_text(reply.text), reading)
            if is_kept and broken.value is not None:
                _refuse(value_refusal(in_form(broken.value, schema), value, adds_tools=False))
            elif is_kept:
                _refuse(text_refusal(broken.text, value, cut=cut(), name=letters))
            return result, as_object(value)

        return self._repairs.by_model(fault, ask, accept)

    def repair_missing_tool_step(self, step: PlanStep, tools: Sequence[Tool], plan_goal: str) -> PlanStep:
        """Return a new step that names one of `tools`, with the status of `step` and no errors (Decision 12).

        Only tool, agent and arguments that do not fit may change (core FR-059 to FR-061, FR-065, FR-066). If the model
        says that no tool fits, it is not asked again.
        """
        check_type(step, PlanStep, "the step")
        known = self._registry
        if known is None:
            known = ToolRegistry(tools)
            tools = known.list()
        names = [tool.name for tool in tools]
        errors = step.errors or validate_step_tool(step.model_copy(), known).errors
        original = step.model_dump(mode="json", exclude_none=True)
        fault = Fault("the step", "plan_repair", original, to_line(original), list(errors), _place(step))
        if not names:
            raise fault.unrecoverable(0, ["no tool is registered that the step could use", *fault.problems])
        if step.tool is not None and (tool := named(step.tool, names)) is not None:
            repaired = step.model_copy(update={"tool": tool, "errors": None})
            self._repairs.local("plan_repair", original, repaired.model_dump(mode="json", exclude_none=True))
            return repaired

        def accept(reply: LLMResponse) -> tuple[PlanStep, dict[str, Any]]:
            value = read_reply(clean_text(reply.text), lambda value, _: value)[0]
            repaired = _repaired_step(step, value, names, known)
            self._substituted(step.step_id, step.tool or "")
            return repaired, repaired.model_dump(mode="json", exclude_none=True)

        ask = partial(self._request, fault, tools=known, schema=step_schema(step, names), step=step, goal=plan_goal)
        return self._repairs.by_model(fault, lambda problems: ask(problems=problems, names=names), accept)

    def _request(
        self,
        fault: Fault,
        problems: list[str],
        tools: ToolRegistry,
        schema: dict[str, Any],
        *,
        step: PlanStep | None = None,
        task: str = "",
        goal: str = "",
        context: Mapping[str, str] | None = None,
        names: Sequence[str] | None = None,
    ) -> LLMRequest:
        """Return a repair request with the tools, what is wrong, the schema and the original."""
        sections = {
            "task": task,
            "goal": goal,
            "tools": _described(tools, names),
            "step": step_section(step) if step is not None else "",
            **(context or {}),
            "errors": "\n".join(problems),
            "schema": to_line(schema),
            "original": fault.text,
        }
        return build_request("repair", sections, schema=schema, max_tokens=self._max_tokens, folder=self._prompts_dir)

    def _tools(self, registry: ToolRegistry | None) -> ToolRegistry:
        tools = registry if registry is not None else self._registry
        return tools if tools is not None else ToolRegistry()


class _PlanReply:
    """A reply's plan, or the parts of it that a repair has to keep."""

    def __init__(self, response: LLMResponse, tools: ToolRegistry, max_tokens: int) -> None:
        self.text = clean_text(response.text)
        self.plan: Plan | None = None
        self.problems: list[str] = []
        self._tools = tools
        self._known = arguments_by_tool(tools)
        self._cut = partial(_is_cut, response)
        self.fits = _fits_again(response, max_tokens)
        self._broken: UnreadableError | None = None
        try:
            (self.plan, changed), local = read_reply(self.text, self._read, cut=self._cut)
        except UnreadableError as error:
            self._broken, self.problems = error, error.problems
        else:
            self.changed = changed or local
            self.action_type: ActionType = "json_repair" if local else "plan_repair"

    def _read(self, value: Any, doubt: Doubt) -> tuple[Plan, bool]:
        return parse_loosely(value, self._tools, exact=doubt > 0)

    def fault(self) -> Fault:
        assert self._broken is not None
        return _fault("the plan", self._broken, self.text)

    def explained(self, error: SupervisorError) -> SupervisorError:
        """Return the error of the last attempt in plain words if this reply does not even resemble JSON."""
        if {"{", "["} & set(self.text):
            return error
        message = f"the model replied {shown_value(self.text)} instead of a plan"
        advice = "use a model that can write JSON, or pass a plan of your own"
        return SupervisorError(f"{message}; {advice}", **error.context)

    @property
    def can_be_kept(self) -> bool:
        """Whether there is something that a repair could keep: at least part of one step."""
        if self._broken is None or len(self.text) > MAX_REPAIRABLE or not self.fits:
            return False
        if self._broken.value is not None:
            return any(row.keys() - {"id", "parent"} for row in self._rows())
        return any(canonical(key) in ("description", "tool") for key in keys(self.text))

    def _rows(self) -> list[dict[str, Any]]:
        assert self._broken is not None
        return plan_rows(normal_plan(self._broken.value, self._known)[0])

    def checked(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the ids of steps for which a repair chose a tool, with what they had named. Raises ValidationError.

        New arguments for a tool that the step already named are removed, since the step's own cycle supplies them.
        """
        assert self._broken is not None
        if self._broken.value is None:
            arguments = {key for keys in self._known.values() for key in keys}
            name = lambda key: key if key in arguments else canonical(key)  # noqa: E731
            _refuse(text_refusal(self._broken.text, self._normal(plan), cut=self._cut(), name=name))
            return []
        rows = self._rows()
        for row, step in zip(rows, plan.walk(), strict=False):
            schema = self._tools.input_schema(step.tool) if step.tool is not None and step.tool in self._tools else None
            fits = schema is None or not schema.errors(step.arguments or {})
            if "arguments" not in row and (row.get("tool") in self._tools or not fits):
                step.arguments = None
        _refuse(plan_refusal(normal_plan(self._broken.value, self._known)[0], self._normal(plan), self._tools))
        chosen = zip(rows, plan.walk(), strict=True)
        return [
            (step.step_id, row.get("tool") or "") for row, step in chosen if step.tool not in (None, row.get("tool"))
        ]

    def _normal(self, plan: Plan) -> Any:
        return normal_plan(dump_plan(plan), self._known)[0]


def _repaired_step(original: PlanStep, value: Any, names: Sequence[str], registry: ToolRegistry) -> PlanStep:
    """Return the repaired step. Raises NothingFitsError if it names no tool, ValidationError for other problems."""
    row, steps = step_row(value) if value is not None else ({}, 1)
    if steps != 1:
        raise invalid([f"expected one step, got {steps}"])
    if is_blank(row.get("tool")):
        raise NothingFitsError(_NO_TOOL_FITS, problems=[_NO_TOOL_FITS])
    was = plan_rows({"steps": [original.model_dump(exclude_none=True, exclude={"subplan"})]})[0]
    for name in ("id", "description", "depends_on", "replaces"):
        if value_refusal(row.get(name), was.get(name, "nothing")) is not None:
            changed = f"from {shown(was.get(name))} to {shown(row[name])}"
            raise invalid([f"{name} was changed {changed}; a repair keeps it"])
    tool = named(str(row["tool"]), names)
    if tool is None:
        raise invalid([f"the repaired step names {row['tool']!r} as its tool, not one of the tools it may use"])
    step = original.model_copy(update={"tool": tool, "agent": None, "errors": None})
    schema = registry.input_schema(tool)
    if is_blank(row.get("arguments")) or (original.arguments is not None and not schema.errors(original.arguments)):
        return step
    arguments = coerced(row["arguments"], schema.schema, drop=False)
    if errors := schema.errors(arguments):
        # The step's own cycle supplies its arguments if it had none.
        _refuse(errors[0] if original.arguments is not None else None)
        return step
    _refuse(call_refusal(original.arguments or {}, arguments, schema) if original.arguments is not None else None)
    return step.model_copy(update={"arguments": arguments})


def _call_fault(call: Call, step: PlanStep) -> Fault:
    action: ActionType = "json_repair" if call.written is not None else "tool_call_repair"
    return Fault("the tool call", action, call.original, call.text, call.problems, _place(step))


def _fault(what: str, broken: UnreadableError, text: str) -> Fault:
    if broken.value is None:
        return Fault(what, "json_repair", {"text": text}, text, list(broken.problems))
    return Fault(what, "plan_repair", as_object(broken.value), text, list(broken.problems))


def _with_problems(request: LLMRequest, problems: list[str]) -> LLMRequest:
    """Return the request with the problems of the reply to it added."""
    *before, last = request.messages
    problems_text = "\n".join(["<errors>", *problems, "</errors>"])
    return replace(request, messages=[*before, {**last, "content": f"{last['content']}\n\n{problems_text}"}])


def _described(tools: ToolRegistry, names: Sequence[str] | None = None) -> str:
    return tools_section(tool for tool in tools.export_tools_for_llm() if names is None or tool["name"] in names)


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise invalid([reason])


def _tool_of(step: PlanStep) -> str:
    if step.tool is None:
        raise ValidationError(f"step {step.step_id!r} names no tool, so it has no tool call to read")
    return step.tool


def _place(step: PlanStep) -> dict[str, Any]:
    return {"step_id": step.step_id, "tool_name": step.tool}


def _is_cut(response: LLMResponse) -> bool:
    return response.stop_reason == "max_tokens" or breaks_off(clean_text(response.text))


def _closed(text: str, schema: dict[str, Any], cut: Callable[[], bool]) -> dict[str, Any]:
    """Return the object of a cut reply that ends in a text of its own, if only lists would follow in the schema.

    Nothing that counts is missing then: the text ends where it was cut off. Raises ValueError for any other reply.
    """
    value = parse_json(f'{text}"}}', unique_keys=True)
    fields = list(schema.get("properties", {}).items())
    before, after = dict(fields[: len(value)]), fields[len(value) :]
    if value.keys() != before.keys() or any(field.get("type") != "array" for _, field in after) or not cut():
        raise ValueError("more than the end of its last text is missing")
    return dict(value)


def _fits_again(response: LLMResponse, max_tokens: int) -> bool:
    """Return whether a repair has room to repeat the reply: what was cut off may be short next to its thinking."""
    return response.stop_reason != "max_tokens" or len(response.text) <= _CHARACTERS * max_tokens


def _check_ending(response: LLMResponse, fault: Fault, *, fits: bool = True) -> None:
    """Add a problem if a reply was cut off. Raises SupervisorError for a refusal, which cannot be repaired."""
    if response.stop_reason == "refusal":
        raise fault.unrecoverable(0, [f"the model refused: {response.text[:200].strip() or 'without a reason'}"])
    if response.stop_reason == "max_tokens":
        fault.problems.append(_CUT)
        if not fits:
            fault.problems.append(_TOO_LONG)
