"""What is in a page that was exported: its elements, what can be read of it, and the texts that it holds back."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_VOID = {"meta", "input", "br", "hr"}


class Page(HTMLParser):
    """A page as a browser without JavaScript reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.size = len(text.encode())
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.lines: list[str] = []
        """What is to be read, a line for each block."""
        self._open: list[str] = []
        self._packed = ""
        self.feed(text)
        self.close()
        assert self._open == [], "every element is closed"

    @property
    def text(self) -> str:
        return "\n".join(" ".join(line.split()) for line in "".join(self.lines).split("\n") if line.strip())

    @property
    def archive(self) -> dict[str, Any]:
        """The states of the run, and under `texts` the long texts."""
        found = json.loads(zlib.decompress(base64.b64decode(self._packed)))
        assert isinstance(found, dict)
        return found

    def values(self, name: str) -> list[str]:
        """Return the values of an attribute, wherever it is."""
        return [value or "" for key, value in self.attributes if key == name]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self._open.append(tag)
        if tag not in ("span", "a", "strong", "code", "q", "time", "meter", "b", "em", "ins", "del"):
            self.lines.append("\n")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.lines.append("\n" if tag in ("p", "li", "dd", "pre", "summary", "h1", "h2", "h3") else "")

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            self._packed = self._packed or data
        elif self._open[-1:] != ["style"]:
            self.lines.append(data)


def journal_of(records: Iterable[dict[str, Any]], path: Path) -> Path:
    """Write records as a journal."""
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path
