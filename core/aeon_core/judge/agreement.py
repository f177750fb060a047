"""How far a judge agrees with labels: measured on labelled outcomes, or counted over one's own runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from aeon_core.errors import UsageError
from aeon_core.journal.labels import LabelledPass, labelled_passes
from aeon_core.journal.records import Verdict
from aeon_core.journal.summary import journal_entries
from aeon_core.judge.labels import LabelledOutcome

if TYPE_CHECKING:
    from aeon_core.convergence.assessment import ConvergenceAssessment
    from aeon_core.judge.judgement import Judgement
    from aeon_core.validation.result_checks import Artifacts


class Engine(Protocol):
    """A ConvergenceEngine with a judge."""

    def judged(
        self, artifacts: Artifacts, requirements: Sequence[str] = ()
    ) -> tuple[ConvergenceAssessment, Judgement | None]:
        """Return the assessment, and the judgement that it rests on."""


@dataclass(frozen=True)
class Comparison:
    """What the judge said beside a label. `said` is None where its reply could not be used."""

    id: str
    group: str
    """The language of an outcome; the model that judged a run."""
    label: Verdict
    said: Verdict | None
    why: str
    """The person's reason."""
    quote: str
    """The judge's evidence for what it said; the reason why there is no verdict."""

    @property
    def agrees(self) -> bool:
        """Whether the judge said what the label says."""
        return self.said == self.label


@dataclass(frozen=True)
class Agreement:
    """The figures of some comparisons. A reply that cannot be used agrees with nothing."""

    results: int
    agreed: int
    false_accepts: int
    """Bad results that the judge took for good."""
    false_rejects: int
    """Good results that the judge took for bad."""
    unusable: int
    kappa: float | None
    """Cohen's kappa of the usable verdicts; None where chance alone would agree on all of them."""

    @property
    def agreement(self) -> float | None:
        """The share that agrees, 0…1; None where there is no result."""
        return self.agreed / self.results if self.results else None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON."""
        kappa = None if self.kappa is None else round(self.kappa, 4)
        share = None if self.agreement is None else round(self.agreement, 4)
        counts = {"false_accepts": self.false_accepts, "false_rejects": self.false_rejects, "unusable": self.unusable}
        return {"results": self.results, "agreed": self.agreed, "agreement": share, "kappa": kappa, **counts}


def agreement_of(comparisons: Iterable[Comparison]) -> Agreement:
    """Return the figures of comparisons."""
    found = list(comparisons)
    pairs = [(each.label == "good", each.said == "good") for each in found if each.said is not None]
    return Agreement(
        results=len(found),
        agreed=sum(each.agrees for each in found),
        false_accepts=pairs.count((False, True)),
        false_rejects=pairs.count((True, False)),
        unusable=len(found) - len(pairs),
        kappa=_kappa(pairs),
    )


def agreement_by_group(comparisons: Iterable[Comparison]) -> dict[str, Agreement]:
    """Return the figures of each group, by its name."""
    groups: dict[str, list[Comparison]] = {}
    for each in comparisons:
        groups.setdefault(each.group, []).append(each)
    return {name: agreement_of(groups[name]) for name in sorted(groups)}


def measure(outcomes: Iterable[LabelledOutcome], engine: Engine) -> Iterator[Comparison]:
    """Yield for each outcome what the engine says of it. What the judge's model raises for good, goes through."""
    for outcome in outcomes:
        assessment, _ = engine.judged(outcome.artifacts, outcome.requirements)
        said = assessment.model_dump(mode="json")
        yield Comparison(
            id=outcome.id,
            group=outcome.language,
            label=outcome.label,
            said=None if "not_judged" in said["reason_codes"] else _said(said),
            why=outcome.why or "",
            quote=quote_of(said),
        )


class LabelledRuns:
    """The labelled passes of a runs directory, for who asks again and again: a journal is read once until it changes.

    Looks through every journal: not for a thread that draws.
    """

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, tuple[tuple[int, int, int], list[Comparison]]] = {}

    def comparisons(self, wanted: Callable[[], bool] = lambda: True) -> list[Comparison]:
        """Return each labelled pass that the judge assessed, by run and pass; fewer once it is not `wanted` any more.

        A journal that cannot be read is left out. Raises UsageError where the directory cannot be read.
        """
        known: dict[str, tuple[tuple[int, int, int], list[Comparison]]] = {}
        for entry in sorted(journal_entries(self._runs_dir), key=lambda each: each.name):
            if not wanted():
                break
            try:
                stat = entry.stat()
                stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
                before = self._known.get(entry.name)
                known[entry.name] = before if before is not None and before[0] == stamp else (stamp, _of(entry.path))
            except (OSError, UsageError):
                continue
        self._known = known
        return [each for _, found in known.values() for each in found]


def _of(path: str) -> list[Comparison]:
    judged = (each for each in labelled_passes(Path(path)) if each.assessment.get("judged") is True)
    return [_compared(each) for each in judged]


def _compared(labelled: LabelledPass) -> Comparison:
    return Comparison(
        id=f"{labelled.run_id} pass {labelled.pass_number}",
        group=labelled.model,
        label=labelled.verdict,
        said=_said(labelled.assessment),
        why=labelled.why,
        quote=quote_of(labelled.assessment),
    )


def quote_of(assessment: Mapping[str, Any]) -> str:
    """Return the evidence that weighed most in an assessment: of what is not met, else of the first requirement.

    Without a judgement it is what the exact checks, or the judge's own failure, left to say.
    """
    requirements = assessment.get("requirements") or []
    checks = [each for each in ((assessment.get("metadata") or {}).get("evidence") or {}).values() if not each["ok"]]
    suspicions = [each for each in (assessment.get("metadata") or {}).get("suspicions") or [] if each.get("stands")]
    against = [*(each for each in requirements if each["met"] != "yes"), *checks, *suspicions]
    decisive = [*against, *requirements] if not assessment.get("converged") else requirements
    quote = next((str(each["evidence"]) for each in decisive if each.get("evidence")), "")
    issues = assessment.get("detected_issues") or []
    return quote or (str(issues[-1]) if issues else "")


def _said(assessment: Mapping[str, Any]) -> Verdict:
    return "good" if assessment.get("converged") else "bad"


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of two verdicts a result."""
    if not pairs:
        return None
    count = len(pairs)
    first, second = (sum(pair[side] for pair in pairs) / count for side in (0, 1))
    by_chance = first * second + (1 - first) * (1 - second)
    same = sum(one == other for one, other in pairs) / count
    return None if by_chance == 1 else (same - by_chance) / (1 - by_chance)
