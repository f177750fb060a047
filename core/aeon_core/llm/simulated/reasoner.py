"""Whether a result is one: which results count, which is the last, and whether it says anything of its own."""

from __future__ import annotations

import re

from aeon_core.llm.simulated.calculator import (
    MAX_CLAUSE,
    Ref,
    decimals_asked,
    evaluate,
    listed,
    named,
    parse_arithmetic,
    rounded,
    sentence,
    show_number,
)
from aeon_core.llm.simulated.planner import part_of, whole_of, worked_out
from aeon_core.llm.simulated.prompt import (
    MissingResultError,
    Prompt,
    StepOutcome,
    clip,
    earlier,
    number_of,
    number_resolver,
    text_of,
    text_of_value,
)
from aeon_core.llm.simulated.texts import clauses, compute, file_names, parse_text_task
from aeon_core.llm.simulated.tools import known_ids, payload, words_of

_SAME_WORDS = listed("the points are is and built on in short words without a tool of memory holds result no")
"""Words with which a thought is put together; they say nothing about its subject."""
_BEGINNING = 100
_LACKS_TOOL = re.compile(r"(?:In short: )?No tool is there to \w+ ")
_LACKS_RESULT = re.compile(r"(?:In short: )?(?:There is no earlier result|The result of \S+ is (?:missing|no number))")


def valid_results(prompt: Prompt) -> list[StepOutcome]:
    """Return what the steps gave, without those that others stand in for."""
    invalid = {step["step_id"] for step in prompt.steps if step.get("status") == "invalid"}
    return [result for result in prompt.results if result.step_id not in invalid]


def last_result(prompt: Prompt) -> StepOutcome | None:
    """Return the result that no other one builds on: the last, or what puts the parts together that it belongs to."""
    valid = valid_results(prompt)
    if not valid:
        return None
    thing = part_of(described(prompt, valid[-1].step_id))
    wholes = [result for result in valid if thing and whole_of(described(prompt, result.step_id)) == thing]
    return wholes[-1] if wholes else valid[-1]


def described(prompt: Prompt, step_id: str) -> str:
    """Return the description of a step, empty where the plan does not show it."""
    step = next((step for step in prompt.steps if step["step_id"] == step_id), {})
    description = step.get("description")
    return description if isinstance(description, str) else ""


def undone(outcome: StepOutcome) -> bool:
    """Whether a step says itself that it could not be done."""
    text = text_of(outcome)
    return lacks_tool(outcome) or _LACKS_RESULT.match(text) is not None


def lacks_tool(outcome: StepOutcome) -> bool:
    """Whether a step says that no tool is there for it."""
    return _LACKS_TOOL.match(text_of(outcome)) is not None


def hollow(prompt: Prompt, outcome: StepOutcome) -> bool:
    """Whether what was thought in a step holds no word and no number beyond the task and the plan.

    One that begins by repeating its step does not become a result by quoting what other steps gave.
    """
    step = next((step for step in prompt.steps if step["step_id"] == outcome.step_id), {})
    description = described(prompt, outcome.step_id)
    if outcome.failed or step.get("tool") or not description or is_exact(description):
        return False
    asked = [prompt.text("goal"), prompt.text("task"), *(str(one.get("description")) for one in prompt.steps)]
    if text_of(outcome).startswith(description[:_BEGINNING].rstrip(".")):
        asked += [text_of(other) for other in prompt.results if other.step_id != outcome.step_id and not other.failed]
    known = _SAME_WORDS.union(*map(words_of, asked), *(words_of(one["step_id"]) for one in prompt.steps))
    return words_of(text_of(outcome)) <= known


def is_exact(description: str) -> bool:
    """Whether a description is a calculation, a rounding or a text task: what comes out of it is certain."""
    said = description[:MAX_CLAUSE]
    known = parse_text_task(said) is not None or parse_arithmetic(said) is not None
    return known or decimals_asked(said) is not None


