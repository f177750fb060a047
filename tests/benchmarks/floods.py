"""The app in a real terminal while a run writes 10,000 and 50,000 records a second: as its own thread, and watched.

Shown is what a person has of it: how old the state on the screen is, how soon a key is answered. The producer keeps to
a schedule, so it is seen whether the screen ever holds it up.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.flood_app import WARM_SECONDS
from tests.benchmarks.flood_source import LIMIT, RUN_ID, STEPS, Written
from tests.benchmarks.scale import row, told
from tests.benchmarks.terminal import Terminal, at, oldest

RATES = (10_000, 50_000)
SECONDS = 30.0
seconds = SECONDS
"""How long a flood lasts."""
KEY_SECONDS = 0.23
"""Between two keys at least."""
FRAME_SECONDS, GOLDEN = 0.05, 0.618
STILL_SECONDS = 8.0
WHOLE_SECONDS = 300.0
_LEFT = re.compile(rb"(\d[\d,]*) of 100,000 c")
_KEYS = ((b"j", rb"\x1b\[1;[0-9;]*ms02 "), (b"k", rb"\x1b\[1;[0-9;]*ms01 "))
"""What a key does: the row that it moves to is drawn bold."""


@dataclass(frozen=True)
class Flooded:
    """What one flood was like."""

    written: Written
    ages: list[float]
    """Seconds that each state on the screen was old when the next one took its place."""
    keys: list[float]
    """Seconds until a key's effect was painted."""
    unanswered: int
    still: list[float]
    """The same after the flood, when nothing comes any more."""
    cpu: float
    """The app's share of one core."""
    memory: tuple[int, int]
    """Bytes at the beginning, and the most until the whole was there."""
    in_flood: int
    """The most bytes while it went on."""
    whole_s: float
    """From the end of the flood until the view was whole."""
    view: dict[str, Any]
    counted: dict[str, Any]


def _python(*arguments: object) -> list[str]:
    return [sys.executable, "-m", *map(str, arguments)]


def _alone(how: str, folder: Path, rate: float, seconds: float) -> Written:
    """Return what the same flood is like without a screen."""
    path = folder / "alone.jsonl"
    if how == "watch":
        out = subprocess.check_output(_python("tests.benchmarks.flood_source", path, rate, seconds))
        written = json.loads(out)
    else:
        out_path = folder / "alone.json"
        subprocess.run(_python("tests.benchmarks.flood_app", "alone", path, out_path, rate, seconds), check=True)
        written = json.loads(out_path.read_text())["written"]
    path.unlink()
    return Written(**written)


def _flooded(how: str, folder: Path, rate: float, seconds: float) -> Flooded:
    """Return what a flood is like under the app."""
    path, out = folder / f"{RUN_ID}.jsonl", folder / "out.json"
    own = (rate, seconds) if how == "thread" else ()
    terminal = Terminal(_python("tests.benchmarks.flood_app", how, path, out, *own))
    try:
        terminal.wait_for(b"Plan", 30)
        producer = None
        if how == "watch":
            time.sleep(WARM_SECONDS)
            producer = subprocess.Popen(
                _python("tests.benchmarks.flood_source", path, rate, seconds), stdout=subprocess.PIPE
            )
        terminal.wait_for(b"of 100,", 30)
        keys, unanswered = _type_keys(terminal, time.monotonic() + seconds - 1)
        left = json.loads(_when_there(out))
        still, _ = _type_keys(terminal, time.monotonic() + STILL_SECONDS)
        printed = producer.communicate()[0] if producer is not None else b""
        written = Written(**(json.loads(printed) if producer is not None else left["written"]))
        return _told(terminal, written, left, (keys, unanswered, still), _counted(path))
    finally:
        terminal.close()
        path.unlink(missing_ok=True)
        out.unlink(missing_ok=True)


def _type_keys(terminal: Terminal, until: float) -> tuple[list[float], int]:
    """Move the cursor to and fro; return the seconds each key took, and how many had no effect within two."""
    answers: list[float] = []
    unanswered = 0
    terminal.type(b"g")
    time.sleep(1.0)
    while time.monotonic() < until:
        for key, effect in _KEYS:
            typed = terminal.type(key)
            try:
                answers.append(terminal.wait_for(effect, 2, after=typed) - typed)
            except TimeoutError:
                unanswered += 1
            # Never in step with the frames, whatever a key takes.
            time.sleep(KEY_SECONDS + FRAME_SECONDS * (len(answers) * GOLDEN % 1))
    return answers, unanswered


def _when_there(out: Path) -> str:
    deadline = time.monotonic() + WHOLE_SECONDS
    while not out.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the view was not whole within {WHOLE_SECONDS} s")
        time.sleep(0.05)
    return out.read_text()


