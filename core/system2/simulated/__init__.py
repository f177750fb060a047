"""A model by rules that plays the thirteen agents: no key, no network, always labelled as simulated."""

from system2.simulated.model import SIMULATED_WORKFLOWS, SimulatedAgents

__all__ = ["SIMULATED_WORKFLOWS", "SimulatedAgents"]
