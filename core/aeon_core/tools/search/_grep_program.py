"""Asking the search program, and putting its answer as Grep's result."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from aeon_core.errors import ToolError
from aeon_core.tools.search import regex_program
from aeon_core.tools.search._child import run
from aeon_core.tools.search._search_tool import MAX_SHOWN, shown_path
from aeon_core.tools.search.regex_program import MAX_FILE, MAX_TOTAL, Answer, Query

# Without site-packages and the user's settings it starts in some 20 ms.
_PROGRAM = [sys.executable, "-I", "-S", "-X", "utf8", regex_program.__file__]
_GRACE = 2.0
_NAMED = 5


def search_files(root: Path, query: Query, paths: list[str]) -> Answer:
    """Return what a search of the files, in their order, finds.

    Raises ToolError for a pattern that is no regular expression, needs too much memory, or takes longer on one file
    than the query's `cpu_seconds`; TimeoutError where all of it takes longer than its `seconds`.
    """
    data = json.dumps(query).encode() + b"\n" + b"".join(os.fsencode(path) + b"\0" for path in paths)
    if query["seconds"] <= 0:
        raise TimeoutError
    try:
        done = run(_PROGRAM, folder=root, data=data, seconds=query["seconds"] + _GRACE)
    except TimeoutError:
        raise
    except OSError as error:
        raise ToolError(f"Grep: the search cannot be started: {error.strerror}; try again") from None
    if done.code == -signal.SIGALRM:
        raise TimeoutError
    if done.code == -signal.SIGPROF:
        raise ToolError(
            f"Grep: pattern {query['pattern'][:MAX_SHOWN]!r} takes more than {query['cpu_seconds']:g} s on one file; "
            "write it without a repeat inside a repeat, such as a+ for (a+)+"
        )
    if done.code:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ToolError(f"Grep: the search broke off, code {done.code}: {reason[:MAX_SHOWN] or 'nothing was said'}")
    answer: Answer = json.loads(done.stdout)
    if wrong := answer.get("error"):
        raise ToolError(f"Grep: pattern {query['pattern'][:MAX_SHOWN]!r} cannot be used: {wrong}")
    return answer


def found(answer: Answer, query: Query, paths: list[str]) -> dict[str, Any]:
    """Return Grep's result: what was found, how much there is in all, and in `notes` what was left out."""
    mode = query["mode"]
    total = answer["lines" if mode == "content" else "files"]
    names = [shown_path(path) for path in paths]
    listed: dict[str, Any] = {}
    if mode == "files_with_matches":
        listed["files"] = [names[entry["file"]] for entry in answer["entries"]]
    elif mode == "count":
        listed["counts"] = [{"path": names[entry["file"]], "count": entry["lines"]} for entry in answer["entries"]]
    else:
        listed["matches"] = [
            {"path": names[entry["file"]], **{key: value for key, value in entry.items() if key != "file"}}
            for entry in answer["entries"]
        ]
    return {
        **listed,
        "total_files": answer["files"],
        "total_lines": answer["lines"],
        "truncated": answer["cut"],
        "notes": _notes(answer, query, total, names),
    }


def _notes(answer: Answer, query: Query, total: int, names: list[str]) -> list[str]:
    notes = []
    if answer["cut"]:
        what = "matching lines" if query["mode"] == "content" else "files"
        limit = "head_limit" if answer["shown"] >= query["limit"] else f"a result holds {MAX_TOTAL // 1000} kB"
        notes.append(
            f"Shown are the first {answer['shown']:,} of {total:,} {what} ({limit}); "
            "use a narrower pattern, path, glob or type."
        )
    if answer["large"]:
        reason = f"larger than {MAX_FILE // 1_000_000} MB"
        notes.append(f"Not searched, {reason}: {_some(answer['large'], names)}.")
    if answer["unreadable"]:
        notes.append(f"Not searched, cannot be read: {_some(answer['unreadable'], names)}.")
    return notes


def _some(places: list[int], names: list[str]) -> str:
    more = len(places) - _NAMED
    return ", ".join(names[place] for place in places[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
