"""A fork in the app: it has the parent's options except for overrides, and a journal of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from aeon_core import LLMResponse, Orchestrator, RunConfig, ToolRegistry
from aeon_core.config.loading import LoadedConfig
from aeon_core.config.schema import recorded_config
from aeon_core.errors import ModelUnavailableError, UsageError
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMAdapter, LLMRequest
from aeon_core.policy import PolicyRules
from aeon_core.runs.fork import starting_point
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import resume
from aeon_tui.sessions.fork_job import (
    ForkEdits,
    ForkJob,
    ForkRequest,
    fork_job,
    fork_text,
    parse_fork_text,
)
from aeon_tui.sessions.run_jobs import NewRunForm
from aeon_tui.sessions.run_options import merge_overrides, started_of
from aeon_tui.sessions.runner import Runner
from tests.aeon_core.kernel.test_passes import MENDED, TASK, model, plan
from tests.waiting import PATIENCE

TODAY = LoadedConfig(RunConfig(model="simulated:default", base_url="http://today:1/v1"), {"approve": "a file"})
TRUSTED = replace(TODAY, mode="apply")


def two_passes() -> LLMAdapter:
    return model(plan=plan(by=0), refine=MENDED, answer="The sum of 5 and 10 is 15, and 1 divided by 2 is 0.5.")


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of two passes, and today a model that says the same."""
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: two_passes())
    path = tmp_path / "parent.jsonl"
    config = RunConfig(durability="off", ttl=30, policy=PolicyRules(deny=("Bash(rm *)",)))
    assert Orchestrator(two_passes(), config=config, journal=path).run(TASK).passes == 2
    return path


def test_a_run_or_fork_in_a_folder_that_cannot_be_written_is_refused_while_its_form_is_open(parent: Path) -> None:
    for request in (NewRunForm("add 1 and 2", "simulated:default", "20"), ForkRequest(parent, 2, {})):
        with pytest.raises(UsageError, match=r"cannot store runs in .*/parent\.jsonl/runs'.* is not a folder; choose"):
            request.job(lambda: TODAY, parent / "runs")


def test_a_fork_starts_at_its_pass_and_leaves_its_parent_unchanged(parent: Path) -> None:
    before = parent.read_bytes()
    job = fork_job(parent, 2, TODAY, {"ttl": 40}, in_app=True)
    job.prepare()
    runner = Runner(job, job.journal_in(parent.parent / "forks"))
    runner.start()
    assert runner.wait(PATIENCE)
    assert runner.result is not None
    assert (runner.result.status, runner.result.passes, runner.result.ttl.limit) == ("converged", 2, 40)
    started = next(read_records(runner.journal))
    assert (started["parent"]["run_id"], started["parent"]["pass"]) == ("parent", 2)
    assert runner.journal.parent == parent.parent / "forks"
    assert parent.read_bytes() == before
    assert job.task == TASK


