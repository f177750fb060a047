"""Hostile folders × commands: nothing of the folder runs, no data leaves, nothing hangs (Decision 6)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.llm.connect import connect
from aeon_core.runs.orchestrator import Orchestrator
from tests.aeon_tui.cli.conftest import environment
from tests.aeon_tui.hostile.folders import CANARY, FOLDERS, MARKED, PLAN, Place
from tests.sampling import sample
from tests.waiting import PATIENCE

JOURNAL = ".aeon/runs/20261120-093000-a1b2c3.jsonl"
AEON, SYSTEM2 = "aeon_tui.cli.main", "system2.__main__"
COMMANDS: dict[str, tuple[str, list[str]]] = {
    "run": (AEON, ["run", "--headless", "--json", "count the files"]),
    "run --plan": (AEON, ["run", "--headless", "--plan", "plan.json"]),
    "demo": (AEON, ["demo", "--headless", "--json"]),
    "resume": (AEON, ["resume", "--headless", "last"]),
    "fork": (AEON, ["fork", "--headless", "--pass", "1", JOURNAL]),
    "batch": (AEON, ["batch", "tasks.jsonl"]),
    "replay": (AEON, ["replay", "--headless", "last"]),
    "watch": (AEON, ["watch", "--headless", "done.jsonl"]),
    "decide": (AEON, ["decide", "done.jsonl", "approve"]),
    "runs": (AEON, ["runs", "--json"]),
    "show": (AEON, ["show", "last"]),
    "lint": (AEON, ["lint", "plan.json"]),
    "lint --judge": (AEON, ["lint", "--judge", "plan.json"]),
    "calibrate": (AEON, ["calibrate", "--limit", "1"]),
    "calibrate --history": (AEON, ["calibrate", "--history"]),
    "label": (AEON, ["label", JOURNAL, "good"]),
    "tools": (AEON, ["tools", "--json"]),
    "schema": (AEON, ["schema", "Plan"]),
    "doctor": (AEON, ["doctor"]),
    "trust": (AEON, ["trust", "--show"]),
    "system2": (SYSTEM2, ["--auto-approve", "--model", "simulated:default", "count the files"]),
    "system2 --resume": (SYSTEM2, ["--auto-approve", "--resume", "last"]),
}


class Listener:
    """A server that only notes who calls, and what is said first."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    self.heard.append(connection.recv(65536))
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
                except OSError:
                    self.heard.append(b"")

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


class Forks:
    """The process that starts the commands."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", str(Path(__file__).parent / "forks.py")]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(), cwd="/"
        )

    def outcome(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def close(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    made = Forks()
    yield made
    made.close()


@pytest.fixture
def place(tmp_path: Path, listener: Listener, own_server: Listener) -> Place:
    made = Place(tmp_path / "project", tmp_path / "outside", listener.port, own_server.port, tmp_path / "config")
    made.root.mkdir()
    made.outside.mkdir()
    listener.heard.clear()
    return made


def prepared(place: Place, name: str) -> dict[str, str]:
    """Make the folder, and return the environment of the person who calls a command in it."""
    FOLDERS[name](place)
    for file, text in {
        "plan.json": json.dumps(PLAN),
        "tasks.jsonl": json.dumps({"id": "a", "task": "calculate 1 + 2"}) + "\n",
        "done.jsonl": finished_run(),
    }.items():
        if not (place.root / file).exists():
            place.file(file, text)
    tmp = place.root.parent
    keys = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"), CANARY)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "PYTHONPATH")}
    return {
        **kept,
        **{name: value for name, value in environment().items() if name == "PYTHONPATH" or name.startswith("AWS_")},
        **keys,
        "HOME": str(tmp / "home"),
        "XDG_CONFIG_HOME": str(place.config_home),
        "XDG_STATE_HOME": str(tmp / "state"),
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        **place.environ,
    }


@cache
def finished_run() -> str:
    """Return the journal of a run that has ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "done.jsonl"
        config = RunConfig(durability="off")
        Orchestrator(connect("simulated:default"), config=config, journal=path).run("calculate 1 + 2")
        return path.read_text()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", sample(FOLDERS))
