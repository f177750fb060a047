"""Every prompt: system prompts are text files beside this module, the user message consists of named sections.

A section is written as `<name>` on a line, its text, and `</name>` on a line, so that a model (and the simulated one)
can tell the parts from each other. A folder with files of the same names replaces the system prompts one by one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from aeon_core.errors import UsageError
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest, Purpose
from aeon_core.regular_file import read_text

_MAX_BYTES = 1_000_000


def check_prompts(folder: Path) -> None:
    """Read the prompts of a folder, which the run uses from here on. Raises UsageError if it is unusable."""
    if not folder.is_dir():
        raise UsageError(f"the prompts_dir {str(folder)!r} is not a folder; make it, or leave the key out")
    for purpose in get_args(Purpose):
        prompt_text(purpose, folder)


def system_prompt(purpose: Purpose, folder: Path | None = None) -> str:
    """Return the system prompt for a purpose; it starts with the line `Aeon <purpose>`. Raises UsageError."""
    return f"Aeon {purpose}\n\n{prompt_text(purpose, folder)}\n"


@lru_cache(maxsize=64)
def prompt_text(name: str, folder: Path | None = None) -> str:
    """Return the text of a prompt: the folder's, else Aeon's own. Raises UsageError."""
    if folder is None or not os.path.lexists(own := folder / f"{name}.md"):
        return resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8").strip()
    return read_text(own, f"the prompt {str(own)!r}", _MAX_BYTES).strip()


def build_request(
    purpose: Purpose,
    sections: Mapping[str, str],
    *,
    schema: dict[str, Any] | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    folder: Path | None = None,
) -> LLMRequest:
    """Return the request for a purpose. Empty sections are left out; the others keep their order."""
    content = "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in sections.items() if text)
    return LLMRequest(
        purpose=purpose,
        system=system_prompt(purpose, folder),
        messages=[{"role": "user", "content": content}],
        schema=schema,
        max_tokens=max_tokens,
    )
