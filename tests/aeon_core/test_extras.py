from __future__ import annotations

import json
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from aeon_core import installation
from aeon_core.installation import install_command, missing_extra
from aeon_tui.health import EXTRAS

NEEDED = [
    "pydantic>=2",
    "boto3<2,>=1.44; extra == 'bedrock'",
    "botocore<2,>=1.44; extra == 'bedrock'",
    'mcp<3,>=2.3; python_version >= "3.11" and extra == "mcp"',
    "burr[tracking-client]; extra == 'bench'",
]


class Installed:
    """A distribution's metadata; `files` are its other files, by name."""

    def __init__(self, **files: str) -> None:
        self.requires, self.files = NEEDED, files

    def read_text(self, name: str) -> str | None:
        return self.files.get(name.partition(".")[0])


def install(monkeypatch: pytest.MonkeyPatch, prefix: Path, *packages: str, **files: str) -> None:
    """Have the distribution be installed below a prefix, with these packages of others."""

    def distribution(name: str) -> Installed:
        if name not in ("aeon-tui", *packages):
            raise PackageNotFoundError(name)
        return Installed(**files)

    monkeypatch.setattr(installation, "distribution", distribution)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))


def test_an_extra_is_installed_if_all_its_packages_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, "boto3", "mcp")
    assert installation.extras() == {"bedrock": False, "mcp": True, "bench": False}


@pytest.mark.parametrize(
    ("marker", "files", "command"),
    [
        ("", {"INSTALLER": "pip\n"}, "pip install 'aeon-tui[mcp]'"),
        ("uv-receipt.toml", {"INSTALLER": "uv"}, "uv tool install --with 'aeon-tui[bench,mcp]' aeon-tui"),
        (
            "uv-receipt.toml",
            {"direct_url": json.dumps({"url": "file:///my%20dist/a.whl"})},
            "uv tool install --with 'aeon-tui[bench,mcp]' '/my dist/a.whl'",
        ),
        (
            "uv-receipt.toml",
            {"direct_url": json.dumps({"url": "https://host/aeon", "vcs_info": {"vcs": "git"}})},
            "uv tool install --with 'aeon-tui[bench,mcp]' git+https://host/aeon",
        ),
        ("pipx_metadata.json", {}, "pipx inject aeon-tui 'aeon-tui[mcp]'"),
    ],
)
def test_the_command_fits_how_aeon_was_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, marker: str, files: dict[str, str], command: str
) -> None:
    install(monkeypatch, tmp_path, "burr", **files)
    (tmp_path / marker).touch()
    assert install_command("mcp") == command


def test_other_environments_get_their_own_install_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path, INSTALLER="uv")
    monkeypatch.setattr(installation, "find_spec", lambda _: None)
    assert install_command("mcp") == "uv pip install 'aeon-tui[mcp]'"
    install(monkeypatch, tmp_path, INSTALLER="pip")
    monkeypatch.delenv("VIRTUAL_ENV")
    assert install_command("mcp") == f"{sys.executable} -m pip install 'aeon-tui[mcp]'"


def test_a_missing_extra_is_exit_3_with_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    install(monkeypatch, tmp_path)
    error = missing_extra("--scheduler", "dask")
    assert error.exit_code == 3
    assert error.message == (
        "--scheduler needs the extra 'dask', which is not installed; run: pip install 'aeon-tui[dask]'"
    )


def test_doctor_checks_every_extra_once() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert sorted([*EXTRAS, "bedrock", "local", "mcp", "otel"]) == sorted(project["optional-dependencies"])
