"""Leaving out, with ripgrep where there is one, the files in which a pattern cannot match.

What ripgrep says is never shown: the files that it leaves are searched by Python's engine, as all are where there is
no ripgrep. So both ways give the same results, and a file swapped for a link under ripgrep's feet gives nothing away.
"""

from __future__ import annotations

import os
import shutil
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from aeon_core.tools.search._child import run
from aeon_core.tools.search._ripgrep_pattern import loosened

WORTH_IT = 50
"""Fewer files than these are read before ripgrep has started."""

_MAX_ARGUMENTS = 200_000
# fmt: off
_OPTIONS = (
    "--no-config", "--no-messages", "--no-follow", "--no-ignore", "--hidden", "--text", "--encoding", "none",
    "--color", "never", "--files-with-matches", "--null",
)
# fmt: on


def find_ripgrep(root: Path) -> str | None:
    """Return the path of the `rg` installed beside Aeon, else of the one on PATH; None where there is none.

    One that lies in the project is not run, for whoever wrote the project would say what it does.
    """
    for path in (sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)):
        found = shutil.which("rg", path=path)
        if found and Path(found).is_absolute() and not Path(found).resolve().is_relative_to(root):
            return found
    return None


def narrowed(program: str, root: Path, paths: list[str], pattern: str, ignore_case: bool, deadline: float) -> list[str]:
    """Return those of the paths, in their order, in which the pattern may match in one line.

    All of them for a pattern that ripgrep cannot judge, and where it fails. Raises TimeoutError at the
    deadline, a time of the monotonic clock in seconds.
    """
    wider = loosened(pattern, ignore_case) if len(paths) >= WORTH_IT else None
    if wider is None:
        return paths
    kept: list[str] = []
    for chunk in _chunks(paths):
        command = [program, *_OPTIONS, "-e", wider, "--", *(f"./{path}" for path in chunk)]
        try:
            done = run(command, folder=root, data=b"", seconds=deadline - time.monotonic())
        except TimeoutError:
            raise
        except OSError:
            return paths
        if done.code not in (0, 1):
            return paths
        found = {os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0")}
        kept += [path for path in chunk if path in found]
    return kept


def _chunks(paths: list[str]) -> Iterator[list[str]]:
    """Give the paths in parts that fit a command line."""
    chunk: list[str] = []
    size = 0
    for path in paths:
        chunk.append(path)
        size += len(path.encode("utf-8", "surrogateescape")) + 3
        if size > _MAX_ARGUMENTS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
