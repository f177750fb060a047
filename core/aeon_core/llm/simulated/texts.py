"""Text tasks: echo, reverse, change of case, counting; and the clauses a task consists of."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from aeon_core.llm.simulated.calculator import MAX_CLAUSE, VERBS, Ref, listed

MAX_PAYLOAD = 4000
"""Characters of a text that a step's description quotes."""

_POLITE = re.compile(
    r"(?:[\s,:;.]*\b(?:please|kindly|now|then|next|finally|first|also|and|can you|could you|would you|i want you to"
    r"|i would like you to|let's|go ahead and)\b)*[\s,:;]*",
    re.IGNORECASE,
)
_ECHO = re.compile(r"(?:echo|repeat(?: after me| back)?|say|parrot|print)\b[\s:,]*", re.IGNORECASE)
_REVERSE = re.compile(r"(?:reverse|flip|spell backwards)\b(?! engineer)[\s:]*", re.IGNORECASE)
_CASE = re.compile(r"(?:(?P<upper>upper-?case|capitali[sz]e|shout)|lower-?case)\b[\s:]*", re.IGNORECASE)
_CONVERT = re.compile(r"(?:convert|turn|change|make|put|write|transform|spell|say)\b[\s:]*", re.IGNORECASE)
_ENDING = re.compile(
    r"[\s,]+(?:(?:in|into|to|all)\s+)*(?:(?P<upper>upper[- ]?case|capitals|capital letters)|(?P<lower>lower[- ]?case)"
    r"|(?P<reverse>backwards?|reversed|in reverse))(?:\s+letters)?[\s.!?]*$",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"(?:(?:count|how many)\s+(?:the\s+)?(?:number of\s+)?"
    r"|(?:(?:what is|get|find|give|tell me)\s+)?(?:the\s+)?(?:number of\s+|(?=(?:word|character|letter|line) count)))"
    r"(?P<unit>words?|characters?|letters?|lines?)\s+(?:count\s+)?(?:are\s+)?(?:there\s+)?(?:in|of)\b[\s:]*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:the\s+|this\s+|following\s+){0,2}(?:text|words?|string|phrase|sentence|message)\b[\s:]*", re.IGNORECASE
)
_QUOTES = {'"': '"', "'": "'", "“": "”", "«": "»", "`": "`", "‘": "’"}
QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|«([^»]*)»|`([^`]*)`|(?<!\w)'([^']*)'(?!\w)")
_REFERENCE = re.compile(
    r"(?:it|that|this|them|(?:the |that |this |its |their )?(?:(?:previous|last) )?"
    r"(?:result|results|answer|output|text|content|contents))[\s.!?]*$",
    re.IGNORECASE,
)
_FILE = re.compile(r"[~\w./-]+\.[A-Za-z]\w{0,7}")
_NO_FILE = frozenset({"e.g", "i.e", "node.js", "vue.js", "next.js", "asp.net"})

_BREAK = re.compile(r"[;\n,]|[.!?](?=\s)|\band\s{1,5}then\b|\bthen\b|\band\b", re.IGNORECASE)
_STRONG = re.compile(r"[;\n.!?]|then", re.IGNORECASE)
_CLAUSE_VERBS = VERBS | listed(
    "echo repeat say print parrot reverse flip uppercase lowercase capitalise capitalize convert count read"
    " open load show summarise summarize write save store create append explain translate tell list describe"
    " compare report round sort send find give what how check review fix rename delete move copy"
)

COMPUTED = ("echo", "reverse", "uppercase", "lowercase", "count words", "count characters", "count lines")
_UNITS = {"word": "words", "line": "lines"}
_PHRASES = {
    "echo": "Echo {}",
    "reverse": "Reverse {}",
    "uppercase": "Uppercase {}",
    "lowercase": "Lowercase {}",
    "count words": "Count words in {}",
    "count characters": "Count characters in {}",
    "count lines": "Count lines in {}",
}


@dataclass(frozen=True)
class TextTask:
    """What is to be done with a text, given or an earlier step's."""

    operation: str
    """One of COMPUTED."""
    text: str | Ref
    quoted: bool = False

    def description(self) -> str:
        """Return the task as a sentence that reads back as the same task, long texts cut."""
        if isinstance(self.text, Ref):
            return _PHRASES[self.operation].format(f"the result of {self.text.step_id}")
        kept = self.text[:MAX_PAYLOAD]
        what = "the text" if kept == self.text else f"the first {MAX_PAYLOAD} characters of the text"
        return f'{_PHRASES[self.operation].format(what)} "{kept}"'


def parse_text_task(clause: str, step_ids: Sequence[str] = ()) -> TextTask | None:
    """Return the text task that a clause begins with, or None."""
    head = clause[:MAX_CLAUSE]
    begin = _begin(head)
    rest = head[begin:]
    if match := _ECHO.match(rest):
        return _task("echo", clause[begin + match.end() :], step_ids)
    if match := _REVERSE.match(rest):
        return _task("reverse", clause[begin + match.end() :], step_ids)
    if match := _CASE.match(rest):
        return _task("uppercase" if match["upper"] else "lowercase", clause[begin + match.end() :], step_ids)
    if match := _COUNT.match(rest):
        unit = _UNITS.get(match["unit"].lower().rstrip("s"), "characters")
        return _task(f"count {unit}", clause[begin + match.end() :], step_ids)
    if (match := _CONVERT.match(rest)) and len(clause) <= MAX_CLAUSE:
        return _converted(rest[match.end() :], step_ids)
    return None


def strip_politeness(clause: str) -> str:
    """Return a clause from its first word that says something."""
    return clause[_begin(clause) :]


def _begin(head: str) -> int:
    match = _POLITE.match(head)
    return match.end() if match else 0


def _converted(rest: str, step_ids: Sequence[str]) -> TextTask | None:
    # Only the end is searched: the pattern is anchored there.
    cut = max(0, len(rest) - 60)
    ending = _ENDING.search(rest, cut)
    if ending is None:
        return None
    operation = "uppercase" if ending["upper"] else "lowercase" if ending["lower"] else "reverse"
    return _task(operation, rest[: ending.start()], step_ids)


def _task(operation: str, payload: str, step_ids: Sequence[str]) -> TextTask | None:
    payload = payload.strip()
    payload = payload.removeprefix(f"the first {MAX_PAYLOAD} characters of ")
    if (reference := _reference(payload, step_ids)) is not None:
        return TextTask(operation, reference)
    lead = _LEAD.match(payload[:100])
    if lead and (operation != "echo" or payload[lead.end() : lead.end() + 1] in _QUOTES):
        payload = payload[lead.end() :]
    text, quoted = _unquoted(payload)
    if not quoted and operation != "echo":
        text = text.rstrip(" .?!")
    return TextTask(operation, text, quoted) if text.strip() else None


def _reference(payload: str, step_ids: Sequence[str]) -> Ref | None:
    head = payload[:300]
    if _REFERENCE.match(head):
        return Ref()
    prefix = "the result of "
    if head.lower().startswith(prefix):
        named = [step_id for step_id in step_ids if head[len(prefix) :].startswith(step_id)]
        return Ref(max(named, key=len)) if named else None
    return None


def _unquoted(payload: str) -> tuple[str, bool]:
    """Return what stands in quotes, up to the last closing one, or else the text itself."""
    closing = _QUOTES.get(payload[:1])
    if closing is not None:
        end = payload.rfind(closing)
        if end > 0:
            return payload[1:end], True
    quoted = quotations(payload)
    return (quoted[0], True) if len(quoted) == 1 else (payload, False)


def quotations(text: str) -> list[str]:
    """Return what stands in quotes, in order."""
    matches = QUOTED.finditer(text[:MAX_CLAUSE])
    return [next(group for group in match.groups() if group is not None) for match in matches]


def file_names(text: str) -> list[str]:
    """Return what looks like a path of a file, in order."""
    names = []
    for word in text[:MAX_CLAUSE].split():
        word = word.strip("\"'`“”«»(),;:!?").rstrip(".")
        if _FILE.fullmatch(word) and word.lower() not in _NO_FILE and "://" not in word:
            names.append(word)
    return names


