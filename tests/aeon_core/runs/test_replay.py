"""A replay does what was recorded, goes as far as was recorded, and notices what was altered (Decision 2)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aeon_core import Orchestrator, RunConfig
from aeon_core.errors import UsageError
from aeon_core.llm.base import LLMResponse
from aeon_core.plan.parsing import object_in
from aeon_core.runs.replay import Replay, recorded_lines, replay, replay_lines
from tests.fakes import ScriptedModel, add, steps
from tests.recorded_runs import RUNS
from tests.replays import replays_the_same

Records = list[dict[str, Any]]
Place = tuple[Any, ...]
NOT_COMPARED = {"v", "seq", "ts", "run", "type", "timestamp", "timing_information", "versions", "resumes_at"}
INPUTS = {
    ("run_started", "model"): "a label",
    ("run_started", "simulated"): "a label; each of the models has it too",
    ("run_started", "prices"): "where prices come from",
    ("run_started", "models"): "names, prices and windows: a call's cost is in its record",
    ("run_started", "config"): "most options change nothing in a given run",
    ("run_finished", "result", "journal"): "where the journal was",
}
"""What a run is given and a replay takes as it is, by type and the beginning of the field."""
FROM_OUTSIDE = {
    ("run_started",): "a task or a tool that no prompt of the run holds",
    ("llm", "response"): "a reply to a repair of which only the object in it is used",
    ("llm", "error"): "the error of an attempt that was repeated",
    ("approval", "feedback"): "what a person added to an approval",
}
"""What comes from outside and may have changed nothing in one run: in another one it must be noticed."""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Records]:
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aeon_core.effects.record_stream.RecordStream.wait", lambda self, seconds: None)
        for name, run in RUNS.items():
            run(folder / f"{name}.jsonl")
    return {name: recorded_lines(folder / f"{name}.jsonl") for name in RUNS}


def copy(records: Records) -> Records:
    copied: Records = json.loads(json.dumps(records))
    return copied


@pytest.mark.parametrize("name", RUNS)
def test_a_run_of_any_kind_replays_to_the_same_result(recorded: dict[str, Records], name: str) -> None:
    replays_the_same(recorded[name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", RUNS)
def test_a_prefix_of_a_journal_replays_as_an_unfinished_run(recorded: dict[str, Records], name: str) -> None:
    records = recorded[name]
    emitted = 0
    for end in range(1, len(records)):
        emitted += records[end - 1]["type"] != "text"
        done = replay_lines(copy(records[:end]))
        assert done == Replay(records[0]["run"], emitted, None, None), f"cut after record {end - 1}"


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the position of each compared leaf."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in NOT_COMPARED and not key.endswith("_ms"):
                yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def altered(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return "x" if value is None else f"{value}x"


def change(record: dict[str, Any], path: Place) -> None:
    inner: Any = record
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = altered(inner[path[-1]])


def field(record: dict[str, Any], path: Place) -> Place:
    """Return what of a record a leaf is, wherever it is in lists; of a tool's description the part."""
    place = (record["type"], *("#" if isinstance(part, int) else part for part in path))
    return place[:4] if place[:2] == ("run_started", "tools") else place


def begins(place: Place, known: dict[Place, str]) -> bool:
    return any(place[: len(given)] == given for given in known)


def is_noticed(records: Records) -> bool:
    try:
        return replay_lines(records).difference is not None
    except UsageError:
        return True


@pytest.mark.exhaustive
def test_any_altered_field_is_noticed(recorded: dict[str, Records]) -> None:
    """Of each run the first place of each field, until it was noticed in one."""
    noticed: set[Place] = set()
    missed: set[Place] = set()
    for records in sorted(recorded.values(), key=len):
        tried: set[Place] = set()
        for index, record in enumerate(records):
            for path in () if record["type"] == "text" else leaves(record):
                place = field(record, path)
                if place in tried | noticed or begins(place, INPUTS):
                    continue
                tried.add(place)
                changed = copy(records)
                change(changed[index], path)
                (noticed if is_noticed(changed) else missed).add(place)
    assert {place for place in missed if not begins(place, FROM_OUTSIDE)} == set()
    assert missed <= noticed
    assert {record["type"] for records in recorded.values() for record in records} - {"text"} == {
        place[0] for place in noticed
    }


