"""What the header of a GGUF file tells of its model, read without loading it."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from aeon_core.regular_file import open_regular

MAGIC = b"GGUF"

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_MAX_ENTRIES = 100_000
_MAX_KEPT = 1_000_000
_TEMPLATE = "tokenizer.chat_template"


class GgufError(ValueError):
    """The file is no GGUF file that can be used; the message says why."""


@dataclass(frozen=True)
class GgufHeader:
    """What a model's file says of the model."""

    architecture: str
    context_length: int | None
    """Tokens that the model was trained for, None where the file does not say."""

    knows_tools: bool
    """Whether a chat template of the model renders tools."""


def read_gguf_header(path: Path) -> GgufHeader:
    """Return what the file's header says. Raises GgufError for another kind of file or a cut one, OSError as usual."""
    with os.fdopen(open_regular(path), "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise GgufError("it is not a GGUF file")
        size = path.stat().st_size
        version = _scalar(file, "<I")
        if version not in _VERSIONS:
            raise GgufError(f"its GGUF version is {version}, expected one of {', '.join(map(str, _VERSIONS))}")
        _scalar(file, "<Q")
        count = _scalar(file, "<Q")
        if count > _MAX_ENTRIES:
            raise GgufError(f"its header lists {count} entries, which is impossible")
        entries = dict(_entry(file, size) for _ in range(count))
    architecture = entries.get("general.architecture")
    if not isinstance(architecture, str):
        raise GgufError("its header has no architecture")
    length = entries.get(f"{architecture}.context_length")
    templates = [value for key, value in entries.items() if key.startswith(_TEMPLATE) and isinstance(value, str)]
    return GgufHeader(
        architecture=architecture,
        context_length=length if isinstance(length, int) and length > 0 else None,
        knows_tools=any("tools" in template for template in templates),
    )


def _entry(file: BinaryIO, size: int) -> tuple[str, Any]:
    key = _text(file, size)
    return key, _value(file, _scalar(file, "<I"), size)


def _value(file: BinaryIO, kind: int, size: int) -> Any:
    """Return a scalar or a text; an array is passed over and None."""
    if kind == _STRING:
        return _text(file, size)
    if kind != _ARRAY:
        return _scalar(file, _format(kind))
    inner, length = _scalar(file, "<I"), _scalar(file, "<Q")
    if inner == _STRING:
        for _ in range(_within(length, file, size)):
            file.seek(_within(_scalar(file, "<Q"), file, size), 1)
    else:
        file.seek(_within(length * struct.calcsize(_format(inner)), file, size), 1)
    return None


def _text(file: BinaryIO, size: int) -> str:
    length = _within(_scalar(file, "<Q"), file, size)
    kept = file.read(min(length, _MAX_KEPT))
    file.seek(length - len(kept), 1)
    return kept.decode("utf-8", "replace")


def _scalar(file: BinaryIO, form: str) -> Any:
    data = file.read(struct.calcsize(form))
    if len(data) < struct.calcsize(form):
        raise GgufError("its header is incomplete")
    return struct.unpack(form, data)[0]


def _format(kind: int) -> str:
    form = _SCALARS.get(kind)
    if form is None:
        raise GgufError(f"its header holds a value of the unknown type {kind}")
    return form


def _within(length: int, file: BinaryIO, size: int) -> int:
    """Return a length that the rest of the file can hold."""
    if length > size - file.tell():
        raise GgufError("its header is incomplete")
    return length
