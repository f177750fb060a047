"""The lines of a batch: what they may hold, and the names of the runs that they become."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.config.schema import RunConfig
from aeon_core.errors import UsageError
from aeon_core.policy import PolicyRules
from aeon_core.runs.batch_tasks import BatchTask, check_journals, read_tasks, run_name

ADD = "calculate the sum of 1 and 2"


def read(*lines: Any, config: RunConfig | None = None, folder: Path | None = None) -> list[BatchTask]:
    raw = [line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines]
    return read_tasks(raw, name="nightly", config=config or RunConfig(), where="the file 't.jsonl'", folder=folder)


def problem(*lines: Any) -> str:
    with pytest.raises(UsageError) as raised:
        read(*lines)
    assert "\n" not in raised.value.message
    return raised.value.message


def test_each_line_is_a_task_with_its_own_run_id() -> None:
    tasks = read({"id": "a", "task": ADD}, b"\n", b"  \r\n", {"id": 2, "task": "think"})
    assert [(task.id, task.run_id, task.task, task.line) for task in tasks] == [
        ("a", "nightly.a", ADD, 1),
        ("2", "nightly.2", "think", 4),
    ]
    assert tasks[0].journal(Path("/runs")) == Path("/runs/nightly.a.jsonl")


def test_a_byte_order_mark_is_dropped_from_each_line_as_files_may_have_been_joined() -> None:
    tasks = read(*(b'\xef\xbb\xbf{"id": "%s", "task": "x"}\r\n' % name for name in (b"a", b"b")), b"\xef\xbb\xbf")
    assert [(task.id, task.line) for task in tasks] == [("a", 1), ("b", 2)]


def test_a_lines_fields_override_the_batchs(tmp_path: Path) -> None:
    base = RunConfig(
        model="simulated:default", ttl=9, policy=PolicyRules(deny=["Bash"]), prices={"m": {"input": 1, "output": 2}}
    )
    first, second = read(
        {"id": "a", "task": ADD, "ttl": 3, "policy": {"allow": ["Read"]}, "prices": {"n": {"input": 3, "output": 4}}},
        {"id": "b", "task": ADD, "project_root": "sub", "model": None},
        config=base,
        folder=tmp_path,
    )
    assert (first.config.ttl, first.config.model) == (3, "simulated:default")
    assert (first.config.policy.allow, first.config.policy.deny) == (("Read",), ("Bash",))
    assert sorted(first.config.prices) == ["m", "n"]
    assert second.config == base.model_copy(update={"project_root": tmp_path / "sub"})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param(b"{", "column 2 (char 1); expected one object per line, such as {", id="broken"),
        pytest.param({"id": "b", "task": ADD, "none": 3}, "durability, max_tokens, timeout", id="not-runs-dir"),
        pytest.param(b'{"id": "b", "task": "x", "ttl": NaN}', "line 2 is not JSON: ", id="nan"),
        pytest.param(b'{"id": "b", "id": "c", "task": "x"}', "line 2 is not JSON: ", id="key-twice"),
        pytest.param(b'{"id": "\xff"}', "line 2 is not UTF-8", id="latin-1"),
        pytest.param(["b"], "line 2 is ['b']; expected an object", id="list"),
        pytest.param(b"null", "line 2 is null; expected an object", id="null"),
        pytest.param({"task": ADD}, "line 2: 'id' is missing; expected text", id="no-id"),
        pytest.param({"id": " ", "task": ADD}, "line 2: 'id' is ' '", id="blank-id"),
        pytest.param({"id": True, "task": ADD}, "line 2: 'id' is True", id="truth-id"),
        pytest.param({"id": "b" * 501, "task": ADD}, "line 2: 'id' is 'bbb", id="long-id"),
        pytest.param({"id": "b"}, "line 2: 'task' is missing; expected non-empty text", id="no-task"),
        pytest.param({"id": "b", "task": "\n"}, r"line 2: 'task' is '\n'", id="blank-task"),
        pytest.param({"id": "b", "task": ADD, "tll": 3}, "unknown field 'tll'; did you mean 'ttl'?", id="unknown"),
        pytest.param({"id": "b", "task": ADD, "ttl": "3"}, "line 2: 'ttl' of RunConfig must be", id="value"),
        pytest.param({"id": "b", "task": ADD, "runs_dir": "x"}, "set it with --runs-dir", id="runs-dir"),
        pytest.param({"id": "b", "task": ADD, "workflow": "yes"}, "'workflow' is 'yes'; expected true", id="workflow"),
        pytest.param(
            {"id": "b", "task": ADD, "workflow": True, "ttl": 3}, "'ttl' does not apply to a workflow", id="of-runs"
        ),
        pytest.param({"id": "a", "task": ADD}, "duplicate id 'a', first on line 1", id="twice"),
    ],
)
def test_a_bad_line_is_reported_with_its_number(line: Any, told: str) -> None:
    message = problem({"id": "a", "task": ADD}, line)
    assert message.startswith("the file 't.jsonl', line 2")
    assert told in message


def test_a_number_and_its_text_are_one_id() -> None:
    assert "duplicate id '1'" in problem({"id": 1, "task": ADD}, {"id": "1", "task": ADD})


def test_a_file_without_tasks_is_reported() -> None:
    assert "has no tasks" in problem(b"\n")


def test_another_tasks_journal_is_not_reused(tmp_path: Path) -> None:
    tasks = read({"id": "a", "task": ADD}, {"id": "b", "task": "think"})
    stamp = "2026-11-20T09:30:00.123456Z"
    first = {"v": 1, "seq": 0, "ts": stamp, "run": "r", "type": "run_started", "task": ADD}
    for task in tasks:
        task.journal(tmp_path).write_text(json.dumps(first) + "\n")
    with pytest.raises(UsageError, match=r"line 2: the run 'nightly.b' already exists with another task, 'calculate"):
        check_journals(tasks, tmp_path, "t.jsonl")
    check_journals(tasks[:1], tmp_path, "t.jsonl")


def test_a_journal_that_cannot_be_read_does_not_stop_the_other_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begun(path: Path) -> dict[str, Any]:
        if path == tasks[0].journal(tmp_path):
            raise UsageError(f"cannot read the journal {str(path)!r}: Permission denied")
        return {"task": "another"}

    monkeypatch.setattr("aeon_core.runs.batch_tasks.head", begun)
    tasks = read({"id": "a", "task": ADD}, {"id": "b", "task": "think"})
    tasks[0].journal(tmp_path).touch()
    check_journals(tasks, tmp_path, "t.jsonl")
    tasks[1].journal(tmp_path).touch()
    with pytest.raises(UsageError, match=r"line 2: the run 'nightly.b' already exists with another task, 'another'"):
        check_journals(tasks, tmp_path, "t.jsonl")


@pytest.mark.parametrize("text", ["a", "t-1", "case_7", "0", "x" * 48])
def test_a_simple_name_is_unchanged(text: str) -> None:
    assert run_name(text) == text


@pytest.mark.parametrize(
    ("text", "beginning"),
    [("../../etc/passwd", "etc-passwd-"), ("Case", "case-"), ("größe", "gr-e-"), ("日本", "id-"), ("a.b", "a-b-")],
)
def test_any_other_name_keeps_what_is_safe_and_gets_a_hash(text: str, beginning: str) -> None:
    assert re.fullmatch(f"{re.escape(beginning)}[0-9a-f]{{10}}", run_name(text))


@given(st.text(min_size=1), st.text(min_size=1))
def test_names_are_safe_and_two_texts_have_two(one: str, other: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,58}", run_name(one))
    assert (run_name(one) == run_name(other)) == (one == other)


def test_an_id_that_looks_like_another_name_gets_its_own() -> None:
    assert run_name(run_name("Case")) != run_name("Case")
