"""The simulated model: built in, deterministic, labelled as simulated (contract: Models).

It calculates, uses a tool that a task names, follows `behaviours.yml` for every other task, and misbehaves on request.
"""

from aeon_core.llm.simulated.model import SIMULATED_MODELS, SimulatedModel

__all__ = ["SIMULATED_MODELS", "SimulatedModel"]
