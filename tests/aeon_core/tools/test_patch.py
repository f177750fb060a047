from __future__ import annotations

import difflib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.files import apply_diff

LINES = [
    "",
    "a",
    "b",
    "é",
    "- a",
    "-- a",
    "++ b",
    "@@ x",
    "@@ -1 +1 @@",
    "\\ no",
    " ",
    "\ta",
    "a\r",
    "\r",
    "diff x",
    "\ufeffa",
]
LINE_LISTS = st.lists(st.sampled_from(LINES), max_size=14)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + (end if lines else ""), LINE_LISTS, st.sampled_from(["", "\n"]))

FILE = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


def unified(old: str, new: str, context: int = 3, name: str = "x") -> str:
    """The standard library leaves out what says that a last line has no newline."""
    lines = difflib.unified_diff(split(old), split(new), f"a/{name}", f"b/{name}", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def split(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def patched(text: str, diff: str) -> str:
    return apply_diff(text.encode(), diff, "x")[0].decode()


@given(TEXTS, TEXTS, st.integers(1, 4))
@example("a\n", "", 3)
@example("a", "a\n", 3)
@example("", "a", 3)
@example("\n", "\n\n", 1)
def test_a_diff_turns_the_first_text_into_the_second(old: str, new: str, context: int) -> None:
    if (diff := unified(old, new, context)) == "":
        return
    assert patched(old, diff) == new


@given(LINE_LISTS, LINE_LISTS, st.lists(st.sampled_from(["p", "q"]), max_size=5))
def test_unknown_lines_before_the_change_do_not_matter(old: list[str], new: list[str], before: list[str]) -> None:
    text, wanted = ("".join(f"{line}\n" for line in ["start", *lines, "end"]) for lines in (old, new))
    shift = "".join(f"{line}\n" for line in before)
    if diff := unified(text, wanted, 100):
        assert patched(shift + text, diff) == shift + wanted


def test_several_hunks_are_applied_and_counted() -> None:
    new = FILE.replace("one", "1").replace("eight", "8")
    data, hunks = apply_diff(FILE.encode(), unified(FILE, new, 1), "x")
    assert data.decode() == new
    assert hunks == 2


@pytest.mark.parametrize(
    "header",
    ["@@ -3,2 +3,2 @@", "@@ -3,2 +3,2 @@ def f():", "@@ -7,2 +7,2 @@", "@@ -900,2 +900,2 @@", "@@", "@@ ... @@"],
    ids=range(6),
)
@pytest.mark.parametrize(
    "names", ["", "--- a/x\n+++ b/x\n", "--- x\t2026-01-01\n+++ x\n", "diff --git a/x b/x\nindex 1..2\n"]
)
def test_names_and_right_numbers_are_optional(header: str, names: str) -> None:
    assert patched(FILE, f"{names}{header}\n three\n-four\n+4\n") == FILE.replace("four", "4")


def test_among_several_places_the_nearest_to_the_line_number_is_taken() -> None:
    text = "a\n.\n.\n.\na\n.\n.\n.\na\n"
    assert patched(text, "@@ -6 +6 @@\n-a\n+b\n") == "a\n.\n.\n.\nb\n.\n.\n.\na\n"


@pytest.mark.parametrize("header", ["@@ -3 +3 @@", "@@"])
def test_two_places_equally_near_or_no_number_at_all_are_refused(header: str) -> None:
    with pytest.raises(ToolError, match="hunk 1 of the diff fits 3 places in 'x', at lines 1, 5, 9; give its line"):
        patched("a\n.\n.\n.\na\n.\n.\n.\na\n", f"{header}\n-a\n+b\n")


def test_places_next_to_each_other_are_different_places() -> None:
    with pytest.raises(ToolError, match="fits 3 places in 'x', at lines 1, 2, 3;"):
        patched("a\na\na\n", "@@\n-a\n+b\n")
    assert patched("a\na\na\n", "@@ -2 +2 @@\n-a\n+b\n") == "a\nb\na\n"


def test_the_drift_of_one_hunk_guides_the_next() -> None:
    text = "new\n" * 4 + "one\nx\nsame\nx\nx\nx\nsame\n"
    diff = "@@ -1 +1 @@\n-one\n+1\n@@ -7 +7 @@\n-same\n+7\n"
    assert patched(text, diff) == "new\n" * 4 + "1\nx\nsame\nx\nx\nx\n7\n"


def test_hunks_do_not_go_back() -> None:
    with pytest.raises(ToolError, match="hunk 2 of the diff does not apply"):
        patched("a\nb\nc\n", "@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n")


def test_one_hunk_that_does_not_apply_refuses_the_diff_and_shows_what_is_there() -> None:
    diff = "@@ -1 +1 @@\n-one\n+1\n@@ -5,3 +5,3 @@\n five\n-sixx\n+6\n seven\n"
    with pytest.raises(ToolError) as caught:
        patched(FILE, diff)
    assert caught.value.message == (
        "nothing was changed: hunk 2 of the diff does not apply to 'x': the closest text is around line 5; "
        "line 6 is 'six', the text looked for has 'sixx':\n"
        "     3\tthree\n     4\tfour\n     5\tfive\n     6\tsix\n     7\tseven\n     8\teight"
    )


@pytest.mark.parametrize(
    ("text", "diff", "result"),
    [
        ("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "a\nc\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n", "a\nc"),
        ("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc"),
        ("a\nb", "@@ -2,0 +3 @@\n+c\n", "a\nb\nc"),
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("", "@@ -0,0 +1,2 @@\n+a\n+b\n", "a\nb\n"),
        ("a\n", "@@ -1,1 +0,0 @@\n-a\n", ""),
        ("a\nb\n", "@@ -1,1 +1,1 @@\n-a\n+x\n b\n", "x\nb\n"),
        ("a\nb\n", "@@ -1 +1 @@\n-a\n+x\n\n\n", "x\nb\n"),
    ],
    ids=["ends", "no-end", "append", "append-bare", "blank", "fill", "empty", "short-count", "blank-after"],
)
def test_ends_of_files_and_small_liberties(text: str, diff: str, result: str) -> None:
    assert patched(text, diff) == result


@pytest.mark.parametrize(
    ("text", "diff", "result"),
    [
        ("a\r\nb\r\n", "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\r\nc\r\n"),
        ("a\nb\n", "@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n", "a\nc\n"),
        ("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+b\n", "a\r\nb\n"),
        ("a\r\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\r\nc"),
        ("\ufeffa\nb\n", "@@ -1,2 +1,2 @@\n-a\n+x\n b\n", "\ufeffx\nb\n"),
        ("\ufeffa\n", "@@ -1 +1 @@\n-\ufeffa\n+a\n", "a\n"),
    ],
    ids=["crlf", "crlf-both", "crlf-diff", "to-lf", "crlf-no-end", "bom", "bom-off"],
)
def test_line_ends_and_byte_order_mark_are_kept(text: str, diff: str, result: str) -> None:
    assert patched(text, diff) == result


def test_bytes_that_are_not_utf8_survive() -> None:
    data, _ = apply_diff(b"caf\xe9\nb\n", "@@ -2 +2 @@\n-b\n+c\n", "x")
    assert data == b"caf\xe9\nc\n"


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("", "the diff has no hunk: expected '@@ -1,3"),
        ("-one\n+1\n", "the diff has no hunk"),
        ("--- a/y\n+++ b/y\n@@ -1 +1 @@\n-one\n+1\n", "names the file 'a/y', expected 'x'"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-one\n+1\n", "names the file 'b/y'"),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+1\n", "creates or deletes a file"),
        ("@@ -1 +1 @@\n-one\n+1\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-one\n+1\n", "names the file 'a/y'"),
        ("@@ -1 +1 @@\n-one\n+1\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "names the file 'a/y'"),
        ("rename from x\nrename to y\n@@ -1 +1 @@\n-one\n+1\n", "a line 'rename from x' outside its hunks"),
        ("```diff\n@@ -1 +1 @@\n-one\n+1\n```\n", "a line '```diff' outside its hunks"),
        ("@@ -1 +1 @@\n-one\n+1\n```\n", "has a line '```', expected it to begin with"),
        ("@@ -1,4 +1,4 @@\n-one\n+1\n two\n", "has 2 old and 2 new lines, its header says 4 and 4: it may be cut off"),
        ("@@ -1,0 +1,0 @@\n", "hunk 1 of the diff is empty"),
        ("@@\n+new\n", "has neither line numbers nor lines around it"),
        ("@@ -30,0 +31 @@\n+new\n", "adds lines after line 30, and 'x' has 8 lines"),
        ("@@ -1 +1 @@\n\\ No newline at end of file\n-one\n", "expected it to begin with"),
        (
            "@@ -1,2 +1 @@\n-one\n\\ No newline at end of file\n-two\n+2\n",
            "continues with '-two' after the end of the file",
        ),
        (
            "@@ -8 +8,2 @@\n-eight\n+8\n\\ No newline at end of file\n+nine\n",
            "continues with '+nine' after the end of the file",
        ),
        ("@@ -1 +1 @@\n-one\n+1\n\\ No newline at end of file\n", "says that the file ends after it, but line 2"),
        ("@@ -8 +8 @@\n-eight\n\\ No newline at end of file\n+8\n", "does not apply"),
        ("@@ -1 +1 @@\n-one\n+\ud800\n", "diff has a lone surrogate at character 18"),
    ],
    ids=range(20),
)
def test_a_malformed_or_unrelated_diff_is_refused(diff: str, message: str) -> None:
    with pytest.raises(ToolError, match=re.escape(message)):
        patched(FILE, diff)


def test_an_alias_may_name_the_file() -> None:
    assert apply_diff(b"a\n", "--- a/link\n+++ ./real/x\n@@ -1 +1 @@\n-a\n+b\n", "real/x", "link") == (b"b\n", 1)
