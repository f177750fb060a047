from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from system2.agents import COMPLETION_INSTRUCTION, apply_transforms

REPORT = "report to orchestrator for re-delegation to"


def transformed(prompt: str) -> str:
    """Return a prompt after the rules, without the completion protocol that stands at its end."""
    text = apply_transforms(prompt)
    assert text.endswith(COMPLETION_INSTRUCTION)
    return text.removesuffix(COMPLETION_INSTRUCTION).removesuffix("\n")


COMPLETION = [
    ("Use attempt_completion.", "Use signal_completion."),
    ("Use `attempt_completion` with a summary", "Use `signal_completion` with a summary"),
    ("Completion (use **attempt_completion**):", "Completion (use **signal_completion**):"),
    ("ATTEMPT_COMPLETION once; then Attempt_Completion", "signal_completion once; then signal_completion"),
    (r"call attempt\_completion", "call signal_completion"),
    ("attempt_completion's result", "signal_completion's result"),
    ("call attempt_\n  completion", "call signal_completion"),
    ("the forge_tool_attempt_completion tool", "the forge_tool_signal_completion tool"),
]
DELEGATION = [
    ("delegate to executor", f"{REPORT} executor"),
    ("delegate to executor with the diagnosis.", f"{REPORT} executor with the diagnosis."),
    ("boomerang such fixes to executor.", f"{REPORT} executor."),
    ("boomerang fixes to executor", f"{REPORT} executor"),
    ("Delegate the fix to the executor agent.", "Report to orchestrator for re-delegation to executor."),
    ("DELEGATE TO EXECUTOR", "Report to orchestrator for re-delegation to executor"),
    ("delegate it back to `executor`", f"{REPORT} executor"),
    ("delegate\n   to\n   **executor**", f"{REPORT} executor"),
    ("> boomerang such fixes\n> to executor", f"> {REPORT} executor"),
    ("It boomerangs all failures to executor", "It reports to orchestrator for re-delegation to executor"),
    ("by delegating to the executor,", "by reporting to orchestrator for re-delegation to executor,"),
    ("delegate to code-reviewer", f"{REPORT} code-reviewer"),
    ("delegate to executor and executor's tests", f"{REPORT} executor and executor's tests"),
    ("delegate to the executor's queue", "delegate to the executor's queue"),
    ("You are not done: delegate to executor", f"You are not done: {REPORT} executor"),
]
NO_DELEGATION = [
    "Never delegate to executor.",
    "Do not delegate to executor directly",
    "You must not\ndelegate to executor",
    "You can't delegate to executor",
    "The orchestrator will delegate to executor.",
    "the orchestrator delegates such fixes to executor",
    "tasks delegated to executor need a test",
    "delegate to executor.submit(task)",
    "delegate to executor threads",
    "delegate to executors",
    "delegate to executor-service",
    "delegate(to=executor)",
    "delegate everything in the list above to executor",
    "The delegate pattern forwards calls to an object",
    "delegate\n\nto executor",
    "a delegation to executor happened",
]
PRODUCT = [
    ("Claude Code CLI loads it", "the orchestrator loads it"),
    ("loaded by Claude Code.", "loaded by the orchestrator."),
    ("claude code and CLAUDE CODE", "the orchestrator and the orchestrator"),
    ("run Claude code often", "run the orchestrator often"),
    ("Claude Code's settings", "the orchestrator's settings"),
    ("Claude Code CLI's and Claude Code’s", "the orchestrator's and the orchestrator’s"),
    ("started by Claude\nCode CLI", "started by the orchestrator"),
    ("started by Claude\n    Code", "started by the orchestrator"),
    ("> by Claude\n> Code\n> CLI itself", "> by the orchestrator itself"),
    ("**Claude Code** and `Claude Code CLI`", "**the orchestrator** and `the orchestrator`"),
    ("in the Claude Code CLI", "in the orchestrator"),
    ("a Claude Code agent", "an orchestrator agent"),
    ("Your Claude Code setup", "Your orchestrator setup"),
    ("ordinary Claude Code subagents", "ordinary orchestrator subagents"),
    ("Claude Code-specific parts", "orchestrator-specific parts"),
    ("Roo Code/Claude Code", "Roo Code/the orchestrator"),
    ("Read Claude Code's .claude/settings.json", "Read the orchestrator's .claude/settings.json"),
]
NO_PRODUCT = [
    "Claude codes well",
    "Claude Coder",
    "Claude's code",
    "Claude. Code is read.",
    "Claude\n\nCode",
    "give Claude code examples",
    "https://example.org/claude-code/hooks",
    "CLAUDE_CODE_HOME",
    "claude-code and claudecode",
    "ask Claude about code",
]
LOADING = [
    "CLAUDE.md (automatically loaded by Claude Code CLI at startup)",
    "CLAUDE.md (automatically loaded by Claude Code)",
    "CLAUDE.md (Automatically loaded by the Claude Code CLI on start-up)",
    "CLAUDE.md (auto-loaded by Claude Code CLI)",
    "CLAUDE.md (which is automatically loaded by Claude Code CLI at session startup)",
    "CLAUDE.md (automatically loaded\n   by Claude Code CLI\n   at startup)",
    "CLAUDE.md\n(automatically loaded by Claude Code CLI at startup)",
]
NO_LOADING = ["CLAUDE.md (loaded by hand)", "CLAUDE.md is read first", "README.md (automatically loaded by the CI)"]
HOOKS = [
    ("a\nRun scripts/claude-hooks/check.py first\nb", "a\nb"),
    ("a\n- `./scripts/claude-hooks/check.py`\n- b", "a\n- b"),
    ("- a\n- See scripts/claude-hooks/x.py\n  before each write,\n  always.\n- b", "- a\n- b"),
    ("1. a\n2. Each write is seen\n   by scripts/claude-hooks/x.py\n3. b", "1. a\n3. b"),
    ("- a\n  - scripts/claude-hooks/x.py\n  - b", "- a\n  - b"),
    ("- a\n  about a\n- scripts/claude-hooks/x.py\n\n  b", "- a\n  about a\n\n  b"),
    ("a\nSCRIPTS\\Claude-Hooks\\x.py\nb", "a\nb"),
    ("a\nThe scripts in scripts/claude-hooks run.\nb", "a\nb"),
    ("| a |\n| scripts/claude-hooks/x.py |\n| b |", "| a |\n| b |"),
    ("Claude\nscripts/claude-hooks/x.py\nCode", "the orchestrator"),
]
NO_HOOKS = [
    "Add hooks for evals.",
    "- add hooks for evals\n- use React hooks",
    "scripts/hooks/check.py and scripts/claude/hooks",
    "scripts/claude-hooks-guide/readme.md",
    "Claude hooks into the loop",
]
KEPT = [
    "Read .claude/settings.json for context.",
    "<thinking>\nFirst weigh the options.\n</thinking>",
    "Before you write:\n\n<thinking> what changes? </thinking>\n\n- then do it",
    "Attempt completion of all tasks, then complete the attempt.",
]


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [*COMPLETION, *DELEGATION, *PRODUCT, *[(text, "CLAUDE.md (project instructions)") for text in LOADING], *HOOKS],
)
def test_a_pattern_is_replaced(prompt: str, expected: str) -> None:
    assert transformed(prompt) == expected


