"""Which calls happen: deny over ask over allow, by tool and argument, bound to the final arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core import ApprovalDecision, Orchestrator, RunConfig, ToolRegistry
from aeon_core.effects.replay_cursor import ReplayCursor
from aeon_core.errors import UsageError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools.base import CallVerdict, Tool
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation
from tests.fakes import ScriptedModel, steps


class Run(Tool):
    """Stands for a tool that does several things in one call: its command's parts are split at a semicolon."""

    name = "Run"
    description = "Runs commands."
    input_schema = {  # noqa: RUF012
        "type": "object",
        "properties": {"command": {"type": "string"}, "count": {"type": "integer"}},
    }
    output_schema = {"type": "object"}  # noqa: RUF012
    needs_approval = True

    def __init__(self, own: CallVerdict | None = None) -> None:
        self.own = own
        self.commands: list[str] = []

    def verdict(self, arguments: dict[str, Any]) -> CallVerdict | None:
        return self.own

    def parts(self, arguments: dict[str, Any]) -> list[dict[str, Any]] | None:
        command = arguments.get("command", "")
        return None if "$" in command else [{**arguments, "command": part.strip()} for part in command.split(";")]

    def invoke(self, command: str, count: int = 1) -> dict[str, Any]:
        self.commands.append(command)
        return {}


def answer(command: str, *, tool: Tool | None = None, **rules: Any) -> str:
    policy = Policy(PolicyRules.model_validate(rules))
    return policy.verdict(tool if tool is not None else Run(), {"command": command}).answer


def test_without_rules_a_tool_that_needs_approval_is_asked_about_and_any_other_allowed() -> None:
    harmless = Run()
    harmless.needs_approval = False
    assert answer("ls") == "ask"
    assert answer("ls", tool=harmless) == "allow"


@pytest.mark.parametrize(
    ("rules", "command", "expected"),
    [
        ({"allow": ["Run"]}, "anything $at all", "allow"),
        ({"allow": ["R*"]}, "ls", "allow"),
        ({"allow": ["Run(git status*)"]}, "git status --short", "allow"),
        ({"allow": ["Run(git status*)"]}, "git push", "ask"),
        ({"allow": ["Run(git status*)"]}, "git status; rm x", "ask"),
        ({"allow": ["Run(git *)", "Run(ls)"]}, "git status; ls", "allow"),
        ({"allow": ["Run(*)"]}, "echo $(rm x)", "ask"),
        ({"allow": ["Run(command=ls)"]}, "ls", "allow"),
        ({"allow": ["Run(A=b*)"]}, "A=b make", "allow"),
        ({"allow": ["Run(count=1)"]}, "ls", "ask"),
        ({"allow": ["Run"], "ask": ["Run(rm *)"]}, "ls; rm x", "ask"),
        ({"allow": ["Run"], "ask": ["Run"], "deny": ["Run(rm *)"]}, "ls; rm x", "deny"),
        ({"deny": ["Run(*rm*)"]}, "echo $(rm x)", "deny"),
        ({"deny": ["run"]}, "ls", "ask"),
        ({"deny": ["*"]}, "ls", "deny"),
        ({"allow": ["Run"], "deny": ["Run(rm *)"]}, "$unknown x", "ask"),
    ],
)
def test_the_rules_decide_by_tool_and_argument(rules: dict[str, Any], command: str, expected: str) -> None:
    assert answer(command, **rules) == expected


def test_a_number_is_matched_by_its_json_text() -> None:
    policy = Policy(PolicyRules(deny=("Run(count=1?)",)))
    assert policy.verdict(Run(), {"command": "x", "count": 12}).answer == "deny"
    assert policy.verdict(Run(), {"command": "x", "count": 1}).answer == "ask"


@pytest.mark.parametrize(("own", "expected"), [("deny", "deny"), ("ask", "ask"), ("allow", "allow")])
def test_no_rule_overrides_a_tools_own_demand(own: Any, expected: str) -> None:
    assert answer("ls", tool=Run(CallVerdict(own, "it says so")), allow=["Run"]) == expected


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"allow": ["Run"]}, "ask the step is wrong"),
        ({"allow": ["Run"], "ask": ["Run(rm *)"]}, "ask the rule ask: Run(rm *)"),
        ({"deny": ["Run(rm *)"]}, "deny the rule deny: Run(rm *)"),
    ],
)
def test_an_objection_of_a_review_only_stops_a_call_that_would_be_allowed(rules: dict[str, Any], reason: str) -> None:
    verdict = Policy(PolicyRules(**rules)).verdict(Run(), {"command": "rm x"}, objection="the step is wrong")
    assert f"{verdict.answer} {verdict.reason}" == reason


