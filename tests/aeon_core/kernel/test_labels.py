"""What a person decides about a pass is journaled as a label; a label added later disturbs nothing that reads on."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.approvals import pending_approval
from aeon_core.errors import UsageError
from aeon_core.journal.follow import Follower
from aeon_core.journal.history import open_end, open_history, open_run
from aeon_core.journal.labels import label_run, labelled_passes, last_label
from aeon_core.journal.listing import list_runs
from aeon_core.journal.records import LabelRecord
from aeon_core.journal.recovery import reopen
from aeon_core.journal.summary import summarise
from aeon_core.journal.view import reducer
from aeon_core.journal.view.last_states import LastStates
from aeon_core.journal.writer import JournalWriter
from aeon_core.runs.batch_tasks import run_seconds
from aeon_core.runs.fork import Fork
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import finished_result, resume
from tests.aeon_core.journal import build
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, of, plan
from tests.aeon_core.kernel.test_reviews import Person, fresh, records, run, two_passes

KEY = "sk-" + "x" * 30
Told = tuple[int, str, str | None, str]


def labels(tmp_path: Path) -> list[Told]:
    return [(each["pass"], each["verdict"], each["why"], each["source"]) for each in of(records(tmp_path), "label")]


@pytest.mark.parametrize(
    ("decisions", "labelled"),
    [
        ([{"decision": "accept"}], [(1, "good", None, "decision")]),
        ([], [(1, "bad", None, "decision"), (2, "good", None, "decision")]),
        (
            [{"decision": "approve"}, {"decision": "reject", "feedback": "say it in French"}],
            [
                (1, "bad", None, "decision"),
                (2, "bad", "say it in French", "decision"),
                (2, "bad", None, "decision"),
            ],
        ),
        ([{"decision": "abort"}], []),
    ],
)
def test_a_decision_about_a_pass_labels_it(tmp_path: Path, decisions: list[Any], labelled: list[Told]) -> None:
    run(tmp_path, two_passes(), Person(*decisions), "pass")
    assert labels(tmp_path) == labelled


def test_a_label_follows_its_decision_at_once(tmp_path: Path) -> None:
    run(tmp_path, two_passes(), Person(), "pass")
    kinds = [record["type"] for record in records(tmp_path)]
    assert [kinds[place - 1 : place + 1] for place, kind in enumerate(kinds) if kind == "label"] == [
        ["approval", "label"]
    ] * 2


def test_a_pass_that_is_run_again_is_labelled_only_when_it_is_decided(tmp_path: Path) -> None:
    run(tmp_path, model(), Person({"decision": "replay"}), "pass")
    assert labels(tmp_path) == [(2, "good", None, "decision")]


def test_a_plan_is_not_labelled(tmp_path: Path) -> None:
    run(tmp_path, model(plan=plan(), refine=MENDED), Person({"decision": "reject", "feedback": "no"}), "plan")
    assert labels(tmp_path) == []


def test_a_pass_nobody_was_asked_about_is_not_labelled(tmp_path: Path) -> None:
    run(tmp_path, two_passes(), None, "pass")
    assert labels(tmp_path) == []
    path = tmp_path / "r.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    asked = next(place for place, line in enumerate(lines) if b'"type":"approval"' in line[:200])
    path.write_bytes(b"".join(lines[: asked + 1]))
    assert resume(path, two_passes(), options={"approve": ["none"]}).status == "converged"
    assert [each.get("decision") for each in of(records(tmp_path), "approval")] == [None, "approve"]
    assert labels(tmp_path) == []


def ended(tmp_path: Path) -> Path:
    """The journal of a converged run of two passes."""
    Orchestrator(two_passes(), config=RunConfig(durability="off"), journal=tmp_path / "r.jsonl").run(TASK)
    return tmp_path / "r.jsonl"


def test_a_label_is_added_after_the_end_and_the_last_one_counts(tmp_path: Path) -> None:
    path = ended(tmp_path)
    assert last_label(path) is None
    assert label_run(path, "good")["pass"] == 2
    assert last_label(path) == ("good", "")
    record = label_run(path, "bad", "the sum is wrong")
    assert record == json.loads(path.read_bytes().splitlines()[-1])
    assert last_label(path) == ("bad", "the sum is wrong")
    assert labels(tmp_path) == [(2, "good", None, "person"), (2, "bad", "the sum is wrong", "person")]
    found = labelled_passes(path)
    assert [(each.run_id, each.pass_number, each.verdict, each.why, each.model) for each in found] == [
        ("r", 2, "bad", "the sum is wrong", "scripted:test")
    ]
    assert found[0].assessment["converged"] is True


def test_a_label_does_not_change_a_runs_end_for_any_reader(tmp_path: Path) -> None:
    path = ended(tmp_path)
    before, summary, seconds = finished_result(path), summarise(path), run_seconds(path)
    history = open_history(path)
    label_run(path, "good", "right")
    assert finished_result(path) == before
    assert (summarise(path), list_runs(tmp_path), run_seconds(path)) == (summary, [summary], seconds)
    assert pending_approval(path) is None
    view, after = open_run(path)
    assert view.result is not None
    assert (view.status, view.result.validated()) == ("converged", before)
    assert after.overall_statistics == history.overall_statistics
    assert after.final_result == history.final_result
    assert [(each.pass_number, each.verdict, each.why) for each in after.labels] == [(2, "good", "right")]
    assert open_end(path)[0].labels == view.labels
    states = LastStates(path)
    states.read_on()
    assert states.records()[-1]["type"] == "label"
    assert [each.verdict for each in states.view().labels] == ["good"]
    states.close()
    follower = Follower(path)
    assert [record["type"] for _, record in follower.read()][-1] == "label"
    assert list(follower.read()) == []
    assert follower.status == "ended"
    follower.close()


def test_a_later_versions_record_after_the_end_changes_nothing(tmp_path: Path) -> None:
    path = ended(tmp_path)
    before, summary, seconds = finished_result(path), summarise(path), run_seconds(path)
    lines = path.read_bytes().splitlines()
    last = json.loads(lines[-1])
    unknown = {"v": 1, "seq": last["seq"] + 1, "ts": "2099-01-01T00:00:00.000Z", "run": last["run"], "type": "bookmark"}
    # In the middle of a run, too: no replay compares it.
    first = json.dumps({**unknown, "seq": 0}, separators=(",", ":")).encode()
    path.write_bytes(b"\n".join([*lines, json.dumps(unknown, separators=(",", ":")).encode(), b""]))
    assert finished_result(path) == before
    assert (summarise(path), run_seconds(path)) == (summary, seconds)
    assert pending_approval(path) is None
    assert open_run(path)[0].status == "converged"
    assert replay(path).difference is None
    assert label_run(path, "good")["pass"] == 2
    follower = Follower(path)
    assert [record["type"] for _, record in follower.read()][-2:] == ["bookmark", "label"]
    assert list(follower.read()) == []
    assert follower.status == "ended"
    follower.close()
    shifted = [lines[0], first.replace(b'"seq":0', b'"seq":1')]
    shifted += [re.sub(rb'"seq":\d+', b'"seq":%d' % (seq + 1), line, count=1) for seq, line in enumerate(lines[1:], 1)]
    path.write_bytes(b"\n".join([*shifted, b""]))
    assert replay(path).difference is None


def test_a_label_belongs_to_its_pass_in_the_history_of_one(tmp_path: Path) -> None:
    path = ended(tmp_path)
    label_run(path, "good")
    for number, count in ((1, 0), (2, 1)):
        view, history = open_run(path, pass_number=number)
        assert (len(view.labels), len(history.labels)) == (count, count)


def test_the_result_of_a_labelled_run_is_found_however_long_it_is(tmp_path: Path) -> None:
    long = build.finished("completed", answer="15 " * 60_000)
    path = build.write(tmp_path, build.started(), long)
    label_run(path, "good")
    summary = summarise(path)
    assert summary is not None
    assert summary.status == "completed"
    assert label_run(path, "bad")["pass"] == 1


def test_a_label_far_from_the_end_is_among_the_last_states(tmp_path: Path) -> None:
    label = LabelRecord(verdict="bad", why=None, pass_number=1, source="decision")
    path = build.write(tmp_path, build.started(), label, *[build.ttl(1)] * 150)
    states = LastStates(path)
    states.read_on()
    assert [each.verdict for each in states.view().labels] == ["bad"]
    states.close()


def test_a_labelled_run_replays(tmp_path: Path) -> None:
    path = ended(tmp_path)
    label_run(path, "good")
    label_run(path, "bad")
    replayed = replay(path)
    assert replayed.difference is None
    assert replayed.result is not None
    assert replayed.result.status == "converged"


def test_a_labelled_run_is_forked(tmp_path: Path) -> None:
    path = ended(tmp_path)
    label_run(path, "bad")
    fork = tmp_path / "f.jsonl"
    assert Fork(path, 2, two_passes(), config=RunConfig(durability="off"), journal=fork).run().status == "converged"
    assert replay(fork).difference is None


def test_a_resume_supersedes_the_label_of_a_provisional_end(tmp_path: Path) -> None:
    run(tmp_path, two_passes(), Person({"decision": "abort"}), "pass")
    path = tmp_path / "r.jsonl"
    label_run(path, "bad", "too early")
    assert [each.verdict for each in open_history(path).labels] == ["bad"]
    live = open_run(path)[0]
    assert resume(path, fresh(two_passes()), approver=Person()).status == "converged"
    assert replay(path).difference is None
    assert [(each.pass_number, each.source) for each in open_history(path).labels] == [(1, "decision"), (2, "decision")]
    for line in path.read_bytes().splitlines()[live.last_seq + 1 :]:
        reducer.apply(live, json.loads(line))
    assert [each.source for each in live.labels] == ["decision", "decision"]


def test_a_secret_in_the_reason_is_not_written(tmp_path: Path) -> None:
    path = ended(tmp_path)
    label_run(path, "bad", f"it shows {KEY}")
    assert KEY.encode() not in path.read_bytes()
    assert labels(tmp_path)[0][2] is not None


def test_a_run_that_is_being_written_cannot_be_labelled(tmp_path: Path) -> None:
    path = ended(tmp_path)
    content = path.read_bytes()
    writer = reopen(path)
    with pytest.raises(UsageError, match="is being written by"):
        label_run(path, "good")
    writer.close()
    assert path.read_bytes() == content


def test_a_run_that_was_cut_off_has_no_result_to_label(tmp_path: Path) -> None:
    path = ended(tmp_path)
    content = b"".join(path.read_bytes().splitlines(keepends=True)[:9]) + b'{"v":1,"se'
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"^the run 'r' has not ended, so there is no result to label"):
        label_run(path, "good")
    assert path.read_bytes() == content
    assert not list(tmp_path.glob("*.torn*"))


def test_only_a_sound_journal_of_a_run_is_labelled(tmp_path: Path) -> None:
    path = ended(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = tmp_path / "d.jsonl"
    damaged.write_bytes(b"".join([*lines[:4], b"{broken\n", *lines[5:]]))
    other = tmp_path / "o.jsonl"
    other.write_text('{"goal": "no journal"}\n')
    workflow = tmp_path / "w.jsonl"
    workflow.write_bytes(lines[0].replace(b'"run_started"', b'"workflow_start"'))
    link = tmp_path / "l.jsonl"
    link.symlink_to(path)
    for file, why in (
        (damaged, "line 5"),
        (other, "is not a journal"),
        (workflow, "a workflow"),
        (link, "it is a link"),
    ):
        content = file.read_bytes()
        with pytest.raises(UsageError, match=why):
            label_run(file, "good")
        assert file.read_bytes() == content


def test_a_journal_without_labels_is_not_parsed(tmp_path: Path) -> None:
    path = ended(tmp_path)
    damaged = tmp_path / "d.jsonl"
    shutil.copy(path, damaged)
    assert labelled_passes(damaged) == []
    quoted = JournalWriter(tmp_path / "q.jsonl", "q")
    quoted.append(build.started(task='say {"type":"label"}'))
    quoted.close()
    assert labelled_passes(tmp_path / "q.jsonl") == []
