"""What the answer refers to by a name of its own: codes such as `F0412`, and tools (adaptive FR-021)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from aeon_core.convergence.artifacts import MAX_CHARACTERS, Artifacts
from aeon_core.convergence.finding import CONTRADICTION, SERIOUS, Finding
from aeon_core.prompts.sections import to_line

_CODE = re.compile(r"(?<![\w.-])[A-Z]{1,6}(?:[-_/]?\d+)+(?![\w-])")
_IDENTIFIER = r"(?:[A-Za-z][A-Za-z0-9]*(?:[_.][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+)"
_TOOL = re.compile(
    rf"\btools?\s+(?:named\s+|called\s+)?(?P<after>[`'\"“][\w.-]+[`'\"”]|{_IDENTIFIER})"
    rf"|(?P<before>[`'\"“][\w.-]+[`'\"”]|\b{_IDENTIFIER})\s+tool\b"
)
_QUOTES = "`'\"“”"


def codes(text: str) -> dict[str, None]:
    """Return the codes of a text, each once, in their order: capitals with digits, such as `F0412` or `BK-7731`."""
    return dict.fromkeys(_CODE.findall(text))


def check_codes(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield codes of the answer that nothing knows, where an output gave another one of the same form, left untold."""
    told = codes(artifacts.answer)
    if not told:
        return
    given = {step_id: codes(_text(view.output)) for step_id, view in artifacts.sources.items()}
    known = {code for each in given.values() for code in each}
    strange = [code for code in told if code not in known]
    if not strange:
        return
    elsewhere = _elsewhere(artifacts)
    for code in strange:
        untold = ((step_id, each) for step_id, found in given.items() for each in found if each not in told)
        other = next(((step_id, each) for step_id, each in untold if _alike(code, each)), None)
        if other is not None and code not in elsewhere:
            yield Finding(
                f"the answer says {code!r} where step {other[0]!r} gave {other[1]!r}",
                code="contradiction_detected",
                flag="answer",
                weight=CONTRADICTION,
            )


def check_tools_named(artifacts: Artifacts, tools: Collection[str] | None) -> Iterator[Finding]:
    """Yield tools that the answer names as such, and that neither are registered nor are what the run is about."""
    if tools is None:
        return
    named = [(match["before"] or match["after"]).strip(_QUOTES) for match in _TOOL.finditer(artifacts.answer)]
    strange = [name for name in dict.fromkeys(named) if name not in tools]
    if not strange:
        return
    about = "\n".join((_elsewhere(artifacts), *(_text(view.output) for view in artifacts.sources.values())))
    for name in strange:
        if name.lower() not in about.lower():
            description = f"the answer names the tool {name!r}, which is not registered"
            yield Finding(description, code="hallucinated_tool", flag="answer", weight=SERIOUS)


def _alike(one: str, other: str) -> bool:
    """Return whether two codes are of one form: the same letters and marks, and as many digits."""
    return re.sub(r"\d", "0", one) == re.sub(r"\d", "0", other)


def _elsewhere(artifacts: Artifacts) -> str:
    """Return what goal, plan and memory say, as one text."""
    texts = [artifacts.goal, artifacts.plan.goal]
    for view in artifacts.steps:
        texts += [view.step.description, _text(view.step.arguments or "")]
    return "\n".join((*texts, _text(dict(artifacts.memory))))


def _text(value: Any) -> str:
    return (value if isinstance(value, str) else to_line(value))[:MAX_CHARACTERS]
