"""Contents by their SHA-256 in one file that is only appended to; where it cannot be written, in memory."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path

_RECORD = struct.Struct(">32sQ")
"""Before each content: its digest, and the length of its compressed form."""
_FLUSHED = 4_000_000
"""Bytes that wait in memory before they are written."""


class ContentFile:
    """The contents of one file, mode 0600; a half record at its end, as a kill leaves it, is written over."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._end = 0
        self._waiting: dict[bytes, bytes] = {}
        self._size = 0
        if path is not None:
            with suppress(OSError):
                self._scan(path)

    def keep(self, content: bytes) -> str:
        """Keep a content, and return its digest."""
        name = hashlib.sha256(content).digest()
        if name not in self._places and name not in self._waiting:
            self._waiting[name] = zlib.compress(content, 1)
            self._size += len(self._waiting[name])
            if self._size > _FLUSHED:
                self.flush()
        return name.hex()

    def flush(self) -> None:
        """Write what waits. Where that fails it stays in memory."""
        if self._path is None or not self._waiting:
            return
        places, end = {}, self._end
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, 0o600), "wb") as stream:
                stream.seek(end)
                for name, packed in self._waiting.items():
                    end += stream.write(_RECORD.pack(name, len(packed)))
                    places[name] = (end, len(packed))
                    end += stream.write(packed)
                stream.truncate()
        except OSError:
            return
        self._places |= places
        self._end, self._size = end, 0
        self._waiting.clear()

    def load(self, digest: str) -> bytes | None:
        """Return a content, None where it is not there, or damaged."""
        try:
            name = bytes.fromhex(digest)
            packed = self._waiting.get(name) or self._read(*self._places[name])
            content = zlib.decompress(packed)
        except (OSError, ValueError, KeyError, zlib.error):
            return None
        # An agent's command may have been at it.
        return content if hashlib.sha256(content).digest() == name else None

    def remove(self) -> None:
        """Remove the file."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _read(self, place: int, length: int) -> bytes:
        assert self._path is not None
        with self._path.open("rb") as stream:
            stream.seek(place)
            return stream.read(length)

    def _scan(self, path: Path) -> None:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            while len(head := stream.read(_RECORD.size)) == _RECORD.size:
                name, length = _RECORD.unpack(head)
                place = stream.tell()
                if place + length > size:
                    break
                self._places[name] = (place, length)
                self._end = stream.seek(place + length)
