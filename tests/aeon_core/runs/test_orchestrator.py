"""What an Orchestrator takes, what it says to what it does not take, and which model its journal names."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from aeon_core import (
    AeonError,
    ConvergenceEngine,
    InMemoryStore,
    LLMAdapter,
    Orchestrator,
    Plan,
    PlanStep,
    RunConfig,
    RunRequest,
    SemanticValidator,
    Subplan,
    Supervisor,
    ToolRegistry,
    connect,
    execute_llm_reasoning_step,
    lint_plan,
    list_runs,
    open_history,
    replay,
    resume,
    tool,
)
from aeon_core.errors import UsageError
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import ModelChain
from aeon_core.runs.fork import Fork
from aeon_tui.cli.main import main
from tests.fakes import ScriptedModel, add, steps

SIMULATED = "simulated:default"
URL = "http://127.0.0.1:9/v1"


def word_count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


class Named(ScriptedModel):
    """A scripted model under the name of a real one."""

    model = "openai:gpt-test"
    base_url = URL


def started(path: Path) -> dict[str, Any]:
    return next(read_records(path))


def test_a_name_a_list_of_functions_and_a_dict_are_enough() -> None:
    orchestrator = Orchestrator(SIMULATED, tools=[word_count], config={"ttl": 20}, journal=False)
    result = orchestrator.run("use word_count on 'to be or not to be'")
    assert (result.status, result.answer, result.ttl.limit) == ("converged", "The result is 6.", 20)
    assert [tool.name for tool in orchestrator.tools] == ["word_count"]


def test_options_that_need_a_part_of_the_caller_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    config = {"otel": True, "wait": 5}
    Orchestrator(SIMULATED, config=config, journal=False, approver=lambda _: None, on_record=print)
    assert caplog.messages == []
    Orchestrator(SIMULATED, config=config, journal=False)
    assert [message.partition(";")[0] for message in caplog.messages] == [
        "'otel' sends nothing without a listener",
        "'wait' has no effect without an approver",
    ]


def test_options_provide_model_and_tools_by_default(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Ship it.")
    config = {"model": [SIMULATED, "simulated:flaky"], "tools": ["files"], "project_root": tmp_path}
    orchestrator = Orchestrator(config=config, journal=False)
    assert isinstance(orchestrator.llm, ModelChain)
    assert "Read" in orchestrator.tools
    named = Orchestrator(SIMULATED, config=RunConfig(**config), journal=False)
    assert (named.llm.model, named.config.model) == (SIMULATED, SIMULATED)


def test_a_registry_is_made_of_a_list_or_of_another_one() -> None:
    registry = ToolRegistry([word_count])
    assert [tool.name for tool in ToolRegistry(registry)] == ["word_count"]
    with pytest.raises(AeonError, match="already registered"):
        ToolRegistry([word_count, word_count])


THINK = PlanStep(step_id="s1", description="think", agent="llm")


def assess(**given: Any) -> object:
    plan = Plan(goal="g", steps=[THINK])
    return ConvergenceEngine().assess(**{"goal": "g", "plan": plan, "results": {}, "answer": "x", **given})


def check(**given: Any) -> object:
    plan = Plan(goal="g", steps=[THINK])
    return SemanticValidator([]).validate_execution(**{"goal": "g", "plan": plan, "results": {}, **given})


def review(**given: Any) -> object:
    return SemanticValidator([]).validate_plan(Plan(goal="g", steps=[THINK]), **given)


def reason(**given: Any) -> object:
    return execute_llm_reasoning_step(THINK, InMemoryStore(), ScriptedModel(), **given)


def adapter(**members: Any) -> Any:
    return type("Odd", (LLMAdapter,), {"complete": lambda *_: None, **members})()


async def asynchronous(*_: object) -> None:
    """Is what an adapter's method cannot be."""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "no model is given; write Orchestrator.'PROVIDER:NAME'"),
        ({"llm": 3}, "int is not a model; write connect"),
        ({"llm": LLMAdapter}, "the class LLMAdapter is not a model"),
        ({"llm": ["simulated:down", ScriptedModel()]}, "list is not a model; a list holds names only"),
        ({"llm": adapter(model=object())}, "the 'model' of Odd is <object object at .*>; expected its label"),
        ({"llm": adapter(model="a\nb")}, r"the 'model' of Odd is 'a\\nb'; expected its label, such as 'local:llama'"),
        ({"llm": adapter(context_window="8k")}, "the 'context_window' of Odd is '8k'; expected a number of tokens"),
        ({"llm": adapter(complete=asynchronous)}, "'complete' of Odd is async, expected a plain function"),
        ({"llm": SimpleNamespace(complete=asynchronous)}, "'complete' of SimpleNamespace is async"),
        ({"llm": "gpt"}, "expected PROVIDER:NAME"),
        ({"llm": "openai:gpt"}, "set OPENAI_API_KEY"),
        ({"tools": word_count}, r"a list of functions or Tools, such as \[word_count\]"),
        ({"tools": "files"}, "a list of functions or Tools"),
        ({"tools": [1]}, "got 1; write a function with types and a docstring"),
        ({"tools": ["files"]}, r'config={"tools": \["files"\]}'),
        ({"tools": [Path]}, "register an instance"),
        ({"config": "a.yml"}, r'write a dict of options such as {"ttl": 5}'),
        ({"config": {3: 3}}, "write a dict of options"),
        ({"config": {"prices": []}}, r"'prices' of RunConfig must be .*; got \[\]$"),
        ({"config": {"tll": 3}}, "did you mean 'ttl'"),
        ({"memory": {}}, r"write InMemoryStore\(\), or an object with write, read and search"),
        ({"memory": InMemoryStore}, r"memory is the class InMemoryStore; write InMemoryStore\(\)"),
        ({"memory": SimpleNamespace(read=print, write=asynchronous, search=print)}, "'write' of memory is async"),
        ({"approver": True}, "a function that takes an ApprovalRequest"),
        ({"on_record": []}, "a function that takes a dict"),
        ({"approver": asynchronous}, "approver is async, expected a plain function"),
        ({"on_record": asynchronous}, "on_record is async, expected a plain function"),
        ({"on_line": 3}, "on_line is 3; write a function that takes bytes"),
        ({"on_delta": 3}, "on_delta is 3; write a function that takes .purpose, step_id, text."),
        ({"on_delta": asynchronous}, "on_delta is async, expected a plain function"),
        ({"journal": True}, "a path, False for none"),
        ({"criteria": {}}, "ConvergenceCriteria"),
        ({"requirements": "one"}, "a list"),
        ({"requirements": [1]}, "requirements is an array of 1; write a list such as"),
        ({"recorded": []}, "recorded is of type list, expected a ReplayCursor"),
        ({"resumed": 5}, "resumed is of type int, expected a RunResumed"),
        ({"start": {}}, "start is of type dict, expected a RunStart"),
        ({"secrets": "x"}, "secrets is of type str, expected a RunSecrets"),
    ],
)
def test_wrong_arguments_are_refused_with_advice(given: dict[str, Any], words: str) -> None:
    arguments = {"llm": SIMULATED, **given} if given else {}
    with pytest.raises(AeonError, match=words) as refused:
        Orchestrator(**arguments)
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: open_history(1), "write a run id, a path to a journal, or 'last'"),
        (lambda: resume(1), "write a run id, a path to a journal, or 'last'"),
        (lambda: replay(1), "write a run id, a path to a journal, or 'last'"),
        (lambda: Fork(1, 1), "write a run id, a path to a journal, or 'last'"),
        (lambda: lint_plan(1), "the plan: expected a path, got 1"),
        (lambda: connect("openai:gpt", base_url=5), "base_url is 5; write an address such as"),
        (lambda: SemanticValidator(1), "write a list of functions or Tools"),
        (lambda: list_runs(5), "the runs directory: expected a path, got 5"),
        (lambda: open_history("last", 5), "the runs directory: expected a path, got 5"),
        (lambda: check(results=["x"]), "results is of type list, expected a Mapping"),
        (lambda: check(answer=5), "the answer is of type int, expected a str"),
        (lambda: check(failures=["x"]), "failures is of type list, expected a Mapping"),
        (lambda: check(failures={"s1": 5}), r"failures\['s1'\] is 5; write a list such as"),
        (lambda: check(goal=5), "the goal is of type int, expected a str"),
        (lambda: check(memory=5), "the memory is of type int, expected a Memory"),
        (lambda: ConvergenceEngine(votes=0), "votes is 0, expected 1 or 3"),
        (lambda: SemanticValidator([word_count]).validate_plan({}), "write Plan.model_validate"),
        (lambda: review(task=5), "the task is of type int, expected a str"),
        (lambda: review(requirements=[5]), r"requirements is \[5\]; write a list such as"),
        (lambda: ConvergenceEngine({}), "write ConvergenceCriteria"),
        (lambda: ConvergenceEngine(judge=SIMULATED), r"the judge is .*; write connect\('PROVIDER:NAME'\)"),
        (
            lambda: lint_plan(Plan(goal="g", steps=[THINK]).model_dump(), judge=SIMULATED),
            r"the judge is .*; write connect\('PROVIDER:NAME'\)",
        ),
        (lambda: Supervisor(SIMULATED), r"is the name of a model, not a model; write connect\('simulated:default'\)"),
        (lambda: Supervisor(ScriptedModel(), on_action=5), "on_action is 5, expected a function"),
        (lambda: Supervisor(ScriptedModel(), clock="now"), "clock is 'now', expected a function"),
        (lambda: Supervisor(ScriptedModel(), registry=5), "tools is 5; write a list of functions or Tools"),
        (lambda: Supervisor(ScriptedModel()).read_plan("{}"), "the reply is of type str, expected a LLMResponse"),
        (lambda: execute_llm_reasoning_step(THINK, InMemoryStore(), "a:b"), r"write connect\('a:b'\)"),
        (lambda: assess(results={"s1": b"x"}), "a result is not plain JSON: bytes has no JSON form"),
        (lambda: assess(goal=None), "the goal is of type NoneType, expected a str"),
        (lambda: assess(answer=5), "the answer is of type int, expected a str"),
        (lambda: assess(report="x"), "the report is of type str, expected a SemanticValidationReport"),
        (lambda: assess(failures=["x"]), "failures is of type list, expected a Mapping"),
        (lambda: assess(failures={"s1": "x"}), r"failures\['s1'\] is 'x'; write a list such as"),
        (lambda: assess(requirements="one"), r"requirements is 'one'; write a list such as"),
        (lambda: assess(requirements=5), "requirements is 5; write a list such as"),
        (lambda: assess(requirements=[5]), r"requirements is \[5\]; write a list such as"),
        (lambda: assess(tools=5), "tools is 5; write a list such as"),
        (lambda: assess(tools="calculator"), "tools is 'calculator'; write a list such as"),
        (lambda: assess(memory=["x"]), "the memory is of type list, expected a Memory"),
        (lambda: resume("a.jsonl", trusts_project="no"), "trusts_project is of type str, expected a bool"),
        (lambda: replay("a.jsonl", request="add"), "the request is of type str, expected a RunRequest"),
        (lambda: RunRequest("add", requirements="one"), 'requirements is "one"; write a list such as'),
        (lambda: RunRequest("add", memory=[]), "memory is an empty array; write InMemoryStore"),
        (lambda: RunRequest(5), "the task is 5; expected non-empty text"),
        (lambda: RunRequest("add", plan="p.json"), "the plan is of type str, expected a Plan or a dict; json.load"),
        (lambda: RunRequest("add", plan={}), "not a valid plan: goal: missing"),
        (lambda: SemanticValidator([], prompts_dir=5), "prompts_dir is of type int, expected a str or Path"),
        (lambda: ConvergenceEngine(prompts_dir=[]), "prompts_dir is of type list, expected a str or Path"),
        (lambda: Supervisor(ScriptedModel(), prompts_dir={}), "prompts_dir is of type dict, expected a str or Path"),
        (lambda: Supervisor(ScriptedModel(), max_tokens="x"), "max_tokens is of type str, expected an int"),
        (lambda: reason(prompts_dir=5), "prompts_dir is of type int, expected a str or Path"),
        (lambda: reason(max_tokens="x"), "max_tokens is of type str, expected an int"),
        (lambda: reason(context="x"), "context is of type str, expected a Mapping"),
        (lambda: reason(purpose="x"), "purpose is 'x', expected 'reason' or 'fallback'"),
        (lambda: ToolRegistry([tool(examples=5)(word_count)]), "examples must be a list of arguments, got 5"),
        (lambda: setattr(RunConfig(), "ttl", -4), "'ttl' of RunConfig must be .*; got -4"),
        (lambda: setattr(RunConfig(), "approve", ["plann"]), "did you mean 'plan'"),
        (lambda: setattr(RunConfig(), "tll", 3), "RunConfig has no field 'tll'; did you mean 'ttl'"),
        (lambda: assess(memory={"k": {(1, 2): 3}}), "a memory entry is not plain JSON: a key of type tuple"),
    ],
)
def test_wrong_names_are_refused_with_advice(use: Callable[[], object], words: str) -> None:
    with pytest.raises(AeonError, match=words) as refused:
        use()
    assert "\n" not in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"config": {"prompts_dir": "none"}}, "the prompts_dir 'none' is not a folder; make it, or leave the key out"),
        ({"journal": ""}, "the journal: expected a path, got an empty one"),
        ({"journal": "a\0.jsonl"}, r"the journal: 'a\x00.jsonl' contains a NUL character; choose another path"),
        (
            {"config": {"runs_dir": "a\0"}},
            r"'runs_dir' of RunConfig: 'a\x00' contains a NUL character; choose another path",
        ),
        ({"journal": "a\ud800.jsonl"}, r"the journal: 'a\ud800.jsonl' contains a lone surrogate; choose another path"),
        (
            {"config": {"runs_dir": "a\ud800"}},
            r"'runs_dir' of RunConfig: 'a\ud800' contains a lone surrogate; choose another path",
        ),
    ],
)
def test_a_path_that_cannot_be_used_is_an_error_before_the_run(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as raised:
        Orchestrator(SIMULATED, **({"journal": "run.jsonl"} | arguments)).run("add 5 and 10")
    assert raised.value.message == message
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_working_directory_is_an_error_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="the working directory was deleted; change to one that exists"):
        Orchestrator(SIMULATED).run("add 5 and 10")


