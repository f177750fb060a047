"""Recorded runs as tests, in sessions of pytest's own: journals, the fixture `aeon_run`, plan files."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

import pytest_aeon.recorder  # noqa: F401  # a session inside of one drops what it imports itself
from aeon_core import Orchestrator, RunConfig
from tests.fakes import ScriptedModel, add, steps

pytest_plugins = ["pytester"]

A_TEST = """
from aeon_core import InMemoryStore, LLMAdapter, LLMResponse

CALLS = []

class Model(LLMAdapter):
    model = "scripted:test"

    def complete(self, request):
        CALLS.append(request.purpose)
        return LLMResponse(text="forty-two")

def measure(length: int) -> int:
    '''Measure something.'''
    CALLS.append("measure")
    return length * 2

PLAN = {"goal": "measure", "steps": [
    {"step_id": "s1", "description": "measure it", "tool": "measure", "arguments": {"length": 21}}]}

def test_measure(aeon_run):
    memory = InMemoryStore()
    result = aeon_run("TASK", Model(), [measure], memory, {"single_pass": True, "ttl": 9}, plan=PLAN)
    assert (result.status, result.answer) == ("completed", "forty-two")
    assert memory.read("s1") == {"result": 42}
    assert aeon_run("another", Model(), config={"single_pass": True}, plan=PLAN_2).answer == "forty-two"
    print(f"CALLS {CALLS}")

