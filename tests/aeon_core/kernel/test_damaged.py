"""What is to be gone on with, gone over again or forked must be sound: else one line says what is wrong, and where."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import UsageError
from aeon_core.journal.history import open_run
from aeon_core.journal.reader import head
from aeon_core.runs.fork import Fork
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from tests.aeon_core.kernel.crash_checks import read
from tests.aeon_core.kernel.scenarios import JOURNAL, SCENARIOS
from tests.aeon_core.kernel.test_passes import model

Lines = list[bytes]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The journal of a run of two passes that was cut off in the second."""
    folder = tmp_path_factory.mktemp("run")
    SCENARIOS["passes"].run(folder)
    return (folder / JOURNAL).read_bytes().splitlines(keepends=True)[:-4]


def place_of(lines: Lines, kind: str) -> int:
    return next(place for place, line in enumerate(lines) if f'"type":"{kind}"'.encode() in line)


def without_a_text(lines: Lines) -> tuple[Lines, str]:
    """Leave a text out, as if it had never been written: the lines after it are renumbered."""
    place = place_of(lines, "text")
    sha256 = json.loads(lines[place])["sha256"]
    left = [json.loads(line) for line in [*lines[:place], *lines[place + 1 :]]]
    numbered = [json.dumps({**record, "seq": seq}, separators=(",", ":")).encode() for seq, record in enumerate(left)]
    user = next(seq for seq, record in enumerate(left) if sha256 in json.dumps(record))
    return [line + b"\n" for line in numbered], f"line {user + 1}: the text '{sha256}' is missing"


def with_a_broken_line(lines: Lines) -> tuple[Lines, str]:
    place = place_of(lines, "plan")
    return [*lines[:place], lines[place][:50] + b"\n", *lines[place + 1 :]], f"line {place + 1}: broken"


def with_a_lost_line(lines: Lines) -> tuple[Lines, str]:
    place = place_of(lines, "plan")
    return [*lines[:place], *lines[place + 1 :]], f"line {place + 1}: seq {place + 1} where {place} was expected"


def of_a_newer_version(lines: Lines) -> tuple[Lines, str]:
    place = place_of(lines, "tool")
    newer = lines[place].replace(b'{"v":1,', b'{"v":2,')
    said = f"line {place + 1}: its version is 2, but this Aeon supports 1; use the Aeon that wrote it"
    return [*lines[:place], newer, *lines[place + 1 :]], said


def without_a_field(lines: Lines) -> tuple[Lines, str]:
    place = place_of(lines, "phase")
    record: dict[str, Any] = json.loads(lines[place])
    del record["phase"]
    return [*lines[:place], json.dumps(record).encode() + b"\n", *lines[place + 1 :]], f"line {place + 1}: "


DAMAGE = [without_a_text, with_a_broken_line, with_a_lost_line, of_a_newer_version, without_a_field]


def resumed(path: Path) -> Any:
    return resume(path, model())


def forked(path: Path) -> Any:
    return Fork(path, 2, model(), journal=path.with_name("fork.jsonl"))


@pytest.mark.parametrize("use", [resumed, replay, forked])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_journal_is_refused_in_one_line_and_left_unchanged(
    tmp_path: Path, lines: Lines, damage: Callable[[Lines], tuple[Lines, str]], use: Callable[[Path], Any]
) -> None:
    damaged, said = damage(lines)
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(damaged))
    with pytest.raises(UsageError) as caught:
        use(path)
    assert f"the journal {str(path)!r} is damaged: {said}" in caught.value.message
    assert "\n" not in caught.value.message
    assert path.read_bytes() == b"".join(damaged)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("damage", DAMAGE[:4])
def test_the_readable_part_of_a_damaged_journal_is_shown(
    tmp_path: Path, lines: Lines, damage: Callable[[Lines], tuple[Lines, str]]
) -> None:
    damaged, said = damage(lines)
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(damaged))
    view, _ = open_run(path)
    assert view.status == "interrupted"
    assert view.damage[0].startswith(said.partition(";")[0])


def altered(lines: Lines, kind: str, **fields: Any) -> Lines:
    """Give the last record of a type other fields."""
    place = max(place for place, line in enumerate(lines) if f'"type":"{kind}"'.encode() in line[:200])
    record = {**json.loads(lines[place]), **fields}
    return [*lines[:place], json.dumps(record, separators=(",", ":")).encode() + b"\n", *lines[place + 1 :]]