def test_a_path_may_begin_with_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Orchestrator(SIMULATED, journal="~/runs/one.jsonl").run("add 1 and 2")
    assert open_history("~/runs/one.jsonl").execution_id == "one"
    assert (tmp_path / "runs" / "one.jsonl").is_file()
    assert RunConfig.model_validate({"runs_dir": "~/runs"}).runs_dir == tmp_path / "runs"


@pytest.mark.parametrize("kind", ["dict", "text", "itself"])
def test_a_plan_that_was_changed_into_something_else_is_refused(kind: str) -> None:
    plan = Plan.model_validate(steps({"step_id": "s1", "description": "think", "agent": "llm"}))
    if kind == "itself":
        part = PlanStep(step_id="s1.1", description="think", agent="llm")
        plan.steps[0].subplan = Subplan(parent_step_id="s1", subplan_goal="think", substeps=[part])
        plan.steps[0].substeps.append(plan.steps[0])
    else:
        changed: list[Any] = plan.steps
        changed.append({"step_id": "s2", "description": "think", "agent": "llm"} if kind == "dict" else "think")
    with pytest.raises(UsageError, match="the plan is invalid"):
        Orchestrator(ScriptedModel(), journal=False).run("think", plan)


def test_no_requirements_may_be_none() -> None:
    assert assess(requirements=None) == assess(requirements=())


