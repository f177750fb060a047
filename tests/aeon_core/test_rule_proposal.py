"""The rule that is proposed for a call allows what a person reads in it, and nothing else."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core import tool
from aeon_core.policy import MAX_RULE, Policy, PolicyRules, propose_rule, rule_problem
from aeon_core.tools.base import Tool
from aeon_core.tools.files import EditTool
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.shell.bash import BashTool
from aeon_core.tools.shell.isolation import Isolation
from aeon_core.tools.shell.programs import ONLY_READ
from tests.sampling import examples

HELD = Isolation("bubblewrap", network=False)
BASH = BashTool(Path("/"), isolation=HELD)


def proposal(tool: Tool, objection: str | None = None, rules: Any = None, **arguments: Any) -> dict[str, Any]:
    policy = Policy(PolicyRules.model_validate(rules or {}))
    return propose_rule(policy, tool, arguments, substitutes=None, objection=objection)


def allows(rule: str, command: str) -> bool:
    return Policy(PolicyRules(allow=(rule,))).verdict(BASH, {"command": command}).answer == "allow"


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git status --short", "Bash(git status *)"),
        ("git status", "Bash(git status *)"),
        ("ls -la src 2>/dev/null", "Bash(ls *)"),
        ("cat 'a b'", "Bash(cat *)"),
        ("rm build/x", "Bash(rm build/x)"),
        ("git push", "Bash(git push)"),
        ("git -C sub status", "Bash(git -C sub status)"),
        ("/bin/ls -l", "Bash(/bin/ls -l)"),
        ("./ls", "Bash(./ls)"),
        ("python tool.py 'a*'", "Bash(python tool.py 'a[*]')"),
        ("make test", "Bash(make test)"),
    ],
)
def test_read_only_commands_are_allowed_with_any_arguments(command: str, rule: str) -> None:
    found = proposal(BASH, command=command)
    assert found["rule"] == rule
    assert allows(rule, command)
    assert rule_problem(rule, "Bash", found["about"], ["command"]) is None


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls; rm x", "several things"),
        ("ls | wc -l", "several things"),
        ("ls > out", "several things"),
        ("cat < in", "redirects"),
        ("cat <<E\nx\nE", "redirects"),
        ("FOO=1 ls", "sets a variable"),
        ("for f in a b; do cat x; done", "compound"),
        ("(ls)", "compound"),
        ("rm $X", "only known when the line runs"),
        ("touch $X", "may change"),
        ("eval ls", "blocklist"),
        ("git push --force", "blocklist"),
        ("sort -o x y", "is unknown"),
        ("touch " + "x" * MAX_RULE, "too long"),
        ("touch 'a\nb'", "a line break"),
        ("ls 'x", "without its end"),
    ],
)
def test_no_rule_is_proposed_for_opaque_commands(command: str, why: str) -> None:
    found = proposal(BASH, command=command)
    assert set(found) == {"why_not"}
    assert why in found["why_not"]


def test_no_rule_is_proposed_if_none_would_allow_the_call(tmp_path: Path) -> None:
    assert "objects" in proposal(BASH, command="ls", objection="the review of the plan objects: no")["why_not"]
    assert "ask: Bash" in proposal(BASH, command="ls", rules={"ask": ["Bash(ls*)"]})["why_not"]
    open_one = BashTool(tmp_path, isolation=Isolation("none", network=True))
    assert "no isolation" in proposal(open_one, command="ls")["why_not"]


def test_a_file_is_allowed_with_its_folder_except_hidden_and_protected(tmp_path: Path) -> None:
    edit = EditTool(Sandbox(tmp_path))
    change = {"old_string": "a", "new_string": "b"}
    found = {
        name: proposal(edit, file_path=name, **change)
        for name in ("src/app/main.py", "notes.md", "sr[c]/x", ".github/x.yml", ".git/hooks/pre-commit", "../x")
    }
    rules = [each.get("rule") for each in found.values()]
    assert rules == ["Edit(src/app/**)", "Edit(notes.md)", "Edit(sr[[]c]/**)", "Edit(.github/x.yml)", None, None]
    assert "every change to it needs approval" in found[".git/hooks/pre-commit"]["why_not"]
    assert "outside project root" in found["../x"]["why_not"]
    assert found["src/app/main.py"]["about"] == "src/app/main.py"


def test_another_tool_is_allowed_with_its_first_text_or_entirely() -> None:
    @tool(effect="unsafe", needs_approval=True)
    def deploy(target: str, times: int = 1) -> str:
        """Deploys."""
        return f"{target}{times}"

    @tool(effect="unsafe", needs_approval=True)
    def ring(times: int = 1) -> int:
        """Rings."""
        return times

    assert proposal(deploy, target="staging*") == {"rule": "deploy(staging[*])", "about": "staging*"}
    assert proposal(deploy, target="times=2")["rule"] == "deploy(target=times=2)"
    assert proposal(ring, times=2) == {"rule": "ring"}


WORDS = st.sampled_from(
    ["-l", "src", "status", "push", "x.py", "a*", "--force", "-rf", "of=/dev/sda", "statusx", "a b"]
)
PROGRAMS = st.sampled_from(
    ["git", "ls", "lsof", "cat", "rm", "python", "make", "./ls", "curl", "gitk", "env", "find", "sudo", "echo", "catx"]
)
COMMANDS = st.builds(lambda program, words: [program, *words], PROGRAMS, st.lists(WORDS, max_size=3))


@settings(max_examples=examples(400), deadline=None)
@given(COMMANDS, COMMANDS, st.sampled_from(["{}; {}", "{} | {}", "{} && {}", "{} $({})", "{} &\n{}"]))
@example(["ls", "src"], ["lsof"], "{}; {}")
@example(["git", "status"], ["git", "push"], "{} && {}")
@example(["git", "status"], ["git", "statusx"], "{} | {}")
def test_a_proposed_rule_allows_no_other_program_or_writing_command(
    one: Sequence[str], other: Sequence[str], joined: str
) -> None:
    first, second = shlex.join(one), shlex.join(other)
    found = proposal(BASH, command=first)
    if "rule" not in found:
        return
    rule = found["rule"]
    assert allows(rule, first)
    assert not allows(rule, f"{first} > out")
    assert not allows(rule, f"X=1 {first}")
    reads = one[0] in ONLY_READ or tuple(one[:2]) == ("git", "status")
    known = one == other or (reads and one[0] == other[0] and (one[0] != "git" or other[1:2] == ["status"]))
    if not known:
        assert not allows(rule, second)
        assert not allows(rule, joined.format(first, second))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("Bash(git status *)", None),
        ("Bash", None),
        ("Bash(git *)", None),
        ("Bash(command=git*)", None),
        ("Bash(timeout=5)", None),
        ("Edit(src/**)", "must begin with Bash"),
        ("*", "must begin with Bash"),
        ("Bash(npm *)", "does not fit this call: git status --short"),
        ("Bash(git status", "form TOOL"),
        ("Bash(git status\n*)", "form TOOL"),
        ("", "form TOOL"),
        ("Bash(" + "x" * MAX_RULE + ")", "too long"),
    ],
)
def test_a_rule_that_a_person_typed_is_checked_against_the_call(rule: str, words: str | None) -> None:
    problem = rule_problem(rule, "Bash", "git status --short", ["command", "timeout"])
    assert (problem is None) if words is None else (problem is not None and words in problem)
    assert problem is None or "\n" not in problem
