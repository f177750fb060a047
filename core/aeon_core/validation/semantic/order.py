"""Steps in an order that cannot work: used before it is made, used after it is gone (adaptive FR-040)."""

from __future__ import annotations

from collections.abc import Iterator

from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lazy import lazy
from aeon_core.validation.semantic.stems import stems, words
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
    makes = {step.step_id: _brought_about(step, _MAKES) for step in view.steps}
    made: dict[str, StepView] = {}
    for step in view.steps:
        for thing in makes[step.step_id]:
            made.setdefault(thing, step)
    gone: dict[str, StepView] = {}
    told = _Told(view)
    for step in view.steps:
        used = [thing for thing in _used(step) if thing in made or thing in gone]
        for thing in used:
            if (earlier := gone.get(thing)) is not None:
                yield _finding(step, f"uses {clip(thing)}, which step {earlier.step_id!r} has destroyed", earlier)
                break
            maker = made.get(thing)
            if maker is not None and maker.number > step.number and not told.before(step, thing):
                yield _finding(step, f"uses {clip(thing)}, which only step {maker.step_id!r} makes", maker)
                break
        for thing in makes[step.step_id] if gone else ():
            gone.pop(thing, None)
        if step.verb_stem in _DESTROYS and not step.said.negated:
            gone.update((thing, step) for thing in _things(step) if thing not in gone)


def _finding(step: StepView, what: str, other: StepView) -> Finding:
    behind, before = (step, other) if other.number > step.number else (other, step)
    return Finding(
        "consistency",
        "medium",
        step.step_id,
        f"step {step.step_id!r} {what}",
        f"Move step {behind.step_id!r} behind {before.step_id!r}, or name in {step.step_id!r} what is there by then.",
    )


def _brought_about(step: StepView, verbs: frozenset[str]) -> list[str]:
    if step.said.negated:
        return []
    files = step.said.paths
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
        return [name for name in step.said.paths if _stands_after(step, name, _FROM)]
    if step.verb_stem in _USES:
        return [*[name for name in step.said.paths if not _stands_after(step, name)], *_direct_object(step)]
    return [name for name in step.said.paths if not _stands_after(step, name) and step.verb_stem not in _DESTROYS]


class _Told:
    """What the goal and the steps speak of: it may be there from the start."""

    def __init__(self, view: PlanView) -> None:
        self._view = view

    def before(self, step: StepView, thing: str) -> bool:
        """Return whether a file or a noun phrase has been spoken of; of a word's steps the first are looked at."""
        if self._files.get(thing, step.number) < step.number or ("." in thing and thing in self._view.goal.lower):
            return True
        parts = set(thing.split())
        speaking = self._steps.get(min(parts, default=""), ())
        return any(parts <= other.objects for other in speaking if other.number < step.number)

    @lazy
    def _files(self) -> dict[str, int]:
        """Return the number of the first step that names each file."""
        found: dict[str, int] = {}
        for step in self._view.steps:
            for name in step.said.paths:
                found.setdefault(name, step.number)
        return found

    @lazy
    def _steps(self) -> dict[str, list[StepView]]:
        """Return the first steps that speak of each word."""
        found: dict[str, list[StepView]] = {}
        for step in self._view.steps:
            for word in step.objects:
                known = found.setdefault(word, [])
                if len(known) < _LOOKED_AT:
                    known.append(step)
        return found


def _things(step: StepView) -> list[str]:
    return step.said.paths or _direct_object(step)


def _direct_object(step: StepView) -> list[str]:
    return [] if step.said.direct_object is None else [step.said.direct_object]