def _told(
    terminal: Terminal,
    written: Written,
    left: dict[str, Any],
    keys: tuple[list[float], int, list[float]],
    counted: dict[str, Any],
) -> Flooded:
    shown = [
        (when, written.began + (LIMIT - int(digits.replace(b",", b""))) / 1000)
        for when, digits in terminal.found(_LEFT)
        if written.began + 0.5 <= when <= written.ended
    ]
    began, ended = written.began, written.ended
    return Flooded(
        written=written,
        ages=oldest(shown),
        keys=keys[0],
        unanswered=keys[1],
        still=keys[2],
        cpu=terminal.cpu(began, ended),
        memory=terminal.memory(began, left["whole_at"]),
        in_flood=terminal.memory(began, ended)[1],
        whole_s=left["whole_at"] - ended,
        view=left["view"],
        counted=counted,
    )


def _counted(path: Path) -> dict[str, Any]:
    """Return what the journal holds, counted line by line without Aeon's own reader or fold."""
    kinds: Counter[str] = Counter()
    steps: dict[str, str] = {f"s{number:02d}": "pending" for number in range(1, STEPS + 1)}
    calls: Counter[str] = Counter(dict.fromkeys(steps, 0))
    last: dict[str, Any] = {}
    missing = unchanged = 0
    with path.open("rb") as file:
        for expected, line in enumerate(file):
            record = json.loads(line)
            missing += record["seq"] != expected
            kinds[f"{record['type']} {record.get('state', '')}".strip()] += 1
            unchanged += record["type"] == "ttl" and record["spent"] == last.get("ttl", {}).get("spent")
            last[record["type"]] = record
            if record["type"] == "step":
                steps[record["step_id"]] = record["status"]
            elif record["type"] == "llm" and record["state"] == "started":
                calls[record["step_id"]] += 1
    return {
        "last_seq": sum(kinds.values()) - 1,
        "whole_from": 0,
        "status": last["run_finished"]["result"]["status"],
        "steps": steps,
        "step_calls": dict(calls),
        "calls": kinds["llm started"],
        "calls_finished": kinds["llm finished"],
        "tool_calls": kinds["tool started"],
        "log_lines": sum(count for kind, count in kinds.items() if kind not in ("text", "cycle")) - unchanged,
        "spent": last["ttl"]["spent"],
        "cycles": last["cycle"]["step_number"],
        "memory": sorted(step for step in steps),
        "problems": missing,
    }


def _print(how: str, rate: int, seconds: float, alone: Written, under: Flooded) -> None:
    where = "of another process, watched" if how == "watch" else "of the app's own worker thread"
    print(f"{rate:,} records a second for {seconds:g} s, {where}")
    ratio = under.written.rate / alone.rate
    row("the producer's rate, × without the screen", f"{ratio:.3f}", "0.99", ratio >= 0.99)
    told(
        "records a second",
        f"{under.written.rate:,.0f}",
        f"{alone.rate:,.0f} without; at most {under.written.longest_delay_s * 1000:.0f} ms behind its schedule "
        f"({alone.longest_delay_s * 1000:.0f} ms without)",
    )
    oldest_usual, oldest_ever = at(under.ages, 0.99) * 1000, max(under.ages, default=9.9) * 1000
    row("age of the state shown, 99 of 100", f"{oldest_usual:.0f} ms", "200 ms", oldest_usual <= 200)
    usual = f"{at(under.ages, 0.5) * 1000:.0f} ms median; {len(under.ages) / seconds:.0f} new states a second"
    told("the oldest", f"{oldest_ever:.0f} ms", usual)
    middle, most = statistics.median(under.keys or [9.9]) * 1000, at(under.keys, 0.95) * 1000
    row("a key is answered after, median", f"{middle:.1f} ms", "10 ms", middle <= 10)
    answered = most <= 50 and not under.unanswered
    row("95 of 100 within", f"{most:.1f} ms", "50 ms", answered)
    still = f"{at(under.still, 0.5) * 1000:.1f} ms, {at(under.still, 0.95) * 1000:.1f} ms when nothing comes any more"
    told("", f"{len(under.keys):,} keys", f"{under.unanswered} unanswered; {still}")
    floor = alone.cpu_s / (alone.ended - alone.began) if how == "thread" else 0.0
    row("processor of the screen, of one core", f"{under.cpu - floor:.0%}", "35 %", under.cpu - floor <= 0.35)
    before, after = (each / 1e6 for each in under.memory)
    grown, lines = under.in_flood / 1e6 - before, under.counted["last_seq"] + 1
    row("memory meanwhile", f"+{grown:.0f} MB", "100 MB", grown <= 100)
    told(
        "until the whole is there", f"+{after - before:.0f} MB", f"{(after - before) * 1e6 / lines:.0f} bytes a record"
    )
    told("the whole is there after", f"{under.whole_s:.1f} s", f"{lines:,} records")
    wrong = {name: (under.view.get(name), value) for name, value in under.counted.items() if under.view[name] != value}
    row("the view, compared with the journal", "same" if not wrong else "differs", "the same", not wrong)
    for name, (shown, counted) in wrong.items():
        print(f"{name:>44} {str(shown)[:60]} shown, {str(counted)[:60]} in the journal")


def report() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        for how in ("watch", "thread"):
            for rate in RATES:
                alone = _alone(how, Path(name), rate, min(seconds, 10.0))
                _print(how, rate, seconds, alone, _flooded(how, Path(name), rate, seconds))
                print()
