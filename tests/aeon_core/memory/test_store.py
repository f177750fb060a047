from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import MemoryStoreError
from aeon_core.memory import InMemoryStore, Memory

KEYS = st.text(min_size=1).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_a_stored_value_is_read_back() -> None:
    store = InMemoryStore()
    store.write("s1", {"result": 15})
    assert isinstance(store, Memory)
    assert store.read("s1") == {"result": 15}
    assert len(store) == 1


def test_an_unknown_key_reads_as_none() -> None:
    assert InMemoryStore().read("absent") is None


def test_a_second_write_replaces_the_first() -> None:
    store = InMemoryStore()
    store.write("k", [1])
    store.write("k", "two")
    assert store.read("k") == "two"
    assert len(store) == 1


def test_search_finds_by_prefix_in_the_order_of_keys() -> None:
    store = InMemoryStore()
    for key in ("s2", "t1", "s10", "s1", "xs1"):
        store.write(key, key.upper())
    assert store.search("s") == [("s1", "S1"), ("s10", "S10"), ("s2", "S2")]
    assert store.search("s1") == [("s1", "S1"), ("s10", "S10")]
    assert [key for key, _ in store.search("")] == ["s1", "s10", "s2", "t1", "xs1"]
    assert store.search("S") == []


def test_a_prefix_is_not_a_pattern() -> None:
    store = InMemoryStore()
    store.write("a.b", 1)
    store.write("axb", 2)
    store.write("*", 3)
    assert store.search("a.") == [("a.b", 1)]
    assert store.search("*") == [("*", 3)]
    assert store.search("[") == []


def test_values_do_not_alias_the_callers() -> None:
    store = InMemoryStore()
    value: dict[str, Any] = {"list": [1]}
    store.write("k", value)
    value["list"].append(2)
    read: Any = store.read("k")
    read["list"].append(3)
    store.search("k")[0][1]["list"].append(4)
    assert store.read("k") == {"list": [1]}


def test_values_are_stored_as_plain_json() -> None:
    store = InMemoryStore()
    store.write("k", {1: (1, None), "s": "a\ud800"})
    assert store.read("k") == {"1": [1, None], "s": "a�"}


@pytest.mark.parametrize("key", ["", " ", "\n\t", None, 5, b"k", ["k"]])
def test_a_blank_key_is_refused(key: Any) -> None:
    store = InMemoryStore()
    with pytest.raises(MemoryStoreError, match="expected a non-empty string as key, got"):
        store.write(key, 1)
    with pytest.raises(MemoryStoreError, match="expected a non-empty string as key, got"):
        store.read(key)
    assert len(store) == 0


def test_a_prefix_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(MemoryStoreError, match="expected a prefix as a string, got NoneType"):
        InMemoryStore().search(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "object has no JSON form"),
        ({"a": b"bytes"}, "bytes has no JSON form"),
        ({("a",): 1}, "a key of type tuple has no JSON form"),
        (nested(5_000), "nested deeper than 100 levels"),
        ([10**5000], "is too large for JSON"),
        ({"a": 10**5000}, "is too large for JSON"),
    ],
)
def test_a_value_without_a_json_form_is_refused_and_the_old_one_stays(value: Any, reason: str) -> None:
    store = InMemoryStore()
    store.write("k", "old")
    with pytest.raises(MemoryStoreError) as caught:
        store.write("k", value)
    assert str(caught.value).startswith("cannot store the value for key 'k': ")
    assert reason in str(caught.value)
    assert caught.value.context == {"key": "k"}
    assert store.read("k") == "old"


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(MemoryStoreError, match="contains itself"):
        InMemoryStore().write("k", value)


def test_a_key_with_a_lone_surrogate_finds_its_value() -> None:
    store = InMemoryStore()
    store.write("a\ud800", 1)
    assert store.read("a\ud800") == 1
    assert store.search("a\ud800") == [("a�", 1)]


@given(st.dictionaries(KEYS, JSON), st.text(max_size=2))
def test_search_agrees_with_a_plain_dict(entries: dict[str, Any], prefix: str) -> None:
    store = InMemoryStore()
    for key, value in entries.items():
        store.write(key, value)
    assert store.search(prefix) == sorted(
        ((key, value) for key, value in entries.items() if key.startswith(prefix)), key=lambda entry: entry[0]
    )
    assert len(store) == len(entries)
    assert all(store.read(key) == value for key, value in entries.items())


def test_a_write_during_a_search_does_not_disturb_it() -> None:
    store = InMemoryStore()

    class Meddling(str):
        """A key that makes the store grow whenever a search looks at it."""

        def startswith(self, *args: Any) -> bool:
            store.write(f"k{len(store)}", "new")
            return super().startswith(*args)

    store.write(Meddling("k"), "old")
    store.write("kk", "old")
    assert store.search("k") == [("k", "old"), ("kk", "old")]
    assert store.read("k2") == "new"


def test_reading_while_another_thread_writes_never_raises() -> None:
    store = InMemoryStore()
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                assert store.search("k1999") in ([], [("k1999", {"key": "k1999"})])
                assert store.read("k1") in (None, {"key": "k1"})
                len(store)
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(2000):
        store.write(f"k{number}", {"key": f"k{number}"})
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []
    assert len(store) == 2000


@pytest.mark.parametrize("value", [float("nan"), {"a": [1.0, float("inf")]}, (float("-inf"),)])
def test_a_non_json_number_is_refused(value: Any) -> None:
    store = InMemoryStore()
    with pytest.raises(MemoryStoreError, match="is not JSON"):
        store.write("k", value)
    assert "k" not in store


def test_a_stored_none_is_distinguished_from_nothing() -> None:
    store = InMemoryStore()
    store.write("k", None)
    assert "k" in store
    assert "other" not in store
    assert (store.read("k", "nothing"), store.read("other", "nothing")) == (None, "nothing")
    assert store.search("") == [("k", None)]
