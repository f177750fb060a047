"""A journal of a gigabyte and a list of 10,000 runs, beside `wc -l` on the same file.

Ratios are of processor time, which other programs on the machine disturb less; × is to `wc -l` in the same run.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import random
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from aeon_core import Orchestrator, RunConfig, connect
from aeon_core.journal.index import OffsetIndex
from aeon_core.journal.listing import CACHE, list_runs
from aeon_core.journal.search import search_journal
from aeon_core.journal.view.incremental import IncrementalFold
from aeon_core.journal.view.last_states import LastStates
from tests.benchmarks import screen

RECORDS = 400_000
BYTES = 1_000_000_000
RUNS = 10_000
ROUNDS = 3
SAMPLES = 1_000
ABSENT = "no such text anywhere"
_SHA256 = re.compile(rb"[0-9a-f]{64}")
_BODY = re.compile(rb'\{"v":1,"seq":\d+')
_CALL_ID = re.compile(rb'("call_id":"\w+)"')


def real_run(folder: Path) -> list[bytes]:
    """Return the lines of a run of the simulated model."""
    path = folder / "real.jsonl"
    Orchestrator(connect("simulated:default"), config=RunConfig(), journal=path).run("design a REST API for invoices")
    return path.read_bytes().splitlines(keepends=True)


def write_large(path: Path, run: list[bytes]) -> None:
    """Repeat a run until there are RECORDS records of BYTES bytes, each repetition with calls and texts of its own."""
    bodies = [_BODY.sub(b"", line, count=1) for line in run]
    texts = {json.loads(line)["sha256"].encode(): line for line in run if b'"type":"text"' in line[:200]}
    missing = BYTES / RECORDS * len(run) - sum(map(len, run))
    longer = max(0, int(missing / max(1, len(texts))))
    seq = repetition = 0
    with path.open("wb", buffering=1024 * 1024) as file:
        while seq < RECORDS:
            new = {old: hashlib.sha256(old + b"%d" % repetition).hexdigest().encode() for old in texts}
            for body in bodies[bool(repetition) : -1]:
                changed = _renamed(body, new, repetition)
                if b'"type":"text"' in body[:200]:
                    changed = changed[:-3] + (b" and what follows from it" * (longer // 25)) + b'"}\n'
                file.write(b'{"v":1,"seq":%d' % seq + changed)
                seq += 1
            repetition += 1
        file.write(b'{"v":1,"seq":%d' % seq + _renamed(bodies[-1], new, repetition))


def _renamed(body: bytes, texts: Mapping[bytes, bytes], repetition: int) -> bytes:
    """Return a record with the names that its repetition has for calls and texts."""
    body = _SHA256.sub(lambda found: texts.get(found[0], found[0]), body)
    return _CALL_ID.sub(rb'\1-%d"' % repetition, body)


def cpu_seconds() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def least(works: Mapping[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Return each work's least seconds of processor time and of wall time over some rounds, taken in turn."""
    best = dict.fromkeys(works, (float("inf"), float("inf")))
    for _ in range(ROUNDS):
        for name, work in works.items():
            wall, cpu = time.perf_counter(), cpu_seconds()
            work()
            spent = cpu_seconds() - cpu, time.perf_counter() - wall
            best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    return best


def milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def row(name: str, value: str, limit: str = "", kept: bool = True) -> None:
    print(f"{name:>44} {value:>12}  {limit and f'limit {limit}' + ('' if kept else '  OVER')}")


def told(name: str, value: str, more: str) -> None:
    print(f"{name:>44} {value:>12}  {more}")


def report_whole(path: Path) -> tuple[OffsetIndex, float]:
    """Print what goes through the whole file; return its index, and the seconds of `wc -l`."""
    calls: list[float] = []
    asked: list[float] = []
    index = OffsetIndex(path)

    def indexing() -> None:
        nonlocal index
        index.close()
        index = OffsetIndex(path)
        more = True
        while more:
            began = time.thread_time()
            more = index.extend()
            calls.append(time.thread_time() - began)

    def cancelled() -> bool:
        asked.append(time.perf_counter())
        return False

    works: dict[str, Callable[[], object]] = {
        "wc -l": lambda: subprocess.run(["wc", "-l", path], check=True, stdout=subprocess.DEVNULL),
        "index of lines": indexing,
        "search, oldest first": lambda: list(search_journal(path, ABSENT, cancelled=cancelled)),
        "search, newest first": lambda: list(search_journal(path, ABSENT, cancelled=cancelled, newest_first=True)),
    }
    times = least(works)
    floor = times["wc -l"][0]
    limits = {"index of lines": 1.6, "search, oldest first": 3.0, "search, newest first": 3.0}
    for name, (cpu, wall) in times.items():
        limit = limits.get(name)
        print(f"{name:>44} {cpu:>8.3f} s  {wall:>6.3f} s wall ", end="")
        print(f"{cpu / floor:>5.2f} ×  {f'limit {limit}' if limit else ''}{'  OVER' * (cpu / floor > (limit or 1e9))}")
    row("longest call of the index", f"{longest(calls):.1f} ms", "10 ms", longest(calls) <= 10)
    gaps = [later - earlier for earlier, later in pairwise(asked) if later - earlier < 1]
    row("longest time until a search is cancelled", f"{longest(gaps):.1f} ms", "50 ms", longest(gaps) <= 50)
    return index, floor


def longest(seconds: list[float]) -> float:
    """Return the 99.9th percentile in ms: the rest is other programs' time."""
    return sorted(seconds)[int(len(seconds) * 0.999) - 1] * 1000


