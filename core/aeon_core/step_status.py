"""The words for how a step stands and how it ran; what only reads journals needs no more of the entities."""

from __future__ import annotations

from typing import Literal

StepStatus = Literal["pending", "running", "complete", "failed", "invalid"]
ExecutionMode = Literal["tool", "llm", "fallback"]
