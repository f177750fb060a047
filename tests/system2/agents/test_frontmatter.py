from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from system2.agents import (
    MAX_CHARACTERS,
    FrontmatterError,
    parse_frontmatter,
    split_frontmatter,
    tool_names,
)

NOTHING = dict.fromkeys(("name", "description", "tools", "disallowedTools"))
HEAD = "name: executor\ndescription: Does it.\n"


@pytest.mark.parametrize(
    ("text", "block", "body"),
    [
        ("---\nname: a\n---\nBody\n", "name: a\n", "Body\n"),
        ("---\r\nname: a\r\n---\r\nBody\r\n", "name: a\r\n", "Body\r\n"),
        ("--- \t\nname: a\n---  \nBody", "name: a\n", "Body"),
        ("\n\n---\nname: a\n---\nBody", "name: a\n", "Body"),
        ("---\nname: a\n---\nAbove\n\n---\n\nBelow\n", "name: a\n", "Above\n\n---\n\nBelow\n"),
        ("---\nname: a\n---", "name: a\n", ""),
        ("---\ndescription: |\n  one\n  ---\n  two\n---\nBody", "description: |\n  one\n  ---\n  two\n", "Body"),
        ("---\nname: a ---\nb: ----\n---\nBody", "name: a ---\nb: ----\n", "Body"),
    ],
)
def test_a_frontmatter_ends_at_the_first_line_of_three_dashes(text: str, block: str, body: str) -> None:
    assert split_frontmatter(text) == (block, body)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "does not start with frontmatter"),
        ("# Agent\n---\nname: a\n---\n", "does not start with frontmatter"),
        ("---name: a\n---\n", "does not start with frontmatter"),
        ("---\nname: a\nBody ---\n", "without an end"),
        (f"---\nname: {'a' * MAX_CHARACTERS}\n---\n", "more than 64,000 characters"),
    ],
)
def test_a_missing_frontmatter_is_reported(text: str, reason: str) -> None:
    with pytest.raises(FrontmatterError, match=reason):
        split_frontmatter(text)


@pytest.mark.parametrize(
    ("lines", "tools"),
    [
        ("tools: Read, Grep,Bash", ["Read", "Grep", "Bash"]),
        ("tools: Read Grep  Bash", ["Read", "Grep", "Bash"]),
        ("tools: Read", ["Read"]),
        ("tools: [Read, 'Grep', \"Bash\"]", ["Read", "Grep", "Bash"]),
        ("tools:\n  - Read\n  - Grep", ["Read", "Grep"]),
        ("tools:\n- Read\n- Grep", ["Read", "Grep"]),
        ("tools:\n  - Read, Grep\n  - Bash", ["Read", "Grep", "Bash"]),
        ("tools: |\n  Read\n  Grep", ["Read", "Grep"]),
        ("tools: >-\n  Read,\n  Grep", ["Read", "Grep"]),
        ('tools: "Read, Grep"', ["Read", "Grep"]),
        ('tools: \'["Read", "Grep"]\'', ["Read", "Grep"]),
        ("tools: Agent(a,b), Read", ["Agent(a,b)", "Read"]),
        ("tools: Agent (a, b), Read", ["Agent(a, b)", "Read"]),
        ("tools: [Agent(a, b), Read]", ["Agent(a,b)", "Read"]),
        ("tools:\n  - Agent(a,b)\n  - Bash(git diff:*)", ["Agent(a,b)", "Bash(git diff:*)"]),
        ("tools: Bash(echo $(date), x), Read", ["Bash(echo $(date), x)", "Read"]),
        ("tools: Read, Read, Grep,", ["Read", "Grep"]),
        ("tools: Agent(a, Read", ["Agent(a, Read"]),
        ("tools: '*'", ["*"]),
        ("tools: []", []),
        ('tools: ""', []),
        ("tools: # of the trade\n  - Read # the first", ["Read"]),
    ],
)
def test_tools_are_read_in_each_form_that_they_are_written_in(lines: str, tools: list[str]) -> None:
    assert parse_frontmatter(HEAD + lines)["tools"] == tools


