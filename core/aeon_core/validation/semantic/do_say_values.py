"""Steps whose arguments contradict their description: choices, switches, numbers, names (adaptive FR-038)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aeon_core.validation.semantic.do_say_units import Difference, other_date, other_units
from aeon_core.validation.semantic.finding import Finding, clip
from aeon_core.validation.semantic.lexicon import ACTIONS, IMPLIED_NUMBERS, OPPOSITES, SYNONYMS
from aeon_core.validation.semantic.phrase import phrase_words
from aeon_core.validation.semantic.stems import stem, stems, words
from aeon_core.validation.semantic.views import PlanView, StepView, ToolView

_LIGHT_CHOICES = words("get put set list post head all none any first last default other text auto read file")
_PERCENT = (100.0,)
_UNIT_RATIOS = (60.0, 3600.0, 24.0, 7.0, 12.0, 100.0, 1000.0, 1024.0, 1_000_000.0)
"""How many of a smaller unit make a larger one: a sole number may be given in another unit than it is said in."""
_SMALL_COUNT = 12
_YEARS = (1900, 2100)
_EXTREME_FIRST = re.compile(
    r"\b(?:(?P<desc>highest|largest|biggest|newest|latest|greatest|most \w+|longest)"
    r"|(?P<asc>lowest|smallest|oldest|earliest|cheapest|least \w+|shortest))\s+(?:\w+\s+)?first\b",
    re.IGNORECASE,
)
_NEGATIONS = words("not no without don't never skip avoid exclude excluding except disable")
_EXACT_KINDS = ("file", "url", "email")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
_MAX_NAME_WORDS = 3


def contradicting_arguments(view: PlanView) -> Iterator[Finding]:
    """Yield a finding for each pending step whose arguments say otherwise than its description; one for each step."""
    for step in view.pending:
        if step.tool is None or not step.step.arguments:
            continue
        found = (
            _other_choice(step, step.tool)
            or _opposite_value(step)
            or _wrong_switch(step)
            or _other_numbers(step, step.tool)
            or other_units(step)
            or other_date(step)
            or _other_names(step)
        )
        if found is not None:
            says, given, repair = found
            yield Finding(
                "do_say_mismatch",
                "high",
                step.step_id,
                f"step {step.step_id!r} says {says} and its arguments say {given}",
                f"{repair}, or correct the description.",
            )


_Found = Difference | None


def _other_choice(step: StepView, tool: ToolView) -> _Found:
    """Find a description that names another of the tool's choices than the one in the arguments."""
    for name, offered in tool.choices.items():
        value = (step.step.arguments or {}).get(name)
        if not isinstance(value, str) or value not in offered or _is_said(value, step):
            continue
        others = [other for other in offered if other != value and _is_said(other, step)]
        others = [other for other in others if other.lower() not in _LIGHT_CHOICES]
        if len(others) == 1 and not _meant_as_plain_word(others[0], step):
            return repr(others[0]), f"{name} {value!r}", f"Set arguments.{name} to {others[0]!r}"
    return None


def _is_said(choice: str, step: StepView) -> bool:
    said = step.said.stems
    parts = [stem(word) for word in phrase_words(choice)]
    if not parts:
        return choice.lower() in {token.lower for token in step.said.tokens}
    if all(part in said for part in parts):
        return True
    if len(parts) > 1:
        return False
    family = next((group for group in SYNONYMS if parts[0] in group), frozenset())
    return bool(family & said) or _said_by_order(family, step)


def _said_by_order(family: frozenset[str], step: StepView) -> bool:
    if "first" not in step.said.words:
        return False
    match = _EXTREME_FIRST.search(step.said.text)
    return match is not None and match.lastgroup in family


def _meant_as_plain_word(choice: str, step: StepView) -> bool:
    """Return whether a word that is also a choice stands there for a result: `multiply the sum`."""
    action = step.verb_stem or ""
    parts = {stem(word) for word in phrase_words(choice)}
    family = parts.union(*(group for group in SYNONYMS if group & parts))
    return action in ACTIONS and action not in family and "arithmetic" in ACTIONS[action] and action not in _NEUTRAL


