"""`./dev docs`: assembles the pages, generates the reference, and builds the site with its links checked."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.docs.reference import pages

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
BESIDE = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "screenshots")
"""Files outside `docs/` that pages link to; the site contains them."""


def main() -> int:
    """Build the site into `build/site` and return 0, or the builder's exit code if a link is broken."""
    assemble(SOURCE)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(ROOT / "zensical.toml")]
    done = subprocess.run(command, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    # If a link is broken, the builder reports it and then raises an exception that adds nothing.
    sys.stderr.write(done.stderr.partition("Traceback")[0])
    code = done.returncode
    if code == 0:
        print(f"the site is in {SITE.relative_to(Path.cwd()) if SITE.is_relative_to(Path.cwd()) else SITE}")
    return code


def assemble(target: Path) -> None:
    """Create the folder of pages from which the site is built, replacing an old one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target)
    for name, text in pages().items():
        (target / name).write_text(text)
    for page in target.rglob("*.md"):
        depth = len(page.relative_to(target).parts)
        outside = "../" * depth
        page.write_text(page.read_text().replace(f"]({outside}", f"]({'../' * (depth - 1)}"))
    for name in BESIDE:
        found = ROOT / name
        if found.is_dir():
            shutil.copytree(found, target / name)
        elif found.suffix == ".md":
            # These are next to `docs/`; on the site they are inside it.
            (target / name).write_text(re.sub(r"\]\(docs/", "](", found.read_text()))
        elif found.exists():
            shutil.copy(found, target / name)


if __name__ == "__main__":
    sys.exit(main())
