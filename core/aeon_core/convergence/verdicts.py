"""Good or bad, yes or no: what the answer says went well against what the steps say (adaptive FR-020, FR-021)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aeon_core.convergence.artifacts import Artifacts, Fact, StepView
from aeon_core.convergence.finding import CONTRADICTION, Finding
from aeon_core.convergence.known import Saying, Sayings
from aeon_core.convergence.words import (
    admits_failure,
    claims_success,
    clauses,
    content_stems,
    denied,
    denies,
    has_opposite,
    listed,
    opposites,
    own_words,
    sentences,
    share,
    subject,
    turned,
)

_OUTCOME_KEYS = frozenset({"success", "ok", "succeeded", "passed", "successful"})
_STATUS_KEYS = frozenset({"status", "state", "outcome", "result", "conclusion"})
_ERROR_KEYS = frozenset({"error", "errors", "exception", "failure"})
_TELLING_KEYS = _OUTCOME_KEYS | _STATUS_KEYS | _ERROR_KEYS | {"exit_code", "returncode"}
_GOOD_VALUES = frozenset(
    listed("ok success succeeded successful passed complete completed done sent delivered deployed")
)
_DONE_KEYS = _OUTCOME_KEYS | _GOOD_VALUES | frozenset(listed("confirmed accepted created saved written updated booked"))
_BAD_VALUES = frozenset(listed("error failed failure fail failing crashed aborted timeout rejected denied exception"))
_CHECKING = re.compile(
    r"\b(?:check|test|verif|validat|monitor|diagnos|inspect|whether|probe|ping|investigat|audit|lint|review|look|read"
    r"|analy[sz]|health|determine|find|try|assess|scan|list|report|query|fetch|get)",
    re.IGNORECASE,
)
_EVERYTHING = re.compile(r"\b(?:all|every|everything|each|entire|fully|whole|both)\b", re.IGNORECASE)
_MOSTLY = 0.7
_HYPOTHETICAL = re.compile(
    r"\b(?:if|unless|whether|(?:would|could|should|may|might)(?!\s+not\b|n['’]t\b))\b|\?", re.IGNORECASE
)


def check_verdicts(artifacts: Artifacts) -> list[Finding]:
    """Return outputs that report a failure of their step, and what the answer says to the contrary of the steps."""
    outcome = {step_id: outcome_of(view.output) for step_id, view in artifacts.sources.items()}
    findings = list(_hidden_failures(artifacts, outcome))
    findings += _false_success(artifacts, outcome)
    findings += _false_failure(artifacts, outcome)
    findings += _undone(artifacts)
    findings += _wrong_truths(artifacts)
    findings += _opposite_texts(artifacts)
    return list(dict.fromkeys(findings))


def outcome_of(output: Any) -> bool | None:
    """Return whether an output says that its step went well; None where it says neither."""
    if not isinstance(output, Mapping):
        return None
    said = {name: value for key, value in output.items() if (name := str(key).lower()) in _TELLING_KEYS}
    if not said:
        return None
    if any(said.get(key) is False for key in _OUTCOME_KEYS):
        return False
    if any(isinstance(said.get(key), (str, Mapping)) and said[key] for key in _ERROR_KEYS):
        return False
    words = {word for key in _STATUS_KEYS if isinstance(said.get(key), str) for word in said[key].lower().split()[:3]}
    code = said.get("exit_code", said.get("returncode"))
    if words & _BAD_VALUES or (isinstance(code, int) and code != 0):
        return False
    good = words & _GOOD_VALUES or code == 0 or any(said.get(key) is True for key in _OUTCOME_KEYS)
    return True if good else None


def _hidden_failures(artifacts: Artifacts, outcome: Mapping[str, bool | None]) -> Iterator[Finding]:
    for step_id, well in outcome.items():
        if well is False and not _CHECKING.search(artifacts.by_id[step_id].step.description):
            yield Finding(
                f"step {step_id!r} is complete, but its output reports a failure",
                code="failed_step",
                flag="step",
                weight=CONTRADICTION,
            )


def _false_success(artifacts: Artifacts, outcome: Mapping[str, bool | None]) -> Iterator[Finding]:
    bad = [view for view in artifacts.steps if view.failed or view.missing or outcome.get(view.step_id) is False]
    lines = sentences(artifacts.answer)
    if not bad or not lines:
        return
    admitted = any(map(admits_failure, lines))
    for line in lines:
        if not claims_success(line) or admits_failure(line):
            continue
        about = next((view for view in bad if _speaks_of(line, view)), None)
        of_others = admitted or any(_speaks_of(line, view) for view in artifacts.steps)
        if about is None and (_EVERYTHING.search(line) or not of_others):
            about = bad[0]
        if about is not None:
            yield Finding(
                f"the answer says {line[:80]!r}, but step {about.step_id!r} did not succeed",
                code="contradiction_detected",
                flag="answer",
                weight=CONTRADICTION,
            )
            return


def _undone(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where the answer says that something was done, in the words of a step that failed or said it was not."""
    for view in artifacts.steps:
        if not view.failed and (view.step_id not in artifacts.sources or _done(view.output) is not False):
            continue
        verb, about = content_stems(view.step.description.partition(" ")[0]), subject(view.step.description)
        for line in clauses(artifacts.answer) if verb and about else ():
            stems = content_stems(line)
            said = verb <= stems and len(about & stems) >= _MOSTLY * len(about)
            if said and not denied(line) and not admits_failure(line) and not _HYPOTHETICAL.search(line):
                yield Finding(
                    f"the answer says {line[:80]!r}, but step {view.step_id!r} did not succeed",
                    code="contradiction_detected",
                    flag="answer",
                    weight=CONTRADICTION,
                )
                break


