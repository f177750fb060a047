"""Running one of Aeon's own helper programs: an argument list, no shell, no inherited settings, an end in time."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Where an interpreter that was installed by hand finds its libraries; nothing else of the environment is passed on.
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class Done:
    """How a program ended; a negative code is the signal that ended it."""

    code: int
    stdout: bytes
    stderr: bytes


def run(arguments: list[str], *, folder: Path, data: bytes, seconds: float) -> Done:
    """Run a program in a folder with `data` as its input, and return how it ended.

    Raises TimeoutError after `seconds`, OSError where the program cannot be started. Whatever ends the waiting, the
    program and what it started are killed.
    """
    process = subprocess.Popen(  # noqa: S603  # a list, and the program is ours
        arguments,
        cwd=folder,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        with process:
            try:
                stdout, stderr = process.communicate(data, max(seconds, 0))
            except BaseException:
                _kill(process)
                raise
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{arguments[0]} did not end in {seconds:.0f} s") from None
    return Done(process.returncode, stdout, stderr)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # Not waited for yet, so the id is still this program's.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
