"""`label`: a person's verdict goes into the journal of a run that has ended, and is shown (contract: label)."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.journal.recovery import reopen
from tests.aeon_core.kernel.test_passes import TASK
from tests.aeon_core.kernel.test_reviews import two_passes
from tests.aeon_tui.cli.conftest import Cli, process

KEY = "sk-" + "x" * 30


@pytest.fixture
def journal() -> Path:
    path = Path(".aeon/runs/one.jsonl")
    Orchestrator(two_passes(), config=RunConfig(durability="off"), journal=path).run(TASK)
    return path


def test_a_run_is_labelled_from_another_process_and_the_last_label_counts(cli: Cli, journal: Path) -> None:
    first = process("label", "last", "good")
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "labelled good: one, pass 2\n")
    second = cli("label", "last", "bad", "--why", f" the sum is <b>wrong</b>, {KEY} ")
    assert (second.code, second.out, second.err) == (0, "", "labelled bad: one, pass 2\n")
    assert KEY.encode() not in journal.read_bytes()
    assert journal.stat().st_mode & 0o777 == 0o600
    last = json.loads(journal.read_bytes().splitlines()[-1])
    assert (last["type"], last["verdict"], last["pass"], last["source"]) == ("label", "bad", 2, "person")
    assert last["why"].startswith("the sum is <b>wrong</b>, ")


def test_a_label_is_shown_in_every_form(cli: Cli, journal: Path) -> None:
    cli("label", "one", "good")
    cli("label", "one", "bad", "--why", "the sum is <b>wrong</b>")
    text = cli("show", "one").out
    assert "label    pass 2 bad: the sum is <b>wrong</b>\n" in text
    assert "pass 2 good" not in text
    assert "label**: pass 2 bad: the sum is &lt;b&gt;wrong&lt;/b&gt;" in cli("show", "one", "--export", "md").out
    page = cli("show", "one", "--export", "html").out
    assert "<dt>label</dt><dd>pass 2 bad: the sum is &lt;b&gt;wrong&lt;/b&gt;</dd>" in page
    assert "pass 2 labelled good</span>" in page
    told = [(each["pass_number"], each["verdict"], each["why"], each["source"]) for each in labels(cli)]
    assert told == [(2, "good", None, "person"), (2, "bad", "the sum is <b>wrong</b>", "person")]
    assert labels(cli, "--pass", "1") == []
    assert len(labels(cli, "--pass", "2")) == 2


def labels(cli: Cli, *more: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(cli("show", "one", "--json", *more).out)["labels"]
    return found


def test_a_labelled_run_replays_and_is_listed_as_before(cli: Cli, journal: Path) -> None:
    listed = cli("runs", "--json").out
    cli("label", "one", "good")
    assert cli("runs", "--json").out == listed
    assert cli("replay", "one", "--check").code == 0
    assert cli("watch", "one", "--headless", "--json").code == 0
    assert cli("resume", "one", "--headless").code == 0


def test_a_workflow_has_no_result_to_label(cli: Cli) -> None:
    assert cli("workflow", "--headless", "--auto-approve", "--model", "simulated:default", "build it").code == 0
    done = cli("label", "last", "good")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(" is a workflow; only the result of a run can be labelled\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("one",), "the following arguments are required: good|bad"),
        (("one", "fine"), "the verdict must be one of good, bad; got 'fine'"),
        (("two", "good"), "no run 'two' in "),
        (("other.jsonl", "good"), "is not a journal: "),
        (("empty.jsonl", "good"), "is not a journal: it is empty; expected a run"),
        (("damaged.jsonl", "good"), "is damaged: line 4: broken"),
        (("cut.jsonl", "good"), "the run 'cut' has not ended, so there is no result to label; resume it first"),
    ],
)
def test_an_unlabelable_run_is_exit_2_and_one_line(
    cli: Cli, journal: Path, arguments: tuple[str, ...], said: str
) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    Path("damaged.jsonl").write_bytes(b"".join([*lines[:3], b"{broken\n", *lines[4:]]))
    Path("cut.jsonl").write_bytes(b"".join(lines[:9]))
    Path("empty.jsonl").touch()
    Path("other.jsonl").write_text('{"goal": "no journal"}\n', encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().glob("*.jsonl")}
    done = cli("label", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
    assert {path: path.read_bytes() for path in Path().glob("*.jsonl")} == before


@pytest.mark.parametrize(
    ("call", "why", "labels"),
    [("write", "cannot be written: No space", 0), ("fdatasync", "cannot be synced to disk: No space", 1)],
)
def test_a_full_disk_is_the_only_reason_that_is_named(
    cli: Cli, journal: Path, monkeypatch: pytest.MonkeyPatch, call: str, why: str, labels: int
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = journal.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, call, fail)
        done = cli("label", "one", "good")
    lost = "; its last lines may be lost" if labels else ""
    reason = f"the journal {str(journal.absolute())!r} {why} left on device{lost}"
    assert (done.code, done.err) == (1, f"aeon-tui: {reason}\n")
    assert journal.read_bytes().startswith(before)
    assert len(journal.read_bytes()[len(before) :].splitlines()) == labels


def test_a_run_that_another_process_writes_is_not_labelled(journal: Path) -> None:
    writer = reopen(journal)
    done = process("label", "one", "good")
    writer.close()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"is being written by process {os.getpid()} (" in done.stderr
