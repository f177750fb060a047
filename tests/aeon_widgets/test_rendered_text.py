"""Markdown, JSON and code as lines with spans: what each becomes, and that nothing of it is lost or takes long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from aeon_widgets.rendered_text import MAX_RENDERED, TextLine, block_lines, form_of

MARKDOWN = """\
# The *sum*
Some **bold**, `code`, *slanted* and [a link](http://x/y), a_b_c and 2*3*4.
- [x] one that is done and too long for one line
  2. two
> said

| a | long |
|---|:-:|
| **漢字** | b |
---
```python
def f(x):
    return 'no **bold**'  # but a comment
```
\\*as it is\\*"""


def shown(text: str, width: int = 80, form: str = "markdown") -> list[str]:
    return [line.text for line in block_lines(form, text, width)]


def styles(text: str, form: str = "markdown") -> dict[str, str]:
    return {
        part: style for line in block_lines(form, text, 80) for part, style in line.pieces() if style and part.strip()
    }


def test_markdown_is_rendered() -> None:
    assert shown(MARKDOWN, 34) == [
        "The sum",
        "Some bold, code, slanted and a",
        "link (http://x/y), a_b_c and",
        "2*3*4.",
        "• ☑ one that is done and too long",
        "    for one line",
        "  2. two",
        "│ said",
        "",
        "a    │ long",
        "─────┼─────",
        "漢字 │ b",
        "─" * 34,
        "python",
        "  def f(x):",
        "      return 'no **bold**'  # but",
        "  a comment",
        "*as it is*",
    ]
    told = styles(MARKDOWN)
    assert told["The "] == "bold accent"
    assert {part: told[part] for part in ("bold", "code", "slanted", "a link", " (http://x/y)")} == {
        "bold": "bold",
        "code": "accent",
        "slanted": "italic",
        "a link": "underline",
        " (http://x/y)": "muted",
    }
    assert (told["def"], told["# but a comment"]) == ("accent bold", "muted")


def test_json_has_its_keys_strings_and_numbers_distinguished() -> None:
    text = '{\n  "sum": 15,\n  "why": "\\"5\\" and 10: fine",\n  "ok": true\n}'
    assert shown(text, form="json") == text.split("\n")
    assert styles(text, "json") == {
        '"sum"': "accent",
        "15": "medium",
        '"why"': "accent",
        '"\\"5\\" and 10: fine"': "complete",
        '"ok"': "accent",
        "true": "medium",
    }
    assert [form_of(each) for each in ('{"a": 1}\n', "[1]", "a [b]", "{x")] == ["json", "json", "markdown", "markdown"]


def test_the_rest_of_a_long_json_line_is_indented_below_it_if_there_is_room() -> None:
    assert shown('{\n  "why": "a long reason",\n  "ok": true\n}', 20, "json") == [
        "{",
        '  "why": "a long',
        '    reason",',
        '  "ok": true',
        "}",
    ]
    assert shown(f"{' ' * 30}[1, 2, 3, 4, 5]", 36, "json") == [f"{' ' * 30}[1, 2,", f"{' ' * 12}3, 4, 5]"]


def test_a_flag_that_is_wrong_does_not_have_the_colour_of_the_others() -> None:
    assert styles("✔ plan ✖ answer ✔ memory", "flags") == {
        "✔ plan ": "complete",
        "✖ answer ": "high",
        "✔ memory": "complete",
    }


def test_raw_or_very_long_text_is_shown_unrendered() -> None:
    assert block_lines("markdown", "# **a**", 80, raw=True) == [TextLine("", "# **a**")]
    assert block_lines("high", "# **a**", 80) == [TextLine("high", "# **a**")]
    long = "**a** " * (MAX_RENDERED // 5)
    assert block_lines("markdown", long, 80)[0].text.startswith("**a** **a**")


def test_control_characters_and_console_markup_are_plain_text() -> None:
    assert shown("\x1b[31m[bold]x[/] [@click=app.quit]q[/]") == ["\\x1b[31m[bold]x[/] [@click=app.quit]q[/]"]


@given(st.text(alphabet="ab|`#-* \n>~_[]()\\1.", max_size=200), st.integers(4, 60))
def test_no_word_is_lost_and_no_line_too_wide(text: str, width: int) -> None:
    lines = block_lines("markdown", text, width)
    assert [each for line in lines for each in line.text if each in "ab1"] == [each for each in text if each in "ab1"]
    assert all("".join(part for part, _ in line.pieces()) == line.text for line in lines)
    assert all(cell_len(line.text) <= max(width, 8) + 20 for line in lines)


def test_text_crafted_to_be_slow_is_still_drawn() -> None:
    assert shown("# a" + " " * 30_000 + "b") == ["a", "b"]
    assert shown("**a " * 9_000)[0].startswith("**a **a")


def test_an_item_with_a_wide_number_hangs_below_its_text_and_may_be_empty() -> None:
    assert shown("１. \n１. one two three four", 14) == ["１. ", "１. one two", "    three four"]
