"""Aeon without a screen: the public names (contract: Python). They load what they need when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aeon_core.adaptive.profile import TaskProfile as TaskProfile
    from aeon_core.approvals.pending import ApprovalDecision as ApprovalDecision
    from aeon_core.approvals.pending import ApprovalRequest as ApprovalRequest
    from aeon_core.config.schema import RunConfig as RunConfig
    from aeon_core.convergence.criteria import ConvergenceCriteria as ConvergenceCriteria
    from aeon_core.convergence.engine import ConvergenceEngine as ConvergenceEngine
    from aeon_core.effects.replay_cursor import Difference as Difference
    from aeon_core.entities import RunResult as RunResult
    from aeon_core.errors import AeonError as AeonError
    from aeon_core.errors import LLMError as LLMError
    from aeon_core.errors import SupervisorError as SupervisorError
    from aeon_core.errors import ToolError as ToolError
    from aeon_core.errors import ValidationError as ValidationError
    from aeon_core.journal.history import ExecutionHistory as ExecutionHistory
    from aeon_core.journal.history import open_history as open_history
    from aeon_core.journal.listing import list_runs as list_runs
    from aeon_core.kernel.state import OrchestrationState as OrchestrationState
    from aeon_core.llm.base import LLMAdapter as LLMAdapter
    from aeon_core.llm.base import LLMRequest as LLMRequest
    from aeon_core.llm.base import LLMResponse as LLMResponse
    from aeon_core.llm.connect import connect as connect
    from aeon_core.memory import InMemoryStore as InMemoryStore
    from aeon_core.memory import Memory as Memory
    from aeon_core.plan.models import Plan as Plan
    from aeon_core.plan.models import PlanStep as PlanStep
    from aeon_core.plan.models import Subplan as Subplan
    from aeon_core.reasoning import execute_llm_reasoning_step as execute_llm_reasoning_step
    from aeon_core.runs.factory import build_tools as build_tools
    from aeon_core.runs.orchestrator import Orchestrator as Orchestrator
    from aeon_core.runs.replay import Replay as Replay
    from aeon_core.runs.replay import RunRequest as RunRequest
    from aeon_core.runs.replay import replay as replay
    from aeon_core.runs.resume import resume as resume
    from aeon_core.runs.stream import AsyncRunStream as AsyncRunStream
    from aeon_core.runs.stream import RunStream as RunStream
    from aeon_core.supervisor.supervisor import Supervisor as Supervisor
    from aeon_core.tools.base import Tool as Tool
    from aeon_core.tools.decorator import tool as tool
    from aeon_core.tools.registry import ToolRegistry as ToolRegistry
    from aeon_core.validation.lint import lint_plan as lint_plan
    from aeon_core.validation.plan_checks import ValidationResult as ValidationResult
    from aeon_core.validation.plan_checks import validate_step_tool as validate_step_tool
    from aeon_core.validation.report import SemanticValidationReport as SemanticValidationReport
    from aeon_core.validation.validator import SemanticValidator as SemanticValidator

_PUBLIC = {
    "AeonError": "errors",
    "AsyncRunStream": "runs.stream",
    "ApprovalDecision": "approvals.pending",
    "ApprovalRequest": "approvals.pending",
    "ConvergenceCriteria": "convergence.criteria",
    "ConvergenceEngine": "convergence.engine",
    "Difference": "effects.replay_cursor",
    "ExecutionHistory": "journal.history",
    "InMemoryStore": "memory",
    "LLMAdapter": "llm.base",
    "LLMError": "errors",
    "LLMRequest": "llm.base",
    "LLMResponse": "llm.base",
    "Memory": "memory",
    "OrchestrationState": "kernel.state",
    "Orchestrator": "runs.orchestrator",
    "Plan": "plan.models",
    "PlanStep": "plan.models",
    "Replay": "runs.replay",
    "RunConfig": "config.schema",
    "RunRequest": "runs.replay",
    "RunResult": "entities",
    "RunStream": "runs.stream",
    "SemanticValidationReport": "validation.report",
    "SemanticValidator": "validation.validator",
    "Subplan": "plan.models",
    "Supervisor": "supervisor.supervisor",
    "SupervisorError": "errors",
    "TaskProfile": "adaptive.profile",
    "Tool": "tools.base",
    "ToolError": "errors",
    "ToolRegistry": "tools.registry",
    "ValidationError": "errors",
    "ValidationResult": "validation.plan_checks",
    "build_tools": "runs.factory",
    "connect": "llm.connect",
    "execute_llm_reasoning_step": "reasoning",
    "lint_plan": "validation.lint",
    "list_runs": "journal.listing",
    "open_history": "journal.history",
    "replay": "runs.replay",
    "resume": "runs.resume",
    "tool": "tools.decorator",
    "validate_step_tool": "validation.plan_checks",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"aeon_core.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
