from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import IO, Any

import jsonschema_rs
import pytest

from aeon_core.config.keys import APP_KEYS, KEYS
from aeon_core.config.loading import load_config, read_config_file
from aeon_core.config.schema import RunConfig
from aeon_core.yaml_file import parse_yaml
from aeon_tui.cli.init import config_template
from tests.aeon_tui.cli.conftest import Cli

CONFIG = Path(".aeon/config.yml")


def uncommented(template: str) -> str:
    return "\n".join(line.removeprefix("# ") for line in template.splitlines() if not line.startswith("# yaml-"))


def test_the_template_sets_nothing_and_uncommented_sets_every_default() -> None:
    assert read_config_file(CONFIG, config_template()) == {}
    assert set(parse_yaml(uncommented(config_template()))) == {*KEYS, *APP_KEYS}
    found = read_config_file(CONFIG, uncommented(config_template()))
    assert (found.pop("approve"), found.pop("keys")) == (["pass", "tool"], {})
    assert RunConfig(**found) == RunConfig()


def test_init_creates_missing_files_and_overwrites_nothing(cli: Cli) -> None:
    Path(".aeon").rmdir()
    done = cli("init")
    assert (done.code, done.out, done.err.count("created ")) == (0, "", 6)
    assert f"this project's runs are now stored in {Path('.aeon/runs').absolute()}" in done.err
    first = CONFIG.read_text().splitlines()[0]
    schema = CONFIG.parent / first.removeprefix("# yaml-language-server: $schema=")
    assert json.loads(schema.read_text())["title"] == "config-file"
    CONFIG.write_text("ttl: 9\n")
    Path(".aeon/.gitignore").unlink()
    again = cli("init")
    assert (again.code, again.err.count(" (already exists)\n"), again.err.count("created ")) == (0, 5, 1)
    assert CONFIG.read_text() == "ttl: 9\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_adds_the_configuration_but_no_runs(cli: Cli) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    cli("init")
    assert cli("run", "-m", "simulated:default", "add 5 and 10").code == 0
    Path(".aeon/runs/left.inbox").touch()
    subprocess.run(["git", "add", "-A"], check=True)
    staged = subprocess.run(["git", "diff", "--cached", "--name-only"], capture_output=True, text=True, check=True)
    added = staged.stdout.split()
    assert {".aeon/config.yml", ".aeon/.gitignore", ".aeon/schemas/plan-file.json"} <= set(added)
    assert not any("runs" in name for name in added)


def test_init_refuses_a_file_as_folder_and_follows_no_link(cli: Cli, tmp_path: Path) -> None:
    Path(".aeon").rmdir()
    (tmp_path / "elsewhere").mkdir()
    Path(".aeon").symlink_to("elsewhere")
    done = cli("init", "--project-root", str(tmp_path))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "remove it first" in done.err
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert cli("init", "--project-root", "nowhere").code == 2


def test_a_file_that_cannot_be_created_is_exit_2_and_one_line(cli: Cli) -> None:
    Path(".aeon/schemas").write_text("a file")
    done = cli("init")
    assert done.code == 2
    assert re.search(
        r"aeon-tui: cannot create '.*plan-file\.json': File exists; fix that, and run .* again\n$", done.err
    )
    Path(".aeon/schemas").unlink()
    assert cli("init").code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_file_that_cannot_be_written_in_full_is_removed_and_created_next_time(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(file: Path, mode: str = "r", **options: Any) -> IO[Any]:
        made = opened(file, mode, **options)
        if file.name == "config.yml" and mode == "x":
            made.close()
            # A device on which nothing fits takes the place of the new file's disk.
            return opened(Path("/dev/full"), "w", **options)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        done = cli("init")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "No space left on device" in done.err
    assert not Path(".aeon/config.yml").exists()
    assert cli("init").code == 0
    assert Path(".aeon/config.yml").read_text() == config_template()


def test_a_file_that_names_its_schema_is_valid(cli: Cli, tmp_path: Path) -> None:
    """JSON has no comments: there, `$schema` is a key."""
    cli("init")
    plan = {"goal": "add", "steps": [{"step_id": "s1", "description": "add", "tool": "calculator"}]}
    files = {
        "plan-file": (Path("plan.json"), plan, {"goal": "add"}),
        "criteria-file": (Path("criteria.json"), {"completeness": 0.9}, {"completeness": 2}),
        "config-file": (CONFIG, {"ttl": 9, "criteria": "../criteria.json"}, {"tlt": 9}),
    }
    for name, (file, data, wrong) in files.items():
        schema = json.loads(Path(f".aeon/schemas/{name}.json").read_text())
        named = {"$schema": f".aeon/schemas/{name}.json", **data}
        file.write_text(json.dumps(named))
        assert jsonschema_rs.is_valid(schema, named)
        assert not jsonschema_rs.is_valid(schema, wrong)
    assert cli("lint", "plan.json", "--json").code == 0
    assert load_config(start=tmp_path).config.ttl == 9
    done = cli("run", "-m", "simulated:default", "--plan", "plan.json", "--criteria", "criteria.json", "add 5 and 10")
    assert done.code == 0
