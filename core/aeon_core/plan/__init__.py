"""Plans: reading and changing them.

`models.Plan`, `parsing.parse_plan` for replies, `files` for what a person writes, `requests` for what is asked of a
model, `refinement` for changes between passes.
"""

from collections.abc import Mapping
from typing import Literal

StepStatus = Literal["pending", "running", "complete", "failed", "invalid"]
ExecutionMode = Literal["tool", "llm", "fallback"]
"""A step's status and mode are defined here, since code that only reads journals needs no other entities."""


def end_of_chain(step_id: str, links: Mapping[str, str]) -> str:
    """Follow the links from a step to the end and return that step; the step itself if it has no link.

    Following what each step replaces gives the fragment that the ledger counts.
    """
    seen = {step_id}
    while (linked := links.get(step_id)) is not None and linked not in seen:
        seen.add(linked)
        step_id = linked
    return step_id
