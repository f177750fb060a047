from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from aeon_core.errors import ToolError
from aeon_core.tools import listing, search
from aeon_core.tools.listing import FILE_TYPES
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.sandbox import Sandbox, SandboxError
from aeon_core.tools.search import (
    DEFAULT_FILES,
    DEFAULT_MATCHES,
    MAX_LINE,
    MAX_TOTAL,
    GlobTool,
    GrepTool,
    Searcher,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    return project


def put(root: Path, files: Mapping[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def grep(root: Path, pattern: str, **arguments: Any) -> dict[str, Any]:
    return invoked(GrepTool(Sandbox(root)), pattern=pattern, **arguments)


def glob(root: Path, pattern: str, **arguments: Any) -> dict[str, Any]:
    return invoked(GlobTool(Sandbox(root)), pattern=pattern, **arguments)


def invoked(tool: GrepTool | GlobTool, **arguments: Any) -> dict[str, Any]:
    """Return the result of a call as a step would make it: arguments and result fit their schemas."""
    registry = ToolRegistry()
    registry.register(tool)
    assert registry.input_schema(tool.name).errors(arguments) == []
    result = tool.invoke(**arguments)
    assert registry.output_schema(tool.name).errors(result) == []
    return result


def lines(root: Path, pattern: str, **arguments: Any) -> list[tuple[str, int, str, bool]]:
    matches = grep(root, pattern, output_mode="content", **arguments)["matches"]
    return [(match["path"], match["line"], match["text"], match.get("context", False)) for match in matches]


def test_grep_returns_the_files_with_matches_by_path(root: Path) -> None:
    put(root, {"b.py": "x = 1\n", "a/c.py": "y\nx\nx\n", "a.py": "x", "z.py": "y"})
    assert grep(root, "x") == {
        "files": ["a.py", "a/c.py", "b.py"],
        "total_files": 3,
        "total_lines": 4,
        "truncated": False,
        "notes": [],
    }


def test_grep_counts_matching_lines(root: Path) -> None:
    put(root, {"a": "x x\ny\nx\n", "b": "y\n"})
    assert grep(root, "x", output_mode="count")["counts"] == [{"path": "a", "count": 2}]


def test_no_match_is_not_an_error(root: Path) -> None:
    assert grep(root, "x")["files"] == []
    assert grep(root, "x", output_mode="content")["matches"] == []
    assert glob(root, "*")["files"] == []


def test_context_is_distinguished_from_matches_and_never_repeated(root: Path) -> None:
    put(root, {"a": "1\n2 x\n3\n4\n5 x\n6\n7\n8 x\n"})
    assert lines(root, "x", before_context=1, after_context=1) == [
        ("a", 1, "1", True),
        ("a", 2, "2 x", False),
        ("a", 3, "3", True),
        ("a", 4, "4", True),
        ("a", 5, "5 x", False),
        ("a", 6, "6", True),
        ("a", 7, "7", True),
        ("a", 8, "8 x", False),
    ]
    assert [number for _, number, _, _ in lines(root, "5", context=2)] == [3, 4, 5, 6, 7]
    assert [number for _, number, _, _ in lines(root, "x", head_limit=1, context=9)] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("pattern", "arguments", "numbers"),
    [
        ("^a$", {}, [1]),
        ("^b$", {}, [2]),
        ("B", {}, []),
        ("B", {"case_insensitive": True}, [2]),
        ("(?i)B", {}, [2]),
        ("", {}, [1, 2, 3, 4]),
        (r"^$", {}, [3]),
        (r"é.$", {}, [4]),
        (r"a\s*b", {}, []),
        (r"a\s*b", {"multiline": True}, [1, 2]),
        (r"a.b", {"multiline": True}, [1, 2]),
        (r"b\n", {"multiline": True}, [2]),
        (r"\Z", {"multiline": True}, []),
        (r"^", {"multiline": True}, [1, 2, 3, 4]),
        (r"(?<=\n)b|c", {"multiline": True}, [2]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_lines_are_split_at_line_ends(
    root: Path, pattern: str, arguments: dict[str, Any], numbers: list[int], end: str
) -> None:
    (root / "f").write_bytes(f"a{end}b{end}{end}éé{end}".encode("utf-8-sig"))
    found = GrepTool(Sandbox(root)).invoke(pattern=pattern, output_mode="content", **arguments)
    assert [match["line"] for match in found["matches"]] == numbers


def test_glob_and_type_choose_the_files(root: Path) -> None:
    put(root, {"a.py": "x", "s/b.py": "x", "s/t/c.py": "x", "s/d.ts": "x"})
    assert grep(root, "x", glob="*.py")["files"] == ["a.py", "s/b.py", "s/t/c.py"]
    assert grep(root, "x", glob="!*.py")["files"] == ["s/d.ts"]
    assert grep(root, "x", glob="s/*.py")["files"] == ["s/b.py"]
    assert grep(root, "x", glob="*/*.py", path="s")["files"] == ["s/t/c.py"]
    assert grep(root, "x", type="ts")["files"] == ["s/d.ts"]
    assert grep(root, "x", type="ts", glob="*.py")["files"] == []
    assert grep(root, "x", path="s/b.py", glob="b.*")["files"] == ["s/b.py"]
    assert grep(root, "x", path=str(root / "s"), type="py")["files"] == ["s/b.py", "s/t/c.py"]


@pytest.mark.parametrize(
    ("file_type", "name"),
    [("cpp", "a/b.c++"), ("docker", "Dockerfile.dev"), ("js", "a.mjs"), ("make", "s/Makefile"), ("ruby", "Gemfile")],
    ids=["cpp", "docker", "js", "make", "ruby"],
)
def test_a_type_knows_its_files(root: Path, file_type: str, name: str) -> None:
    put(root, {name: "x", "other": "x"})
    assert grep(root, "x", type=file_type)["files"] == [name]


@pytest.mark.exhaustive
def test_every_type_can_be_used(root: Path) -> None:
    for file_type in FILE_TYPES:
        assert grep(root, "x", type=file_type)["files"] == []


def test_binary_files_are_skipped_and_other_encodings_searched(root: Path) -> None:
    put(root, {"binary": b"x\0y", "late": b"x\n" * 5_000 + b"\0", "latin": b"x \xff\n", "utf16": "x".encode("utf-16")})
    os.mkfifo(root / "fifo")
    assert grep(root, "x")["files"] == ["late", "latin"]
    assert lines(root, "x", path="latin") == [("latin", 1, "x \ufffd", False)]


def test_dotfiles_are_seen_and_the_repository_is_not(root: Path) -> None:
    put(root, {".env": "x", ".git/config": "x", "s/.git": "x", ".github/w": "x"})
    assert grep(root, "x")["files"] == glob(root, "**")["files"] == [".env", ".github/w"]
    assert grep(root, "x", path=".git")["files"] == [".git/config"]


def test_a_search_follows_no_links(root: Path) -> None:
    put(root, {"s/f": "x"})
    put(root.parent, {"outside/secret": "x"})
    (root / "inside").symlink_to("s/f")
    (root / "away").symlink_to(root.parent / "outside" / "secret")
    (root / "nowhere").symlink_to("gone")
    (root / "folder").symlink_to("s")
    (root / "outer").symlink_to("../outside")
    assert grep(root, "x")["files"] == ["s/f"]
    assert grep(root, "x", path="folder")["files"] == ["s/f"]
    assert glob(root, "**")["files"] == ["inside", "s/f"]
    for path in ("away", "outer", "outer/secret"):
        with pytest.raises(SandboxError, match="Path outside project root"):
            grep(root, "x", path=path)


def test_a_file_replaced_by_a_link_or_fifo_is_not_read(root: Path) -> None:
    put(root, {"f": "x"})
    put(root.parent, {"outside/secret": "x"})
    (root / "away").symlink_to("../outside/secret")
    (root / "outer").symlink_to("../outside")
    os.mkfifo(root / "fifo")
    searcher = Searcher("x", time.monotonic() + 60)
    answer = searcher.search(Sandbox(root), ["away", "f", "fifo", "gone", "outer/secret"])
    assert ([entry["path"] for entry in answer.entries], answer.unreadable) == (["f"], [])


@pytest.mark.parametrize("path", ["..", "/etc", "s/../..", "../project-evil"])
def test_a_path_outside_the_root_is_refused(root: Path, path: str) -> None:
    put(root, {"s/f": "x"})
    put(root.parent, {"project-evil/f": "x"})
    for tool in (GrepTool(Sandbox(root)), GlobTool(Sandbox(root))):
        with pytest.raises(SandboxError, match="Path outside project root"):
            tool.invoke(pattern="x", path=path)
        assert tool.parts({"pattern": "x", "path": path}) is None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"pattern": "a("}, r"Grep: pattern 'a\(' cannot be used: missing \)"),
        ({"pattern": "x" * 999 + "("}, f"'{'x' * 200}' cannot be used"),
        ({"pattern": "x", "path": "gone"}, "there is no 'gone'|there is nothing"),
        ({"pattern": "x", "type": "cobol"}, "unknown type 'cobol', expected one of c, config, cpp"),
        ({"pattern": "x", "glob": "../*"}, r"Grep: glob '../\*': '..' would leave"),
        ({"pattern": "x", "glob": "!/etc/*"}, "it is absolute"),
        ({"pattern": "x", "glob": "{a"}, "'{' is not closed"),
    ],
    ids=range(7),
)
def test_bad_arguments_are_one_line_that_names_them(root: Path, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolError, match=reason) as caught:
        GrepTool(Sandbox(root)).invoke(**arguments)
    assert "\n" not in caught.value.message


def test_a_glob_that_leaves_the_root_is_refused(root: Path) -> None:
    with pytest.raises(ToolError, match=r"Glob: pattern '\{a,../b\}': '..' would leave"):
        glob(root, "{a,../b}")


def test_exceeding_the_limit_is_reported(root: Path) -> None:
    for number in range(DEFAULT_MATCHES + 1):
        put(root, {f"f{number:04}": "x\nx\n"})
    result = grep(root, "x")
    assert (len(result["files"]), result["total_files"], result["truncated"]) == (250, 251, True)
    assert result["notes"] == [
        "Shown are the first 250 of 251 files (head_limit); use a narrower pattern, path, glob or type."
    ]
    assert len(grep(root, "x", head_limit=300)["files"]) == 251
    result = grep(root, "x", output_mode="content", head_limit=3)
    assert [(match["path"], match["line"]) for match in result["matches"]] == [("f0000", 1), ("f0000", 2), ("f0001", 1)]
    assert (result["total_lines"], result["truncated"]) == (502, True)


def test_a_long_line_is_shown_around_its_match_and_a_long_result_is_cut(root: Path) -> None:
    (root / "f").write_text("a" * 5_000 + "x" + "b" * 5_000)
    text = lines(root, "x")[0][2]
    assert text.startswith("a" * 200 + "x" + "b" * (MAX_LINE - 201))
    assert text.endswith(" [characters 4801 to 6800 of 10001]")
    (root / "f").write_text(("x" * 1_999 + "\n") * 200)
    result = grep(root, "x", output_mode="content")
    shown = len(result["matches"])
    assert MAX_TOTAL - 3_000 < shown * 2_040 <= MAX_TOTAL
    [note] = result["notes"]
    assert note.startswith(f"Shown are the first {shown} of 200 matching lines (a result holds 100 kB); use")


def test_a_file_too_large_is_named(root: Path) -> None:
    put(root, {"small": "x"})
    with (root / "large").open("wb") as file:
        file.truncate(50_000_001)
    result = grep(root, "x")
    assert (result["files"], result["notes"]) == (["small"], ["Not searched, larger than 50 MB: large."])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_named(root: Path) -> None:
    put(root, {"closed": "x", "open": "x"})
    (root / "closed").chmod(0)
    result = grep(root, "x")
    assert (result["files"], result["notes"]) == (["open"], ["Not searched, cannot be read: closed."])


def test_an_endless_pattern_is_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_SECONDS", 0.2)
    put(root, {"f": "a" * 60 + "b\n"})
    with pytest.raises(
        ToolError, match=r"Grep: the search took longer than 0\.2 s; name a 'path', or simplify the pattern"
    ):
        grep(root, "(a|aa)+$")


@pytest.mark.parametrize("pattern", ["(a|aa)+$", "(a|aa|aaa)*c", r"(\w|\w\w)+[!?]", r"(?:a|aa)+(?!.)"])
def test_endless_backtracking_is_an_error_with_advice(
    root: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    assert listing.SECONDS == 2
    monkeypatch.setattr(listing, "SECONDS", 0.05)
    put(root, {"f": "a" * 69 + "bcd;e\n", "g": "a\n"})
    reason = rf"^Grep: pattern {re.escape(repr(pattern))} takes more than 0\.05 s on one text; write it"
    for options in ({}, {"multiline": True}):
        with pytest.raises(ToolError, match=reason) as caught:
            invoked(GrepTool(Sandbox(root)), pattern=pattern, **options)
        assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "pattern", ["(a{9999}){9999}", "((a{99}){99}){99}", "(ab){3000000}", "(" * 900 + "a" + "){9}" * 900]
)
def test_a_pattern_that_would_fill_the_memory_when_it_is_compiled_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(ToolError, match="cannot be used: its repeats multiply to too many"):
        grep(root, pattern)


def test_undecodable_names_are_shown_escaped(root: Path) -> None:
    for name in (b"b\xff", b"b\xc3\xa9", b"b\nc"):
        (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_text("x")
    assert grep(root, "x")["files"] == glob(root, "b*")["files"] == ["b\nc", "b\\xff", "bé"]


def test_denied_paths_are_hidden(root: Path) -> None:
    put(root, {".env": "x", "keys/a/b": "x", "s/f": "x"})
    (root / "link").symlink_to(".env")
    sandbox, hidden = Sandbox(root), {".env", "keys"}.__contains__
    assert invoked(GrepTool(sandbox, hidden=hidden), pattern="x")["files"] == ["s/f"]
    assert invoked(GlobTool(sandbox, hidden=hidden), pattern="**")["files"] == ["s/f"]
    for path in (".env", "keys", "keys/a", "s/../keys/a/b", "link"):
        with pytest.raises(ToolError, match="there is nothing at"):
            GrepTool(sandbox, hidden=hidden).invoke(pattern="x", path=path)


def test_glob_returns_files_sorted_by_path(root: Path) -> None:
    put(root, dict.fromkeys(("b.py", "a/b.py", "a-b.py", "B.py", "a/x/c.py", "c.txt"), ""))
    result = glob(root, "**/*.py")
    assert result["files"] == sorted(result["files"]) == ["B.py", "a-b.py", "a/b.py", "a/x/c.py", "b.py"]
    assert result == {"files": result["files"], "total_files": 5, "truncated": False, "notes": []}
    assert glob(root, "*.py", path="a")["files"] == ["a/b.py"]
    assert glob(root, "*.{py,txt}")["files"] == ["B.py", "a-b.py", "b.py", "c.txt"]


def test_glob_counts_the_files(root: Path) -> None:
    for number in range(DEFAULT_FILES + 1):
        (root / f"{number:04}").touch()
    result = glob(root, "*")
    assert (result["files"][-1], result["total_files"], result["truncated"]) == ("0999", 1001, True)
    assert result["notes"] == ["Shown are the first 1,000 of 1,001 files; use a narrower pattern, or name a path."]


def test_rules_apply_to_resolved_paths(root: Path) -> None:
    put(root, {"s/f": "x"})
    (root / "link").symlink_to("s")
    for tool in (GrepTool(Sandbox(root)), GlobTool(Sandbox(root))):
        assert tool.parts({"pattern": "x", "path": "./a/../link/f"}) == [{"pattern": "x", "path": "s/f"}]
        assert tool.parts({"pattern": "x"}) == [{"pattern": "x", "path": "."}]
        assert (tool.effect, tool.needs_approval) == ("pure", False)
