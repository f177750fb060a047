"""Leaving out, with ripgrep where there is one, the files that do not hold the text that a pattern needs.

What ripgrep says is never shown: the files that it leaves are searched as all are where there is no ripgrep. So both
ways give the same results, and a file swapped for a link under ripgrep's feet gives nothing away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

from aeon_core.tools.search.matching import required_text

WORTH_IT = 50
"""Fewer files than these are read before ripgrep has started."""

_MAX_ARGUMENTS = 200_000
# fmt: off
_OPTIONS = (
    "--no-config", "--no-messages", "--no-follow", "--no-ignore", "--hidden", "--text", "--encoding", "none",
    "--color", "never", "--files-with-matches", "--null", "--fixed-strings",
)
# fmt: on
# Where an interpreter that was installed by hand finds its libraries; nothing else of the environment is passed on.
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def find_ripgrep(root: Path) -> str | None:
    """Return the path of the `rg` installed beside Aeon, else of the one on PATH; None where there is none.

    One in the project is not run: the project's authors would control what it does.
    """
    for path in (sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)):
        found = shutil.which("rg", path=path)
        if found and Path(found).is_absolute() and not Path(found).resolve().is_relative_to(root):
            return found
    return None


def narrowed(program: str, root: Path, paths: list[str], pattern: str, ignore_case: bool, deadline: float) -> list[str]:
    """Return those of the paths, in their order, in which the pattern may match.

    All of them for a pattern that needs no certain text, and where ripgrep fails. Raises TimeoutError at the deadline,
    a time of the monotonic clock in seconds.
    """
    text = required_text(pattern, ignore_case) if len(paths) >= WORTH_IT else ""
    if not text:
        return paths
    case = "--ignore-case" if ignore_case else "--case-sensitive"
    kept: list[str] = []
    for chunk in _chunks(paths):
        try:
            done = subprocess.run(  # noqa: S603  # a list, and the program is found outside the project
                [program, *_OPTIONS, case, "-e", text, "--", *(f"./{path}" for path in chunk)],
                cwd=root,
                env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=max(deadline - time.monotonic(), 0),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        except OSError:
            return paths
        if done.returncode not in (0, 1):
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
