"""The words for a step's status and mode; code that only reads journals needs no other entities."""

from __future__ import annotations

from typing import Literal

StepStatus = Literal["pending", "running", "complete", "failed", "invalid"]
ExecutionMode = Literal["tool", "llm", "fallback"]
