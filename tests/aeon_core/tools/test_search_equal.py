"""With ripgrep and without, a search gives the same."""

from __future__ import annotations

import os
import re
import string
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools.sandbox import Sandbox
from aeon_core.tools.search import ripgrep
from aeon_core.tools.search.process import run
from aeon_core.tools.search.ripgrep import find_ripgrep, loosened, narrowed
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


@needs_ripgrep
@settings(max_examples=examples(300))
@given(st.lists(CONTENTS, min_size=1, max_size=8), PATTERNS, st.booleans())
def test_ripgrep_keeps_every_file_in_which_the_pattern_matches(
    contents: list[bytes], pattern: str, ignore_case: bool
) -> None:
    try:
        regex = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, FutureWarning):
        return
    assert RIPGREP
    paths = [str(number) for number in range(len(contents))]
    with tempfile.TemporaryDirectory() as folder:
        for path, content in zip(paths, contents, strict=True):
            (Path(folder) / path).write_bytes(content)
        kept = narrowed(RIPGREP, Path(folder), paths, pattern, ignore_case, time.monotonic() + 60)
    for path, content in zip(paths, contents, strict=True):
        lines = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        assert path in kept or not any(regex.search(line) for line in (lines if lines[-1] else lines[:-1]))


@needs_ripgrep
@pytest.mark.parametrize(
    ("pattern", "text", "ignore_case"),
    [
        ("[a-c]$", "B", True),
        ("[K]", "\u212a", True),
        (r"\w", "_", False),
        (r"\s", "\x1c", False),
        (r"[\s]", "\x85", False),
        (r"\d", "٣", False),
        (r"^a.b$", "a\0b", False),
        ("^a$", "a\r", False),
        ("^😀?.$", "😀é", False),
    ],
    ids=range(9),
)
def test_ripgrep_keeps_a_file_with_such_a_line(tmp_path: Path, pattern: str, text: str, ignore_case: bool) -> None:
    (tmp_path / "f").write_text("-\n" * 5_000 + text + "\n", newline="")
    # Few files are mapped into memory, and looked at in another way than many.
    others = [f"other{number}" for number in range(20)]
    for other in others:
        (tmp_path / other).touch()
    assert RIPGREP
    assert loosened(pattern, ignore_case)
    for paths in (["f"], [*others, "f"]):
        assert narrowed(RIPGREP, tmp_path, paths, pattern, ignore_case, time.monotonic() + 60) == ["f"]


@needs_ripgrep
def test_ripgrep_does_leave_files_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("def f(x): return 1\n")
    (tmp_path / "b").write_text("class F:\n")
    assert RIPGREP
    for pattern in (r"^def \w+\(", r"\breturn\b", "[d]ef f|nothing", r"f\(.*\):", r"\d$", "(?:x){1}"):
        assert narrowed(RIPGREP, tmp_path, ["a", "b"], pattern, False, time.monotonic() + 60) == ["a"], pattern


def test_ripgrep_is_told_of_all_that_python_takes_for_an_ascii_letter() -> None:
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    for letter in string.ascii_letters:
        expected = set(re.findall(letter, every, re.IGNORECASE))
        assert set((loosened(letter, True) or "").strip("[]")) == expected


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)", "(?i)a", r"(a)\1", "a*+", "[[:alpha:]]", "[a&&[b]]", "a{,2}", r"\Aa", r"\x41", "a\nb", "[é]", "\ufffd"],
)
def test_what_the_dialects_do_not_share_is_left_to_python(pattern: str) -> None:
    assert loosened(pattern, False) is None


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
    fake = program(tmp_path / "rg", 'env | cut -d= -f1; cat; for it; do echo "$it"; done')
    done = run([str(fake), "-e", "x", "--", "./a"], folder=tmp_path, data=b"", seconds=60)
    assert set(done.stdout.decode().split()) - {"PWD", "OLDPWD", "SHLVL", "_", "LD_LIBRARY_PATH"} == {
        "-e",
        "x",
        "--",
        "./a",
    }


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