def shows(records: Records) -> str:
    return str(replay_lines(copy(records)).difference)


def test_a_difference_names_record_type_step_purpose_and_field_and_shows_both_values(
    recorded: dict[str, Records],
) -> None:
    records = copy(recorded["one-pass"])
    line = next(r for r in records if r["type"] == "llm" and r.get("purpose") == "reason")
    content = line["request"]["messages"][0]["content"]
    line["request"]["messages"][0]["content"] = content.replace("do part 3", "do part three", 1)
    found = replay_lines(records).difference
    assert found is not None
    assert found.seq == line["seq"]
    where = "llm · pass 1 · step_id s3 · purpose reason · call_id c5 · state started · request.messages[0].content"
    assert found.where == where
    assert "do part three" in found.recorded
    assert "do part 3" in found.now
    assert len(content) > len(found.recorded)
    assert found.recorded[0] == found.now[0] == "…"


def test_a_record_of_another_type_is_shown_next_to_what_the_kernel_emits(recorded: dict[str, Records]) -> None:
    records = [record for record in recorded["given"] if record["type"] != "memory"]
    found = replay_lines(copy(records)).difference
    assert found is not None
    assert found.recorded.startswith('step {"pass": 1, "step_id": "s1.1", "status": "complete"')
    assert found.now.startswith('memory {"key": "s1.1", "value": {"result": 3')


def test_an_object_where_there_was_none_is_shown(recorded: dict[str, Records]) -> None:
    records = copy(recorded["given"])
    line = next(record for record in records if record["type"] == "step" and record["status"] == "running")
    line["output"] = {"result": 1}
    assert shows(records).endswith('output was {"result": 1}, is now null')


def with_other_times(value: Any) -> Any:
    if not isinstance(value, dict):
        return [with_other_times(item) for item in value] if isinstance(value, list) else value
    other = {"ts": "2020-01-01T00:00:00.000000Z", "timestamp": "", "timing_information": {}}
    return {
        key: 7 if key.endswith("_ms") else other[key] if key in other else with_other_times(item)
        for key, item in value.items()
    }


def test_times_are_not_compared(recorded: dict[str, Records]) -> None:
    changed = with_other_times(recorded["passes"])
    assert changed != recorded["passes"]
    replays_the_same(changed)


def test_records_after_the_end_of_the_run_are_a_difference(recorded: dict[str, Records]) -> None:
    records = copy(recorded["denied"])
    more = {**records[-1], "seq": records[-1]["seq"] + 1}
    assert shows([*records, more]).endswith("is now the end of the run")


def test_options_unknown_to_an_older_version_are_not_compared(recorded: dict[str, Records]) -> None:
    records = copy(recorded["passes"])
    del records[0]["config"]["otel"], records[0]["config"]["shell"], records[0]["config"]["approve"]
    replays_the_same(records)