def test_hostile_folders_run_send_and_block_nothing(
    place: Place, listener: Listener, forks: Forks, name: str, tmp_path: Path
) -> None:
    environ = prepared(place, name)
    before = contents(place.outside)
    problems = []
    for label, (module, arguments) in COMMANDS.items():
        files = {"out": str(tmp_path / "out"), "err": str(tmp_path / "err")}
        job = {"module": module, "arguments": arguments, "cwd": str(place.root), "env": environ, "seconds": PATIENCE}
        done = forks.outcome({**job, **files})
        said = done["out"] + done["err"]
        if done["code"] is None:
            problems.append(f"{label} hangs: {said[-300:]}")
        if "Traceback" in said or "internal error" in said or done["code"] == 99:
            problems.append(f"{label} fails: {said[-600:]}")
        if CANARY in said:
            problems.append(f"{label} shows a key")
        if listener.heard:
            problems.append(f"{label} calls the listener: {listener.heard[0][:200]!r}")
            listener.heard.clear()
        if contents(place.outside) != before:
            problems.append(f"{label} leaves {sorted(contents(place.outside))}, exit {done['code']}: {said[-300:]}")
            before = contents(place.outside)
    assert problems == []


@pytest.mark.parametrize("name", sample(MARKED, 1))
def test_trusted_folders_do_trigger_the_checks(
    place: Place, listener: Listener, forks: Forks, name: str, tmp_path: Path
) -> None:
    environ = prepared(place, name)
    before = contents(place.outside)
    arguments = ["run", "--headless", "--trust-project", "--plan", "plan.json", "--single-pass"]
    environ.setdefault("AEON_MODEL", "simulated:default") if "redirected" not in name else None
    job = {"module": AEON, "arguments": arguments, "cwd": str(place.root), "env": environ, "seconds": 30}
    done = forks.outcome({**job, "out": str(tmp_path / "out"), "err": str(tmp_path / "err")})
    assert listener.heard or contents(place.outside) != before, done


SHADOWED = ("run", "batch", "show", "doctor", "system2")
"""That no command searches the folder for modules, the table above checks; here, what each kind imports at first."""


@pytest.mark.parametrize("label", sample(SHADOWED, lambda label: label == "show"))
def test_a_fresh_interpreter_imports_nothing_from_the_folder(place: Place, label: str) -> None:
    environ = prepared(place, "modules_of_the_working_directory")
    module, arguments = COMMANDS[label]
    # As the console script does: the folder of the script is on the path, the working directory is not.
    script = place.root.parent / "bin" / "command"
    script.parent.mkdir()
    script.write_text(f"import sys\nfrom {module} import main\nsys.exit(main())\n")
    command = [sys.executable, str(script), *arguments]
    model = {} if label == "system2" else {"AEON_MODEL": "simulated:default"}
    done = subprocess.run(
        command, cwd=place.root, env={**environ, **model}, capture_output=True, text=True, timeout=60, check=False
    )
    assert not place.mark.exists(), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.exhaustive
def test_batch_workers_import_modules_like_the_command(place: Place) -> None:
    environ = prepared(place, "modules_of_the_working_directory")
    place.file(
        "show.py", "import os\ndef safe() -> str:\n    'Tell.'\n    return str(os.environ.get('PYTHONSAFEPATH'))\n"
    )
    plain = subprocess.run(
        [sys.executable, "-P", "-m", "aeon_tui", "batch", "tasks.jsonl", "--tools", "show:safe", "--json"],
        cwd=place.root,
        env={**environ, "AEON_MODEL": "simulated:default"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(plain.stdout)[0]["id"] == "a"
    assert not place.mark.exists()


@pytest.mark.exhaustive
def test_the_table_has_enough_folders_and_commands() -> None:
    assert len(FOLDERS) >= 20
    assert len(COMMANDS) >= 12