def report_records(path: Path, small: Path, index: OffsetIndex) -> None:
    """Print how soon single records are there."""
    bytes_each = index.memory / len(index)
    row("index and places of texts, bytes a record", f"{bytes_each:.1f}", "16", bytes_each <= 16)
    seqs = random.Random(1).sample(range(len(index)), SAMPLES)
    times = sorted(milliseconds(lambda seq=seq: index.record(seq)) for seq in seqs)  # type: ignore[misc]
    most = times[int(SAMPLES * 0.99)]
    row("a random record", f"{statistics.median(times):.2f} ms")
    row("99 of 100 within", f"{most:.2f} ms", "10 ms", most <= 10)
    records = [index.record(seq) for seq in seqs]
    assert all(record is not None and '"$text"' not in json.dumps(record) for record in records)

    def state(journal: Path) -> None:
        with LastStates(journal) as end:
            end.read_on()
            end.view()

    for name, journal in {"of a single run": small, "at the end of a gigabyte": path}.items():
        row(f"the state {name}", f"{min(milliseconds(lambda j=journal: state(j)) for _ in range(9)):.2f} ms")  # type: ignore[misc]


def report_view(path: Path, index: OffsetIndex, floor: float) -> None:
    """Print how fast a whole view is folded, and what it holds."""
    before = resident()
    whole = IncrementalFold(index)
    began = cpu_seconds()
    while whole.step():
        pass
    spent = cpu_seconds() - began
    told(
        "the whole view, records a second", f"{len(index) / spent:,.0f}", f"{spent:.2f} s, {spent / floor:.1f} × wc -l"
    )
    told("what it holds", f"{(resident() - before) / 1e6:.0f} MB", f"{path.stat().st_size / 1e6:,.0f} MB of journal")
    assert whole.view.last_seq == len(index) - 1


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def report_screen(path: Path, small: Path, empty: Path) -> None:
    """Print how soon the app shows a run's state, and how long a key ever waits."""
    times = screen.first_screens({"empty": empty, "run": small, "large": path})
    for name, what in {"empty": "an empty journal", "run": "a single run", "large": "a gigabyte"}.items():
        ratio = times[name] / times["empty"]
        told(f"the first screen of {what}", f"{times[name] * 1000:.0f} ms", f"{ratio:.2f} × that of an empty one")
    ratio = times["large"] / times["run"]
    row("a gigabyte, × the same run once", f"{ratio:.2f}", "1.05 (an empty one has less to draw)", ratio <= 1.05)
    for name, (seconds, gaps) in {
        "while the whole is read": screen.while_reading(path),
        "while it is searched": screen.while_searching(path, ABSENT),
    }.items():
        waits = sorted(gaps)
        usual, most = (waits[int(len(waits) * share)] * 1000 for share in (0.99, 0.999))
        row(f"the screen waits, {name}", f"{usual:.1f} ms", "10 ms", usual <= 10)
        told("", f"{most:.1f} ms", f"99.9 of 100; longest {waits[-1] * 1000:.0f} ms; {seconds:.1f} s in all")


def report_list(folder: Path, run: list[bytes]) -> None:
    """Print how long a list of RUNS runs takes."""
    short = b"".join([run[0], *(line for line in run if b'"type":"ttl"' in line[:200]), run[-1]])
    for number in range(RUNS):
        (folder / f"20261120-{number:06d}-abcdef.jsonl").write_bytes(short)

    def cold() -> None:
        (folder / CACHE).unlink(missing_ok=True)
        assert len(list_runs(folder)) == RUNS

    works: dict[str, Callable[[], object]] = {"for the first time": cold, "again": lambda: list_runs(folder)}
    for (name, (cpu, wall)), limit in zip(least(works).items(), (1.0, 0.3), strict=True):
        row(f"a list of {RUNS:,} runs, {name}", f"{cpu:.2f} s", f"{limit} s ({wall:.2f} s wall)", cpu <= limit)


def report_toolong(path: Path) -> None:
    """Print how long toolong's own scan for line breaks takes, where it is installed."""
    if importlib.util.find_spec("toolong") is None:
        print(f"{'toolong':>44}  not installed: pip install toolong to see it beside")
        return
    from toolong.log_file import LogFile  # type: ignore[import-not-found,unused-ignore]

    def scan() -> None:
        file = LogFile(str(path))
        file.open(threading.Event())
        for _ in file.scan_line_breaks():
            pass
        file.close()

    row("toolong's scan of the lines", f"{least({'scan': scan})['scan'][0]:.3f} s")


def sections(folder: Path) -> Iterator[None]:
    run = real_run(folder)
    path, small = folder / "large.jsonl", folder / "real.jsonl"
    empty = folder / "empty.jsonl"
    empty.write_bytes(run[0])
    write_large(path, run)
    print(f"A journal of {path.stat().st_size / 1e9:.2f} GB (processor time, least of {ROUNDS}; × is to wc -l)")
    index, floor = report_whole(path)
    print(f"{'records':>44} {len(index):>12,}")
    report_view(path, index, floor)
    report_records(path, small, index)
    report_screen(path, small, empty)
    report_toolong(path)
    index.close()
    yield
    path.unlink()
    (folder / "runs").mkdir()
    report_list(folder / "runs", run)
    yield


def report() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        if shutil.disk_usage(name).free < 3 * BYTES:
            print(f"scale: left out, {name} has less than {3 * BYTES / 1e9:.0f} GB free")
            return
        for _ in sections(Path(name)):
            pass
