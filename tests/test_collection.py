"""The first run of the tests, in which each worker imports a share of them before it collects all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
MODULES = {
    "test_good": "def test_it():\n    pass\n",
    "test_skipped": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "test_failed": "import pytest\npytest.fail('no')\n",
    "test_raising": "raise OSError('no')\n",
    "test_broken": "def test_it(:\n",
}


@pytest.mark.exhaustive
def test_what_cannot_be_imported_is_reported_and_the_other_tests_run_in_a_read_only_checkout(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for name in ("pyproject.toml", "tests/__init__.py", "tests/conftest.py", "tests/sampling.py"):
        shutil.copyfile(REPOSITORY / name, tmp_path / name)
    for name, text in MODULES.items():
        (tmp_path / "tests" / f"{name}.py").write_text(text)
    (tmp_path / ".pytest_cache").write_text("in the way, also of root")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-n", "2"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    reported = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("ERROR tests")}
    assert reported == {f"tests/test_{name}.py" for name in ("failed", "raising", "broken")}, done.stdout + done.stderr
    assert "1 passed, 1 skipped" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")
