"""Texts that break screens, and a check of what is drawn of them."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App
from textual.strip import Strip

STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff\ud800-\udfff]")
"""What may never reach a terminal: control characters, what turns the reading order, lone surrogates."""
ODD = [
    "字",
    "ｗｉｄｅ",
    "한\u1112\u1161\u11ab",
    "👩‍🚀",
    "👨‍👩‍👧‍👦",
    "🇩🇪",
    "🇩",
    "👍🏽",
    "❤️",
    "1️⃣",
    "e\u0301",
    "Z" + "\u0335\u0361\u0327" * 30,
    "กำ",
    "हिन्दी",
    "שלום",
    "مرحبا",
    "ﷺ",
    "\u202eoverride\u202c",
    "\u2067isolate\u2069",
    "\u200b",
    "\u200d",
    "\ufe0f",
    "\u00ad",
    "\u3164",
    "\u2060",
    "\ufeff",
    "\u2028",
    "\U000e0041",
    "\ud800",
    "\x1b[31mred",
    "\x1b]0;title\x07",
    "\x9b2J",
    "\x00",
    "\r",
    "\n",
    "\t",
    "[bold]",
    "[/]",
    "[@click=app.quit]quit[/]",
    "$aeon-accent",
    "\\",
    "…",
    "│",
    " ",
    "",
    "word",
    "w" * 300,
]
"""Wide, joined, combining, right-to-left, invisible, steering, and what looks like markup."""

ODD_TEXTS = st.lists(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=())), max_size=12).map("".join)


def problems_of(app: App[None]) -> list[str]:
    """Return what is wrong with the lines as they are drawn: too long, too short, or steering the terminal."""
    width = app.screen.size.width
    return [problem for strip in app.screen._compositor.render_strips() for problem in _problems(strip, width)]


def _problems(strip: Strip, width: int) -> list[str]:
    found = []
    if sum(segment.cell_length for segment in strip) != width or cell_len(strip.text) != width:
        found.append(f"{cell_len(strip.text)} cells: {strip.text!a}")
    if STEERING.search(strip.text):
        found.append(f"it steers the terminal: {strip.text!a}")
    return found
