"""Maps the tools named in an agent's file to ours; it cannot call any others (REQ-016, REQ-029)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from aeon_core.suggest import close, shown
from aeon_core.tools.base import Tool

TOOL_NAMES = ("Read", "Write", "Edit", "Grep", "Glob", "Bash")
"""The tools that an agent can have (REQ-020)."""
COMPLETION_TOOL = "signal_completion"
"""Every agent has it; no file needs to name it (REQ-014)."""

_OTHER_NAMES = {"multiedit": "Edit", "ls": "Glob"}
_EVERYTHING = frozenset({"*", "all"})
_DELEGATING = frozenset({"agent", "task", "delegate", "new_task"})
_COMPLETING = frozenset({COMPLETION_TOOL, "attempt_completion"})


@dataclass(frozen=True)
class Allowance:
    """Which tools an agent may call, and with what."""

    names: tuple[str, ...]
    """A subset of TOOL_NAMES, in that order."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each tool that is only partly allowed, the globs, one of which its first argument must match."""
    warnings: tuple[str, ...] = ()
    """One line for each named tool that is not available."""

    def refusal(self, tool: Tool, arguments: Mapping[str, Any]) -> str | None:
        """Return why the agent may not make this call, or None if it may; every call is checked (REQ-029)."""
        if tool.name not in self.names:
            return f"this agent may not call {tool.name!r}; it has {', '.join(self.names) or 'no tools'}"
        globs = self.limits.get(tool.name)
        if globs is None:
            return None
        argument = next(iter(tool.input_schema.get("properties", {})), "")
        parts = tool.parts(dict(arguments))
        if parts and all(_fits(part.get(argument), globs) for part in parts):
            return None
        return f"this agent may call {tool.name!r} only with {argument} like {', '.join(map(repr, globs))}"


def allow(tools: Iterable[str]) -> Allowance:
    """Return what an agent's `tools` allow; a name listed both with and without parentheses is allowed in full.

    Case is ignored. `Agent(a, b)` and the like allow nothing: agents cannot start other agents (REQ-N05).
    """
    whole: set[str] = set()
    limits: dict[str, list[str]] = {}
    warnings: list[str] = []
    for tool in tools:
        base, inside = base_name(tool), _inside(tool)
        name = _OTHER_NAMES.get(base) or next((name for name in TOOL_NAMES if name.lower() == base), None)
        if base in _EVERYTHING:
            whole.update(TOOL_NAMES)
        elif name is not None and inside not in (None, "", "*"):
            limits.setdefault(name, []).extend(_globs(str(inside)))
        elif name is not None:
            whole.add(name)
        elif base not in _COMPLETING:
            warnings.append(_unknown(tool, base))
    names = tuple(name for name in TOOL_NAMES if name in whole or name in limits)
    limited = {name: tuple(dict.fromkeys(limits[name])) for name in names if name not in whole}
    return Allowance(names, limited, tuple(warnings))


def base_name(tool: str) -> str:
    """Return a tool's name in lower case, without what follows in parentheses."""
    return tool.split("(", 1)[0].strip().lower()


def _inside(tool: str) -> str | None:
    _, parenthesis, rest = tool.partition("(")
    return rest.strip().removesuffix(")").strip() if parenthesis else None


def _globs(inside: str) -> list[str]:
    """Return the globs for the text in parentheses; `git diff:*` matches that command alone or with more words."""
    if inside.endswith(":*"):
        return [inside[:-2].rstrip(), f"{inside[:-2].rstrip()} *"]
    return [inside]


def _fits(value: Any, globs: tuple[str, ...]) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return any(fnmatchcase(text, glob) for glob in globs)


def _unknown(tool: str, base: str) -> str:
    if base in _DELEGATING:
        return f"the tool {shown(tool)} is not available: agents cannot start other agents, only the orchestrator can"
    near = close(base, tuple(name.lower() for name in TOOL_NAMES), 0.6)
    meant = next((name for name in TOOL_NAMES if name.lower() == near), None)
    hint = f"did you mean {meant!r}?" if meant else f"the known ones are {', '.join(TOOL_NAMES)}"
    return f"unknown tool {shown(tool)}, ignored; {hint}"
