"""A run that is killed takes the command with it that its shell tool has begun, and what that has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import cast, get_args

import pytest

from aeon_core import ApprovalDecision, Orchestrator, RunConfig, ToolRegistry
from aeon_core.runs.resume import resume
from aeon_core.tools.shell.bash import shell_tools
from aeon_core.tools.shell.isolation import Isolation, Rung, fault_of
from tests.aeon_core.kernel.crash_checks import read
from tests.aeon_core.kernel.crashes import ROOT
from tests.aeon_core.kernel.scenarios import JOURNAL
from tests.fakes import ScriptedModel, steps
from tests.sampling import sample
from tests.waiting import wait_until

COMMAND = "echo begun >> acted; (sleep {0}.1 & sleep {0}.2 & wait) & sleep {0}.3"
"""`{0}` is a number that identifies its processes."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are looked for in /proc")


def orchestrator(folder: Path, rung: Rung) -> Orchestrator:
    return Orchestrator(
        ScriptedModel(answer="done"),
        tools=registry(folder, rung),
        approver=lambda _: ApprovalDecision(decision="approve"),
        journal=folder / JOURNAL,
        config=RunConfig(single_pass=True),
    )


def registry(folder: Path, rung: Rung) -> ToolRegistry:
    tools = ToolRegistry()
    for each in shell_tools(folder, isolation=Isolation(rung, network=False)):
        tools.register(each)
    return tools


def run(folder: Path, rung: Rung) -> None:
    """Run the command; what is to be killed."""
    command = COMMAND.format(number_of(folder))
    orchestrator(folder, rung).run("act", steps({"tool": "Bash", "arguments": {"command": command}}))


def number_of(folder: Path) -> int:
    return 10**6 + folder.stat().st_ino


def sleeping(folder: Path) -> int:
    """Return how many of the command's processes are alive."""
    words = f"sleep\0{number_of(folder)}."
    found = 0
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += place.read_text().startswith(words)
    return found


def until_sleeping(folder: Path, expected: int) -> None:
    wait_until(
        lambda: sleeping(folder) == expected,
        lambda: f"{sleeping(folder)} processes of the command are alive, not {expected}",
    )


@pytest.fixture(params=sample(get_args(Rung), 2))
def rung(request: pytest.FixtureRequest, tmp_path: Path) -> Rung:
    """What a command is held to; where it is nothing, a program of Aeon's supervises it all the same."""
    found: Rung = request.param
    if found != "none" and (fault := fault_of(Isolation(found, network=False), tmp_path)) is not None:
        pytest.skip(f"{found} does not hold here: {fault}")
    return found


@pytest.fixture
def killed(tmp_path: Path, rung: Rung) -> Path:
    """The folder of a run that was killed while its command ran."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "core"))
    with subprocess.Popen(
        [sys.executable, "-m", __name__, str(tmp_path), rung],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    ) as process:
        try:
            until_sleeping(tmp_path, 3)
        finally:
            process.kill()
        assert process.wait() == -signal.SIGKILL
    return tmp_path


def test_a_killed_command_leaves_no_process_and_an_unknown_outcome(killed: Path, rung: Rung) -> None:
    until_sleeping(killed, 0)
    last = read(killed / JOURNAL)[-1]
    assert (last["type"], last["state"], last["effect"]) == ("tool", "started", "unsafe")
    result = resume(killed / JOURNAL, ScriptedModel(answer="done"), registry(killed, rung))
    assert "whether 'Bash' took effect is unknown" in result.steps[0].errors[0]
    assert (killed / "acted").read_text() == "begun\n"


if __name__ == "__main__":
    run(Path(sys.argv[1]), cast("Rung", sys.argv[2]))
