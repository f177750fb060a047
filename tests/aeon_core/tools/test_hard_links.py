from __future__ import annotations

import os
from pathlib import Path

import pytest

from aeon_core.errors import ToolError
from aeon_core.policy import Policy, PolicyRules
from aeon_core.tools import sandbox
from aeon_core.tools.base import Tool
from aeon_core.tools.files import file_tools
from aeon_core.tools.sandbox import Sandbox, SandboxError, link_fault

CALLS = {
    "Read": {"file_path": "link"},
    "Write": {"file_path": "link", "content": "x"},
    "Edit": {"file_path": "link", "old_string": "SECRET", "new_string": "x"},
    "Grep": {"pattern": "SECRET", "path": "link"},
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sandbox, "_keeps_all_private", lambda: False)
    return home


def tools(home: Path) -> dict[str, Tool]:
    return {tool.name: tool for tool in file_tools(home / "project")}


def secret(home: Path, name: str, mode: int = 0o644) -> Path:
    place = home / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("SECRET")
    place.chmod(mode)
    return place


@pytest.mark.parametrize(
    "name", [".bashrc", ".env", ".netrc", ".ssh/id", ".aws/credentials", ".config/gh/hosts.yml", ".cursor/mcp.json"]
)
@pytest.mark.parametrize("tool", CALLS)
def test_a_link_to_a_file_with_keys_is_refused(home: Path, name: str, tool: str) -> None:
    os.link(secret(home, name), home / "project/link")
    with pytest.raises(
        ToolError, match="it is a hard link to a file with settings or keys in your home; replace it with a copy"
    ):
        tools(home)[tool].invoke(**CALLS[tool])
    assert (home / name).read_text() == "SECRET"


@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
def test_no_rule_allows_it(home: Path, tool: str) -> None:
    os.link(secret(home, ".netrc"), home / "project/link")
    policy = Policy(PolicyRules(allow=("*",)))
    found = policy.verdict(tools(home)[tool], CALLS[tool])
    assert (found.answer, "hard link" in found.reason) == ("deny", True)


def test_a_link_that_only_its_owner_may_read_is_refused(home: Path) -> None:
    os.link(secret(home, "Documents/taxes", 0o600), home / "project/link")
    with pytest.raises(SandboxError, match="a file that only its owner may read"):
        Sandbox(home / "project").open_read("link")


def test_a_private_link_is_allowed_if_all_files_are_private(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_keeps_all_private", lambda: True)
    os.link(secret(home, "store/package", 0o600), home / "project/link")
    assert Sandbox(home / "project").read_bytes("link", 100) == b"SECRET"


def test_a_link_to_the_file_of_another_user_is_refused(home: Path) -> None:
    os.link(secret(home, "file"), home / "project/link")
    status = (home / "project/link").stat()
    other = os.stat_result((*status[:4], 4711, *status[5:]))
    assert link_fault(other, os.geteuid(), frozenset) == "it is a hard link to a file of another user"
    assert link_fault(other, 4711, frozenset) is None


@pytest.mark.parametrize("store", [".local/share/pnpm/v3/files/x", ".cache/uv/archive/x", "store/x", ".cache/ccache/x"])
def test_links_of_package_managers_are_ordinary_files(home: Path, store: str) -> None:
    os.link(secret(home, store), home / "project/link")
    assert "SECRET" in tools(home)["Read"].invoke(file_path="link")["content"]
    assert tools(home)["Grep"].invoke(pattern="SECRET")["files"] == ["link"]


def test_links_within_the_project_are_ordinary_files(home: Path) -> None:
    (home / "project/one").write_text("text")
    os.link(home / "project/one", home / "project/two")
    assert "text" in tools(home)["Read"].invoke(file_path="two")["content"]


def test_a_private_file_with_one_name_is_read(home: Path) -> None:
    (home / "project/one").write_text("text")
    (home / "project/one").chmod(0o600)
    assert "text" in tools(home)["Read"].invoke(file_path="one")["content"]


def test_a_search_of_the_project_leaves_refused_links_out(home: Path) -> None:
    from aeon_core.tools.search import GrepTool

    os.link(secret(home, ".netrc"), home / "project/link")
    (home / "project/own").write_text("SECRET")
    found = GrepTool(Sandbox(home / "project")).invoke(pattern="SECRET", output_mode="content")
    assert [match["path"] for match in found["matches"]] == ["own"]
    assert found["total_files"] == 1


def test_a_symbolic_link_to_such_a_link_is_refused(home: Path) -> None:
    os.link(secret(home, ".netrc"), home / "project/link")
    (home / "project/sym").symlink_to("link")
    with pytest.raises(SandboxError, match="hard link"):
        Sandbox(home / "project").relative("sym")
