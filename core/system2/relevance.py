"""Which agents a workflow can do without, and why (REQ-047; the triggers of REQ-045)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(
    r"\.(?:py|pyi|js|jsx|mjs|cjs|ts|tsx|go|rs|java|kt|kts|scala|rb|php|c|h|cc|cpp|hpp|cs|swift|m|sh|bash|zsh|ps1|sql|html|css"
    r"|scss|vue|svelte|ipynb|lua|r|pl|ex|exs|erl|hs|clj|dart|proto|graphql)$",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(r"\.(?:md|mdx|rst|adoc|txt)$", re.IGNORECASE)
_DEPENDENCIES = re.compile(
    r"(?:^|/)(?:requirements[\w.-]*\.(?:txt|in)|constraints[\w.-]*\.txt|pyproject\.toml|setup\.(?:py|cfg)|pipfile(?:\.lock)?|poetry\.lock"
    r"|uv\.lock|package(?:-lock)?\.json|yarn\.lock|pnpm-lock\.yaml|go\.(?:mod|sum)|cargo\.(?:toml|lock)|gemfile(?:\.lock)?"
    r"|composer\.(?:json|lock)|pom\.xml|build\.gradle(?:\.kts)?|environment\.ya?ml)$",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(
    r"\.(?:ya?ml|toml|json|ini|cfg|conf|env|tf|tfvars|hcl|properties|xml)$"
    r"|(?:^|/)(?:dockerfile|containerfile|makefile|\.env[^/]*)$",
    re.IGNORECASE,
)
_PROMPTS = re.compile(r"prompt|(?:^|/)(?:agents?|evals?|llms?)(?:/|\.|_)|\.(?:prompt|j2|jinja2?)$", re.IGNORECASE)
_SPEC = "spec/"

_INCIDENT = re.compile(
    r"\b(?:incidents?|post-?mortems?|outages?|root[ -]cause|regression in production|rolled? back)\b", re.I
)
_MCP = re.compile(r"\bMCP\b|\bmodel context protocol\b", re.IGNORECASE)


def skip_reason(agent: str, task: str, scope: str, changed: Iterable[str]) -> str | None:
    """Return why an agent is not needed, or None if it is.

    An agent of _BY_CHANGES is needed if a `changed` path outside `spec/` concerns it; the evaluator also if `scope`,
    the document approved at Gate 0, names it with yes and any such path changed. An agent of _BY_TASK is needed if the
    scope names it with yes, or if the scope does not decide and the task contains its words. All other agents are
    always needed.
    """
    if agent in _BY_CHANGES:
        files = [path for path in changed if not path.startswith(_SPEC)]
        kinds, needs = _BY_CHANGES[agent]
        wanted = any(kind.search(path) for kind in kinds for path in files)
        if wanted or (agent == "eval-engineer" and files and _scope_verdict(agent, scope)):
            return None
        return f"{needs}; the executor changed {_list_files(files)}"
    if agent in _BY_TASK:
        pattern, needs = _BY_TASK[agent]
        verdict = _scope_verdict(agent, scope)
        wanted = verdict if verdict is not None else pattern.search(task) is not None
        if wanted:
            return None
        return "the approved scope says that it is not needed" if verdict is False else needs
    return None


_BY_CHANGES = {
    "security-sentinel": (
        (_CODE, _DEPENDENCIES, _CONFIGURATION),
        "it reviews changes of code, dependencies and configuration",
    ),
    "eval-engineer": ((_PROMPTS,), "it evaluates changes of prompts and models"),
    "docs-release": (
        (_CODE, _DOCUMENT, _DEPENDENCIES, _CONFIGURATION),
        "it documents changes of behaviour and of documents",
    ),
}
_BY_TASK = {
    "postmortem-scribe": (_INCIDENT, "the task speaks of no incident"),
    "mcp-toolsmith": (_MCP, "the task speaks of no MCP tools"),
}


OPTIONAL = frozenset([*_BY_CHANGES, *_BY_TASK])
"""The agents that may not be needed."""


def _scope_verdict(agent: str, scope: str) -> bool | None:
    """Return whether the scope names an agent with yes or no, or None if with neither."""
    found = re.search(
        rf"^[^\n]*(?<![\w-]){re.escape(agent)}(?![\w-])[^\w\n]*\b(yes|no)\b", scope, re.IGNORECASE | re.MULTILINE
    )
    return None if found is None else found[1].lower() == "yes"


def _list_files(files: Sequence[str]) -> str:
    if not files:
        return "no files"
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
