"""The second workflow: thirteen agents in sequence, with quality gates between them.

    from system2 import AutoApproveGates, Orchestrator

    result = Orchestrator(project_root, gate_policy=AutoApproveGates()).run("build a REST API for invoices")

The names load what they need when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from system2.agents.library import AgentDefinition as AgentDefinition
    from system2.contracts import CompletionSignal as CompletionSignal
    from system2.contracts import DelegationContract as DelegationContract
    from system2.orchestrator import Orchestrator as Orchestrator
    from system2.policies import AutoApproveGates as AutoApproveGates
    from system2.policies import BashPolicy as BashPolicy
    from system2.policies import GateDecision as GateDecision
    from system2.policies import GateDecisionType as GateDecisionType
    from system2.policies import GatePolicy as GatePolicy
    from system2.policies import Question as Question
    from system2.policies import QuestionPolicy as QuestionPolicy
    from system2.session import AgentResult as AgentResult
    from system2.workflow_result import WorkflowResult as WorkflowResult
    from system2.workflow_result import WorkflowStatus as WorkflowStatus

_PUBLIC = {
    "AgentDefinition": "agents.library",
    "AgentResult": "session",
    "AutoApproveGates": "policies",
    "BashPolicy": "policies",
    "CompletionSignal": "contracts",
    "DelegationContract": "contracts",
    "GateDecision": "policies",
    "GateDecisionType": "policies",
    "GatePolicy": "policies",
    "Orchestrator": "orchestrator",
    "Question": "policies",
    "QuestionPolicy": "policies",
    "WorkflowResult": "workflow_result",
    "WorkflowStatus": "workflow_result",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"system2.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
