"""Only regular files are read: nothing that a name may lead to holds a command up or fills its memory."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from aeon_core.errors import UsageError
from aeon_core.regular_file import open_regular, read_start, read_text, read_whole


def test_a_regular_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abcdef")
    assert read_start(path, 3) == b"abc"
    assert read_start(str(path), 99) == b"abcdef"
    assert read_start(path, 0) == b""
    assert read_whole(path, 6) == b"abcdef"
    with pytest.raises(OSError, match="it is larger than 5 bytes"):
        read_whole(path, 5)


def test_a_link_to_a_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("file")
    assert read_whole(tmp_path / "link", 1) == b"x"


def test_children_do_not_inherit_open_files(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = open_regular(tmp_path / "file")
    try:
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)


def test_an_irregular_file_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    (tmp_path / "loop").symlink_to("loop")
    bound = socket.socket(socket.AF_UNIX)
    with bound:
        bound.bind(str(tmp_path / "socket"))
        for name, reason in {
            tmp_path / "fifo": "it is a pipe, not a regular file; save its output to a file",
            tmp_path / "link": "it is a pipe",
            tmp_path / "socket": "it is a socket, not a regular file",
            tmp_path: "Is a directory",
            tmp_path / "none": "No such file or directory",
            tmp_path / "loop": "Too many levels of symbolic links",
            Path("/dev/zero"): "it is a device, not a regular file",
            Path("/dev/tty"): "it is a device",
            Path("a\0b"): "its name contains a NUL character",
            Path("a\ud800"): "its name contains a lone surrogate",
        }.items():
            with pytest.raises(OSError) as caught:
                read_start(name, 10)
            assert str(caught.value.strerror).startswith(reason)
            with pytest.raises(UsageError, match=f"^cannot read the file: {reason}"):
                read_text(name, "the file", 10)


def test_a_pipe_that_takes_the_place_of_a_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.touch()
    opened = os.open

    def swap(name: str, flags: int) -> int:
        path.unlink()
        os.mkfifo(path)
        return opened(name, flags)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", swap)
        with pytest.raises(OSError, match="it is a pipe"):
            read_start(path, 10)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it needs Linux")
def test_a_file_without_a_size_is_read_only_up_to_the_limit() -> None:
    assert Path("/proc/self/maps").stat().st_size == 0
    assert len(read_start("/proc/self/maps", 100)) == 100
    with pytest.raises(OSError, match="it is larger than 100 bytes"):
        read_whole("/proc/self/maps", 100)


def test_a_text_is_utf_8_without_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbf\xc3\xa9")
    assert read_text(path, "the file", 100) == "é"
    path.write_bytes(b"a\xff")
    with pytest.raises(UsageError, match=r"^the file is not UTF-8 text: byte 1 is 0xff; save it as UTF-8$"):
        read_text(path, "the file", 100)
    with pytest.raises(UsageError, match=r"^the file is larger than 1 bytes; shorten it$"):
        read_text(path, "the file", 1)
