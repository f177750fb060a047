"""The simulated model: built in, deterministic, answering by rules over the real prompt (contract: Models).

It recognises arithmetic, text and file tasks, makes a vague plan for every other one, and misbehaves on request.
"""

from aeon_core.llm.simulated.misbehaviours import SIMULATED_MODELS
from aeon_core.llm.simulated.model import SimulatedModel

__all__ = ["SIMULATED_MODELS", "SimulatedModel"]