_MAX_REPLY = 8000
_MAX_ANSWER = 1500
_MAX_POINTS = 6
_MAX_MENTIONED = 3
_MAX_SHORT = 60
_WORD = re.compile(r"[^\W\d_][\w'’-]{2,40}")
_COMMON = listed(
    "the and for with from into what which when where who why how that this these those then than they them their there"
    " about against more each all any can could should would will must please are was has have does not its our your"
    " make design build create implement develop write draft research analyse analyze compare explain find list say"
    " calculate compute add subtract multiply divide result step"
)
_FILE_VERBS = ("read", "open", "load", "write", "save")


def reason(prompt: Prompt, *, fallback: bool = False) -> str:
    """Return the result of the step at hand, computed where it is a calculation or a text task."""
    try:
        elaborated = worked_out(prompt.description) or _put_together(prompt) or _gathered(prompt)
        return elaborated or _computed(prompt) or _summary(prompt) or _lacking(prompt) or _thought(prompt, fallback)
    except (MissingResultError, ArithmeticError) as error:
        return str(error)


def _put_together(prompt: Prompt) -> str | None:
    """Return the parts of a thing under its name, None where the step is no such step or no part is there."""
    thing = whole_of(prompt.description)
    if thing is None:
        return None
    ids = {step["step_id"] for step in prompt.steps if part_of(str(step.get("description"))) == thing}
    parts = [text_of(result) for result in prompt.results if result.step_id in ids and not result.failed]
    return clip_end("\n".join([f"{thing[:1].upper()}{thing[1:]}", *parts]), _MAX_REPLY) if parts else None


def _gathered(prompt: Prompt) -> str | None:
    """Return what the substeps of the step at hand gave, None where it has none that have run."""
    inside = f"{prompt.step.get('step_id')}."
    return " ".join(_mention(result) for result in prompt.results if result.step_id.startswith(inside)) or None


def _computed(prompt: Prompt) -> str | None:
    ids = known_ids(prompt)
    task = parse_text_task(prompt.description, ids)
    if task is not None:
        return clip_end(compute(task.operation, payload(prompt, task)), _MAX_REPLY)
    if (decimals := decimals_asked(prompt.description)) is not None:
        return rounded(number_resolver(prompt)(Ref()), decimals)
    operation = parse_arithmetic(prompt.description, ids)
    if operation is None:
        return None
    resolve = number_resolver(prompt)
    return sentence(operation, evaluate(operation, resolve), resolve)


def _summary(prompt: Prompt) -> str | None:
    words = prompt.description[:20].lower()
    if not words.startswith(("summar", "sum up", "shorten")):
        return None
    needed = prompt.step.get("depends_on")
    if not needed and not prompt.results:
        return None
    outcome = earlier(prompt, Ref())
    text = text_of(outcome)
    return f"In short: {clip(text, 300)} ({outcome.step_id}, {len(text.split())} words)"


def _lacking(prompt: Prompt) -> str | None:
    """Return what a step says that the one at hand needs and that could not be done, None where all could."""
    needed = prompt.step.get("depends_on")
    found = (
        [prompt.outcome(step_id) for step_id in needed if isinstance(step_id, str)] if isinstance(needed, list) else []
    )
    return next((text_of(outcome) for outcome in found if outcome is not None and undone(outcome)), None)


def _thought(prompt: Prompt, fallback: bool) -> str:
    description = clip(prompt.description, 300).rstrip(".")
    verb = description.split(" ", 1)[0].lower()
    files = file_names(description)
    if verb in _FILE_VERBS and files:
        done = "written" if verb in ("write", "save") else "read"
        return f"No tool is there to {verb} {files[0]}, so nothing was {done}."
    parts = [f"{'Without a tool: ' if fallback else ''}{description or 'Nothing was asked'}."]
    points = _points(prompt.text("goal") or description)
    if points:
        parts.append(f"The points are {', '.join(points)}.")
    parts += _built_on(prompt.results[-_MAX_MENTIONED:])
    remembered = list(prompt.memory.items())[:_MAX_MENTIONED]
    parts += [f"Memory holds {clip(key, 40)}: {clip(text_of_value(value), 80)}." for key, value in remembered]
    return " ".join(parts)


def _points(text: str) -> list[str]:
    words = [word for word in _WORD.findall(text[:1000]) if word.lower() not in _COMMON]
    return list({word.lower(): word for word in words}.values())[:_MAX_POINTS]