@pytest.mark.parametrize("use", [resumed, replay])
def test_a_model_that_is_not_described_is_reported(tmp_path: Path, lines: Lines, use: Callable[[Path], Any]) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(altered(lines, "run_started", models=[{"price": {}}])))
    with pytest.raises(UsageError, match=r"^cannot read the models in the journal$"):
        use(path)
    path.write_bytes(b"".join(altered(lines, "run_started", models=[{"model": "a:b", "context_window": "big"}])))
    with pytest.raises(UsageError, match=r"^cannot read the models in the journal: 'context_window' is 'big'$"):
        use(path)


@pytest.mark.parametrize("use", [resumed, replay])
def test_an_approval_without_its_decision_is_reported(tmp_path: Path, use: Callable[[Path], Any]) -> None:
    path = tmp_path / "r.jsonl"
    SCENARIOS["short"].run(tmp_path)
    recorded = (tmp_path / JOURNAL).read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(altered(recorded, "approval", decision=None)))
    with pytest.raises(UsageError, match=r"is damaged: line \d+: it has no decision"):
        use(path)


def test_a_tool_that_is_not_described_is_reported(tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(altered(lines, "run_started", tools=[{"name": "echo"}])))
    with pytest.raises(UsageError, match=r"^cannot read the tools in the journal: one of them has no 'description'$"):
        replay(path)


def test_a_byte_order_mark_and_crlf_line_ends_are_accepted(tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(codecs.BOM_UTF8 + b"".join(lines).replace(b"\n", b"\r\n"))
    assert head(path) is not None
    assert replay(path).difference is None
    resumed(path)
    assert replay(path).difference is None


@pytest.mark.parametrize("results", [{}, {"steps": [{}]}, {"answer": 3, "steps": []}], ids=["none", "step", "answer"])
@pytest.mark.parametrize("use", [resumed, forked])
def test_a_pass_without_the_runs_state_is_reported(
    tmp_path: Path, lines: Lines, results: dict[str, Any], use: Callable[[Path], Any]
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(altered(lines, "pass", execution_results=results)))
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"cannot continue from the pass at seq \d+: results\."):
        use(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("field", ["task_profile", "adaptive_depth", "evaluation_results", "execution_results"])
def test_a_pass_that_lacks_a_part_of_it_is_reported(tmp_path: Path, lines: Lines, field: str) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(altered(lines, "pass", **{field: None})))
    for use in (resumed, forked):
        with pytest.raises(UsageError, match=r"cannot continue from|is damaged"):
            use(path)


@pytest.fixture(scope="module")
def resumed_lines(tmp_path_factory: pytest.TempPathFactory) -> Lines:
    """The journal of a run that ended for want of cycles, and was gone on with."""
    folder = tmp_path_factory.mktemp("expired")
    SCENARIOS["expired"].run(folder)
    SCENARIOS["expired"].go_on(folder)
    return (folder / JOURNAL).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("run_resumed", {"continues_at": 0}),
        ("run_resumed", {"continues_at": 10**6}),
        ("run_resumed", {"continues_at": "x"}),
        ("run_finished", {"resumes_at": -3}),
        ("run_finished", {"resumes_at": 10**6}),
        ("run_finished", {"result": None}),
        ("run_finished", {"result": {}}),
    ],
    ids=str,
)
def test_an_invalid_end_or_resume_is_reported(
    tmp_path: Path, resumed_lines: Lines, kind: str, fields: dict[str, Any]
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(altered(resumed_lines, kind, **fields)))
    with pytest.raises(UsageError, match=r"is damaged: line \d+: "):
        replay(path)


def test_the_same_journal_undamaged_is_continued_replayed_and_forked(tmp_path: Path, lines: Lines) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(lines))
    assert replay(path).difference is None
    assert forked(path).run().passes == 2
    assert SCENARIOS["passes"].go_on(tmp_path).status == "converged"
    assert read(path)[-1]["type"] == "run_finished"


@pytest.mark.parametrize("result", [{}, [], None, "lost"])
def test_an_invalid_result_is_one_line(tmp_path: Path, result: object) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    SCENARIOS["passes"].run(folder)
    *before, last = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    ended = {**json.loads(last), "result": result}
    (folder / JOURNAL).write_bytes(b"".join(before) + json.dumps(ended, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(UsageError, match=r"is damaged: line \d+: run_finished\.result"):
        resume(folder / JOURNAL, model())


@pytest.mark.parametrize("use", [resumed, replay])
def test_the_second_run_in_a_file_is_not_mistaken_for_the_first(
    tmp_path: Path, lines: Lines, resumed_lines: Lines, use: Callable[[Path], Any]
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join([*lines, *resumed_lines]))
    said = (
        f"line {len(lines) + 1}: seq 0 where {len(lines)} was expected; a run begins here, but a journal holds only one"
    )
    with pytest.raises(UsageError, match=said):
        use(path)
    assert said in open_run(path)[0].damage[0]
