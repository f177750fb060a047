"""Aeon without a screen: the public names (contract: Python). Each is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aeon_core.approvals import ApprovalDecision as ApprovalDecision
    from aeon_core.approvals import ApprovalRequest as ApprovalRequest
    from aeon_core.config.schema import RunConfig as RunConfig
    from aeon_core.convergence import AdditionalCriterion as AdditionalCriterion
    from aeon_core.convergence import ConvergenceAssessment as ConvergenceAssessment
    from aeon_core.convergence import ConvergenceCriteria as ConvergenceCriteria
    from aeon_core.convergence import ConvergenceEngine as ConvergenceEngine
    from aeon_core.effects.replay_cursor import Difference as Difference
    from aeon_core.entities import RunResult as RunResult
    from aeon_core.entities import SemanticValidationReport as SemanticValidationReport
    from aeon_core.entities import StepResult as StepResult
    from aeon_core.entities import SupervisorAction as SupervisorAction
    from aeon_core.entities import ValidationIssue as ValidationIssue
    from aeon_core.errors import AeonError as AeonError
    from aeon_core.errors import LLMError as LLMError
    from aeon_core.errors import MemoryStoreError as MemoryStoreError
    from aeon_core.errors import ModelUnavailableError as ModelUnavailableError
    from aeon_core.errors import ReplayMismatchError as ReplayMismatchError
    from aeon_core.errors import SupervisorError as SupervisorError
    from aeon_core.errors import ToolError as ToolError
    from aeon_core.errors import UsageError as UsageError
    from aeon_core.errors import ValidationError as ValidationError
    from aeon_core.journal.history import ExecutionHistory as ExecutionHistory
    from aeon_core.journal.history import ExecutionPass as ExecutionPass
    from aeon_core.journal.history import open_history as open_history
    from aeon_core.journal.listing import list_runs as list_runs
    from aeon_core.journal.summary import RunSummary as RunSummary
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
    from aeon_core.runs.fork import Fork as Fork
    from aeon_core.runs.orchestrator import AsyncRunStream as AsyncRunStream
    from aeon_core.runs.orchestrator import Orchestrator as Orchestrator
    from aeon_core.runs.orchestrator import RunStream as RunStream
    from aeon_core.runs.replay import Replay as Replay
    from aeon_core.runs.replay import RunRequest as RunRequest
    from aeon_core.runs.replay import replay as replay
    from aeon_core.runs.resume import resume as resume
    from aeon_core.supervisor import Supervisor as Supervisor
    from aeon_core.task_profile import TaskProfile as TaskProfile
    from aeon_core.tools.base import Tool as Tool
    from aeon_core.tools.decorator import tool as tool
    from aeon_core.tools.registry import ToolRegistry as ToolRegistry
    from aeon_core.validation.plan_checks import ValidationResult as ValidationResult
    from aeon_core.validation.plan_checks import validate_step_tool as validate_step_tool
    from aeon_core.validation.validator import SemanticValidator as SemanticValidator
    from aeon_core.validation.validator import lint_plan as lint_plan

_PUBLIC = {
    "approvals": ("ApprovalDecision", "ApprovalRequest"),
    "config.schema": ("RunConfig",),
    "convergence": ("AdditionalCriterion", "ConvergenceAssessment", "ConvergenceCriteria", "ConvergenceEngine"),
    "effects.replay_cursor": ("Difference",),
    "entities": ("RunResult", "SemanticValidationReport", "StepResult", "SupervisorAction", "ValidationIssue"),
    "errors": (
        "AeonError",
        "LLMError",
        "MemoryStoreError",
        "ModelUnavailableError",
        "ReplayMismatchError",
        "SupervisorError",
        "ToolError",
        "UsageError",
        "ValidationError",
    ),
    "journal.history": ("ExecutionHistory", "ExecutionPass", "open_history"),
    "journal.listing": ("list_runs",),
    "journal.summary": ("RunSummary",),
    "kernel.state": ("OrchestrationState",),
    "llm.base": ("LLMAdapter", "LLMRequest", "LLMResponse"),
    "llm.connect": ("connect",),
    "memory": ("InMemoryStore", "Memory"),
    "plan.models": ("Plan", "PlanStep", "Subplan"),
    "reasoning": ("execute_llm_reasoning_step",),
    "runs.factory": ("build_tools",),
    "runs.fork": ("Fork",),
    "runs.orchestrator": ("AsyncRunStream", "Orchestrator", "RunStream"),
    "runs.replay": ("Replay", "RunRequest", "replay"),
    "runs.resume": ("resume",),
    "supervisor": ("Supervisor",),
    "task_profile": ("TaskProfile",),
    "tools.base": ("Tool",),
    "tools.decorator": ("tool",),
    "tools.registry": ("ToolRegistry",),
    "validation.plan_checks": ("ValidationResult", "validate_step_tool"),
    "validation.validator": ("SemanticValidator", "lint_plan"),
}
"""The public names of each module."""
if not TYPE_CHECKING:
    # Hidden from type checkers: with a `__getattr__`, they would accept any name.
    __all__, __getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
