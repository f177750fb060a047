"""Generates `screenshots/` and the transcripts in `docs/`: `python -m tools.screenshots [FOLDER]`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from aeon_core.errors import AeonError
from aeon_tui.screens.run.screen import RunScreen
from tools.casts import record_casts
from tools.pictures import PICTURES, RUNS, Picture, record
from tools.transcripts import write_transcripts
from tools.web_pictures import record_web_pictures
from tools.workflow_pictures import WORKFLOW_PICTURES, record_workflow

FONT_SOURCES = re.compile(r',\s*url\("[^"]*"\)\s*format\("[^"]*"\)')
SETTLED = 5
"""How many times in a row a screen must look the same."""
MOST_LOOKS = 1_000
KEYS_OF_OTHERS = ("AEON_", "AWS_", "ANTHROPIC_", "OPENAI_", "XDG_")


async def take(picture: Picture, target: Path) -> None:
    """Open the app, press the keys, and write the screen as SVG."""
    app = picture.app()
    if picture.theme is not None:
        app.theme = picture.theme
    async with app.run_test(size=picture.size) as pilot:
        await pilot.pause()
        if isinstance(app.screen, RunScreen):
            app.screen.tick()
        await settled(pilot)
        for key in picture.keys:
            await pilot.press(key)
        target.write_text(await settled(pilot), encoding="utf-8")


async def settled(pilot: Pilot[None]) -> str:
    """Return the picture of the screen once it no longer changes. Raises AeonError if it never stops changing."""
    app, same, before = pilot.app, 0, ""
    for _ in range(MOST_LOOKS):
        for written in (*app.screen.query(Input), *app.screen.query(TextArea)):
            written.cursor_blink = False
        await app.workers.wait_for_complete()
        await pilot.pause(0.02)
        now = portable(app.export_screenshot(title="aeon-tui"))
        same, before = (same + 1, now) if now == before else (0, now)
        if same == SETTLED:
            return now
    raise AeonError(f"{type(app.screen).__name__} keeps changing")


def portable(svg: str) -> str:
    """Return the picture without its random id and without fonts from the network."""
    return re.sub(r"terminal-\d+-", "terminal-", FONT_SOURCES.sub("", svg))


async def make(folder: Path) -> list[Path]:
    """Write every picture into the folder and return the files."""
    made = []
    temporary = tempfile.TemporaryDirectory
    with temporary() as project, temporary() as state, contextlib.chdir(project):
        os.environ |= {"HOME": project, "XDG_STATE_HOME": state}
        for run in RUNS:
            record(run)
        record_workflow()
        for picture in [*PICTURES, *WORKFLOW_PICTURES]:
            made.append(folder / f"{picture.name}.svg")
            await take(picture, made[-1])
        made += await record_casts(folder, lambda pilot: portable(pilot.app.export_screenshot(title="aeon-tui")))
        made += await asyncio.to_thread(record_web_pictures, folder)
    return made


def main() -> int:
    """Generate the pictures and, unless another folder is named, the transcripts; print where they are."""
    default = Path(__file__).resolve().parent.parent / "screenshots"
    folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else default
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = "UTC"
    for name in [name for name in os.environ if name == "NO_COLOR" or name.startswith(KEYS_OF_OTHERS)]:
        del os.environ[name]
    time.tzset()
    for path in [*asyncio.run(make(folder)), *(write_transcripts() if folder == default else ())]:
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
