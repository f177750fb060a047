"""What holds for the project as a whole: the kernel's size, and what an import brings with it (core FR-042, SC-010)."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import aeon_core
import aeon_widgets
import system2
from tests.aeon_core.journal.build import whole_run, write
from tests.sampling import sample

ROOT = Path(__file__).parents[1]
PATHS = os.pathsep.join(str(ROOT / part) for part in (".", "core", "widgets", "themes"))


def loaded_by(code: str, *arguments: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after running `code`."""
    script = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


SCREEN = {"textual", "rich"}
SDKS = {"openai", "anthropic", "boto3", "httpx", "httpx2", "acp", "mcp"}


def test_the_kernel_stays_under_800_raw_lines() -> None:
    kernel = ROOT / "core" / "aeon_core" / "kernel"
    lines = sum(len((kernel / name).read_text().splitlines()) for name in ("orchestrator.py", "executor.py"))
    assert lines < 800


@pytest.mark.parametrize(("name", "most"), [("validation", 900), ("convergence", 600), ("supervisor", 700)])
def test_validation_stays_small(name: str, most: int) -> None:
    core = ROOT / "core" / "aeon_core"
    files = [*core.glob(f"{name}.py"), *(core / name).rglob("*.py")]
    assert 100 < sum(len(file.read_text().splitlines()) for file in files) <= most


@pytest.mark.parametrize(
    "code",
    [
        "import aeon_core",
        "import aeon_core; [getattr(aeon_core, name) for name in aeon_core.__all__]",
        "import aeon_core.llm.openai, aeon_core.llm.anthropic",
    ],
)
def test_the_core_imports_neither_a_screen_nor_an_sdk(code: str) -> None:
    assert not loaded_by(code) & (SCREEN | SDKS)


def test_a_run_loads_neither_the_tools_it_lacks_nor_what_checks_their_settings(tmp_path: Path) -> None:
    config = {"policy": {"allow": ["calculator"]}, "runs_dir": str(tmp_path)}
    run = f"Orchestrator('simulated:default', config={config}).run('add 5 and 10')"
    loaded = loaded_by(f"from aeon_core import Orchestrator; {run}")
    assert "pydantic" in loaded
    assert not loaded & (SCREEN | SDKS | {"regex", "pathspec", "asyncio"})


@pytest.mark.parametrize("package", [aeon_core, aeon_widgets, system2])
def test_type_checkers_see_the_names_that_exist(package: ModuleType) -> None:
    tree = ast.parse(Path(str(package.__file__)).read_text())
    declared = next(
        each for each in tree.body if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"
    )
    imports = [each for each in declared.body if isinstance(each, ast.ImportFrom)]
    assert sorted(name.asname for each in imports for name in each.names if name.asname) == package.__all__
    for each in imports:
        assert all(hasattr(import_module(str(each.module)), name.name) for name in each.names)


def test_importing_the_entry_points_loads_neither_the_kernel_nor_pydantic() -> None:
    loaded = loaded_by("from aeon_core import Orchestrator, connect\nassert callable(Orchestrator)")
    assert not loaded & {"pydantic", "pydantic_core", "jsonschema_rs", "asyncio", "yaml", "tenacity", "json_repair"}


def test_a_run_that_needs_no_retry_and_no_repair_loads_neither_library() -> None:
    code = "from aeon_core import Orchestrator, connect\n"
    code += "Orchestrator(connect('simulated:default'), journal=False).run('add 5 and 10')"
    assert not loaded_by(code) & {"tenacity", "asyncio", "json_repair", "regex", "pathspec", "genai_prices"}


@pytest.mark.parametrize("arguments", [["--help"], ["runs"], ["runs", "--json"]])
def test_light_commands_stay_light(arguments: list[str]) -> None:
    code = "import sys, aeon_tui.cli.main\ntry:\n    aeon_tui.cli.main.main(sys.argv[1:])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code, *arguments) & ({"textual"} | SDKS)