@pytest.mark.parametrize(
    ("number", "said", "message"),
    [(9, {}, "has no pass 9"), (2, {"ttl": 3}, "a TTL of 3 is too small")],
)
def test_an_impossible_fork_is_reported_before_it_starts(
    parent: Path, number: int, said: dict[str, int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        fork_job(parent, number, TODAY, said, in_app=True).prepare()


def test_a_model_that_cannot_be_used_is_reported_before_it_starts(
    parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Keyless(LLMAdapter):
        model = "openai:gpt"
        closed = False

        def complete(self, request: LLMRequest) -> LLMResponse:
            raise AssertionError("it is not asked")

        def check(self) -> None:
            raise ModelUnavailableError("no key")

        def close(self) -> None:
            self.closed = True

    keyless = Keyless()
    monkeypatch.setattr("aeon_core.runs.factory.connect_model", lambda _: keyless)
    with pytest.raises(ModelUnavailableError):
        fork_job(parent, 2, TODAY, {}, in_app=True).prepare()
    assert keyless.closed


def test_unused_loaded_tools_are_closed(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    registry = ToolRegistry()
    registry.closes_with(lambda: closed.append(True))
    monkeypatch.setattr("aeon_core.runs.factory.build_tools", lambda _: registry)
    with pytest.raises(UsageError):
        fork_job(parent, 9, TODAY, {}, in_app=True).prepare()
    assert closed == [True]


def test_a_fork_keeps_the_parents_options_except_overrides(parent: Path) -> None:
    job = fork_job(parent, 2, TODAY, {"budget": 2.0}, in_app=False)
    assert isinstance(job, ForkJob)
    assert (job.config.ttl, job.config.budget, job.config.durability) == (30, 2.0, "off")


def test_a_fork_adds_todays_rules_to_its_parents(parent: Path) -> None:
    rules = PolicyRules(allow=("Read",), ask=("Write",), deny=("Bash(rm *)",))
    today = replace(TODAY, config=TODAY.config.model_copy(update={"policy": rules}))
    job = fork_job(parent, 2, today, {}, in_app=False)
    assert isinstance(job, ForkJob)
    assert job.config.policy == rules, "each once"


def test_a_rule_of_todays_lets_no_rule_of_a_strange_journal_in(parent: Path) -> None:
    strange = parent.with_name("strange.jsonl")
    strange.write_bytes(parent.read_bytes().replace(b'"allow":[]', b'"allow":["Bash(*)"]', 1))
    said = {"policy": PolicyRules(allow=("Read",))}
    today = replace(TODAY, config=TODAY.config.model_copy(update=said))
    with pytest.raises(UsageError, match=r"allow calls without asking: Bash\(\*\), which comes neither"):
        fork_job(strange, 2, today, said, in_app=False)


@pytest.mark.parametrize(
    ("in_app", "sources", "asked"),
    [(True, {}, ["pass", "tool"]), (True, {"approve": "a file"}, ["plan"]), (False, {}, ["plan"])],
)
def test_approval_settings_are_those_of_a_new_run(
    parent: Path, in_app: bool, sources: dict[str, str], asked: list[str]
) -> None:
    today = LoadedConfig(RunConfig(model="simulated:default", approve=["plan"]), sources)
    assert fork_job(parent, 2, today, {}, in_app=in_app).config.approve == asked


def test_a_new_model_does_not_use_the_previous_models_address(parent: Path) -> None:
    started = started_of(parent)
    recorded = recorded_config(started).model_copy(update={"base_url": "http://recorded:1/v1"})
    said = {"model": "anthropic:claude"}
    assert merge_overrides(recorded, started, TRUSTED, {}).base_url == "http://recorded:1/v1"
    assert merge_overrides(recorded, started, TRUSTED, said).base_url == "http://today:1/v1"
    nearby = recorded.model_copy(update={"model": "openai:small"})
    assert merge_overrides(nearby, started, TRUSTED, {"model": "openai:large"}).base_url == "http://recorded:1/v1"
    both = {**said, "base_url": "http://said:1/v1"}
    assert merge_overrides(recorded, started, TRUSTED, both).base_url == "http://said:1/v1"


def test_an_address_not_in_the_journal_is_taken_from_the_settings(parent: Path) -> None:
    started = started_of(parent)
    started["config"]["base_url"] = "http://[redacted]@recorded:1/v1"
    recorded = recorded_config({"config": {**started["config"], "base_url": None}})
    assert merge_overrides(recorded, started, TRUSTED, {}).base_url == "http://today:1/v1"


def test_secrets_are_taken_from_the_current_environment(parent: Path) -> None:
    started = started_of(parent)
    today = LoadedConfig(RunConfig(prices={"m": {"input": 1.0, "output": 2.0}}))
    assert merge_overrides(recorded_config(started), started, today, {}).prices == today.config.prices


def test_a_fork_starts_with_the_edited_plan(parent: Path) -> None:
    before = fork_text(*starting_point(parent, 2))
    assert parse_fork_text(f"# mine\n{before}", before) == ForkEdits()
    data = yaml.safe_load(before)
    data["requirements"] = ["15 is in the answer"]
    data["criteria"]["completeness"] = 0.6
    data["steps"][0]["description"] = "Add the two numbers"
    edits = parse_fork_text(yaml.safe_dump(data, sort_keys=False), before)
    job = ForkRequest(parent, 2, {"ttl": 40}, edits).job(lambda: TODAY, parent.parent / "forks")
    job.prepare()
    runner = Runner(job, job.journal_in(parent.parent / "forks"))
    runner.start()
    assert runner.wait(PATIENCE)
    started = next(read_records(runner.journal))
    assert started["criteria"]["completeness"] == 0.6
    assert started["start"]["requirements"] == ["15 is in the answer"]
    assert started["start"]["plan"]["steps"][0]["description"] == "Add the two numbers"
    assert replay(runner.journal).difference is None
    lines = runner.journal.read_bytes().splitlines(keepends=True)
    cut = runner.journal.with_name("cut.jsonl")
    cut.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert runner.result is not None
    assert resume(cut, two_passes()).status == runner.result.status
    assert replay(cut).difference is None
