from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.config.editing import change_file, changed, with_item, without_item
from aeon_core.errors import UsageError
from aeon_core.yaml_file import parse_yaml

COMMENTED = """\
# my settings
ttl: 20   # cycles

theme: aeon-dark  # at night
keys:
  # big fingers
  run.zoom: Z
  browser.delete: "ctrl+d,delete"
tools: [files, shell]
"""
COMMENTS = st.sampled_from(["", "# a comment\n", "\n", "  # indented: [\n", "#\n\n"])
ENTRIES = st.sampled_from(
    [
        "ttl: 3\n",
        "tools: [files]  # one\n",
        "tools:\n- files\n",
        'criteria: "a # b"\n',
        "model:\n  - a:b\n  - c:d\n",
        "otel: |\n  x\n",
    ]
)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)


@st.composite
def files(draw: st.DrawFn) -> str:
    entries = draw(st.lists(ENTRIES, max_size=4, unique_by=lambda entry: entry.partition(":")[0]))
    text = "".join(draw(COMMENTS) + entry for entry in entries) + draw(COMMENTS)
    text = text if draw(st.booleans()) else text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


@given(files(), NAMES, NAMES)
@example("ttl: 3", "aeon-light", "on")
def test_a_theme_is_added_and_changed_and_all_other_bytes_stay(text: str, first: str, second: str) -> None:
    with_one = changed(text, ("theme",), first)
    lines = with_one.splitlines(keepends=True)
    rest = [line for line in lines if not line.startswith("theme:")]
    assert len(lines) - len(rest) == 1
    assert "".join(rest).rstrip("\r\n") == text.rstrip("\r\n")
    with_other = changed(with_one, ("theme",), second)
    assert yaml.safe_load(with_other) == {**(yaml.safe_load(text) or {}), "theme": second}
    assert [line for line in with_other.splitlines(keepends=True) if not line.startswith("theme:")] == rest


@given(files(), st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=4, unique_by=lambda pair: pair[0]))
def test_keys_are_added_and_removed_again(text: str, pairs: list[tuple[str, str]]) -> None:
    made = text
    for action, key in pairs:
        made = changed(made, ("keys", action), key)
    assert yaml.safe_load(made) == {**(yaml.safe_load(text) or {}), "keys": dict(pairs)}
    for action, _ in pairs:
        made = changed(made, ("keys", action), None)
    assert made.rstrip("\r\n") == text.rstrip("\r\n")


def test_only_the_value_of_the_line_changes() -> None:
    assert changed(COMMENTED, ("theme",), "aeon-light") == COMMENTED.replace("aeon-dark", "aeon-light")
    assert changed(COMMENTED, ("keys", "run.zoom"), "ctrl+z") == COMMENTED.replace(" Z\n", " ctrl+z\n")
    assert changed(COMMENTED, ("keys", "run.zoom"), None) == COMMENTED.replace("  run.zoom: Z\n", "")
    added = COMMENTED.replace("  run.zoom", "  run.back: b\n  run.zoom")
    assert changed(COMMENTED, ("keys", "run.back"), "b") == added


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "theme: x\n"),
        ("{}", "{theme: x}"),
        ("{ttl: 3}", "{ttl: 3, theme: x}"),
        ("theme:\nttl: 3\n", "theme: x\nttl: 3\n"),
        ("---\nttl: 3\n...\n", "---\ntheme: x\nttl: 3\n...\n"),
        ("  ttl: 3\n", "  theme: x\n  ttl: 3\n"),
        ("theme: 'x'\n", "theme: 'x'\n"),
    ],
)
def test_other_forms_of_yaml(text: str, after: str) -> None:
    assert changed(text, ("theme",), "x") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("keys: {}\n", 'keys: {a.b: "1"}\n'),
        ("keys:\n", 'keys: {a.b: "1"}\n'),
        ("keys: {c: d}\n", 'keys: {c: d, a.b: "1"}\n'),
    ],
)
def test_keys_in_other_forms(text: str, after: str) -> None:
    assert changed(text, ("keys", "a.b"), "1") == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("keys:\n  a.b: x\n  # one\n# of ttl\nttl: 3\n", "  # one\n# of ttl\nttl: 3\n"),
        ("# head\nkeys:\n  # one\n  a.b: x  # its own\n# tail\n", "# head\n  # one\n# tail\n"),
        ("keys:\n  a.b: |\n    x\n\n# tail\n", "\n# tail\n"),
        ("keys:\n  a.b: x # its own\n\n\nttl: 3", "\n\nttl: 3"),
        ("# head\rkeys: {a.b: x}\r# tail\r", "# head\r# tail\r"),
        ("keys:\r\n  a.b: x\r\n# tail\r\n", "# tail\r\n"),
        ("{\n  # one\n  keys: {a.b: x},\n  # two\n  ttl: 3\n}\n", "{\n  # one\n  # two\n  ttl: 3\n}\n"),
        ("keys: {a.b: x, c.d: z}  # both\n", "keys: {c.d: z}  # both\n"),
    ],
)
def test_removing_a_key_removes_only_its_own_comment(text: str, after: str) -> None:
    assert changed(text, ("keys", "a.b"), None) == after


