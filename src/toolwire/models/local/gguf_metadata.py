"""The chat template in a GGUF file, read from the metadata at its beginning; the weights behind it are not read.

Source: github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO, Final

TEMPLATE: Final = b"tokenizer.chat_template"
MAX_TEMPLATE: Final = 1_000_000
"""Maximum length of a chat template, in bytes."""
MAX_ITEMS: Final = 10_000_000
"""Maximum number of items of an array; vocabularies have some hundred thousand."""
_STRING: Final = 8
_ARRAY: Final = 9
_SIZES: Final = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
"""Sizes of values of a fixed length, in bytes, by the number of their type."""


def chat_template(path: Path) -> str:
    """Return the chat template of a model; "" if the file has none, or its metadata cannot be read."""
    try:
        with path.open("rb") as file:
            magic, version = file.read(4), _number(file, "I")
            if magic != b"GGUF" or version < 2:  # version 1 had shorter lengths, and no templates
                return ""
            _number(file, "Q")  # of tensors
            for _ in range(_number(file, "Q")):
                key = _read(file, _length(file))
                kind = _number(file, "I")
                if key == TEMPLATE and kind == _STRING:
                    return _read(file, _length(file)).decode("utf-8", "replace")
                _skip(file, kind)
    except (OSError, ValueError):
        pass  # a template is a hint only; loading the model reports what is wrong with the file
    return ""


def _skip(file: BinaryIO, kind: int) -> None:
    """Skip a value.

    Raises:
        ValueError: the type is unknown, or the file ends.
    """
    if kind == _STRING:
        _seek(file, _number(file, "Q"))
    elif kind == _ARRAY:
        inner, count = _number(file, "I"), _number(file, "Q")
        if count > MAX_ITEMS or inner == _ARRAY:
            raise ValueError("an array is too long, or contains arrays")
        if inner in _SIZES:
            _seek(file, count * _SIZES[inner])
        else:
            for _ in range(count):
                _skip(file, inner)
    elif kind in _SIZES:
        _seek(file, _SIZES[kind])
    else:
        raise ValueError(f"the type {kind} is unknown")


def _seek(file: BinaryIO, size: int) -> None:
    # A short distance is read: that stays in the buffer, and a vocabulary has very many short texts.
    if size < 4096:
        _read(file, size)
    elif size < 2**62:
        file.seek(size, 1)
    else:
        raise ValueError("a value is longer than a file can be")


def _length(file: BinaryIO) -> int:
    length = _number(file, "Q")
    if length > MAX_TEMPLATE:
        raise ValueError("a text is too long")
    return length


def _number(file: BinaryIO, form: str) -> int:
    number: int
    (number,) = struct.unpack(f"<{form}", _read(file, struct.calcsize(f"<{form}")))
    return number


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError("the file ends in its metadata")
    return data
