from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.files import EditTool
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.sandbox import Sandbox
from tests.cpu_limit import cpu_limit

SOURCE = """\
import os

def total(items):
    result = 0
    for item in items:
        result += item.price
    return result

def count(items):
    return len(items)
"""


def edit(folder: Path, data: bytes | str, **arguments: Any) -> tuple[bytes, dict[str, Any]]:
    """Return the file's bytes after the edit, and the result, checked against the schema."""
    (folder / "f.py").write_bytes(data.encode() if isinstance(data, str) else data)
    registry = ToolRegistry()
    registry.register(EditTool(Sandbox(folder)))
    tool = registry.get("Edit")
    assert tool is not None
    assert registry.input_schema("Edit").errors({"file_path": "f.py", **arguments}) == []
    result = tool.invoke(file_path="f.py", **arguments)
    assert registry.output_schema("Edit").errors(result) == []
    return (folder / "f.py").read_bytes(), result


def refusal(folder: Path, data: bytes | str, **arguments: Any) -> str:
    """Return the message of an edit that is refused; the file is as it was."""
    with pytest.raises(ToolError) as caught:
        edit(folder, data, **arguments)
    assert (folder / "f.py").read_bytes() == (data.encode() if isinstance(data, str) else data)
    return caught.value.message


def test_one_occurrence_is_replaced_and_shown(tmp_path: Path) -> None:
    after, result = edit(tmp_path, SOURCE, old_string="result = 0", new_string="result = 0.0\n    seen = set()")
    assert after.decode() == SOURCE.replace("result = 0", "result = 0.0\n    seen = set()")
    assert result == {
        "file_path": "f.py",
        "replacements": 1,
        "method": "exact",
        "diff": "--- a/f.py\n+++ b/f.py\n@@ -1,7 +1,8 @@\n import os\n \n def total(items):\n"
        "-    result = 0\n+    result = 0.0\n+    seen = set()\n"
        "     for item in items:\n         result += item.price\n     return result",
    }


def test_every_occurrence_is_replaced_on_demand(tmp_path: Path) -> None:
    after, result = edit(tmp_path, "aXbXc", old_string="X", new_string="--", replace_all=True)
    assert (after, result["replacements"]) == (b"a--b--c", 2)
    assert edit(tmp_path, "aaa", old_string="aa", new_string="b", replace_all=True)[0] == b"ba"


@pytest.mark.parametrize(
    ("data", "old", "message"),
    [
        ("a\nb\na\n", "a", "old_string is not unique: 'f.py' has it 2 times, at lines 1, 3; add text around it, or"),
        ("aaa", "aa", "'f.py' has it 2 times, at lines 1, 1;"),
        ("x\n" * 30, "x", "'f.py' has it 30 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …; add text"),
    ],
    ids=["two", "overlapping", "many"],
)
def test_text_that_is_not_unique_is_refused_with_its_lines(tmp_path: Path, data: str, old: str, message: str) -> None:
    assert message in refusal(tmp_path, data, old_string=old, new_string="y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give old_string and new_string, or diff"),
        ({"old_string": "a"}, "give old_string and new_string, or diff"),
        ({"new_string": "a"}, "give old_string and new_string, or diff"),
        ({"old_string": "a", "new_string": "a"}, "old_string and new_string are the same; nothing would change"),
        (
            {"old_string": "", "new_string": "a"},
            "old_string is empty, expected the text to replace; to create or",
        ),
        ({"old_string": "", "new_string": "a", "diff": ""}, "old_string is empty"),
        ({"old_string": "\ud800", "new_string": "a"}, "old_string has a lone surrogate"),
        ({"old_string": "a", "new_string": "\ud800"}, "new_string has a lone surrogate"),
        ({"diff": "@@ -1 +1 @@\n a\n"}, "the edit would leave 'f.py' as it is"),
    ],
    ids=range(9),
)
def test_arguments_that_make_no_edit_are_refused(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    assert message in refusal(tmp_path, "a\n", **arguments)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"there is no 'new.py' in the project"):
        EditTool(Sandbox(tmp_path)).invoke(file_path="new.py", old_string="a", new_string="b")
    assert "'f.py' is a binary file" in refusal(tmp_path, b"a\0b", old_string="a", new_string="b")


