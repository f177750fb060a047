"""Every test runs without keys, without configuration of the machine's, and without a network beyond loopback."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.unraisableexception import gc_collect_iterations_key
from hypothesis import settings

from tests import sampling

settings.register_profile("all", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("few", settings.get_profile("all"), max_examples=sampling.FEW_EXAMPLES)

LONGEST_ID = 60
"""Characters of a value in the name of its case."""
TESTS = Path(__file__).parent
_connect = socket.socket.connect
_numbers = itertools.count()


def _loopback_only(self: socket.socket, address: Any) -> None:
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise AssertionError(f"a test reached for the network: {address!r}")
    _connect(self, address)


def _without_disk(sync: Callable[[int], None]) -> Callable[[int], None]:
    """Return a sync that does not wait for the disk: no test cuts its power. What cannot be synced still fails."""

    def call(fd: int) -> None:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            sync(fd)

    return call


def pytest_configure(config: pytest.Config) -> None:
    """Let markers decide how much is tried: see `tests/sampling.py`."""
    sampling.scope["all"] = "not exhaustive" not in config.option.markexpr
    settings.load_profile("all" if sampling.scope["all"] else "few")
    # Once is enough to find what was left unclosed; five times through all objects, at the end, is seconds a worker.
    config.stash[gc_collect_iterations_key] = 1
    # What is imported and collected stays: to look through it for garbage is a second a worker.
    gc.disable()
    for name in ("fsync", "fdatasync"):
        if hasattr(os, name):
            setattr(os, name, _without_disk(getattr(os, name)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker whether it runs all tests, and none was compiled by an earlier run."""
    compiled = sys.dont_write_bytecode or any((TESTS / "aeon_core" / "__pycache__").glob("*"))
    node.workerinput["compiles"] = node.config.args == node.config.getini("testpaths") and not compiled


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker compile its share of the tests first, if none is compiled: otherwise each would compile all."""
    worker = getattr(session.config, "workerinput", {})
    if not worker.get("compiles"):
        return
    number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in sorted(TESTS.rglob("test_*.py"))[number::workers]:
        # What cannot be imported is reported when it is collected.
        with suppress(Exception, pytest.skip.Exception, pytest.fail.Exception):
            import_module(".".join(path.relative_to(TESTS.parent).with_suffix("").parts))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a case after the beginning of a long text: it may have millions of characters."""
    if isinstance(val, str | bytes) and len(val) > LONGEST_ID:
        return f"{ascii(val[:LONGEST_ID])[1 : LONGEST_ID + 1]}-{len(val)}"
    return None


def pytest_collection_finish() -> None:
    """Collect garbage, more rarely than the commands do, but never look through what was imported."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let no worker look for pictures that no test drew: it takes seconds, and nobody sees what a worker reports.

    With `--snapshot-update`, the new pictures are written when the session ends.
    """
    if hasattr(session.config, "workerinput") and not session.config.option.update_snapshots:
        session.config.pluginmanager.unregister(name="syrupy")


@pytest.fixture(autouse=True)
def _log_as_found() -> Iterator[None]:
    """Fail a test that leaves the log redirected: later ones in its process would look for its lines in vain."""
    logger = logging.getLogger("aeon")
    handlers = list(logger.handlers)
    yield
    assert logger.propagate
    assert logger.handlers == handlers


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of the test's own. pytest's fixture looks through those of all earlier tests for a free number first."""
    failed = request.session.testsfailed
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.mktemp(f"{name}{next(_numbers)}", numbered=False)
    yield folder
    if request.session.testsfailed == failed:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _clean_surroundings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Most tests need no folder, and get the path of one that does not exist.
    if "tmp_path" in request.fixturenames:
        folder = request.getfixturevalue("tmp_path")
    else:
        folder = tmp_path_factory.getbasetemp() / f"none{next(_numbers)}"
    # Under a git hook GIT_DIR and GIT_INDEX_FILE would lead a test's git into the repository outside.
    for name in list(os.environ):
        if name.startswith(("AEON_", "OPENAI_", "ANTHROPIC_", "AWS_", "GIT_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    # Nor is a machine's role or profile looked for.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "no-aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "no-aws-credentials"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg-config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "xdg-state"))
    monkeypatch.setattr(socket.socket, "connect", _loopback_only)
    # Each client of an SDK would read the certificates of all authorities, and no test calls one of their hosts.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_args, **_options: None)


@pytest.fixture
def programs_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes find `aeon-tui` and `system2` by name, as where they are installed: their hints use these names."""
    folders = (str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
    monkeypatch.setenv("PATH", os.pathsep.join(folders))


@pytest.fixture
def default_signals() -> Iterator[None]:
    """Let what a test starts be interrupted: a job under nohup, or in the background of a script, ignores these."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ignored = [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
