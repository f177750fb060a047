"""Writes below the examples of some pages what they print: `python -m tools.transcripts`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = tuple(DOCS / "how-to" / name for name in ("acp.md", "mcp.md"))
"""Pages that end with an example in Python and what it prints."""
_EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```text\n(?P<printed>.*?)^```$", re.MULTILINE | re.DOTALL)
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


def write_transcripts() -> list[Path]:
    """Write each page anew and return the pages."""
    for page in PAGES:
        text, (start, end) = page.read_text(), example(page).span("printed")
        page.write_text(text[:start] + transcript(page) + text[end:])
    return list(PAGES)


if __name__ == "__main__":
    sys.stdout.writelines(f"{page}\n" for page in write_transcripts())