@pytest.mark.parametrize("output", [{1: "a", "b": 2}, {(1, 2): 3}])
def test_an_output_with_non_string_keys_is_validated(output: Any) -> None:
    plan = Plan(goal="g", steps=[THINK])
    report = SemanticValidator([]).validate_execution(goal="g", plan=plan, results={"s1": output}, answer="x")
    assert report.validation_id.startswith("validation-")


def test_the_journal_names_the_model_that_was_handed_over(tmp_path: Path) -> None:
    scripts: dict[str, Any] = {"answer": "2"}
    options = {"single_pass": True, "durability": "off"}
    Orchestrator(Named(**scripts), config=options, journal=tmp_path / "a.jsonl").run("add", steps(add(1, 1)))
    config = started(tmp_path / "a.jsonl")["config"]
    assert (config["model"], config["base_url"]) == ("openai:gpt-test", URL)
    chain = ModelChain([Named(**scripts), Named(**scripts)], judge=Named(**scripts))
    Orchestrator(chain, config=options, journal=tmp_path / "b.jsonl").run("add", steps(add(1, 1)))
    config = started(tmp_path / "b.jsonl")["config"]
    assert (config["model"], config["judge_model"]) == (["openai:gpt-test"] * 2, "openai:gpt-test")
    Orchestrator(ScriptedModel(**scripts), config=options, journal=tmp_path / "c.jsonl").run("add", steps(add(1, 1)))
    assert "model" not in started(tmp_path / "c.jsonl")["config"]