@pytest.mark.parametrize(
    "lines",
    [
        "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: 'a | b'",
        "model: inherit\ncolor: red\nskills: [a, b]\nmaxTurns: 3",
        "unknown: !!python/object/apply:os.system ['true']",
        "c: {<<: [1]}",
        "? [a, b]\n: complex",
        "hooks: {a: 1, a: 2}",
        "tools: null",
        "tools:",
        "# a comment",
    ],
)
def test_other_keys_are_ignored(lines: str) -> None:
    assert parse_frontmatter(HEAD + lines) == NOTHING | {"name": "executor", "description": "Does it."}


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("name: 2024\ndescription: on", {"name": "2024", "description": "on"}),
        ("name: évaluateur\ndescription: 評価する", {"name": "évaluateur", "description": "評価する"}),
        ("'name': a\n\"description\": >-\n  two\n  lines", {"name": "a", "description": "two lines"}),
        ("{name: a, description: b}", {"name": "a", "description": "b"}),
        ("name: ~\ndescription: ''", {}),
        ("name: a\r\ndescription: b\r\ntools:\r\n  - Read\r\n", {"name": "a", "description": "b", "tools": ["Read"]}),
        ("disallowedTools: Bash, Edit", {"disallowedTools": ["Bash", "Edit"]}),
    ],
)
def test_strings_are_read_verbatim(block: str, fields: dict[str, Any]) -> None:
    assert parse_frontmatter(block) == NOTHING | fields


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("", "without `key: value` lines"),
        ("just text", "without `key: value` lines"),
        ("- name: a", "without `key: value` lines"),
        ("name: [unclosed", "not valid YAML .*expected ',' or"),
        ("name: a\ndescription: Use it: always", r"not valid YAML \(line 3\): .*quote the text"),
        ("name: a\n\tdescription: b", r"not valid YAML \(line 3\)"),
        ("name: a\nother: [", "not valid YAML"),
        ("name: *nowhere", r"\(line 2\): anchors and aliases are not supported; write the value out"),
        ("name: a\x00", "not valid YAML"),
        ("name: {a: b}", "'name' that is not text"),
        ("name: a\nhooks: [&a b]", r"\(line 3\): anchors and aliases are not supported"),
        ("name: !!python/name:os.system x", "'name' that is not text"),
        ("description: [a]", "'description' that is not text"),
        ("tools: {Read: true}", "'tools' that are not names"),
        ("tools: [[Read]]", "'tools' that are not names"),
        ("tools: !!python/tuple [Read]", "'tools' that are not names"),
        ("tools: [Read, null]", "'tools' that are not names"),
        ("tools: Read\ntools: Bash", "'tools' twice"),
        ("name: a\n'name': b", "'name' twice"),
        ("name: \ud800", "lone surrogate"),
    ],
)
def test_unusable_frontmatter_is_refused_with_a_reason(block: str, reason: str) -> None:
    with pytest.raises(FrontmatterError, match=reason):
        parse_frontmatter(block)


@pytest.mark.parametrize(
    "block",
    [
        "[" * 30_000,
        '["]",' * 12_000,
        "- " * 30_000,
        "a:\r" + "- " * 30_000,
        "a:\x85" + "- " * 30_000,
        "--- " + "- " * 30_000,
        "? - " * 9_000,
        "".join(" " * level + "a:\n" for level in range(340)),
        "".join(" " * level + "-\r" for level in range(340)),
    ],
    ids=[
        "brackets",
        "closed in quotes",
        "dashes",
        "after CR",
        "after NEL",
        "a document",
        "keys",
        "indents",
        "indents after CR",
    ],
)
def test_deep_nesting_does_not_crash_the_process(block: str) -> None:
    with pytest.raises(FrontmatterError, match=r"nested deeper than 50 levels|not allowed in this context"):
        parse_frontmatter(block)


def test_without_the_parser_in_c_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = parse_frontmatter(f"{HEAD}tools: [Agent(a, b), Read]")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert parse_frontmatter(f"{HEAD}tools: [Agent(a, b), Read]") == fields
    with pytest.raises(FrontmatterError, match=r"line 2.*quote"):
        parse_frontmatter("name: a: b")


@given(
    st.text() | st.lists(st.sampled_from([*"-:[]{}&*!?#|>'\",\n ", "name", "tools", "  ", "<<", "---"])).map("".join)
)
def test_any_block_gives_fields_or_an_error(block: str) -> None:
    try:
        fields = parse_frontmatter(block)
    except FrontmatterError:
        return
    assert fields["name"] is None or fields["name"].strip()


@given(st.text(max_size=200))
def test_any_tools_text_gives_distinct_nonempty_names(text: str) -> None:
    names = tool_names(text)
    assert "" not in names
    assert len(set(names)) == len(names)
