"""Steps in an order that cannot work: used before it is made, used after it is gone (adaptive FR-040)."""

from __future__ import annotations

from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import FUNCTION_WORDS
from aeon_core.validation.semantic.stems import stem, stems, words
from aeon_core.validation.semantic.views import PlanView, StepView

_MAKES = stems(
    """write create build draft generate compile produce compose save export dump make render design record print
    prepare assemble bake plot draw"""
)
_USES = stems(
    """send email e-mail mail upload publish deploy submit read open load parse import run execute print sign share
    deliver present proofread plot summarize restore install attach translate forward frame serve ship"""
)
_DESTROYS = stems("delete erase destroy purge wipe unlink discard burn shred")
_ADDS = stems("append add insert attach apply commit push copy move")
"""What takes its target as it is."""
_LOOKED_AT = 50
_INTO = words("to as into named called")
_FROM = words("in from of using with on")


def impossible_order(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step that uses what a later step makes, or what an earlier one has destroyed."""
    made = _made(view)
    gone: dict[str, StepView] = {}
    told = _Told(view)
    for step in view.steps:
        used = [thing for thing in _used(step) if thing in made or thing in gone]
        for thing in used:
            if (earlier := gone.get(thing)) is not None:
                yield _finding(step, f"uses {clip(thing)}, which step {earlier.step_id!r} has destroyed", earlier)
                break
            maker = made.get(thing)
            if maker is not None and maker.number > step.number and not told.of(thing):
                yield _finding(step, f"uses {clip(thing)}, which only step {maker.step_id!r} makes", maker)
                break
        for thing in _brought_about(step, _MAKES):
            gone.pop(thing, None)
        if step.verb_stem in _DESTROYS and not step.said.negated:
            gone.update((thing, step) for thing in _things(step) if thing not in gone)
        told.add(step)


def _finding(step: StepView, what: str, other: StepView) -> Finding:
    behind, before = (step, other) if other.number > step.number else (other, step)
    return Finding(
        "consistency",
        "medium",
        step.step_id,
        f"step {step.step_id!r} {what}",
        f"Move step {behind.step_id!r} behind {before.step_id!r}, or name in {step.step_id!r} what is there by then.",
    )


def _made(view: PlanView) -> dict[str, StepView]:
    """Return the first step that makes each thing."""
    made: dict[str, StepView] = {}
    for step in view.steps:
        for thing in _brought_about(step, _MAKES):
            made.setdefault(thing, step)
    return made


def _brought_about(step: StepView, verbs: frozenset[str]) -> list[str]:
    if step.said.negated:
        return []
    files = _files(step)
    if step.verb_stem in verbs:
        targets = [name for name in files if _stands_after(step, name)]
        if len(files) == 1 and not _stands_after(step, files[0], _FROM):
            targets = files
        return [*targets, *_direct_object(step)]
    return [name for name in files if _stands_after(step, name) and step.verb_stem not in _USES | _DESTROYS | _ADDS]


def _stands_after(step: StepView, name: str, after: frozenset[str] = _INTO) -> bool:
    """Return whether a file stands behind one of the words; with the usual ones, where results go: `to out.csv`."""
    return not after.isdisjoint(step.said.before.get(name, ()))


def _used(step: StepView) -> list[str]:
    if step.said.negated:
        return []
    if step.verb_stem in _MAKES:
        return [name for name in _files(step) if _stands_after(step, name, _FROM)]
    if step.verb_stem in _USES:
        return [*[name for name in _files(step) if not _stands_after(step, name)], *_direct_object(step)]
    return [name for name in _files(step) if not _stands_after(step, name) and step.verb_stem not in _DESTROYS]


class _Told:
    """What the goal and the steps so far speak of: it may be there from the start."""

    def __init__(self, view: PlanView) -> None:
        self._goal = view.goal.text.lower()
        self._files: set[str] = set()
        self._steps: dict[str, list[StepView]] = {}

    def of(self, thing: str) -> bool:
        """Return whether a file or a noun phrase has been spoken of; of a word's steps the first are looked at."""
        if thing in self._files or ("." in thing and thing in self._goal):
            return True
        parts = set(thing.split())
        return any(parts <= step.objects for step in self._steps.get(min(parts, default=""), ()))

    def add(self, step: StepView) -> None:
        """Take in what a step speaks of."""
        self._files.update(_files(step))
        for word in step.objects:
            known = self._steps.setdefault(word, [])
            if len(known) < _LOOKED_AT:
                known.append(step)


def _files(step: StepView) -> list[str]:
    if not step.said.names:
        return []
    return sorted(step.said.files | {name for name in step.said.names.get("file", ()) if "." in name or "/" in name})


def _things(step: StepView) -> list[str]:
    return _files(step) or _direct_object(step)


def _direct_object(step: StepView) -> list[str]:
    """Return the noun phrase that follows the verb, as one thing: `the slide deck`; none for bare or counted nouns."""
    tokens = step.said.tokens
    start = next((i for i, token in enumerate(tokens) if token.lower == step.said.verb), None)
    if start is None or start + 1 >= len(tokens) or tokens[start + 1].lower not in ("the", "a", "an"):
        return []
    noun = []
    for token in tokens[start + 2 : start + 6]:
        if token.kind != "word" or token.lower in FUNCTION_WORDS:
            break
        noun.append(stem(token.lower))
    return [" ".join(noun)] if noun else []