FIRST_SCREEN = """
import asyncio, os, sys
import aeon_tui.app, aeon_tui.cli.main, aeon_tui.cli.output
from aeon_tui.screens import onboarding
from aeon_tui.screens.browser.screen import BrowserScreen, BrowserTitle

onboarding.LOOK_SECONDS = 3600  # the models are looked for after the first paint, and need the data's

def run(app):
    async def first_paint():
        async with app.run_test() as pilot:
            await pilot.pause()
            assert isinstance(app.screen, BrowserScreen)
            assert app.screen.query_one(BrowserTitle).size.height == 1
            await app.workers.wait_for_complete()
    asyncio.run(first_paint())

aeon_tui.app.AeonApp.run = run
aeon_tui.cli.output.has_screen = lambda: True
assert aeon_tui.cli.main.main(sys.argv[1:]) == 0
"""


@pytest.mark.parametrize(
    "environ", sample([{"AEON_MODEL": "simulated:default", "AEON_RUNS_DIR": "kept", "AEON_TTL": "9"}, {}])
)
def test_the_first_screen_and_the_run_list_do_not_load_pydantic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    screen = loaded_by(FIRST_SCREEN)
    assert "textual" in screen
    assert not screen & ({"pydantic", "pydantic_core", "yaml"} | SDKS)
    runs = loaded_by("import aeon_tui.cli.main; aeon_tui.cli.main.main(['runs', '--json'])")
    assert not runs & {"pydantic", "pydantic_core", "yaml", "rich"}


PAST_RUN = """
import asyncio, sys
import aeon_tui.app, aeon_tui.cli.main, aeon_tui.cli.output
from aeon_widgets.outcome import Outcome

def run(app):
    async def first_paint():
        async with app.run_test() as pilot:
            while app.is_running and (
                not app.screen.query(Outcome) or "The sum is 15." not in app.screen.query_one(Outcome).source
            ):
                await pilot.pause(0.01)
            assert app.is_running
    asyncio.run(first_paint())

aeon_tui.app.AeonApp.run = run
aeon_tui.cli.output.has_screen = lambda: True
assert aeon_tui.cli.main.main(["watch", sys.argv[1]]) == 0
"""


def test_a_past_run_is_shown_in_the_app_without_pydantic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = loaded_by(PAST_RUN, str(write(tmp_path, *whole_run())))
    assert "textual" in loaded
    assert not loaded & ({"pydantic", "pydantic_core", "yaml", "hmac"} | SDKS)  # hmac: nothing is redacted


def test_a_config_file_of_plain_values_does_not_load_pydantic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "config.yml"
    file.write_text("model: simulated:default\nttl: 20\nruns_dir: kept\ntools: [a:b]\n")
    loaded = loaded_by(
        "import sys, aeon_tui.cli.main; aeon_tui.cli.main.main(sys.argv[1:])", "runs", "--config", str(file)
    )
    assert "yaml" in loaded
    assert "pydantic" not in loaded


def test_help_does_not_load_pydantic() -> None:
    code = "import aeon_tui.cli.main\ntry:\n    aeon_tui.cli.main.main(['--help'])\nexcept SystemExit:\n    pass"
    assert not loaded_by(code) & {"pydantic", "yaml", "aeon_core", "rich"}


def test_one_class_name_means_one_thing() -> None:
    """The exceptions are the specification's: each part has an Orchestrator, and a Tool is described by another."""
    files = [file for part in ("aeon_tui", "core", "widgets", "themes") for file in (ROOT / part).rglob("*.py")]
    names = Counter(name for file in files for name in re.findall(r"^class ([A-Z]\w*)", file.read_text(), re.MULTILINE))
    assert {name for name, times in names.items() if times > 1} == {"Orchestrator", "Tool"}


def test_the_source_distribution_holds_what_its_tests_read() -> None:
    read = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r'\bROOT / "([^"/]+)', path.read_text())
        if (ROOT / name).exists()
    }
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert read - {*settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"], "pyproject.toml"} == set()
    assert {"README.md", "action.yml"} <= read