def _done(output: Any) -> bool | None:
    """Return what an output of one truth value says: whether it was done; None for any other output."""
    if not isinstance(output, Mapping):
        return None
    said = [value for key, value in output.items() if str(key).lower() in _DONE_KEYS and isinstance(value, bool)]
    return said[0] if len(said) == 1 else None


def _speaks_of(line: str, view: StepView) -> bool:
    stems = subject(view.step.description)
    return len(stems & content_stems(line)) >= min(2, len(stems)) > 0


def _false_failure(artifacts: Artifacts, outcome: Mapping[str, bool | None]) -> Iterator[Finding]:
    lines = [line for line in clauses(artifacts.answer) if admits_failure(line) and not claims_success(line)]
    if not lines or False in outcome.values() or any(view.failed or view.missing for view in artifacts.steps):
        return
    done = {
        step_id: subject(artifacts.by_id[step_id].step.description)
        for step_id, well in outcome.items()
        if well or (well is None and _done(artifacts.sources[step_id].output) is True)
    }
    for line in lines if done else ():
        if _HYPOTHETICAL.search(line):
            continue
        stems = content_stems(line)
        for step_id, about in done.items():
            if about & stems and not any(_says_so(facts, stems) for facts in artifacts.facts.values()):
                yield Finding(
                    f"the answer says {line[:80]!r}, but step {step_id!r} succeeded",
                    code="contradiction_detected",
                    flag="answer",
                    weight=CONTRADICTION,
                )
                return


def _says_so(facts: tuple[Fact, ...], stems: frozenset[str]) -> bool:
    """Return whether an output itself speaks of what the answer calls a failure."""
    return any(len((content_stems(fact.text) | fact.about) & stems) >= 1 and not fact.value for fact in facts) or any(
        isinstance(fact.value, str) and admits_failure(fact.value) for fact in facts
    )


def _wrong_truths(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where an output says true and the answer denies it, or the other way round."""
    truths: dict[frozenset[str], set[bool]] = {}
    facts = [
        fact for found in artifacts.facts.values() for fact in found if isinstance(fact.value, bool) and fact.about
    ]
    for fact in facts:
        truths.setdefault(fact.about, set()).add(bool(fact.value))
    for clause in clauses(artifacts.answer):
        stems = content_stems(clause)
        for fact in facts:
            said = _truth_said(fact.about, stems, clause)
            if said is None or len(truths[fact.about]) > 1 or _HYPOTHETICAL.search(clause):
                continue
            if said != fact.value:
                yield Finding(
                    f"the answer says {clause[:80]!r}, but step {fact.source!r} gave {fact.text} for "
                    f"{' '.join(sorted(fact.about))!r}",
                    code="contradiction_detected",
                    flag="answer",
                    weight=CONTRADICTION,
                )


def _truth_said(about: frozenset[str], stems: frozenset[str], clause: str) -> bool | None:
    against = about - stems
    if not all(has_opposite(one, stems) for one in against):
        return None
    return denied(clause) == (len(against) % 2 == 1)


def _opposite_texts(artifacts: Artifacts) -> Iterator[Finding]:
    """Yield where a clause of the answer is that of an output with the opposite sense."""
    answer = "\n".join(map(own_words, sentences(artifacts.answer)))
    stems = content_stems(answer)
    of_interest = stems.union(*map(opposites, stems))
    sayings = Sayings((fact for facts in artifacts.facts.values() for fact in facts), of_interest)
    for line in dict.fromkeys((*sentences(answer), *clauses(answer))):
        stems = content_stems(line)
        for saying in sayings.against(stems, denied(line)):
            at_odds = opposite(stems, saying.stems, denied(line), saying.denied)
            of_one = at_odds and denies(line, saying.stems) and denies(saying.text, stems)
            if of_one and not _said_elsewhere(line, saying, sayings):
                yield Finding(
                    f"the answer says {line[:80]!r}, step {saying.source!r} says {saying.text[:80]!r}",
                    code="contradiction_detected",
                    flag="answer",
                    weight=CONTRADICTION,
                )
                break


def _said_elsewhere(line: str, against: Saying, sayings: Sayings) -> bool:
    """Return whether the step says what the clause says, word for word or as closely as what stands against it."""
    if line in against.text or against.text in line:
        return True
    stems = content_stems(line)
    least = share(stems, against.stems)
    return any(
        saying.denied == denied(line) and share(stems, saying.stems) >= least
        for saying in sayings.near(stems)
        if saying.source == against.source and saying is not against
    )


def opposite(one: frozenset[str], other: frozenset[str], one_denied: bool, other_denied: bool) -> bool:
    """Return whether two clauses speak of the same thing and one affirms what the other denies."""
    if len(one & other) < 1:
        return False
    pairs = turned(one, other)
    common = len(one & other) + pairs
    near = common >= 2 and common >= 0.6 * max(len(one), len(other)) if pairs else share(one, other) >= 0.6
    if not near or (not pairs and len(one & other) < 2):
        return False
    return (pairs % 2 == 1) != (one_denied != other_denied)
