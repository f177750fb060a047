"""One self-contained web page: markup in which all text is escaped, and long texts once, compressed.

The page needs no network and no JavaScript to be read. Its script and its style are inlined from `page/`; a policy in
the page allows those two by their digests and nothing else, so that no text can become code or load anything.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import zlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from aeon_core.escape import escape_controls
from aeon_core.units import count
from aeon_themes import AEON_DARK, AEON_LIGHT, Palette
from aeon_themes.palette import COLOURS

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_RATIO = 8
"""The smallest size to which a text is cut; smaller ones are dropped."""
_VOID = frozenset({"input", "meta"})
_POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{script}'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


class Html(str):
    """Markup. Any other text that is put into markup is escaped."""

    __slots__ = ()


def escaped(text: str) -> Html:
    """Return text as escaped markup, with control characters made visible."""
    return Html(html.escape(escape_controls(text.replace("\r\n", "\n"), keep="\n\t")))


def join(*parts: str | None) -> Html:
    """Return markup and texts joined; None is left out."""
    return Html("".join(part if isinstance(part, Html) else escaped(part) for part in parts if part is not None))


def tag(name: str, /, *children: str | None, **attributes: str | float | bool | None) -> Html:
    """Return an element. `class_` is its class, `data_x` its data-x; None and False leave an attribute out."""
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escaped(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{join(*children)}</{name}>")


class TextArchive:
    """Long texts, stored once each and compressed; a page shows their beginnings.

    `limit` bounds what the archive adds to the page, `inline` the text shown without it, each in bytes. What
    does not fit stays in the journal, which the page mentions.
    """

    SHORT = 600
    """The most characters of a text on the page; the script shows the rest."""
    AGAIN = 120
    """Characters of a long text that the page has shown before."""

    def __init__(self, head: dict[str, Any], limit: int = 3_000_000, inline: int = 1_000_000) -> None:
        self._deflate = zlib.compressobj(9)
        beginning = json.dumps(head, ensure_ascii=False)[:-1].encode(errors="replace")
        self._chunks = [self._deflate.compress(beginning + b', "texts": [null')]
        self._left = limit * 3 // 4 - len(self._chunks[0])
        self._inline = inline
        self._known: dict[str, int | None] = {}
        self._count = 0

    @property
    def has_room(self) -> bool:
        """Whether the page is small enough to hold more details."""
        return self._inline > 0

    def shown(self, text: str, class_: str | None = None, most: int | None = None) -> Html:
        """Return the text as a block: whole if it is short and the page has room, else its beginning.

        `most` is the number of characters to show even if the page has shown the text before.
        """
        text = text.replace("\r\n", "\n")
        again = most is None and text in self._known
        limit = (most or self.SHORT) if self.has_room and not again else self.AGAIN
        if len(text) <= limit:
            if len(text) > self.AGAIN and most is None:
                self._add(text)
            return self._counted(
                markdown(text) if class_ == "prose" else tag("pre", _lines(text, class_), class_=class_)
            )
        index, least = self._add(text), min(limit, self.SHORT)
        where = "" if index is not None else ", in the journal only"
        rest = tag("p", f"… {count(len(text) - least, 'more character')}{where}", class_="more")
        beginning = tag("pre", _lines(text[:least], class_), class_=class_)
        return self._counted(tag("div", beginning, rest, class_="long", data_text=index))

    def _counted(self, markup: Html) -> Html:
        self._inline -= len(markup.encode(errors="replace"))
        return markup

    def _add(self, text: str) -> int | None:
        """Return the number of the text in the archive, None if there is no room for it."""
        if text not in self._known:
            shown = escape_controls(text, keep="\n\t") if len(text) < self._left * _RATIO else ""
            self._known[text] = self._packed_as_next(shown) if shown else None
        return self._known[text]

    def _packed_as_next(self, text: str) -> int | None:
        trial = self._deflate.copy()
        chunk = trial.compress(b"," + json.dumps(text, ensure_ascii=False).encode(errors="replace"))
        chunk += trial.flush(zlib.Z_SYNC_FLUSH)
        if len(chunk) > self._left:
            return None
        self._deflate, self._left = trial, self._left - len(chunk)
        self._chunks.append(chunk)
        self._count += 1
        return self._count

    def packed(self) -> Html:
        """Return the archive as an element: JSON with the head's fields and `texts`, compressed, in base64."""
        data = b"".join([*self._chunks, self._deflate.compress(b"]}"), self._deflate.flush()])
        packed = Html(base64.b64encode(data).decode())
        return tag("script", packed, type="application/octet-stream", id="archive")


def _lines(text: str, class_: str | None) -> Html:
    """Return the text; in a diff, each line is marked as added or removed."""
    if class_ != "diff":
        return escaped(text)
    kinds = {"+": "ins", "-": "del"}
    return join(*(tag(kinds.get(line[:1], "span"), f"{line}\n") for line in text.split("\n")))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # Links and images become text: a shared page must not lead to an address that a model chose.
    return (
        MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False})
        .enable("table")
        .disable(["image", "link", "autolink", "reference"])
    )


def markdown(text: str) -> Html:
    """Return a text that may be Markdown as a block of markup; HTML in it is shown as text."""
    tokens = _parser().parse(escape_controls(text, keep="\n\t"))
    for token in tokens:
        token.attrs = {}
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 3, 6)}"
    return tag("div", Html(_parser().renderer.render(tokens, _parser().options, {})), class_="prose")


def page(title: str, body: Html, *, archive: Html | None = None) -> str:
    """Return the whole page, ending without a newline; `archive` adds the script."""
    style, script = f"{_variables()}{_asset('report.css')}", _asset("report.js")
    policy = _POLICY.format(style=_digest(style), script=_digest(script))
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html(style)),
    )
    code = join(archive, tag("script", Html(script))) if archive is not None else None
    return "<!doctype html>\n" + tag("html", tag("head", head), "\n", tag("body", body, code), lang="en")


@cache
def _asset(name: str) -> str:
    return (files("aeon_tui.reports") / "page" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _variables() -> str:
    """Return the colours of the app's own light and dark theme as variables of the style."""
    light, dark = _colours(AEON_LIGHT), _colours(AEON_DARK)
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme]){{color-scheme:dark;{dark}}}}}\n"
    )


def _colours(palette: Palette) -> str:
    return "".join(f"--{name.replace('_', '-')}:{getattr(palette, name)};" for name in COLOURS)
