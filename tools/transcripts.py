"""Writes below the examples of some pages what they print: `python -m tools.transcripts`."""

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
"""Pages that end with an example in Python and what it prints."""
EDITORS = DOCS / "how-to" / "configure.md"
"""The page that ends with a plan file and what an editor says about it."""
_EXAMPLE = re.compile(
    r"^```(?:python|yaml)\n(?P<code>.*?)^```\n\n```text\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL
)
_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


def portable(printed: str) -> str:
    """Return what an example prints without what differs each time."""
    return _RUN_ID.sub("RUN", printed).strip("\n") + "\n"


def example(page: Path) -> re.Match[str]:
    """Return the `code` of a page's last example and what the page says is `printed`."""
    return list(_EXAMPLE.finditer(page.read_text()))[-1]


def transcript(page: Path) -> str:
    """Return what the example prints, run as a program in a folder of its own."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("AEON_")}
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
    """Return what an editor says about the page's plan file, in a project as `aeon-tui init` makes it. Needs npm."""
    with tempfile.TemporaryDirectory() as folder:
        aeon_tui(["init", "--project-root", folder])
        file = Path(folder) / "plan.yml"
        file.write_text(example(EDITORS)["code"])
        return "".join(f"{problem}\n" for problem in problems(file))


def write_transcripts() -> list[Path]:
    """Write each page anew and return the pages."""
    printed = {page: transcript(page) for page in PAGES}
    if shutil.which("npx") is not None:
        printed[EDITORS] = editor_transcript()
    for page, lines in printed.items():
        text, (start, end) = page.read_text(), example(page).span("printed")
        page.write_text(text[:start] + lines + text[end:])
    return list(printed)


if __name__ == "__main__":
    sys.stdout.writelines(f"{page}\n" for page in write_transcripts())
