"""The simulated model: built in, deterministic, labelled as simulated (contract: Models).

It calculates, calls tools that a task names, follows `behaviours.yml` for other tasks, and misbehaves on request.
"""

from aeon_core.llm.simulated.model import SIMULATED_MODELS, SimulatedModel

__all__ = ["SIMULATED_MODELS", "SimulatedModel"]
