"""This machine's Chromium, driven by Playwright: for tests, and for pictures of a report and of what `serve` shows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from aeon_tui.reports.export import export_journal
from tools.pictures import RUNS_DIR, journal_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Return the program, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Run the browser while it is used. It can reach only this machine."""
    from playwright.sync_api import sync_playwright

    # Its own sandbox needs rights that root in a container lacks; it opens only our own pages.
    options = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield started
        finally:
            started.close()


DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}
SERVED = "document.body.classList.contains('-first-byte')"


def record_web_pictures(folder: Path) -> list[Path]:
    """Take pictures of the recorded runs below the working directory, and return the files."""
    program = chromium()
    if program is None:
        sys.stderr.write("no Chromium was found: the pictures of a browser stay as they are\n")
        return []
    report = Path("report.html")
    report.write_text(export_journal(journal_of("open"), "html", RUNS_DIR), encoding="utf-8")
    made = [folder / f"{name}.png" for name in ("report", "report-dark", "report-phone", "serve")]
    with browser(program) as chrome:
        for path, size, scheme, keys in (
            (made[0], DESKTOP, "light", ("[",)),
            (made[1], DESKTOP, "dark", ("/", *"token")),
            (made[2], PHONE, "light", ()),
        ):
            page = chrome.new_page(viewport=size, color_scheme=scheme, device_scale_factor=1)  # type: ignore[arg-type]
            page.goto(report.absolute().as_uri())
            page.locator("html[data-ready]").wait_for(state="attached")
            for key in keys:
                page.keyboard.press(key)
            page.screenshot(path=path)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "aeon_tui", "serve", "--port", str(port), "--runs-dir", str(RUNS_DIR)]
        python_path = os.pathsep.join(filter(None, sys.path))
        environment = {**os.environ, "PYTHONPATH": python_path, "PYTHONSAFEPATH": "1"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as server:
            try:
                assert server.stderr is not None
                server.stderr.readline()
                page = chrome.new_page(viewport=DESKTOP)
                page.goto(f"http://127.0.0.1:{port}/")
                page.wait_for_function(SERVED)
                page.wait_for_timeout(3_000)
                page.keyboard.press("Enter")
                page.wait_for_timeout(5_000)
                page.screenshot(path=made[3])
            finally:
                server.terminate()
    return made