def test_a_failed_repair_that_an_earlier_version_described_otherwise_replays(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    result = Orchestrator(ScriptedModel(plan="Hello!"), config={"single_pass": True}, journal=path).run("add")
    message = (
        "the model replied 'Hello!' instead of a plan; use a model that can write JSON, or pass a plan of your own"
    )
    assert (result.status, result.error and result.error["message"]) == ("failed", message)
    assert result.error is not None
    earlier = f"the plan could not be repaired in 2 attempts: {result.error['problems'][0]}"
    written = path.read_text()
    path.write_text(written.replace(message, earlier))
    assert replay(path).difference is None
    path.write_text(written.replace(message, f"{earlier}, it seems"))
    assert replay(path).difference is not None


def test_a_cut_plan_that_an_earlier_version_described_otherwise_replays(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    cut = LLMResponse(text='{"goal": "add", "steps": [', stop_reason="max_tokens")
    result = Orchestrator(ScriptedModel(plan=cut, repair=cut), config={"single_pass": True}, journal=path).run("add")
    assert result.error is not None
    assert result.error["message"] == "the plan could not be repaired in 2 attempts: it was cut off; raise max_tokens"
    earlier = f"the plan could not be repaired in 2 attempts: {result.error['problems'][0]}"
    path.write_text(path.read_text().replace(result.error["message"], earlier))
    assert replay(path).difference is None


def test_a_reply_without_json_is_recorded_in_the_words_of_earlier_versions(tmp_path: Path) -> None:
    # They are in later requests too, so that other words would keep earlier journals from being replayed and resumed.
    path = tmp_path / "run.jsonl"
    model = ScriptedModel(plan=["Hello!", steps({"tool": "calculator"})], tool_call="No.", repair="", answer="a")
    Orchestrator(model, config={"single_pass": True}, journal=path).run("add")
    words = "not JSON: Expecting value: line 1 column 1 (char 0); no lossless local repair"
    assert words in model.asked("plan")[-1].messages[-1]["content"]
    assert words in path.read_text()
    assert "it begins with" not in path.read_text()
    with pytest.raises(ValueError, match=r"^not JSON: Expecting value: line 1 column 1 \(char 0\)$"):
        object_in("Hello!", "an object")


def test_a_redacted_address_does_not_prevent_a_replay(tmp_path: Path) -> None:
    config = RunConfig(
        single_pass=True,
        durability="off",
        base_url="http://user:hunter2abc9@localhost:1/v1",
        mcp_servers={"x": {"url": "https://user:hunter2abc9@localhost/mcp"}},
    )
    path = tmp_path / "r.jsonl"
    Orchestrator(ScriptedModel(answer="2"), journal=path, config=config).run("t", steps(add(1, 1)))
    assert b"hunter2abc9" not in path.read_bytes()
    replays_the_same(recorded_lines(path))


def test_options_that_this_version_does_not_have_are_named(recorded: dict[str, Records]) -> None:
    records = copy(recorded["denied"])
    records[0]["config"]["parallel"] = 4
    with pytest.raises(UsageError, match=r"the options in the journal.*'parallel'"):
        replay_lines(records)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("models", [{}], "models in the journal"),
        ("tools", [{"name": "x"}], "tools in the journal"),
        ("criteria", {"completeness": 7}, "convergence criteria"),
        ("task", " ", "expected non-empty text"),
    ],
)
def test_an_unreadable_beginning_is_one_clear_line(
    recorded: dict[str, Records], key: str, value: Any, why: str
) -> None:
    records = copy(recorded["denied"])
    records[0][key] = value
    with pytest.raises(UsageError, match=why) as caught:
        replay_lines(records)
    assert "\n" not in caught.value.message


def test_a_given_plan_that_cannot_be_read_is_refused_in_one_line(recorded: dict[str, Records]) -> None:
    records = copy(recorded["given"])
    del records[0]["plan"]["goal"]
    with pytest.raises(UsageError, match="cannot read the plan that the run was given"):
        replay_lines(records)


def test_an_error_that_is_written_into_a_given_plan_is_noticed(recorded: dict[str, Records]) -> None:
    records = copy(recorded["given"])
    line = next(record for record in records if record["type"] == "plan")
    line["plan"]["steps"][0]["subplan"]["substeps"][0]["errors"] = ["Tool 'calculator' not found in registry"]
    assert "substeps[0].errors was [" in shows(records)


def test_a_replay_calls_no_model_and_no_tool_and_its_records_can_be_followed(tmp_path: Path) -> None:
    result = RUNS["gated"](tmp_path / "r.jsonl")
    heard: Records = []
    done = replay(tmp_path / "r.jsonl", lambda line: heard.append(json.loads(line)))
    assert done.result is not None
    assert done.result.model_dump() == result.model_dump()
    assert done.records == len(heard) - sum(record["type"] == "text" for record in heard)
    assert [record["type"] for record in heard][-1] == "run_finished"
    cycles, again = (
        [r for r in records if r["type"] == "cycle"] for records in (recorded_lines(tmp_path / "r.jsonl"), heard)
    )
    assert [cycle["timestamp"] for cycle in again] == [cycle["timestamp"] for cycle in cycles] != []
