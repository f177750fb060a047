"""Reports on runs and workflows as text, Markdown, HTML and JSON."""

import re
from typing import Literal

from aeon_core.escape import escape_controls

ExportFormat = Literal["md", "html", "json"]
"""The formats of report files."""


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block of Markdown, whatever it contains."""
    shown = escape_controls(text, keep="\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"
