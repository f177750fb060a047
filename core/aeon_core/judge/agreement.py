"""How well a judge agrees with labels, measured on labelled outcomes or on your own runs.

A labelled outcome is one line of a JSONL file: the result of a task, and whether a person would accept it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from aeon_core.entities import Entity
from aeon_core.errors import UsageError
from aeon_core.errors import ValidationError as PlanError
from aeon_core.journal.labels import labelled_passes
from aeon_core.journal.records import Verdict
from aeon_core.journal.summary import journal_entries
from aeon_core.json_safe import parse_json
from aeon_core.plan.models import NonBlank, Plan
from aeon_core.plan.parsing import parse_plan
from aeon_core.regular_file import read_text
from aeon_core.suggest import first_problem, nearest
from aeon_core.validation.result_checks import Artifacts

if TYPE_CHECKING:
    from aeon_core.convergence import ConvergenceEngine

MAX_BYTES = 100_000_000
SHIPPED = "labelled/outcomes"
"""The folder of our own labels in this package, one file per language."""
_FORM = '{"id": "a", "label": "good" or "bad", "goal": "…", "answer": "…"}'


class LabelledOutcome(Entity, arbitrary_types_allowed=True):
    """The result of a run, labelled by a person. Only `id`, `label`, `goal` and `answer` are needed.

    Without a `plan`, the answer is that of one reasoning step. `requirements` are what a finished answer must satisfy,
    by default the goal. `why` says what is wrong with a bad result; `codes` and `flags` are the reason codes and
    consistency flags that it must show. `language` is an ISO 639-1 code.
    """

    id: NonBlank
    domain: str = ""
    language: str = "und"
    label: Literal["good", "bad"]
    why: str | None = None
    codes: list[str] = Field(default_factory=list)
    flags: list[str] = Field(default_factory=list)
    requirements: list[NonBlank] = Field(default_factory=list)
    goal: NonBlank
    plan: Plan
    results: dict[str, Any] = Field(default_factory=dict)
    failures: dict[str, list[str]] = Field(default_factory=dict)
    answer: str
    memory: dict[str, Any] | None = None

    @property
    def artifacts(self) -> Artifacts:
        """The artifacts for a judge."""
        return Artifacts(
            goal=self.goal,
            plan=self.plan,
            results=self.results,
            answer=self.answer.strip(),
            memory=self.memory or {},
            failures=self.failures,
        )


def read_labels(path: Path) -> list[LabelledOutcome]:
    """Return the outcomes in a JSONL file; blank lines are skipped.

    Raises UsageError with file and line if one is bad, an id occurs twice, or there is none.
    """
    where = f"the labels file {str(path)!r}"
    return _read([(str(path), read_text(path, where, MAX_BYTES))], where)


def shipped_labels() -> list[LabelledOutcome]:
    """Return the outcomes that ship with Aeon, by language. Raises UsageError if the package lacks them."""
    folder = files("aeon_core.judge").joinpath(SHIPPED)
    found = sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []
    return _read(
        [(file.name, file.read_text(encoding="utf-8")) for file in found if file.name.endswith(".jsonl")], "the package"
    )


def spread(outcomes: list[LabelledOutcome], most: int) -> list[LabelledOutcome]:
    """Return at most this many outcomes, evenly spread from first to last, so that each language is represented."""
    count = len(outcomes)
    return outcomes if count <= most else [outcomes[place * count // most] for place in range(most)]


def _read(texts: Iterable[tuple[str, str]], where: str) -> list[LabelledOutcome]:
    found: list[LabelledOutcome] = []
    places: dict[str, str] = {}
    for name, text in texts:
        # Not splitlines: a JSON text may contain U+2028.
        for number, line in enumerate(text.split("\n"), 1):
            if not line.strip():
                continue
            place = f"{name}:{number}"
            outcome = _outcome(line, place)
            if (first := places.setdefault(outcome.id, place)) != place:
                raise UsageError(f"{place}: the id {outcome.id!r} occurs twice, first at {first}")
            found.append(outcome)
    if not found:
        raise UsageError(f"{where} has no labelled outcomes; expected lines such as {_FORM}")
    return found


def _outcome(line: str, place: str) -> LabelledOutcome:
    try:
        fields = parse_json(line.removeprefix("\ufeff"), unique_keys=True)
    except ValueError as error:
        raise UsageError(f"{place}: it is not JSON ({error}); expected {_FORM}") from None
    if not isinstance(fields, dict):
        raise UsageError(f"{place}: it is not an object; expected {_FORM}")
    known = tuple(LabelledOutcome.model_fields)
    if (unknown := next((key for key in fields if key not in known), None)) is not None:
        raise UsageError(f"{place}: the key {unknown!r} is unknown{nearest(unknown, known)}")
    try:
        if fields.get("plan") is None:
            fields = {**fields, **_one_step(fields)}
        fields["plan"] = parse_plan(fields["plan"], fresh=False)
        return LabelledOutcome.model_validate(fields)
    except PlanError as error:
        raise UsageError(f"{place}: plan: {error.context['problems'][0]}") from None
    except ValidationError as error:
        raise UsageError(f"{place}: {first_problem(error)}") from None


def _one_step(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a plan and results for an outcome without a plan: one reasoning step that gave the answer."""
    goal = str(fields.get("goal") or "?")
    step = {"step_id": "s1", "description": goal, "agent": "llm", "status": "complete"}
    results = fields.get("results") or {"s1": {"text": fields.get("answer")}}
    return {"plan": {"goal": goal, "steps": [step]}, "results": results}


