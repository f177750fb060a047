"""Counterparts from npm, where they can be installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import PATIENCE


def install(package: str, folder: Path) -> Path:
    """Install a package below the folder and return its `node_modules`; skip the test where that cannot be done."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    command = ["npm", "install", "--prefix", str(folder), "--loglevel", "error", "--no-audit", "--no-fund", package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm does not install {package} within {PATIENCE:g} s")
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        pytest.skip(f"npm cannot install {package}: {' '.join(errors[:2])}")
    return folder / "node_modules"
