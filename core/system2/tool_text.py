"""Tool calls as text: results for the model, arguments for a log, and the tests that agents ran (REQ-030, REQ-122)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aeon_core.escape import escape_controls
from aeon_core.redaction import cut_place, redact_text

MAX_RESULT = 100_000
"""Characters of a result that the model gets (DQ-4)."""
MAX_SUMMARY = 100
"""Characters of the arguments that a log shows."""
CONTENTS = frozenset({"content", "old_string", "new_string", "diff"})
"""Arguments that are file content: a log shows only their length (REQ-111)."""


def result_text(tool: str, result: Mapping[str, Any], keep: Callable[[str], str | None]) -> str:
    """Return a tool's result as text; one longer than MAX_RESULT is cut, with a note on where to read all of it.

    `keep` saves a text where the agent can read it and returns the path of the file, or None if it cannot.
    """
    text = _TEXTS.get(tool, _as_json)(result)
    if len(text) <= MAX_RESULT:
        return text
    if tool == "Read":
        return _read_cut(result)
    head = text[: MAX_RESULT // 2].rpartition("\n")[0] or text[: MAX_RESULT // 2]
    tail = text[-MAX_RESULT // 2 :].partition("\n")[2] or text[-MAX_RESULT // 2 :]
    where = "ask for less at a time"
    if "output_file" in result:
        where = f"all of it is in {str(result['output_file'])!r}: Read it with offset and limit"
    elif (place := keep(text)) is not None:
        where = f"all of it is in {place!r}: Read it from offset {head.count(chr(10)) + 2} on"
    return f"{head}\n[TRUNCATED] {len(text) - len(head) - len(tail):,} characters left out; {where}\n{tail}"


_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
"""What Read writes before each line."""


def summary_of(arguments: Mapping[str, Any]) -> str:
    """Return the arguments in one line of at most 100 characters, without the content of files and without secrets."""
    text = " ".join(
        f"{escape_controls(redact_text(name))}={_argument(name, value)}" for name, value in arguments.items()
    )
    return text if len(text) <= MAX_SUMMARY else f"{text[: cut_place(text, MAX_SUMMARY - 1)]}…"


def _argument(name: str, value: Any) -> str:
    if name in CONTENTS and isinstance(value, str):
        return f"<{len(value):,} characters>"
    if not isinstance(value, str):
        return escape_controls(redact_text(json.dumps(value, ensure_ascii=False)))
    text = escape_controls(redact_text(value))
    return json.dumps(text, ensure_ascii=False) if not text or " " in text else text


def _read_cut(result: Mapping[str, Any]) -> str:
    lines = str(result["content"])[:MAX_RESULT].rpartition("\n")[0]
    last = result["start_line"] + lines.count("\n")
    return (
        f"{lines}\n[lines {result['start_line']} to {last} of {result['total_lines']}; read on with offset {last + 1}]"
    )


def quoted_lines(error: str) -> str:
    """Return the lines of a file that an error quotes, without their numbers; the whole error if it quotes none."""
    return "\n".join(_NUMBER.sub("", line) for line in error.split("\n") if _NUMBER.match(line)) or error


def scanned_text(tool: str, result: Mapping[str, Any]) -> str:
    """Return the parts of a tool's result that others wrote, without our line numbers and notes."""
    if tool == "Read":
        return _NUMBER.sub("", str(result["content"]))
    if tool in ("Grep", "Glob"):
        return "\n".join(
            [str(match["text"]) for match in result.get("matches", ())] or map(str, result.get("files", ()))
        )
    return "\n\n".join(str(result.get(stream, "")) for stream in ("stdout", "stderr"))


def _read(result: Mapping[str, Any]) -> str:
    return "\n".join([result["content"] or "(no lines)", *(f"[{note}]" for note in result["notes"])])


def _written(result: Mapping[str, Any]) -> str:
    how = "made" if result["created"] else "replaced"
    return f"{result['file_path']} was {how}: {result['lines']:,} lines, {result['bytes']:,} bytes"


def _edited(result: Mapping[str, Any]) -> str:
    what = "hunks applied" if result["method"] == "diff" else "occurrences replaced"
    return f"{result['file_path']} was changed: {result['replacements']:,} {what}\n{result['diff']}"


def _found(result: Mapping[str, Any]) -> str:
    lines = [*result.get("files", ())]
    lines += [f"{each['path']}:{each['count']}" for each in result.get("counts", ())]
    for match in result.get("matches", ()):
        lines.append(f"{match['path']}{'-' if match.get('context') else ':'}{match['line']}: {match['text']}")
    return "\n".join([*(lines or ["nothing was found"]), *(f"[{note}]" for note in result["notes"])])


def _ran(result: Mapping[str, Any]) -> str:
    lines = [f"exit code {result['exit_code']}" + (" (ended by the time limit)" if result["timed_out"] else "")]
    for stream in ("stdout", "stderr"):
        if text := result[stream].rstrip("\n"):
            lines.append(f"{stream}:\n{text}")
    return "\n".join([*lines, *(f"[{notice}]" for notice in result.get("notices", ()))])


def _as_json(result: Mapping[str, Any]) -> str:
    return json.dumps(result, ensure_ascii=False)


_TEXTS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "Read": _read,
    "Write": _written,
    "Edit": _edited,
    "Grep": _found,
    "Glob": _found,
    "Bash": _ran,
}


_RUNS_TESTS = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ctest|phpunit|rspec|doctest)\b"
    r"|\b(?:go|cargo|npm|yarn|pnpm|make|gradle|mvn|dotnet|bundle exec|rake|deno|bun|mix|swift|sbt)\b[^;&|\n]*"
    r"\b(?:test|check)s?\b"
    r"|\bpython[\d.]*\s+\S*test\S*\.py\b",
    re.IGNORECASE,
)
MAX_SHOWN = 20


@dataclass(frozen=True)
class RanCommand:
    """A command that runs tests."""

    agent: str
    command: str
    exit_code: int


def ran_test(agent: str, command: str, exit_code: int) -> RanCommand | None:
    """Return a command if it runs tests, else None."""
    return RanCommand(agent, command, exit_code) if _RUNS_TESTS.search(command) else None


def _shown(command: str) -> str:
    return summary_of({"command": command}).removeprefix("command=").strip('"')


def list_tests(ran: Iterable[RanCommand]) -> str:
    """Return how each command last ended, one per line."""
    last = {each.command: each for each in ran}
    if not last:
        return "Tests: no agent ran any."
    lines = [
        f"{' ' if each.exit_code == 0 else '⚠'} exit {each.exit_code}  {each.agent}: {_shown(command)}"
        for command, each in list(last.items())[-MAX_SHOWN:]
    ]
    return "\n".join(["Tests, as they ended last:", *lines])