@pytest.mark.parametrize(
    ("data", "old", "message"),
    [
        (
            "if x:\n\tgo()\n",
            "if x:\n    go()\n",
            "line 2 is '\\tgo()', the text looked for has '    go()':\n     1\tif",
        ),
        (
            "a\nfoo(1)  \nb\n",
            "foo(1)\nb",
            "line 2; line 2 is 'foo(1)  ', the text looked for has 'foo(1)':\n     1\ta\n     2\tfoo(1)  ",
        ),
        ("foo(1,  2)\n", "foo(1, 2)", "line 1 is 'foo(1,  2)', the text looked for has 'foo(1, 2)'"),
        ("mixed\r\nends\nhere\n", "mixed\nends", "line 1 is 'mixed\\r', the text looked for has 'mixed'"),
        ("one\ntwo\n", "one\r\ntwo", "line 1 is 'one', the text looked for has 'one\\r'"),
        (
            SOURCE,
            "result += item.cost",
            "line 6 is '        result += item.price', the text looked for has",
        ),
        (SOURCE, "     9\tdef count(items):\n", "leave out the line numbers that Read puts before each line; "),
        (
            SOURCE,
            "zzz\nqqq",
            "nothing in the file is similar; around line 1 it has:\n     1\timport os\n     2\t\n",
        ),
        (SOURCE, "return len(items)\n\n\nmore()", "the file ends before"),
        ("", "x", "old_string is not in 'f.py': the file is empty"),
    ],
    ids=["tab", "trailing", "inside", "crlf", "lf", "word", "numbers", "none", "end", "empty"],
)
def test_missing_text_is_refused_with_the_closest_text_and_differences(
    tmp_path: Path, data: str, old: str, message: str
) -> None:
    assert message in refusal(tmp_path, data, old_string=old, new_string="y")


def test_the_most_similar_place_is_shown(tmp_path: Path) -> None:
    data = "def a():\n    x = 1\n    return x\n\ndef b():\n    x = 1\n    y = 2\n    return x\n"
    message = refusal(tmp_path, data, old_string="    x = 1\n    y = 3\n    return x\n", new_string="")
    assert (
        "around line 6; line 7 is '    y = 2', the text looked for has '    y = 3':\n     4\t\n     5\tdef b" in message
    )


def test_the_closest_text_is_found_quickly_in_a_large_file(tmp_path: Path) -> None:
    lines = [f"    value_{number} = compute({number}, items[{number % 7}])\n" for number in range(200_000)]
    with cpu_limit(30):
        message = refusal(tmp_path, "".join(lines), old_string="value_40321 = compute(40321, item[1])", new_string="y")
    assert "line 40322 is '    value_40321 = compute(40321, items[1])'" in message
    assert len(message) < 1000


def test_similar_text_is_not_searched_in_a_file_of_millions_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon_core.tools.files._closest", lambda *_: pytest.fail("it takes many seconds"))
    told = "old_string is not in 'f.py': its 3,000,000 lines are too many to look for similar text; find the place with"
    assert refusal(tmp_path, b"a\n" * 3_000_000, old_string="b\nc", new_string="d").startswith(told)


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "a", "x\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", "a", "x\r\ny", b"x\r\ny\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        (b"a\r\nb\nc", "b\nc", "x\ny", b"a\r\nx\ny"),
        (b"\xef\xbb\xbfa\nb", "a\nb", "x", b"\xef\xbb\xbfx"),
        (b"caf\xe9 = 1\n", "= 1", "= 2", b"caf\xe9 = 2\n"),
        (b"no end", "end", "newline", b"no newline"),
        (b"\r\r\n\r\n", "\n\n", "\nx\n", b"\r\r\nx\r\n"),
    ],
    ids=["crlf", "crlf-new", "crlf-both", "to-lf", "mixed", "bom", "latin-1", "no-end", "cr"],
)
def test_line_ends_byte_order_mark_and_foreign_bytes_are_kept(
    tmp_path: Path, data: bytes, old: str, new: str, after: bytes
) -> None:
    assert edit(tmp_path, data, old_string=old, new_string=new)[0] == after


@pytest.mark.parametrize(
    "arguments", [{"old_string": "= 1", "new_string": "= 'é'"}, {"diff": "@@\n-b\n+é\n"}], ids=["text", "diff"]
)
def test_two_encodings_are_never_mixed(tmp_path: Path, arguments: dict[str, str]) -> None:
    assert "'f.py' is not UTF-8; only ASCII text" in refusal(tmp_path, b"caf\xe9 = 1\nb\n", **arguments)


PIECES = st.lists(st.sampled_from([b"a", b"b", b"\n", b"\xe9", b"\xc3\xa9", b"\r", b" ", b"\xef\xbb\xbf"])).map(
    b"".join
)
WORDS = st.text(st.sampled_from("XYé\n"), min_size=1, max_size=6)


@given(PIECES, PIECES, WORDS, WORDS)
def test_replacing_and_reversing_gives_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, before: bytes, behind: bytes, old: str, new: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    data = (before + old.encode() + behind).replace(b"\r\n", b"\n")
    changed = data.replace(old.encode(), new.encode())
    # In a CRLF file a newline means CRLF.
    assume(b"\r\n" not in data + changed)
    assume(old != new and overlapping(data, old.encode()) == 1 == overlapping(changed, new.encode()))
    assume(is_utf8(data) or (old + new).isascii())
    after, result = edit(folder, data, old_string=old, new_string=new)
    assert (after, result["replacements"]) == (changed, 1)
    assert edit(folder, after, old_string=new, new_string=old)[0] == data


@given(st.lists(st.sampled_from(["a", "b", "", "é\r"]), min_size=2, max_size=8), st.sampled_from(["", "\r\n"]), WORDS)
def test_a_crlf_file_keeps_its_line_ends(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str, new: str
) -> None:
    data = "\r\n".join([*lines, "OLD", *lines]) + end
    after, _ = edit(tmp_path_factory.getbasetemp(), data, old_string="OLD", new_string=new)
    assert after.decode() == data.replace("OLD", new.replace("\n", "\r\n"))