@dataclass(frozen=True)
class JudgedLabel:
    """What the judge said about a labelled result. `judged` is None if its reply could not be used."""

    id: str
    group: str
    """The language of an outcome; the model that judged a run."""
    label: Verdict
    judged: Verdict | None
    why: str
    """The person's reason."""
    quote: str
    """The judge's evidence for its verdict, or why there is no verdict."""

    @property
    def agrees(self) -> bool:
        """Whether the judge's verdict matches the label."""
        return self.judged == self.label


@dataclass(frozen=True)
class Agreement:
    """Statistics of comparisons. An unusable reply counts as disagreement."""

    results: int
    agreed: int
    false_accepts: int
    """Bad results that the judge accepted."""
    false_rejects: int
    """Good results that the judge rejected."""
    unusable: int
    kappa: float | None
    """Cohen's kappa of the usable verdicts; None if even chance would agree on all of them."""

    @property
    def agreement(self) -> float | None:
        """The share that agrees, 0…1; None if there is no result."""
        return self.agreed / self.results if self.results else None

    def as_dict(self) -> dict[str, Any]:
        """Return the statistics as plain JSON."""
        kappa = None if self.kappa is None else round(self.kappa, 4)
        share = None if self.agreement is None else round(self.agreement, 4)
        counts = {"false_accepts": self.false_accepts, "false_rejects": self.false_rejects, "unusable": self.unusable}
        return {"results": self.results, "agreed": self.agreed, "agreement": share, "kappa": kappa, **counts}


def agreement_of(comparisons: Iterable[JudgedLabel]) -> Agreement:
    """Return the statistics of comparisons."""
    found = list(comparisons)
    pairs = [(each.label == "good", each.judged == "good") for each in found if each.judged is not None]
    return Agreement(
        results=len(found),
        agreed=sum(each.agrees for each in found),
        false_accepts=pairs.count((False, True)),
        false_rejects=pairs.count((True, False)),
        unusable=len(found) - len(pairs),
        kappa=_kappa(pairs),
    )


def agreement_by_group(comparisons: Iterable[JudgedLabel]) -> dict[str, Agreement]:
    """Return the statistics of each group, sorted by its name."""
    groups: dict[str, list[JudgedLabel]] = {}
    for each in comparisons:
        groups.setdefault(each.group, []).append(each)
    return {name: agreement_of(groups[name]) for name in sorted(groups)}


def measure(outcomes: Iterable[LabelledOutcome], engine: ConvergenceEngine) -> Iterator[JudgedLabel]:
    """Yield the comparison for each outcome. Raises final errors of the judge's model."""
    for outcome in outcomes:
        assessment, _ = engine.judged(outcome.artifacts, outcome.requirements)
        dumped = assessment.model_dump(mode="json")
        yield JudgedLabel(
            id=outcome.id,
            group=outcome.language,
            label=outcome.label,
            judged=None if "not_judged" in dumped["reason_codes"] else _verdict_of(dumped),
            why=outcome.why or "",
            quote=quote_of(dumped),
        )


class LabelledRuns:
    """The labelled passes in a runs directory, for repeated use: a journal is read again only when it changes.

    Scans every journal, so it is not for a thread that draws.
    """

    def __init__(self, runs_dir: Path) -> None:
        self._runs_dir = runs_dir
        self._known: dict[str, tuple[tuple[int, int, int], list[JudgedLabel]]] = {}

    def comparisons(self, wanted: Callable[[], bool] = lambda: True) -> list[JudgedLabel]:
        """Return each labelled pass that the judge assessed, by run and pass; stop early once no longer `wanted`.

        Unreadable journals are left out. Raises UsageError if the directory cannot be read.
        """
        known: dict[str, tuple[tuple[int, int, int], list[JudgedLabel]]] = {}
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


def _of(path: str) -> list[JudgedLabel]:
    return [
        JudgedLabel(
            id=f"{labelled.run_id} pass {labelled.pass_number}",
            group=labelled.model,
            label=labelled.verdict,
            judged=_verdict_of(labelled.assessment),
            why=labelled.why,
            quote=quote_of(labelled.assessment),
        )
        for labelled in labelled_passes(Path(path))
        if labelled.assessment.get("judged") is True
    ]


def quote_of(assessment: Mapping[str, Any]) -> str:
    """Return the decisive evidence of an assessment: for an unmet requirement, else for the first one.

    Without a judgement, it is what the exact checks found, or why the judge failed.
    """
    requirements = assessment.get("requirements") or []
    checks = [each for each in ((assessment.get("metadata") or {}).get("evidence") or {}).values() if not each["ok"]]
    suspicions = [each for each in (assessment.get("metadata") or {}).get("suspicions") or [] if each.get("stands")]
    against = [*(each for each in requirements if each["met"] != "yes"), *checks, *suspicions]
    decisive = [*against, *requirements] if not assessment.get("converged") else requirements
    quote = next((str(each["evidence"]) for each in decisive if each.get("evidence")), "")
    issues = assessment.get("detected_issues") or []
    return quote or (str(issues[-1]) if issues else "")


def _verdict_of(assessment: Mapping[str, Any]) -> Verdict:
    return "good" if assessment.get("converged") else "bad"


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of two verdicts per result."""
    if not pairs:
        return None
    count = len(pairs)
    first, second = (sum(pair[side] for pair in pairs) / count for side in (0, 1))
    by_chance = first * second + (1 - first) * (1 - second)
    same = sum(one == other for one, other in pairs) / count
    return None if by_chance == 1 else (same - by_chance) / (1 - by_chance)
