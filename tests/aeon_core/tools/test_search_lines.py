"""A search finds exactly the lines in which the pattern matches, whatever it leaves unread."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import Searcher
from tests.sampling import examples

LETTERS = "abkKsSiIéÉß\u0130\u0131\u212a\u017f漢😀\u00a0\u0085\u2028٣_ -\"'."
# fmt: off
PIECES = [
    *LETTERS, *"#&~,:=<>@!%/;`}]", "\t", "\n", "\x1c", "\ufffd",
    "^", "$", "|", "a|b", r"\b", r"\B", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.", r"\\", r"\t", r"\-", r"\ ",
    "[ab]", "[^a]", "[a-k]", "[^ -~]", "[K-k]", r"[\w.-]", r"[^\s]", r"[^\d\"]", r"[\]\[]", "[-a]", "[a-]", "[+--]",
    "[é]", "(", ")", "(?:", "(?i:", "(?=a)", "(?<!b)", r"\1", "(?P<n>a)", "(?P=n)", r"\A", r"\Z", r"\x41", r"\n", r"\h",
    "*", "+", "?", "*?", "*+", "{2}", "{1,2}", "{,2}", "{0,}", "{", "{a}", "[[:alpha:]]", "[a&&b]", "[",
]
BITS = [
    *(letter.encode() for letter in LETTERS), b"\n", b"\n", b"\r\n", b"\r", b"\t", b"\x1c", b"]", b"\\", b"A", b"\0",
    b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfea\0",
]
# fmt: on
# Half of the patterns are made of little else than what both engines know.
PATTERNS = st.lists(st.sampled_from(PIECES[:60]) | st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
CONTENTS = st.lists(st.sampled_from(BITS), max_size=12).map(b"".join)


@settings(max_examples=examples(300))
@given(st.lists(CONTENTS, min_size=1, max_size=8), PATTERNS, st.booleans())
@example([b"foo\nxk"], "xk", False)
@example(["ſK\u212a".encode()], "sk", True)
@example([b"ab\n", b"a\nb"], r"b\Z|a\B", False)
@example([b"a\n-b"], r"a\B", False)
@example([b"a\nb"], r"a(?!\s)", False)
@example([b"xa\nb"], r"x[^c]*+(?<=a)", False)
def test_a_line_is_found_if_and_only_if_the_pattern_matches_in_it(
    contents: list[bytes], pattern: str, ignore_case: bool
) -> None:
    try:
        expected = regex.compile(pattern, (regex.IGNORECASE if ignore_case else 0) | regex.V0)
    except regex.error:
        return
    paths = [str(number) for number in range(len(contents))]
    deadline = time.monotonic() + 60
    with tempfile.TemporaryDirectory() as folder:
        for path, content in zip(paths, contents, strict=True):
            (Path(folder) / path).write_bytes(content)
        searcher = Searcher(pattern, deadline, ignore_case, mode="content", limit=1_000)
        answer = searcher.search(Sandbox(Path(folder)), paths)
    found = [(entry["path"], entry["line"]) for entry in answer.entries]
    assert found == [
        (path, number)
        for path, content in zip(paths, contents, strict=True)
        if b"\0" not in content
        for number, line in enumerate(lines_of(content), 1)
        if expected.search(line)
    ]


def lines_of(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]