_NEUTRAL = stems("compute calculate")


def _opposite_value(step: StepView) -> _Found:
    """Find a text among the arguments that says the contrary of a word in the description."""
    for name, value in (step.step.arguments or {}).items():
        if not isinstance(value, str) or len(value) > 40:
            continue
        for word in map(stem, phrase_words(value)):
            contrary = OPPOSITES.get(word, frozenset()) & step.said.stems
            if contrary and word not in step.said.stems and len(phrase_words(value)) == 1 and not _is_said(value, step):
                said = next(text for text in step.said.words if stem(text) in contrary)
                return repr(said), f"{name} {value!r}", f"Set arguments.{name} to what {said!r} asks for"
    return None


def _wrong_switch(step: StepView) -> _Found:
    """Find a switch that is off though the description asks for it, or on though it forbids it."""
    for name, value in (step.step.arguments or {}).items():
        parts = [stem(word) for word in phrase_words(name)]
        if not isinstance(value, bool) or not parts or not all(part in step.said.stems for part in parts):
            continue
        words = list(step.said.words)
        at = next(i for i, word in enumerate(words) if stem(word) == parts[0])
        asked = _NEGATIONS.isdisjoint(words[max(0, at - 3) : at])
        if asked != value:
            wanted = str(asked).lower()
            return clip(step.step.description), f"{name} {str(value).lower()}", f"Set arguments.{name} to {wanted}"
    return None


