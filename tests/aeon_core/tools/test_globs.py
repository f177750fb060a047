from __future__ import annotations

import re
import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import ToolError
from aeon_core.tools import listing
from aeon_core.tools.listing import MAX_ALTERNATIVES, PatternError, glob_matcher


def fits(pattern: str, path: str) -> bool:
    return glob_matcher("pattern", pattern, time.monotonic() + 60)(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", ".py"),
        ("*", ".hidden"),
        ("a?c", "a.c"),
        ("?", "é"),
        ("**/*.py", "a.py"),
        ("**/*.py", "x/y/a.py"),
        ("src/**", "src/a"),
        ("src/**", "src/a/.b"),
        ("**", "a/b/c"),
        ("a/**/b", "a/b"),
        ("a/**/b", "a/x/y/b"),
        ("a/**/**/b", "a/b"),
        ("**/a/**/b/**/c", "x/a/a/q/b/c"),
        ("a**b", "axxb"),
        ("./a//./b", "a/b"),
        ("*.{ts,tsx}", "a.tsx"),
        ("{a,b/{c,d}}.x", "b/d.x"),
        ("{src/**,docs}/*.md", "src/x/y.md"),
        ("x{,y}", "x"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[^a-c]x", "dx"),
        ("[]]", "]"),
        ("[[]", "["),
        ("[a-]", "-"),
        ("\\*", "*"),
        ("\\{a\\}", "{a}"),
        ("a}", "a}"),
        ("a,b", "a,b"),
        ("a.b+(c)|$", "a.b+(c)|$"),
        ("*\n*", "a\nb"),
        ("...", "..."),
    ],
)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert fits(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "x/a.py"),
        ("*.py", "a.pyc"),
        ("*.PY", "a.py"),
        ("?", "/"),
        ("?", "ab"),
        ("a/**/b", "a/xb"),
        ("a/**/b", "ab"),
        ("src/**", "src"),
        ("a**b", "a/b"),
        ("[a-c]x", "dx"),
        ("[!a-c]x", "ax"),
        ("*.{ts,tsx}", "a.js"),
        ("\\*", "a"),
        ("a.c", "abc"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not fits(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "it is empty"),
        ("  ", "it is empty"),
        ("/etc/*", "it is absolute"),
        ("{a,/etc}/*", "it is absolute"),
        ("../*", "'..' would leave"),
        ("**/../..", "'..' would leave"),
        ("a/..", "'..' would leave"),
        ("{a,../b}", "'..' would leave"),
        ("{.,x}{.,y}/*", "'..' would leave"),
        ("a/", "it names a folder"),
        (".", "it names a folder"),
        ("a/{b,}", "it names a folder"),
        ("a[b", r"not well formed; write '\[\[\]' for '\['"),
        ("{a,b", "'{' is not closed"),
        ("a\\", "not well formed"),
        ("[z-a]", "not well formed"),
        ("{a,b}" * 8, f"more than {MAX_ALTERNATIVES} patterns"),
        ("{" * 900 + "a" + "}" * 900 + "/..", "'..' would leave"),
    ],
    ids=range(18),
)
def test_an_unusable_pattern_is_refused_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(PatternError, match=reason):
        fits(pattern, "a")


def test_a_pattern_of_many_stars_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "SECONDS", 0.05)
    with pytest.raises(ToolError, match=r"^pattern takes more than 0\.05 s on one text"):
        fits("*a*" * 30 + "b", "a" * 250)


NAMES = st.text("ab.", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
PIECES = st.sampled_from(["a", "b", ".", "*", "?", "[ab]", "[!a]", "{a,b}", "{,b*}", "{a/b,b}"])
PATTERN_NAMES = st.just("**") | st.lists(PIECES, min_size=1, max_size=5).map("".join)


@given(st.lists(PATTERN_NAMES, min_size=1, max_size=5).map("/".join), st.lists(NAMES, min_size=1, max_size=5))
def test_a_pattern_matches_as_defined(pattern: str, path: list[str]) -> None:
    try:
        found = fits(pattern, "/".join(path))
    except PatternError:
        return
    assert found is any(defined(tuple(text.split("/")), tuple(path)) for text in unbraced(pattern))


def unbraced(pattern: str) -> list[str]:
    brace = re.search(r"\{([^{}]*)\}", pattern)
    if brace is None:
        return [pattern]
    choices = brace.group(1).split(",")
    return [text for choice in choices for text in unbraced(pattern[: brace.start()] + choice + pattern[brace.end() :])]


@cache
def defined(names: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Return whether a path fits, by the rules read one after another."""
    names = tuple(name for name in names if name not in ("", "."))
    if not names:
        return not path
    if names[0] == "**":
        if len(names) == 1:
            return bool(path)
        return defined(names[1:], path) or (len(path) > 0 and defined(names, path[1:]))
    return bool(path) and name_fits(names[0], path[0]) and defined(names[1:], path[1:])


@cache
def name_fits(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return name_fits(pattern[1:], name) or (bool(name) and name_fits(pattern, name[1:]))
    if not name:
        return False
    if pattern.startswith("[ab]"):
        return name[0] in "ab" and name_fits(pattern[4:], name[1:])
    if pattern.startswith("[!a]"):
        return name[0] != "a" and name_fits(pattern[4:], name[1:])
    return pattern[0] in ("?", name[0]) and name_fits(pattern[1:], name[1:])
