from __future__ import annotations

import os
import threading
from array import array
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon_core.errors import JournalError, UsageError
from aeon_core.journal.index import OffsetIndex, TextPlaces, seq_of
from tests.aeon_core.journal.build import lines, started, ttl, whole_run

CONTENTS = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"\x00", b"\xff\xfe", b"a", b"{}", b"x" * 40]), max_size=60)
JOURNAL = lines(*whole_run())


def whole(data: bytes) -> list[bytes]:
    """Return the lines of some bytes the plain way."""
    return [part + b"\n" for part in data.split(b"\n")[:-1]]


def index_all(index: OffsetIndex) -> list[bytes]:
    while index.extend(0):
        pass
    return [index.line(number) for number in range(len(index))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


@given(parts=CONTENTS, chunk=st.integers(1, 90))
def test_lines_equal_those_of_a_plain_split(
    parts: list[bytes], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"".join(parts)
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(data)
    with OffsetIndex(path, chunk=chunk) as index:
        assert index_all(index) == whole(data)
        assert index.complete
        assert [index.number_at(index.span(number)[1] - 1) for number in range(len(index))] == list(range(len(index)))
        assert index.number_at(index.indexed) is None


@given(parts=CONTENTS, cuts=st.lists(st.integers(0, 200), max_size=6), chunk=st.integers(1, 90))
def test_a_file_that_grows_at_any_byte_is_followed(
    parts: list[bytes], cuts: list[int], chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"".join(parts)
    path = tmp_path_factory.getbasetemp() / "growing.jsonl"
    path.write_bytes(b"")
    with OffsetIndex(path, chunk=chunk) as index:
        for cut in [*sorted(cuts), len(data)]:
            path.write_bytes(data[:cut])
            assert index_all(index) == whole(data[:cut])
        assert index.generation == 0


def test_a_journal_cut_at_any_byte_has_the_whole_lines_before(path: Path) -> None:
    journal = lines(started(), ttl(1), ttl(2))
    data, ends = b"".join(journal), list(accumulate(map(len, journal)))
    path.write_bytes(data)
    for size in range(len(data), -1, -1):
        os.truncate(path, size)
        with OffsetIndex(path) as index:
            assert index_all(index) == whole(data[:size])
            assert [index.span(number)[1] for number in range(len(index))] == [end for end in ends if end <= size]


def test_a_torn_rest_that_was_set_aside_leaves_no_trace(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthr")
    with OffsetIndex(path, chunk=4) as index:
        assert index_all(index) == [b"one\n", b"two\n"]
        with path.open("r+b") as file:
            file.truncate(8)
            file.seek(8)
            file.write(b"a\nb\nc\nfour\n")
        assert index_all(index) == [b"one\n", b"two\n", b"a\n", b"b\n", b"c\n", b"four\n"]
        assert index.generation == 0


@pytest.mark.parametrize("new", [b"", b"one\n", b"other\nlines\nhere\nand more\n"], ids=["empty", "cut", "rewritten"])
def test_a_file_that_was_cut_or_rewritten_is_indexed_again(path: Path, new: bytes) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    with OffsetIndex(path) as index:
        index_all(index)
        path.write_bytes(new)
        assert index_all(index) == whole(new)
        assert index.generation == 1


def test_a_file_that_was_replaced_is_noticed_and_one_that_was_deleted_stays_readable(path: Path) -> None:
    path.write_bytes(b"one\ntwo\n")
    with OffsetIndex(path) as index:
        index_all(index)
        path.unlink()
        assert index_all(index) == [b"one\n", b"two\n"]
        assert index.generation == 0
        path.write_bytes(b"one\ntwo\nthree\n")
        assert index_all(index) == [b"one\n", b"two\n", b"three\n"]
        assert index.generation == 1
        assert os.get_inheritable(index._fd) is False


def test_a_line_of_many_chunks_is_one_line_and_is_indexed_in_pieces(path: Path) -> None:
    path.write_bytes(b"a\n" + b"x" * 5_000_000 + b"\nb\n")
    with OffsetIndex(path, chunk=100_000) as index:
        assert index.extend(0)
        assert len(index) == 1
        pieces = 1
        while index.extend(0):
            pieces += 1
        assert pieces >= 50
        assert [index.span(number) for number in range(3)] == [(0, 2), (2, 5_000_003), (5_000_003, 5_000_005)]
        assert index.line(1, 5) == b"xxxxx"


def test_blocks_are_whole_lines_about_a_chunk_long_and_end_before_a_line(path: Path) -> None:
    lines = [b"x" * 60_000 + b"\n"] * 5
    path.write_bytes(b"".join(lines))
    with OffsetIndex(path) as index:
        index_all(index)
        assert index.block(0, 5) == (2, b"".join(lines[:2]))
        assert index.block(1, 2) == (2, lines[1])
        assert index.block(4, 5) == (5, lines[4])


def test_a_line_that_is_gone_is_an_error_and_not_other_bytes(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    with OffsetIndex(path) as index:
        index.extend()
        with path.open("r+b") as file:
            file.truncate(9)
        with pytest.raises(JournalError, match="line 3 is no longer there; open it again"):
            index.line(2)
        with pytest.raises(IndexError, match="line 3 is not indexed; expected 0 to 2"):
            index.line(3)


@pytest.mark.parametrize("missing", [set(), {0}, {2, 3}], ids=["none", "first", "pair"])
@pytest.mark.parametrize("broken", [set(), {1}, {4, 5, 6}, {7, 9}], ids=["sound", "second", "three", "apart"])
@pytest.mark.parametrize("bad", [b"not json\n", b"\n"], ids=["text", "blank"])
def test_a_seq_is_found_among_damaged_lines(path: Path, missing: set[int], broken: set[int], bad: bytes) -> None:
    left = [bad if seq in broken else line for seq, line in enumerate(JOURNAL) if seq not in missing]
    path.write_bytes(b"".join(left))
    lost = missing | broken
    with OffsetIndex(path) as index:
        index.extend()
        for seq, line in enumerate(JOURNAL):
            number = index.find_seq(seq)
            assert (None if number is None else index.line(number)) == (None if seq in lost else line)
        assert index.find_seq(len(JOURNAL)) is None
        assert index.find_seq(-1) is None


@pytest.mark.parametrize(
    ("line", "seq"),
    [
        (b'{"v":1,"seq":17,"ts":', 17),
        (b'{ "v": 1, "seq": 3, "ts": ', 3),
        (b'{"seq":4}', None),
        (b'{"v":1,"seq":-1,', None),
        (b'{"v":1,"seq":' + b"9" * 500, None),
        (b"\x00\xff", None),
    ],
)
def test_a_seq_is_read_from_only_the_envelope(line: bytes, seq: int | None) -> None:
    assert seq_of(line) == seq


def test_an_index_is_read_while_another_thread_makes_it(path: Path) -> None:
    data = [b"%d\n" % number for number in range(20_000)]
    path.write_bytes(b"".join(data))
    with OffsetIndex(path, chunk=64) as index:
        worker = threading.Thread(target=index_all, args=(index,))
        worker.start()
        wrong = [
            known for known in iter(lambda: len(index), len(data)) if known and index.line(known - 1) != data[known - 1]
        ]
        worker.join()
        assert wrong == []


def test_a_closed_index_refuses_use(path: Path) -> None:
    path.write_bytes(b"one\n")
    index = OffsetIndex(path)
    index.extend()
    index.close()
    index.close()
    assert index.extend() is False
    with pytest.raises(JournalError, match=r"cannot read the journal .*: it is closed"):
        index.line(0)


def test_the_index_uses_little_more_than_eight_bytes_a_line(path: Path) -> None:
    path.write_bytes(b"line\n" * 50_000)
    with OffsetIndex(path) as index:
        index_all(index)
        assert len(index) == 50_000
        assert index.memory / len(index) < 10


def test_a_path_that_is_not_a_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        OffsetIndex(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="it is a folder"):
        OffsetIndex(tmp_path)


def test_two_threads_that_note_the_same_text_note_it_once() -> None:
    places, sha256 = TextPlaces(), "ab" * 32
    came = threading.Event()
    """The second thread is where the first one works: it is held there, or works too."""

    class Lock:
        lock = threading.Lock()

        def __enter__(self) -> None:
            if self.lock.locked():
                came.set()
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    class Numbers(array):  # type: ignore[type-arg]
        second: threading.Thread | None = None

        def append(self, number: int) -> None:
            if self.second is None:
                self.second = threading.Thread(target=places.add, args=(7, sha256))
                self.second.start()
                assert came.wait(60)
            came.set()
            super().append(number)

    places._adding = Lock()  # type: ignore[assignment]
    places._numbers = numbers = Numbers("I")
    places.add(7, sha256)
    assert numbers.second is not None
    numbers.second.join(60)
    assert list(places.lines_of(sha256, 100)) == [7]
    places.add(9, sha256)
    assert list(places.lines_of(sha256, 100)) == [9, 7]
