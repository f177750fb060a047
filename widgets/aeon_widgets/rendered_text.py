"""Markdown, JSON and code as lines with styled spans. No word is lost; nothing becomes a link or our own markup."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from rich.cells import cell_len

from aeon_widgets.text import Piece, block, wrap, wrap_hanging

MAX_RENDERED = 40_000
"""The longest text that is rendered, in characters; a longer one is shown as it is."""
_MAX_CODE = 10_000
"""The longest code that is highlighted, in characters."""
_MAX_COLUMN = 60
"""The most cells of a table's column; a longer text moves the rest of its row to the right."""
_MAX_TABLE = 500
"""Rows of one table."""
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(?=\S)")
_BULLET = re.compile(r"^([ \t]*)(?:[-*+]|(\d{1,9}[.)]))[ \t]+(\[[ xX]\][ \t]+)?")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^`]*$")
_RULE = re.compile(r"^ {0,3}([-*_])([ \t]*\1){2,}[ \t]*$")
_DIVIDER = re.compile(r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_INLINE = re.compile(
    r"\\([\\`*_{}\[\]()#+.!|~>-])"
    r"|(`{1,2})(?!`)(.{1,400}?)(?<!`)\2(?!`)"
    r"|(\*\*|__|~~)(?=\S)(.{1,400}?)(?<=\S)\4"
    r"|(?<![\w*])([*_])(?![\s*_])(.{1,400}?)(?<![\s*])\6(?!\w)"
    r"|!?\[([^\[\]]{1,400})\]\(([^()\s]{1,400})\)"
)
"""Bounded repetitions cannot be slow, whatever a model writes."""
_JSON = re.compile(r'("(?:[^"\\]|\\.){0,500}")(\s*:)?|-?\b\d[\d.eE+-]*|\b(?:true|false|null)\b')
_FLAG = re.compile(r"[✔✖][^✔✖]*")
_CODE_STYLES: tuple[tuple[str, str], ...] = (
    ("Comment", "muted"),
    ("Keyword", "accent bold"),
    ("Operator.Word", "accent bold"),
    ("Literal.String", "complete"),
    ("Literal.Number", "medium"),
    ("Name.Function", "bold"),
    ("Name.Class", "bold"),
    ("Name.Tag", "accent"),
    ("Name.Attribute", "accent"),
    ("Name.Decorator", "accent"),
    ("Generic.Inserted", "complete"),
    ("Generic.Deleted", "high"),
    ("Generic.Heading", "bold"),
)
"""The style of a token of code, by the prefix of its name in Pygments."""


class TextLine(NamedTuple):
    """One line to show: its style, its text, and the parts with an additional style."""

    style: str
    text: str
    spans: tuple[tuple[int, int, str], ...] = ()

    def pieces(self) -> Iterator[Piece]:
        """Yield the parts of the line, each with its style."""
        at = 0
        for start, end, style in self.spans:
            if start > at:
                yield self.text[at:start], self.style
            yield self.text[start:end], f"{self.style} {style}".strip()
            at = end
        if at < len(self.text) or not self.spans:
            yield self.text[at:], self.style


Render = Callable[[str, int], Iterator[TextLine]]


