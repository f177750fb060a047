from __future__ import annotations

import json
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.escape import escape_blanks, escape_controls, escape_json

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold] text", "plain [bold] text"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\x00b\x7fc\x9bd", r"a\x00b\x7fc\x9bd"),
        ("one\ntwo\tthree\r", r"one\ntwo\tthree\r"),
        ("safe\u202etxt.exe", r"safe\u202etxt.exe"),
        ("\ud800 alone", r"\ud800 alone"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("grüße 日本 👩‍💻", "grüße 日本 👩‍💻"),
        ("❤️\u200d🔥 👩🏽\u200d🚀 क\u200dष", "❤️\u200d🔥 👩🏽\u200d🚀 क\u200dष"),
        ("a\u200db \u200d🚀 👩\u200d", r"a\u200db \u200d🚀 👩\u200d"),
        ("rm\u200b -rf so\u00adft \u2060x\u3164", r"rm\u200b -rf so\xadft \u2060x\u3164"),
        ("1️⃣ ‼️ ©️ 🏳️\u200d🌈 葛\U000e0100", "1️⃣ ‼️ ©️ 🏳️\u200d🌈 葛\U000e0100"),
        ("a\ufe0f 1\ufe0f ❤️\ufe0f a\U000e0100", r"a\ufe0f 1\ufe0f ❤️\ufe0f a\U000e0100"),
        ("می\u200cخواهم ภาษา\u200bไทย", "می\u200cخواهم ภาษา\u200bไทย"),
    ],
)
def test_control_characters_become_escapes_and_all_else_stays(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


def test_only_newline_and_tab_are_kept_on_request() -> None:
    assert escape_controls("a\n\tb\r\x1b", keep="\n\t") == "a\n\tb" + r"\r\x1b"


@given(ANY_TEXT)
def test_escaping_any_text_is_writable_and_idempotent(text: str) -> None:
    shown = escape_controls(text)
    shown.encode("utf-8")
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in shown)
    assert escape_controls(shown) == shown


def test_every_character_that_unicode_calls_ignorable_becomes_an_escape() -> None:
    ignorable = regex.findall(r"\p{Default_Ignorable_Code_Point}", "".join(map(chr, range(0x110000))))
    assert len(ignorable) > 4_000
    assert [each for each in ignorable if escape_controls(f"a{each}b").isascii() is False] == []


@given(st.text())
def test_escaped_json_keeps_its_meaning(text: str) -> None:
    shown = escape_json(json.dumps({"text": text}, ensure_ascii=False, indent=2))
    assert json.loads(shown) == {"text": text}
    assert "\x9b" not in shown
    assert "\u202e" not in shown


def test_unusual_blanks_are_escaped_only_in_text_to_approve() -> None:
    blanks = [each for each in map(chr, range(0x110000)) if unicodedata.category(each) == "Zs" and each != " "]
    assert len(blanks) == 16
    assert [each for each in [*blanks, "\u2800"] if not escape_blanks(f"rm a{each}b c").isascii()] == []
    assert escape_blanks("rm -rf\xa0x\u3000/ 日本") == "rm -rf\\xa0x\\u3000/ 日本"
    assert escape_controls("«\xa0Bonjour\u202f!\xa0» 東京\u3000天気") == "«\xa0Bonjour\u202f!\xa0» 東京\u3000天気"