PLAN_2 = {"goal": "think", "steps": [{"step_id": "s1", "description": "think", "agent": "llm"}]}
"""
INI = "[pytest]\naddopts = -p no:asyncio -p no:xdist -p no:textual-snapshot\n"
RECORDED = "tests/journals/test_it/test_measure.jsonl"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    # A test file that changes within a second without changing its size would be run as it was.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    pytester.mkdir("tests")
    pytester.makeini(INI)
    return write(pytester)


def write(pytester: pytest.Pytester, **changes: str) -> pytest.Pytester:
    text = A_TEST.replace("TASK", "measure it")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (pytester.path / "tests" / "test_it.py").write_text(text)
    return pytester


def test_a_run_is_recorded_once_and_then_replayed_anywhere_without_model_and_tools(
    project: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = project.runpytest("-s")
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines([f"*there is no recording {RECORDED}; record it with `pytest --aeon-record`"])
    recorded = project.runpytest("-s", "--aeon-record", "tests/test_it.py")
    recorded.assert_outcomes(passed=1)
    recorded.stdout.fnmatch_lines(["*CALLS *'measure', 'answer'*"])
    before = (project.path / RECORDED).read_bytes()
    again = project.runpytest("-s", "--aeon-record", "tests/test_it.py")
    again.stdout.fnmatch_lines(["*CALLS []*"])
    assert (project.path / RECORDED).read_bytes() == before
    assert str(project.path) not in before.decode()

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(project.path, elsewhere, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(project.path / "tests")
    monkeypatch.chdir(elsewhere)
    replayed = project.runpytest("-s", "--rootdir", str(elsewhere), str(elsewhere))
    replayed.assert_outcomes(passed=3)  # the test, and each of its two recordings
    replayed.stdout.fnmatch_lines(["*CALLS []*"])


def test_a_changed_request_fails_with_the_first_difference_until_it_is_recorded(project: pytest.Pytester) -> None:
    project.runpytest("--aeon-record", "tests/test_it.py").assert_outcomes(passed=1)
    for change, lines in (
        ({"measure it": "weigh it"}, ["*record 0 differs: run_started · task", '*"measure it"', '*"weigh it"']),
        ({'"ttl": 9': '"ttl": 8'}, ["*run_started · config.ttl", "*recorded  9", "*now       8"]),
        ({'"ttl": 9': '"ttl": 9, "budget": 1'}, ["*run_started · config.budget"]),
        ({"scripted:test": "scripted:other"}, ["*run_started · model", '*"scripted:test"', '*"scripted:other"']),
        (
            {"Measure something.": "Weigh it. " * 20},
            ["*run_started · tools[[]0].description", "E*- Measure something."],
        ),
        ({"memory = InMemoryStore()": "memory = InMemoryStore(); memory.write('k', 1)"}, ["*run_started · memory.k"]),
        ({'"length": 21}': '"length": 22}'}, ["*run_started · plan.steps[[]0].arguments.length"]),
    ):
        failed = write(project, **change).runpytest("tests/test_it.py")
        failed.assert_outcomes(failed=1)
        failed.stdout.fnmatch_lines(
            [
                "*> *aeon_run(*",
                f"*the run is not the one in {RECORDED}*",
                *lines,
                "*record it with `pytest --aeon-record`",
            ]
        )
    before = (project.path / RECORDED).read_bytes()
    failing = write(project, **{'LLMResponse(text="forty-two")': "1 / 0"}).runpytest(
        "--aeon-record", "tests/test_it.py"
    )
    failing.assert_outcomes(passed=1)  # nothing has changed: no model is asked
    failing = write(project, **{'LLMResponse(text="forty-two")': "1 / 0", '"ttl": 9': '"ttl": 8'})
    failed = failing.runpytest("--aeon-record", "tests/test_it.py")
    failed.stdout.fnmatch_lines(["*the run failed, so it is not recorded: *"])
    assert (project.path / RECORDED).read_bytes() == before
    write(project, **{'"ttl": 9': '"ttl": 8'}).runpytest("--aeon-record", "tests/test_it.py").assert_outcomes(passed=1)
    project.runpytest("tests").assert_outcomes(passed=3)


def test_a_recording_is_found_in_a_group_of_xdist(project: pytest.Pytester) -> None:
    project.runpytest("--aeon-record", "tests/test_it.py").assert_outcomes(passed=1)
    project.makeconftest("""
        def pytest_collection_modifyitems(items):
            for item in items:
                item._nodeid = f"{item.nodeid}@group"  # as xdist does with --dist loadgroup
    """)
    project.runpytest("tests/test_it.py").assert_outcomes(passed=1)


def test_a_recording_broken_by_a_merge_fails_in_one_line(
    project: pytest.Pytester,
) -> None:
    project.runpytest("--aeon-record", "tests/test_it.py").assert_outcomes(passed=1)
    recording = project.path / RECORDED
    recording.write_text(recording.read_text().replace("\n", "\n<<<<<<< HEAD\n", 1))
    broken = project.runpytest("tests/test_it.py")
    broken.stdout.fnmatch_lines(["*/test_measure.jsonl' is damaged: line 2: *; record it again with `pytest --aeon-*"])
    broken.stdout.no_fnmatch_line("*UsageError*")
    project.runpytest("--aeon-record", "tests/test_it.py").assert_outcomes(passed=1)


def test_a_wrong_argument_is_named_even_if_there_is_no_recording(project: pytest.Pytester) -> None:
    write(project, **{"Model(), [measure]": "5, [measure]"})
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*UsageError: int is not a model; write connect('PROVIDER:NAME')*"])


def test_a_journal_in_the_folder_is_a_test(project: pytest.Pytester) -> None:
    (project.path / "tests" / "test_it.py").unlink()
    project.makeini(INI + "aeon_journals = kept\n")
    kept = project.path / "kept"
    config = RunConfig(single_pass=True, durability="off")
    Orchestrator(ScriptedModel(answer="2"), config=config, journal=kept / "a.jsonl").run("add", steps(add(1, 1)))
    text = (kept / "a.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    changed = next(line for line in lines if line["type"] == "phase" and line["phase"] == "execute")
    other = text.replace('"phase":"execute","state":"started"', '"phase":"refine","state":"started"')
    (kept / "b.jsonl").write_text(other)
    (kept / "c.jsonl").write_text("no journal\n")
    (project.path / "elsewhere.jsonl").write_text("no journal\n")
    done = project.runpytest("-v")
    done.assert_outcomes(passed=1, failed=2)
    done.stdout.fnmatch_lines(
        [
            "kept/a.jsonl::replay PASSED*",
            "*the run is not the one in kept/b.jsonl",
            f"record {changed['seq']} differs: *",
        ]
    )
    assert "Traceback" not in done.stdout.str()


def test_plan_files_are_linted_on_request(project: pytest.Pytester) -> None:
    project.makeini(INI + "aeon_tools = measuring:measure\n")
    project.makepyfile(measuring="def measure(length: int) -> int:\n    '''Measure.'''\n    return length\n")
    (project.path / "plans").mkdir()
    step = {"tool": "measure", "arguments": {"length": 1}}
    (project.path / "plans" / "good.json").write_text(json.dumps(steps(step)))
    (project.path / "bad-plan.yml").write_text(json.dumps(steps({**step, "tool": "mesure"})))
    (project.path / "other.json").write_text("{}")
    project.runpytest("plans", ".", "--ignore=tests").assert_outcomes()
    done = project.runpytest("-v", "--aeon-lint", "--ignore=tests")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["bad-plan.yml::lint FAILED*", "plans/good.json::lint PASSED*", "high hallucination *mesure*"]
    )


def test_a_session_that_does_not_use_the_plugin_loads_nothing_of_aeon(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_what_is_loaded(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("pytest_aeon")
            heavy = ("aeon_core", "pydantic", "yaml", "pytest_aeon.recorder")
            assert [name for name in heavy if name in sys.modules] == []
        """
    )
    # A plugin of LangGraph, which the benchmarks install, loads pydantic.
    pytester.runpytest_subprocess("-p", "no:langsmith_plugin").assert_outcomes(passed=1)
