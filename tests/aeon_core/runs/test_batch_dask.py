"""A batch over a real Dask cluster of two workers on loopback, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.installation import MissingExtraError
from aeon_core.runs.batch import Batch, dask_pool
from aeon_core.runs.batch_tasks import BatchTask, read_tasks
from tests.waiting import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(find_spec("distributed") is None, reason="the extra `dask` is not installed")

TOOLS = """
import os, time
from pathlib import Path
from aeon_core import tool

@tool(effect="idempotent")
def victim(marker: str) -> str:
    "Says in which process it is; the first one is killed from outside while it waits."
    path = Path(marker)
    if path.exists():
        return "survived"
    path.with_suffix(".new").write_text(str(os.getpid()))
    path.with_suffix(".new").replace(path)
    time.sleep(120)
    return "was not killed"
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    import distributed

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "host": "127.0.0.1"}
    with distributed.LocalCluster(**options, dashboard_address="127.0.0.1:0", silence_logs=50) as made:
        yield made


def tasks_of(tmp_path: Path, *tasks: str) -> list[BatchTask]:
    (tmp_path / "tools_of_batch.py").write_text(TOOLS)
    config = RunConfig(
        model="simulated:default", single_pass=True, project_root=tmp_path, tools=["tools_of_batch:victim"]
    )
    lines = [json.dumps({"id": f"t{number}", "task": task}).encode() for number, task in enumerate(tasks, 1)]
    return read_tasks(lines, name="b", config=config, where="lines")


@pytest.mark.exhaustive
def test_a_killed_worker_of_the_cluster_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    marker, runs = tmp_path / "victim", tmp_path / "runs"
    tasks = tasks_of(tmp_path, f"use victim on '{marker}'", *(f"calculate {number} + 10" for number in range(5)))

    def kill() -> None:
        wait_until(marker.exists)
        os.kill(int(marker.read_text()), signal.SIGKILL)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    results = Batch(tasks, dask_pool(cluster.scheduler_address), runs).run()
    killing.join(PATIENCE)
    assert [(result["id"], result["status"], result["ended"]) for result in results] == [
        (f"t{number}", "completed", "now") for number in range(1, 7)
    ]
    assert "survived" in results[0]["answer"]
    assert b'"type":"run_resumed"' in (runs / "b.t1.jsonl").read_bytes()
    assert int(marker.read_text()) != os.getpid()


@pytest.mark.exhaustive
def test_concurrency_does_not_exceed_the_limit(cluster: Any) -> None:
    pool = dask_pool(cluster.scheduler_address, 1)
    gone = threading.Event
    first = pool.submit(_nothing, gone)
    assert first is not None
    assert pool.submit(_nothing, gone) is None
    assert first.result(PATIENCE) == {}
    pool.free(first)
    second = pool.submit(_nothing, gone)
    assert second is not None
    pool.close()
    assert second.done()


def _nothing(_job: Any) -> dict[str, Any]:
    return {}


@pytest.mark.parametrize("address", ["here", "tcp://127.0.0.1", "http://127.0.0.1:1", "tcp://127.0.0.1:99999"])
def test_an_invalid_scheduler_is_reported_in_one_line(address: str) -> None:
    with pytest.raises(UsageError, match="cannot use the scheduler") as raised:
        dask_pool(address)
    assert raised.value.message.endswith("expected the address of a running one, tcp://HOST:PORT")


def test_an_unreachable_scheduler_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(UsageError, match="Connection refused"):
        dask_pool(f"tcp://127.0.0.1:{port}")


@pytest.mark.parametrize("greeting", [b"HTTP/1.0 400 Bad request\r\n", b""], ids=["http", "closed"])
def test_a_server_that_is_not_a_scheduler_is_reported(greeting: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            with server.accept()[0] as connection:
                connection.sendall(greeting)

        greeting_thread = threading.Thread(target=greet)
        greeting_thread.start()
        with pytest.raises(UsageError, match="the server there is not a Dask scheduler"):
            dask_pool(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        greeting_thread.join()


def test_a_silent_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aeon_core.runs.batch._ANSWER_WITHIN", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(UsageError, match="timed out"):
        dask_pool(f"tcp://127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.exhaustive
def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aeon-tui\[dask\]'"):
        dask_pool("tcp://127.0.0.1:8786")
