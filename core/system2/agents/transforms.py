"""Rewrites what an agent's prompt assumes about the tool it was written for (REQ-013, TR-01 to TR-08).

TR-01 needs no rule here because `frontmatter` never reads hooks, nor do TR-05 and TR-06, which keep
`.claude/settings.json` and `<thinking>` as they are. The order of the other rules matters: see TRANSFORM_RULES.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from system2.constants import DELEGATION_MAP

COMPLETION_INSTRUCTION = """
## Completion Protocol

When you have finished your task, call the `signal_completion` tool with:
- status: "success", "failure", or "blockers"
- files_changed: list of file paths you created or modified
- summary: brief summary of what you did
- blockers: (optional) list of blocking issues if status is "blockers"
"""

_SPACE = r"[^\S\n]"
_GAP = rf"(?:{_SPACE}+|{_SPACE}*\n{_SPACE}*(?:>{_SPACE}*)*)"
"""The space between two words: at most one line break, even within a block quote."""
_MARKS = r"[`*_\"']{0,3}"


def apply_transforms(raw_prompt: str) -> str:
    """Return the system prompt for a raw one: with the rules applied in order and the completion protocol at its end.

    Line endings become newlines. Applying it again changes nothing.
    """
    text = re.sub(r"\r\n?", "\n", raw_prompt)
    for rule in TRANSFORM_RULES:
        text = rule(text)
    if COMPLETION_INSTRUCTION.strip() in text:
        return text
    return f"{text.rstrip()}\n{COMPLETION_INSTRUCTION}".lstrip("\n")


_HOOK_SCRIPT = re.compile(r"scripts[/\\]claude-hooks(?![\w-])", re.IGNORECASE)
_ITEM = rf"(?:[-*+]|\d{{1,3}}[.)]){_SPACE}"
_PART = re.compile(
    rf"^(?P<indent>{_SPACE}*){_ITEM}.*(?:\n(?P=indent){_SPACE}+(?!{_ITEM})\S.*)*|^.*$",
    re.MULTILINE,
)
"""A list item with its continuation lines, or any other line."""


def _without_hook_scripts(text: str) -> str:
    """TR-08: drop each line that names a hook script; in a list drop the whole item, since the rest makes no sense."""
    if _HOOK_SCRIPT.search(text) is None:
        return text
    parts = (part.group() for part in _PART.finditer(text))
    return "\n".join(part for part in parts if not _HOOK_SCRIPT.search(part))


_LOADING = re.compile(
    rf"(?P<file>CLAUDE\.md{_MARKS}){_GAP}?\(\s*(?:(?:which|that)\s+is\s+)?auto(?:matically)?[\s-]*loaded\s+by\s+"
    r"(?:the\s+)?Claude\s+Code(?:\s+CLI)?(?:\s+(?:at|on|during)\s+(?:session\s+)?start-?up)?\s*\)",
    re.IGNORECASE,
)


def _without_loading(text: str) -> str:
    """TR-07: CLAUDE.md is the project's instructions, whoever loads it."""
    return _LOADING.sub(r"\g<file> (project instructions)", text)


_COMPLETION = re.compile(r"attempt\\?_\s*completion", re.IGNORECASE)


def _with_signal(text: str) -> str:
    """TR-02: rename the tool that signals completion (REQ-014)."""
    return _COMPLETION.sub("signal_completion", text)


_PRODUCT = re.compile(
    rf"(?:\b(?P<before>a|an|the|your|our|my|this|that|each|every|any|its|their|several|many|some|other|ordinary|existing|new)(?P<gap>{_GAP}))?"
    rf"(?<![\w-])Claude{_GAP}Code(?:{_GAP}CLI)?(?!\w)(?P<joined>(?=-\w))?",
    re.IGNORECASE,
)
_NOT_THE_PRODUCT = re.compile(
    rf"Claude{_GAP}code(?={_GAP}(?:examples?|snippets?|samples?|blocks?|questions?|listings?|fragments?)\b)"
)


def _with_orchestrator(text: str) -> str:
    """TR-04: call Claude Code the orchestrator, with an article that fits the sentence."""

    def renamed(match: re.Match[str]) -> str:
        if _NOT_THE_PRODUCT.search(match.string, match.start(), min(match.end() + 20, len(match.string))):
            return match.group()
        before, gap = match["before"], match["gap"]
        if before is None:
            return "orchestrator" if match["joined"] is not None else "the orchestrator"
        article = f"{before}n" if before.lower() == "a" else before
        return f"{article}{gap}orchestrator"

    return _PRODUCT.sub(renamed, text)


_OBJECT = (
    "such|the|these|those|this|that|any|all|each|every|required|necessary|needed|remaining|failing|code|bug|test"
    "|fix|fixes|work|changes?|issues?|failures?|findings?|blockers?|tasks?|defects?|problems?|it|them|everything|back"
)
_DELEGATION = re.compile(
    rf"(?<![\w-])(?P<verb>delegat(?:e|es|ing)|boomerang(?:s|ing)?)(?:{_GAP}(?:{_OBJECT})){{0,6}}{_GAP}to{_GAP}"
    rf"(?:the{_GAP})?{_MARKS}(?P<agent>{'|'.join(DELEGATION_MAP)}){_MARKS}(?:{_GAP}(?:sub-?)?agent)?"
    rf"(?![\w(-]|\.\w|['’]s\b|{_GAP}(?:threads?|pools?|services?|objects?|instances?)\b)",
    re.IGNORECASE,
)
_LEFT_AS_IT_IS = re.compile(
    rf"(?:\b(?:not|never|cannot|without|nor|instead{_GAP}of|rather{_GAP}than)|n['’]t"
    rf"|\borchestrator(?:{_GAP}(?:can|may|might|must|should|shall|will|would|then|to|itself|alone|only|who|that|which))*)"
    rf"{_GAP}(?:try{_GAP}to{_GAP}|attempt{_GAP}to{_GAP}|directly{_GAP}|ever{_GAP})?\Z",
    re.IGNORECASE,
)


def _with_reports(text: str) -> str:
    """TR-03: turn delegation into a report, since agents cannot start agents (REQ-N05); leave prohibitions alone."""

    def reported(match: re.Match[str]) -> str:
        if _LEFT_AS_IT_IS.search(match.string[max(0, match.start() - 80) : match.start()]):
            return match.group()
        verb = match["verb"]
        ending = next((ending for ending in ("ing", "s") if verb.lower().endswith(ending)), "")
        start = "Report" if verb[0].isupper() else "report"
        return f"{start}{ending} to orchestrator for re-delegation to {match['agent'].lower()}"

    return _DELEGATION.sub(reported, text)


TRANSFORM_RULES: tuple[Callable[[str], str], ...] = (
    _without_hook_scripts,
    _without_loading,
    _with_signal,
    _with_orchestrator,
    _with_reports,
)
"""TR-08, TR-07, TR-02, TR-04, TR-03: in this order no rule removes words that a later one looks for."""