def test_a_fork_and_a_resume_find_the_model_of_a_run_that_this_user_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    path = tmp_path / "a.jsonl"
    with_ttl = {"single_pass": True, "ttl": 0, "durability": "off"}
    assert Orchestrator(Named(), config=with_ttl, journal=path).run("add", steps(add(1, 1))).status == "ttl_expired"
    Fork(path, 1, "openai:gpt-test", journal=False)
    fork = Fork(path, 1, journal=False)
    assert (fork._orchestrator.llm.model, fork._orchestrator.llm.base_url) == ("openai:gpt-test", URL)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-key")
    other = "anthropic:claude-test"
    for use in (Fork(path, 1, other, journal=False), Fork(path, 1, config={"model": other}, journal=False)):
        assert (use._orchestrator.llm.model, use._orchestrator.llm.base_url) == (other, None)
    shutil.rmtree(tmp_path / "xdg-state")
    advised: list[str] = []
    for go_on in (lambda: Fork(path, 1, journal=False), lambda: resume(path)):
        with pytest.raises(UsageError, match="use another model: openai:gpt-test; to send every request") as refused:
            go_on()
        advised.append(refused.value.message.partition("started here; ")[2])
    assert advised == [
        "pass a RunConfig as config",
        "pass an adapter as llm, and tools, or allow it with trusts_project=True",
    ]
    for go_on in (lambda: Fork(path, 1, Named.model, journal=False), lambda: resume(path, Named.model)):
        with pytest.raises(UsageError, match=f"asks to send every request to a model, with your key, to {URL}"):
            go_on()
    assert resume(path, ScriptedModel(answer="2"), options={"ttl": 5}).status == "completed"


