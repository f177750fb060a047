"""Steps that say they only look, and whose command or query changes what is there (adaptive FR-038)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import ACTIONS
from aeon_core.validation.semantic.stems import stem, stems
from aeon_core.validation.semantic.views import PlanView, StepView

_LOOKING = stems(
    """read list show display query fetch find search look view inspect check count compare get print see select
    retrieve measure report examine review"""
)
_CHANGES = re.compile(
    r"(?P<sql>\b(?:drop\s+(?:table|database|schema|index|view)|delete\s+from|truncate\s+(?:table\s+)?\w"
    r"|update\s+[\w.\"]{1,80}\s+set|insert\s+into|alter\s+table)\b)"
    r"|(?:^|[;&|(`]|\bsudo\b|\bxargs\b)[ \t]{0,20}"
    r"(?P<shell>(?:rm|rmdir|shred|unlink|mkfs[.\w]*|shutdown|reboot|kill|pkill)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_HARMLESS = frozenset({"read", "output", "statistics", "arithmetic", "sort", "plot"})
_MAX_READ = 5_000


def changing_commands(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that speaks of looking, and gives its tool a command that destroys."""
    for step in view.pending:
        if step.tool is None or not step.tool.open_ended or not _only_looks(step):
            continue
        match = next((found for text in step.texts if (found := _CHANGES.search(text[:_MAX_READ]))), None)
        if match is not None:
            what = " ".join((match["sql"] or match["shell"]).split())
            yield Finding(
                "do_say_mismatch",
                "high",
                step.step_id,
                f"step {step.step_id!r} says {clip(step.step.description)} and its arguments hold {clip(what)}",
                f"Put a command that only looks in place of {clip(what)}, or describe what the step changes.",
            )


def _only_looks(step: StepView) -> bool:
    """Return whether the first verb is one of looking, and no other word of the description hints at a change."""
    if step.verb_stem not in _LOOKING:
        return False
    kinds = frozenset(kind for word in map(stem, step.said.verbs) for kind in ACTIONS.get(word, ()))
    names = step.said.stems & _NAMES_A_CHANGE
    return kinds <= _HARMLESS and not names


_NAMES_A_CHANGE = stems(
    """delete remove drop erase clean purge wipe truncate update insert alter change kill stop restart reboot rm
    deletion removal cleanup write store"""
)
