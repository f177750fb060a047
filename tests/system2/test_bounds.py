"""What the workflow neither does nor exceeds (REQ-062, REQ-101, REQ-102, REQ-142, REQ-160, REQ-N04, REQ-N06)."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from aeon_core.llm.base import LLMAdapter
from aeon_core.llm.bedrock import BedrockModel
from aeon_core.llm.llama_cpp import MAX_CONTEXT
from system2.agents import AgentLibrary
from system2.connect import connect_model
from system2.converse import ToolUseRequest
from system2.settings import WorkflowSettings
from system2.simulated import SimulatedAgents
from system2.toolbox import Toolbox
from tests.aeon_core.llm.converse_server import no_credentials, set_credentials
from tests.aeon_core.llm.tiny_gguf import write_tiny_gguf
from tests.cpu_limit import cpu_limit
from tests.system2.kit import CONTRACT, Bench, agent, done, uses
from tests.system2.workflows import TASK, Case

ROOT = Path(__file__).parents[2]
FILES = 10_000
SECONDS = 30.0


def _imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.exhaustive
def test_only_one_module_imports_boto3() -> None:
    naming = [path for path in (ROOT / "core").rglob("*.py") if b"boto" in path.read_bytes()]
    found = [path for path in naming if _imported(path) & {"boto3", "botocore"}]
    assert [path.relative_to(ROOT).as_posix() for path in found] == ["core/aeon_core/llm/bedrock.py"]


def test_the_package_opens_no_connection_of_its_own() -> None:
    network = {"socket", "ssl", "http", "urllib", "httpx", "requests", "aiohttp", "websockets", "asyncio"}
    assert [path.name for path in (ROOT / "core/system2").rglob("*.py") if _imported(path) & network] == []


def test_bedrock_is_used_unless_another_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    monkeypatch.setenv("AEON_MODEL", "openai:gpt-4o")
    for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    for settings in (WorkflowSettings(), WorkflowSettings(model="anthropic.claude-3-haiku-20240307-v1:0")):
        model = connect_model(None, settings)
        assert isinstance(model, BedrockModel)
        assert model.name.startswith(settings.model or "")


@pytest.mark.parametrize(
    ("region", "place"),
    [
        ("eu-central-1", "eu"),
        ("ap-southeast-2", "apac"),
        ("us-east-2", "us"),
        ("us-gov-west-1", "us-gov"),
        ("ca-central-1", "us"),
    ],
)
def test_the_default_model_is_the_inference_profile_of_the_region_whatever_names_that(
    region: str, place: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    no_credentials(monkeypatch, tmp_path)
    set_credentials(monkeypatch)
    found = [connect_model(None, WorkflowSettings(bedrock={"region": region})).model]
    monkeypatch.setenv("AWS_REGION", region)
    found.append(connect_model(None, WorkflowSettings()).model)
    monkeypatch.delenv("AWS_REGION")
    (tmp_path / "aws-config").write_text(f"[default]\nregion = {region}\n")
    found.append(connect_model(None, WorkflowSettings()).model)
    assert found == [f"bedrock:{place}.anthropic.claude-sonnet-4-20250514-v1:0"] * 3
    written = WorkflowSettings(model="us.anthropic.claude-sonnet-4-20250514-v1:0")
    assert connect_model(None, written).model == f"bedrock:{written.model}"


def test_an_unstreamed_reply_may_take_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def connect(name: str, **options: object) -> LLMAdapter:
        asked.append(options)
        return SimulatedAgents("default")

    monkeypatch.setattr("system2.connect.connect", connect)
    connect_model(None, WorkflowSettings())
    assert asked[0]["timeout"] == 600


def test_agent_files_of_other_programs_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "roo").mkdir()
    text = "---\nname: executor\ndescription: theirs\ntools: Read\n---\nDo it their way.\n"
    for name in ("roo/executor.yml", "roo/executor.md", ".roomodes"):
        (tmp_path / name).write_text(text)
    library = AgentLibrary(tmp_path, pytest.fail)
    assert library.is_shipped("executor")


def test_installation_refuses_python_3_10_and_older() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert project["scripts"]["system2"] == "system2.__main__:main"


@pytest.mark.parametrize("minor", [8, 9, 10])
def test_an_older_python_gets_one_line_naming_the_required_one(minor: int) -> None:
    package = ROOT / "core" / "system2"
    for name in ("__init__.py", "__main__.py"):
        ast.parse((package / name).read_text(), feature_version=(3, minor))
    # Nothing of ours may be imported before the check: an old Python cannot read it.
    code = f"import sys, runpy; sys.version_info = (3, {minor}, 1); sys.modules['aeon_core'] = None; "
    ran = subprocess.run(
        [sys.executable, "-c", f"{code}runpy.run_module('system2', run_name='__main__')"],
        env={"PYTHONPATH": str(ROOT / "core")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert ran.stderr == f"system2: needs Python 3.11 or newer, this is 3.{minor}; run it with a newer one\n"


@pytest.mark.exhaustive
def test_ten_thousand_files_are_searched_in_time(tmp_path: Path) -> None:
    for number in range(FILES):
        folder = tmp_path / f"d{number % 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.py").write_text("needle\n" if number == FILES - 1 else "hay\n")
    toolbox = Toolbox(agent("Grep", "Glob"), Bench(tmp_path).context)
    for name, given in (("Grep", {"pattern": "need.e"}), ("Glob", {"pattern": f"**/f{FILES - 1}.py"})):
        with cpu_limit(SECONDS):
            result = toolbox.use(ToolUseRequest("u1", name, given))
        assert result.content == f"d{(FILES - 1) % 100}/f{FILES - 1}.py"


def test_a_simulated_workflow_opens_no_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a connection is opened")

    # A listener of its own tries out whether commands are isolated.
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(f"socket.socket.{name}", refused)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: pytest.fail("a name is looked up"))
    assert Case(tmp_path).orchestrator.run(TASK).exit_code == 0


@pytest.mark.exhaustive
def test_a_conversation_fills_a_window_of_200_000_tokens(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(("w" * 99 + "\n") * 900)
    bench = Bench(tmp_path, *[uses(("Read", {"file_path": "a"}))] * 6, done())
    session = bench.session()
    assert session.run(CONTRACT).halted is None
    assert sum(len(str(turn)) for turn in session.history) / 3.5 > 150_000


def test_a_model_in_the_process_gets_the_context_window_that_the_settings_name(tmp_path: Path) -> None:
    name = f"llama-cpp:{write_tiny_gguf(tmp_path / 'm.gguf', context=100_000)}"
    assert connect_model(name, WorkflowSettings()).context_window == MAX_CONTEXT
    assert connect_model(name, WorkflowSettings(context_window_tokens=30_000)).context_window == 30_000
