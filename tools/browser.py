"""A real browser for tests and pictures: the Chromium of this machine, driven by Playwright, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """Return the program, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


@contextmanager
def browser(program: str) -> Iterator[Browser]:
    """Run the browser for as long as it is used. It reaches this machine alone."""
    from playwright.sync_api import sync_playwright

    # Its own sandbox needs rights that a container's root has not; it opens pages of ours only.
    options = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=options)
        try:
            yield started
        finally:
            started.close()
