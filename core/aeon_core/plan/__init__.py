"""Plans, and how they are read and changed.

`models.Plan`, `parsing.parse_plan` for replies, `files` for files, `refinement` for changes between passes.
"""

from typing import Literal

StepStatus = Literal["pending", "running", "complete", "failed", "invalid"]
ExecutionMode = Literal["tool", "llm", "fallback"]
"""The words for a step's status and mode are here since code that only reads journals needs no other entities."""