def compute(operation: str, text: str) -> str:
    """Return the result of a text task on a text."""
    if operation == "reverse":
        return text[::-1]
    if operation == "uppercase":
        return text.upper()
    if operation == "lowercase":
        return text.lower()
    if operation == "count words":
        return _counted(len(text.split()), "word")
    if operation == "count lines":
        return _counted(len(text.splitlines()), "line")
    if operation == "count characters":
        return _counted(len(text), "character")
    return text


def _counted(number: int, unit: str) -> str:
    return f"The text has {number} {unit}{'' if number == 1 else 's'}."


def clauses(task: str) -> list[str]:
    """Return the parts of a task that are to be done one after the other; a long task is one clause."""
    if len(task) > MAX_CLAUSE:
        return [task]
    protected = [match.span() for match in QUOTED.finditer(task)]
    parts: list[str] = []
    begin = 0
    for match in _BREAK.finditer(task):
        inside = any(start < match.start() < end for start, end in protected)
        if not inside and _breaks(task[begin : match.start()], match.group(), task[match.end() : match.end() + 80]):
            parts.append(task[begin : match.start()].rstrip(" ,"))
            begin = match.end()
    parts.append(task[begin:])
    return [part.strip() for part in parts if part.strip()]


def _breaks(before: str, separator: str, after: str) -> bool:
    """Whether a new clause begins: after "then" and the like always, after "and" where a verb follows."""
    if _STRONG.search(separator):
        return True
    if _ECHO.match(before[_begin(before) :]) and not QUOTED.search(before):
        return False
    words = after[_begin(after) :].split(None, 1)
    return bool(words) and words[0].lower().strip(":,.'\"") in _CLAUSE_VERBS
