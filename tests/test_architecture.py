"""What holds for the project as a whole: the kernel's size, and what an import brings with it (core FR-042, SC-010)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATHS = os.pathsep.join(str(ROOT / part) for part in (".", "core", "widgets", "themes"))


def loaded_by(code: str, *arguments: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


SCREEN = {"textual", "rich"}
SDKS = {"openai", "anthropic", "boto3", "httpx", "httpx2"}


def test_the_kernel_stays_under_700_raw_lines() -> None:
    kernel = ROOT / "core" / "aeon_core" / "kernel"
    lines = sum(len((kernel / name).read_text().splitlines()) for name in ("orchestrator.py", "executor.py"))
    assert lines < 700


@pytest.mark.parametrize(
    "code",
    [
        "import aeon_core",
        "import aeon_core; [getattr(aeon_core, name) for name in aeon_core.__all__]",
        "import aeon_core.llm.openai, aeon_core.llm.anthropic",
    ],
)
def test_the_core_brings_neither_a_screen_nor_an_sdk(code: str) -> None:
    assert not loaded_by(code) & (SCREEN | SDKS)


@pytest.mark.parametrize("arguments", [["--help"], ["runs"], ["runs", "--json"]])
def test_light_commands_stay_light(arguments: list[str]) -> None:
    code = "import sys, aeon_tui.cli\ntry:\n    aeon_tui.cli.main(sys.argv[1:])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code, *arguments) & ({"textual"} | SDKS)


def test_help_needs_no_model_of_the_data() -> None:
    code = "import aeon_tui.cli\ntry:\n    aeon_tui.cli.main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & {"pydantic", "yaml", "aeon_core", "rich"}