def test_replacing_a_block_keeps_what_follows() -> None:
    assert changed("theme: |\n  x\n# tail\nttl: 3\n", ("theme",), "z") == "theme: z\n# tail\nttl: 3\n"
    assert changed("theme:\n  - x\n# tail\nttl: 3\n", ("theme",), "z") == "theme: z\n# tail\nttl: 3\n"


@pytest.mark.parametrize("text", ["ttl: [\n", "- a\n", "words", "a: 1\n---\nb: 2\n"])
def test_a_file_that_is_not_a_configuration_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.yml"
    file.write_text(text)
    with pytest.raises(UsageError, match="was not changed"):
        change_file(file, ("theme",), "x")
    assert file.read_text() == text


def test_invalid_utf8_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_bytes(b"\xff\xfet\x00")
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        change_file(file, ("theme",), "x")
    assert file.read_bytes() == b"\xff\xfet\x00"


def test_file_mode_and_link_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "aeon.yml"
    real.parent.mkdir()
    real.write_text("ttl: 3\n")
    real.chmod(0o640)
    link = tmp_path / "config.yml"
    link.symlink_to(real)
    change_file(link, ("theme",), "x")
    assert link.is_symlink()
    assert real.read_text() == "ttl: 3\ntheme: x\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert [each.name for each in real.parent.iterdir()] == ["aeon.yml"]


def test_a_new_file_and_its_folder_are_private(tmp_path: Path) -> None:
    file = tmp_path / "aeon" / "config.yml"
    change_file(file, ("theme",), "x")
    assert file.read_text() == "theme: x\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_folder_in_its_place_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        change_file(tmp_path, ("theme",), "x")


def test_a_device_or_a_pipe_is_left_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "config.yml"
    link.symlink_to(pipe)
    with pytest.raises(UsageError, match="not a regular file and was not changed"):
        change_file(link, ("theme",), "x")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text("ttl: 3\n")
    file.chmod(0o444)
    with pytest.raises(UsageError, match="is read-only and was not changed"):
        change_file(file, ("theme",), "x")
    assert file.read_text() == "ttl: 3\n"


def test_a_loop_of_links_is_reported(tmp_path: Path) -> None:
    link = tmp_path / "config.yml"
    link.symlink_to(link)
    with pytest.raises(UsageError, match="cannot read"):
        change_file(link, ("theme",), "x")


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    actions = [f"a.{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda action: change_file(file, ("keys", action), "x"), actions))
    assert yaml.safe_load(file.read_text()) == {"keys": dict.fromkeys(actions, "x")}


RULE = "Bash(git status *)"
SAID = f'"{RULE}"'
ALLOW = ("policy", "allow")


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", f"policy:\n  allow: [{SAID}]\n"),
        ("# mine\nttl: 3", f"# mine\nttl: 3\npolicy:\n  allow: [{SAID}]\n"),
        ("policy:\n", f"policy: {{allow: [{SAID}]}}\n"),
        ("policy:\n  # no\n  deny: [x]\n", f"policy:\n  # no\n  allow: [{SAID}]\n  deny: [x]\n"),
        ("policy:\n  allow:  # few\n  deny: [x]\n", f"policy:\n  allow: [{SAID}]  # few\n  deny: [x]\n"),
        ("policy:\n  allow: [a, b]  # few\n", f"policy:\n  allow: [a, b, {SAID}]  # few\n"),
        ("policy: {allow: [], deny: [x]}\n", f"policy: {{allow: [{SAID}], deny: [x]}}\n"),
        (
            "policy:\n  allow:\n  - a # one\n  # two\n  - b # three\n# four\nttl: 3\n",
            f"policy:\n  allow:\n  - a # one\n  # two\n  - b # three\n  - {SAID}\n# four\nttl: 3\n",
        ),
        ("policy:\r\n  allow:\r\n    - a", f"policy:\r\n  allow:\r\n    - a\r\n    - {SAID}\r\n"),
        (f"policy:\n  allow: ['{RULE}']\n", f"policy:\n  allow: ['{RULE}']\n"),
        ("policy:\n  allow: ['a # b']\n", f'policy:\n  allow: ["a # b", {SAID}]\n'),
    ],
)
def test_an_item_is_added_to_a_list_in_the_form_that_it_has(text: str, after: str) -> None:
    assert with_item(text, ALLOW, RULE) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "policy:\n  allow:\n    - a  # one\n    # two\n    - x  # its own\n# three\n",
            "policy:\n  allow:\n    - a  # one\n    # two\n# three\n",
        ),
        ("policy:\n  allow: [x, a]  # few\n", "policy:\n  allow: [a]  # few\n"),
        ("policy:\n  allow: [a, x]\n", "policy:\n  allow: [a]\n"),
        ("policy:\n  allow:\n    - x\n  deny: [y]\n", "policy:\n  deny: [y]\n"),
        ("# mine\npolicy: {allow: [x]}\nttl: 3\n", "# mine\nttl: 3\n"),
        ("policy:\n  allow: [a]\n", "policy:\n  allow: [a]\n"),
    ],
)
def test_an_item_is_removed_and_with_the_last_one_the_key(text: str, after: str) -> None:
    assert without_item(text, ALLOW, "x") == after