@pytest.mark.parametrize("rule", ["", "Run(", "Run)", "two words", "(x)"])
def test_a_rule_of_another_form_is_refused(rule: str) -> None:
    with pytest.raises(UsageError, match="policy"):
        RunConfig.model_validate({"policy": {"deny": [rule]}})


def test_a_likely_typo_in_a_rule_is_refused_but_an_absent_tool_is_not() -> None:
    with pytest.raises(UsageError, match="the policy rule 'Runn\\(x\\)' names no tool; did you mean 'Run'"):
        Policy(PolicyRules(deny=("Runn(x)",))).check(["Run", "Read"])
    Policy(PolicyRules(deny=("mcp__github__*", "Run", "R*"))).check(["Run", "Read"])


@given(st.lists(st.sampled_from(["Run", "Run(a*)", "Run(b)", "*", "Other"]), max_size=4), st.text("ab;$ ", max_size=6))
def test_deny_overrides_allow(denied: list[str], command: str) -> None:
    alone = answer(command, deny=denied)
    together = answer(command, deny=denied, allow=["Run", "*", "Run(*)"], ask=["Run(a*)"])
    assert (alone == "deny") == (together == "deny")


def test_the_rules_that_restrict_a_run_further_are_those_it_does_not_have() -> None:
    known = PolicyRules(allow=("a",), ask=("b",), deny=("c",))
    today = PolicyRules(allow=("a", "d"), ask=("b", "c"), deny=("b", "c", "e"))
    assert today.restrictions(known) == PolicyRules(ask=("c",), deny=("b", "e"))
    assert known.restrictions(today) == PolicyRules()


def test_files_denied_to_read_are_hidden_from_searches() -> None:
    policy = Policy(PolicyRules(deny=("Read(*.env)", "Read(file_path=secrets/*)", "Read", "Write(*)")))
    assert [policy.hides(path) for path in (".env", "a/b.env", "secrets/x", "docs/a.md")] == [True, True, True, False]


def run(tool: Tool, approver: Any = None, **rules: Any) -> tuple[Any, list[dict[str, Any]]]:
    registry = ToolRegistry()
    registry.register(tool)
    records: list[dict[str, Any]] = []
    config = RunConfig(single_pass=True, policy=PolicyRules.model_validate(rules), durability="off")
    plan = steps({"tool": "Run", "arguments": {"command": "ls"}})
    model = ScriptedModel(answer="done")
    orchestrator = Orchestrator(
        model, tools=registry, config=config, journal=False, on_record=records.append, approver=approver
    )
    return orchestrator.run("t", plan), records


def test_a_denied_call_fails_its_step_with_the_rule() -> None:
    tool = Run()
    result, records = run(tool, deny=["Run(l*)"], allow=["Run"])
    assert tool.commands == []
    assert result.steps[0].errors == ["the call of 'Run' is denied: the rule deny: Run(l*)"]
    assert not [record for record in records if record["type"] in ("tool", "approval")]


def test_a_call_that_a_rule_allowed_names_it_in_the_journal() -> None:
    tool = Run()
    result, records = run(tool, allow=["Run(ls)"])
    assert (result.status, tool.commands) == ("completed", ["ls"])
    noted = next(record for record in records if record["type"] == "policy")
    assert (noted["answer"], noted["reason"], noted["tool_name"]) == ("allow", "the rule allow: Run(ls)", "Run")


def test_a_replay_uses_recorded_decisions_not_current_rules() -> None:
    tool = Run()
    for rules in ({"allow": ["Run(ls)"]}, {"deny": ["Run"]}, {}):
        result, records = run(tool, **rules)
        tool.own = CallVerdict("ask", "the machine is another one")
        registry = ToolRegistry()
        registry.register(tool)
        plan = steps({"tool": "Run", "arguments": {"command": "ls"}})
        config = RunConfig.model_validate({"single_pass": True, "durability": "off", "policy": rules})
        again = Orchestrator(None, tools=registry, config=config, recorded=ReplayCursor(records)).run("t", plan)
        assert again.model_dump() == result.model_dump()
        tool.own = None