def _built_on(results: list[StepOutcome]) -> list[str]:
    """Return sentences with short results and failures in full; of long ones only which they are."""
    long = [result.step_id for result in results if not result.failed and len(text_of(result)) > _MAX_SHORT]
    parts = [_mention(result) for result in results if result.step_id not in long]
    return [*parts, f"Built on {', '.join(long)}."] if long else parts


def _mention(result: StepOutcome) -> str:
    if result.failed:
        return f"{result.step_id} failed: {clip(result.errors[0], 120)}"
    return f"The result of {result.step_id} is {clip(text_of(result), 120).rstrip('.')}."


def answer(prompt: Prompt) -> str:
    """Return the answer to the task: the last result first, then which steps failed or did not run, and why."""
    valid = valid_results(prompt)
    done = [result for result in valid if not result.failed]
    failed = [result for result in valid if result.failed]
    parts = []
    last = last_result(prompt)
    if last is not None and not last.failed:
        parts.append(_given(prompt, last, len(valid)))
    elif done:
        parts.append(f"The task was not completed. {_mention(done[-1])}")
    else:
        parts.append("There is no result.")
    parts += [_failure(prompt, result) for result in failed[:5]]
    known = {result.step_id for result in prompt.results}
    waiting = [
        step["step_id"] for step in prompt.steps if step["step_id"] not in known and step.get("status") == "pending"
    ]
    if waiting:
        parts.append(f"Not run: {', '.join(waiting[:5])}{', …' if len(waiting) > 5 else ''}.")
    return "\n".join(parts)


def _failure(prompt: Prompt, result: StepOutcome) -> str:
    step = next((step for step in prompt.steps if step["step_id"] == result.step_id), {})
    needed = step.get("depends_on")
    known = {outcome.step_id for outcome in prompt.results if outcome.failed}
    missing = [name for name in needed if name in known] if isinstance(needed, list) else []
    if missing:
        return f"Step {result.step_id} failed: it needs the result of {missing[0]}."
    return f"Step {result.step_id} failed: {clip('; '.join(result.errors), 300)}"


def _given(prompt: Prompt, last: StepOutcome, executed: int) -> str:
    """Return the last result, or that it is none: where a step could not be done, or only repeats what is asked for."""
    if undone(last):
        return f"The task was not completed. {clip_end(text_of(last), _MAX_ANSWER)}"
    if not hollow(prompt, last):
        return _stated(prompt, last, executed)
    points = ", ".join(_points(prompt.text("task")))
    missing = f"The task was not completed: {last.step_id} only repeats what is asked for{points and f' ({points})'}."
    told = [result for result in valid_results(prompt) if not _is_nothing(prompt, result)]
    return "\n".join([missing, *(clip_end(text_of(result), _MAX_ANSWER) for result in told[-1:])])


def _is_nothing(prompt: Prompt, result: StepOutcome) -> bool:
    only_part = part_of(described(prompt, result.step_id)) is not None
    return result.failed or only_part or undone(result) or hollow(prompt, result)


def _stated(prompt: Prompt, last: StepOutcome, executed: int) -> str:
    """Return the last result as a sentence; a number gets the name of what was asked for."""
    text = clip_end(text_of(last), _MAX_ANSWER)
    number = number_of(last) if not isinstance(last.output, dict) or "text" not in last.output else None
    if number is None or clip(text, 80) != show_number(number):
        return text
    name = _asked(prompt, last.step_id)
    if name is None:
        return f"The result is {text}."
    steps = f" It took {executed} steps." if executed > 1 and name == "result" else ""
    return f"The {name} is {text}.{steps}"


def _asked(prompt: Prompt, step_id: str) -> str | None:
    """Return what the number is: named in the task, else by the step that gave it."""
    parts = clauses(prompt.text("task"))
    operation = parse_arithmetic(parts[0]) if len(parts) == 1 else None
    if operation is None and len(prompt.results) == 1:
        described = next((step.get("description") for step in prompt.steps if step["step_id"] == step_id), None)
        operation = parse_arithmetic(described, ()) if isinstance(described, str) else None
    return None if operation is None else named(operation)


def clip_end(text: str, length: int) -> str:
    """Return the text as it is, cut where it is longer."""
    return text if len(text) <= length else text[:length] + "…"
