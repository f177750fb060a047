"""Updates the printed output below the examples of some pages: `python -m tools.transcripts`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from aeon_tui.cli.main import main as aeon_tui
from tools.yaml_editor import problems

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = tuple(DOCS / "how-to" / name for name in ("acp.md", "mcp.md"))
"""Pages that end with an example in Python and its output."""
EDITORS = DOCS / "how-to" / "configure.md"
"""The page that ends with a plan file and an editor's messages about it."""
RECORDINGS = DOCS / "how-to" / "test.md"
"""The page with a test that differs from its recording, and pytest's message about it."""
_TITLED = r'^```[a-z]+ title="{}"\n(?P<text>.*?)^```$'
_EXAMPLE = re.compile(
    r"^```(?:python|yaml)\n(?P<code>.*?)^```\n\n```text\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL
)
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


def portable(printed: str) -> str:
    """Return an example's output without the parts that differ each time."""
    return _RUN_ID.sub("RUN", printed).strip("\n") + "\n"


def example(page: Path) -> re.Match[str]:
    """Return the `code` of a page's last example, and its output as on the page."""
    return list(_EXAMPLE.finditer(page.read_text()))[-1]


def transcript(page: Path) -> str:
    """Run the example as a program in its own folder, where Aeon is installed, and return its output."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AEON_")}
    environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environ["PATH"]))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", example(page)["code"]],
            cwd=folder,
            env={**environ, "AEON_RUNS_DIR": str(Path(folder) / "runs")},
            check=True,
            capture_output=True,
            text=True,
        )
    return portable(done.stdout)


def editor_transcript() -> str:
    """Return an editor's messages about the page's plan file, in a project made by `aeon-tui init`. Needs npm."""
    with tempfile.TemporaryDirectory() as folder:
        aeon_tui(["init", "--project-root", folder])
        file = Path(folder) / "plan.yml"
        file.write_text(example(EDITORS)["code"])
        return "".join(f"{problem}\n" for problem in problems(file))


def titled(page: Path, title: str) -> re.Match[str]:
    """Return the `text` of a page's block with a title."""
    found = re.search(_TITLED.format(re.escape(title)), page.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{page} has no block {title!r}"
    return found


def recording_transcript() -> str:
    """Return pytest's report on the page's test after it was recorded and its task has changed."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("AEON_", "PYTEST_"))}
    # The plugins of the development tools take seconds to import.
    environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    with tempfile.TemporaryDirectory() as folder:

        def pytest(*options: str) -> subprocess.CompletedProcess[str]:
            plugins = ["-p", "pytest_aeon", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", "-q", *plugins, *options]
            return subprocess.run(command, cwd=folder, env=environ, check=False, capture_output=True, text=True)

        test = Path(folder) / "tests" / "test_words.py"
        test.parent.mkdir()
        test.write_text(titled(RECORDINGS, "tests/test_words.py")["text"])
        for options in (["--aeon-record"], []):
            pytest(*options).check_returncode()
        test.write_text(test.read_text().replace("to be or not to be", "to be"))
        lines = pytest("tests/test_words.py").stdout.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if line.startswith((">", "E")))


def write_transcripts() -> list[Path]:
    """Replace the transcript of each page and return the pages."""
    printed = {page: (transcript(page), example(page).span("printed")) for page in PAGES}
    printed[RECORDINGS] = recording_transcript(), titled(RECORDINGS, "output").span("text")
    if shutil.which("npx") is not None:
        printed[EDITORS] = editor_transcript(), example(EDITORS).span("printed")
    for page, (lines, (start, end)) in printed.items():
        text = page.read_text()
        page.write_text(text[:start] + lines + text[end:])
    return list(printed)


if __name__ == "__main__":
    sys.stdout.writelines(f"{page}\n" for page in write_transcripts())
