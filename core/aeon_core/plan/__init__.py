"""Plans: reading and changing them.

`models.Plan`, `parsing.parse_plan` for replies, `files` for files, `refinement` for changes between passes.
"""

from typing import Literal

StepStatus = Literal["pending", "running", "complete", "failed", "invalid"]
ExecutionMode = Literal["tool", "llm", "fallback"]
"""A step's status and mode are defined here, since code that only reads journals needs no other entities."""
