"""Reports on runs and workflows as text, Markdown, HTML and JSON."""

import re
from html import escape
from typing import Literal

from aeon_core.escape import escape_controls

ExportFormat = Literal["md", "html", "json"]
"""The formats of report files."""


def fenced(text: str, language: str = "") -> str:
    """Return a text as a code block of Markdown, whatever it contains."""
    shown = escape_controls(text, keep="\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    return f"{fence}{language}\n{shown}\n{fence}"


_MARKUP = re.compile(r"[\\`*_\[\]|~$]")
_BLOCK = re.compile(r"^(?=[#+=\-])|^(\d{1,9})(?=[.)])")
"""What would start a heading, a list or a rule at the beginning of a line."""


def literal(text: str) -> str:
    """Return a text as one line of Markdown, with every character literal."""
    shown = escape_controls(text, keep="\t").replace("\t", "    ").rstrip()
    indent = len(shown) - len(shown.lstrip(" "))
    escaped = escape(_MARKUP.sub(r"\\\g<0>", shown[indent:]), quote=False)
    return "&nbsp;" * indent + _BLOCK.sub(r"\1\\", escaped)
