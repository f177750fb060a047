"""Reports on runs and workflows as text, Markdown, HTML and JSON."""

from typing import Literal

ExportFormat = Literal["md", "html", "json"]
"""The formats of report files."""
