"""A model as the judge of a result, with evidence before each verdict, checked quotes and one retry (Decision 7)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from aeon_core.entities import Finding
from aeon_core.errors import LLMError, SupervisorError
from aeon_core.judge.judgement import (
    FLAGS,
    JUDGE_SCHEMA,
    MAX_ISSUES,
    Ask,
    Check,
    Judgement,
    Met,
    RequirementCheck,
    read_judgement,
)
from aeon_core.judge.quote import ELISION
from aeon_core.llm.base import DEFAULT_MAX_TOKENS, LLMRequest
from aeon_core.prompts import (
    build_request,
    memory_section,
    plan_section,
    requirements_section,
    results_section,
    to_line,
)
from aeon_core.validation.plan_checks import clip
from aeon_core.validation.result_checks import Artifacts

_ESCAPE = re.compile(r"\\(?:[nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})")
_PIECE = re.compile(r"(?:(?<!\w)[-−–])?\d+(?:[.,'’٫٬]\d+)*|.", re.DOTALL)
"""A number with its sign and separators, or another character."""
_EDGE = "\0"
"""Placed before and after each number, so that no part of one matches."""
_SHORTEST = 2
"""The fewest letters and digits of a quote, unless it is a whole value."""


class Evidence:
    """The texts of a pass, in which quotes are searched, ignoring case, whitespace, punctuation and Markdown.

    Numbers are compared as a whole, with sign and separators.
    """

    def __init__(self, artifacts: Artifacts, requirements: Iterable[str]) -> None:
        texts = [artifacts.answer]
        for step in artifacts.plan.walk():
            texts += [step.step_id, step.description, step.tool or "", step.status]
            texts += _texts(step.arguments)
        values = [artifacts.answer]
        for source in (artifacts.results, artifacts.failures, artifacts.memory):
            texts += _texts(dict(source))
            values += _texts(dict(source), keys=False)
        plain = cache(_plain)
        self._values = set(map(plain, values))
        self._asked = " ".join(map(plain, [artifacts.goal, *requirements]))
        # A quote may span adjacent values of an output.
        self._found = "".join(map(plain, texts))

    def contains(self, quote: str, *, met: bool = False) -> bool:
        """Return whether a quote occurs in the artifacts; with elisions, whether each part does.

        For a met requirement, words that occur only in the goal or the requirements are not evidence.
        """
        forms = (quote, _ESCAPE.sub(" ", quote))
        return any(self._contains([*map(_plain, ELISION.split(form))], met=met) for form in dict.fromkeys(forms))

    def _contains(self, parts: list[str], *, met: bool) -> bool:
        long = [part for part in parts if len(part.replace(_EDGE, "")) >= _SHORTEST]
        if not long:
            return any(part and part in self._values for part in parts)
        return all(part in self._found or (not met and part in self._asked) for part in long)


def _plain(text: str) -> str:
    """Return the letters of a text with their marks, and its numbers between edge marks."""
    plain, spelled = "", False
    for piece in _PIECE.findall(unicodedata.normalize("NFKC", text).casefold()):
        number = piece[-1].isdecimal()
        spelled = not number and (piece.isalnum() or (spelled and unicodedata.category(piece)[0] == "M"))
        if number:
            plain += f"{_EDGE}{re.sub('[−–]', '-', piece)}{_EDGE}"
        elif spelled and piece not in "\ufe0e\ufe0f":
            plain += piece
    return plain


def _texts(value: Any, *, keys: bool = True) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from [str(key)] if keys else []
            yield from _texts(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, keys=keys)
    else:
        yield "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


_WORST: tuple[Met, ...] = ("no", "partly", "yes")
SHOWN_CHARACTERS = 12_000
"""The most characters of one output shown to a judge."""


@dataclass(frozen=True)
class Case:
    """A result to judge."""

    artifacts: Artifacts
    requirements: Sequence[str]
    """What a finished answer must satisfy, numbered from 1; only the task if there is nothing else."""
    suspicions: Sequence[str] = ()
    """What exact checks found suspicious but cannot decide, numbered from 1."""
    known: Sequence[str] = ()
    """What exact checks proved, which the judge need not repeat."""


def judge_result(case: Case, ask: Ask, *, votes: int = 1, folder: Path | None = None) -> Judgement:
    """Return the judgement of a result, by majority of `votes` if the first verdict is not a clear yes.

    A verdict against the result must quote words of an artifact, and verdicts must agree with the reply's issues;
    otherwise the judge is asked once more, with the reason. Quotes that are still not found are marked. Raises
    LLMError and SupervisorError if the first reply fails or is unusable.
    """
    evidence = Evidence(case.artifacts, case.requirements)
    judge = partial(_judged, case, ask, evidence, folder=folder)
    first = judge()
    if votes == 1 or (first.good and not case.suspicions):
        return first
    verdicts = [first]
    for _ in range(votes - 1):
        try:
            verdicts.append(judge())
        except (LLMError, SupervisorError):
            break
    return majority(verdicts)


def judge_request(case: Case, *, doubts: Iterable[str] = (), folder: Path | None = None) -> LLMRequest:
    """Return the request to judge a result; `doubts` say what was wrong with the previous reply."""
    artifacts = case.artifacts
    outputs = {key: value if isinstance(value, dict) else {"result": value} for key, value in artifacts.results.items()}
    failures = {key: list(errors) for key, errors in artifacts.failures.items()}
    sections = {
        "goal": to_line(artifacts.goal),
        "requirements": requirements_section(case.requirements),
        "plan": plan_section(artifacts.plan),
        "results": results_section(artifacts.plan, outputs, failures, characters=SHOWN_CHARACTERS),
        "memory": memory_section(artifacts.memory, shown=outputs),
        "answer": to_line(artifacts.answer),
        "suspicions": requirements_section(case.suspicions),
        "known": "\n".join(map(to_line, case.known)),
        "doubts": "\n".join(map(to_line, doubts)),
    }
    counts = {"requirements": len(case.requirements), "suspicions": len(case.suspicions), "issues": MAX_ISSUES}
    most = {key: max(1, count) for key, count in counts.items()}
    return build_request(
        "judge", sections, schema=JUDGE_SCHEMA, most=most, max_tokens=DEFAULT_MAX_TOKENS, folder=folder
    )


def majority(verdicts: Sequence[Judgement]) -> Judgement:
    """Return the majority's judgement: the first good one, or the worst verdicts of all that find something wrong.

    Judges that find different problems agree that there is one.
    """
    good = [verdict for verdict in verdicts if verdict.good]
    if 2 * len(good) > len(verdicts):
        return good[0]
    bad = [verdict for verdict in verdicts if not verdict.good]
    numbers = sorted({n for verdict in bad for n in verdict.suspicions})
    return Judgement(
        requirements=tuple(
            min(given, key=lambda check: _WORST.index(check.met))
            for given in zip(*(verdict.requirements for verdict in bad), strict=True)
        ),
        coherent=_worst(verdict.coherent for verdict in bad),
        consistent={flag: _worst(verdict.consistent[flag] for verdict in bad) for flag in FLAGS},
        suspicions={n: _worst(verdict.suspicions[n] for verdict in bad if n in verdict.suspicions) for n in numbers},
        issues=tuple(dict.fromkeys(issue for verdict in bad for issue in verdict.issues)),
    )


def _judged(case: Case, ask: Ask, evidence: Evidence, *, folder: Path | None) -> Judgement:
    steps = [step.step_id for step in case.artifacts.plan.walk()]
    read = partial(read_judgement, requirements=len(case.requirements), suspicions=len(case.suspicions), steps=steps)
    request = partial(judge_request, case, folder=folder)
    judgement = _marked(ask(request(), "the judgement", read), evidence)
    if doubts := list(_doubts(judgement, case)):
        # If that fails, the first judgement is kept, with its marks.
        with suppress(LLMError, SupervisorError):
            judgement = _marked(ask(request(doubts=doubts), "the judgement", read), evidence)
    return _settled(judgement)


def _marked(judgement: Judgement, evidence: Evidence) -> Judgement:
    """Return the judgement with a mark on each verdict whose quote was not found."""

    def checked(check: Check) -> Check:
        return replace(check, quote_found=evidence.contains(check.evidence))

    return replace(
        judgement,
        requirements=tuple(
            replace(each, quote_found=evidence.contains(each.evidence, met=each.met == "yes"))
            for each in judgement.requirements
        ),
        coherent=checked(judgement.coherent),
        consistent={flag: checked(check) for flag, check in judgement.consistent.items()},
        suspicions={n: checked(check) for n, check in judgement.suspicions.items()},
    )


def _doubts(judgement: Judgement, case: Case) -> Iterable[str]:
    """Yield the doubts about a judgement that the judge should answer."""
    checks = {"coherent": judgement.coherent}
    checks |= {f"consistent.{flag}": check for flag, check in judgement.consistent.items()}
    checks |= {f"suspicions[{n}]": check for n, check in judgement.suspicions.items()}
    costly: list[tuple[str, Check | RequirementCheck]]
    costly = [(f"requirements[{each.n}]", each) for each in judgement.requirements if each.met != "yes"]
    costly += [(name, check) for name, check in checks.items() if not check.ok]
    for name, check in costly:
        if not check.quote_found:
            quote = clip(check.evidence)
            yield f"{name}: {quote} occurs in no artifact; quote the words that show it, or change the verdict"
    for n, text in enumerate(case.suspicions, 1):
        if n not in judgement.suspicions:
            yield f"suspicions[{n}] is not answered: {text}"
    if (issue := _contradiction(judgement)) is not None:
        yield f"all verdicts are good, yet there is an issue with the answer: {issue.description}; change one of them"


def _contradiction(judgement: Judgement) -> Finding | None:
    """Return an issue with the answer that contradicts the verdicts, if all of these are good."""
    denied = judgement.coherent.ok and judgement.consistent["answer"].ok
    denied = denied and all(each.met == "yes" for each in judgement.requirements)
    if not denied or not all(check.ok for check in judgement.suspicions.values()):
        return None
    serious = [issue for issue in judgement.issues if issue.severity != "low"]
    placed = (
        issue for issue in serious if issue.artifact == "answer" or (issue.artifact, issue.step_id) == (None, None)
    )
    return next(placed, None)


def _settled(judgement: Judgement) -> Judgement:
    """Return the judgement with the answer's consistency flag set to false if an issue contradicts it."""
    if (issue := _contradiction(judgement)) is None:
        return judgement
    broken = Check(False, issue.description, quote_found=judgement.consistent["answer"].quote_found)
    return replace(judgement, consistent={**judgement.consistent, "answer": broken})


def _worst(checks: Iterable[Check]) -> Check:
    return min(checks, key=lambda check: check.ok)
