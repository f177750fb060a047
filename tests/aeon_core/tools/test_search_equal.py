"""With ripgrep and without, a search gives the same."""

from __future__ import annotations

import os
import string
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import ripgrep
from aeon_core.tools.search.matching import Query, Searcher, required_text
from aeon_core.tools.search.ripgrep import find_ripgrep, narrowed
from aeon_core.tools.search.tools import GrepTool
from tests.sampling import examples

RIPGREP = find_ripgrep(Path("/nowhere"))
needs_ripgrep = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")


@pytest.fixture(autouse=True)
def _ripgrep_for_few_files_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "WORTH_IT", 0)


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
NAMES = ["a", "b.py", ".h", "d/a", "d/.x/b.py", "d e/-f", "d/e\n", "é/x", ".git/c", "node/y", os.fsdecode(b"n\xff")]
# fmt: on
# Half of the patterns are made of little else than what both engines know.
PATTERNS = st.lists(st.sampled_from(PIECES[:60]) | st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
CONTENTS = st.lists(st.sampled_from(BITS), max_size=12).map(b"".join)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "output_mode": st.sampled_from(["files_with_matches", "content", "count"]),
        "case_insensitive": st.booleans(),
        "multiline": st.booleans(),
        "context": st.integers(0, 2),
        "head_limit": st.integers(1, 3),
        "glob": st.sampled_from(["*.py", "d/**", "!a"]),
        "type": st.just("py"),
        "path": st.sampled_from([".", "d"]),
    },
)


def outcome(tool: GrepTool, **arguments: Any) -> Any:
    try:
        return tool.invoke(**arguments)
    except ToolError as error:
        return error.as_dict()


@pytest.mark.exhaustive
@needs_ripgrep
@settings(max_examples=examples(150))
@given(st.dictionaries(st.sampled_from(NAMES), CONTENTS, min_size=1, max_size=4), PATTERNS, OPTIONS)
@example({"a": b"a\xffb\n", "b.py": "aéb".encode()}, "a.b", {})
@example({"a": b"a\r\n", "b.py": b"a\n"}, "a$", {"output_mode": "content"})
@example({"a": "\u212a".encode(), "b.py": "ſ".encode()}, "^[ks]$", {"case_insensitive": True})
@example({"a": "\ufeffa".encode(), "b.py": "a".encode("utf-16")}, "^a", {})
def test_both_engines_give_the_same(files: dict[str, bytes], pattern: str, options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, content in {**files, ".gitignore": b"node\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        with_it, without = GrepTool(Sandbox(root)), GrepTool(Sandbox(root), ripgrep=False)
        assert outcome(with_it, pattern=pattern, **options) == outcome(without, pattern=pattern, **options)


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
        kept = narrowed(RIPGREP, Path(folder), paths, pattern, ignore_case, deadline) if RIPGREP else paths
        query = Query(pattern, ignore_case, mode="content", limit=1_000)
        answer = Searcher(query, deadline).search(folder, kept)
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


@needs_ripgrep
def test_ripgrep_does_leave_files_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("def f(x): return 1\n")
    (tmp_path / "b").write_text("class F:\n")
    assert RIPGREP
    for pattern in (r"^def \w+\(", r"\breturn\b", "def f?", r"return \d$", "return[ ]1"):
        assert narrowed(RIPGREP, tmp_path, ["a", "b"], pattern, False, time.monotonic() + 60) == ["a"], pattern
    assert narrowed(RIPGREP, tmp_path, ["a", "b"], "RETURN", True, time.monotonic() + 60) == ["a"]


def test_the_required_text_has_no_letter_that_another_character_replaces() -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    for letter in string.ascii_letters:
        same = set(regex.findall(letter, every, regex.IGNORECASE))
        assert required_text(letter, True) == ("" if same - set(string.ascii_letters) else letter.lower()), same


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("abc", "abc"), (r"^def \w+\(", "def "), ("ab*cd+e", "a"), ("abc?de", "ab"), ("ab{0}", "a"), ("a|bcd", ""),
        ("(?i)abc", ""), ("abc(?x) d", ""), ("(abc)?d", ""), ("ab(c|d)", ""), (r"ab\x41cd", "ab"),
        (r"a\.b\(c", "a.b(c"),
        (r"\d\dabc", "abc"), ("[abc]de", ""), ("é\nab", "ab"), (r"\101bc", ""), ("ab*?c", "a"),
    ],
    ids=range(17),
)  # fmt: skip
def test_the_required_text_is_what_every_match_holds(pattern: str, text: str) -> None:
    assert required_text(pattern, False) == text


def test_a_ripgrep_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = program(tmp_path / "bin" / "rg", "printf './nothing\\0'; exit 2")
    assert narrowed(str(fake), tmp_path, ["a"], "x", False, time.monotonic() + 60) == ["a"]
    assert narrowed(str(tmp_path / "gone"), tmp_path, ["a"], "x", False, time.monotonic() + 60) == ["a"]


def test_a_ripgrep_inside_the_project_or_by_a_relative_path_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "project" / "bin" / "rg", "exit 0")
    other = program(tmp_path / "other" / "rg", "exit 0")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "scripts"))
    monkeypatch.chdir(tmp_path / "project")
    for path in (tmp_path / "project" / "bin", "bin", tmp_path / "empty"):
        monkeypatch.setenv("PATH", str(path))
        assert find_ripgrep(tmp_path / "project") is None
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_ripgrep(tmp_path / "project") == str(other)
    beside_aeon = program(tmp_path / "scripts" / "rg", "exit 0")
    assert find_ripgrep(tmp_path / "project") == str(beside_aeon)


def test_the_surroundings_do_not_reach_ripgrep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/somewhere")
    monkeypatch.setenv("EXAMPLE_API_KEY", "x" * 30)
    seen = tmp_path / "seen"
    fake = program(tmp_path / "rg", f'{{ env | cut -d= -f1; cat; }} > {seen}; printf "./a\\0"')
    assert narrowed(str(fake), tmp_path, ["a", "b"], "x", False, time.monotonic() + 60) == ["a"]
    assert set(seen.read_text().split()) <= {"PWD", "OLDPWD", "SHLVL", "_", "LD_LIBRARY_PATH"}


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