def overlapping(data: bytes, wanted: bytes) -> int:
    return len(re.findall(b"(?=" + re.escape(wanted) + b")", data))


def is_utf8(data: bytes) -> bool:
    return data.decode("utf-8", "replace").encode() == data


DIFF = """\
--- a/f.py
+++ b/f.py
@@ -9,2 +9,2 @@
 def count(items):
-    return len(items)
+    return sum(1 for _ in items)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        {"diff": DIFF},
        {"old_string": "", "diff": DIFF},
        {"old_string": "return  len(items)", "new_string": "return sum(1 for _ in items)", "diff": DIFF},
        {"old_string": "items", "new_string": "things", "diff": DIFF},
    ],
    ids=["alone", "empty-old", "not-found", "not-unique"],
)
def test_a_diff_applies_alone_or_if_the_text_is_not_unique(tmp_path: Path, arguments: dict[str, str]) -> None:
    after, result = edit(tmp_path, SOURCE, **arguments)
    assert after.decode() == SOURCE.replace("len(items)", "sum(1 for _ in items)")
    assert (result["method"], result["replacements"]) == ("diff", 1)


def test_the_text_takes_precedence_over_the_diff(tmp_path: Path) -> None:
    after, result = edit(tmp_path, SOURCE, old_string="import os", new_string="import sys", diff=DIFF)
    assert after.decode() == SOURCE.replace("import os", "import sys")
    assert result["method"] == "exact"


def test_if_neither_applies_both_reasons_are_given(tmp_path: Path) -> None:
    diff = "@@ -1 +1 @@\n-nothing\n+x\n"
    message = refusal(tmp_path, SOURCE, old_string="import  os", new_string="import sys", diff=diff)
    assert message.startswith("old_string is not in 'f.py': the closest text is around line 1; line 1 is 'import")
    assert "\nThe diff did not help: nothing was changed: hunk 1 of the diff does not apply" in message


def test_a_file_that_is_emptied_and_one_without_a_last_newline_are_shown_as_such(tmp_path: Path) -> None:
    _, result = edit(tmp_path, "a\nb", old_string="a\nb", new_string="")
    assert result["diff"] == "--- a/f.py\n+++ b/f.py\n@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file"


def test_the_diff_of_a_large_change_is_cut(tmp_path: Path) -> None:
    lines = "".join(f"{number}\n" for number in range(20_000))
    _, result = edit(tmp_path, lines, old_string="\n", new_string=" \n", replace_all=True)
    shown = result["diff"].split("\n")
    assert (result["replacements"], len(shown), shown[-1]) == (20_000, 201, "… [the diff is cut after 200 lines]")


def test_distant_changes_in_a_large_file_are_shown_up_to_a_limit(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(20_000)]
    lines[10] = lines[5000] = lines[19_000] = "old\n"
    _, result = edit(tmp_path, "".join(lines), old_string="old", new_string="new", replace_all=True)
    assert re.findall("^@@.*|^….*", result["diff"], re.MULTILINE) == [
        "@@ -8,7 +8,7 @@",
        "@@ -4998,7 +4998,7 @@",
        "… [changes after line 5007 are not shown]",
    ]


def test_spurious_changes_at_the_comparison_limit_are_not_shown(tmp_path: Path) -> None:
    lines = [f"{number}\n" for number in range(20_000)]
    lines[10] = lines[19_000] = "old\n"
    _, result = edit(tmp_path, "".join(lines), old_string="old", new_string="new\nmore", replace_all=True)
    assert result["diff"].endswith("\n+more\n 11\n 12\n 13\n… [changes after line 5003 are not shown]")


@given(st.lists(st.sampled_from("ab"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12), st.booleans())
def test_the_diff_that_is_shown_makes_the_same_change(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], ends: bool
) -> None:
    folder = tmp_path_factory.getbasetemp()
    before, wanted = "\n".join([*old, "OLD"]), "\n".join([*new, "NEW"])
    data = before + ("\n" if ends else "")
    after, result = edit(folder, data, old_string=before, new_string=wanted)
    assert edit(folder, data, diff=result["diff"])[0] == after


@pytest.mark.parametrize("meanwhile", [b"one\nTWO\n", b"one\ntwo\nthree\n", b"", None])
def test_concurrent_changes_to_an_edited_file_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: bytes | None
) -> None:
    place, fsync = tmp_path / "a", os.fsync
    place.write_bytes(b"one\ntwo\n")

    def change(descriptor: int) -> None:
        fsync(descriptor)
        place.unlink() if meanwhile is None else place.write_bytes(meanwhile)

    monkeypatch.setattr(os, "fsync", change)
    with pytest.raises(ToolError, match=r"has been changed meanwhile, so it was left as it is|there is no 'a'"):
        EditTool(Sandbox(tmp_path)).invoke(file_path="a", old_string="one", new_string="1")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == (
        {} if meanwhile is None else {"a": meanwhile}
    )