@given(files(), st.lists(NAMES, min_size=1, max_size=4, unique=True))
@example("", ["0", "#"])
def test_items_are_added_and_removed_again(text: str, items: list[str]) -> None:
    made = text
    for item in items:
        made = with_item(made, ALLOW, item)
    assert yaml.safe_load(made) == {**(yaml.safe_load(text) or {}), "policy": {"allow": items}}
    for item in items:
        made = without_item(made, ALLOW, item)
    assert made.rstrip("\r\n") == text.rstrip("\r\n")


@given(files(), st.lists(NAMES, min_size=1, max_size=4), st.sampled_from([3, True, "x: y", ["a", 1.5], {"k": "v"}]))
def test_a_value_at_any_depth_is_set_in_the_text_and_removed_again(text: str, path: list[str], value: object) -> None:
    after = changed(text, ("mcp_servers", *path), value)
    found = parse_yaml(after)["mcp_servers"]
    for key in path:
        found = found[key]
    assert found == value
    assert [line for line in text.splitlines() if line not in after.splitlines()] == []
    assert parse_yaml(changed(after, ("mcp_servers", *path), None)) == parse_yaml(text)


def test_a_collection_with_a_comment_is_not_written_again() -> None:
    with pytest.raises(ValueError, match="cannot be changed on its own"):
        with_item("policy:\n  allow: [a, # one\n    b]\n", ALLOW, RULE)
    assert with_item("policy: {allow: [a] # few\n  }\n", ALLOW, "x") == "policy: {allow: [a, x] # few\n  }\n"


@pytest.mark.parametrize("text", ["policy:\n  allow: x\n", "policy: [a, b]\n", "policy:\n- a\n"])
@pytest.mark.parametrize("change", [with_item, without_item])
def test_a_value_that_is_not_a_list_is_left_unchanged(text: str, change: Any) -> None:
    with pytest.raises(ValueError, match="is not a list"):
        change(text, ALLOW, "a")


@pytest.mark.parametrize("text", ["policy: ~  # mine\n", "policy: {}\n", "policy:\n  allow: []\n"])
def test_removing_an_item_that_is_not_there_changes_nothing(text: str) -> None:
    assert without_item(text, ALLOW, "x") == text


def test_a_block_list_is_replaced_and_the_rest_kept() -> None:
    text = "model: a\ntools:\n- files\n- shell\nttl: 3\n"
    assert changed(text, ("tools",), ["mcp"]) == "model: a\ntools: [mcp]\nttl: 3\n"
    with pytest.raises(ValueError, match="cannot be changed on its own"):
        changed(text.replace("files", "files # mine"), ("tools",), ["mcp", "shell"])


def test_a_list_that_is_set_with_one_item_more_or_less_keeps_its_lines() -> None:
    text = "tools:\n- files # mine\n- shell\nttl: 3\n"
    assert changed(text, ("tools",), ["files"]) == "tools:\n- files # mine\nttl: 3\n"
    more = changed(text, ("tools",), ["files", "shell", "mcp"])
    assert more == "tools:\n- files # mine\n- shell\n- mcp\nttl: 3\n"


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.yml"
    file.write_text("\ufeffttl: 3\n", encoding="utf-8")
    change_file(file, ("theme",), "x")
    assert file.read_text(encoding="utf-8") == "\ufeffttl: 3\ntheme: x\n"
