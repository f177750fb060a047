from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.tools.loader import load_tools
from aeon_core.tools.registry import ToolRegistry, default_registry

MODULE = '''
from aeon_core.tools.decorator import tool
from aeon_core.tools.registry import default_registry
from aeon_core.tools.registry import CalculatorTool, EchoTool
import aeon_test_helper

def shout(text: str) -> str:
    """Shout."""
    return text.upper() + aeon_test_helper.MARK

@tool(name="whisper")
def low(text: str) -> str:
    """Whisper."""
    return text.lower()

class Needy(EchoTool):
    def __init__(self, key):
        pass

class Exiting(EchoTool):
    def __init__(self):
        raise SystemExit(3)

class Space:
    inner = [shout, low]

echo = EchoTool()
Echo = EchoTool
both = [EchoTool, CalculatorTool()]
registry = default_registry()
nothing = []
number = 5
wrong = [EchoTool(), 5]
doubled = [EchoTool(), EchoTool()]
print("loaded")
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A folder with a module of tools; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    (tmp_path / "aeon_test_tools.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "aeon_test_helper.py").write_text("MARK = '!'\n", encoding="utf-8")
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("aeon_test"):
            del sys.modules[name]


def load(project: Path, spec: str) -> ToolRegistry:
    registry = ToolRegistry()
    load_tools(spec, registry, project)
    return registry


@pytest.mark.parametrize(
    ("attribute", "names"),
    [
        ("echo", ["echo"]),
        ("Echo", ["echo"]),
        ("shout", ["shout"]),
        ("low", ["whisper"]),
        ("both", ["echo", "calculator"]),
        ("registry", ["echo", "calculator"]),
        ("Space.inner", ["shout", "whisper"]),
    ],
)
def test_named_tools_are_registered(project: Path, attribute: str, names: list[str]) -> None:
    assert [tool.name for tool in load(project, f"aeon_test_tools:{attribute}")] == names


def test_a_loaded_tool_can_import_neighbouring_modules(project: Path) -> None:
    tool = load(project, "aeon_test_tools:shout").get("shout")
    assert tool is not None
    assert tool.invoke(text="hi") == {"result": "HI!"}


def test_the_project_root_comes_first_and_the_path_is_restored(project: Path) -> None:
    (project / "aeon_test_path.py").write_text(
        "import sys\nFIRST = sys.path[0]\nsys.path.append('/added/by/import')\n"
        "from aeon_core.tools.registry import EchoTool\n",
        encoding="utf-8",
    )
    before = list(sys.path)
    try:
        load(project, "aeon_test_path:EchoTool")
        first: str = sys.modules["aeon_test_path"].FIRST
        assert first == str(project.resolve())
        assert sys.path == [*before, "/added/by/import"]
    finally:
        sys.path[:] = before


def test_module_output_stays_off_stdout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(project, "aeon_test_tools:echo")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "loaded\n"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("aeon_test_tools", "expected files, shell, mcp or module:attribute"),
        ("", "expected files, shell, mcp or module:attribute"),
        (":echo", "expected files, shell, mcp or module:attribute"),
        ("aeon_test_tools:", "expected files, shell, mcp or module:attribute"),
        (".aeon_test_tools:echo", "expected files, shell, mcp or module:attribute"),
        ("aeon_test_tools.py:echo:x", "expected files, shell, mcp or module:attribute"),
        ("aeon_test_absent:echo", "no module 'aeon_test_absent' in"),
        ("aeon_test_tools.inner:echo", "no module 'aeon_test_tools.inner' in"),
        ("aeon_test_tools:absent", "module 'aeon_test_tools' has no 'absent'"),
        ("aeon_test_tools:number", "expected a function or a Tool, got 5"),
        ("aeon_test_tools:wrong", "expected a function or a Tool, got 5"),
        ("aeon_test_tools:nothing", "it has no tools"),
        ("aeon_test_tools:doubled", "tools 'aeon_test_tools:doubled': a tool named 'echo' is already registered"),
        ("aeon_test_tools:Needy", "making the tool raised TypeError"),
        ("aeon_test_tools:Exiting", "making the tool raised SystemExit: 3"),
        ("aeon_test_raises:x", "importing 'aeon_test_raises' raised RuntimeError: two lines [redacted:"),
        ("aeon_test_exits:x", "importing 'aeon_test_exits' raised SystemExit: 9"),
        ("aeon_test_syntax:x", "importing 'aeon_test_syntax' raised SyntaxError"),
        (
            "aeon_test_lacks:x",
            "importing 'aeon_test_lacks' raised ModuleNotFoundError: No module named 'aeon_test_gone'",
        ),
        ("aeon_test_lazy:x", "reading 'x' raised KeyError"),
    ],
)
def test_every_failure_is_one_line_that_names_the_spec(project: Path, spec: str, message: str) -> None:
    files = {
        "raises": f"raise RuntimeError('two\\nlines sk-ant-{'a' * 30}')",
        "exits": "raise SystemExit(9)",
        "syntax": "def def",
        "lacks": "import aeon_test_gone",
        "lazy": "def __getattr__(name):\n    raise KeyError(name)",
    }
    for name, text in files.items():
        (project / f"aeon_test_{name}.py").write_text(text, encoding="utf-8")
    before = list(sys.path)
    with pytest.raises(UsageError) as caught:
        load(project, spec)
    assert str(caught.value).startswith(f"tools {spec!r}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    assert sys.path == before


def test_a_name_taken_by_a_default_tool_is_refused(project: Path) -> None:
    with pytest.raises(UsageError, match="a tool named 'echo' is already registered"):
        load_tools("aeon_test_tools:echo", default_registry(), project)


def test_a_module_that_python_would_shadow_is_refused(project: Path) -> None:
    (project / "json.py").write_text("from aeon_core.tools.registry import EchoTool as tool\n", encoding="utf-8")
    with pytest.raises(UsageError, match="another module 'json' is already imported; rename"):
        load(project, "json:tool")


def test_loading_twice_from_the_same_project_works(project: Path) -> None:
    load(project, "aeon_test_tools:echo")
    assert [tool.name for tool in load(project, "aeon_test_tools:both")] == ["echo", "calculator"]
