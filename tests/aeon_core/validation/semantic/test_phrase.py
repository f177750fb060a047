"""Taking a sentence apart: stems, numbers, exact names, the verb."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.validation.semantic.phrase import MAX_LENGTH, phrase
from aeon_core.validation.semantic.stems import alike, stem


@pytest.mark.parametrize(
    "family",
    [
        ("multiply", "multiplies", "multiplied", "multiplication"),
        ("calculate", "calculator", "calculation", "calculated", "calculating"),
        ("translate", "translation", "translating"),
        ("analyse", "analysis", "analyze"),
        ("plan", "planning", "planned"),
        ("delete", "deletes", "deletion"),
    ],
    ids=lambda family: family[0],
)
def test_forms_of_one_word_have_one_stem(family: tuple[str, ...]) -> None:
    assert len({stem(word) for word in family}) == 1


def test_other_words_have_other_stems() -> None:
    assert len({stem(word) for word in ("write", "wait", "read", "road", "sort", "port", "water", "watt")}) == 8
    assert alike("invoic", "invoices") is True
    assert alike("port", "portal") is False


def test_a_sentence_is_taken_apart() -> None:
    taken = phrase(
        'Then copy "Annual Report" from docs/2025.md to Ann at ann@example.org, 1,200 rows in two parts (50%)'
    )
    assert taken.verb == "copy"
    assert taken.names == {"quoted": {"annual report"}, "file": {"docs/2025.md"}, "email": {"ann@example.org"}}
    assert taken.files == {"docs/2025.md"}
    assert taken.proper == {"ann"}
    assert taken.numbers == [1200.0, 2.0, 50.0]


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("Open https://example.org/a?b=1.", "url", "https://example.org/a?b=1"),
        ("Call load_user", "code", "load_user"),
        ("Call loadUser", "code", "loaduser"),
        ("Due on 2026-03-01", "date", "2026-03-01"),
        ("Read main.py", "file", "main.py"),
        ("Restart web-1", "code", "web-1"),
    ],
)
def test_exact_names_are_told_apart(text: str, kind: str, name: str) -> None:
    assert phrase(text).names == {kind: {name}}


@pytest.mark.parametrize(
    ("text", "verb", "negated"),
    [
        ("Please read the file", "read", False),
        ("Do not send the letter", "send", True),
        ("3 eggs are boiled", None, False),
        ("", None, False),
    ],
)
def test_the_first_word_that_can_be_is_the_verb(text: str, verb: str | None, negated: bool) -> None:
    assert (phrase(text).verb, phrase(text).negated) == (verb, negated)


@given(st.text(max_size=300))
def test_any_text_can_be_taken_apart(text: str) -> None:
    taken = phrase(text)
    assert all(token.text in text for token in taken.tokens)
    assert taken.stems is taken.stems
    assert isinstance(taken.concrete, bool)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert len(phrase("word " * 100_000).text) == MAX_LENGTH


@pytest.mark.parametrize(
    ("text", "thing"),
    [
        ("Print the Slide decks for all", "slid deck"),
        ("Print slides", None),
        ("Print 3 slides", None),
        ("Print the", None),
        ("Print a report.", "report"),
        ("", None),
    ],
)
def test_what_follows_the_verb_with_an_article_is_its_object(text: str, thing: str | None) -> None:
    assert phrase(text).direct_object == thing


def test_numbers_have_the_places_of_their_tokens() -> None:
    said = phrase("Add two and 3.5 to x4")
    assert said.numbered == [(1, 2.0), (3, 3.5)]
    assert said.numbers == [2.0, 3.5]


def test_paths_are_files_and_folders_in_order() -> None:
    said = phrase('Copy src/b.py and "a.txt" to out/ for x@example.org')
    assert said.paths == ["a.txt", "out/", "src/b.py"]
    assert said.exact_names == {"a.txt", "out/", "src/b.py", "x@example.org"}
