"""The execution of one step in its four modes (Decision 11; core FR-052 to FR-066)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from aeon_core.config.schema import RunConfig
from aeon_core.effects.approvals import authorize_call
from aeon_core.effects.port import EffectModel, Effects
from aeon_core.effects.run_memory import StepMemory
from aeon_core.entities import SupervisorAction, ToolCall
from aeon_core.errors import AeonError, LLMError, RunEnding, SupervisorError, ToolError
from aeon_core.journal.records import CycleRecord, PlanCause, PlanRecord, StepRecord, SupervisorRecord, TTLRecord
from aeon_core.kernel.state import Cycle, OrchestrationState, PlanRecorder, ReadOnly
from aeon_core.llm.base import LLMRequest, LLMResponse, Purpose
from aeon_core.plan import ExecutionMode, StepStatus
from aeon_core.plan.models import Plan, PlanStep, Subplan, steps_to_gather
from aeon_core.policy import Policy
from aeon_core.prompts import build_request, memory_section, run_sections, step_section, tools_section
from aeon_core.reasoning import execute_llm_reasoning_step
from aeon_core.supervisor import Supervisor
from aeon_core.tools.base import Tool
from aeon_core.tools.registry import ToolRegistry
from aeon_core.validation.plan_checks import validate_step_tool, validate_tool_call


class TTLExpired(Exception):
    """A cycle is needed, but none is left."""


@dataclass
class Executor:
    """Runs the cycles and steps of one run. Everything it emits and requests goes through `effects`."""

    effects: Effects
    state: OrchestrationState
    registry: ToolRegistry
    config: RunConfig
    recorder: PlanRecorder = field(default_factory=PlanRecorder)
    cycle: Cycle = field(default_factory=lambda: Cycle({}, open=False))
    cycles: int = 0

    def __post_init__(self) -> None:
        place = lambda: (self.state.pass_number, self.state.current_step_id)  # noqa: E731
        mode, answers = lambda: self.state.reasoning_mode, lambda: self.state.answers
        self.llm: EffectModel = EffectModel(self.effects, place, self._replied, mode, answers)
        self.memory: StepMemory = StepMemory(self.effects.memory, place, lambda: self.state.outdated)
        self.policy: Policy = Policy(self.effects.rules)
        self.supervisor: Supervisor = Supervisor(
            self.llm,
            registry=self.registry,
            on_action=self._repaired,
            on_substitution=self.state.substitutions.__setitem__,
            clock=lambda: self.effects.now,
            prompts_dir=self.config.prompts_dir,
            max_tokens=self.config.max_tokens,
        )

    @property
    def plan(self) -> Plan:
        assert self.state.plan is not None
        return self.state.plan

    def check(self) -> None:
        """Act on what a person did and on the TTL (core FR-005, Decision 10). Raises RunAborted, TTLExpired."""
        if self.state.limited(self.effects.control()):
            self.emit_ttl("the limit was changed")
        if self.state.ttl_remaining < 1:
            raise TTLExpired

    def begin_cycle(self) -> None:
        """Start a cycle. Raises RunAborted, TTLExpired."""
        self.check()
        self.cycle = Cycle(self.recorder.at_cycle_start())

    def end_cycle(self) -> None:
        """Write the cycle; one that processed a reply costs one TTL cycle (core FR-035, FR-039)."""
        cycle, state = self.cycle, self.state
        cycle.open = False
        if cycle.llm_output:
            state.spend_cycle()
            self.emit_ttl(f"cycle {self.cycles + 1}")
        self.cycles += 1
        counters: dict[str, Any] = {"step_number": self.cycles, "timestamp": self.effects.now}
        counters["ttl_remaining"] = state.ttl_remaining
        self.recorder.cycle_written(self.effects.emit(CycleRecord(**cycle.entry(), **counters)))

    @contextmanager
    def in_cycle(self) -> Iterator[None]:
        """Make the work inside one cycle; if it fails for good, the cycle is written with its error (core FR-039,
        FR-049).
        """
        self.begin_cycle()
        try:
            yield
        except RunEnding:
            raise
        except AeonError as error:
            self.cycle.errors.append(error.as_dict())
            self.end_cycle()
            raise
        self.end_cycle()

    def emit_ttl(self, reason: str) -> None:
        """Journal the TTL and the running totals."""
        usage, cost_usd = dict(self.effects.models.usage), self.effects.models.cost_usd
        ttl = self.state.ttl.model_dump()
        self.effects.emit(TTLRecord(**ttl, reason=reason, usage=usage, cost_usd=cost_usd))

    def emit_plan(self, cause: PlanCause, step_id: str | None = None) -> None:
        """Journal the plan after its structure changed."""
        self.recorder.structure(self.plan)
        number, chosen = self.state.pass_number, self.state.substitutions or None
        self.effects.emit(
            PlanRecord(pass_number=number, cause=cause, plan=self.plan, step_id=step_id, substitutions=chosen)
        )

    def request(self, purpose: Purpose, **sections: str) -> LLMRequest:
        """Return a request with goal, plan state, results and TTL around the given sections (core FR-002)."""
        around = self._context()
        ttl = around.pop("ttl")
        content = {**around, **sections, "ttl": ttl}
        return build_request(purpose, content, max_tokens=self.config.max_tokens, folder=self.config.prompts_dir)

    def _context(self) -> dict[str, str]:
        state, n = self.state, self.state.output_characters
        return run_sections(self.plan, state.outputs, state.failures, state.ttl, state.current_step_id, characters=n)

    def execute(self, step: PlanStep, siblings: list[PlanStep]) -> None:
        """Run a step, its substeps first, to `complete` or `failed`. Raises LLMError only if the model fails."""
        parent_id = self.state.current_step_id
        if step.subplan is None:
            self.begin_cycle()
            self.state.current_step_id = step.step_id
            self._move(step, "running")
        else:
            self._execute_subplan(step, step.subplan)
            self.begin_cycle()
        try:
            step, output = self._run(step, siblings)
        except (RunEnding, TTLExpired):
            raise
        except LLMError as error:
            self._fail(step, error)
            self.end_cycle()
            raise
        except AeonError as error:
            self._fail(step, error)
        else:
            self._complete(step, output)
        self.state.current_step_id = parent_id
        self.end_cycle()

    def _execute_subplan(self, step: PlanStep, subplan: Subplan) -> None:
        self.check()
        self.state.current_step_id = step.step_id
        self._move(step, "running")
        try:
            for substep in list(subplan.substeps):
                if substep.status == "pending":
                    self.execute(substep, subplan.substeps)
        except LLMError as error:
            self._fail(step, AeonError(f"a substep failed: {error.message}", error_type="failed_substeps"))
            raise

    def _run(self, step: PlanStep, siblings: list[PlanStep]) -> tuple[PlanStep, dict[str, Any]]:
        """Return the step that ran, repaired in place if necessary, and its output."""
        step, mode = self._route(step, siblings)
        try:
            return step, self._perform(step, mode)
        except (ToolError, SupervisorError):
            unregistered = mode == "tool" and self.registry.get(step.tool or "") is None
            if not unregistered or self.cycle.tool_calls:
                raise
        step, mode = self._route(step, siblings)
        return step, self._perform(step, mode)

    def _move(self, step: PlanStep, status: StepStatus, **fields: Any) -> None:
        step.status = status
        self.recorder.changed(step)
        self.effects.emit(StepRecord(pass_number=self.state.pass_number, step_id=step.step_id, status=status, **fields))

    def _complete(self, step: PlanStep, output: dict[str, Any]) -> None:
        self.state.outputs[step.step_id] = output
        if problem := self.effects.memory.remember(step.step_id, output):
            self._note(AeonError(f"memory did not store the result: {problem}", error_type="MemoryStoreError"), step)
        self._move(step, "complete", mode=self.state.modes.get(step.step_id), output=output)

    def _fail(self, step: PlanStep, error: AeonError) -> None:
        # A repair may have replaced the object.
        step = self.plan.find(step.step_id) or step
        self._note(error, step)
        self.state.failures[step.step_id] = [error.message]
        self._move(step, "failed", mode=self.state.modes.get(step.step_id), errors=[error.message])

    def _note(self, error: AeonError, step: PlanStep) -> None:
        self.cycle.errors.append({"step_id": step.step_id, **error.as_dict()})

    def _route(self, step: PlanStep, siblings: list[PlanStep]) -> tuple[PlanStep, ExecutionMode | None]:
        """Return the step to run, repaired in place if necessary, and its mode (core FR-058 to FR-061)."""
        checked = validate_step_tool(step, self.registry)
        mode: ExecutionMode | None
        if checked.valid:
            mode = "tool" if step.tool is not None else "llm" if step.agent is not None else None
        else:
            self.recorder.changed(step)
            self.cycle.errors += [
                {"step_id": step.step_id, "error_type": "ValidationError", "message": message}
                for message in checked.errors
            ]
            step, mode = self._repair(step, siblings)
        if mode is not None:
            self.state.modes[step.step_id] = mode
        return step, mode

    def _repair(self, step: PlanStep, siblings: list[PlanStep]) -> tuple[PlanStep, ExecutionMode]:
        try:
            repaired = self.supervisor.repair_missing_tool_step(step, self.registry.list(), self.plan.goal)
        except SupervisorError as error:
            self._note(error, step)
            # Reasoning answers it, so that the plan names no missing tool (core FR-061, FR-069).
            repaired = step.model_copy(update={"tool": None, "agent": "llm"})
        place = next(index for index, sibling in enumerate(siblings) if sibling is step)
        siblings[place] = repaired
        self.emit_plan("repaired", repaired.step_id)
        return repaired, "tool" if repaired.tool is not None else "fallback"

    def _perform(self, step: PlanStep, mode: ExecutionMode | None) -> dict[str, Any]:
        if mode == "tool":
            return self._call_tool(step)
        if mode is None:
            return self._gather(step)
        return execute_llm_reasoning_step(
            step,
            self.memory,
            self.llm,
            purpose="reason" if mode == "llm" else "fallback",
            context=self._context(),
            shown=self.state.outputs,
            characters=self.state.output_characters,
            max_tokens=self.config.max_tokens,
            prompts_dir=self.config.prompts_dir,
        )

    def _gather(self, step: PlanStep) -> dict[str, Any]:
        """Return the outputs of a step that consists only of its substeps."""
        assert step.subplan is not None
        valid = steps_to_gather(self.plan, step)
        failed = [substep.step_id for substep in valid if substep.status != "complete"]
        if failed:
            raise AeonError(f"substeps failed: {', '.join(failed)}", error_type="failed_substeps")
        return {substep.step_id: self.state.outputs[substep.step_id] for substep in valid}

    def _call_tool(self, step: PlanStep) -> dict[str, Any]:
        tool = self.registry.get(step.tool or "")
        if tool is None:
            raise ToolError(f"tool {step.tool!r} is no longer registered", tool_name=step.tool)
        number, named = self.state.pass_number, self.state.substitution_of(step)
        schema, wanted = self.registry.input_schema(tool.name), self.registry.output_schema(tool.name)
        given = self._arguments(step, tool)
        arguments = authorize_call(
            self.effects,
            self.policy,
            tool,
            step.step_id,
            given,
            schema=schema,
            pass_number=number,
            description=step.description,
            substitutes=named,
            objection=self.state.objection_to(step),
        )
        outcome = self.effects.invoke(
            tool, arguments, wanted, pass_number=number, step_id=step.step_id, substitutes=named
        )
        call = ToolCall(
            tool_name=tool.name,
            arguments=arguments,
            result=outcome.result,
            error=outcome.error,
            timestamp=self.effects.now,
            step_id=step.step_id,
        )
        self.cycle.tool_calls.append(call)
        self.state.tool_history.append(call)
        if outcome.result is None:
            details = dict(outcome.error or {})
            raise ToolError(details.pop("message", "the tool failed"), tool_name=tool.name, cause=details or None)
        return outcome.result

    def _arguments(self, step: PlanStep, tool: Tool) -> dict[str, Any]:
        """Return validated arguments: the step's own, else those of a `tool_call` cycle (core FR-025, FR-056)."""
        if step.arguments is None:
            request = self._call_request(step, tool)
            response = self.llm.complete(request)
            return self.supervisor.read_tool_call(
                response, step, self.registry, goal=self.plan.goal, context=self._known(), request=request
            )
        checked = validate_tool_call(tool.name, step.arguments, self.registry)
        if checked.valid:
            return dict(step.arguments)
        known: dict[str, Any] = {"context": self._known(), "request": self._call_request(step, tool)}
        return self.supervisor.repair_arguments(
            step, step.arguments, checked.errors, self.registry, self.plan.goal, **known
        )

    def _call_request(self, step: PlanStep, tool: Tool) -> LLMRequest:
        described = [entry for entry in self.registry.export_tools_for_llm() if entry["name"] == tool.name]
        sections = {"memory": self._memory(), "step": step_section(step), "tools": tools_section(described)}
        return replace(self.request("tool_call", **sections), tools=described)

    def _known(self) -> dict[str, str]:
        """Return the sections that a tool call repair needs: earlier outputs and the memory's content."""
        return {"results": self._context()["results"], "memory": self._memory()}

    def _memory(self) -> str:
        state = self.state
        return memory_section(dict(self.memory.search("")), shown=state.outputs, characters=state.output_characters)

    def _replied(self, request: LLMRequest, response: LLMResponse) -> None:
        output = response.model_dump(exclude_none=True)
        self.state.llm_outputs.append(ReadOnly(output))
        if request.purpose != "repair":
            self.cycle.llm_output = output

    def _repaired(self, action: SupervisorAction, method: Literal["local", "llm"]) -> None:
        self.state.supervisor_actions.append(action)
        self.cycle.supervisor_actions.append(action)
        fields = {name: getattr(action, name) for name in SupervisorAction.model_fields}
        self.effects.emit(
            SupervisorRecord(
                **fields, method=method, pass_number=self.state.pass_number, step_id=self.state.current_step_id
            )
        )
