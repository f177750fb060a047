"""Answering a step by reasoning: on purpose (`agent: llm`) or as the fallback of a missing tool (Decision 12)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from aeon_core.errors import AeonError, UsageError
from aeon_core.escape import has_visible_text
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMAdapter, LLMResponse, as_adapter
from aeon_core.loose_json import without_thinking
from aeon_core.memory import Memory
from aeon_core.plan.models import PlanStep
from aeon_core.prompts import CLIPPED_AT, build_request, memory_section, step_section
from aeon_core.suggest import check_type

_BEGUN_THINKING = re.compile(r"\A\s*+<think(?:ing)?>", re.IGNORECASE)


def execute_llm_reasoning_step(
    step: PlanStep,
    memory: Memory,
    llm: LLMAdapter,
    *,
    purpose: Literal["reason", "fallback"] = "reason",
    context: Mapping[str, str] | None = None,
    shown: Mapping[str, Any] | None = None,
    characters: int = CLIPPED_AT,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    prompts_dir: Path | None = None,
) -> dict[str, Any]:
    """Return `{"text": …}`, the model's answer to the step's description with what memory holds (core FR-057, FR-062).

    `context` holds the prompt's sections on goal, plan, results and TTL, and `shown` the outputs already in them;
    `characters` is how much of a memory entry is shown. Raises LLMError, AeonError if the reply is empty or a refusal,
    and UsageError for anything but a PlanStep, a Memory and a model.
    """
    check_type(step, PlanStep, "the step")
    if purpose not in ("reason", "fallback"):
        raise UsageError(f"purpose is {repr(purpose)[:80]}, expected 'reason' or 'fallback'")
    check_type(context or {}, Mapping, "context")
    check_type(prompts_dir, str | Path | None, "prompts_dir")
    check_type(max_tokens, int, "max_tokens")
    if not callable(getattr(memory, "search", None)):
        raise UsageError(f"the memory is of type {type(memory).__name__}, expected a Memory such as InMemoryStore()")
    sections = dict(context or {})
    ttl = sections.pop("ttl", "")
    sections["memory"] = memory_section(dict(memory.search("")), shown=shown, characters=characters)
    sections |= {"step": step_section(step), "ttl": ttl}
    request = build_request(purpose, sections, max_tokens=max_tokens, folder=prompts_dir)
    return {"text": reply_text(as_adapter(llm).complete(request))}


def reply_text(response: LLMResponse) -> str:
    """Return the text of a plain reply. Raises AeonError if nothing was produced: a refusal by the provider's own word,
    no visible character, or nothing but the model's thinking.
    """
    if response.stop_reason == "refusal":
        raise AeonError(f"the model refused: {response.text[:200].strip() or 'without a reason'}", error_type="refusal")
    text = without_thinking(response.text)
    if response.stop_reason == "max_tokens" and _BEGUN_THINKING.match(text):
        text = ""
    if not has_visible_text(text):
        what = "holds its thinking and no answer" if has_visible_text(response.text) else "is empty"
        advice = ": it was cut off; raise max_tokens" if response.stop_reason == "max_tokens" else ""
        raise AeonError(f"the model's reply {what}{advice}", error_type="empty_reply")
    return text
