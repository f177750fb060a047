from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools import TOOL_SETS
from aeon_core.tools.base import Tool
from aeon_core.tools.files import ReadTool, WriteTool, file_tools
from aeon_core.tools.registry import ToolRegistry
from aeon_core.tools.sandbox import Sandbox, SandboxError
from aeon_core.tools.shell.bash import shell_tools


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    registry = ToolRegistry()
    for tool in file_tools(tmp_path):
        registry.register(tool)
    return registry


def use(registry: ToolRegistry, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool as a run does, with what the schemas promise."""
    assert registry.input_schema(name).errors(arguments) == []
    tool = registry.get(name)
    assert tool is not None
    result: dict[str, Any] = tool.invoke(**arguments)
    assert registry.output_schema(name).errors(result) == []
    return result


def read(registry: ToolRegistry, data: bytes, tmp_path: Path, **arguments: Any) -> dict[str, Any]:
    (tmp_path / "f").write_bytes(data)
    return use(registry, "Read", file_path="f", **arguments)


def test_the_file_tools_declare_their_effects(registry: ToolRegistry) -> None:
    effects = {tool.name: (tool.effect, tool.needs_approval) for tool in registry}
    assert effects == {
        "Read": ("pure", False),
        "Write": ("idempotent", True),
        "Edit": ("unsafe", True),
        "Grep": ("pure", False),
        "Glob": ("pure", False),
    }


def test_read_gives_numbered_lines(registry: ToolRegistry, tmp_path: Path) -> None:
    assert read(registry, "eins\n\tzwö\n".encode(), tmp_path) == {
        "content": "     1\teins\n     2\t\tzwö",
        "file_path": "f",
        "start_line": 1,
        "lines": 2,
        "total_lines": 2,
        "truncated": False,
        "notes": [],
    }


@pytest.mark.parametrize(
    ("offset", "limit", "numbers", "truncated"),
    [(1, 2, [1, 2], True), (3, 2, [3, 4], True), (4, 9, [4, 5], False), (5, 1, [5], False), (2.0, 1.0, [2], True)],
)
def test_read_returns_a_part_and_tells_how_to_continue(
    registry: ToolRegistry, tmp_path: Path, offset: int, limit: int, numbers: list[int], truncated: bool
) -> None:
    found = read(registry, b"1\n2\n3\n4\n5", tmp_path, offset=offset, limit=limit)
    assert found["content"] == "\n".join(f"{number:>6}\t{number}" for number in numbers)
    assert (found["start_line"], found["lines"], found["total_lines"]) == (numbers[0], len(numbers), 5)
    assert found["truncated"] is truncated
    note = f"lines {numbers[0]} to {numbers[-1]} of 5; read on with offset {numbers[-1] + 1}"
    assert found["notes"] == ([note] if truncated else [])


def test_read_returns_two_thousand_lines_by_default(registry: ToolRegistry, tmp_path: Path) -> None:
    found = read(registry, b"x\n" * 2500, tmp_path)
    assert (found["lines"], found["total_lines"]) == (2000, 2500)
    assert found["notes"] == ["lines 1 to 2000 of 2500; read on with offset 2001"]


@pytest.mark.parametrize("character", ["x", "é", "€", "𝄞"])
def test_read_cuts_long_lines_and_marks_them(registry: ToolRegistry, tmp_path: Path, character: str) -> None:
    lines = [character * 2000, character * 2001, character * 30000, "end"]
    found = read(registry, "\r\n".join(lines).encode(), tmp_path)
    shown = [line.split("\t")[1] for line in found["content"].split("\n")]
    assert shown == [character * 2000, *[character * 2000 + "… [line cut]"] * 2, "end"]
    assert found["total_lines"] == 4
    note = "a line ending in '… [line cut]' has more than 2,000 characters; Grep shows those around a match"
    assert found["notes"][0] == note
    assert not any("UTF-8" in note for note in found["notes"])


def test_read_stops_before_a_result_grows_too_large(registry: ToolRegistry, tmp_path: Path) -> None:
    found = read(registry, (b"x" * 1000 + b"\n") * 1000, tmp_path)
    assert found["lines"] == 250
    assert found["notes"] == ["lines 1 to 250 of 1000; read on with offset 251"]


@pytest.mark.parametrize(
    ("data", "content", "note"),
    [
        (b"", "", "the file is empty"),
        (b"\xef\xbb\xbf", "", "the file is empty"),
        (
            b"caf\xe9\n",
            "     1\tcaf\ufffd",
            "the file is not UTF-8 throughout; U+FFFD replaces each byte that is not",
        ),
        (b"a\r\nb\r\n", "     1\ta\n     2\tb", "lines end in CRLF, which is not shown; Edit keeps it"),
        (b"\xef\xbb\xbfa\n", "     1\ta", "the file begins with a byte order mark, which is not shown; Edit keeps it"),
    ],
    ids=["empty", "only-bom", "latin-1", "crlf", "bom"],
)
def test_read_notes_unusual_content(
    registry: ToolRegistry, tmp_path: Path, data: bytes, content: str, note: str
) -> None:
    found = read(registry, data, tmp_path)
    assert found["content"] == content
    assert note in found["notes"]


@pytest.mark.parametrize(
    ("data", "arguments", "message"),
    [
        (b"a\nb", {"offset": 3}, "line 3 is beyond the end of 'f', which has 2 lines"),
        (b"a\nb\n", {"offset": 3}, "line 3 is beyond the end of 'f', which has 2 lines"),
        (b"a", {"offset": 3}, "line 3 is beyond the end of 'f', which has 1 line;"),
        (b"", {"offset": 2}, "line 2 is beyond the end of 'f', which has 0 lines"),
        (b"\x7fELF\0\0", {}, "'f' is a binary file, expected text"),
        ("text".encode("utf-16"), {}, "'f' is UTF-16 text, expected UTF-8; convert it first"),
    ],
    ids=["beyond", "just-beyond", "beyond-one-line", "beyond-empty", "binary", "utf-16"],
)
def test_read_refuses_with_the_reason(
    registry: ToolRegistry, tmp_path: Path, data: bytes, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        read(registry, data, tmp_path, **arguments)


@given(st.lists(st.sampled_from(["", "a", "\r", "é", "b" * 40])), st.booleans(), st.integers(1, 12), st.integers(1, 12))
def test_read_gives_the_lines_of_any_text(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: bool, offset: int, limit: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    text = "\n".join(lines) + ("\n" if ends and lines else "")
    (folder / "any").write_bytes(text.encode())
    whole = text.removesuffix("\n").split("\n") if text else []
    try:
        found = ReadTool(Sandbox(folder)).invoke(file_path="any", offset=offset, limit=limit)
    except ToolError:
        assert offset > max(1, len(whole))
        return
    expected = [line.removesuffix("\r") if index < text.count("\n") else line for index, line in enumerate(whole)]
    shown = [line[7:] for line in found["content"].split("\n")] if found["lines"] else []
    assert shown == expected[offset - 1 : offset - 1 + limit]
    assert found["total_lines"] == len(whole)


@pytest.mark.exhaustive
def test_a_huge_file_is_read_without_loading_it(registry: ToolRegistry, tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as stream:
        stream.write(b"first\n" * 100_000 + b"\n" * 8192)
        stream.truncate(300_000_000)
    tracemalloc.start()
    try:
        found = use(registry, "Read", file_path="huge", offset=100_001, limit=8193)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found["lines"], found["total_lines"]) == (8193, 108_193)
    assert peak < 20_000_000


def test_write_creates_a_file_with_its_folders_or_replaces_it(registry: ToolRegistry, tmp_path: Path) -> None:
    assert use(registry, "Write", file_path="./new/x/../é.md", content="eins\nzwö") == {
        "file_path": "new/é.md",
        "bytes": 9,
        "lines": 2,
        "created": True,
    }
    assert (tmp_path / "new/é.md").read_bytes() == "eins\nzwö".encode()
    assert use(registry, "Write", file_path="new/é.md", content="")["created"] is False
    assert (tmp_path / "new/é.md").read_bytes() == b""


@given(st.text())
def test_written_content_is_exactly_in_the_file(tmp_path_factory: pytest.TempPathFactory, content: str) -> None:
    folder = tmp_path_factory.getbasetemp()
    result = WriteTool(Sandbox(folder)).invoke(file_path="written", content=content)
    assert (folder / "written").read_bytes() == content.encode()
    assert result["bytes"] == len(content.encode())


def test_unwritable_content_is_refused_and_nothing_created(registry: ToolRegistry, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="content has a lone surrogate at character 2, expected plain text"):
        use(registry, "Write", file_path="new/f", content="ab\ud800")
    assert not (tmp_path / "new").exists()


ARGUMENTS: dict[str, dict[str, Any]] = {
    "Read": {},
    "Write": {"content": "x"},
    "Edit": {"old_string": "a", "new_string": "b"},
}


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "link", "a/../../out"])
def test_no_file_tool_leaves_the_project_root(tmp_path: Path, name: str, path: str) -> None:
    root, out = tmp_path / "proj", tmp_path / "out"
    root.mkdir()
    out.write_text("a")
    (root / "link").symlink_to(out)
    tool = next(tool for tool in file_tools(root) if tool.name == name)
    with pytest.raises(SandboxError, match=r"^Path outside project root: "):
        tool.invoke(file_path=path, **ARGUMENTS[name])
    assert out.read_text() == "a"
    assert tool.parts({"file_path": path, **ARGUMENTS[name]}) is None


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize(
    ("path", "where"),
    [("./a/../.env", ".env"), ("harmless", ".env"), ("src/", "src"), ("{root}/src/new/x", "src/new/x"), (".", ".")],
)
def test_rules_apply_to_resolved_paths(
    registry: ToolRegistry, tmp_path: Path, name: str, path: str, where: str
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "harmless").symlink_to("src/../.env")
    tool = registry.get(name)
    assert isinstance(tool, Tool)
    arguments = {"file_path": path.format(root=tmp_path), **ARGUMENTS[name]}
    assert tool.parts(arguments) == [{**arguments, "file_path": where}]


def test_a_project_root_that_does_not_exist_has_no_tools(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="use an existing folder"):
        file_tools(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (".aeon/config.yml", "ask"),
        (".git/hooks/pre-commit", "ask"),
        ("vendor/x/.git/config", "ask"),
        (".GIT/config", "ask"),
        ("link/config.yml", "ask"),
        ("venv/lib/x.py", "ask"),
        ("src/.gitignore", None),
        ("aeon/config.yml", None),
    ],
)
def test_no_rule_allows_changing_files_acted_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, answer: str | None
) -> None:
    (tmp_path / ".aeon").mkdir()
    (tmp_path / "link").symlink_to(".aeon")
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    policy = Policy(PolicyRules(allow=("Read", "Write", "Edit")))
    tools = {tool.name: tool for tool in file_tools(tmp_path)}
    for name in ("Write", "Edit"):
        assert policy.verdict(tools[name], {"file_path": path}).answer == (answer or "allow")
    assert policy.verdict(tools["Read"], {"file_path": path}).answer == "allow"


def test_built_in_tool_sets_list_their_tools(tmp_path: Path) -> None:
    loaded = {"files": file_tools(tmp_path), "shell": shell_tools(tmp_path), "mcp": []}
    assert {name: each.names for name, each in TOOL_SETS.items()} == {
        name: tuple(tool.name for tool in tools) for name, tools in loaded.items()
    }, "list each set's tools in TOOL_SETS in the order in which they are made"
