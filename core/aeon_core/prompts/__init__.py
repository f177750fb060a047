"""Every prompt: the system prompts are text files beside this module, the user message is made of named sections.

A section is written as `<name>` on a line, its text, and `</name>` on a line, so that a model (and the simulated one)
can tell the parts from each other. A folder with files of the same names replaces the system prompts one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from aeon_core.errors import UsageError
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest, Purpose


@lru_cache(maxsize=64)
def system_prompt(purpose: Purpose, folder: Path | None = None) -> str:
    """Return the system prompt for a purpose; it begins with the line `Aeon <purpose>`. Raises UsageError."""
    text = None
    if folder is not None and (own := folder / f"{purpose}.md").exists():
        try:
            text = own.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the prompt {str(own)!r} cannot be read: {error}") from None
    if text is None:
        text = resources.files(__package__).joinpath(f"{purpose}.md").read_text(encoding="utf-8")
    return f"Aeon {purpose}\n\n{text.strip()}\n"


def build_request(
    purpose: Purpose,
    sections: Mapping[str, str],
    *,
    schema: dict[str, Any] | None = None,
    tools: list[dict[str, Any]] | None = None,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    folder: Path | None = None,
) -> LLMRequest:
    """Return the request for a purpose. Empty sections are left out; the others keep their order."""
    content = "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in sections.items() if text)
    return LLMRequest(
        purpose=purpose,
        system=system_prompt(purpose, folder),
        messages=[{"role": "user", "content": content}],
        tools=tools or [],
        schema=schema,
        max_tokens=max_tokens,
    )
