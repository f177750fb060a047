"""The second workflow: thirteen agents in sequence, with quality gates between them.

    from system2 import AutoApproveGatePolicy, Orchestrator

    result = Orchestrator(project_root, gate_policy=AutoApproveGatePolicy()).run("build a REST API for invoices")

The names load what they need when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from system2.agents import AgentDefinition as AgentDefinition
    from system2.contracts import CompletionSignal as CompletionSignal
    from system2.contracts import DelegationContract as DelegationContract
    from system2.cost import CostRecord as CostRecord
    from system2.orchestrator import Orchestrator as Orchestrator
    from system2.policies import AutoApproveGatePolicy as AutoApproveGatePolicy
    from system2.policies import AutoApproveGates as AutoApproveGates
    from system2.policies import BashPolicy as BashPolicy
    from system2.policies import GateDecision as GateDecision
    from system2.policies import GateDecisionType as GateDecisionType
    from system2.policies import GatePolicy as GatePolicy
    from system2.policies import Question as Question
    from system2.policies import QuestionPolicy as QuestionPolicy
    from system2.session import AgentResult as AgentResult
    from system2.workflow import WorkflowResult as WorkflowResult
    from system2.workflow import WorkflowStatus as WorkflowStatus

_PUBLIC = {
    "agents": ("AgentDefinition",),
    "contracts": ("CompletionSignal", "DelegationContract"),
    "cost": ("CostRecord",),
    "orchestrator": ("Orchestrator",),
    "policies": (
        "AutoApproveGatePolicy",
        "AutoApproveGates",
        "BashPolicy",
        "GateDecision",
        "GateDecisionType",
        "GatePolicy",
        "Question",
        "QuestionPolicy",
    ),
    "session": ("AgentResult",),
    "workflow": ("WorkflowResult", "WorkflowStatus"),
}
"""The public names of each module."""
__all__ = sorted(name for names in _PUBLIC.values() for name in names)


if not TYPE_CHECKING:  # see aeon_core

    def __getattr__(name: str) -> Any:
        # Not imported above: an older Python must reach the check in `__main__`, which says so (REQ-142).
        from aeon_core.lazy_names import lazy_names

        _, load, _ = lazy_names(__name__, _PUBLIC)
        return load(name)


def __dir__() -> list[str]:
    return __all__