def json_lines(text: str, width: int) -> Iterator[TextLine]:
    """Yield JSON with different styles for keys, strings, and numbers and literals; the rest of a line is indented."""
    for line in text.split("\n"):
        spans = []
        for found in _JSON.finditer(line):
            style = "medium" if found[1] is None else "complete" if found[2] is None else "accent"
            spans.append((found.start(), found.end(1) if found[1] else found.end(), style))
        yield from wrapped(line, spans, width, hang=min(len(line) - len(line.lstrip()) + 2, width // 3))


def code_lines(text: str, width: int, language: str) -> Iterator[TextLine]:
    """Yield highlighted code; plain text if the language is unknown."""
    for pieces in _tokens(text, language):
        yield from _wrapped_pieces(pieces, width)


def _tokens(text: str, language: str) -> list[list[Piece]]:
    """Return the pieces of each line of code."""
    from rich.syntax import Syntax  # loading it takes longer than showing a run

    lexer = Syntax("", language).lexer if language and len(text) <= _MAX_CODE else None
    if lexer is None:
        return [[(line, "")] for line in text.split("\n")]
    lines: list[list[Piece]] = [[]]
    for token, part in lexer.get_tokens(text):
        name = str(token).removeprefix("Token.")
        style = next((style for kind, style in _CODE_STYLES if name.startswith(kind)), "")
        first, *rest = part.split("\n")
        lines[-1].append((first, style))
        lines += [[(each, style)] for each in rest]
    return lines[: text.count("\n") + 1]


def markdown_lines(text: str, width: int) -> Iterator[TextLine]:
    """Yield a Markdown text with its headings, lists, tables, quotes and code; a link shows its address."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            closing = re.compile(rf"\s*{fence[1]}{fence[1][0]}*\s*")
            end = next((i for i in range(at + 1, len(lines)) if closing.fullmatch(lines[i])), len(lines))
            if fence[2]:
                yield TextLine("muted", fence[2])
            for each in code_lines("\n".join(lines[at + 1 : end]), max(2, width - 2), fence[2]):
                yield _shifted(each, "  ")
            at = end + 1
        elif line.lstrip().startswith("|") and at + 1 < len(lines) and _DIVIDER.match(lines[at + 1]):
            rows = [line]
            while at + len(rows) < len(lines) and lines[at + len(rows)].lstrip().startswith("|"):
                rows.append(lines[at + len(rows)])
                if len(rows) == _MAX_TABLE:
                    break
            yield from _table(rows, width)
            at += len(rows)
        else:
            yield from _line(line, width)
            at += 1


def _line(line: str, width: int) -> Iterator[TextLine]:
    if found := _HEADING.match(line):
        title = line[found.end() :].rstrip()
        bare = title.rstrip("#")
        title = bare.rstrip() if bare.endswith((" ", "\t")) else title
        yield from _wrapped_pieces(_inline(title), width, "bold accent" if len(found[1]) <= 2 else "bold")
    elif _RULE.match(line):
        yield TextLine("muted", "─" * max(1, min(width, 40)))
    elif line.lstrip().startswith(">"):
        quoted = line.lstrip().removeprefix(">").removeprefix(" ")
        for each in _wrapped_pieces(_inline(quoted), max(2, width - 2), "muted"):
            yield _shifted(each, "│ ")
    elif found := _BULLET.match(line):
        tick = {"": "", "[ ]": "☐ ", "[x]": "☑ ", "[X]": "☑ "}[(found[3] or "").strip()]
        lead = f"{found[1]}{found[2] or '•'} {tick}"
        yield from _wrapped_pieces([(lead, ""), *_inline(line[found.end() :])], width, hang=len(lead))
    else:
        yield from _wrapped_pieces(_inline(line), width)


def _inline(text: str, style: str = "") -> list[Piece]:
    """Return a line's text in pieces: code, bold and italic words, links with their addresses."""
    pieces: list[Piece] = []
    at = 0
    for found in _INLINE.finditer(text):
        escaped, _, code, strong, bold, _, italic, label, address = found.groups()
        pieces.append((text[at : found.start()], style))
        at = found.end()
        if escaped is not None:
            pieces.append((escaped, style))
        elif code is not None:
            pieces.append((code, f"{style} accent".strip()))
        elif bold is not None:
            pieces += _inline(bold, f"{style} {'strike' if strong == '~~' else 'bold'}".strip())
        elif italic is not None:
            pieces += _inline(italic, f"{style} italic".strip())
        else:
            pieces += [
                *_inline(label, f"{style} underline".strip()),
                *([] if label == address else [(f" ({address})", "muted")]),
            ]
    return [*pieces, (text[at:], style)]


def _table(rows: Sequence[str], width: int) -> Iterator[TextLine]:
    """Yield a table's rows with aligned columns."""
    cells = [[_inline(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    widths: list[int] = []
    for number, row in enumerate(cells):
        for place, cell in enumerate(row if number != 1 else ()):
            widths += [0] * (place + 1 - len(widths))
            widths[place] = min(_MAX_COLUMN, max(widths[place], _cells(cell)))
    for number, row in enumerate(cells):
        if number == 1:
            yield TextLine("muted", "─┼─".join("─" * each for each in widths)[:width])
            continue
        pieces: list[Piece] = []
        for place, cell in enumerate(row):
            pieces += [(" │ ", "muted")] * (place > 0)
            pieces += [*cell, (" " * (widths[place] - _cells(cell)), "")]
        yield from _wrapped_pieces(pieces, width, "bold" if number == 0 else "")


def _cells(pieces: Sequence[Piece]) -> int:
    return sum(cell_len(text) for text, _ in pieces)


def _spans(pieces: Sequence[Piece]) -> list[tuple[int, int, str]]:
    spans, at = [], 0
    for text, style in pieces:
        if style and text:
            spans.append((at, at + len(text), style))
        at += len(text)
    return spans


def _wrapped_pieces(pieces: Sequence[Piece], width: int, style: str = "", hang: int = 0) -> Iterator[TextLine]:
    return wrapped("".join(text for text, _ in pieces), _spans(pieces), width, style, hang)


def wrapped(
    text: str, spans: Sequence[tuple[int, int, str]], width: int, style: str = "", hang: int = 0
) -> Iterator[TextLine]:
    """Yield the lines that a text wraps to, each with its part of the spans.

    Lines after the first are indented by the width of its first `hang` characters, if there is room.
    """
    indent = cell_len(text[:hang])
    if indent > width - 2:
        hang = indent = 0
    at, first = min(hang, len(text)), 0
    for number, part in enumerate(wrap(text[hang:], width - indent)):
        start = text.index(part, at)  # only white space is left out between two parts
        at = start + len(part)
        start, lead = (start, " " * indent) if number else (0, "")
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        here = spans[first : bisect_left(spans, (at,))]
        own = tuple((max(begin, start) - start, min(end, at) - start, name) for begin, end, name in here)
        yield _shifted(TextLine(style, text[start:at], own), lead)


def _shifted(line: TextLine, lead: str) -> TextLine:
    by = len(lead)
    return TextLine(
        line.style, lead + line.text, tuple((start + by, end + by, style) for start, end, style in line.spans)
    )


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def diff_lines(diff: str, width: int, path: str) -> Iterator[TextLine]:
    """Yield a file's unified diff with the number of each line, highlighted in the file's language.

    The number of a removed line is that in the old file.
    """
    from rich.syntax import Syntax

    lines = diff.split("\n")
    last = max((max(int(found[1]), int(found[2])) for found in map(_HUNK.match, lines) if found), default=1)
    gutter = len(str(last + len(lines)))
    language = Syntax.guess_lexer(path)
    begins = [number for number, line in enumerate(lines) if _HUNK.match(line)]
    for number, (begin, end) in enumerate(pairwise([*begins, len(lines)])):
        if number:
            yield TextLine("muted", f"{'⋯':>{gutter}}")
        yield from _hunk_lines(lines[begin:end], gutter, width, language)


def _hunk_lines(lines: Sequence[str], gutter: int, width: int, language: str) -> Iterator[TextLine]:
    found = _HUNK.match(lines[0])
    old, new = (int(found[1]), int(found[2])) if found else (1, 1)
    # Removed lines have one colour; the others are highlighted as the new code.
    code = iter(_tokens("\n".join(line[1:] for line in lines[1:] if line[:1] in ("+", " ", "")), language))
    for line in lines[1:]:
        sign = line[:1] or " "
        if sign not in "+- ":
            yield TextLine("muted", f"{'':{gutter}} {line}")
            continue
        style = {"+": "complete", "-": "failed"}.get(sign, "")
        pieces = [(line[1:], "")] if sign == "-" else next(code, [(line[1:], "")])
        lead = f"{old if sign == '-' else new:>{gutter}} {sign} "
        old, new = old + (sign != "+"), new + (sign != "-")
        yield from _wrapped_pieces([(lead, ""), *pieces], width, style, hang=len(lead))


def flag_lines(text: str, width: int) -> Iterator[TextLine]:
    """Yield the words that each follow a ✔ or a ✖, in the colour of that mark."""
    spans = [(each.start(), each.end(), "complete" if each[0][0] == "✔" else "high") for each in _FLAG.finditer(text)]
    return wrapped(text, spans, width)


RENDERED: Mapping[str, Render] = {"markdown": markdown_lines, "json": json_lines, "flags": flag_lines}
"""The renderer of a block, by the name given in place of its style."""


def form_of(text: str) -> str:
    """Return `json` if a model's text looks like JSON, else `markdown`."""
    return "json" if text.lstrip()[:1] in ("{", "[") and text.rstrip()[-1:] in ("}", "]") else "markdown"


QUOTED = "quoted markdown"
"""The style of a Markdown text with a bar before each line, so that none can pass for our own text."""


def rendering(style: str) -> Render | None:
    """Return the renderer of a style; None if text is shown as it is. `diff src/main.py` names the file."""
    form, _, of = style.partition(" ")
    if style == QUOTED:
        return lambda text, width: (_shifted(each, "│ ") for each in markdown_lines(text, max(2, width - 2)))
    if form == "diff":
        return partial(diff_lines, path=of)
    return partial(code_lines, language=of) if form == "code" else RENDERED.get(style)


def block_lines(style: str, text: str, width: int, *, raw: bool = False) -> list[TextLine]:
    """Return a block of text as lines of at most `width` cells; `raw` shows it as it is."""
    shown = block(text)
    render = rendering(style)
    if render is None or raw or len(shown) > MAX_RENDERED:
        own = style if render is None else ""
        return [TextLine(own, line) for line in wrap_hanging(shown, width)]
    return list(render(shown, width))
