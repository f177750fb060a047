"""The command line, called in this process in a folder of its own, or as a process."""

from __future__ import annotations

import io
import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest

import aeon_tui.cli
from aeon_core.llm.base import LLMAdapter
from aeon_tui.cli.main import main
from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[3]

# All commands now: one that is imported while a test replaces a function would keep the replacement.
for _module in pkgutil.iter_modules(aeon_tui.cli.__path__):
    import_module(f"aeon_tui.cli.{_module.name}")


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture(autouse=True)
def _own_folder(programs_on_path: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".aeon").mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def run(*arguments: str, stdin: str | bytes = "") -> Done:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def use_model(monkeypatch: pytest.MonkeyPatch) -> Callable[[LLMAdapter], None]:
    def use(model: LLMAdapter) -> None:
        monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _config: model)

    return use


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a process that finds the packages."""
    path = os.pathsep.join(str(ROOT / part) for part in (".", "core", "widgets", "themes"))
    return {**os.environ, "PYTHONPATH": path, **more}


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own; without a terminal, as under a script."""
    given: dict[str, object] = {"stdin": subprocess.DEVNULL, "capture_output": True, "env": environment(), **options}
    return subprocess.run(  # type: ignore[call-overload,no-any-return]
        [sys.executable, "-m", "aeon_tui", *arguments], text=True, timeout=PATIENCE, check=False, **given
    )