@pytest.mark.parametrize(
    ("recorded", "llm", "tools", "config", "asked"),
    [
        ({"judge_model": "openai:gpt-judge"}, SIMULATED, None, None, "use another model as judge: openai:gpt-judge"),
        ({"bedrock": {"profile": "prod"}}, "bedrock:m", None, None, 'use Bedrock as {"profile": "prod"}'),
        ({"policy": {"allow": ["*"]}}, SIMULATED, None, None, "allow calls without asking: *"),
        ({"policy": {"allow": ["*"]}}, ScriptedModel(), [], None, "allow calls without asking: *"),
        ({"mcp_servers": {"x": {"command": "false"}}}, SIMULATED, None, {"tools": ["mcp"]}, "start the program"),
        ({}, SIMULATED, None, {"policy": {"allow": ["Bash"]}}, None),
        ({}, None, None, {"policy": {"allow": ["Bash"]}}, None),
        ({"bedrock": {"profile": "prod"}}, "bedrock:m", None, {"bedrock": {"profile": "own"}}, None),
    ],
)
def test_a_fork_of_anothers_run_takes_only_what_reaches_nothing(
    tmp_path: Path, recorded: dict[str, Any], llm: Any, tools: Any, config: Any, asked: str | None
) -> None:
    path = tmp_path / "a.jsonl"
    Orchestrator(SIMULATED, config={"single_pass": True}, journal=path).run("add", steps(add(1, 1)))
    first, _, rest = path.read_text().partition("\n")
    record = json.loads(first)
    path.write_text(json.dumps({**record, "config": {**record["config"], **recorded}}) + "\n" + rest)
    refused = pytest.raises(UsageError, match=re.escape(f"asks to {asked}")) if asked else contextlib.nullcontext()
    with refused:
        Fork(path, 1, llm, tools, config=config, journal=False)


def test_a_run_is_resumed_replayed_and_forked_by_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_RUNS_DIR", str(tmp_path))
    result = Orchestrator(SIMULATED, config={"durability": "off"}).run("calculate the sum of 5 and 10")
    assert resume(result.run_id).run_id == result.run_id
    assert replay(result.run_id).difference is None
    assert Fork(result.run_id, 1, journal=False).run().answer == result.answer
    with pytest.raises(UsageError, match="no run 'nope'"):
        resume("nope")


def test_a_command_forks_a_run_that_python_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.jsonl"
    Orchestrator(connect(SIMULATED), config={"durability": "off"}, journal=path).run("calculate the sum of 5 and 10")
    options = ["--pass", "1", "--headless", "--runs-dir", str(tmp_path / "runs")]
    assert main(["fork", str(path), *options]) == 0
    assert "The sum of 5 and 10 is 15." in capsys.readouterr().out


def test_a_resumed_run_fills_the_memory_that_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    options = {"single_pass": True, "durability": "off"}
    Orchestrator(ScriptedModel(answer="2"), config=options, journal=path).run("add", steps(add(1, 1), add(2, 2)))
    whole = path.read_text().splitlines(keepends=True)
    done = next(n for n, line in enumerate(whole) if '"type":"step"' in line and '"s2","status":"running"' in line)
    path.write_text("".join(whole[:done]))
    memory = InMemoryStore()
    assert resume(path, ScriptedModel(answer="2"), memory=memory).status == "completed"
    assert memory.search("") == [("s1", {"result": 2}), ("s2", {"result": 4})]