@pytest.mark.parametrize("prompt", [*NO_LOADING, *NO_HOOKS, *NO_PRODUCT, *KEPT])
def test_prose_that_resembles_a_pattern_stays(prompt: str) -> None:
    assert transformed(prompt) == prompt


@pytest.mark.parametrize("prompt", NO_DELEGATION)
def test_prohibitions_on_delegation_stay(prompt: str) -> None:
    assert transformed(prompt) == prompt


def test_delegation_moves_to_the_orchestrator() -> None:
    assert transformed("Claude Code will delegate to executor") == "the orchestrator will delegate to executor"


def test_every_rule_fires_in_one_prompt() -> None:
    prompt = (
        "1) CLAUDE.md (automatically loaded by Claude Code CLI at startup)\r\n"
        "2) .claude/settings.json\r\n\r\n"
        "<thinking>Which hooks for evals?</thinking>\r\n"
        "- Run scripts/claude-hooks/x.py in Claude Code.\r\n"
        "- Boomerang such fixes to executor.\r\n"
        "- Claude Code's user waits for attempt_completion.\r\n"
    )
    assert transformed(prompt) == (
        "1) CLAUDE.md (project instructions)\n"
        "2) .claude/settings.json\n\n"
        "<thinking>Which hooks for evals?</thinking>\n"
        "- Report to orchestrator for re-delegation to executor.\n"
        "- the orchestrator's user waits for signal_completion."
    )


def test_the_protocol_is_appended_once() -> None:
    text = apply_transforms("Do it.\n\n")
    assert text == f"Do it.\n{COMPLETION_INSTRUCTION}"
    assert apply_transforms(text + "More.") == text + "More."
    own = apply_transforms("## Completion Protocol\n\nSay when you are done.")
    assert own.count("## Completion Protocol") == 2


FRAGMENTS = [
    "Claude", "Code", "CLI", "the", "a", "'s", "attempt_completion", "attempt_", "completion", "delegate", "delegating",
    "boomerang", "fixes", "to", "executor", "orchestrator", "will", "not", "never", "CLAUDE.md", ")", "at startup)",
    "(automatically loaded by", "scripts/claude-hooks/", "scripts/", "claude-hooks/", "x.py", "- ", "1. ", "\n", "\n\n",
    "\r\n", "\r", "  ", "> ", "`", "**", "-", ".", "## Completion Protocol", COMPLETION_INSTRUCTION,
]  # fmt: skip
PROMPTS = st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.sampled_from(["", " ", "\n"]))).map(
    lambda parts: "".join(word + space for word, space in parts)
)


@given(st.text() | PROMPTS)
def test_applying_the_rules_again_changes_nothing(prompt: str) -> None:
    once = apply_transforms(prompt)
    assert apply_transforms(once) == once
    assert COMPLETION_INSTRUCTION.strip() in once
    assert "attempt_completion" not in once.lower()