def test_an_unaskable_call_fails_naming_the_rule_that_would_allow_it() -> None:
    result, _ = run(Run())
    how = "allow it with --allow Run, or a rule under `policy:` in a config file"
    why = f"'Run' needs approval and there was no one to ask; {how}"
    assert result.steps[0].errors == [f"the call of 'Run' was not approved: {why}"]


@pytest.mark.parametrize(
    ("own", "rules", "reason"),
    [
        (None, {"allow": ["Run"], "ask": ["Run"]}, "the rule ask: Run"),
        ("it is destructive", {"allow": ["Run"]}, "it is destructive"),
        ("it is destructive", {}, "it is destructive"),
        ("it is destructive", {"ask": ["Run"]}, "it is destructive"),
    ],
    ids=["rule", "tool", "tool without a rule", "tool and rule"],
)
def test_an_unaskable_call_without_a_rule_names_where_to_answer(
    own: str | None, rules: dict[str, list[str]], reason: str
) -> None:
    result, _ = run(Run(CallVerdict("ask", own) if own is not None else None), **rules)
    how = "--allow cannot change that; use --approve tool, at a terminal or with --wait SECONDS"
    assert result.steps[0].errors == [
        f"the call of 'Run' was not approved: {reason} and there was no one to ask; {how}"
    ]


def test_the_question_shows_its_reason_and_edits_are_checked_again() -> None:
    tool, asked = Run(), []

    def approver(request: Any) -> ApprovalDecision:
        asked.append(request.subject)
        return ApprovalDecision(decision="edit", edited={"command": "rm x"})

    result, _ = run(tool, approver, deny=["Run(rm *)"])
    assert asked[0]["reason"] == "'Run' needs approval"
    assert (result.status, tool.commands) == ("not_converged", [])
    assert "the edited call of 'Run' is denied: the rule deny: Run(rm *)" in result.steps[0].errors[0]
    assert run(tool, approver)[0].status == "completed"
    assert tool.commands == ["rm x"]


@pytest.mark.parametrize(
    "command",
    [
        "git push origin", "A=b git push", "/usr/bin/git push", "git -C . push", "git --no-pager -c a=b push",
        "'git' pu\\sh", "env git push", "ls; git push", "for x in a; do git push; done", "echo $(git push)",
        "bash -c 'git push'",
    ],
    ids=range(11),
)  # fmt: skip
def test_a_deny_rule_matches_every_spelling_of_a_command(tmp_path: Path, command: str) -> None:
    tool = BashTool(tmp_path, isolation=Isolation("bubblewrap", network=False))
    policy = Policy(PolicyRules(allow=("Bash",), deny=("Bash(git push*)",)))
    assert policy.verdict(tool, {"command": command}).answer == "deny"
    assert policy.verdict(tool, {"command": "git status"}).answer == "allow"


@pytest.mark.parametrize("command", ["verb=push; git $verb", "git {push,}", "f() { git $1; }; f push"])
def test_a_command_that_could_be_a_denied_one_is_never_allowed(tmp_path: Path, command: str) -> None:
    tool = BashTool(tmp_path, isolation=Isolation("bubblewrap", network=False))
    policy = Policy(PolicyRules(allow=("Bash",), deny=("Bash(git push*)",)))
    assert policy.verdict(tool, {"command": command}).answer == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git status > main.py", "git status >| main.py", "git status &> main.py", "git status 2> main.py",
        "[[ 'a[$(rm x)]' -eq 0 ]] || git status", "git status $((x))", "git status ${x@P}", "git status ${a[x]}",
    ],
    ids=range(8),
)  # fmt: skip
def test_a_rule_that_allows_a_command_allows_nothing_else(tmp_path: Path, command: str) -> None:
    tool = BashTool(tmp_path, isolation=Isolation("bubblewrap", network=False))
    policy = Policy(PolicyRules(allow=("Bash(git status*)",)))
    assert policy.verdict(tool, {"command": command}).answer == "ask"
    assert policy.verdict(tool, {"command": "git status --short 2>/dev/null 2>&1 | git status"}).answer == "allow"