def _other_numbers(step: StepView, tool: ToolView) -> _Found:
    """Find numbers in the description that the arguments do not hold, while these hold others."""
    given = [float(value) for value in step.values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    said = _operands(step, tool)
    if not given or not said:
        return None
    in_texts = {float(digits) for text in step.texts for digits in _DIGITS.findall(text)[:50] if len(digits) < 20}
    implied = {float(number) for word in step.said.stems for number in IMPLIED_NUMBERS.get(word, ())}
    computes = "arithmetic" in tool.actions
    everything = {*step.said.numbers, *implied, *(_made_from(said) if computes else ())}
    ratios = _UNIT_RATIOS if len(given) == 1 else _PERCENT
    unsaid = [number for number in given if not _among(number, everything, ratios)]
    missing = [number for number in said if not _among(number, {*given, *in_texts}, ratios)]
    if not unsaid or not missing or (len(missing) < len(said) and len(said) != len(given)):
        return None
    wanted, found = (", ".join(f"{number:.12g}" for number in numbers) for numbers in (missing, unsaid))
    return wanted, found, f"Put {wanted} in the arguments in place of {found}"


def _made_from(said: list[float]) -> set[float]:
    """Return what the numbers said come to: an argument may hold the sum that an earlier step has found."""
    made = {sum(said)}
    if len(said) == 2:
        made |= {said[0] - said[1], said[1] - said[0], said[0] * said[1]}
    return made if len(said) > 1 else set()


def _operands(step: StepView, tool: ToolView) -> list[float]:
    """Return the numbers the description works with: no counts (`the 3 prices`), labels (`chapter 2`), percentages."""
    properties = tool.property_stems
    found = []
    tokens = step.said.tokens
    for at, number in step.said.numbered:
        if tokens[at].text.endswith("%"):
            continue
        before = tokens[at - 1].lower if at else ""
        after = tokens[at + 1].lower if at + 1 < len(tokens) else ""
        plural = after.endswith("s") and tokens[at + 1].kind == "word"
        operand = before == "by" and "arithmetic" in tool.actions
        counts = plural and number <= _SMALL_COUNT and stem(after) not in properties and not operand
        year = _YEARS[0] <= number <= _YEARS[1] and "arithmetic" not in tool.actions and "year" not in properties
        if (
            not counts
            and not year
            and before not in ("step", "first", "last", "top", "chapter", "section", "part", "question")
        ):
            found.append(number)
    return found


def _among(number: float, numbers: set[float], ratios: tuple[float, ...]) -> bool:
    return number in numbers or any(_equal(number, other, ratios) for other in numbers)


def _equal(one: float, other: float, ratios: tuple[float, ...]) -> bool:
    if abs(one - other) <= 1e-6 * max(1.0, abs(one), abs(other)) or one == -other:
        return True
    if 0 in (one, other):
        return False
    ratio = max(abs(one), abs(other)) / min(abs(one), abs(other))
    return any(abs(ratio - known) < 1e-9 * known for known in ratios)


def _other_names(step: StepView) -> _Found:
    """Find a file, address, quotation or proper name in the description where the arguments hold another."""
    given = " ".join(step.texts).lower()
    if not given:
        return None
    for kind in _EXACT_KINDS:
        held = {name for name in _of_kind(kind, step) if not _mentioned(name, step.said.lower)}
        said = step.said.files | _beside(held, step) if kind == "file" else step.said.names.get(kind, set())
        if said and held and not any(_mentioned(name, given) for name in said):
            return _names(said), _names(held), f"Put {_names(said)} in the arguments"
    return _other_quotation(step, given) or _other_proper_name(step, given)


def _beside(held: set[str], step: StepView) -> set[str]:
    """Return the folders in the description that lie where those in the arguments do; `and/or` is none."""
    tops = {name.partition("/")[0] for name in held}
    return {name for name in step.said.names.get("file", set()) if name.partition("/")[0] in tops}


def _of_kind(kind: str, step: StepView) -> set[str]:
    values = [text.strip().lower() for text in step.texts if " " not in text.strip() and len(text) < 200]
    if kind == "email":
        return {text for text in values if "@" in text}
    if kind == "url":
        return {text for text in values if "://" in text}
    return {
        text
        for text in values
        if "://" not in text and ("/" in text or re.search(r"\.[a-z]\w{0,9}$", text)) and "@" not in text
    }


def _mentioned(name: str, text: str) -> bool:
    """Return whether a path, or the last part of it, stands in the text."""
    return name in text or name.rstrip("/").rpartition("/")[2] in text


def _other_quotation(step: StepView, given: str) -> _Found:
    said = {name for name in step.said.names.get("quoted", set()) if name not in step.said.files}
    held = [text for text in step.texts if text.lower() not in step.said.lower]
    if said and held and len(held) == len(step.texts) and not any(name.strip(".,!? ") in given for name in said):
        return _names(said), _names(set(held)), f"Put {_names(said)} in the arguments"
    return None


def _other_proper_name(step: StepView, given: str) -> _Found:
    """Find a proper name that is missing, where a single other name stands: a place, a language, a person, a host."""
    lower = step.said.lower
    for name in sorted(_identifiers(step)):
        held = {text for text in step.texts if text.lower() not in lower and _shape(text) == _shape(name)}
        if held and name not in given:
            return repr(name), _names(held), f"Put {name!r} in the arguments"
    said = {name for name in step.said.proper if len(name) > 2}
    if not said or any(name in given for name in said):
        return None
    held = {
        text
        for text in step.texts
        if _is_a_name(text) and not any(word in lower for word in phrase_words(text)) and text.lower() not in lower
    }
    for text in sorted(held):
        return _names(said), repr(text), f"Put {_names(said)} in the arguments in place of {text!r}"
    return None


def _identifiers(step: StepView) -> set[str]:
    return {name for name in step.said.names.get("code", set()) if any(map(str.isalpha, name))}


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name.lower())


def _is_a_name(text: str) -> bool:
    words = text.split()
    return 0 < len(words) <= _MAX_NAME_WORDS and all(w[0].isupper() and w[1:].islower() and w.isalpha() for w in words)


def _names(names: set[str]) -> str:
    return ", ".join(clip(name) for name in sorted(names)[:3])
